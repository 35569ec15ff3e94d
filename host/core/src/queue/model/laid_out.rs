//! A unit of work laid out for the model: whatever needs memory, or gives it back, is beside the
//! commit. Who shares a model behind a lock lays out before it takes the lock and lets go of what
//! is left after it: a first touch of a large page takes milliseconds, and all would wait.

use super::entry::{Entry, Home};
use crate::message::{Attempts, Body, Message, MessageId};
use crate::names::QueueName;
use crate::time::Timestamp;
use crate::unit_of_work::{IdempotencyKey, Put, PutAnswer, Unit, Wait};

/// A unit ready to be committed; afterwards what is left of it.
#[derive(Debug)]
pub struct LaidOut {
    /// Without its puts.
    pub(super) unit: Unit,
    pub(super) puts: Vec<LaidPut>,
    /// Room for one answer per put.
    pub(super) answers: Vec<PutAnswer>,
    /// Messages that are gone; has room for one per settle.
    #[expect(
        clippy::vec_box,
        reason = "they come in boxes, and are not moved out of them"
    )]
    pub(super) gone: Vec<Box<Entry>>,
}

/// A put as the message that it is going to be.
#[derive(Debug)]
pub(super) struct LaidPut {
    pub(super) queue: QueueName,
    pub(super) key: Option<IdempotencyKey>,
    pub(super) max_depth: Option<u64>,
    pub(super) entry: Box<Entry>,
}

impl LaidOut {
    /// The unit, its puts apart.
    #[must_use]
    pub fn unit(&self) -> &Unit {
        &self.unit
    }
}

impl From<Unit> for LaidOut {
    fn from(mut unit: Unit) -> Self {
        let puts = std::mem::take(&mut unit.puts);
        Self {
            answers: Vec::with_capacity(puts.len()),
            gone: Vec::with_capacity(unit.settles.len()),
            puts: puts.into_iter().map(LaidPut::from).collect(),
            unit,
        }
    }
}

impl LaidPut {
    pub(super) fn id(&self) -> MessageId {
        self.entry.message.header.id
    }

    pub(super) fn put_time(&self) -> Timestamp {
        self.entry.message.header.put_time
    }
}

impl From<Put> for LaidPut {
    fn from(put: Put) -> Self {
        let home = match put.due {
            Some(until) if is_ahead(until, put.header.put_time) => {
                Home::Waiting(Wait::Delay, until)
            }
            _ => Home::Free,
        };
        let message = Message {
            header: put.header,
            attempts: Attempts::default(),
            body: Body::Whole(put.body),
            dead_letter: put.dead_letter,
        };
        let entry = Entry {
            message,
            home,
            holder: None,
        };
        Self {
            queue: put.queue,
            key: put.key,
            max_depth: put.max_depth,
            entry: Box::new(entry),
        }
    }
}

/// A delay that is over at the put is none.
fn is_ahead(until: Timestamp, put_time: Timestamp) -> bool {
    until > put_time
}
