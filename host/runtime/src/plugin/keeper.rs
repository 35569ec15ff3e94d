//! The directory's own hands: looks, reads what has settled, and performs what the catalog decides.
//!
//! It has no thread and no clock; `directory` gives it both, and tests drive it by hand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use oncue_core::code::Code;
use oncue_core::names::PluginName;
use tracing::{debug, info, warn};

use super::bounds::{MAX_KEPT_BYTES, MAX_ROUNDS};
use super::catalog::{
    Action, Capacity, Catalog, FileState, ManifestFile, NotPassed, Passed, RollbackId, Trial,
    Update,
};
use super::digest::Digest;
use super::kept::{Kept, Source};
use super::scan::{self, Content, Kind, Look, classify};
use super::settle::{Moment, Settler};
use super::signatures::PluginKeys;

/// How a rollback is answered.
pub(crate) type Answer = Box<dyn FnOnce(Result<Digest, (Code, String)>) + Send>;

/// Looks after one plugins directory.
pub(crate) struct Keeper<T> {
    directory: PathBuf,
    settler: Settler,
    catalog: Catalog,
    kept: Kept,
    /// Tells the manager, and waits for its answer.
    tell: T,
    /// Takes a component out of those that can be started.
    unload: Box<dyn FnMut(&Digest) + Send>,
    trials: VecDeque<Trial>,
    /// Components that trials have loaded.
    loaded: BTreeSet<Digest>,
    /// Components whose bytes are kept; none: not cleaned up since the start.
    components: Option<BTreeSet<Digest>>,
    /// Files that could not be read; tried again at each retry.
    unreadable: BTreeSet<String>,
    rollbacks: BTreeMap<RollbackId, Answer>,
    next_rollback: RollbackId,
    /// Why the directory could not be looked at the last time.
    blind: Option<String>,
    passed_over: usize,
    keys: PluginKeys,
}

impl<T: AsyncFnMut(Update) -> Result<(), String>> Keeper<T> {
    /// Takes over a directory. Nothing is looked at yet.
    pub(crate) fn new(
        directory: PathBuf,
        kept: PathBuf,
        settle: Duration,
        capacity: Capacity,
        tell: T,
        unload: Box<dyn FnMut(&Digest) + Send>,
    ) -> Self {
        let kept = Kept::open(kept);
        let records = kept.read_records();
        Self {
            directory,
            settler: Settler::new(settle),
            catalog: Catalog::new(capacity, records),
            kept,
            tell,
            unload,
            trials: VecDeque::new(),
            loaded: BTreeSet::new(),
            components: None,
            unreadable: BTreeSet::new(),
            rollbacks: BTreeMap::new(),
            next_rollback: 1,
            blind: None,
            passed_over: 0,
            keys: PluginKeys::default(),
        }
    }

    /// Takes only what one of these keys has signed.
    pub(crate) fn with_keys(mut self, keys: PluginKeys) -> Self {
        self.keys = keys;
        self
    }

    /// Looks at the directory once, and does what follows.
    pub(crate) async fn look(&mut self, now: Moment) {
        let listing = match scan::list(&self.directory, !self.keys.is_empty()) {
            Ok(listing) => listing,
            Err(error) => {
                // Not "all files are gone": a mount may be away for a moment.
                let text = error.to_string();
                if self.blind.as_ref() != Some(&text) {
                    let directory = self.directory.display();
                    warn!("\"{directory}\" cannot be read ({text}); its plugins stay as they are");
                    self.blind = Some(text);
                }
                return;
            }
        };
        if self.blind.take().is_some() {
            info!("\"{}\" can be read again", self.directory.display());
        }
        if listing.passed_over > self.passed_over {
            let count = listing.passed_over;
            warn!(
                "{count} files of \"{}\" are passed over",
                self.directory.display()
            );
        }
        self.passed_over = listing.passed_over;
        let round = self.settler.look(&listing.files, now);
        for file in round.slow {
            warn!("\"{file}\" is still being written; it is loaded once it rests");
        }
        for file in round.recovered {
            info!("\"{file}\" is whole now");
        }
        for (file, look) in round.settled {
            self.read(&file, look, now);
        }
        self.catalog.set_restless(self.settler.restless());
        self.turn().await;
    }

    /// Reads a file that has settled.
    fn read(&mut self, file: &str, look: Option<Look>, now: Moment) {
        self.unreadable.remove(file);
        let state = match look {
            None => None,
            Some(Look::Unreadable(reason)) => Some(Err(format!(
                "cannot be looked at ({reason}); see its permissions"
            ))),
            Some(Look::File(print)) => {
                let Some((stem, kind)) = classify(file) else {
                    return;
                };
                match scan::read(&self.directory.join(file), &print, kind.max_bytes()) {
                    Ok(Content::Changed) => {
                        self.settler.disturb(file, now);
                        return;
                    }
                    Ok(Content::Bytes(bytes)) => Some(self.take(file, stem, kind, bytes)),
                    Err(error) => Some(Err(format!("cannot be read: it {error}"))),
                }
            }
        };
        let state = state.map(|state| {
            state.unwrap_or_else(|reason| {
                self.unreadable.insert(file.to_owned());
                FileState::Unreadable(reason)
            })
        });
        self.catalog.settled(file, state);
    }

    fn take(
        &mut self,
        file: &str,
        stem: &str,
        kind: Kind,
        bytes: Vec<u8>,
    ) -> Result<FileState, String> {
        let signature = self.keys.check(&self.directory.join(file), &bytes)?;
        match kind {
            Kind::Component => {
                let embedded = ManifestFile::embedded(&bytes, file);
                let digest = self.kept.keep(bytes)?;
                if let Some(signature) = signature {
                    self.kept.keep_signature(&digest, &signature)?;
                }
                Ok(FileState::Component(digest, embedded))
            }
            Kind::Manifest => {
                // A name that no plugin can have is warned of by the catalog.
                let plugin = PluginName::new(stem).map_err(|error| error.to_string())?;
                let manifest = ManifestFile::read(&bytes, file, &plugin);
                Ok(FileState::Manifest(Arc::new(manifest)))
            }
        }
    }

    /// Tries again what failed for reasons outside of the directory.
    pub(crate) async fn retry(&mut self, now: Moment) {
        for file in &self.unreadable {
            self.settler.disturb(file, now);
        }
        self.catalog.retry();
        self.turn().await;
    }

    /// When the next look can settle something.
    pub(crate) fn next_look(&self) -> Option<Moment> {
        self.settler.next()
    }

    /// The next trial whose result is still waited for.
    pub(crate) fn next_trial(&mut self) -> Option<(Trial, Source)> {
        while let Some(trial) = self.trials.pop_front() {
            if self.catalog.awaits(&trial.plugin, &trial.key) {
                let source = self.kept.source(&trial.key.component);
                return Some((trial, source));
            }
        }
        None
    }

    /// Whether every file has settled, and what it makes was told.
    pub(crate) fn has_settled(&self) -> bool {
        self.settler.next().is_none()
    }

    /// Whether there is nothing to wait for: every file has settled, every trial is given out.
    pub(crate) fn is_quiet(&self) -> bool {
        self.trials.is_empty() && self.has_settled()
    }

    /// Takes in a trial's result.
    pub(crate) async fn checked(
        &mut self,
        trial: Trial,
        result: Result<Passed, NotPassed>,
        now: Moment,
    ) {
        match &result {
            Ok(_) => {
                self.loaded.insert(trial.key.component.clone());
            }
            Err(NotPassed::Host(reason)) => {
                debug!("plugin \"{}\" is tried again later: {reason}", trial.plugin);
                // Its kept copy may be damaged: the file is read anew.
                self.settler.disturb(&trial.file, now);
            }
            Err(NotPassed::Refused(_)) => {}
        }
        self.catalog.checked(&trial.plugin, trial.key, result);
        self.turn().await;
    }

    /// Rolls a plugin back; answered when the version before serves, or cannot.
    pub(crate) async fn roll_back(&mut self, plugin: &PluginName, answer: Answer) {
        let id = self.next_rollback;
        self.next_rollback += 1;
        self.rollbacks.insert(id, answer);
        let actions = self.catalog.rollback(plugin, id);
        self.perform(actions).await;
        self.turn().await;
    }

    /// Decides and performs until all is as it should be.
    async fn turn(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let actions = self.catalog.decide();
            if actions.is_empty() {
                break;
            }
            self.perform(actions).await;
        }
        self.clean_up();
    }

    async fn perform(&mut self, actions: Vec<Action>) {
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            match action {
                Action::Check(trial) => self.trials.push_back(*trial),
                Action::Tell(update) => {
                    let answer = (self.tell)((*update).clone()).await;
                    actions.extend(self.catalog.told(*update, answer));
                }
                Action::Remember(plugin, record) => {
                    if let Err(error) = self.kept.write_record(&plugin, &record) {
                        let reason = format!("its record cannot be written ({error})");
                        warn!("plugin \"{plugin}\": {reason}; versions are not kept for now");
                        actions.extend(self.catalog.record_failed(&plugin, &reason));
                    }
                    actions.extend(self.give_up());
                }
                Action::Forget(plugin) => {
                    if let Err(error) = self.kept.remove_record(&plugin) {
                        warn!("plugin \"{plugin}\": its record cannot be removed ({error})");
                    }
                }
                Action::Answer(id, result) => {
                    if let Some(answer) = self.rollbacks.remove(&id) {
                        answer(result);
                    }
                }
                Action::Warn(text) => warn!("{text}"),
            }
        }
    }

    /// Gives up old versions while all of them together take too much disk.
    fn give_up(&mut self) -> Option<Action> {
        let components = self.catalog.components();
        let total: u64 = components.iter().map(|digest| self.kept.size(digest)).sum();
        if total <= MAX_KEPT_BYTES {
            None
        } else {
            self.catalog.give_up_oldest()
        }
    }

    /// Lets go of components that nobody needs any more.
    fn clean_up(&mut self) {
        let wanted = self.catalog.loaded();
        for digest in self
            .loaded
            .iter()
            .filter(|digest| !wanted.contains(*digest))
        {
            (self.unload)(digest);
        }
        self.loaded.retain(|digest| wanted.contains(digest));
        let components = self.catalog.components();
        if self.components.as_ref() != Some(&components) {
            self.kept.collect(&components);
            self.components = Some(components);
        }
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
