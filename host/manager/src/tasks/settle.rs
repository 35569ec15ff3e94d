//! How an open unit of work ends: committed in one durable write, or undone with the blame where it
//! belongs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use oncue_core::backout::{self, Blame, Case, Culprit, Decision, Trouble};
use oncue_core::definition::Style;
use oncue_core::outcome::{CallEnd, Failure, Outcome};
use oncue_core::unit_of_work::{Disposition, TaskRow};
use oncue_store::CommitError;
use tokio::sync::OwnedRwLockReadGuard;

use super::session::TaskSession;
use super::{CallReport, Delivered};
use crate::traces::call::CallTrace;

/// State conflicts in a row after which a unit runs alone in its namespace.
const CONFLICTS_BEFORE_ALONE: u32 = 3;

impl TaskSession {
    /// Commits the open unit and waits until it, and what was submitted before it, is durable.
    /// Undecided messages go back uncharged. The session then has a new, empty unit.
    ///
    /// # Errors
    /// As the store's commit. Nothing is in hand then: everything is back, uncharged.
    pub(crate) async fn commit_unit(&self) -> Result<(), CommitError> {
        self.submit_unit().await;
        self.caught_up().await
    }

    /// After three state conflicts in a row the next unit runs alone: no other unit of its
    /// namespace that uses state commits before this one has ended.
    pub(crate) async fn run_alone_after(&self, conflicts: u32) {
        if conflicts >= CONFLICTS_BEFORE_ALONE && self.alone.lock().is_none() {
            let guard = self.shared.alone(self.namespace()).write_owned().await;
            *self.alone.lock() = Some(guard);
        }
    }

    /// Waits while another unit of the namespace runs alone.
    pub(crate) async fn turn_to_commit(&self) -> Option<OwnedRwLockReadGuard<()>> {
        let uses_state = {
            let unit = self.unit.lock();
            !(unit.reads.is_empty() && unit.writes.is_empty())
        };
        if !uses_state || self.alone.lock().is_some() {
            return None;
        }
        let lock = self.shared.known_alone(self.namespace())?;
        Some(lock.read_owned().await)
    }

    /// The record of a task that has failed, to be durable with the failure's own commit and with
    /// no later one.
    pub(crate) fn failure_row(&self) -> Option<TaskRow> {
        let mut progress = self.progress.lock();
        if !std::mem::take(&mut progress.unrecorded) {
            return None;
        }
        progress.outcome.filter(|outcome| outcome.is_failure())?;
        let mut record = progress.record(&self.spec, self.started);
        record.ended = Some(self.shared.now());
        record.cost.fuel = self.fuel.load(Ordering::Relaxed);
        record.cost.log_tail.clone_from(&progress.log_tail);
        let value = serde_json::to_vec(&record).ok()?;
        Some(TaskRow {
            id: self.spec.id.0,
            value: Bytes::from(value),
        })
    }

    /// What becomes of messages of one queue that failed together: each member's new place, `None`
    /// for a release.
    pub(crate) fn after_failure(
        &self,
        members: &[Arc<Delivered>],
        report: &CallReport,
    ) -> Vec<Option<Disposition>> {
        let none = || vec![None; members.len()];
        let Some(trouble) = Trouble::of(&report.end) else {
            return none();
        };
        self.progress.lock().log_tail.clone_from(&report.log_tail);
        let Some(first) = members.first() else {
            return none();
        };
        let Some(cell) = self.shared.cell(&first.queue) else {
            return none();
        };
        let attributes = cell.attributes.load_full();
        let culprit = Culprit {
            process: Some(self.spec.process.clone()),
            digest: Some(self.spec.component.digest.clone()),
            task: Some(self.spec.id),
            log_tail: Some(report.log_tail.clone()).filter(|tail| !tail.is_empty()),
        };
        let case = Case {
            queue: &first.queue,
            attributes: &attributes,
            attempts: first.message.attempts,
            culprit: &culprit,
            room: crate::dead_letters::room(&self.shared, &attributes),
            now: self.shared.now(),
            random: fastrand::u64(..),
        };
        let attempts: Vec<_> = members
            .iter()
            .map(|member| member.message.attempts)
            .collect();
        let decisions = backout::after_failed_unit(&case, &attempts, &trouble);
        for (member, decision) in members.iter().zip(&decisions) {
            if decision.is_parked() {
                self.shared
                    .alarm_parked(&member.queue, member.message.header.id);
            }
        }
        decisions
            .into_iter()
            .map(|decision| match decision {
                Decision::Release => None,
                Decision::Settle(disposition) => Some(disposition),
            })
            .collect()
    }

    /// The end of a call that failed, in its trace.
    pub(crate) fn trace_failed(&self, trace: &mut CallTrace, report: &CallReport) {
        let outcome = self.outcome(&report.end);
        let why = detail(&report.end);
        trace.end(self.trace_time(), outcome, Some(why), report.fuel);
    }

    /// Counts a call of the handler, for monitoring.
    pub(crate) fn called(&self, report: &CallReport, time: Duration) {
        let outcome = self.outcome(&report.end);
        self.shared.metrics.called(outcome, time);
    }

    /// The outcome of a call's end, as far as the session knows more than the call.
    pub(crate) fn outcome(&self, end: &CallEnd) -> Outcome {
        let cut_off = self.is_giving_way() || self.stop_requested();
        match end {
            CallEnd::HostFailed(_) if cut_off => Outcome::Cancelled,
            end => outcome(end),
        }
    }

    /// Notes in the task's record how an attempt on a message failed.
    pub(crate) fn note_failure(&self, delivered: &Delivered, end: &CallEnd) {
        let id = Some(delivered.message.header.id);
        self.progress
            .lock()
            .fail(id, outcome(end), detail(end), backtrace(end));
    }

    /// Undoes the open unit after a failure, with blame: one message is charged; of several none
    /// is, and they are tried one by one from now on. A `depth` start's unit is charged as a whole.
    pub(crate) async fn undo_unit(&self, report: &CallReport) {
        self.keep_failure(report, None);
        let taken: Vec<Arc<Delivered>> = {
            let mut unit = self.unit.lock();
            if let Some(trace) = &mut unit.trace {
                self.trace_failed(trace, report);
            }
            unit.puts.clear();
            unit.put_bytes = 0;
            unit.writes.clear();
            unit.reads.clear();
            // The answer to a request is no attempt's input: it goes back, whoever is charged.
            unit.taken
                .iter()
                .filter(|taken| !taken.is_reply)
                .map(|taken| Arc::clone(&taken.delivered))
                .collect()
        };
        let trigger = self.spec.queue_attributes.trigger;
        let blamed = is_blamed(&report.end) && !taken.is_empty();
        if !blamed || backout::blame(taken.len(), Style::Trigger, trigger) == Blame::Nobody {
            if blamed {
                // Those of other queues too: it may be one of them that makes the units fail.
                let sequences = taken.iter().map(|taken| taken.message.header.id.sequence);
                self.cell.failed_together(sequences);
            }
            let (outcome, detail) = (self.outcome(&report.end), detail(&report.end));
            self.progress
                .lock()
                .fail(None, outcome, detail, backtrace(&report.end));
            // Nothing is left to become durable.
            let trace = self.unit.lock().trace.take();
            if let Some(trace) = trace {
                self.tell_trace(*trace);
            }
            self.release_all();
            return;
        }
        for queue in queues_of(&taken) {
            let members: Vec<_> = taken
                .iter()
                .filter(|taken| taken.queue == queue)
                .cloned()
                .collect();
            let dispositions = self.after_failure(&members, report);
            for (member, disposition) in members.iter().zip(dispositions) {
                self.note_failure(member, &report.end);
                self.unit.lock().decide(member, disposition);
            }
        }
        if let Err(error) = self.commit_unit().await {
            tracing::warn!(task = %self.spec.id, %error, "a failed attempt could not be recorded");
        }
    }
}

/// The queues that messages were taken from, each once.
fn queues_of(taken: &[Arc<Delivered>]) -> Vec<oncue_core::names::QueueName> {
    let mut queues: Vec<_> = taken.iter().map(|taken| taken.queue.clone()).collect();
    queues.sort();
    queues.dedup();
    queues
}

/// True when the guest is to blame.
pub(crate) fn is_blamed(end: &CallEnd) -> bool {
    match end {
        CallEnd::Ok | CallEnd::HostFailed(_) => false,
        CallEnd::Failed(_) => true,
        CallEnd::Stopped { outcome, .. } => outcome.is_charged(),
    }
}

/// The outcome of a call's end.
pub(crate) fn outcome(end: &CallEnd) -> Outcome {
    match end {
        CallEnd::Ok => Outcome::Committed,
        CallEnd::Failed(Failure::Retry { .. }) => Outcome::Retry,
        CallEnd::Failed(Failure::Reject(_)) => Outcome::Rejected,
        CallEnd::Failed(Failure::Defer(_)) => Outcome::Deferred,
        CallEnd::Stopped { outcome, .. } => *outcome,
        CallEnd::HostFailed(_) => Outcome::Released,
    }
}

/// A call's end in a sentence.
pub(crate) fn detail(end: &CallEnd) -> String {
    match end {
        CallEnd::Ok => String::new(),
        CallEnd::Failed(Failure::Retry { reason, .. } | Failure::Reject(reason)) => reason.clone(),
        CallEnd::Failed(Failure::Defer(after)) => format!("deferred for {after} ms"),
        CallEnd::Stopped { detail, .. } => detail.clone(),
        CallEnd::HostFailed(why) => why.clone(),
    }
}

fn backtrace(end: &CallEnd) -> Option<String> {
    match end {
        CallEnd::Stopped { backtrace, .. } => backtrace.clone(),
        _ => None,
    }
}
