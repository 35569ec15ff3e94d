//! The plugins directory without a directory: settled files, scripted checks, a scripted manager.

use std::collections::{BTreeMap, BTreeSet};

use oncue_core::admission::Demand;
use oncue_core::definition::Style;

use super::super::kept::Record;
use super::*;

mod claims;
mod dropping;
mod packed;
mod versions;

/// A host with one plugins directory.
struct Host {
    catalog: Catalog,
    /// What the disk remembers.
    records: BTreeMap<PluginName, Record>,
    /// Trials that nobody has done yet.
    trials: Vec<Trial>,
    /// What the manager took, by plugin.
    told: BTreeMap<PluginName, Update>,
    /// What the manager was told in all.
    updates: Vec<String>,
    /// What the manager refuses, by plugin.
    refusals: BTreeMap<PluginName, String>,
    answers: Vec<(RollbackId, Result<Digest, String>)>,
    warnings: Vec<String>,
}

const CAPACITY: Capacity = Capacity {
    total: Demand {
        memory: 1 << 30,
        fuel: 20_000_000_000,
    },
    table_elements: 100_000,
};

fn name(text: &str) -> PluginName {
    PluginName::new(text).expect("a name")
}

impl Host {
    fn new() -> Self {
        Self::after_restart(BTreeMap::new())
    }

    fn after_restart(records: BTreeMap<PluginName, Record>) -> Self {
        Self {
            catalog: Catalog::new(CAPACITY, records.clone()),
            records,
            trials: Vec::new(),
            told: BTreeMap::new(),
            updates: Vec::new(),
            refusals: BTreeMap::new(),
            answers: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Files settle: components by their text, manifests by theirs, `-` for gone. In a component's
    /// text an embedded manifest follows after `|`.
    fn files(&mut self, files: &[(&str, &str)]) {
        for (file, text) in files {
            let state = match (*text, file.strip_suffix(".toml")) {
                ("-", _) => None,
                ("unreadable", _) => Some(FileState::Unreadable("cannot be opened".to_owned())),
                (text, Some(stem)) => {
                    let manifest = ManifestFile::read(text.as_bytes(), file, &name(stem));
                    Some(FileState::Manifest(Arc::new(manifest)))
                }
                (text, None) => {
                    let embedded = text.split_once('|').map(|(_, manifest)| {
                        let stem = file.trim_end_matches(".wasm");
                        let speaker = super::super::packed::speaker(file);
                        ManifestFile::read(manifest.as_bytes(), &speaker, &name(stem))
                    });
                    let digest = Digest::of(text.as_bytes());
                    Some(FileState::Component(digest, embedded.map(Arc::new)))
                }
            };
            self.catalog.settled(file, state);
        }
        self.turn();
    }

    /// Decides until there is nothing to do, without doing any trial.
    fn turn(&mut self) {
        for _ in 0..20 {
            let actions = self.catalog.decide();
            if actions.is_empty() {
                return;
            }
            self.perform(actions);
        }
        panic!("it does not come to rest: {:?}", self.updates);
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Check(trial) => self.trials.push(*trial),
                Action::Tell(update) => {
                    let answer = match self.refusals.get(&update.plugin) {
                        Some(reason)
                            if !matches!(
                                update.state,
                                State::Quarantined { .. } | State::Removed
                            ) =>
                        {
                            Err(reason.clone())
                        }
                        _ => Ok(()),
                    };
                    if answer.is_ok() {
                        self.updates
                            .push(format!("{} {}", update.plugin, word(&update.state)));
                        if update.state == State::Removed {
                            self.told.remove(&update.plugin);
                        } else {
                            self.told.insert(update.plugin.clone(), (*update).clone());
                        }
                    }
                    let after = self.catalog.told(*update, answer);
                    self.perform(after);
                }
                Action::Remember(plugin, record) => {
                    self.records.insert(plugin, record);
                }
                Action::Forget(plugin) => {
                    self.records.remove(&plugin);
                }
                Action::Answer(id, result) => {
                    let result = result.map_err(|(code, text)| format!("{text} [{code}]"));
                    self.answers.push((id, result));
                }
                Action::Warn(text) => self.warnings.push(text),
            }
        }
    }

    /// Does all trials: a component whose text starts with `bad` is refused, with `late` the host
    /// fails, all others are good.
    fn work(&mut self, texts: &[&str]) {
        let known: BTreeMap<Digest, &str> = texts
            .iter()
            .map(|text| (Digest::of(text.as_bytes()), *text))
            .collect();
        while !self.trials.is_empty() {
            for trial in std::mem::take(&mut self.trials) {
                assert!(self.catalog.awaits(&trial.plugin, &trial.key));
                let text = known.get(&trial.key.component).copied().unwrap_or("good");
                let result = if text.starts_with("bad") {
                    Err(NotPassed::Refused(format!(
                        "\"{}\" is {text} [plugin-refused]",
                        trial.file
                    )))
                } else if text.starts_with("late") {
                    Err(NotPassed::Host("no room".to_owned()))
                } else {
                    Ok(Passed {
                        style: Style::Message,
                        facts: Vec::new(),
                    })
                };
                self.catalog.checked(&trial.plugin, trial.key, result);
            }
            self.turn();
        }
    }

    /// Demands the state of a plugin as the manager has it: `ready TEXT`, `quarantined`,
    /// `quarantined TEXT` (TEXT serves), `compiling`, `missing`, `none`.
    fn check(&self, plugin: &str, wanted: &str) {
        let got = self
            .told
            .get(&name(plugin))
            .map_or("none".to_owned(), |update| {
                let word = word(&update.state);
                match update.state.serving() {
                    Some(version) => format!("{word} {}", version.component.short()),
                    None => word.to_owned(),
                }
            });
        let wanted = match wanted.split_once(' ') {
            Some((word, text)) => format!("{word} {}", Digest::of(text.as_bytes()).short()),
            None => wanted.to_owned(),
        };
        assert_eq!(
            got,
            wanted,
            "plugin {plugin}: {:#?}",
            self.told.get(&name(plugin))
        );
    }

    fn reason(&self, plugin: &str) -> &str {
        match self.told.get(&name(plugin)).map(|update| &update.state) {
            Some(State::Quarantined { reason, .. }) => reason,
            other => panic!("{plugin} is not quarantined but {other:?}"),
        }
    }

    /// The queues that the manager has bound to a plugin by its last update.
    fn queues(&self, plugin: &str) -> Vec<String> {
        let update = self.told.get(&name(plugin)).expect("told of");
        let definitions = update.definitions.as_ref().expect("definitions");
        definitions
            .queues
            .iter()
            .map(|(queue, _)| queue.to_string())
            .collect()
    }
}

fn word(state: &State) -> &'static str {
    match state {
        State::Compiling => "compiling",
        State::Ready(_) => "ready",
        State::Quarantined { .. } => "quarantined",
        State::Missing => "missing",
        State::Removed => "removed",
    }
}
