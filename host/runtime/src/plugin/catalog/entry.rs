//! One plugin: what is wanted of it, what serves, what was told of it, and what should be told now.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use oncue_core::definition::Style;
use oncue_core::names::{PluginName, QueueName};

use super::super::bounds::KEPT_VERSIONS;
use super::super::digest::Digest;
use super::super::kept::{KeptVersion, Pin, Record};
use super::super::manifest::Definitions;
use super::candidate::{Candidate, Component, Key, queues};
use super::{Action, PINNED, RollbackId, State, Update, Version};

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
pub(super) struct Refusal {
    pub(super) update: Update,
    pub(super) reason: String,
}

/// A rollback whose end someone waits for.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) id: RollbackId,
    pub(super) component: Digest,
    /// What to go back to if it fails.
    pub(super) before: Option<Pin>,
}

/// Facts of a version itself, whatever holds it.
fn lasting(facts: &[(String, String)]) -> Vec<(String, String)> {
    let lasts = |fact: &&(String, String)| fact.0 != PINNED;
    facts.iter().filter(lasts).cloned().collect()
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
    pub(super) refusals: Vec<Refusal>,
    /// The manager's last refusal, as it was warned of.
    last_denial: Option<String>,
    /// After a start, a kept version stands in for a bad file.
    pub(super) may_restore: bool,
}

impl Entry {
    /// A plugin that was just seen, with what is remembered of it from before the start. It is
    /// taken for bound to the queues that it had then.
    pub(super) fn new(plugin: &PluginName, record: Option<Record>) -> Self {
        let record = record.unwrap_or_default();
        let last = record
            .versions
            .first()
            .map(|version| Candidate::kept(plugin, version));
        Self {
            bound: last.map(|last| last.queues()).unwrap_or_default(),
            may_restore: !record.versions.is_empty(),
            record,
            ..Self::default()
        }
    }

    /// What should serve: the pinned content, or else the file's.
    pub(super) fn key(&self, plugin: &PluginName) -> Option<Key> {
        let wanted = self.meant(plugin)?;
        let component = match self.pin() {
            Some(pin) => pin.component.clone(),
            None => wanted.digest()?.clone(),
        };
        Some(Key {
            component,
            manifest: wanted.manifest.clone(),
        })
    }

    /// What is wanted, with the manifest that is embedded in a pinned version instead of the
    /// file's.
    pub(super) fn meant(&self, plugin: &PluginName) -> Option<Cow<'_, Candidate>> {
        let wanted = self.wanted.as_ref()?;
        let pinned = self.pin().and_then(|pin| {
            let mut versions = self.record.versions.iter();
            versions.find(|version| version.component == pin.component)
        });
        Some(match pinned {
            Some(version) => wanted.with_version(plugin, version),
            None => Cow::Borrowed(wanted),
        })
    }

    /// The rollback that holds for the present file.
    fn pin(&self) -> Option<&Pin> {
        let file = self.wanted.as_ref().and_then(Candidate::digest)?;
        let pin = self.record.pin.as_ref();
        pin.filter(|pin| pin.instead_of == *file)
    }

    /// Whether a rollback holds for the present file.
    pub(super) fn is_pinned(&self) -> bool {
        self.pin().is_some()
    }

    /// The versions to which a rollback can go from the one that serves.
    pub(super) fn previous(&self, serving: Option<&Digest>) -> Vec<Digest> {
        let versions = self
            .record
            .versions
            .iter()
            .map(|version| &version.component);
        let digests: Vec<&Digest> = match serving {
            Some(serving) if self.is_pinned() => versions
                .skip_while(|digest| *digest != serving)
                .skip(1)
                .collect(),
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
            _ if update.is_interim => {}
            State::Ready(version) => {
                let definitions = update.definitions.clone().unwrap_or_default();
                self.good = self.key(&update.plugin).map(|key| Good {
                    key,
                    version: version.clone(),
                    definitions,
                    facts: lasting(&update.facts),
                });
                self.may_restore = false;
                self.remember(version.component.clone());
            }
            State::Quarantined {
                serving: Some(version),
                ..
            } if self.good.is_none() => {
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
        let kept = self
            .record
            .versions
            .iter()
            .find(|kept| kept.component == version.component);
        let kept = kept.map(|kept| Candidate::kept(&update.plugin, kept));
        self.good = Some(Good {
            key: Key {
                component: version.component.clone(),
                manifest: kept.and_then(|kept| kept.manifest),
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
            embedded: wanted.embedded_text.clone(),
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
        let mut wanted: BTreeSet<Key> = self.key(plugin).into_iter().collect();
        wanted.extend(self.good.as_ref().map(|good| good.key.clone()));
        if self.may_restore && self.good.is_none() {
            wanted.extend(self.record.versions.iter().filter_map(|version| {
                let kept = Candidate::kept(plugin, version);
                let component = kept.digest()?.clone();
                Some(Key {
                    component,
                    manifest: kept.manifest,
                })
            }));
        }
        self.checks.retain(|key, _| wanted.contains(key));
    }

    /// The components whose bytes are needed.
    pub(super) fn components(&self) -> impl Iterator<Item = &Digest> {
        let file = self
            .wanted
            .iter()
            .filter_map(|wanted| match &wanted.component {
                Component::There(digest) => Some(digest),
                Component::Absent | Component::Unreadable(_) => None,
            });
        let kept = self
            .record
            .versions
            .iter()
            .map(|version| &version.component);
        let pin = self.record.pin.iter().map(|pin| &pin.component);
        let good = self.good.iter().map(|good| &good.version.component);
        file.chain(kept).chain(pin).chain(good)
    }
}
