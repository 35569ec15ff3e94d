//! The queue table, asked at step 60: everything the manager knows of a queue, by its name.
//!
//! Messages are the store's; here are their counts, which the store reports as differences. One
//! loop owns the table. Refuses to do: decide anything; [`crate::trigger`] reads it and decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::alarm::Watch;
use crate::definition::{Pool, QueueAttributes, QueueDefinition, QueuePatch};
use crate::names::QueueName;
use crate::process_table::ProcessTable;
use crate::queue::{Counts, SparseCounts};
use crate::time::Timestamp;
use crate::trigger::gate::{ControlRecord, Gate};
use crate::trigger::hold::PausedBy;
use crate::trigger::process::HostState;
use crate::trigger::rule::{Facts, unsigned};

/// One queue.
#[derive(Clone, Debug)]
pub struct QueueEntry {
    /// Its name.
    pub name: QueueName,
    /// The definition in its layers.
    pub definition: QueueDefinition,
    /// The values that hold.
    pub attributes: Arc<QueueAttributes>,
    /// Its state of triggering.
    pub gate: Gate,
    /// What it holds.
    pub counts: SparseCounts,
    /// Unselective gets of outside consumers that wait now.
    pub waiting_inputs: u32,
    /// When the last outside consumer closed it for input.
    pub last_input_closed: Option<Timestamp>,
    /// An operator paused it.
    pub paused: bool,
    /// Put time of the oldest message that counts; kept by the caller for depth with a max-wait.
    pub oldest_counted: Option<Timestamp>,
    /// When the next waiting message falls due or lease ends; kept by the caller, else `None`.
    pub next_due: Option<Timestamp>,
    /// The code of the reason at the last question, kept by the caller; `None` when it fired.
    pub reason: Option<&'static str>,
    /// What its alarms remember; kept by the caller.
    pub watch: Watch,
}

impl QueueEntry {
    /// An empty queue.
    #[must_use]
    pub fn new(name: QueueName, definition: QueueDefinition) -> Self {
        let attributes = Arc::new(definition.resolve());
        let gate = Gate::new(&attributes);
        Self::with_gate(name, definition, attributes, gate)
    }

    /// A queue after a restart, with its control record; its counts come by [`Self::apply`].
    #[must_use]
    pub fn restore(name: QueueName, definition: QueueDefinition, record: ControlRecord) -> Self {
        let attributes = Arc::new(definition.resolve());
        let gate = Gate::restore(record, &attributes);
        Self::with_gate(name, definition, attributes, gate)
    }

    fn with_gate(
        name: QueueName,
        definition: QueueDefinition,
        attributes: Arc<QueueAttributes>,
        gate: Gate,
    ) -> Self {
        Self {
            name,
            definition,
            attributes,
            gate,
            counts: SparseCounts::default(),
            waiting_inputs: 0,
            last_input_closed: None,
            paused: false,
            oldest_counted: None,
            next_due: None,
            reason: None,
            watch: Watch::default(),
        }
    }

    /// Replaces the definition.
    pub fn define(&mut self, definition: QueueDefinition) {
        let attributes: Arc<QueueAttributes> = Arc::new(definition.resolve());
        self.gate.attributes_changed(&self.attributes, &attributes);
        self.attributes = attributes;
        self.definition = definition;
    }

    /// Adds a difference that the store reported.
    pub fn apply(&mut self, difference: &Counts, now: Timestamp) {
        let had = self.counts.leased_open;
        self.counts += difference;
        if had > 0 && self.counts.leased_open <= 0 {
            self.last_input_closed = Some(now);
        }
    }

    /// An unselective get of an outside consumer begins to wait.
    pub fn input_opened(&mut self) {
        self.waiting_inputs += 1;
    }

    /// Such a get was answered, gave up, or lost its connection. The linger starts when it was the
    /// last; a lease it was given holds the queue open in its stead.
    pub fn input_closed(&mut self, now: Timestamp) {
        debug_assert!(
            self.waiting_inputs > 0,
            "an input of \"{}\" is closed twice",
            self.name
        );
        self.waiting_inputs = self.waiting_inputs.saturating_sub(1);
        if self.waiting_inputs == 0 {
            self.last_input_closed = Some(now);
        }
    }

    /// A start owed by a depth trigger lapses when nothing is left.
    pub fn lapse_if_empty(&mut self) {
        if self.counts.depth() <= 0 {
            self.gate.lapse(self.attributes.rearm);
        }
    }

    /// True when no message, task or start is to be thought of: until something happens to the
    /// queue, the rule cannot fire, whatever happens elsewhere.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.counts.is_zero() && self.gate.is_idle()
    }

    /// Messages that count.
    #[must_use]
    pub fn counted(&self) -> u64 {
        unsigned(self.counts.counted(self.attributes.trigger_priority))
    }

    /// What keeps the queue from being served because an operator paused it.
    #[must_use]
    pub fn paused_by(&self, host: &HostState, processes: &ProcessTable) -> Option<PausedBy> {
        let process = || processes.get(self.attributes.process.as_ref()?);
        if host.paused {
            Some(PausedBy::Host)
        } else if self.paused {
            Some(PausedBy::Queue)
        } else if process().is_some_and(|entry| entry.paused) {
            Some(PausedBy::Process)
        } else {
            None
        }
    }

    /// What the rule looks at.
    #[must_use]
    pub fn facts<'a>(&'a self, host: &HostState, processes: &ProcessTable) -> Facts<'a> {
        Facts {
            attributes: &self.attributes,
            control: self.gate.control(),
            start_owed: self.gate.start_owed(),
            counts: &self.counts,
            running: self.gate.running(),
            starting: self.gate.starting(),
            elsewhere: self.gate.is_elsewhere(),
            paused: self.paused_by(host, processes),
            draining: host.draining,
            store_stopped: host.store_stopped,
            waiting_inputs: self.waiting_inputs,
            last_input_closed: self.last_input_closed,
            backoff: self.gate.backoff(),
            held: self.gate.held(),
            oldest_counted: self.oldest_counted,
            next_due: self.next_due,
        }
    }
}

/// Every queue by name. An idle one is to cost little: what equals another's is shared with it.
#[derive(Clone, Debug, Default)]
pub struct QueueTable {
    // Boxed: nodes of the tree are half empty when names come in order.
    entries: BTreeMap<QueueName, Box<QueueEntry>>,
    layers: Pool<QueuePatch>,
    attributes: Pool<QueueAttributes>,
}

impl QueueTable {
    /// The entry of a name.
    #[must_use]
    pub fn get(&self, name: &QueueName) -> Option<&QueueEntry> {
        self.entries.get(name).map(Box::as_ref)
    }

    /// The entry of a name, to change it.
    pub fn get_mut(&mut self, name: &QueueName) -> Option<&mut QueueEntry> {
        self.entries.get_mut(name).map(Box::as_mut)
    }

    /// Adds or replaces an entry under its own name, and answers with the one before.
    pub fn insert(&mut self, mut entry: QueueEntry) -> Option<QueueEntry> {
        self.share(&mut entry);
        let before = self.entries.insert(entry.name.clone(), Box::new(entry));
        before.map(|before| *before)
    }

    /// Has an entry share what equals another's. Done by [`Self::insert`].
    pub fn share(&mut self, entry: &mut QueueEntry) {
        self.layers.share(&mut entry.definition.base);
        self.layers.share(&mut entry.definition.overlay);
        self.attributes.share(&mut entry.attributes);
    }

    /// Replaces the definition of a queue that is there.
    pub fn define(&mut self, name: &QueueName, definition: QueueDefinition) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.define(definition);
            self.layers.share(&mut entry.definition.base);
            self.layers.share(&mut entry.definition.overlay);
            self.attributes.share(&mut entry.attributes);
        }
    }

    /// Removes an entry.
    pub fn remove(&mut self, name: &QueueName) -> Option<QueueEntry> {
        self.entries.remove(name).map(|entry| *entry)
    }

    /// Every entry, by name.
    pub fn iter(&self) -> impl Iterator<Item = &QueueEntry> {
        self.entries.values().map(Box::as_ref)
    }

    /// Every entry, to change it.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut QueueEntry> {
        self.entries.values_mut().map(Box::as_mut)
    }

    /// Every name, in order.
    #[must_use]
    pub fn names(&self) -> Vec<QueueName> {
        self.entries.keys().cloned().collect()
    }

    /// How many queues there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests;
