//! The message style: the manager drains the queue on the handler's behalf. Get one, call, settle,
//! commit; in batches, one savepoint around each call and one durable write for all.
//!
//! Where the store allows it ([`super::pipeline`]) the next message is called while the last units
//! wait for their sync, and some are fetched ahead. A unit that did more than handle its message
//! and put others is awaited before the next call, and so is everything after a failed call.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use oncue_core::definition::TriggerType;
use oncue_core::message::Message;
use oncue_core::outcome::{CallEnd, Outcome};
use oncue_core::time::Millis;
use oncue_core::unit_of_work::Disposition;
use oncue_store::{CommitError, Select};

use super::at_hand::give_way;
use super::linger::Waited;
use super::open_unit::Savepoint;
use super::port::PortError;
use super::seen::Seen;
use super::session::TaskSession;
use super::settle::is_blamed;
use super::{CallReport, Delivered, Handler};

/// Messages of one fetch, at most.
const FETCH_MAX: usize = 16;

/// How long the messages of one fetch should take, in milliseconds: so long other tasks of the
/// queue are kept from them.
const FETCH_MILLIS: Millis = 1;

/// How often in a row a unit runs again because other tasks filled a queue before it. A full queue
/// is then told to the handler; only a race can refuse the unit once more.
const FULL_AGAIN_MAX: u32 = 8;

/// What the drain does next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Another unit.
    Go,
    /// The same messages once more: their unit was undone, uncharged.
    Again,
    /// No message is there: the task waits a moment for the next, or ends.
    Empty,
    /// The task ends.
    End,
}

/// Drains the session's queue through `handler` until it is empty or the task should end. The
/// caller then finishes the session.
pub async fn drain<H: Handler>(session: &Arc<TaskSession>, handler: &mut H) {
    session.at_hand_in(pin!(work_off(session, handler))).await;
}

async fn work_off<H: Handler>(session: &Arc<TaskSession>, handler: &mut H) {
    let mut drain = Drain {
        session,
        handler,
        // One start of `every` takes one message: its count of starts owed is the count of
        // messages.
        single: session.spec.queue_attributes.trigger == TriggerType::Every,
        serial: false,
        full: 0,
        waited: Waited::default(),
        pace: Pace::default(),
    };
    loop {
        match drain.step().await {
            Next::Again => {}
            Next::Go if !drain.single => {}
            Next::Empty if drain.another_comes().await => {}
            Next::Go | Next::Empty | Next::End => break,
        }
    }
    session.give_back_fetched();
    if let Err(error) = session.caught_up().await {
        // What was refused is back, and the rule is asked about it.
        drain.refused(error);
    }
}

/// How many messages to fetch at once: twice as many as came the last time when those took no
/// longer than they should, else half as many.
#[derive(Default)]
struct Pace {
    came: usize,
    /// When they were fetched, by [`Clock::ran`](crate::clock::Clock::ran).
    began: Millis,
}

impl Pace {
    fn fetch(&mut self, session: &TaskSession) -> usize {
        let ran = session.shared.clock.ran();
        let took = ran.saturating_sub(std::mem::replace(&mut self.began, ran));
        let most = if took <= FETCH_MILLIS {
            self.came * 2
        } else {
            self.came / 2
        };
        most.clamp(1, FETCH_MAX).min(share(session))
    }
}

/// What one task may fetch of its queue, so that something is left for the others. All that is
/// there when nothing is durable yet: others look for that only while they run.
fn share(session: &TaskSession) -> usize {
    let depth = session.cell.depth();
    if depth == 0 {
        return usize::MAX;
    }
    let tasks = u64::from(session.spec.queue_attributes.max_tasks);
    usize::try_from(depth.div_ceil(tasks.max(1))).unwrap_or(usize::MAX)
}

/// A drain in progress.
struct Drain<'a, H> {
    session: &'a Arc<TaskSession>,
    handler: &'a mut H,
    /// It ends after one unit.
    single: bool,
    /// The next unit begins with nothing under way and is awaited: the last chain was refused for
    /// what it may have done to itself.
    serial: bool,
    /// Refusals in a row because a queue was full.
    full: u32,
    waited: Waited,
    pace: Pace,
}

/// How the calls of one unit ended.
#[derive(Default)]
struct Calls {
    /// One of them did not end well.
    failed: bool,
    /// The task ends after this unit.
    ended: bool,
}

impl<H: Handler> Drain<'_, H> {
    async fn step(&mut self) -> Next {
        let session = self.session;
        if session.should_end() {
            session.first_get_answered();
            return Next::End;
        }
        let conflicts = session.progress.lock().conflicts;
        session.run_alone_after(conflicts).await;
        let one_by_one = self.single || self.serial || conflicts > 0;
        let batch = if one_by_one || session.cell.is_limited() {
            1
        } else {
            session.spec.attributes.batch as usize
        };
        match self.fetch(batch, one_by_one).await {
            Ok(true) => {}
            Ok(false) => return self.nothing_there().await,
            Err(error) => {
                let mut progress = session.progress.lock();
                progress.fail(None, Outcome::Released, error.to_string(), None);
                return Next::End;
            }
        }
        let count = self.begin(batch);
        if count == 0 {
            return Next::Again;
        }
        match self.call_all(count).await {
            Ok(calls) => self.end_unit(count, &calls, one_by_one).await,
            Err(error) => self.refused(error),
        }
    }

    /// True when a message is there, from the last fetch or a new one.
    async fn fetch(&mut self, batch: usize, one_by_one: bool) -> Result<bool, PortError> {
        let session = self.session;
        if !session.cell.attributes.load().get {
            session.give_back_fetched();
            session.first_get_answered();
            return Ok(false);
        }
        let fetched = session.count_fetched();
        if fetched > 0 {
            session.look_at_what_is_left(fetched);
            return Ok(true);
        }
        let mut most = batch;
        if session.pipelines {
            // A task that never waits must let others of its worker run.
            session.stand_by(pin!(give_way())).await;
            if batch == 1 && !one_by_one && !session.cell.is_limited() {
                most = self.pace.fetch(session);
            }
        }
        let taken =
            session.take_of_what_is_left(|| match one_by_one || !session.may_begin_early() {
                true => session.take(session.owner(), &session.cell, Select::Next, most),
                false => session.take_early(most),
            });
        session.first_get_answered();
        let taken = taken?;
        self.pace.came = taken.len();
        session.fetched(taken);
        let came = self.pace.came > 0;
        if came {
            self.waited = Waited::default();
        }
        Ok(came)
    }

    /// Waits a moment for the next message; false when the task is to end.
    async fn another_comes(&mut self) -> bool {
        let patience = self.handler.patience();
        self.session.another_comes(patience, &mut self.waited).await
    }

    /// No message can be taken now: perhaps because those under way hold their groups.
    async fn nothing_there(&mut self) -> Next {
        let session = self.session;
        let answered = if self.single || !session.may_begin_early() {
            session.oldest_answered().await
        } else {
            let either = async {
                tokio::select! {
                    biased;
                    answered = session.oldest_answered() => Some(answered),
                    () = session.put_comes(&mut self.waited) => None,
                }
            };
            match session.stand_by(pin!(either)).await {
                Some(answered) => answered,
                None => return Next::Go,
            }
        };
        if !answered {
            return Next::Empty;
        }
        session.take_answers();
        self.after_answers().await
    }

    /// Puts the next fetched messages into the open unit; answers how many.
    fn begin(&self, batch: usize) -> usize {
        let session = self.session;
        let mut count = 0;
        while count < batch
            && let Some(message) = session.next_fetched()
        {
            let delivered = session.deliver_first(message);
            session.unit.lock().got(delivered, None);
            count += 1;
        }
        session.shared.metrics.handlers.got.add(count as u64);
        count
    }

    /// Calls the handler for each message of the unit. An error: the whole unit is undone, because
    /// one before it was.
    async fn call_all(&mut self, count: usize) -> Result<Calls, CommitError> {
        let mut calls = Calls::default();
        for index in 0..count {
            if index > 0 {
                self.session.look_at_what_is_left(count - index);
            }
            match self.one_message(index).await? {
                Settled::Well => continue,
                Settled::Failed => calls.failed = true,
                // The instance is gone and the rest of the batch has not been tried: it goes back
                // uncharged.
                Settled::Trapped => {
                    calls.failed = true;
                    break;
                }
                Settled::NotTried => {
                    calls.failed = true;
                    calls.ended = true;
                    break;
                }
            }
        }
        Ok(calls)
    }

    async fn end_unit(&mut self, count: usize, calls: &Calls, one_by_one: bool) -> Next {
        let session = self.session;
        let waits = calls.failed || one_by_one || !session.unit.lock().is_plain(count);
        if session.pipelines && !waits {
            session.submit_unit().await;
            session.take_answers();
            while session.is_pipeline_full() {
                session.oldest_answered().await;
                session.take_answers();
            }
            return self.after_answers().await;
        }
        if calls.failed {
            session.give_back_fetched();
        }
        let next = match session.commit_unit().await {
            Ok(()) => {
                self.serial = false;
                self.full = 0;
                Next::Go
            }
            Err(error) => self.refused(error),
        };
        if calls.ended { Next::End } else { next }
    }

    /// After answers were taken: one of them may have been a refusal.
    async fn after_answers(&mut self) -> Next {
        if !self.session.was_refused() {
            return Next::Go;
        }
        match self.session.caught_up().await {
            Ok(()) => Next::Go,
            Err(error) => self.refused(error),
        }
    }

    /// A unit was refused, and everything in hand is back.
    fn refused(&mut self, error: CommitError) -> Next {
        let session = self.session;
        let mut progress = session.progress.lock();
        match error {
            CommitError::Conflict(what) => {
                progress.conflicts += 1;
                tracing::debug!(
                    task = %session.spec.id, %what,
                    "state conflict: the unit runs again"
                );
                Next::Again
            }
            // The put saw a depth without what was under way. Next time it sees all of this task's,
            // and the handler is told; other tasks may be quicker once more.
            CommitError::QueueFull { .. } if self.full < FULL_AGAIN_MAX => {
                self.full += 1;
                self.serial = true;
                Next::Again
            }
            error => {
                progress.fail(None, Outcome::Released, error.to_string(), None);
                Next::End
            }
        }
    }

    async fn one_message(&mut self, index: usize) -> Result<Settled, CommitError> {
        let session = self.session;
        if session.shared.in_hand.is_full() {
            // What is under way has slots, too.
            session.caught_up().await?;
        }
        let Some((delivered, savepoint)) = put_in_hand(session, index) else {
            return Ok(Settled::NotTried);
        };
        let begun = Instant::now();
        session.call_begins(begun);
        let report = self.handler.call(&delivered).await;
        let took = begun.elapsed();
        session.call_took(took);
        session.called(&report, took);
        session.fuel.fetch_add(report.fuel, Ordering::Relaxed);
        if report.end == CallEnd::Ok {
            let mut unit = session.unit.lock();
            // What the handler itself got in this call is part of the unit that it says is done.
            let since = unit.savepoint_taken(&savepoint);
            for taken in unit.taken.iter_mut().skip(since) {
                taken.disposition = Some(Disposition::Remove);
            }
            let mut trace = unit.trace.take();
            if let Some(trace) = &mut trace {
                trace.end(session.trace_time(), Outcome::Committed, None, report.fuel);
            }
            if let Some(taken) = unit.taken.get_mut(index) {
                taken.disposition = Some(Disposition::Remove);
                taken.is_done = true;
                taken.trace = trace;
            }
            return Ok(Settled::Well);
        }
        // It failed after units that are not yet durable: only if they are does it count, and only
        // if its message is.
        session.caught_up().await?;
        if is_blamed(&report.end) {
            session.hand_is_durable().await?;
        }
        Ok(failed_call(session, &delivered, &savepoint, &report))
    }
}

enum Settled {
    Well,
    Failed,
    Trapped,
    NotTried,
}

/// Marks a message of the open unit as in hand; from here on the call can be undone alone.
fn put_in_hand(session: &TaskSession, index: usize) -> Option<(Arc<Delivered>, Savepoint)> {
    let mut unit = session.unit.lock();
    let taken = unit.taken.get_mut(index)?;
    let delivered = Arc::clone(&taken.delivered);
    let header = &delivered.message.header;
    taken.in_hand = session.shared.in_hand.mark(&delivered.queue, header.id);
    unit.hop = header.hop_count;
    unit.input = Some(header.id);
    unit.requests = 0;
    unit.seen = Seen::new(!unit.writes.is_empty());
    unit.trace = session.trace_of(&delivered);
    let savepoint = unit.savepoint();
    Some((delivered, savepoint))
}

/// Undoes what a failed call did, and decides what becomes of its message.
fn failed_call(
    session: &TaskSession,
    delivered: &Arc<Delivered>,
    savepoint: &Savepoint,
    report: &CallReport,
) -> Settled {
    session.keep_failure(report, Some((delivered, savepoint)));
    let (extra, owner, mut trace) = {
        let mut unit = session.unit.lock();
        (unit.roll_back(savepoint), unit.owner, unit.trace.take())
    };
    if let Some(trace) = &mut trace {
        session.trace_failed(trace, report);
    }
    for taken in &extra {
        session.shared.in_hand.clear(taken.in_hand);
    }
    let places: Vec<_> = extra.iter().map(|taken| taken.place()).collect();
    if !places.is_empty() {
        session.shared.store.release(owner, &places);
    }
    if !is_blamed(&report.end) {
        let detail = super::settle::detail(&report.end);
        let outcome = session.outcome(&report.end);
        session.progress.lock().fail(None, outcome, detail, None);
        return Settled::NotTried;
    }
    session.note_failure(delivered, &report.end);
    let disposition = session.after_failure(std::slice::from_ref(delivered), report);
    {
        let mut unit = session.unit.lock();
        unit.decide(delivered, disposition.into_iter().next().flatten());
        // Told with the failure's own commit.
        unit.keep_trace(delivered, trace);
    }
    match report.end {
        CallEnd::Stopped { .. } => Settled::Trapped,
        _ => Settled::Failed,
    }
}

impl TaskSession {
    /// A message as the drain hands it to its call. Message style asks of none whether the task
    /// had it before.
    fn deliver_first(&self, message: Message) -> Arc<Delivered> {
        let threshold = self.cell.attributes.load().backout_threshold;
        let failed = message.attempts.backout_count;
        Arc::new(Delivered {
            queue: self.spec.queue.clone(),
            attempts_left: threshold.saturating_sub(failed).max(1),
            message,
            fresh: true,
        })
    }
}
