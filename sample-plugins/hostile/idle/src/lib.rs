//! Trigger style: returns ok at once and leaves the messages where they are.
//!
//! A task without progress: the queue backs off, so that this cannot spin the host. Ends as
//! `no-progress`.

use trigger_handler::{Failure, Guest, TriggerMessage};

struct Idle;

impl Guest for Idle {
    fn handle(_: TriggerMessage) -> Result<(), Failure> {
        Ok(())
    }
}

trigger_handler::export!(Idle);
