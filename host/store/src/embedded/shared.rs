//! What the callers' threads, the committer and the guard share, and in which order they lock it.
//!
//! Lock order: engine, then index, then (alone) inbox or stop, then early (see `early.rs`). The
//! engine is locked for writing only while it is closed and opened again after a failed write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use oncue_core::message::Sequence;
use oncue_core::names::QueueName;
use oncue_core::unit_of_work::OwnerId;
use parking_lot::{Condvar, Mutex, RwLock};

use super::codec::MetaMarkRow;
use super::committer::Inbox;
use super::early::Early;
use super::engine::{Engine, unavailable};
use super::guard::{HighWater, Home};
use super::index::Index;
use super::layout::{self, Space};
use super::options::EmbeddedOptions;
use super::plan::{Batch, Effect, Progress};
use super::sealed::Numbers;
use crate::adaptive::AdaptiveMutex;
use crate::fail_point;
use crate::histogram::Histogram;
use crate::{StopReason, StoreError};

/// Shared by all threads of a store.
pub(super) struct Shared {
    pub(super) options: EmbeddedOptions,
    pub(super) home: Home,
    /// `None` while it could not be opened again, and after the end.
    pub(super) engine: RwLock<Option<Engine>>,
    pub(super) index: AdaptiveMutex<Index>,
    pub(super) numbers: Numbers,
    pub(super) inbox: AdaptiveMutex<Inbox>,
    /// Messages that tasks may begin on before they are durable.
    pub(super) early: AdaptiveMutex<Early>,
    /// Some queue is followed there.
    pub(super) follows: AtomicBool,
    /// A unit has come, or the store closes.
    pub(super) arrived: Condvar,
    /// The store closes.
    pub(super) ending: Condvar,
    stop: Mutex<Option<StopReason>>,
    pub(super) origin: u32,
    pub(super) next_sequence: AtomicU64,
    /// The first sequence of this opening of the store.
    pub(super) first_fresh: u64,
    pub(super) durable_commit: AtomicU64,
    /// No task row stands below it. The engine walks over rows that are gone, one by one: what asks
    /// for the last ones below an id must not come where very many were.
    pub(super) task_low: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) syncs: AtomicU64,
    pub(super) sync_times: Histogram,
    pub(super) volatile_bytes: AtomicU64,
    pub(super) rows_read: Arc<AtomicU64>,
}

impl Shared {
    #[expect(
        clippy::too_many_arguments,
        reason = "called once, where each of them has just been found"
    )]
    pub(super) fn new(
        options: EmbeddedOptions,
        home: Home,
        engine: Engine,
        index: Index,
        origin: u32,
        first_fresh: u64,
        progress: &Progress,
        rows_read: Arc<AtomicU64>,
    ) -> Self {
        Self {
            options,
            home,
            engine: RwLock::new(Some(engine)),
            numbers: index.numbers.clone(),
            index: AdaptiveMutex::new(index),
            inbox: AdaptiveMutex::new(Inbox::default()),
            early: AdaptiveMutex::default(),
            follows: AtomicBool::new(false),
            arrived: Condvar::new(),
            ending: Condvar::new(),
            stop: Mutex::new(None),
            origin,
            next_sequence: AtomicU64::new(first_fresh),
            first_fresh,
            durable_commit: AtomicU64::new(progress.commit),
            task_low: AtomicU64::new(progress.task_low),
            commits: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            sync_times: Histogram::default(),
            volatile_bytes: AtomicU64::new(0),
            rows_read,
        }
    }

    pub(super) fn stop_reason(&self) -> Option<StopReason> {
        *self.stop.lock()
    }

    /// The store no longer writes (or, when full, no longer takes puts). A worse reason is not
    /// replaced by a better.
    pub(super) fn stop(&self, why: StopReason) {
        {
            let mut stop = self.stop.lock();
            let is_final = *stop == Some(StopReason::Closed)
                || (*stop == Some(StopReason::SyncFailed) && why == StopReason::Full);
            if *stop == Some(why) || is_final {
                return;
            }
            *stop = Some(why);
        }
        match why {
            StopReason::Full => self.home.drop_ballast(),
            StopReason::SyncFailed => self.home.mark_sync_failed(),
            StopReason::Closed => {}
        }
        self.tell_stopped(Some(why));
    }

    /// There is room again.
    pub(super) fn resume(&self) {
        {
            let mut stop = self.stop.lock();
            if *stop != Some(StopReason::Full) {
                return;
            }
            *stop = None;
        }
        tracing::info!("the store has room again");
        self.tell_stopped(None);
    }

    fn tell_stopped(&self, why: Option<StopReason>) {
        let index = self.index.lock();
        if let Some(sink) = &index.sink {
            sink.stopped(why);
        }
    }

    /// Closes the engine and opens it again. Gives the last commit that it holds.
    pub(super) fn reopen(&self) -> Result<u64, StoreError> {
        let mut slot = self.engine.write();
        // Only one may be open: the old one ends first.
        *slot = None;
        if fail_point::hit(fail_point::REOPEN_FAIL) {
            return Err(StoreError::Unavailable("a fail point".to_owned()));
        }
        let path = self.home.engine_path();
        let engine = Engine::open(&path, self.options.cache_bytes, self.rows_read.clone())
            .map_err(|error| unavailable(&error))?;
        let view = engine.view();
        let mark = engine.get(&view, Space::Meta, layout::MARK_KEY)?;
        let mark: MetaMarkRow = match mark {
            Some(record) => record.decode(Space::Meta, layout::MARK_KEY)?,
            None => MetaMarkRow::default(),
        };
        self.index.lock().view = view;
        *slot = Some(engine);
        Ok(mark.commit)
    }

    /// Looks at the room on the disk, and stops or resumes puts by it.
    pub(super) fn look_at_disk(&self) {
        let Ok(free) = self.home.free_bytes() else {
            return;
        };
        match self.stop_reason() {
            None if self.home.is_full(free) => {
                tracing::error!(free, "the disk is nearly full: puts are refused");
                self.stop(StopReason::Full);
            }
            Some(StopReason::Full) if self.home.has_room(free) && self.engine.read().is_some() => {
                self.resume();
                self.home.make_ballast();
            }
            _ => {}
        }
    }

    /// Watches the disk and keeps the high-water file, until the store closes.
    ///
    /// `known` is what the file says when the store is opened: commits may be durable before this
    /// thread first runs, and they are to be written like those after.
    pub(super) fn guard(&self, known: HighWater) {
        let HighWater {
            commit: mut written,
            opening,
        } = known;
        let mut trouble = false;
        let mut inbox = self.inbox.lock();
        while !inbox.closing {
            self.ending
                .wait_for(&mut inbox, self.options.guard_interval);
            if inbox.closing {
                break;
            }
            drop(inbox);
            self.look_at_disk();
            let commit = self.durable_commit.load(Ordering::Acquire);
            if commit > written {
                match self.home.write_high_water(HighWater { commit, opening }) {
                    Ok(()) => {
                        written = commit;
                        trouble = false;
                    }
                    Err(error) if !trouble => {
                        trouble = true;
                        tracing::warn!(%error, "the high-water file cannot be written");
                    }
                    Err(_) => {}
                }
            }
            let is_closed = self.engine.read().is_none();
            inbox = self.inbox.lock();
            if is_closed {
                // The committer tries to open the engine again.
                inbox.poked = true;
                self.arrived.notify_one();
            }
        }
    }

    /// Gives one message back. What is durable waits for its turn while the engine is closed, until
    /// it is open again.
    pub(super) fn give_back(
        &self,
        engine: Option<&Engine>,
        index: &mut Index,
        owner: OwnerId,
        place: &(QueueName, Sequence),
    ) {
        let (queue, Sequence(sequence)) = place;
        let Some(engine) = engine else {
            if self.stop_reason() != Some(StopReason::Closed) {
                index.late.push((owner, place.clone()));
            }
            return;
        };
        let number = index.number(queue);
        let held = index.held.get(sequence).filter(|held| {
            held.owner == owner && !held.committing && Some(held.facts.queue) == number
        });
        if held.is_some() {
            index.let_go(engine, *sequence);
        } else if self.follows.load(Ordering::Acquire) {
            self.early.lock().release(owner, *sequence);
        }
    }

    /// Gives back what was to be while the engine was closed. The fate of the batch that was in
    /// doubt is decided.
    pub(super) fn give_back_late(&self, engine: &Engine) {
        let mut index = self.index.lock();
        for (owner, place) in std::mem::take(&mut index.late) {
            self.give_back(Some(engine), &mut index, owner, &place);
        }
        index.tell();
    }

    /// The next sequence. Never the same twice: each opening of the store has a range of its own.
    pub(super) fn next_sequence(&self) -> u64 {
        self.next_sequence.fetch_add(1, Ordering::Relaxed)
    }
}

impl Index {
    /// A commit that settles a message begins, or has come to nothing.
    pub(super) fn mark_committing(&mut self, sequence: u64, committing: bool) {
        if let Some(held) = self.held.get_mut(&sequence) {
            held.committing = committing;
        }
    }

    /// A batch has come to nothing: its messages stay with their owners.
    pub(super) fn unmark(&mut self, batch: &Batch) {
        for effect in &batch.effects {
            if let Effect::Settled { sequence, .. } = effect {
                self.mark_committing(*sequence, false);
            }
        }
    }

    /// Gives the messages of a batch back that is not applied and whose units were answered long
    /// ago: those who held them could not give them back while it was in doubt.
    pub(super) fn give_back(&mut self, engine: &Engine, batch: &Batch) {
        self.unmark(batch);
        for effect in &batch.effects {
            if let Effect::Settled { sequence, .. } = effect {
                self.let_go(engine, *sequence);
            }
        }
        self.tell();
    }
}
