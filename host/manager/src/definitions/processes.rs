//! Process definitions are made, altered and deleted, and the queues bound to them hear of it.

use std::sync::Arc;

use oncue_core::admission::Demand;
use oncue_core::code::Code;
use oncue_core::definition::{ProcessDefinition, ProcessPatch};
use oncue_core::names::ProcessName;
use oncue_core::process_table::{ComponentState, ProcessEntry};
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{RecordChange, RecordKind};

use super::{invalid, unknown_process};
use crate::error::ApiError;
use crate::main_loop::Manager;
use crate::rows::{ProcessRow, row};
use crate::status::ProcessView;

impl Manager {
    pub(super) fn define_process(
        &mut self,
        name: ProcessName,
        patch: &ProcessPatch,
        now: Timestamp,
    ) -> Result<(ProcessView, bool), ApiError> {
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
        self.check_capacity(name, &definition)?;
        self.write_rows(vec![self.process_row(name, &definition)])?;
        self.process_in_force(name, definition);
        Ok(())
    }

    /// Refuses a process that could never start.
    pub(crate) fn check_capacity(
        &self,
        name: &ProcessName,
        definition: &ProcessDefinition,
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
        Ok(())
    }

    /// The row that makes a process definition durable.
    pub(crate) fn process_row(
        &self,
        name: &ProcessName,
        definition: &ProcessDefinition,
    ) -> RecordChange {
        let row_of = ProcessRow {
            definition: definition.clone(),
            paused: self.processes.get(name).is_some_and(|entry| entry.paused),
        };
        row(RecordKind::Process, name.as_str(), &row_of)
    }

    /// Puts a process definition in force that is durable, and has the queues bound to it asked.
    pub(crate) fn process_in_force(&mut self, name: &ProcessName, definition: ProcessDefinition) {
        let attributes = definition.resolve();
        let before = self.processes.get(name);
        let before = before.map(|entry| Arc::clone(&entry.attributes));
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
    }

    pub(super) fn delete_process(
        &mut self,
        name: &ProcessName,
        now: Timestamp,
    ) -> Result<(), ApiError> {
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
            let component = match self.plugin_of(&name) {
                Some(update) => update.state.component(demand),
                None if self.plugins_awaited => ComponentState::Compiling,
                None => ComponentState::Missing,
            };
            if let Some(entry) = self.processes.get_mut(&name) {
                entry.component = component;
            }
        }
    }
}
