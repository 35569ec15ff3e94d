//! Many definitions in one order: each is given exactly the operator's layer that is asked for, all
//! of them or none, in one durable write.
//!
//! What is looked at first and what is then done are one plan, so a look tells what would be done.

use std::collections::BTreeMap;

use oncue_core::code::Code;
use oncue_core::definition::{
    AttributeInfo, Fault, Layered, PROCESS_ATTRIBUTES, Patch, ProcessDefinition, ProcessPatch,
    QUEUE_ATTRIBUTES, QueueDefinition, QueuePatch, Raw,
};
use oncue_core::names::{ProcessName, QueueName};
use oncue_core::time::Timestamp;
use serde::Serialize;

use crate::definitions::circle;
use crate::error::ApiError;
use crate::main_loop::Manager;

/// Definitions of one order.
pub const MAX_DEFINITIONS: usize = 10_000;

/// The operator's layers that definitions shall have. What is not named stays as it is.
#[derive(Clone, Debug, Default)]
pub struct DefinitionSet {
    /// Process definitions; each name once.
    pub processes: Vec<(ProcessName, ProcessPatch)>,
    /// Queues; each name once.
    pub queues: Vec<(QueueName, QueuePatch)>,
}

/// A kind of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Defined {
    /// A process definition.
    Process,
    /// A queue.
    Queue,
}

impl Defined {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Queue => "queue",
        }
    }
}

/// One change of one attribute of the operator's layer, or a definition that is new.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DefinitionChange {
    /// `+` set, `~` set to another value, `-` taken away.
    pub change: &'static str,
    /// Of what.
    pub what: Defined,
    /// Of which.
    pub name: String,
    /// Which attribute; none when the definition itself is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribute: Option<&'static str>,
    /// The operator's value before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Raw>,
    /// The operator's value afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Raw>,
}

/// What an order comes to: definitions that change, and how.
struct Plan {
    processes: Vec<(ProcessName, ProcessDefinition)>,
    queues: Vec<(QueueName, QueueDefinition)>,
    changes: Vec<DefinitionChange>,
}

impl Manager {
    /// Looks what the order comes to, and does it if that is what is `agreed` to.
    pub(crate) fn apply(
        &mut self,
        set: DefinitionSet,
        agreed: Option<Vec<DefinitionChange>>,
        now: Timestamp,
    ) -> Result<Vec<DefinitionChange>, ApiError> {
        let plan = self.plan(set);
        self.check_plan(&plan)?;
        match agreed {
            None => Ok(plan.changes),
            Some(agreed) if agreed != plan.changes => Err(ApiError::new(
                Code::DefinitionsChanged,
                "definitions were changed by others meanwhile, and nothing was done; look at the \
                 changes again",
            )),
            Some(_) => self.carry_out(plan, now),
        }
    }

    fn plan(&self, set: DefinitionSet) -> Plan {
        let mut plan = Plan {
            processes: Vec::new(),
            queues: Vec::new(),
            changes: Vec::new(),
        };
        for (name, layer) in set.processes {
            let known = self.processes.get(&name).map(|entry| &entry.definition);
            let wanted = with_layer(known, &layer);
            if known.is_none_or(|known| *known != wanted) {
                let layers = Layers {
                    what: Defined::Process,
                    attributes: PROCESS_ATTRIBUTES,
                    before: known.map(|known| known.overlay.to_raw()),
                    after: wanted.overlay.to_raw(),
                };
                layers.compare(name.as_str(), &mut plan.changes);
                plan.processes.push((name, wanted));
            }
        }
        for (name, layer) in set.queues {
            let known = self.queues.get(&name).map(|entry| &entry.definition);
            let wanted = with_layer(known, &layer);
            if known.is_none_or(|known| *known != wanted) {
                let layers = Layers {
                    what: Defined::Queue,
                    attributes: QUEUE_ATTRIBUTES,
                    before: known.map(|known| known.overlay.to_raw()),
                    after: wanted.overlay.to_raw(),
                };
                layers.compare(name.as_str(), &mut plan.changes);
                plan.queues.push((name, wanted));
            }
        }
        plan
    }

    /// Holds every definition to its rules, and to the others as they would be.
    fn check_plan(&self, plan: &Plan) -> Result<(), ApiError> {
        let mut faults = Vec::new();
        let under = |what: Defined, name: &str, fault: Fault| fault.under(&[what.as_str(), name]);
        for (name, definition) in &plan.processes {
            let mut found = definition.check();
            let capacity = self.check_capacity(name, definition);
            found.extend(
                capacity
                    .err()
                    .map(|error| Fault::new("memory", error.message)),
            );
            let found = found.into_iter();
            faults.extend(found.map(|fault| under(Defined::Process, name.as_str(), fault)));
        }
        let planned: BTreeMap<&QueueName, Option<QueueName>> = plan
            .queues
            .iter()
            .map(|(name, definition)| (name, definition.resolve().backout_queue))
            .collect();
        let next = |queue: &QueueName| match planned.get(queue) {
            Some(next) => next.clone(),
            None => self.queues.get(queue)?.attributes.backout_queue.clone(),
        };
        for (name, definition) in &plan.queues {
            let mut found = definition.check_for(name);
            if name.is_reserved() && self.queues.get(name).is_none() {
                let message = "is the queue manager's own; choose a name without \"oncue.\"";
                found.push(Fault {
                    path: Vec::new(),
                    message: message.to_owned(),
                });
            }
            found.extend(circle(name, next));
            let found = found.into_iter();
            faults.extend(found.map(|fault| under(Defined::Queue, name.as_str(), fault)));
        }
        if faults.is_empty() {
            return Ok(());
        }
        let what = "the definitions are not valid".to_owned();
        Err(ApiError::with_faults(Code::InvalidDefinition, what, faults))
    }

    /// One durable write; then all of it is in force, processes first: queues name them.
    fn carry_out(&mut self, plan: Plan, now: Timestamp) -> Result<Vec<DefinitionChange>, ApiError> {
        if plan.changes.is_empty() {
            return Ok(plan.changes);
        }
        let is_there = |(name, _): &(QueueName, QueueDefinition)| self.queues.get(name).is_some();
        let (altered, new): (Vec<_>, Vec<_>) = plan.queues.into_iter().partition(is_there);
        let mut rows = Vec::new();
        for (name, definition) in &plan.processes {
            rows.push(self.process_row(name, definition));
        }
        for (name, definition) in &altered {
            rows.extend(self.queue_rows(name, definition, now));
        }
        let names: Vec<QueueName> = new.iter().map(|(name, _)| name.clone()).collect();
        let made = self.prepare_queues(new, &mut rows, now);
        if let Err(error) = self.write_rows(rows) {
            self.give_up_queues(&made);
            return Err(error);
        }
        for (name, definition) in plan.processes {
            self.process_in_force(&name, definition);
            self.defined(Defined::Process.as_str(), name.as_str(), now);
        }
        self.queues_in_force(made, now);
        for (name, definition) in altered {
            self.queue_in_force(&name, definition, now);
            self.defined(Defined::Queue.as_str(), name.as_str(), now);
        }
        for name in names {
            self.defined(Defined::Queue.as_str(), name.as_str(), now);
        }
        Ok(plan.changes)
    }
}

/// A definition with exactly this layer of the operator's.
fn with_layer<P: Patch>(known: Option<&Layered<P>>, layer: &P) -> Layered<P> {
    let made = Layered::from_operator(layer);
    match known {
        Some(known) => Layered {
            base: known.base.clone(),
            ..made
        },
        None => made,
    }
}

/// The operator's layer before and afterwards.
struct Layers {
    what: Defined,
    attributes: &'static [AttributeInfo],
    /// None: the definition is new.
    before: Option<Raw>,
    after: Raw,
}

impl Layers {
    fn compare(&self, name: &str, changes: &mut Vec<DefinitionChange>) {
        let change = |change, attribute, from, to| DefinitionChange {
            change,
            what: self.what,
            name: name.to_owned(),
            attribute,
            from,
            to,
        };
        if self.before.is_none() {
            changes.push(change("+", None, None, None));
        }
        for info in self.attributes {
            let from = self
                .before
                .as_ref()
                .and_then(|layer| value_of(layer, info.name));
            let to = value_of(&self.after, info.name);
            if from == to {
                continue;
            }
            let mark = match (from, to) {
                (None, _) => "+",
                (Some(_), Some(_)) => "~",
                (Some(_), None) => "-",
            };
            changes.push(change(mark, Some(info.name), from.cloned(), to.cloned()));
        }
    }
}

/// The value at a name; a dot leads into a table.
fn value_of<'a>(layer: &'a Raw, name: &str) -> Option<&'a Raw> {
    match name.split_once('.') {
        None => layer.get(name),
        Some((group, member)) => layer.get(group)?.get(member),
    }
}
