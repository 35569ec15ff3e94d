//! Step 68: a task has ended. Its grant goes back, the rule hears of it, its record is kept, and
//! who watches is told.

use bytes::Bytes;
use oncue_core::outcome::Outcome;
use oncue_core::time::Timestamp;
use oncue_core::trigger::{self, Step};
use oncue_core::unit_of_work::{TaskRow, Unit};

use crate::main_loop::Manager;
use crate::status::HostEvent;
use crate::tasks::record::{TaskEnd, TaskRecord};
use crate::traces::call::TriggerTrace;
use crate::traces::{Fired, Span, What};

impl Manager {
    /// Step 68.
    pub(crate) fn task_ended(&mut self, end: TaskEnd, now: Timestamp) {
        let TaskEnd {
            mut record,
            progressed,
            found_none,
            trigger,
        } = end;
        let Some(running) = self.running.remove(&record.id) else {
            return;
        };
        let outcome = record.outcome.unwrap_or(Outcome::NoProgress);
        self.waits.remove(&record.id);
        let mut gate_end = trigger::TaskEnd {
            // One that gave way to another queue must let it pass before it is tried again.
            progress: progressed && outcome != Outcome::Cancelled,
            ended_ok: !outcome.is_failure() && outcome != Outcome::StateConflict,
            start_failed: (outcome == Outcome::StartFailed)
                .then(|| record.detail.clone().unwrap_or_default()),
            found_nothing: false,
        };
        // What the task's last commit changed must be in the counts before the rule is asked again.
        let cell = self.shared.cell(&running.queue);
        if let Some(cell) = &cell {
            self.absorb(cell, now);
        }
        if found_none
            && outcome == Outcome::NoProgress
            && let Some(entry) = self.queues.get(&running.queue)
        {
            // Nothing counts, or others were quicker: then the queue as a whole goes on.
            let others_did = cell.is_some_and(|cell| cell.removals() != running.removals);
            gate_end.found_nothing = others_did || entry.counted() == 0;
        }
        match self.queues.get_mut(&running.queue) {
            Some(entry) => {
                trigger::finish(
                    entry,
                    &mut self.ledger,
                    record.id,
                    running.grant,
                    &gate_end,
                    now,
                );
            }
            None => self.ledger.give_back(running.grant),
        }
        self.write_control(&running.queue);
        self.ready.charge(&running.queue, record.cost.fuel);
        self.capacity_freed();
        self.ready.push(&running.queue);
        let mut trace = running.trace;
        trace.pass(Step::S68);
        record.steps = trace.numbers();
        record.start_latency = running.start_latency;
        if let Some(trigger) = trigger {
            record.trace = Some(trigger.context.trace.to_string());
            self.tell_trigger(trigger, &record, running.kind, running.held);
        }
        self.keep_record(record, outcome, now);
    }

    /// Tells of a trigger in the trace of the first message that it answered.
    fn tell_trigger(
        &self,
        trigger: TriggerTrace,
        record: &TaskRecord,
        kind: &'static str,
        held: Vec<(&'static str, u64)>,
    ) {
        let Some(tracer) = &self.shared.tracer else {
            return;
        };
        // What held it before there was anything to trigger for is another story.
        let held = held.into_iter().filter(|(_, at)| *at >= trigger.began);
        let held = held.collect();
        tracer.emit(Span {
            context: trigger.context,
            parent: Some(trigger.parent),
            state: trigger.state,
            began: trigger.began,
            ended: trigger.entered.max(trigger.began),
            what: What::Trigger(Box::new(Fired {
                queue: record.queue.clone(),
                process: record.process.clone(),
                task: record.id,
                kind,
                steps: record.steps.clone(),
                held,
            })),
            links: Vec::new(),
            more_links: 0,
        });
    }

    /// Counts and keeps a task's record, then tells of its end.
    fn keep_record(&mut self, record: TaskRecord, outcome: Outcome, now: Timestamp) {
        *self.outcomes.entry(outcome.as_str()).or_default() += 1;
        self.counts.ended(&record, outcome.is_failure());
        if outcome.is_failure() {
            tracing::warn!(
                manager = self.shared.name, queue = %record.queue, process = %record.process,
                version = record.digest, task = %record.id,
                message = record.messages.last().map(|last| tracing::field::display(last.id)),
                trace = record.trace,
                outcome = outcome.as_str(), detail = record.detail.as_deref().unwrap_or(""),
                "a task failed"
            );
            // The failure's own commit wrote what was known then; this adds cost, log and steps, so
            // that they can be read after a restart. Nobody waits for it.
            if let Ok(value) = serde_json::to_vec(&record) {
                let row = TaskRow {
                    id: record.id.0,
                    value: Bytes::from(value),
                };
                let unit = Unit {
                    task: Some(row),
                    keep_tasks: self.retention.keep(0),
                    ..Unit::default()
                };
                self.submit(unit, None);
            }
        }
        // Kept before it is told: whoever hears of the end may ask for the record.
        let record = self.shared.records.add(record);
        self.shared.tell(|| HostEvent::TaskEnded {
            task: record.id,
            queue: record.queue.clone(),
            outcome,
            committed: record.committed,
            failed: record.failed,
            time: now,
        });
    }
}
