//! Puts of a handler: granted, bounded, counted into its unit of work, and dead letters past the
//! hop limit.
//!
//! What a putter may say of a message is checked in [`crate::put`], for handlers and applications
//! alike.

use std::sync::Arc;

use oncue_core::definition::QueueAttributes;
use oncue_core::message::{DeadLetter, DeadLetterReason, Header, MessageId};
use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{IdempotencyKey, Put};

use super::Delivered;
use super::open_unit::OpenUnit;
use super::port::{PortError, PutRequest};
use super::probe::SessionCall;
use super::session::TaskSession;
use crate::idempotency::body_digest;
use crate::shared::QueueCell;
use crate::traces::Sending;

/// Bytes of puts that one unit may hold, beside its count (`max-puts`): they wait in memory until
/// the commit.
pub const MAX_UNIT_BYTES: u64 = 256 << 20;

/// Where an output goes, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputRoom {
    /// The queue.
    pub queue: QueueName,
    /// The longest body that it takes, in bytes.
    pub most: u64,
}

impl TaskSession {
    /// Puts need a grant, to the task's own queue too. Only the definition's `output` needs none,
    /// and the manager's own reply queue while a message that wants its answer there is in hand.
    pub(crate) fn may_put(&self, queue: &QueueName) -> Result<Arc<QueueCell>, PortError> {
        let answers = || {
            let unit = self.unit.lock();
            let mut headers = unit.taken.iter().map(|t| &t.delivered.message.header);
            *queue == QueueName::replies()
                && headers.any(|header| header.reply_to.as_ref() == Some(queue))
        };
        let attributes = &self.spec.attributes;
        let is_output = attributes.output.as_ref() == Some(queue);
        let granted = is_output || attributes.grants.may_put(queue) || answers();
        self.granted("put", granted, queue)
    }

    /// Puts a message as part of the unit of work; answers its id. It becomes visible with the
    /// commit.
    ///
    /// # Errors
    /// See [`PortError`].
    pub fn put(&self, request: PutRequest) -> Result<MessageId, PortError> {
        self.probe(SessionCall::Put(&request.queue))?;
        let cell = self.may_put(&request.queue)?;
        if self.stop_requested() {
            return Err(PortError::Stopping);
        }
        let mut unit = self.unit.lock();
        let (max, size) = (self.spec.attributes.max_puts, request.body.len() as u64);
        if unit.puts.len() >= max as usize {
            return Err(PortError::OutputLimit(format!(
                "the unit of work already has {max} puts of {max}; raise max-puts or commit \
                 earlier [output-limit]"
            )));
        }
        let attributes = cell.attributes.load();
        takes(&cell, &attributes, size)?;
        if unit.put_bytes + size > MAX_UNIT_BYTES {
            return Err(PortError::OutputLimit(format!(
                "the unit of work would hold {} bytes of puts of {MAX_UNIT_BYTES}; commit earlier \
                 [output-limit]",
                unit.put_bytes + size
            )));
        }
        let own = unit
            .puts
            .iter()
            .filter(|put| put.queue == cell.name)
            .count() as u64;
        let depth = cell.depth() + own;
        if depth >= attributes.max_depth {
            self.shared.refused_for_room(&cell.name);
            return Err(PortError::Full(format!(
                "queue \"{}\" is full (depth {depth} of {}); raise max-depth or drain it \
                 [queue-full]",
                cell.name, attributes.max_depth
            )));
        }
        let (mut put, sending) = self.build_put(&unit, &cell, &attributes, request)?;
        if put.queue == cell.name {
            // The depth above is without what other tasks and this one have under way: the store
            // has the last word. A dead letter past the hop limit is always taken.
            put.max_depth = Some(attributes.max_depth);
        }
        if let Some(known) = self.known_key(&unit, &put)? {
            return Ok(known);
        }
        let id = put.header.id;
        if let Some(trace) = &mut unit.trace {
            trace.sent(sending, &put, self.trace_time());
        }
        unit.put(put);
        Ok(id)
    }

    /// Builds a put of the unit's, with its place in the trace where that is recorded.
    pub(crate) fn build_put(
        &self,
        unit: &OpenUnit,
        cell: &QueueCell,
        attributes: &QueueAttributes,
        mut request: PutRequest,
    ) -> Result<(Put, Option<Sending>), PortError> {
        let trace = unit.trace.as_ref();
        let sending = trace.and_then(|trace| trace.mark(&mut request.options.properties));
        let putter = ["process/", self.spec.process.as_str()].concat();
        let now = self.shared.now();
        let id = self.shared.store.next_id();
        let hop = unit.hop.saturating_add(1);
        let mut put = crate::put::build(request, attributes, now, id, Some(putter))
            .map_err(|error| PortError::Other(error.message))?;
        put.header.hop_count = hop;
        if hop > attributes.hop_limit {
            put.dead_letter = Some(Box::new(self.hop_limit_record(cell, &put.header, now)));
            put.queue = QueueName::dead_letter();
            put.key = None;
            put.due = None;
        }
        Ok((put, sending))
    }

    fn hop_limit_record(&self, cell: &QueueCell, header: &Header, now: Timestamp) -> DeadLetter {
        let limit = cell.attributes.load().hop_limit;
        DeadLetter {
            reason: DeadLetterReason::HopLimit,
            queue: cell.name.clone(),
            process: Some(self.spec.process.to_string()),
            digest: Some(self.spec.component.digest.clone()),
            attempts: 0,
            detail: format!(
                "hop {} of {limit}: a handler's puts came back to a handler too often",
                header.hop_count
            ),
            backtrace: None,
            log_tail: None,
            task: Some(self.spec.id.to_string()),
            time: now,
        }
    }

    /// What a put's idempotency key already stands for, in this unit or in the store.
    fn known_key(&self, unit: &OpenUnit, put: &Put) -> Result<Option<MessageId>, PortError> {
        let Some(key) = &put.key else { return Ok(None) };
        let same = |digest: &Option<[u8; 32]>, id: MessageId| {
            if *digest == key.body_digest {
                return Ok(Some(id));
            }
            Err(PortError::Other(format!(
                "idempotency key \"{}\" was used in queue \"{}\" for another message; use a new \
                 key [duplicate-key]",
                key.key, put.queue
            )))
        };
        let earlier = unit.puts.iter().find(|other| {
            other.queue == put.queue && other.key.as_ref().is_some_and(|k| k.key == key.key)
        });
        if let Some(other) = earlier {
            let digest = other.key.as_ref().and_then(|k| k.body_digest);
            return same(&digest, other.header.id);
        }
        let known = self
            .shared
            .store
            .key(&put.queue, &key.key, self.shared.now())
            .map_err(|error| PortError::Other(error.to_string()))?;
        known.map_or(Ok(None), |known| same(&known.body_digest, known.id))
    }

    /// Puts what a handler of a style without puts made of `message`: to the definition's `output`,
    /// else to where the message wants its reply. It correlates to the message: by its correlation
    /// id, else by its id. `None` when nobody wants it.
    ///
    /// # Errors
    /// See [`PortError`].
    pub fn put_output(
        &self,
        message: &Delivered,
        body: bytes::Bytes,
        mut options: super::port::PutOptions,
    ) -> Result<Option<MessageId>, PortError> {
        let Some(queue) = self.output_queue(message) else {
            return Ok(None);
        };
        options.correlation_id = Some(correlation(&message.message.header));
        self.put(PutRequest {
            queue,
            body,
            options,
        })
        .map(Some)
    }

    fn output_queue(&self, message: &Delivered) -> Option<QueueName> {
        let wanted = self.spec.attributes.output.as_ref();
        wanted.or(message.message.header.reply_to.as_ref()).cloned()
    }

    /// How much the queue takes that [`Self::put_output`] would put to; `None` when nobody wants an
    /// output.
    #[must_use]
    pub fn output_room(&self, message: &Delivered) -> Option<OutputRoom> {
        let queue = self.output_queue(message)?;
        // One that is not defined refuses the put, with its reason.
        let most = match self.shared.cell(&queue) {
            Some(cell) => cell.attributes.load().max_message_length,
            None => QueueAttributes::default().max_message_length,
        };
        Some(OutputRoom { queue, most })
    }

    /// Puts a copy of a message to another queue, properties and all; the body never enters the
    /// guest.
    ///
    /// # Errors
    /// See [`PortError`].
    pub fn forward(&self, message: &Delivered, queue: &QueueName) -> Result<MessageId, PortError> {
        let header = &message.message.header;
        let body = self.read_body(message, 0, header.size)?;
        let now = self.shared.now();
        let options = super::port::PutOptions {
            correlation_id: header.correlation_id.clone(),
            reply_to: header.reply_to.clone(),
            group: header.group.clone(),
            group_sequence: header.group_sequence,
            priority: Some(header.priority),
            persistent: Some(header.persistent),
            content_type: header.content_type.clone(),
            properties: header.properties.clone(),
            delay: None,
            expiry: header.expires.map(|at| at.since(now)),
            idempotency_key: None,
        };
        self.put(PutRequest {
            queue: queue.clone(),
            body,
            options,
        })
    }
}

/// What an answer to a message carries as its correlation id.
#[must_use]
pub fn correlation(header: &Header) -> String {
    let own = header.correlation_id.clone();
    own.unwrap_or_else(|| header.id.to_string())
}

/// Whether a queue takes a body of that size.
pub(crate) fn takes(
    cell: &QueueCell,
    attributes: &QueueAttributes,
    size: u64,
) -> Result<(), PortError> {
    if !attributes.put {
        return Err(PortError::Other(format!(
            "put is disabled for queue \"{}\"; enable it [put-disabled]",
            cell.name
        )));
    }
    if size > attributes.max_message_length {
        return Err(PortError::TooLarge(format!(
            "the body has {size} bytes, queue \"{}\" takes {}; raise max-message-length \
             [too-large]",
            cell.name, attributes.max_message_length
        )));
    }
    Ok(())
}

/// An idempotency key for a put, from what the putter gave.
pub(crate) fn key_for(request: &PutRequest, window: u64, now: Timestamp) -> Option<IdempotencyKey> {
    request
        .options
        .idempotency_key
        .as_ref()
        .map(|key| IdempotencyKey {
            key: key.clone(),
            body_digest: Some(body_digest(request)),
            until: now.after(window),
        })
}
