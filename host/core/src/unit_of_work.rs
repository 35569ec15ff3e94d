//! A unit of work as a value: what one commit asks of a store, all or nothing.
//!
//! Who builds it: the manager, for a task, for an outside application, or for itself. Who applies
//! it: a store, atomically, in the order of submission. This file decides nothing; see
//! [`crate::backout`] for what becomes of a message after a failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::message::{Attempts, DeadLetter, Header, MessageId, Sequence};
use crate::names::QueueName;
use crate::time::Timestamp;

/// Whoever holds messages taken from a queue: one per open unit of work. The store's fence: a unit
/// that settles a message which its owner no longer holds is refused whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OwnerId(pub u64);

/// Revision of a state key: the commit number that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub u64);

/// What one commit does. An empty unit commits trivially.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    /// Who holds the messages in `settles`. `None` only when there are none.
    pub owner: Option<OwnerId>,
    /// What becomes of taken messages.
    pub settles: Vec<Settle>,
    /// New messages.
    pub puts: Vec<Put>,
    /// State keys that the unit read, with the revision it saw: commit applies only if all still
    /// hold.
    pub reads: Vec<StateRead>,
    /// State keys that the unit changes. The last write of a key wins.
    pub writes: Vec<StateWrite>,
    /// Definitions and flags: opaque rows by kind and name.
    pub records: Vec<RecordChange>,
    /// A task record to keep, as an opaque row.
    pub task: Option<TaskRow>,
    /// Which task records stay, of all that are there after this unit.
    pub keep_tasks: Option<KeepTasks>,
    /// What an idempotency key held by an earlier commit means: for an application the first put's
    /// id is the answer; for a handler, which was already told another id, it is a conflict.
    pub key_taken_is_conflict: bool,
    /// Refuse the unit when too much waits for the store already: for applications, which can be
    /// told to come again. Others hold what they would commit in memory anyway.
    pub refuse_when_busy: bool,
    /// The units that it follows, if it was made before they were known to be durable: it is
    /// applied only if all of them were.
    pub chain: Option<Chain>,
}

impl Unit {
    /// True when an earlier unit of its chain was refused: this one must be, too.
    #[must_use]
    pub fn is_undone(&self) -> bool {
        self.chain.as_ref().is_some_and(Chain::is_cut)
    }
}

/// Units of work that follow each other: submitted in order, before the earlier ones are known to
/// be durable. A store applies them in that order, and once it has refused one it refuses every
/// later one. Each unit carries the chain, so a store needs no table of them.
///
/// Two chains are never compared: clones are the same chain, [`Chain::default`] is a new one.
#[derive(Clone, Debug, Default)]
pub struct Chain(Arc<AtomicBool>);

impl Chain {
    /// True once a unit of it was refused.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// A unit of it was refused, or its answer is not known. There is no way back.
    pub fn cut(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// What becomes of one taken message.
#[derive(Clone, Debug)]
pub struct Settle {
    /// The queue it was taken from.
    pub queue: QueueName,
    /// Which message.
    pub sequence: Sequence,
    /// What becomes of it.
    pub disposition: Disposition,
}

/// What becomes of a taken message when the unit commits. To give it back unchanged is not here:
/// that is `Store::release`, which writes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Gone: its effects are in this unit.
    Remove,
    /// Back on its queue at once, with new attempts.
    Requeue(Attempts),
    /// Back on its queue at `until`.
    Later {
        /// When it is free again.
        until: Timestamp,
        /// Why it waits.
        wait: Wait,
        /// New attempts.
        attempts: Attempts,
    },
    /// Handed to an outside consumer until `until`; survives a restart.
    Lease {
        /// When the lease ends.
        until: Timestamp,
        /// What the consumer settles it by.
        token: LeaseToken,
        /// True when it was got by id or correlation id: such a lease does not hold the queue open
        /// for input.
        selective: bool,
        /// New attempts.
        attempts: Attempts,
    },
    /// To another queue, with a record beside the body. Keeps its identity.
    Move {
        /// The backout or dead-letter queue.
        to: QueueName,
        /// Why. `None` for a redrive, which also resets the attempts.
        record: Option<Box<DeadLetter>>,
        /// New attempts.
        attempts: Attempts,
    },
    /// Set aside: nothing could take it. It holds its group.
    Park(Attempts),
}

/// Why a message waits for a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Put with a delay.
    Delay,
    /// A failed attempt.
    Retry,
    /// Deferred by the handler.
    Defer,
}

/// What an outside consumer settles a leased message by. Random, so it cannot be guessed; unique,
/// so it fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseToken(pub u128);

/// A new message.
#[derive(Clone, Debug)]
pub struct Put {
    /// Where to.
    pub queue: QueueName,
    /// Its header; the id comes from `Store::next_id`.
    pub header: Header,
    /// Its body.
    pub body: Bytes,
    /// Not to be taken before this.
    pub due: Option<Timestamp>,
    /// Present when the message is born in a dead-letter queue (hop limit).
    pub dead_letter: Option<Box<DeadLetter>>,
    /// Makes a repeat harmless.
    pub key: Option<IdempotencyKey>,
    /// Refuse the unit when the queue already holds so many messages. `None` for the manager's own
    /// puts.
    pub max_depth: Option<u64>,
}

/// A key under which a put happens once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyKey {
    /// The putter's text; unique within the queue.
    pub key: String,
    /// Digest of queue, body and what matters of the header; `None` compares nothing (a request's
    /// own key).
    pub body_digest: Option<[u8; 32]>,
    /// Until when the store remembers it.
    pub until: Timestamp,
}

/// A state key that the unit read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRead {
    /// Whose state: the plugin's name.
    pub namespace: String,
    /// Which key.
    pub key: String,
    /// What was there: `None` when the key was absent.
    pub revision: Option<Revision>,
}

/// A state key that the unit writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateWrite {
    /// Whose state: the plugin's name.
    pub namespace: String,
    /// Which key.
    pub key: String,
    /// The new value; `None` deletes.
    pub value: Option<Bytes>,
}

/// Kinds of definition rows. The store gives them no meaning, except that a queue exists while it
/// has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordKind {
    /// A queue's definition. Deleting the row deletes the queue; it must be empty.
    Queue,
    /// A queue's trigger control: on, off by operator, off by depth, start owed.
    Control,
    /// A process definition.
    Process,
    /// What the manager remembers of a plugin: pinned digest, last good versions.
    Plugin,
    /// Host-wide flags (paused).
    Host,
}

/// One definition row to write or delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordChange {
    /// What it is.
    pub kind: RecordKind,
    /// Its name within the kind.
    pub name: String,
    /// The new row; `None` deletes.
    pub value: Option<Bytes>,
}

/// How much is kept of task records. One unit drops up to [`KeepTasks::MAX_DROPPED`] of them, the
/// oldest first; the rest is for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepTasks {
    /// Bytes of rows; the newest one stays however long it is.
    pub bytes: u64,
    /// Records with lower ids are dropped.
    pub from: u64,
}

impl KeepTasks {
    /// Records that one unit drops at most.
    pub const MAX_DROPPED: usize = 1_000;
}

/// A task record to keep. How many are kept, [`KeepTasks`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    /// Task ids grow with time.
    pub id: u64,
    /// The record, encoded by the manager.
    pub value: Bytes,
}

/// What a commit answers: one id per put, in order. For a repeat under an idempotency key it is the
/// first's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Number of the commit; also the revision of what it wrote.
    pub commit: u64,
    /// Ids of the puts, and whether each repeated an earlier one.
    pub puts: Vec<PutAnswer>,
}

/// What became of one put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutAnswer {
    /// The message's id.
    pub id: MessageId,
    /// True when an earlier put under the same key already made it.
    pub repeated: bool,
}
