//! `oncue:handler/types`: the message resource, and the translation of refusals and of both styles'
//! arguments.

use std::sync::Arc;

use bytes::Bytes;
use oncue_core::definition::TriggerType;
use oncue_core::outcome::{Failure, Outcome};
use oncue_core::quantity::format_bytes;
use oncue_core::trigger::message::TriggerMessage;
use oncue_manager::tasks::Delivered;
use oncue_manager::tasks::port::PortError;
use wasmtime::component::Resource;

use super::Guest;
use super::bindings::oncue::handler::types::{self, Error, Host, HostMessage, Metadata};
use crate::classify::Stop;
use crate::sink::cut;
use crate::style::Answer;

/// The most of a guest's own words that is kept as a reason, in bytes.
pub(crate) const MAX_REASON: usize = 4 << 10;

/// A message that the guest has a handle of. The body stays with the manager until it is asked for.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct MessageHandle(pub(crate) Arc<Delivered>);

impl Host for Guest {}

impl Guest {
    /// Hands a message to the guest.
    pub(crate) fn give(
        &mut self,
        message: Arc<Delivered>,
    ) -> wasmtime::Result<Resource<MessageHandle>> {
        Ok(self.table.push(MessageHandle(message))?)
    }

    /// A part of a body, never more than the guest's memory could take.
    fn read_body(
        &self,
        message: &Resource<MessageHandle>,
        offset: u64,
        length: u64,
    ) -> wasmtime::Result<Bytes> {
        let MessageHandle(delivered) = self.table.get(message)?;
        self.part_of_body(delivered, offset, length)
    }

    /// All of a body, for a style that hands it over at once.
    pub(crate) fn whole_body(&self, delivered: &Delivered) -> wasmtime::Result<Bytes> {
        self.part_of_body(delivered, 0, u64::MAX)
    }

    /// The same for the host's own use: it does not enter the guest, which bounds nothing.
    pub(crate) fn body_to_put(&self, delivered: &Delivered) -> wasmtime::Result<Bytes> {
        let size = delivered.message.body.len();
        let read = self.session()?.read_body(delivered, 0, size);
        read.map_err(|error| {
            Stop::Host(format!("the body of a message cannot be read: {error}")).into()
        })
    }

    fn part_of_body(
        &self,
        delivered: &Delivered,
        offset: u64,
        length: u64,
    ) -> wasmtime::Result<Bytes> {
        let size = delivered.message.body.len();
        let length = length.min(size.saturating_sub(offset));
        if length > self.memory {
            let (wanted, limit) = (format_bytes(length), format_bytes(self.memory));
            let detail = format!(
                "it would be given {wanted} of a body at once and its memory limit is {limit}; \
                 raise memory, or read the body in pieces where its interface can"
            );
            return Err(Stop::limit(Outcome::OverMemory, detail).into());
        }
        if length == 0 {
            return Ok(Bytes::new());
        }
        let session = self.session()?;
        session
            .read_body(delivered, offset, length)
            .map_err(|error| {
                // A body that cannot be read is no fault of the guest's, and there is no error to
                // give it.
                Stop::Host(format!("the body of a message cannot be read: {error}")).into()
            })
    }
}

impl HostMessage for Guest {
    fn metadata(&mut self, message: Resource<MessageHandle>) -> wasmtime::Result<Metadata> {
        let MessageHandle(delivered) = self.table.get(&message)?;
        Ok(metadata(&delivered.message, delivered.attempts_left))
    }

    fn body(&mut self, message: Resource<MessageHandle>) -> wasmtime::Result<Vec<u8>> {
        Ok(self.read_body(&message, 0, u64::MAX)?.into())
    }

    fn text(
        &mut self,
        message: Resource<MessageHandle>,
    ) -> wasmtime::Result<Result<String, Error>> {
        let body = self.read_body(&message, 0, u64::MAX)?;
        Ok(String::from_utf8(body.into()).map_err(|_| Error::NotText))
    }

    fn read(
        &mut self,
        message: Resource<MessageHandle>,
        offset: u64,
        length: u32,
    ) -> wasmtime::Result<Vec<u8>> {
        Ok(self.read_body(&message, offset, u64::from(length))?.into())
    }

    fn drop(&mut self, message: Resource<MessageHandle>) -> wasmtime::Result<()> {
        self.table.delete(message)?;
        Ok(())
    }
}

/// Everything about a message but its body, as the guest sees it.
pub(crate) fn metadata(message: &oncue_core::message::Message, attempts_left: u32) -> Metadata {
    let header = &message.header;
    Metadata {
        id: header.id.to_string(),
        correlation_id: header.correlation_id.clone(),
        reply_to: header.reply_to.as_ref().map(ToString::to_string),
        group: header.group.clone(),
        group_sequence: header.group_sequence,
        priority: header.priority,
        persistent: header.persistent,
        content_type: header.content_type.clone(),
        properties: header.properties.clone(),
        put_time: header.put_time.0,
        expires: header.expires.map(|at| at.0),
        backout_count: message.attempts.backout_count,
        attempts_left,
        hop_count: header.hop_count,
        put_by: header.put_by.clone(),
        size: header.size,
    }
}

/// A refusal as the guest sees it, or the end of the guest.
pub(super) fn refusal(error: PortError) -> Result<Error, Stop> {
    match error {
        PortError::Full(text) => Ok(Error::Full(text)),
        PortError::NotGranted(text) => Ok(Error::NotGranted(text)),
        PortError::UnknownQueue(text) => Ok(Error::UnknownQueue(text)),
        PortError::TooLarge(text) => Ok(Error::TooLarge(text)),
        PortError::NoReply(text) | PortError::Other(text) => Ok(Error::Other(text)),
        fatal => Err(stop(fatal)),
    }
}

/// The end of a guest whose call can have no answer.
pub(crate) fn stop(error: PortError) -> Stop {
    match error {
        PortError::OutputLimit(text) => Stop::limit(Outcome::OutputLimit, text),
        PortError::Conflict(text) => Stop::limit(Outcome::StateConflict, text),
        PortError::Cut(text) => Stop::trap(text),
        other => Stop::Host(other.to_string()),
    }
}

/// A refused put of what a handler answered: the message is tried again with that reason, or the
/// guest is ended.
pub(crate) fn unput(error: PortError) -> Answer {
    let reason = error.to_string();
    match refusal(error) {
        Ok(_) => Ok(Err(Failure::Retry {
            reason: cut(&reason, MAX_REASON),
            after: None,
        })),
        Err(stop) => Err(stop.into()),
    }
}

/// A handler's own failure, its words cut to what is kept.
pub(crate) fn failure(failure: types::Failure) -> Failure {
    match failure {
        types::Failure::Retry(retry) => Failure::Retry {
            reason: cut(&retry.reason, MAX_REASON),
            after: retry.after,
        },
        types::Failure::Reject(reason) => Failure::Reject(cut(&reason, MAX_REASON)),
        types::Failure::Defer(after) => Failure::Defer(after),
    }
}

/// The failure of a handler whose interface knows one kind only: tried again at the queue's own
/// pace, the text cut to what is kept.
pub(crate) fn retry(reason: &str) -> Failure {
    let reason = if reason.is_empty() {
        "the handler gave no reason".to_owned()
    } else {
        cut(reason, MAX_REASON)
    };
    let after = None;
    Failure::Retry { reason, after }
}

/// The trigger message as the guest sees it.
pub(crate) fn trigger_message(message: &TriggerMessage) -> types::TriggerMessage {
    types::TriggerMessage {
        manager: message.manager.clone(),
        queue: message.queue.to_string(),
        process: message.process.to_string(),
        trigger_type: match message.trigger_type {
            TriggerType::Every => types::TriggerType::Every,
            TriggerType::Depth => types::TriggerType::Depth,
            // `none` starts nothing; a queue altered to it since the start was of the usual type.
            TriggerType::First | TriggerType::None => types::TriggerType::First,
        },
        trigger_data: message.trigger_data.clone(),
        application_id: message.application_id.clone(),
        environment_data: message.environment_data.clone(),
        user_data: message.user_data.clone(),
        depth: message.depth,
        sequence: message.sequence,
        fired_at: message.fired_at.0,
    }
}
