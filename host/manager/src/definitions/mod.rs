//! Orders of operators: definitions (`queues`, `processes`), pauses, trigger control. Validated,
//! made durable, then in force, then answered.
//!
//! Only here does the loop wait for the disk: a definition must not be in force before it is
//! durable, and such orders are rare.

use std::sync::Arc;

use oncue_core::code::Code;
use oncue_core::definition::Fault;
use oncue_core::names::{ProcessName, QueueName};
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{RecordChange, RecordKind, Unit};

use crate::command::{Command, PauseTarget};
use crate::error::ApiError;
use crate::main_loop::Manager;
use crate::rows::{HOST_ROW, HostRow, ProcessRow, QueueRow, TASKS_PER_START, row};
use crate::status::HostEvent;

mod processes;
mod queues;

pub(crate) use queues::{Definition, circle};

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
            Command::Apply(set, agreed, answer) => {
                let _ = answer.send(self.apply(set, agreed, now));
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
            Command::PluginsRead(answer) => {
                self.plugins_read();
                let _ = answer.send(());
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

pub(crate) fn unknown_process(name: &ProcessName) -> ApiError {
    ApiError::new(
        Code::UnknownProcess,
        format!("process \"{name}\" is not defined; define it, or drop its plugin"),
    )
}
