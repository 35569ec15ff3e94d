//! What a handler without puts of its own made of its message, put on when it has succeeded. Used
//! by the styles whose answer is a body.

use bytes::Bytes;
use oncue_core::outcome::Failure;
use oncue_core::time::Millis;
use oncue_manager::tasks::Delivered;
use oncue_manager::tasks::port::{PortError, PutOptions};

use super::Answer;
use crate::interfaces::Guest;
use crate::interfaces::types::unput;

/// After how long a message is tried again whose output found its queue full, in milliseconds.
const FULL_AGAIN: Millis = 1_000;

/// Puts `body` where the definition or the message wants it, as a part of the unit of work.
///
/// A full queue charges nothing: the handler has done its part, so its message is deferred and the
/// log says why. Any other refusal is another attempt with the refusal as its reason.
///
/// # Errors
/// What ends the guest: a limit of the unit, or the host stopping.
pub(super) fn put(guest: &Guest, message: &Delivered, body: Bytes, options: PutOptions) -> Answer {
    match guest.session()?.put_output(message, body, options) {
        Ok(_) => Ok(Ok(())),
        Err(error) => refused(guest, error),
    }
}

/// What a refused put of an output means for the message.
///
/// # Errors
/// As [`put`].
pub(super) fn refused(guest: &Guest, error: PortError) -> Answer {
    match error {
        PortError::Full(text) => {
            guest.log.line(&text);
            Ok(Err(Failure::Defer(FULL_AGAIN)))
        }
        other => unput(other),
    }
}
