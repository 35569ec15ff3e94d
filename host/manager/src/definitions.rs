//! Orders of operators: definitions, pauses, trigger control. Validated, made durable, then in
//! force, then answered.
//!
//! Only here does the loop wait for the disk: a definition must not be in force before it is
//! durable, and such orders are rare.

use std::sync::Arc;

use oncue_core::admission::Demand;
use oncue_core::alarm::Alarm;
use oncue_core::code::Code;
use oncue_core::definition::{Fault, ProcessDefinition, ProcessPatch, QueueDefinition, QueuePatch};
use oncue_core::names::{ProcessName, QueueName};
use oncue_core::process_table::{ComponentState, ProcessEntry};
use oncue_core::queue_table::QueueEntry;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{RecordChange, RecordKind, Unit};

use crate::command::{Answer, Command, PauseTarget};
use crate::error::ApiError;
use crate::main_loop::Manager;
use crate::rows::{HOST_ROW, HostRow, ProcessRow, QueueRow, TASKS_PER_START, row};
use crate::shared::QueueCell;
use crate::status::{HostEvent, QueueView};

/// A queue to be made, and who waits for it.
pub(crate) struct Definition {
    name: QueueName,
    definition: QueueDefinition,
    answer: Answer<Result<(QueueView, bool), ApiError>>,
}

/// Backout queues of backout queues that are followed to find a circle.
const MAX_BACKOUT_CHAIN: usize = 1000;

impl Manager {
    /// Does what is asked. An answer that nobody waits for any more is no error.
    pub(crate) fn command(&mut self, command: Command, now: Timestamp) {
        if let Command::DefineQueue(name, patch, answer) = command {
            self.define_queue(name, &patch, answer, now);
            return;
        }
        // What follows may be about a queue that is to be made.
        self.make_gathered(now);
        match command {
            Command::AlterQueue(name, patch, answer) => {
                let _ = answer.send(self.alter_queue(&name, &patch, now));
            }
            Command::DeleteQueue(name, answer) => {
                let _ = answer.send(self.delete_queue(&name, now));
            }
            Command::DefineProcess(name, patch, answer) => {
                let _ = answer.send(self.define_process(name, &patch, now));
            }
            Command::AlterProcess(name, patch, answer) => {
                let result = match self.processes.get(&name) {
                    Some(_) => self.define_process(name, &patch, now).map(|(view, _)| view),
                    None => Err(unknown_process(&name)),
                };
                let _ = answer.send(result);
            }
            Command::DeleteProcess(name, answer) => {
                let _ = answer.send(self.delete_process(&name, now));
            }
            Command::Pause(target, paused, answer) => {
                let _ = answer.send(self.pause(&target, paused));
            }
            Command::Trigger(name, on, answer) => {
                let _ = answer.send(self.set_trigger(&name, on));
            }
            Command::Plugin(update, answer) => {
                let _ = answer.send(self.plugin_changed(*update, now));
            }
            question => self.answer(question, now),
        }
    }

    /// Makes records durable. Waits for the disk.
    pub(crate) fn write_rows(&self, records: Vec<RecordChange>) -> Result<(), ApiError> {
        self.shared
            .store
            .commit(Unit {
                records,
                ..Unit::default()
            })
            .wait()?;
        Ok(())
    }

    /// A new queue is gathered with others that are asked for in the same turn: one durable write
    /// makes them all, so that a host of many queues is set up in little time.
    fn define_queue(
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
            let cell = QueueCell::new(name, Arc::clone(&entry.attributes), 0);
            // It is asked below, and nothing is on it.
            cell.rest();
            // The cell first: the store reports the queue's first change to it.
            self.shared.add_cell(Arc::clone(&cell));
            made.push((entry, cell));
        }
        if let Err(error) = self.write_rows(rows) {
            for (entry, _) in &made {
                self.shared.remove_cell(&entry.name);
            }
            return Err(error);
        }
        for (entry, cell) in made {
            let schedule = entry.attributes.schedule.as_deref();
            self.schedules.define(&entry.name, schedule, now);
            self.sweep.add(cell);
            self.ready.push(&entry.name);
            self.queues.insert(entry);
        }
        Ok(())
    }

    fn alter_queue(
        &mut self,
        name: &QueueName,
        patch: &QueuePatch,
        now: Timestamp,
    ) -> Result<crate::status::QueueView, ApiError> {
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
        let row_of = QueueRow {
            definition: definition.clone(),
            paused: entry.paused,
        };
        let now = self.shared.now();
        let attributes = definition.resolve();
        let mut rows = vec![row(RecordKind::Queue, name.as_str(), &row_of)];
        rows.extend(
            self.schedules
                .change(name, attributes.schedule.as_deref(), now),
        );
        self.write_rows(rows)?;
        let before = Arc::clone(&entry.attributes);
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
            if before != entry.attributes {
                self.stop_tasks(|running| running.queue == *name);
            }
        }
        self.write_control(name);
        self.ready.push(name);
        self.judge(name, now);
        Ok(())
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
        let mut next = definition.resolve().backout_queue;
        for _ in 0..MAX_BACKOUT_CHAIN {
            let queue = next?;
            next = self.queues.get(&queue)?.attributes.backout_queue.clone();
            if next.as_ref() == Some(name) {
                let message = format!(
                    "leads back to \"{name}\" by way of \"{queue}\", so poison would go round for \
                     ever; name another, or \"\""
                );
                return Some(Fault::new("backout-queue", message));
            }
        }
        None
    }

    fn delete_queue(&mut self, name: &QueueName, now: Timestamp) -> Result<(), ApiError> {
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
                    "queue \"{name}\" has {} tasks in process; pause it and wait for their end",
                    entry.gate.running()
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

    fn define_process(
        &mut self,
        name: ProcessName,
        patch: &ProcessPatch,
        now: Timestamp,
    ) -> Result<(crate::status::ProcessView, bool), ApiError> {
        let known = self
            .processes
            .get(&name)
            .map(|entry| entry.definition.clone());
        let made = known.is_none();
        let mut definition = known.unwrap_or_default();
        definition.alter(patch);
        let faults = definition.check();
        if !faults.is_empty() {
            return Err(invalid(format!("process \"{name}\" is not valid"), faults));
        }
        self.redefine_process(&name, definition)?;
        self.defined("process", name.as_str(), now);
        Ok((self.process_view(&name)?, made))
    }

    /// Makes or replaces a process definition, durably, and has the queues bound to it asked.
    pub(crate) fn redefine_process(
        &mut self,
        name: &ProcessName,
        definition: ProcessDefinition,
    ) -> Result<(), ApiError> {
        let attributes = definition.resolve();
        let demand = Demand {
            memory: attributes.memory,
            fuel: attributes.fuel,
        };
        if let Err(refusal) = self.ledger.could_ever(demand) {
            return Err(ApiError::new(
                Code::OverCapacity,
                format!(
                    "process \"{name}\" can never start here: {}",
                    oncue_core::trigger::HoldReason::from(refusal)
                ),
            ));
        }
        let paused = self.processes.get(name).is_some_and(|entry| entry.paused);
        let before = self
            .processes
            .get(name)
            .map(|entry| Arc::clone(&entry.attributes));
        let row_of = ProcessRow {
            definition: definition.clone(),
            paused,
        };
        self.write_rows(vec![row(RecordKind::Process, name.as_str(), &row_of)])?;
        match self.processes.get_mut(name) {
            Some(entry) => entry.define(definition),
            None => {
                self.processes
                    .insert(name.clone(), ProcessEntry::new(definition));
            }
        }
        if before.is_some_and(|before| *before != attributes) {
            self.stop_tasks(|running| running.process == *name);
        }
        self.refresh_components();
        self.cure_bound(name);
        Ok(())
    }

    fn delete_process(&mut self, name: &ProcessName, now: Timestamp) -> Result<(), ApiError> {
        if self.processes.get(name).is_none() {
            return Err(unknown_process(name));
        }
        let record = RecordChange {
            kind: RecordKind::Process,
            name: name.to_string(),
            value: None,
        };
        self.write_rows(vec![record])?;
        self.processes.remove(name);
        self.stop_tasks(|running| running.process == *name);
        self.cure_bound(name);
        self.defined("process", name.as_str(), now);
        Ok(())
    }

    fn pause(&mut self, target: &PauseTarget, paused: bool) -> Result<(), ApiError> {
        match target {
            PauseTarget::Host => {
                let starts = self.next_task.0 / TASKS_PER_START;
                let row_of = HostRow { paused, starts };
                self.write_rows(vec![row(RecordKind::Host, HOST_ROW, &row_of)])?;
                self.host.paused = paused;
                if paused {
                    self.stop_tasks(|_| true);
                }
                self.ask_all();
            }
            PauseTarget::Queue(name) => {
                let entry = self
                    .queues
                    .get(name)
                    .ok_or_else(|| self.shared.unknown_queue(name))?;
                let row_of = QueueRow {
                    definition: entry.definition.clone(),
                    paused,
                };
                self.write_rows(vec![row(RecordKind::Queue, name.as_str(), &row_of)])?;
                if let Some(entry) = self.queues.get_mut(name) {
                    entry.paused = paused;
                    entry.gate.cure();
                }
                if paused {
                    self.stop_tasks(|running| running.queue == *name);
                }
                self.ready.push(name);
            }
            PauseTarget::Process(name) => {
                let entry = self
                    .processes
                    .get(name)
                    .ok_or_else(|| unknown_process(name))?;
                let row_of = ProcessRow {
                    definition: entry.definition.clone(),
                    paused,
                };
                self.write_rows(vec![row(RecordKind::Process, name.as_str(), &row_of)])?;
                if let Some(entry) = self.processes.get_mut(name) {
                    entry.paused = paused;
                }
                if paused {
                    self.stop_tasks(|running| running.process == *name);
                }
                self.cure_bound(name);
            }
        }
        Ok(())
    }

    fn set_trigger(
        &mut self,
        name: &QueueName,
        on: bool,
    ) -> Result<crate::status::QueueView, ApiError> {
        let entry = self
            .queues
            .get_mut(name)
            .ok_or_else(|| self.shared.unknown_queue(name))?;
        let before = entry.gate.control_record();
        entry.gate.set_control(on);
        if let Some(record) = entry.gate.take_control_change() {
            let change = row(RecordKind::Control, name.as_str(), &record);
            if let Err(error) = self.write_rows(vec![change]) {
                if let Some(entry) = self.queues.get_mut(name) {
                    let attributes = Arc::clone(&entry.attributes);
                    entry.gate.put_control_back(before, &attributes);
                }
                return Err(error);
            }
        }
        if !on {
            self.stop_tasks(|running| running.queue == *name);
        }
        self.ready.push(name);
        let now = self.shared.now();
        self.queue_view(name, now)
    }

    /// Something about a process changed: its queues are asked as if it had never held them.
    pub(crate) fn cure_bound(&mut self, process: &ProcessName) {
        for entry in self.queues.iter_mut() {
            if entry.attributes.process.as_ref() == Some(process) {
                entry.gate.cure();
                if !entry.is_idle() {
                    self.ready.push(&entry.name);
                }
            }
        }
    }

    /// Looks up every process definition's component anew.
    pub(crate) fn refresh_components(&mut self) {
        let names: Vec<ProcessName> = self
            .processes
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            let Some(entry) = self.processes.get(&name) else {
                continue;
            };
            let demand = entry.demand();
            let component = self
                .plugin_of(&name)
                .map_or(ComponentState::Missing, |update| {
                    update.state.component(demand)
                });
            if let Some(entry) = self.processes.get_mut(&name) {
                entry.component = component;
            }
        }
    }

    pub(crate) fn defined(&self, what: &'static str, name: &str, now: Timestamp) {
        tracing::info!(what, name, "definition changed");
        self.shared.tell(|| HostEvent::Defined {
            what,
            name: name.to_owned(),
            time: now,
        });
    }
}

fn invalid(what: String, faults: Vec<Fault>) -> ApiError {
    ApiError::with_faults(Code::InvalidDefinition, what, faults)
}

fn reserved(name: &QueueName) -> ApiError {
    ApiError::new(
        Code::ReservedName,
        format!("queue \"{name}\" is the queue manager's own; choose a name without \"oncue.\""),
    )
}

pub(crate) fn unknown_process(name: &ProcessName) -> ApiError {
    ApiError::new(
        Code::UnknownProcess,
        format!("process \"{name}\" is not defined; define it, or drop its plugin"),
    )
}
