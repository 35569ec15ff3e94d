//! Steps 10 to 68 in one place: ask the rule, reserve, look up, have the task started.
//!
//! [`run`] is called for one queue at one moment and leaves nothing half done: the pending counter
//! is settled and every grant is either in the answer or back in the ledger. It does not start the
//! task itself: the caller's closure does, between 64's decision and 66. [`finish`] is step 68.

use crate::admission::{Demand, Grant, Ledger, Refusal};
use crate::definition::QueueAttributes;
use crate::names::QueueName;
use crate::process_table::{ComponentVersion, ProcessEntry, ProcessTable};
use crate::queue_table::QueueEntry;
use crate::time::Timestamp;
use crate::trigger::TaskId;
use crate::trigger::gate::{Pending, TaskEnd};
use crate::trigger::hold::HoldReason;
use crate::trigger::message::{Application, TriggerMessage};
use crate::trigger::rule::{Verdict, evaluate};
use crate::trigger::step::{Step, Trace};

/// What holds for the whole host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostState {
    /// The queue manager's name.
    pub manager: String,
    /// An operator paused the host.
    pub paused: bool,
    /// The host is stopping.
    pub draining: bool,
    /// The store stopped writing.
    pub store_stopped: bool,
    /// What step 50 reserves for a queue to which nothing is bound.
    pub default_demand: Demand,
}

/// One question for one queue.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The host.
    pub host: &'a HostState,
    /// The process table.
    pub processes: &'a ProcessTable,
    /// The present time.
    pub now: Timestamp,
    /// Identity of the task, should one be started. Used up only when step 58 is passed.
    pub task: TaskId,
}

/// What the caller's closure starts (step 64).
#[derive(Clone, Debug)]
pub struct Start<'a> {
    /// Identity of the task.
    pub task: TaskId,
    /// What the task is told.
    pub message: TriggerMessage,
    /// The process definition.
    pub process: &'a ProcessEntry,
    /// The component version to run. The task keeps it to its end.
    pub version: &'a ComponentVersion,
}

/// How one question ended.
#[derive(Debug)]
pub enum End {
    /// Nothing is to be started (16).
    NextQueue {
        /// Why.
        reason: HoldReason,
        /// When time alone can change that.
        until: Option<Timestamp>,
    },
    /// A start is due and the resources are not there (52, also when an exchange was refused).
    InsufficientResources(Refusal),
    /// A second trigger process is running for the queue (56).
    AlreadyInProcess,
    /// The start was held at 60 or 62, or failed at 64.
    Held {
        /// Where.
        step: Step,
        /// Why.
        reason: HoldReason,
        /// When it is tried again without any event.
        retry_at: Timestamp,
    },
    /// The task is started. The grant goes back at [`finish`].
    Started {
        /// Which task.
        task: TaskId,
        /// What it holds of the ledger.
        grant: Grant,
    },
}

/// The path and the end of one question.
#[derive(Debug)]
pub struct Report {
    /// The steps passed, in order.
    pub trace: Trace,
    /// How it ended.
    pub end: End,
}

/// Asks the rule for one queue and, if it fires, performs the trigger process (steps 10 to 66).
///
/// After it the caller writes [`crate::trigger::Gate::take_control_change`] down, and asks again
/// after a start: a second task may be due where max-tasks allows.
pub fn run<S>(entry: &mut QueueEntry, ledger: &mut Ledger, ask: &Ask<'_>, start: S) -> Report
where
    S: FnOnce(&Start<'_>) -> Result<(), String>,
{
    let mut trace = Trace::default();
    entry.lapse_if_empty();
    trace.pass(Step::S10);
    let facts = entry.facts(ask.host, ask.processes);
    let verdict = evaluate(&facts, ask.now);
    let counted = facts.counted();
    let QueueEntry {
        name,
        attributes,
        gate,
        ..
    } = entry;
    if matches!(verdict, Verdict::Hold { .. }) && !gate.is_pending() {
        gate.stop_waiting();
        ledger.forget(name);
    }
    let pending = match gate.fire(&verdict, counted, ask.now) {
        Ok(pending) => pending,
        Err(reason) => {
            trace.pass(Step::S16);
            let until = match verdict {
                Verdict::Hold { until, .. } => until,
                Verdict::Fire(_) => None,
            };
            return Report {
                trace,
                end: End::NextQueue { reason, until },
            };
        }
    };
    trace.pass(Step::S12);
    let running = pending.running();
    if running >= attributes.max_tasks {
        trace.pass(Step::S16);
        ledger.forget(name);
        let reason = HoldReason::AtMaxTasks {
            running,
            max: attributes.max_tasks,
        };
        return Report {
            trace,
            end: End::NextQueue {
                reason,
                until: None,
            },
        };
    }
    trace.pass(Step::S14);
    let mut process = Process {
        name,
        attributes,
        ledger,
        ask,
        trace,
    };
    let end = process.perform(pending, start);
    Report {
        trace: process.trace,
        end,
    }
}

/// Step 68: the task has ended. Clears its indicator and returns its grant; the caller asks the
/// rule again, for this queue and for those that wait for resources.
pub fn finish(
    entry: &mut QueueEntry,
    ledger: &mut Ledger,
    task: TaskId,
    grant: Grant,
    end: &TaskEnd,
    now: Timestamp,
) -> Trace {
    let known = entry.gate.lower(task, end, &entry.attributes, now);
    debug_assert!(known, "task {task} ended without an indicator");
    ledger.give_back(grant);
    std::iter::once(Step::S68).collect()
}

/// The trigger process of one queue: what steps 50 to 68 work on.
struct Process<'a> {
    name: &'a QueueName,
    attributes: &'a QueueAttributes,
    ledger: &'a mut Ledger,
    ask: &'a Ask<'a>,
    trace: Trace,
}

/// Why a start ended after step 58.
enum Stop {
    Resources(Refusal),
    At(Step, HoldReason),
    StartFailed(String),
}

impl Process<'_> {
    fn perform<S>(&mut self, mut pending: Pending<'_>, start: S) -> End
    where
        S: FnOnce(&Start<'_>) -> Result<(), String>,
    {
        let Ask {
            processes,
            now,
            task,
            ..
        } = *self.ask;
        self.trace.pass(Step::S50);
        let bound = self
            .attributes
            .process
            .as_ref()
            .and_then(|name| processes.get(name));
        let demand = bound.map_or(self.ask.host.default_demand, ProcessEntry::demand);
        let grant = match self.ledger.reserve(self.name, demand, now) {
            Ok(grant) => grant,
            Err(refusal) => {
                self.trace.pass(Step::S52);
                self.wait_for_resources(&mut pending, refusal);
                return End::InsufficientResources(refusal);
            }
        };
        self.trace.pass(Step::S54);
        if pending.second_is_running(self.attributes.max_tasks) {
            self.trace.pass(Step::S56);
            self.ledger.give_back(grant);
            return End::AlreadyInProcess;
        }
        self.trace.pass(Step::S58);
        pending.raise(task);
        match self.look_up_and_start(grant, &pending, start) {
            Ok(grant) => {
                pending.started();
                self.trace.pass(Step::S66);
                pending.settle();
                End::Started { task, grant }
            }
            Err((grant, stop)) => self.stop(pending, grant, stop),
        }
    }

    /// Steps 60 to 64. The grant comes back on every path.
    fn look_up_and_start<S>(
        &mut self,
        grant: Grant,
        pending: &Pending<'_>,
        start: S,
    ) -> Result<Grant, (Grant, Stop)>
    where
        S: FnOnce(&Start<'_>) -> Result<(), String>,
    {
        let Ask {
            host,
            processes,
            now,
            task,
        } = *self.ask;
        self.trace.pass(Step::S60);
        let bound = self.attributes.process.as_ref();
        let (name, process) = match processes.bound(bound) {
            Ok(found) => found,
            Err(reason) => return Err((grant, Stop::At(Step::S60, reason))),
        };
        self.trace.pass(Step::S62);
        let version = match process.version(name) {
            Ok(version) => version,
            Err(reason) => return Err((grant, Stop::At(Step::S62, reason))),
        };
        let grant = if version.demand == grant.demand() {
            grant
        } else {
            let exchanged = self.ledger.exchange(self.name, grant, version.demand, now);
            exchanged.map_err(|(grant, refusal)| (grant, Stop::Resources(refusal)))?
        };
        self.trace.pass(Step::S64);
        let application = Application {
            process: name,
            attributes: &process.attributes,
            digest: &version.digest,
        };
        let message = TriggerMessage::complete(
            pending.record(),
            &host.manager,
            self.name,
            self.attributes,
            application,
        );
        match start(&Start {
            task,
            message,
            process,
            version,
        }) {
            Ok(()) => Ok(grant),
            Err(why) => Err((grant, Stop::StartFailed(why))),
        }
    }

    /// A stop after step 58 passes 66 and 68 at once.
    fn stop(&mut self, mut pending: Pending<'_>, grant: Grant, stop: Stop) -> End {
        let Ask { now, task, .. } = *self.ask;
        let refire = self.attributes.refire_interval;
        let refusal = match stop {
            Stop::Resources(refusal) => {
                self.trace.pass(Step::S52);
                self.wait_for_resources(&mut pending, refusal);
                Some(refusal)
            }
            Stop::At(step, reason) => {
                pending.hold(step, reason, refire, now);
                None
            }
            Stop::StartFailed(why) => {
                pending.start_failed(why, self.attributes.backoff, now);
                None
            }
        };
        self.trace.pass(Step::S66);
        self.trace.pass(Step::S68);
        pending.clear(task);
        self.ledger.give_back(grant);
        let held = pending.held().cloned();
        pending.settle();
        match (refusal, held) {
            (Some(refusal), _) => End::InsufficientResources(refusal),
            (None, Some(held)) => End::Held {
                step: held.step,
                reason: held.reason,
                retry_at: held.retry_at,
            },
            (None, None) => unreachable!("a stop without a refusal is a hold"),
        }
    }

    fn wait_for_resources(&self, pending: &mut Pending<'_>, refusal: Refusal) {
        let refire = self.attributes.refire_interval;
        pending.hold(Step::S52, refusal.into(), refire, self.ask.now);
    }
}

#[cfg(test)]
mod tests;
