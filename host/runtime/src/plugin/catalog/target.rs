//! What should be told of a plugin now, and what has to be found out first.

use std::collections::BTreeSet;
use std::sync::Arc;

use oncue_core::names::{PluginName, QueueName};

use super::super::manifest::Definitions;
use super::candidate::{Candidate, Capacity, Key, attributes};
use super::entry::{Check, Entry, Good, Passed, Refusal};
use super::{NEXT_VERSION, PINNED, State, Trial, Update, Version};

/// What an entry comes to.
pub(super) struct Target {
    /// What to tell; none: nothing new is known.
    pub(super) update: Option<Update>,
    /// What has to be found out first.
    pub(super) trials: Vec<Trial>,
}

impl Target {
    fn tell(update: Update) -> Self {
        Self {
            update: Some(update),
            trials: Vec::new(),
        }
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
    Pending(Option<Trial>),
    Passed(Good),
    /// Why; with a trial when it is worth another try.
    Failed(String, Option<Trial>),
}

impl Entry {
    /// What to tell of it now. `conflict` is why its claims cannot be met, or those of a version
    /// that would stand in for it.
    pub(super) fn target(
        &self,
        plugin: &PluginName,
        capacity: &Capacity,
        conflict: impl Fn(&BTreeSet<QueueName>) -> Option<String>,
    ) -> Target {
        let Some(wanted) = self.meant(plugin) else {
            return Target::tell(self.update(plugin, State::Removed, None));
        };
        if let Some(reason) = wanted.fault(plugin, capacity) {
            let definitions = wanted
                .definitions
                .as_ref()
                .ok()
                .filter(|_| !plugin.is_reserved());
            let clash = conflict(&wanted.queues()).is_some();
            return self.refused(plugin, reason, definitions.cloned(), clash, &conflict);
        }
        // A candidate without a fault has definitions.
        let definitions = wanted.definitions.clone().unwrap_or_default();
        if let Some(reason) = conflict(&wanted.queues()) {
            return self.refused(plugin, reason, Some(definitions), true, &conflict);
        }
        let Some(key) = self.key(plugin) else {
            let update = self.update(plugin, State::Missing, Some(definitions.clone()));
            return self.unless_refused(plugin, update, definitions, &conflict);
        };
        match self.standing(plugin, &key, &wanted.file, &definitions) {
            Standing::Passed(good) => {
                let state = State::Ready(good.version.clone());
                let mut update = self.update(plugin, state, Some(definitions.clone()));
                update.facts.clone_from(&good.facts);
                let manifest = wanted.packed_fact();
                update
                    .facts
                    .extend(manifest.map(|at| ("manifest".to_owned(), at)));
                if self.is_pinned() {
                    let until = "by a rollback, until the file changes".to_owned();
                    update.facts.push((PINNED.to_owned(), until));
                }
                self.unless_refused(plugin, update, definitions, &conflict)
            }
            Standing::Pending(trial) => {
                let trials = trial.into_iter().collect();
                if self.good.is_some() {
                    return Target {
                        update: self.interim(),
                        trials,
                    };
                }
                let update = self.update(plugin, State::Compiling, Some(definitions.clone()));
                let target = self.unless_refused(plugin, update, definitions, &conflict);
                Target { trials, ..target }
            }
            Standing::Failed(reason, trial) => {
                let definitions = Some(definitions);
                let mut target = self.refused(plugin, reason, definitions, false, &conflict);
                target.trials.extend(trial);
                target
            }
        }
    }

    /// The news that its component comes; its definitions stay until it is whole. `None` when that
    /// was told.
    pub(super) fn arriving(&self, plugin: &PluginName) -> Option<Update> {
        let mut update = self.update(plugin, State::Compiling, None);
        if self.wanted.is_none() {
            update.file = format!("{plugin}.wasm");
        }
        let is_refused = self.refusals.iter().any(|refusal| refusal.update == update);
        (!is_refused && self.is_news(&update)).then_some(update)
    }

    /// What was told last, with the news that another version is being found out.
    fn interim(&self) -> Option<Update> {
        let told = self.told.as_ref();
        let mut update = told.filter(|told| told.state.serving().is_some())?.clone();
        if !update.is_interim {
            update.is_interim = true;
            let fact = (NEXT_VERSION.to_owned(), "is being compiled".to_owned());
            update.facts.push(fact);
        }
        let is_refused = self.refusals.iter().any(|refusal| refusal.update == update);
        (!is_refused).then_some(update)
    }

    /// The update, or what follows from the manager's refusal of it.
    fn unless_refused(
        &self,
        plugin: &PluginName,
        update: Update,
        definitions: Arc<Definitions>,
        conflict: &impl Fn(&BTreeSet<QueueName>) -> Option<String>,
    ) -> Target {
        match self
            .refusals
            .iter()
            .find(|refusal| refusal.update == update)
        {
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
        let mut trials = Vec::new();
        let serving = match &self.good {
            Some(good) => Some(good.clone()),
            None => match self.restore(plugin, conflict, &mut trials) {
                Restored::Serves(good) => Some(good),
                // It stays as it was until it is known whether a kept version can stand in; a
                // plugin of which nothing was told is told of.
                Restored::Pending => {
                    let news = || self.update(plugin, State::Compiling, None);
                    return Target {
                        update: self.told.is_none().then(news),
                        trials,
                    };
                }
                Restored::Nothing => None,
            },
        };
        let (version, told, facts) = match serving {
            Some(good) => (Some(good.version), Some(good.definitions), good.facts),
            None if unbound => {
                let process = definitions
                    .map(|all| all.process.clone())
                    .unwrap_or_default();
                let alone = Definitions {
                    process,
                    queues: Vec::new(),
                };
                (None, Some(Arc::new(alone)), Vec::new())
            }
            None => (None, definitions, Vec::new()),
        };
        let state = State::Quarantined {
            reason,
            serving: version,
        };
        let mut update = self.update(plugin, state, told);
        update.facts = facts;
        let is_refused = self.refusals.iter().any(|refusal| refusal.update == update);
        Target {
            update: (!is_refused).then_some(update),
            trials,
        }
    }

    /// The newest kept version that can stand in for a bad file after a start.
    fn restore(
        &self,
        plugin: &PluginName,
        conflict: &impl Fn(&BTreeSet<QueueName>) -> Option<String>,
        trials: &mut Vec<Trial>,
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
            let key = Key {
                component: component.clone(),
                manifest: kept.manifest.clone(),
            };
            match self.standing(plugin, &key, &kept.file, definitions) {
                Standing::Passed(good) => return Restored::Serves(good),
                Standing::Pending(trial) => {
                    trials.extend(trial);
                    return Restored::Pending;
                }
                Standing::Failed(_, trial) => trials.extend(trial),
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
        let trial = || Trial {
            plugin: plugin.clone(),
            key: key.clone(),
            file: file.to_owned(),
            attributes: attributes(definitions),
        };
        match self.checks.get(key) {
            None => Standing::Pending(Some(trial())),
            Some(Check::Asked { before: None }) => Standing::Pending(None),
            Some(
                Check::Failed(reason)
                | Check::Asked {
                    before: Some(reason),
                },
            ) => Standing::Failed(reason.clone(), None),
            Some(Check::Deferred { reason, is_due }) => {
                Standing::Failed(reason.clone(), is_due.then(trial))
            }
            Some(Check::Passed(Passed { style, facts })) => Standing::Passed(Good {
                key: key.clone(),
                version: Version {
                    component: key.component.clone(),
                    style: *style,
                },
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
            None => self
                .told
                .as_ref()
                .map(|told| told.file.clone())
                .unwrap_or_default(),
        };
        let previous = self.previous(state.serving().map(|version| &version.component));
        Update {
            plugin: plugin.clone(),
            file,
            state,
            definitions,
            previous,
            facts: Vec::new(),
            is_interim: false,
        }
    }
}
