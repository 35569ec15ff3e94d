//! The process table, asked at steps 60 and 62: process name to definition to component version.
//!
//! Refuses to do: load, compile or keep components. The plugin side tells it their state.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::admission::Demand;
use crate::definition::{ProcessAttributes, ProcessDefinition, Style};
use crate::names::ProcessName;
use crate::trigger::hold::HoldReason;

/// One version of a component, ready to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentVersion {
    /// Digest of the file: `sha256:...`.
    pub digest: Arc<str>,
    /// How it is called, found by its exports.
    pub style: Style,
    /// What a task of it needs. Differs from the definition's own demand when the component asks
    /// for more memory at once than the definition says.
    pub demand: Demand,
}

/// What is known of a process definition's component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComponentState {
    /// No such file.
    Missing,
    /// It is being loaded and compiled, and no earlier version is there.
    Compiling,
    /// It was refused, and no earlier version is there; the text says why.
    Quarantined(String),
    /// It can be started.
    Ready(ComponentVersion),
}

/// One process definition.
#[derive(Clone, Debug)]
pub struct ProcessEntry {
    /// The definition in its layers.
    pub definition: ProcessDefinition,
    /// The values that hold.
    pub attributes: Arc<ProcessAttributes>,
    /// Its component.
    pub component: ComponentState,
    /// An operator paused it.
    pub paused: bool,
}

impl ProcessEntry {
    /// An entry whose component is not known yet.
    #[must_use]
    pub fn new(definition: ProcessDefinition) -> Self {
        let attributes = Arc::new(definition.resolve());
        Self {
            definition,
            attributes,
            component: ComponentState::Missing,
            paused: false,
        }
    }

    /// Replaces the definition.
    pub fn define(&mut self, definition: ProcessDefinition) {
        self.attributes = Arc::new(definition.resolve());
        self.definition = definition;
    }

    /// What step 50 reserves; step 62 exchanges it when the version's own demand differs.
    #[must_use]
    pub fn demand(&self) -> Demand {
        Demand {
            memory: self.attributes.memory,
            fuel: self.attributes.fuel,
        }
    }

    /// Step 62: the component version to start.
    ///
    /// # Errors
    /// `component-missing`, `component-compiling` or `component-quarantined`.
    pub fn version(&self, name: &ProcessName) -> Result<&ComponentVersion, HoldReason> {
        let component = || self.attributes.component_for(name);
        match &self.component {
            ComponentState::Ready(version) => Ok(version),
            ComponentState::Missing => Err(HoldReason::ComponentMissing(component())),
            ComponentState::Compiling => Err(HoldReason::ComponentCompiling(component())),
            ComponentState::Quarantined(why) => Err(HoldReason::ComponentQuarantined(why.clone())),
        }
    }
}

/// Every process definition by name.
#[derive(Clone, Debug, Default)]
pub struct ProcessTable {
    entries: BTreeMap<ProcessName, ProcessEntry>,
}

impl ProcessTable {
    /// The entry of a name.
    #[must_use]
    pub fn get(&self, name: &ProcessName) -> Option<&ProcessEntry> {
        self.entries.get(name)
    }

    /// The entry of a name, to change it. Queues bound to it must be cured and asked afterwards.
    pub fn get_mut(&mut self, name: &ProcessName) -> Option<&mut ProcessEntry> {
        self.entries.get_mut(name)
    }

    /// Adds or replaces an entry, and answers with the one before.
    pub fn insert(&mut self, name: ProcessName, entry: ProcessEntry) -> Option<ProcessEntry> {
        self.entries.insert(name, entry)
    }

    /// Removes an entry. Queues that name it are held at 60 from now on.
    pub fn remove(&mut self, name: &ProcessName) -> Option<ProcessEntry> {
        self.entries.remove(name)
    }

    /// Every entry, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&ProcessName, &ProcessEntry)> {
        self.entries.iter()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Step 60: the process entry that a queue names.
    ///
    /// # Errors
    /// `no-process` when the queue names none, or one that is not defined.
    pub fn bound<'a>(
        &'a self,
        process: Option<&'a ProcessName>,
    ) -> Result<(&'a ProcessName, &'a ProcessEntry), HoldReason> {
        let name = process.ok_or(HoldReason::NoProcess(None))?;
        let entry = self
            .get(name)
            .ok_or_else(|| HoldReason::NoProcess(Some(name.clone())))?;
        Ok((name, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(component: ComponentState, wanted: Result<&str, HoldReason>) {
        let name = ProcessName::new("route").expect("name");
        let mut table = ProcessTable::default();
        let mut entry = ProcessEntry::new(ProcessDefinition::default());
        entry.component = component;
        table.insert(name.clone(), entry);
        let (found, entry) = table.bound(Some(&name)).expect("defined");
        assert_eq!(found, &name);
        assert_eq!(entry.version(found).map(|version| &*version.digest), wanted);
    }

    #[test]
    fn step_62_finds_the_version_or_says_what_is_wrong_with_the_component() {
        let demand = Demand { memory: 1, fuel: 1 };
        let version = ComponentVersion {
            digest: "sha256:1".into(),
            style: Style::Message,
            demand,
        };
        check(ComponentState::Ready(version), Ok("sha256:1"));
        let file = || "route.wasm".to_owned();
        check(
            ComponentState::Missing,
            Err(HoldReason::ComponentMissing(file())),
        );
        check(
            ComponentState::Compiling,
            Err(HoldReason::ComponentCompiling(file())),
        );
        let why = || "wrong world".to_owned();
        check(
            ComponentState::Quarantined(why()),
            Err(HoldReason::ComponentQuarantined(why())),
        );
    }

    #[test]
    fn step_60_holds_a_queue_without_a_defined_process() {
        let table = ProcessTable::default();
        assert_eq!(table.bound(None).err(), Some(HoldReason::NoProcess(None)));
        let name = ProcessName::new("route").expect("name");
        let wanted = HoldReason::NoProcess(Some(name.clone()));
        assert_eq!(table.bound(Some(&name)).err(), Some(wanted));
    }
}
