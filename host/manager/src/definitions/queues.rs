//! Queues are made, altered and deleted: checked, made durable, then in force.

use std::sync::Arc;

use oncue_core::alarm::Alarm;
use oncue_core::code::Code;
use oncue_core::definition::{Fault, QueueDefinition, QueuePatch};
use oncue_core::names::QueueName;
use oncue_core::quantity::number_of;
use oncue_core::queue::Counts;
use oncue_core::queue_table::QueueEntry;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{RecordChange, RecordKind};

use super::invalid;
use crate::command::Answer;
use crate::error::ApiError;
use crate::main_loop::Manager;
use crate::rows::{QueueRow, row};
use crate::shared::QueueCell;
use crate::status::QueueView;

/// A queue to be made, and who waits for it.
pub(crate) struct Definition {
    name: QueueName,
    definition: QueueDefinition,
    answer: Answer<Result<(QueueView, bool), ApiError>>,
}

/// A queue that is to be made, and its cell.
pub(crate) type NewQueue = (QueueEntry, Arc<QueueCell>);

/// Backout queues of backout queues that are followed to find a circle.
const MAX_BACKOUT_CHAIN: usize = 1000;

impl Manager {
    /// A new queue is gathered with others that are asked for in the same turn: one durable write
    /// makes them all, so that a host of many queues is set up in little time.
    pub(super) fn define_queue(
        &mut self,
        name: QueueName,
        patch: &QueuePatch,
        answer: Answer<Result<(QueueView, bool), ApiError>>,
        now: Timestamp,
    ) {
        let definition = QueueDefinition::from_operator(patch);
        // Two that are to be made may not depend on each other.
        if definition.overlay.backout_queue.is_some()
            || self.gathered.iter().any(|other| other.name == name)
        {
            self.make_gathered(now);
        }
        let known = self.queues.get(&name).is_some();
        let refused = if known {
            let altered = self.alter_queue(&name, patch, now);
            Some(altered.map(|view| (view, false)))
        } else if name.is_reserved() {
            Some(Err(reserved(&name)))
        } else {
            self.check_queue(&name, &definition).err().map(Err)
        };
        match refused {
            Some(result) => {
                let _ = answer.send(result);
            }
            None => self.gathered.push(Definition {
                name,
                definition,
                answer,
            }),
        }
    }

    /// Makes the queues that were gathered, durably, and answers for each.
    pub(crate) fn make_gathered(&mut self, now: Timestamp) {
        if self.gathered.is_empty() {
            return;
        }
        let (new, answers): (Vec<_>, Vec<_>) = std::mem::take(&mut self.gathered)
            .into_iter()
            .map(|one| ((one.name.clone(), one.definition), (one.name, one.answer)))
            .unzip();
        let made = self.make_queues(new);
        for (name, answer) in answers {
            let result = made.clone().and_then(|()| {
                self.defined("queue", name.as_str(), now);
                Ok((self.queue_view(&name, now)?, true))
            });
            let _ = answer.send(result);
        }
    }

    /// Makes queues that are not there yet, all or none, durably.
    pub(crate) fn make_queues(
        &mut self,
        new: Vec<(QueueName, QueueDefinition)>,
    ) -> Result<(), ApiError> {
        let now = self.shared.now();
        let mut rows = Vec::with_capacity(new.len());
        let made = self.prepare_queues(new, &mut rows, now);
        if let Err(error) = self.write_rows(rows) {
            self.give_up_queues(&made);
            return Err(error);
        }
        self.queues_in_force(made, now);
        Ok(())
    }

    /// Gets queues ready that are not there yet, and adds the rows that make them durable.
    pub(crate) fn prepare_queues(
        &mut self,
        new: Vec<(QueueName, QueueDefinition)>,
        rows: &mut Vec<RecordChange>,
        now: Timestamp,
    ) -> Vec<NewQueue> {
        let mut made = Vec::with_capacity(new.len());
        for (name, definition) in new {
            let row_of = QueueRow {
                definition: definition.clone(),
                paused: false,
            };
            rows.push(row(RecordKind::Queue, name.as_str(), &row_of));
            let mut entry = QueueEntry::new(name.clone(), definition);
            self.queues.share(&mut entry);
            let schedule = entry.attributes.schedule.as_deref();
            rows.extend(self.schedules.change(&name, schedule, now));
            let cell = QueueCell::new(name, Arc::clone(&entry.attributes), &Counts::default());
            // It is asked below, and nothing is on it.
            cell.rest();
            // The cell first: the store reports the queue's first change to it.
            self.shared.add_cell(Arc::clone(&cell));
            made.push((entry, cell));
        }
        made
    }

    /// Forgets queues that could not be made durable.
    pub(crate) fn give_up_queues(&self, made: &[NewQueue]) {
        for (entry, _) in made {
            self.shared.remove_cell(&entry.name);
        }
    }

    /// Puts queues in force that are durable.
    pub(crate) fn queues_in_force(&mut self, made: Vec<NewQueue>, now: Timestamp) {
        for (entry, cell) in made {
            let schedule = entry.attributes.schedule.as_deref();
            self.schedules.define(&entry.name, schedule, now);
            self.sweep.add(cell);
            self.ready.push(&entry.name);
            self.queues.insert(entry);
        }
    }

    pub(super) fn alter_queue(
        &mut self,
        name: &QueueName,
        patch: &QueuePatch,
        now: Timestamp,
    ) -> Result<QueueView, ApiError> {
        let entry = self
            .queues
            .get(name)
            .ok_or_else(|| self.shared.unknown_queue(name))?;
        let mut definition = entry.definition.clone();
        definition.alter(patch);
        self.check_queue(name, &definition)?;
        self.redefine_queue(name, definition)?;
        self.defined("queue", name.as_str(), now);
        self.queue_view(name, now)
    }

    /// Replaces the definition of a queue that is there, durably, and has it asked.
    pub(crate) fn redefine_queue(
        &mut self,
        name: &QueueName,
        definition: QueueDefinition,
    ) -> Result<(), ApiError> {
        let entry = self
            .queues
            .get(name)
            .ok_or_else(|| self.shared.unknown_queue(name))?;
        if entry.definition == definition {
            return Ok(());
        }
        let now = self.shared.now();
        self.write_rows(self.queue_rows(name, &definition, now))?;
        self.queue_in_force(name, definition, now);
        Ok(())
    }

    /// The rows that make another definition of a queue durable.
    pub(crate) fn queue_rows(
        &self,
        name: &QueueName,
        definition: &QueueDefinition,
        now: Timestamp,
    ) -> Vec<RecordChange> {
        let row_of = QueueRow {
            definition: definition.clone(),
            paused: self.queues.get(name).is_some_and(|entry| entry.paused),
        };
        let attributes = definition.resolve();
        let schedule = attributes.schedule.as_deref();
        let mut rows = vec![row(RecordKind::Queue, name.as_str(), &row_of)];
        rows.extend(self.schedules.change(name, schedule, now));
        rows
    }

    /// Puts another definition of a queue in force that is durable, and has the queue asked.
    pub(crate) fn queue_in_force(
        &mut self,
        name: &QueueName,
        definition: QueueDefinition,
        now: Timestamp,
    ) {
        let attributes = definition.resolve();
        let before = self.queues.get(name);
        let before = before.map(|entry| Arc::clone(&entry.attributes));
        self.queues.define(name, definition);
        let goes_on = self
            .schedules
            .define(name, attributes.schedule.as_deref(), now);
        if !goes_on {
            // What could not be put is not to be put any more.
            self.turn_alarm(name, Alarm::ScheduleRefused, None, now);
        }
        if let Some(entry) = self.queues.get_mut(name) {
            if let Some(cell) = self.shared.cell(name) {
                cell.attributes.store(Arc::clone(&entry.attributes));
            }
            // What a running task works by has changed: it ends at its next boundary, and the next
            // start goes by the new definition.
            if before.is_some_and(|before| before != entry.attributes) {
                self.stop_tasks(|running| running.queue == *name);
            }
        }
        self.write_control(name);
        self.ready.push(name);
        self.judge(name, now);
    }

    fn check_queue(&self, name: &QueueName, definition: &QueueDefinition) -> Result<(), ApiError> {
        let mut faults = definition.check_for(name);
        faults.extend(self.backout_circle(name, definition));
        if faults.is_empty() {
            return Ok(());
        }
        Err(invalid(format!("queue \"{name}\" is not valid"), faults))
    }

    /// A chain of backout queues that comes back to the queue itself: its poison would go round for
    /// ever, since moves by the manager are exempt from the hop limit.
    pub(crate) fn backout_circle(
        &self,
        name: &QueueName,
        definition: &QueueDefinition,
    ) -> Option<Fault> {
        circle(name, |queue| {
            if queue == name {
                return definition.resolve().backout_queue;
            }
            self.queues.get(queue)?.attributes.backout_queue.clone()
        })
    }

    pub(super) fn delete_queue(
        &mut self,
        name: &QueueName,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        let entry = self
            .queues
            .get(name)
            .ok_or_else(|| self.shared.unknown_queue(name))?;
        if name.is_reserved() {
            return Err(reserved(name));
        }
        if entry.gate.running() > 0 {
            return Err(ApiError::new(
                Code::QueueInUse,
                format!(
                    "queue \"{name}\" has {} in process; pause it and wait for the end",
                    number_of(u64::from(entry.gate.running()), "task")
                ),
            ));
        }
        let delete = |kind| RecordChange {
            kind,
            name: name.to_string(),
            value: None,
        };
        let mut rows = vec![delete(RecordKind::Queue), delete(RecordKind::Control)];
        rows.extend(self.schedules.change(name, None, now));
        self.write_rows(rows)?;
        self.schedules.define(name, None, now);
        let raised = self
            .queues
            .remove(name)
            .map(|mut entry| entry.watch.take_raised());
        self.forget_alarms(name, raised.unwrap_or_default(), now);
        self.shared.remove_cell(name);
        self.ready.forget(name);
        self.ledger.forget(name);
        self.notes.remove(name);
        self.defined("queue", name.as_str(), now);
        Ok(())
    }
}

/// A chain of backout queues that comes back to the queue where it began. `next` answers the
/// backout queue of a queue.
pub(crate) fn circle(
    name: &QueueName,
    next: impl Fn(&QueueName) -> Option<QueueName>,
) -> Option<Fault> {
    // Its own backout queue is a fault of another kind.
    let mut queue = next(name).filter(|queue| queue != name)?;
    for _ in 0..MAX_BACKOUT_CHAIN {
        let after = next(&queue)?;
        if after == *name {
            let message = format!(
                "leads back to \"{name}\" by way of \"{queue}\", so poison would go round for \
                 ever; name another, or \"\""
            );
            return Some(Fault::new("backout-queue", message));
        }
        queue = after;
    }
    None
}

fn reserved(name: &QueueName) -> ApiError {
    ApiError::new(
        Code::ReservedName,
        format!("queue \"{name}\" is the queue manager's own; choose a name without \"oncue.\""),
    )
}
