//! Steps 10 to 66 for one queue: the shell around core's [`trigger::run`]. It gives the facts,
//! makes the session, has the task started, and writes down what must be durable.

use std::sync::Arc;

use bytes::Bytes;
use oncue_core::admission::Refusal;
use oncue_core::definition::TriggerType;
use oncue_core::names::{PluginName, QueueName};
use oncue_core::queue_table::QueueEntry;
use oncue_core::time::Timestamp;
use oncue_core::trigger::process::{Ask, End, Start};
use oncue_core::trigger::{self, Step, TaskId, Trace};
use oncue_core::unit_of_work::{RecordChange, RecordKind, Unit};
use oncue_store::Store;

use crate::main_loop::{Manager, Running};
use crate::status::HostEvent;
use crate::tasks::{ComponentVersion, TaskSession, TaskSpec};

/// Reasons to hold that are kept of one queue between two triggers, for traces.
const MAX_HELD: usize = 16;

impl Manager {
    /// Asks the rule for one queue and performs the trigger process if it fires.
    pub(crate) fn ask(&mut self, queue: &QueueName, now: Timestamp) {
        let Some(cell) = self.shared.cell(queue) else {
            return;
        };
        let Some(entry) = self.queues.get_mut(queue) else {
            return;
        };
        self.asked += 1;
        look_at_times(entry, self.shared.store.as_ref());
        if let Some(headroom) = &self.headroom {
            self.ledger.set_headroom(headroom());
        }
        let Self {
            shared,
            task_host,
            processes,
            plugins,
            ledger,
            host,
            notes,
            next_task,
            ..
        } = self;
        let ask = Ask {
            host,
            processes,
            now,
            task: *next_task,
        };
        let queue_attributes = Arc::clone(&entry.attributes);
        let mut begun: Option<Arc<TaskSession>> = None;
        let report = trigger::run(entry, ledger, &ask, |start: &Start<'_>| {
            let spec = TaskSpec {
                id: start.task,
                queue: queue.clone(),
                queue_attributes,
                process: start.message.process.clone(),
                attributes: Arc::clone(&start.process.attributes),
                component: version_of(plugins, start)?,
                trigger: start.message.clone(),
            };
            let session = TaskSession::new(Arc::clone(shared), Arc::clone(&cell), spec);
            if let Some(event) = notes.get(queue).and_then(|note| note.changed) {
                session.begun_by(event);
            }
            begun = Some(Arc::clone(&session));
            task_host.start(session).map_err(|error| error.to_string())
        });
        let trace = report.trace;
        if trace.has(Step::S58) {
            // Used up, whether or not a task came of it: an id never means two starts.
            self.next_task = TaskId(self.next_task.0 + 1);
        }
        if let (End::Held { .. }, Some(session)) = (&report.end, &begun) {
            session.abandon();
        }
        // A start of type first waits for the one under way, however many messages there are.
        let starting = entry.attributes.trigger == TriggerType::First;
        let heed = match &report.end {
            End::NextQueue { reason, .. } => reason.heeds_messages(starting),
            _ => true,
        };
        tracing::debug!(%queue, %trace, "asked");
        self.shared.heed_messages(&cell, heed);
        self.write_control(queue);
        self.after_asking(queue, report.end, trace, begun, now);
    }

    fn after_asking(
        &mut self,
        queue: &QueueName,
        end: End,
        trace: Trace,
        begun: Option<Arc<TaskSession>>,
        now: Timestamp,
    ) {
        let acted = trace.has(Step::S14);
        let (reason, until) = match end {
            End::Started { task, grant } => {
                self.started(queue, task, grant, trace, begun, now);
                (None, None)
            }
            End::NextQueue { reason, until } => (Some(reason.as_str()), until),
            End::AlreadyInProcess => (Some("already-in-process"), None),
            End::InsufficientResources(refusal) => {
                let reason = oncue_core::trigger::HoldReason::from(refusal);
                tracing::debug!(%queue, %reason, "insufficient resources");
                if !matches!(refusal, Refusal::Headroom { .. }) {
                    self.make_way(queue);
                }
                (Some(reason.as_str()), Some(now.after(self.sweep.period)))
            }
            End::Held {
                reason, retry_at, ..
            } => {
                // It is tried again every second; only what is new is worth a line.
                let known = self.queues.get(queue).and_then(|entry| entry.reason);
                if known != Some(reason.as_str()) {
                    tracing::info!(%queue, %reason, "a start is held");
                }
                (Some(reason.as_str()), Some(retry_at))
            }
        };
        if let Some(reason) = reason {
            self.counts.hold(reason);
        }
        if acted {
            self.notes.entry(queue.clone()).or_default().trace = trace;
        } else if let Some(note) = self.notes.get_mut(queue) {
            // The rule did not fire for it; a start that is held still waits since it came.
            note.changed = None;
        }
        if let Some(entry) = self.queues.get_mut(queue)
            && entry.reason != reason
        {
            entry.reason = reason;
            if let (Some(reason), Some(_)) = (reason, &self.shared.tracer) {
                let held = &mut self.notes.entry(queue.clone()).or_default().held;
                if held.len() < MAX_HELD {
                    held.push((reason, self.shared.trace_time()));
                }
            }
            self.shared.tell(|| HostEvent::Held {
                queue: queue.clone(),
                reason,
                time: now,
            });
        }
        if let Some(at) = until {
            self.set_timer(queue, at);
        }
    }

    fn started(
        &mut self,
        queue: &QueueName,
        task: TaskId,
        grant: oncue_core::admission::Grant,
        trace: Trace,
        begun: Option<Arc<TaskSession>>,
        now: Timestamp,
    ) {
        let Some(session) = begun else {
            self.ledger.give_back(grant);
            return;
        };
        self.triggers += 1;
        self.count_fired(queue);
        let note = self.notes.get_mut(queue);
        let taken = note.map(|note| (note.changed.take(), std::mem::take(&mut note.held)));
        let (event, held) = taken.unwrap_or_default();
        let event = event.map(|event| event.time);
        let start_latency = self.shared.now().since(event.unwrap_or(now));
        let process = &session.spec.process;
        self.shared.tell(|| HostEvent::TaskStarted {
            task,
            queue: queue.clone(),
            process: process.clone(),
            steps: trace.numbers(),
            time: now,
        });
        let running = Running {
            queue: queue.clone(),
            process: process.clone(),
            grant,
            session: Arc::downgrade(&session),
            trace,
            start_latency,
            kind: session.spec.queue_attributes.trigger.as_str(),
            held,
            removals: session.cell.removals(),
        };
        self.running.insert(task, running);
        // A second task may be due where max-tasks allows.
        self.ready.push(queue);
    }

    fn count_fired(&mut self, queue: &QueueName) {
        let entry = self.queues.get(queue);
        let place = match entry.map(|entry| entry.attributes.trigger) {
            Some(TriggerType::Every) => 1,
            Some(TriggerType::Depth) => 2,
            // One of type none fires never.
            _ => 0,
        };
        if let Some(count) = self.counts.fired.get_mut(place) {
            *count += 1;
        }
    }

    /// Makes a change of trigger control durable. Ordered before every commit of the task that it
    /// led to, since the store commits in order.
    pub(crate) fn write_control(&mut self, queue: &QueueName) {
        let Some(entry) = self.queues.get_mut(queue) else {
            return;
        };
        let Some(record) = entry.gate.take_control_change() else {
            return;
        };
        let value = serde_json::to_vec(&record).map(Bytes::from).ok();
        let change = RecordChange {
            kind: RecordKind::Control,
            name: queue.to_string(),
            value,
        };
        self.submit(
            Unit {
                records: vec![change],
                ..Unit::default()
            },
            None,
        );
    }
}

/// What the rule must know of the messages' times, where it looks at them.
fn look_at_times(entry: &mut QueueEntry, store: &dyn Store) {
    let attributes = &entry.attributes;
    if attributes.trigger == TriggerType::Depth && attributes.trigger_max_wait.is_some() {
        entry.oldest_counted = store.oldest(&entry.name, attributes.trigger_priority);
    }
    let counts = &entry.counts;
    let waits = counts.delayed + counts.retrying + counts.deferred + counts.leased > 0;
    entry.next_due = if waits { store.next_due() } else { None };
}

/// The version that a start runs, with the plugin it belongs to.
fn version_of(
    plugins: &std::collections::BTreeMap<PluginName, crate::reload::PluginUpdate>,
    start: &Start<'_>,
) -> Result<ComponentVersion, String> {
    plugins
        .values()
        .filter_map(|update| update.state.serving())
        .find(|version| version.digest == *start.version.digest)
        .cloned()
        .ok_or_else(|| format!("no plugin serves component {}", start.version.digest))
}
