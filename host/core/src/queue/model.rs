//! The reference model of a store: what each call does, as a pure value. Every store is compared
//! with it, and the memory store is nothing else with a lock around it. No lock, no I/O, no clock
//! here.
//!
//! Neighbours: [`crate::unit_of_work`] is what it applies, [`super::Counts`] is what it tells. It
//! knows no policy (when to trigger, how often to retry) and it does not bound time: `now` is
//! always an argument.
//!
//! # What binds every store
//!
//! **Time.** A thing is over *at* its time: a message with `expires <= now` has expired, a wait or
//! a lease with `until <= now` has ended, a key with `until <= now` is forgotten. A commit has no
//! `now`; whether a key is still remembered is asked at the `put_time` of the put that bears it.
//! Until it is claimed, a message that has expired still counts by its state, and one whose wait is
//! over still counts as waiting.
//!
//! **Order.** By priority descending, then sequence; or by sequence alone. Sequence decides, not
//! the commit: a put that commits late under an early id stands early. A move keeps the sequence.
//!
//! **Groups.** The members of a group are its committed messages in one queue, by sequence. A
//! member is *free*, *in hand* (taken, claimed or leased) or *set back* (waiting or parked).
//! - While a member is in hand, no free member counts as ready: all are `group_held`.
//! - A free member behind (after) one that is set back is `group_held`. One before it is not: a
//!   message put with a delay does not delay what came earlier.
//! - All other free members are `ready`, by their own priorities; but only the first member of the
//!   group can be taken, and it stands in the queue's order at its own place. So arrival beats
//!   priority within a group, and a high priority behind a low one does not pull the group forward.
//! - While everything in hand is in hand of one owner, that owner alone may take the first free
//!   member, unless that is behind one set back. One take gives at most one member.
//! - A first member that a take passes over (expired, suspect) is not stepped over: its group waits
//!   until it has been claimed or taken.
//! - Claims, `take_leased` and `take_any` heed no group; what they take is in hand like any other.
//!
//! **Suspects.** A message with interruptions. While one is in hand of an owner, by whatever call,
//! `take` with `skip_suspects` unset gives no other; with it, none at all. The other calls do not
//! care.
//!
//! **Due.** A message not in hand of an owner is due at the earlier of its expiry and its wait's
//! end; when leased, at the lease's end alone. A claim says `Expiry` when it has expired, else what
//! ended. Releasing it puts it back where it was, so it is due again.
//!
//! **Commit.** All of a unit is checked before any of it is applied, in this order: the fence, the
//! states read, the queues, the keys, the depths, the room.
//! - Queues named by puts and moves must exist before the unit or be made by it. A queue to delete
//!   must be empty before the unit, and its keys go with it; deleting what is not there does
//!   nothing.
//! - `max_depth` is compared with the messages of any state before the unit and the earlier puts of
//!   the unit. What the unit settles or moves does not matter.
//! - A repeat stores nothing and needs no room. Within one unit a repeat is answered with the
//!   unit's own first. Digests differ only when both are given. Where a taken key is a conflict, it
//!   is one whatever the digest.
//! - A put with a delay that is over at its put time (`due <= put_time`) has none.
//! - Each commit has the next number, also an empty one.

mod browsing;
mod contents;
mod due;
mod entry;
mod group;
mod laid_out;
mod order;
mod taking;
mod unit;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use bytes::Bytes;

use self::contents::Contents;
use self::entry::{Entry, Home};
use super::Counts;
use crate::message::{Body, Message, MessageId, Sequence};
use crate::names::QueueName;
use crate::quick_hash::QuickMap;
use crate::time::Timestamp;
use crate::unit_of_work::{LeaseToken, OwnerId, RecordKind, Revision, Wait};

pub use self::browsing::{Page, Place};
pub use self::laid_out::LaidOut;
pub use self::unit::Refused;

/// Bytes of task records that are kept whatever a unit says: a bound for a caller that never says.
pub const TASK_ROWS_MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// Forgotten keys removed by one claim, at most: bounds the time of the call.
const KEYS_FORGOTTEN_PER_CLAIM: usize = 1024;

/// A whole store as a value.
#[derive(Debug)]
pub struct Model {
    origin: u32,
    next: u64,
    commit: u64,
    max_bytes: u64,
    bytes: u64,
    queues: QuickMap<QueueName, Contents>,
    due: BTreeMap<(Timestamp, Sequence), QueueName>,
    leases: HashMap<LeaseToken, (QueueName, Sequence)>,
    key_ends: BTreeSet<(Timestamp, QueueName, String)>,
    states: BTreeMap<String, BTreeMap<String, (Bytes, Revision)>>,
    records: BTreeMap<(RecordKind, String), Bytes>,
    tasks: BTreeMap<u64, Bytes>,
    task_bytes: u64,
    suspects_in_hand: usize,
    /// Queues whose counts may differ from what was told: those that say so themselves.
    touched: Vec<QueueName>,
}

/// Which messages a take wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection<'a> {
    /// The next ones.
    Next,
    /// That one.
    Id(MessageId),
    /// The next ones with this correlation id.
    Correlation(&'a str),
}

/// What to take.
#[derive(Clone, Copy, Debug)]
pub struct Want<'a> {
    /// From which queue.
    pub queue: &'a QueueName,
    /// For whom.
    pub owner: OwnerId,
    /// Which.
    pub selection: Selection<'a>,
    /// At most so many.
    pub max: usize,
    /// By arrival alone.
    pub fifo: bool,
    /// Pass over suspects.
    pub skip_suspects: bool,
    /// The present.
    pub now: Timestamp,
}

/// The state of a committed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// May be taken.
    Ready,
    /// In hand of an owner.
    InUnit,
    /// Leased until then.
    Leased(Timestamp),
    /// Set back until then.
    Waiting(Wait, Timestamp),
    /// Held by another member of its group.
    GroupHeld,
    /// Set aside.
    Parked,
}

/// What is over for a claimed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Its wait.
    Wait(Wait),
    /// Its lease.
    Lease,
    /// Its life.
    Expiry,
}

/// A claimed message: where it is, what it is, what is over.
pub type Claimed = (QueueName, Message, Over);

/// What an idempotency key stands for: the first put's id and digest.
pub type KnownKey = (MessageId, Option<[u8; 32]>);

impl Model {
    /// An empty store. `origin` goes into every message id; `max_bytes` bounds the bodies of all
    /// messages.
    #[must_use]
    pub fn new(origin: u32, max_bytes: u64) -> Self {
        Self {
            origin,
            next: 1,
            commit: 0,
            max_bytes,
            bytes: 0,
            queues: QuickMap::default(),
            due: BTreeMap::new(),
            leases: HashMap::new(),
            key_ends: BTreeSet::new(),
            states: BTreeMap::new(),
            records: BTreeMap::new(),
            tasks: BTreeMap::new(),
            task_bytes: 0,
            suspects_in_hand: 0,
            touched: Vec::new(),
        }
    }

    /// The id of the next message.
    pub fn next_id(&mut self) -> MessageId {
        let sequence = Sequence(self.next);
        self.next += 1;
        MessageId {
            origin: self.origin,
            sequence,
        }
    }

    /// Whether a token stands for a message now, also one that an owner has taken.
    #[must_use]
    pub fn has_lease(&self, token: LeaseToken) -> bool {
        self.leases.contains_key(&token)
    }

    /// A message and its state.
    #[must_use]
    pub fn find(&self, queue: &QueueName, id: MessageId) -> Option<(&Message, State)> {
        let contents = self.queues.get(queue)?;
        let entry = contents.find(id)?;
        Some((&entry.message, contents.state(entry)))
    }

    /// The body of a message that is still there, in whatever queue. Asks every queue.
    #[must_use]
    pub fn body(&self, sequence: Sequence) -> Option<&Bytes> {
        let entry = self
            .queues
            .values()
            .find_map(|contents| contents.get(sequence))?;
        match &entry.message.body {
            Body::Whole(bytes) => Some(bytes),
            Body::Stored { .. } => unreachable!("the model is given whole bodies only"),
        }
    }

    /// The put time of the oldest ready message of at least `priority`: of each priority the first
    /// to arrive is looked at.
    #[must_use]
    pub fn oldest(&self, queue: &QueueName, priority: u8) -> Option<Timestamp> {
        self.queues.get(queue)?.oldest(priority)
    }

    /// What a key stands for, if it is remembered at `now`.
    #[must_use]
    pub fn key(&self, queue: &QueueName, key: &str, now: Timestamp) -> Option<KnownKey> {
        self.queues
            .get(queue)?
            .keys
            .get(key)
            .filter(|known| now < known.until)
            .map(|k| k.stands_for)
    }

    /// The present value of a state key.
    #[must_use]
    pub fn state(&self, namespace: &str, key: &str) -> Option<&(Bytes, Revision)> {
        self.states.get(namespace)?.get(key)
    }

    /// Up to `max` keys of a namespace after `after`, in order.
    pub fn state_keys<'a>(
        &'a self,
        namespace: &str,
        after: Option<&str>,
        max: usize,
    ) -> impl Iterator<Item = &'a str> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.states.get(namespace).into_iter();
        rows.flat_map(move |rows| rows.range::<str, _>((start, Bound::Unbounded)))
            .take(max)
            .map(|(key, _)| key.as_str())
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// Up to `max` task rows with ids below `before`, newest first.
    pub fn tasks(&self, before: Option<u64>, max: usize) -> impl Iterator<Item = (u64, &Bytes)> {
        let end = before.map_or(Bound::Unbounded, Bound::Excluded);
        self.tasks
            .range((Bound::Unbounded, end))
            .rev()
            .take(max)
            .map(|(id, row)| (*id, row))
    }

    /// Every definition row.
    pub fn records(&self) -> impl Iterator<Item = (RecordKind, &str, &Bytes)> {
        self.records
            .iter()
            .map(|((kind, name), row)| (*kind, name.as_str(), row))
    }

    /// Every queue, in no order.
    pub fn queues(&self) -> impl Iterator<Item = &QueueName> {
        self.queues.keys()
    }

    /// Counts of a queue, kept up with each change. `None` when there is no such queue.
    #[must_use]
    pub fn counts(&self, queue: &QueueName) -> Option<Counts> {
        self.queues.get(queue).map(|contents| contents.counts)
    }

    /// Counts of a queue from scratch, message by message. Takes time with the square of a group's
    /// size: a check.
    #[must_use]
    pub fn recount(&self, queue: &QueueName) -> Option<Counts> {
        self.queues.get(queue).map(Contents::recount)
    }

    /// Bytes of all bodies.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Commits so far.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.commit
    }

    /// How the counts of each queue differ from what was last told. Never a zero.
    pub fn drain_changes(&mut self) -> Vec<(QueueName, Counts)> {
        let mut changes = Vec::new();
        self.drain_changes_into(&mut changes);
        changes
    }

    /// The same with a list of the caller's, who may have room in it.
    pub fn drain_changes_into(&mut self, changes: &mut Vec<(QueueName, Counts)>) {
        for queue in self.touched.drain(..) {
            // A queue is deleted only when nothing is in it, so its last change was told before.
            if let Some(contents) = self.queues.get_mut(&queue) {
                contents.is_touched = false;
                let change = contents.take_untold();
                if !change.is_zero() {
                    changes.push((queue, change));
                }
            }
        }
    }

    /// Does what the end of a host and a new start do to a durable store: messages in hand are back
    /// where they were, and those that are not persistent are gone. Nobody is told; the counts
    /// start anew.
    pub fn restart(&mut self) {
        let queues: Vec<QueueName> = self.queues.keys().cloned().collect();
        for queue in queues {
            let all = self.contents(&queue).all();
            let all: Vec<_> = all
                .map(|entry| (entry.sequence(), entry.message.header.persistent))
                .collect();
            for (sequence, is_persistent) in all {
                if is_persistent {
                    self.hold(&queue, sequence, None);
                } else {
                    self.lift(&queue, sequence);
                }
            }
        }
        self.drain_changes();
    }

    fn contents(&mut self, queue: &QueueName) -> &mut Contents {
        self.queues
            .get_mut(queue)
            .expect("callers have looked the queue up")
    }

    /// Changes who has a message in hand, and everything that follows from it.
    fn hold(
        &mut self,
        queue: &QueueName,
        sequence: Sequence,
        holder: Option<OwnerId>,
    ) -> &Contents {
        let (before, after) = self.touch(queue).hold(sequence, holder);
        if before.due != after.due {
            if let Some(time) = before.due {
                self.due.remove(&(time, sequence));
            }
            if let Some(time) = after.due {
                self.due.insert((time, sequence), queue.clone());
            }
        }
        self.suspects_in_hand += usize::from(after.is_suspect_in_hand);
        self.suspects_in_hand -= usize::from(before.is_suspect_in_hand);
        self.contents(queue)
    }

    /// Takes a message out of its queue and of every index.
    fn lift(&mut self, queue: &QueueName, sequence: Sequence) -> Box<Entry> {
        let entry = self.touch(queue).remove(sequence);
        if let Some(time) = entry.due() {
            self.due.remove(&(time, sequence));
        }
        if let Home::Leased { token, .. } = entry.home
            && self
                .leases
                .get(&token)
                .is_some_and(|(_, leased)| *leased == sequence)
        {
            self.leases.remove(&token);
        }
        self.bytes -= entry.message.body.len();
        self.suspects_in_hand -= usize::from(entry.is_suspect_in_hand());
        entry
    }

    /// Puts a message into a queue and into every index.
    fn set_down(&mut self, queue: &QueueName, entry: Box<Entry>) {
        let sequence = entry.sequence();
        if let Some(time) = entry.due() {
            self.due.insert((time, sequence), queue.clone());
        }
        if let Home::Leased { token, .. } = entry.home {
            self.leases.insert(token, (queue.clone(), sequence));
        }
        self.bytes += entry.message.body.len();
        self.suspects_in_hand += usize::from(entry.is_suspect_in_hand());
        self.touch(queue).insert(entry);
    }

    /// A queue whose counts are about to change.
    fn touch(&mut self, queue: &QueueName) -> &mut Contents {
        let contents = self
            .queues
            .get_mut(queue)
            .expect("callers have looked the queue up");
        if !std::mem::replace(&mut contents.is_touched, true) {
            self.touched.push(queue.clone());
        }
        contents
    }
}
