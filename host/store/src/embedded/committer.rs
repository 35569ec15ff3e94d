//! The one thread that writes: takes all units that wait, makes one batch of them, syncs once,
//! applies, answers.
//!
//! No delay is needed to form batches: while one batch is written the next one gathers. A batch is
//! planned against memory, so no engine transaction is needed; see `plan.rs`.
//!
//! When a write fails, the engine is closed and opened again at once, in this process: that is how
//! it shows whether the batch is in the journal. If it is, it is durable (opening syncs the
//! journal) and is applied and answered; if not, nothing of it is there and the answer is
//! [`CommitError::Full`]. When a *sync* fails nothing is tried again: the kernel may have dropped
//! the pages while the page cache still shows them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use oncue_core::quick_hash::QuickMap;
use oncue_core::unit_of_work::{OwnerId, Unit};
use parking_lot::MutexGuard;

use super::check::Room;
use super::early::Noted;
use super::engine::{Engine, WriteFault};
use super::index::Index;
use super::plan::{Progress, stopped};
use super::prepared::Prepared;
use super::sealed::Sealed;
use super::shared::Shared;
use crate::{Commit, CommitAnswer, CommitError, StopReason};

/// Units in one batch, at most.
pub(super) const BATCH_UNITS_MAX: usize = 4096;

/// Puts and settles that are planned before takes and releases get their turn, about a microsecond
/// each: whole units, so that a large one is planned alone.
const PLANNED_TOGETHER: usize = 16;

/// Bytes of bodies and values in one batch, about: a larger batch would delay everybody in it.
const BATCH_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Units that wait for the next batches: past so many, or past
/// [`super::EmbeddedOptions::waiting_bytes_max`], a unit that may be refused is. The others are
/// bounded by who brings them: a task has few units under way, and what they hold was in its memory
/// before.
const INBOX_UNITS_MAX: usize = 64 * 1024;

/// What a unit counts beside its bodies and values, in bytes.
const UNIT_BYTES: u64 = 256;

/// Units that wait for the committer.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) units: VecDeque<Waiting>,
    pub(super) bytes: u64,
    /// No unit comes any more; the committer ends when it has done what waits.
    pub(super) closing: bool,
    /// The engine is closed and may be opened again.
    pub(super) poked: bool,
    /// Units only gather, until the store closes.
    pub(super) paused: bool,
    /// Units were taken out of here whose fate nobody knows yet.
    pub(super) under_way: bool,
}

impl Inbox {
    /// A unit of the store's own, which nobody waits for.
    pub(super) fn push(&mut self, unit: Unit, noted: Vec<Noted>) {
        let (answer, _) = Commit::pending(&unit);
        let bytes = weight(&unit);
        self.bytes += bytes;
        self.units.push_back(Waiting {
            unit,
            answer,
            bytes,
            noted,
            sealed: Vec::new(),
            waited: false,
        });
    }

    /// Whether a unit of so many bytes that may be refused has to be. A large one passes alone.
    pub(super) fn refuses(&self, bytes: u64, bytes_max: u64) -> Option<CommitError> {
        let full = self.units.len() >= INBOX_UNITS_MAX
            || (!self.units.is_empty() && self.bytes.saturating_add(bytes) > bytes_max);
        full.then_some(CommitError::Busy {
            units: self.units.len(),
            units_max: INBOX_UNITS_MAX,
            bytes: self.bytes,
            bytes_max,
        })
    }
}

/// A unit that waits.
pub(super) struct Waiting {
    pub(super) unit: Unit,
    pub(super) answer: CommitAnswer,
    pub(super) bytes: u64,
    /// Its puts that tasks may begin on, or that hold up such.
    pub(super) noted: Vec<Noted>,
    /// Rows of its puts' bodies, if who submitted it has made them.
    pub(super) sealed: Vec<Option<Sealed>>,
    /// A batch went before it, so that who has its message in hand can settle it in the next.
    pub(super) waited: bool,
}

/// About how much memory a unit takes.
pub(super) fn weight(unit: &Unit) -> u64 {
    let puts = unit
        .puts
        .iter()
        .map(|put| put.body.len() as u64 + UNIT_BYTES)
        .sum::<u64>();
    let writes = unit.writes.iter().filter_map(|write| write.value.as_ref());
    let values = writes.chain(
        unit.records
            .iter()
            .filter_map(|change| change.value.as_ref()),
    );
    let values = values.map(|value| value.len() as u64).sum::<u64>();
    let settles = unit.settles.len() as u64;
    UNIT_BYTES + puts + values + settles.saturating_mul(UNIT_BYTES)
}

/// The committer.
pub(super) struct Committer {
    shared: Arc<Shared>,
    progress: Progress,
    /// The batch whose fate the next opening of the engine decides.
    in_doubt: Option<Prepared>,
    /// The last batch, of which the next one is made.
    last: Option<Prepared>,
}

impl Committer {
    pub(super) fn new(shared: Arc<Shared>, progress: Progress) -> Self {
        Self {
            shared,
            progress,
            in_doubt: None,
            last: None,
        }
    }

    /// Works until the store closes. Gives back what a clean end has to write.
    pub(super) fn run(mut self) -> Progress {
        // Changes places with what has gathered, so that neither grows anew for each batch.
        let mut units = VecDeque::new();
        while self.gather(&mut units) {
            self.process(&mut units);
            if units.capacity() > BATCH_UNITS_MAX {
                units = VecDeque::new();
            }
        }
        self.progress
    }

    /// Waits for units, and takes what fits into one batch; false when there are none any more.
    fn gather(&self, units: &mut VecDeque<Waiting>) -> bool {
        // Who was just answered, and workers with a message in hand, may wait for this core: what
        // they bring at once shares the next sync.
        std::thread::yield_now();
        let mut inbox = self.shared.inbox.lock();
        inbox.under_way = false;
        while (inbox.units.is_empty() || inbox.paused) && !inbox.poked {
            if inbox.closing {
                if inbox.units.is_empty() {
                    return false;
                }
                break;
            }
            self.shared.arrived.wait(&mut inbox);
        }
        inbox.poked = false;
        inbox.under_way = true;
        if inbox.units.len() <= BATCH_UNITS_MAX && inbox.bytes <= BATCH_BYTES_MAX {
            std::mem::swap(units, &mut inbox.units);
            inbox.bytes = 0;
            return true;
        }
        let mut bytes = 0_u64;
        while units.len() < BATCH_UNITS_MAX
            && bytes < BATCH_BYTES_MAX
            && let Some(waiting) = inbox.units.pop_front()
        {
            bytes += waiting.bytes;
            inbox.bytes = inbox.bytes.saturating_sub(waiting.bytes);
            units.push_back(waiting);
        }
        true
    }

    /// Does with all of them what can be done.
    fn process(&mut self, units: &mut VecDeque<Waiting>) {
        if let Some(StopReason::SyncFailed) = self.shared.stop_reason() {
            let why = "a sync failed; restart, so that what is on disk can be read back".to_owned();
            self.refuse(units, &CommitError::Stopped(why));
            return;
        }
        if !self.ensure_open() {
            self.refuse(units, &CommitError::Full);
            return;
        }
        let shared = self.shared.clone();
        let engine = shared.engine.read();
        let Some(open) = engine.as_ref() else {
            self.refuse(units, &CommitError::Full);
            return;
        };
        let Some(prepared) = self.plan(open, units) else {
            return;
        };
        if prepared.batch.is_durable() {
            match open.write(prepared.batch.changes()) {
                Ok(took) => self.shared.sync_times.record(took),
                Err(fault) => {
                    drop(engine);
                    self.write_failed(fault, prepared);
                    return;
                }
            }
        }
        self.finish(open, prepared);
    }

    /// Plans all units that can be applied; refuses the others.
    fn plan(&mut self, engine: &Engine, units: &mut VecDeque<Waiting>) -> Option<Prepared> {
        let room = Room {
            disk_full: self.shared.stop_reason() == Some(StopReason::Full),
            loose_bytes_max: self.shared.options.volatile_bytes_max,
            first_fresh: self.shared.first_fresh,
        };
        let progress = self.progress.clone();
        let mut prepared = match self.last.take() {
            Some(last) => last.again(progress),
            None => Prepared::new(progress),
        };
        let mut can_wait = self.shared.can_wait(units.make_contiguous()).into_iter();
        let mut next = VecDeque::new();
        let mut index = self.shared.index.lock();
        let mut together = 0;
        while let Some(mut waiting) = units.pop_front() {
            let its = waiting.unit.puts.len() + waiting.unit.settles.len();
            together += its;
            if together > PLANNED_TOGETHER {
                together = its;
                MutexGuard::unlocked(&mut index, || ());
            }
            let early = self.shared.early_holder(&waiting.noted);
            if can_wait.next() == Some(true) {
                waiting.waited = true;
                prepared.batch.keep_room(&index, &waiting.unit);
                next.push_back(waiting);
                continue;
            }
            if prepared.batch.must_come_before(&waiting.unit) {
                units.push_front(waiting);
                break;
            }
            self.plan_unit(engine, &mut index, &mut prepared, waiting, room, early);
        }
        drop(index);
        next.append(units);
        self.wait_for_the_next_batch(next);
        let mut index = self.shared.index.lock();
        let batch = &mut prepared.batch;
        batch.plan_deferred();
        let finished = batch
            .plan_forgetting(engine, &index)
            .and_then(|()| batch.finish(engine, &index));
        let Err(error) = finished else {
            return Some(prepared);
        };
        tracing::error!(%error, "a batch cannot be planned");
        index.unmark(batch);
        drop(index);
        self.shared.refuse_early(&prepared.noted);
        let error = stopped(error);
        for (answer, _) in prepared.answers {
            answer.send(Err(error.clone()));
        }
        None
    }

    /// Plans one unit, or refuses it. `early` has taken its one put already.
    fn plan_unit(
        &self,
        engine: &Engine,
        index: &mut Index,
        prepared: &mut Prepared,
        waiting: Waiting,
        room: Room,
        early: Option<OwnerId>,
    ) {
        let Prepared {
            batch,
            answers,
            noted: all_noted,
        } = prepared;
        let Waiting {
            unit,
            answer,
            noted,
            sealed,
            ..
        } = waiting;
        let settled: Vec<u64> = unit
            .settles
            .iter()
            .map(|settle| settle.sequence.0)
            .collect();
        let removed = batch.removed.len();
        let planned = batch.check(engine, index, &unit, room);
        match planned.and_then(|checked| batch.plan(engine, index, unit, checked, early, sealed)) {
            Ok(receipt) => {
                for sequence in settled {
                    index.mark_committing(sequence, true);
                }
                self.shared.mark_removed(batch.removed.get(removed..));
                answers.push((answer, receipt));
                all_noted.extend(noted);
            }
            // Cuts the unit's chain, so that later ones of it in this batch are refused too.
            Err(error) => {
                self.shared.refuse_early(&noted);
                answer.send(Err(error));
            }
        }
    }

    /// The next batch begins with these units.
    fn wait_for_the_next_batch(&self, units: VecDeque<Waiting>) {
        if units.is_empty() {
            return;
        }
        let mut inbox = self.shared.inbox.lock();
        for waiting in units.into_iter().rev() {
            inbox.bytes += waiting.bytes;
            inbox.units.push_front(waiting);
        }
    }

    fn refuse(&self, units: &mut VecDeque<Waiting>, error: &CommitError) {
        for waiting in units.drain(..) {
            self.shared.refuse_early(&waiting.noted);
            waiting.answer.send(Err(error.clone()));
        }
    }

    fn finish(&mut self, engine: &Engine, mut prepared: Prepared) {
        let Prepared {
            batch,
            answers,
            noted,
        } = &mut prepared;
        self.progress = batch.progress.clone();
        // Before memory shows the batch: it may bring a row below those before it.
        self.shared
            .task_low
            .store(self.progress.task_low, Ordering::Release);
        if batch.is_durable() {
            self.shared.syncs.fetch_add(1, Ordering::Relaxed);
            self.shared
                .durable_commit
                .store(self.progress.commit, Ordering::Release);
        }
        let mut index = self.shared.index.lock();
        // With the index locked: for whoever takes, they are in one place or in the other.
        let held = match noted.is_empty() {
            true => QuickMap::default(),
            false => self.shared.early.lock().applied(noted),
        };
        for (queue, _) in batch.names.iter().filter(|(_, number)| number.is_none()) {
            self.shared.early.lock().forget(queue);
        }
        index.apply(engine, batch, &held);
        self.shared
            .volatile_bytes
            .store(index.loose.bytes, Ordering::Relaxed);
        drop(index);
        self.shared.inbox.lock().under_way = false;
        self.shared
            .commits
            .fetch_add(answers.len() as u64, Ordering::Relaxed);
        for (answer, receipt) in answers.drain(..) {
            answer.send(Ok(receipt));
        }
        self.last = Some(prepared);
    }

    fn write_failed(&mut self, fault: WriteFault, in_doubt: Prepared) {
        match fault {
            WriteFault::Sync(error) => {
                tracing::error!(
                    ?error,
                    "a sync failed; the store stops writing until it is opened again"
                );
                self.shared.stop(StopReason::SyncFailed);
                let why = format!("a sync failed ({error})");
                self.shared.refuse_early(&in_doubt.noted);
                for (answer, _) in in_doubt.answers {
                    answer.send(Err(CommitError::Unknown(why.clone())));
                }
            }
            WriteFault::Write(error) => {
                tracing::error!(?error, "a write failed; the engine is opened again");
                self.shared.stop(StopReason::Full);
                self.in_doubt = Some(in_doubt);
                if !self.ensure_open()
                    && let Some(in_doubt) = &mut self.in_doubt
                {
                    let why = format!("a write failed ({error})");
                    for (answer, _) in in_doubt.answers.drain(..) {
                        answer.send(Err(CommitError::Unknown(why.clone())));
                    }
                }
            }
        }
    }

    /// Opens the engine again when a write failed before, and decides on the batch that was in
    /// doubt.
    fn ensure_open(&mut self) -> bool {
        if self.in_doubt.is_none() {
            return true;
        }
        let recovered = match self.shared.reopen() {
            Ok(commit) => commit,
            Err(error) => {
                tracing::warn!(%error, "the engine cannot be opened again yet");
                return false;
            }
        };
        let Some(prepared) = self.in_doubt.take() else {
            return true;
        };
        let shared = self.shared.clone();
        let engine = shared.engine.read();
        let Some(engine) = engine.as_ref() else {
            // Closed meanwhile: nothing is taken any more.
            return false;
        };
        if recovered == prepared.batch.progress.commit {
            self.finish(engine, prepared);
            shared.give_back_late(engine);
            return true;
        }
        let Prepared {
            batch,
            answers,
            noted,
        } = prepared;
        self.shared.refuse_early(&noted);
        if answers.is_empty() {
            shared.index.lock().give_back(engine, &batch);
        } else {
            shared.index.lock().unmark(&batch);
        }
        shared.give_back_late(engine);
        for (answer, _) in answers {
            answer.send(Err(CommitError::Full));
        }
        true
    }
}
