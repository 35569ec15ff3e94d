//! The unit of work of one task while it is open: what was taken, put, read and written, with
//! savepoints.
//!
//! Pure bookkeeping under the session's lock; it talks to no store. [`super::settle`] turns it into
//! a commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use oncue_core::message::{MessageId, Sequence};
use oncue_core::names::QueueName;
use oncue_core::unit_of_work::{
    Disposition, OwnerId, Put, Revision, Settle, StateRead, StateWrite, Unit,
};

use super::Delivered;
use super::seen::Seen;
use crate::traces::call::CallTrace;

/// A taken message, and what was decided about it.
#[derive(Clone, Debug)]
pub struct TakenMessage {
    /// The message.
    pub delivered: Arc<Delivered>,
    /// What becomes of it; `None` while undecided.
    pub disposition: Option<Disposition>,
    /// Its slot in the in-hand file.
    pub in_hand: Option<u32>,
    /// It answers a request of this unit.
    pub is_reply: bool,
    /// Its call ended well: once the unit is durable it counts as committed.
    pub is_done: bool,
    /// The trace of its call, to be told once the unit is durable.
    pub trace: Option<Box<CallTrace>>,
}

impl TakenMessage {
    /// Where it is, for a release.
    #[must_use]
    pub fn place(&self) -> (QueueName, Sequence) {
        (
            self.delivered.queue.clone(),
            self.delivered.message.header.id.sequence,
        )
    }
}

/// An open unit of work.
#[derive(Debug)]
pub struct OpenUnit {
    /// Who holds the messages.
    pub owner: OwnerId,
    /// Messages taken, in order.
    pub taken: Vec<TakenMessage>,
    /// Puts, in order.
    pub puts: Vec<Put>,
    /// Bytes of those puts' bodies.
    pub put_bytes: u64,
    /// Revisions seen, by state key.
    pub reads: BTreeMap<String, Option<Revision>>,
    /// Values written, by state key; `None` deletes.
    pub writes: BTreeMap<String, Option<Bytes>>,
    /// Hop count of a put: the highest hop got since the savepoint, plus one.
    pub hop: u8,
    /// The message that the handler works on: delivered to the call, or got last (trigger style).
    pub input: Option<MessageId>,
    /// Requests made since that message was in hand.
    pub requests: u32,
    /// What the call has read, for the record of its failure.
    pub seen: Seen,
    /// The trace of the call, or of the unit in trigger style.
    pub trace: Option<Box<CallTrace>>,
}

/// A point to go back to: everything after it can be undone alone.
#[derive(Clone, Debug)]
pub struct Savepoint {
    taken: usize,
    puts: usize,
    put_bytes: u64,
    writes: BTreeMap<String, Option<Bytes>>,
}

impl OpenUnit {
    /// An empty unit.
    #[must_use]
    pub fn new(owner: OwnerId) -> Self {
        Self {
            owner,
            taken: Vec::new(),
            puts: Vec::new(),
            put_bytes: 0,
            reads: BTreeMap::new(),
            writes: BTreeMap::new(),
            hop: 0,
            input: None,
            requests: 0,
            seen: Seen::default(),
            trace: None,
        }
    }

    /// True when a commit would do nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.puts.is_empty() && self.writes.is_empty()
    }

    /// Marks the present point.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        Savepoint {
            taken: self.taken.len(),
            puts: self.puts.len(),
            put_bytes: self.put_bytes,
            writes: self.writes.clone(),
        }
    }

    /// Undoes puts, writes and takes since `savepoint`; answers the messages taken since, for
    /// release. Reads stay: what was done before may rest on them.
    #[must_use]
    pub fn roll_back(&mut self, savepoint: &Savepoint) -> Vec<TakenMessage> {
        self.puts.truncate(savepoint.puts);
        self.put_bytes = savepoint.put_bytes;
        self.writes.clone_from(&savepoint.writes);
        self.taken.split_off(savepoint.taken.min(self.taken.len()))
    }

    /// What was taken and put since `savepoint`.
    #[must_use]
    pub fn since(&self, savepoint: &Savepoint) -> (&[TakenMessage], &[Put]) {
        let taken = self.taken.get(savepoint.taken..).unwrap_or_default();
        let puts = self.puts.get(savepoint.puts..).unwrap_or_default();
        (taken, puts)
    }

    /// How many messages were taken at `savepoint`.
    #[must_use]
    pub fn savepoint_taken(&self, savepoint: &Savepoint) -> usize {
        savepoint.taken
    }

    /// Notes that a message was got.
    pub fn got(&mut self, delivered: Arc<Delivered>, in_hand: Option<u32>) {
        self.hop = self.hop.max(delivered.message.header.hop_count);
        if self.taken.is_empty() {
            // One is the usual; a list begins with room for four else.
            self.taken.reserve_exact(1);
        }
        self.taken.push(TakenMessage {
            delivered,
            disposition: None,
            in_hand,
            is_reply: false,
            is_done: false,
            trace: None,
        });
    }

    /// Adds a put.
    pub fn put(&mut self, put: Put) {
        if self.puts.is_empty() {
            // As above; one takes some hundred bytes.
            self.puts.reserve_exact(1);
        }
        self.put_bytes += put.body.len() as u64;
        self.puts.push(put);
    }

    /// Notes the answer to a request to `asked`.
    pub fn got_reply(&mut self, asked: &QueueName, delivered: Arc<Delivered>) {
        self.seen
            .replies
            .push((asked.clone(), Arc::clone(&delivered)));
        self.got(delivered, None);
        if let Some(taken) = self.taken.last_mut() {
            taken.is_reply = true;
        }
    }

    /// Decides about one message; `None` gives it back as it was.
    pub fn decide(&mut self, delivered: &Delivered, disposition: Option<Disposition>) {
        let id = delivered.message.header.id;
        if let Some(taken) = self
            .taken
            .iter_mut()
            .find(|taken| taken.delivered.message.header.id == id)
        {
            taken.disposition = disposition;
        }
    }

    /// Keeps the trace of a message's call until the unit is durable.
    pub fn keep_trace(&mut self, delivered: &Delivered, trace: Option<Box<CallTrace>>) {
        let id = delivered.message.header.id;
        let mut taken = self.taken.iter_mut();
        if let Some(taken) = taken.find(|taken| taken.delivered.message.header.id == id) {
            taken.trace = trace;
        }
    }

    /// Decides about every message that has no decision yet: all of them are done.
    pub fn settle_rest(&mut self, disposition: &Disposition) {
        for taken in &mut self.taken {
            taken.disposition.get_or_insert_with(|| disposition.clone());
            taken.is_done = true;
        }
    }

    /// True when its `count` calls did nothing but handle their messages and put others: what
    /// follows it then sees the same whether or not it is durable yet. A suspect's unit is awaited,
    /// so that a crash finds one of them in hand; one that put under a key, so that the next unit
    /// meets it.
    #[must_use]
    pub fn is_plain(&self, count: usize) -> bool {
        let is_suspect =
            |taken: &TakenMessage| taken.delivered.message.attempts.interrupted_count > 0;
        self.taken.len() == count
            && self.reads.is_empty()
            && self.writes.is_empty()
            && self.requests == 0
            && !self.seen.browsed
            && !self.seen.listed_keys
            && !self.taken.iter().any(is_suspect)
            && self.puts.iter().all(|put| put.key.is_none())
    }

    /// The unit as a commit asks for it. Puts, reads and writes are moved out; messages that have
    /// no decision are not in it.
    #[must_use]
    pub fn to_commit(&mut self, namespace: &str) -> Unit {
        let mut settles = Vec::with_capacity(self.taken.len());
        for taken in &self.taken {
            if let Some(disposition) = &taken.disposition {
                let (queue, sequence) = taken.place();
                settles.push(Settle {
                    queue,
                    sequence,
                    disposition: disposition.clone(),
                });
            }
        }
        let namespace = || namespace.to_owned();
        let read = |(key, revision)| StateRead {
            namespace: namespace(),
            key,
            revision,
        };
        let write = |(key, value)| StateWrite {
            namespace: namespace(),
            key,
            value,
        };
        Unit {
            owner: Some(self.owner),
            settles,
            puts: std::mem::take(&mut self.puts),
            reads: std::mem::take(&mut self.reads)
                .into_iter()
                .map(read)
                .collect(),
            writes: std::mem::take(&mut self.writes)
                .into_iter()
                .map(write)
                .collect(),
            records: Vec::new(),
            task: None,
            keep_tasks: None,
            key_taken_is_conflict: true,
            chain: None,
            refuse_when_busy: false,
        }
    }
}
