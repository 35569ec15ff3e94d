//! One queue as everybody sees it: its attributes, its gets that wait, and the changes of its
//! counts that the loop has not taken yet.
//!
//! Nothing here decides. When a cell is put on the ready ring, [`super::Shared`] says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use oncue_core::backout::UnitLimit;
use oncue_core::definition::QueueAttributes;
use oncue_core::message::Sequence;
use oncue_core::names::QueueName;
use oncue_core::queue::{Counts, SparseCounts};
use oncue_core::time::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// One queue as everybody sees it.
#[derive(Debug)]
pub struct QueueCell {
    /// Its name.
    pub name: QueueName,
    /// Its attributes now.
    pub attributes: ArcSwap<QueueAttributes>,
    /// Unselective outside gets that wait now.
    pub waiting_inputs: AtomicU32,
    /// When the last of them ended, in milliseconds since the epoch; 0 for never.
    pub last_input_closed: AtomicU64,
    /// Told when messages became ready.
    pub arrivals: Notify,
    /// Limits units to one message while members of a failed unit of several are unsettled.
    unit_limit: Mutex<UnitLimit>,
    /// Whether it does. Every unit asks, and none has to wait for another to know.
    limited: AtomicBool,
    /// State conflicts in a row of this queue's trigger-style units.
    pub conflicts: AtomicU32,
    pub(super) moving: Box<Moving>,
    /// The queue was deleted. One that is defined again under its name has another cell.
    pub(super) gone: AtomicBool,
    /// The loop has found it idle, and nothing has been heard of it since: a sweep passes over it.
    /// Only the loop writes it.
    quiet: AtomicBool,
    /// What the rule said last could be changed by messages that become ready. Kept by the loop.
    pub(super) heeds_messages: AtomicBool,
    /// A task waits for the next message ([`crate::tasks::linger`]).
    pub(crate) lingers: AtomicBool,
    /// Tasks that wait beside it.
    pub(crate) beside: AtomicU32,
    /// Tasks at hand ([`crate::tasks::at_hand`]).
    pub(crate) at_hand: AtomicU32,
    /// Messages were left to them since one of them took some.
    pub(crate) left: AtomicBool,
    /// Tasks that wait and are to be told of puts that are not yet durable.
    pub(crate) early_waits: AtomicU32,
    /// A put was refused for want of room, and the loop has not seen it yet.
    pub(super) refused: AtomicBool,
}

/// What moves with each message, in memory of its own: who asks for the rest need not
/// wait for another core that changes it.
#[derive(Debug, Default)]
pub(super) struct Moving {
    pub(super) depth: AtomicI64,
    /// Committed messages that can be taken now.
    pub(super) ready: AtomicI64,
    pub(super) delta: Mutex<SparseCounts>,
    /// One of [`CLEAN`], [`WAITS`], [`WANTED`].
    pub(super) dirty: AtomicU8,
    /// Commits that took messages off the queue for good.
    pub(super) removals: AtomicU64,
    /// Messages that applications and handlers put.
    puts: AtomicU64,
    /// When the change came that is not yet taken, in milliseconds since the epoch; 0 for none.
    pub(super) marked: AtomicU64,
    /// The same by [`crate::metrics::Metrics::micros`], which no one sets.
    pub(super) marked_micros: AtomicU64,
}

/// A point in time by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// By the manager's, which people set and tests move.
    pub(crate) time: Timestamp,
    /// By [`crate::metrics::Metrics::micros`], for what is measured.
    pub(crate) micros: u64,
}

/// Not on the ready ring.
pub(super) const CLEAN: u8 = 0;
/// On the ring; the next turn is early enough.
pub(super) const WAITS: u8 = 1;
/// On the ring, and a turn is wanted for it.
pub(super) const WANTED: u8 = 2;

impl QueueCell {
    /// A cell for a queue with these messages on it.
    #[must_use]
    pub fn new(name: QueueName, attributes: Arc<QueueAttributes>, counts: &Counts) -> Arc<Self> {
        Arc::new(Self {
            name,
            attributes: ArcSwap::new(attributes),
            waiting_inputs: AtomicU32::new(0),
            last_input_closed: AtomicU64::new(0),
            arrivals: Notify::new(),
            unit_limit: Mutex::new(UnitLimit::default()),
            limited: AtomicBool::new(false),
            conflicts: AtomicU32::new(0),
            moving: Box::new(Moving {
                depth: AtomicI64::new(counts.depth()),
                ready: AtomicI64::new(counts.ready.iter().sum()),
                ..Moving::default()
            }),
            gone: AtomicBool::new(false),
            quiet: AtomicBool::new(false),
            heeds_messages: AtomicBool::new(true),
            lingers: AtomicBool::new(false),
            beside: AtomicU32::new(0),
            at_hand: AtomicU32::new(0),
            left: AtomicBool::new(false),
            early_waits: AtomicU32::new(0),
            refused: AtomicBool::new(false),
        })
    }

    /// All committed messages.
    #[must_use]
    pub fn depth(&self) -> u64 {
        u64::try_from(self.moving.depth.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Committed messages that can be taken now.
    #[must_use]
    pub(crate) fn ready(&self) -> i64 {
        self.moving.ready.load(Ordering::SeqCst)
    }

    /// Takes the change that has gathered. The dirty bit falls first, so a change that comes
    /// meanwhile puts the queue on the ring again.
    pub fn take_delta(&self) -> Counts {
        self.moving.dirty.store(CLEAN, Ordering::SeqCst);
        self.quiet.store(false, Ordering::Relaxed);
        self.moving.delta.lock().take()
    }

    /// The loop has found the queue idle: sweeps pass over it until something is heard of it, and
    /// the memory that changes took is given back.
    pub(crate) fn rest(&self) {
        self.moving.delta.lock().trim();
        self.quiet.store(true, Ordering::Relaxed);
    }

    /// Nothing has been heard of the queue since it was found idle. The dirty bit is set with every
    /// change, so a change whose event was lost shows here all the same.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed) && self.moving.dirty.load(Ordering::SeqCst) == CLEAN
    }

    /// The queue was deleted.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    /// When the change came that [`QueueCell::take_delta`] has just taken; once.
    pub(crate) fn take_marked(&self) -> Option<Moment> {
        let micros = self.moving.marked_micros.load(Ordering::Relaxed);
        let marked = self.moving.marked.swap(0, Ordering::Relaxed);
        (marked > 0).then_some(Moment {
            time: Timestamp(marked),
            micros,
        })
    }

    /// Commits so far that took messages off the queue for good: whether others got something done
    /// meanwhile.
    #[must_use]
    pub(crate) fn removals(&self) -> u64 {
        self.moving.removals.load(Ordering::Relaxed)
    }

    /// A put was refused for want of room since [`QueueCell::take_refused`].
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// The same, once.
    pub(crate) fn take_refused(&self) -> bool {
        self.is_refused() && self.refused.swap(false, Ordering::Relaxed)
    }

    /// Notes messages that were put.
    pub(crate) fn came(&self, messages: u64) {
        self.moving.puts.fetch_add(messages, Ordering::Relaxed);
    }

    /// Messages that applications and handlers put since the host started.
    #[must_use]
    pub fn puts(&self) -> u64 {
        self.moving.puts.load(Ordering::Relaxed)
    }

    /// Units of this queue are limited to one message.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.limited.load(Ordering::Acquire)
    }

    /// Members of a failed unit of several: not yet given back, so that whoever takes one of them
    /// finds the limit.
    pub(crate) fn failed_together(&self, members: impl IntoIterator<Item = Sequence>) {
        self.limit(|limit| limit.failed(members));
    }

    /// Messages were settled: what their failed units limited is over.
    pub(crate) fn settled(&self, messages: impl IntoIterator<Item = Sequence>) {
        if self.is_limited() {
            self.limit(|limit| messages.into_iter().for_each(|one| limit.settled(one)));
        }
    }

    /// The queue was cleared: nothing limits units any more.
    pub(crate) fn lift_limit(&self) {
        if self.is_limited() {
            self.limit(UnitLimit::clear);
        }
    }

    fn limit(&self, change: impl FnOnce(&mut UnitLimit)) {
        let mut limit = self.unit_limit.lock();
        change(&mut limit);
        let is_limited = limit.messages(2) == 1;
        self.limited.store(is_limited, Ordering::Release);
    }
}
