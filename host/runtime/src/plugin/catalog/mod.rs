//! The plugins as a pure state machine: settled files, results of checks and the manager's answers
//! go in; trials, updates and records to write come out.
//!
//! Level-triggered: every change leads to a fresh look at all plugins, and an update is told only
//! when it differs from the last one that was taken. It reads no file, runs nothing and knows no
//! time. Rules that hold here:
//!
//! - A version serves only after its check passed. Until then, and if it fails, the version before
//!   it serves on.
//! - Two plugins never claim one queue: the bound one goes on; if none is bound, neither is.
//! - A rollback pins a content until the file has another.

mod candidate;
mod entry;
mod rollback;
mod target;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use oncue_core::code::Code;
use oncue_core::definition::{ProcessAttributes, Style};
use oncue_core::names::{PluginName, QueueName};
pub(crate) use oncue_manager::reload::NEXT_VERSION;

use super::digest::Digest;
use super::kept::Record;
use super::manifest::Definitions;
pub use candidate::Capacity;
pub(crate) use candidate::{
    Candidate, Component, FileState, Key, ManifestFile, attributes, derive,
};
pub(crate) use entry::Passed;
use entry::{Check, Entry};

/// Identity of a rollback that someone waits for.
pub(crate) type RollbackId = u64;

/// A component and how it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) component: Digest,
    pub(crate) style: Style,
}

/// What can be run of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Compiling,
    Ready(Version),
    Quarantined {
        reason: String,
        serving: Option<Version>,
    },
    Missing,
    Removed,
}

impl State {
    /// The version that serves.
    pub(crate) fn serving(&self) -> Option<&Version> {
        match self {
            Self::Ready(version) => Some(version),
            Self::Quarantined { serving, .. } => serving.as_ref(),
            Self::Compiling | Self::Missing | Self::Removed => None,
        }
    }
}

/// What the manager is told of a plugin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Update {
    pub(crate) plugin: PluginName,
    /// The component's file name.
    pub(crate) file: String,
    pub(crate) state: State,
    /// None: the definitions stay as they are.
    pub(crate) definitions: Option<Arc<Definitions>>,
    /// Where a rollback can go, newest first.
    pub(crate) previous: Vec<Digest>,
    pub(crate) facts: Vec<(String, String)>,
    /// Only news: what serves is as it was told before, and another version is being found out.
    pub(crate) is_interim: bool,
}

/// The fact of a plugin that a rollback holds at a version.
pub(crate) const PINNED: &str = "pinned";

/// A version that has to be loaded and tried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trial {
    pub(crate) plugin: PluginName,
    pub(crate) key: Key,
    /// The component's file name, for sentences.
    pub(crate) file: String,
    /// The limits to try it under, and the style that is asked for.
    pub(crate) attributes: ProcessAttributes,
}

/// Why a version did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotPassed {
    /// The same bytes fail again: the sentence names the file.
    Refused(String),
    /// The host could not tell now.
    Host(String),
}

/// What is to be done. Actions are done in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Load and try a version; answer with [`Catalog::checked`].
    Check(Box<Trial>),
    /// Tell the manager; answer with [`Catalog::told`].
    Tell(Box<Update>),
    /// Write what is remembered of a plugin.
    Remember(PluginName, Record),
    /// Forget a plugin that is gone.
    Forget(PluginName),
    /// Answer a rollback: the digest that serves now, or why not.
    Answer(RollbackId, Result<Digest, (Code, String)>),
    /// Say something to the operator.
    Warn(String),
}

/// The sentence for two plugins that claim one queue, the same for both.
pub(crate) fn both_claim(one: &str, other: &str, queue: &QueueName) -> String {
    let (first, second) = if one < other {
        (one, other)
    } else {
        (other, one)
    };
    format!(
        "\"{first}\" and \"{second}\" both claim queue \"{queue}\"; remove one, or name another \
         queue in its manifest [{}]",
        Code::QueueClaimed
    )
}

/// All plugins.
#[derive(Debug)]
pub(crate) struct Catalog {
    capacity: Capacity,
    files: BTreeMap<String, FileState>,
    restless: BTreeSet<String>,
    entries: BTreeMap<PluginName, Entry>,
    /// Remembered plugins that have not been seen since the start.
    records: BTreeMap<PluginName, Record>,
    /// File names that were warned of.
    nameless: BTreeSet<String>,
}

impl Catalog {
    /// No file is known yet.
    pub(crate) fn new(capacity: Capacity, records: BTreeMap<PluginName, Record>) -> Self {
        Self {
            capacity,
            files: BTreeMap::new(),
            restless: BTreeSet::new(),
            entries: BTreeMap::new(),
            records,
            nameless: BTreeSet::new(),
        }
    }

    /// A file has settled; `None`: it is gone.
    pub(crate) fn settled(&mut self, file: &str, state: Option<FileState>) {
        match state {
            Some(state) => self.files.insert(file.to_owned(), state),
            None => self.files.remove(file),
        };
    }

    /// Names the files that have not settled. Plugins they belong to stay as they are meanwhile.
    pub(crate) fn set_restless(&mut self, files: BTreeSet<String>) {
        self.restless = files;
    }

    /// Takes in the result of a check.
    pub(crate) fn checked(
        &mut self,
        plugin: &PluginName,
        key: Key,
        result: Result<Passed, NotPassed>,
    ) {
        // Of a plugin or a version that is gone by now, nobody asks any more.
        let Some(entry) = self.entries.get_mut(plugin) else {
            return;
        };
        if let Some(check) = entry.checks.get_mut(&key) {
            *check = match result {
                Ok(passed) => Check::Passed(passed),
                Err(NotPassed::Refused(reason)) => Check::Failed(reason),
                Err(NotPassed::Host(reason)) => Check::Deferred {
                    reason,
                    is_due: false,
                },
            };
        }
    }

    /// Whether the result of a trial is still waited for.
    pub(crate) fn awaits(&self, plugin: &PluginName, key: &Key) -> bool {
        let entry = self.entries.get(plugin);
        entry.is_some_and(|entry| matches!(entry.checks.get(key), Some(Check::Asked { .. })))
    }

    /// Takes in the manager's answer to an update.
    pub(crate) fn told(&mut self, update: Update, answer: Result<(), String>) -> Vec<Action> {
        let plugin = update.plugin.clone();
        let Some(entry) = self.entries.get_mut(&plugin) else {
            return Vec::new();
        };
        let mut actions = Vec::new();
        match answer {
            _ if update.state == State::Removed => {
                // The files are gone whatever the manager says.
                self.entries.remove(&plugin);
                actions.push(Action::Forget(plugin));
                actions.extend(answer.err().map(Action::Warn));
            }
            Ok(()) => {
                let before = entry.record.clone();
                entry.accepted(update);
                actions.extend(entry.answer_waiting());
                if entry.record != before {
                    actions.push(Action::Remember(plugin, entry.record.clone()));
                }
            }
            Err(reason) => actions.extend(entry.denied(&plugin, update, reason)),
        }
        actions
    }

    /// Asks anew what was refused or failed for reasons outside of the directory.
    pub(crate) fn retry(&mut self) {
        self.entries.values_mut().for_each(Entry::retry);
    }

    /// What is to be done now. Empty when all is as it should be.
    pub(crate) fn decide(&mut self) -> Vec<Action> {
        let mut actions = self.refresh();
        let names: Vec<PluginName> = self.entries.keys().cloned().collect();
        for plugin in &names {
            let entry = self.entries.get(plugin);
            // Of a file that was not read yet nobody knows whether it is another than the pin's.
            if entry.is_some_and(|entry| self.is_arriving(plugin, entry)) {
                continue;
            }
            if let Some(entry) = self.entries.get_mut(plugin) {
                actions.extend(entry.settle_pin(plugin));
            }
        }
        for plugin in &names {
            let Some(entry) = self.entries.get(plugin) else {
                continue;
            };
            if self.is_arriving(plugin, entry) {
                actions.extend(entry.arriving(plugin).map(Box::new).map(Action::Tell));
                continue;
            }
            let conflict = |queues: &BTreeSet<QueueName>| self.conflict(plugin, queues);
            let target = entry.target(plugin, &self.capacity, conflict);
            let Some(entry) = self.entries.get_mut(plugin) else {
                continue;
            };
            for trial in target.trials {
                entry.ask(&trial.key);
                actions.push(Action::Check(Box::new(trial)));
            }
            match target.update {
                Some(update) if entry.is_news(&update) => {
                    actions.push(Action::Tell(Box::new(update)));
                }
                Some(update) if update.state == State::Removed => {
                    // Nobody was told of it; nobody has to be told that it is gone.
                    self.entries.remove(plugin);
                }
                _ => entry.prune(plugin),
            }
        }
        actions
    }

    /// Brings what is wanted of each plugin up to the files.
    fn refresh(&mut self) -> Vec<Action> {
        let derived = candidate::derive(&self.files, &self.restless);
        let mut actions = Vec::new();
        for (file, reason) in &derived.nameless {
            if self.nameless.insert(file.clone()) {
                actions.push(Action::Warn(format!("\"{file}\" is passed over: {reason}")));
            }
        }
        self.nameless
            .retain(|file| derived.nameless.contains_key(file));
        for (plugin, candidate) in &derived.candidates {
            if self.is_restless(plugin, Some(&candidate.file)) {
                continue;
            }
            let records = &mut self.records;
            let entry = self
                .entries
                .entry(plugin.clone())
                .or_insert_with(|| Entry::new(plugin, records.remove(plugin)));
            if entry.wanted.as_ref() != Some(candidate) {
                entry.wanted = Some(candidate.clone());
            }
        }
        for plugin in &derived.arriving {
            let records = &mut self.records;
            self.entries
                .entry(plugin.clone())
                .or_insert_with(|| Entry::new(plugin, records.remove(plugin)));
        }
        let gone: Vec<PluginName> = self.entries.keys().cloned().collect();
        for plugin in gone {
            let file = self
                .entries
                .get(&plugin)
                .and_then(|entry| entry.wanted.as_ref());
            let file = file.map(|wanted| wanted.file.clone());
            let is_there = derived.candidates.contains_key(&plugin);
            if !is_there
                && !self.is_restless(&plugin, file.as_deref())
                && let Some(entry) = self.entries.get_mut(&plugin)
            {
                entry.wanted = None;
            }
        }
        actions
    }

    fn is_restless(&self, plugin: &PluginName, component: Option<&str>) -> bool {
        self.restless.contains(&format!("{plugin}.toml"))
            || self.restless.contains(&format!("{plugin}.wasm"))
            || component.is_some_and(|file| self.restless.contains(file))
    }

    /// Whether the component of a plugin that was never read is there, and not whole yet.
    fn is_arriving(&self, plugin: &PluginName, entry: &Entry) -> bool {
        let is_new = match entry.told.as_ref().map(|told| &told.state) {
            None | Some(State::Missing | State::Compiling) => entry.good.is_none(),
            Some(_) => false,
        };
        let wanted = entry.wanted.as_ref();
        is_new
            && wanted.is_none_or(|wanted| wanted.component == Component::Absent)
            && match wanted {
                Some(wanted) => self.restless.contains(&wanted.file),
                None => self.restless.contains(&format!("{plugin}.wasm")),
            }
    }

    /// Why a plugin cannot have these queues.
    fn conflict(&self, plugin: &PluginName, queues: &BTreeSet<QueueName>) -> Option<String> {
        let own = self.entries.get(plugin)?;
        let file = own
            .wanted
            .as_ref()
            .map(|wanted| wanted.speaker.as_str())
            .unwrap_or_default();
        let others = || self.entries.iter().filter(|(name, _)| *name != plugin);
        for queue in queues.difference(&own.bound) {
            let code = Code::QueueClaimed;
            if let Some((name, other)) = others().find(|(_, other)| other.bound.contains(queue)) {
                let holder = match &other.wanted {
                    Some(wanted) => wanted.speaker.clone(),
                    None => name.to_string(),
                };
                return Some(format!(
                    "\"{file}\" claims queue \"{queue}\", which \"{holder}\" serves; remove one, \
                     or name another queue in its manifest [{code}]"
                ));
            }
            let rival = others().find_map(|(name, other)| {
                let wanted = other.meant(name)?;
                let claims = wanted.queues().contains(queue);
                claims.then(|| wanted.speaker.clone())
            });
            if let Some(rival) = rival {
                return Some(both_claim(file, &rival, queue));
            }
        }
        None
    }

    /// Components whose bytes have to be kept.
    pub(crate) fn components(&self) -> BTreeSet<Digest> {
        let entries = self.entries.values().flat_map(Entry::components).cloned();
        let records = self.records.values().flat_map(|record| {
            let versions = record.versions.iter().map(|version| &version.component);
            versions
                .chain(record.pin.iter().map(|pin| &pin.component))
                .cloned()
        });
        // Also of files whose plugin waits for another file.
        let files = self.files.values().filter_map(|state| match state {
            FileState::Component(digest, _) => Some(digest.clone()),
            FileState::Manifest(_) | FileState::Unreadable(_) => None,
        });
        entries.chain(records).chain(files).collect()
    }

    /// Components that have to stay loaded.
    pub(crate) fn loaded(&self) -> BTreeSet<Digest> {
        let checks = self.entries.values().flat_map(|entry| entry.checks.iter());
        let loaded =
            checks.filter(|(_, check)| matches!(check, Check::Asked { .. } | Check::Passed(_)));
        let serving = self
            .entries
            .values()
            .filter_map(|entry| entry.good.as_ref());
        let serving = serving.map(|good| good.version.component.clone());
        loaded
            .map(|(key, _)| key.component.clone())
            .chain(serving)
            .collect()
    }

    /// Gives up the oldest kept version of the plugin that has most, and then plugins that have
    /// not been seen since the start, for want of disk. `None` when nothing is left to give up.
    pub(crate) fn give_up_oldest(&mut self) -> Option<Action> {
        let entries = self
            .entries
            .iter_mut()
            .filter(|(_, entry)| entry.can_give_up());
        if let Some((plugin, entry)) = entries.max_by_key(|(_, it)| it.record.versions.len()) {
            entry.record.versions.pop();
            return Some(Action::Remember(plugin.clone(), entry.record.clone()));
        }
        let (plugin, _) = self.records.pop_first()?;
        Some(Action::Forget(plugin))
    }
}
