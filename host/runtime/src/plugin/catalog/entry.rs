//! One plugin: what is wanted of it, what serves, what was told of it, and what should be told now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use oncue_core::definition::Style;
use oncue_core::names::{PluginName, QueueName};

use super::super::bounds::KEPT_VERSIONS;
use super::super::digest::Digest;
use super::super::kept::{KeptVersion, Record};
use super::super::manifest::Definitions;
use super::candidate::{Candidate, Capacity, Component, Key, attributes, queues};
use super::{Action, Job, RollbackId, State, Update, Version};

/// Refusals of the manager that are remembered until the next retry.
const MAX_REFUSALS: usize = 4;

/// What is known of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// The workers have it. If it was tried before, why that told nothing.
    Asked { before: Option<String> },
    /// It can be started.
    Passed(Passed),
    /// It never can.
    Failed(String),
    /// The host could not tell, and why; asked again when it is due.
    Deferred { reason: String, is_due: bool },
}

/// What the workers found out of a version that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// How it is called.
    pub(crate) style: Style,
    /// Facts for people.
    pub(crate) facts: Vec<(String, String)>,
}

/// A version that serves or served last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Good {
    pub(super) key: Key,
    pub(super) version: Version,
    pub(super) definitions: Arc<Definitions>,
    pub(super) facts: Vec<(String, String)>,
}

/// An update that the manager did not take.
#[derive(Clone, Debug)]
struct Refusal {
    update: Update,
    reason: String,
}

/// A rollback whose end someone waits for.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) id: RollbackId,
    pub(super) component: Digest,
    /// What to go back to if it fails.
    pub(super) before: Option<super::super::kept::Pin>,
}

#[derive(Debug, Default)]
pub(super) struct Entry {
    /// None: its files are gone.
    pub(super) wanted: Option<Candidate>,
    pub(super) good: Option<Good>,
    pub(super) record: Record,
    pub(super) checks: BTreeMap<Key, Check>,
    /// The last update that the manager took.
    pub(super) told: Option<Update>,
    /// The queues that the manager has bound to it.
    pub(super) bound: BTreeSet<QueueName>,
    pub(super) waiting: Option<Waiting>,
    refusals: Vec<Refusal>,
    /// The manager's last refusal, as it was warned of.
    last_denial: Option<String>,
    /// After a start, a kept version stands in for a bad file.
    may_restore: bool,
}

/// What an entry comes to.
pub(super) struct Target {
    /// What to tell; none: nothing new is known.
    pub(super) update: Option<Update>,
    /// What has to be found out first.
    pub(super) jobs: Vec<Job>,
}

impl Target {
    fn tell(update: Update) -> Self {
        Self { update: Some(update), jobs: Vec::new() }
    }
}

/// What can stand in for a bad file.
enum Restored {
    Serves(Good),
    /// It is being found out.
    Pending,
    Nothing,
}

/// Where the check of a version stands.
enum Standing {
    Pending(Option<Job>),
    Passed(Good),
    /// Why; with a job when it is worth another try.
    Failed(String, Option<Job>),
}

impl Entry {
    /// A plugin that was just seen, with what is remembered of it from before the start. It is
    /// taken for bound to the queues that it had then.
    pub(super) fn new(plugin: &PluginName, record: Option<Record>) -> Self {
        let record = record.unwrap_or_default();
        let last = record.versions.first().map(|version| Candidate::kept(plugin, version));
        Self {
            bound: last.map(|last| last.queues()).unwrap_or_default(),
            may_restore: !record.versions.is_empty(),
            record,
            ..Self::default()
        }
    }

    /// What should serve: the pinned content, or else the file's.
    pub(super) fn key(&self) -> Option<Key> {
        let wanted = self.wanted.as_ref()?;
        let file = wanted.digest()?;
        let pin = self.record.pin.as_ref().filter(|pin| pin.instead_of == *file);
        let component = pin.map_or(file, |pin| &pin.component).clone();
        Some(Key { component, manifest: wanted.manifest.clone() })
    }

    /// Whether a rollback holds for the present file.
    pub(super) fn is_pinned(&self) -> bool {
        let file = self.wanted.as_ref().and_then(Candidate::digest);
        self.record.pin.as_ref().is_some_and(|pin| Some(&pin.instead_of) == file)
    }

    /// What to tell of it now. `conflict` is why its claims cannot be met, or those of a version
    /// that would stand in for it.
    pub(super) fn target(
        &self,
        plugin: &PluginName,
        capacity: &Capacity,
        conflict: impl Fn(&BTreeSet<QueueName>) -> Option<String>,
    ) -> Target {
        let Some(wanted) = &self.wanted else {
            return Target::tell(self.update(plugin, State::Removed, None));
        };
        if let Some(reason) = wanted.fault(plugin, capacity) {
            let definitions = wanted.definitions.as_ref().ok().filter(|_| !plugin.is_reserved());
            let clash = conflict(&wanted.queues()).is_some();
            return self.refused(plugin, reason, definitions.cloned(), clash, &conflict);
        }
        // A candidate without a fault has definitions.
        let definitions = wanted.definitions.clone().unwrap_or_default();
        if let Some(reason) = conflict(&wanted.queues()) {
            return self.refused(plugin, reason, Some(definitions), true, &conflict);
        }
        let Some(key) = self.key() else {
            let update = self.update(plugin, State::Missing, Some(definitions.clone()));
            return self.unless_refused(plugin, update, definitions, &conflict);
        };
        match self.standing(plugin, &key, &wanted.file, &definitions) {
            Standing::Passed(good) => {
                let state = State::Ready(good.version.clone());
                let mut update = self.update(plugin, state, Some(definitions.clone()));
                update.facts.clone_from(&good.facts);
                self.unless_refused(plugin, update, definitions, &conflict)
            }
            Standing::Pending(job) => {
                let jobs = job.into_iter().collect();
                if self.good.is_some() {
                    return Target { update: None, jobs };
                }
                let update = self.update(plugin, State::Compiling, Some(definitions.clone()));
                let target = self.unless_refused(plugin, update, definitions, &conflict);
                Target { jobs, ..target }
            }
            Standing::Failed(reason, job) => {
                let definitions = Some(definitions);
                let mut target = self.refused(plugin, reason, definitions, false, &conflict);
                target.jobs.extend(job);
                target
            }
        }
    }

    /// The update, or what follows from the manager's refusal of it.
    fn unless_refused(
        &self,
        plugin: &PluginName,
        update: Update,
        definitions: Arc<Definitions>,
        conflict: &impl Fn(&BTreeSet<QueueName>) -> Option<String>,
    ) -> Target {
        match self.refusals.iter().find(|refusal| refusal.update == update) {
            None => Target::tell(update),
            Some(Refusal { reason, .. }) => {
                self.refused(plugin, reason.clone(), Some(definitions), true, conflict)
            }
        }
    }

    /// What to tell of a candidate that cannot serve. `unbound`: its claims are not met either.
    fn refused(
        &self,
        plugin: &PluginName,
        reason: String,
        definitions: Option<Arc<Definitions>>,
        unbound: bool,
        conflict: &impl Fn(&BTreeSet<QueueName>) -> Option<String>,
    ) -> Target {
        let mut jobs = Vec::new();
        let serving = match &self.good {
            Some(good) => Some(good.clone()),
            None => match self.restore(plugin, conflict, &mut jobs) {
                Restored::Serves(good) => Some(good),
                // It stays as it was until it is known whether a kept version can stand in.
                Restored::Pending => return Target { update: None, jobs },
                Restored::Nothing => None,
            },
        };
        let (version, told, facts) = match serving {
            Some(good) => (Some(good.version), Some(good.definitions), good.facts),
            None if unbound => {
                let process = definitions.map(|all| all.process.clone()).unwrap_or_default();
                let alone = Definitions { process, queues: Vec::new() };
                (None, Some(Arc::new(alone)), Vec::new())
            }
            None => (None, definitions, Vec::new()),
        };
        let state = State::Quarantined { reason, serving: version };
        let mut update = self.update(plugin, state, told);
        update.facts = facts;
        let is_refused = self.refusals.iter().any(|refusal| refusal.update == update);
        Target { update: (!is_refused).then_some(update), jobs }
    }

    /// The newest kept version that can stand in for a bad file after a start.
    fn restore(
        &self,
        plugin: &PluginName,
        conflict: &impl Fn(&BTreeSet<QueueName>) -> Option<String>,
        jobs: &mut Vec<Job>,
    ) -> Restored {
        if !self.may_restore {
            return Restored::Nothing;
        }
        for version in &self.record.versions {
            let kept = Candidate::kept(plugin, version);
            let (Ok(definitions), Some(component)) = (&kept.definitions, kept.digest()) else {
                continue;
            };
            if conflict(&kept.queues()).is_some() {
                continue;
            }
            let key = Key { component: component.clone(), manifest: kept.manifest.clone() };
            match self.standing(plugin, &key, &kept.file, definitions) {
                Standing::Passed(good) => return Restored::Serves(good),
                Standing::Pending(job) => {
                    jobs.extend(job);
                    return Restored::Pending;
                }
                Standing::Failed(_, job) => jobs.extend(job),
            }
        }
        Restored::Nothing
    }

    fn standing(
        &self,
        plugin: &PluginName,
        key: &Key,
        file: &str,
        definitions: &Arc<Definitions>,
    ) -> Standing {
        let job = || Job {
            plugin: plugin.clone(),
            key: key.clone(),
            file: file.to_owned(),
            attributes: attributes(definitions),
        };
        match self.checks.get(key) {
            None => Standing::Pending(Some(job())),
            Some(Check::Asked { before: None }) => Standing::Pending(None),
            Some(Check::Failed(reason) | Check::Asked { before: Some(reason) }) => {
                Standing::Failed(reason.clone(), None)
            }
            Some(Check::Deferred { reason, is_due }) => {
                Standing::Failed(reason.clone(), is_due.then(job))
            }
            Some(Check::Passed(Passed { style, facts })) => Standing::Passed(Good {
                key: key.clone(),
                version: Version { component: key.component.clone(), style: *style },
                definitions: Arc::clone(definitions),
                facts: facts.clone(),
            }),
        }
    }

    fn update(
        &self,
        plugin: &PluginName,
        state: State,
        definitions: Option<Arc<Definitions>>,
    ) -> Update {
        let file = match &self.wanted {
            Some(wanted) => wanted.file.clone(),
            None => self.told.as_ref().map(|told| told.file.clone()).unwrap_or_default(),
        };
        let previous = self.previous(state.serving().map(|version| &version.component));
        Update { plugin: plugin.clone(), file, state, definitions, previous, facts: Vec::new() }
    }

    /// The versions to which a rollback can go from the one that serves.
    pub(super) fn previous(&self, serving: Option<&Digest>) -> Vec<Digest> {
        let versions = self.record.versions.iter().map(|version| &version.component);
        let digests: Vec<&Digest> = match serving {
            Some(serving) if self.is_pinned() => {
                versions.skip_while(|digest| *digest != serving).skip(1).collect()
            }
            serving => versions.filter(|digest| Some(*digest) != serving).collect(),
        };
        digests.into_iter().take(KEPT_VERSIONS).cloned().collect()
    }

    /// Whether the update says anything new.
    pub(super) fn is_news(&self, update: &Update) -> bool {
        match (&self.told, &update.state) {
            (None, State::Removed) => false,
            (told, _) => told.as_ref() != Some(update),
        }
    }

    /// Takes in that the manager took an update.
    pub(super) fn accepted(&mut self, update: Update) {
        if let Some(definitions) = &update.definitions {
            self.bound = queues(definitions);
        }
        match &update.state {
            State::Ready(version) => {
                let definitions = update.definitions.clone().unwrap_or_default();
                self.good = self.key().map(|key| Good {
                    key,
                    version: version.clone(),
                    definitions,
                    facts: update.facts.clone(),
                });
                self.may_restore = false;
                self.remember(version.component.clone());
            }
            State::Quarantined { serving: Some(version), .. } if self.good.is_none() => {
                self.adopt(version, &update);
            }
            State::Missing => {
                self.good = None;
                self.may_restore = false;
            }
            _ => {}
        }
        self.told = Some(update);
    }

    /// A kept version stands in from now on.
    fn adopt(&mut self, version: &Version, update: &Update) {
        let kept = self.record.versions.iter().find(|kept| kept.component == version.component);
        let manifest = kept.and_then(|kept| kept.manifest.as_ref());
        self.good = Some(Good {
            key: Key {
                component: version.component.clone(),
                manifest: manifest.map(|text| Digest::of(text.as_bytes())),
            },
            version: version.clone(),
            definitions: update.definitions.clone().unwrap_or_default(),
            facts: update.facts.clone(),
        });
    }

    /// Puts a version that serves first among those that were good. A rollback changes no order.
    fn remember(&mut self, component: Digest) {
        self.last_denial = None;
        if self.is_pinned() {
            return;
        }
        let Some(wanted) = &self.wanted else { return };
        let version = KeptVersion {
            component,
            file: wanted.file.clone(),
            manifest: wanted.manifest_text.clone(),
        };
        let versions = &mut self.record.versions;
        versions.retain(|kept| kept.component != version.component);
        versions.insert(0, version);
        versions.truncate(1 + KEPT_VERSIONS);
    }

    /// Takes in that the manager did not take an update.
    pub(super) fn denied(
        &mut self,
        plugin: &PluginName,
        update: Update,
        reason: String,
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        // It is tried again and again; it is said once.
        if self.last_denial.as_ref() != Some(&reason) {
            actions.push(Action::Warn(format!("plugin \"{plugin}\": {reason}")));
            self.last_denial = Some(reason.clone());
        }
        if let State::Ready(version) = &update.state {
            actions.extend(self.waiting_denied(plugin, version, &reason));
        }
        if self.refusals.len() >= MAX_REFUSALS {
            self.refusals.remove(0);
        }
        self.refusals.push(Refusal { update, reason });
        actions
    }

    /// Whether a kept version can be given up: neither the newest nor a pinned one.
    pub(super) fn can_give_up(&self) -> bool {
        let versions = &self.record.versions;
        let last = versions.last().map(|version| &version.component);
        versions.len() > 1 && self.record.pin.as_ref().map(|pin| &pin.component) != last
    }

    /// Forgets what may have changed outside: the manager's refusals, the host's own failures.
    pub(super) fn retry(&mut self) {
        self.refusals.clear();
        for check in self.checks.values_mut() {
            if let Check::Deferred { is_due, .. } = check {
                *is_due = true;
            }
        }
    }

    /// A version is given to the workers.
    pub(super) fn ask(&mut self, key: &Key) {
        let before = match self.checks.remove(key) {
            Some(Check::Deferred { reason, .. }) => Some(reason),
            _ => None,
        };
        self.checks.insert(key.clone(), Check::Asked { before });
    }

    /// Forgets checks of versions that nobody asks for any more.
    pub(super) fn prune(&mut self, plugin: &PluginName) {
        let mut wanted: BTreeSet<Key> = self.key().into_iter().collect();
        wanted.extend(self.good.as_ref().map(|good| good.key.clone()));
        if self.may_restore && self.good.is_none() {
            wanted.extend(self.record.versions.iter().filter_map(|version| {
                let kept = Candidate::kept(plugin, version);
                let component = kept.digest()?.clone();
                Some(Key { component, manifest: kept.manifest })
            }));
        }
        self.checks.retain(|key, _| wanted.contains(key));
    }

    /// The components whose bytes are needed.
    pub(super) fn components(&self) -> impl Iterator<Item = &Digest> {
        let file = self.wanted.iter().filter_map(|wanted| match &wanted.component {
            Component::There(digest) => Some(digest),
            Component::Absent | Component::Unreadable(_) => None,
        });
        let kept = self.record.versions.iter().map(|version| &version.component);
        let pin = self.record.pin.iter().map(|pin| &pin.component);
        let good = self.good.iter().map(|good| &good.version.component);
        file.chain(kept).chain(pin).chain(good)
    }
}
