//! Rollbacks: back to the version before the one that serves, until the file has another content.

use oncue_core::code::Code;
use oncue_core::names::PluginName;

use super::super::kept::Pin;
#[cfg(test)]
use super::super::kept::Record;
use super::candidate::Candidate;
use super::entry::{Check, Entry, Waiting};
use super::{Action, Catalog, RollbackId, State, Version};

impl Catalog {
    /// Pins the version before the one that serves. The answer comes with a later
    /// [`Action::Answer`], once that version serves or cannot.
    pub(crate) fn rollback(&mut self, plugin: &PluginName, id: RollbackId) -> Vec<Action> {
        let refuse = |code: Code, text: String| vec![Action::Answer(id, Err((code, text)))];
        let Some(wanted) = self
            .entries
            .get(plugin)
            .and_then(|entry| entry.wanted.as_ref())
        else {
            let text = format!(
                "plugin \"{plugin}\" is not in the plugins directory; see the list of plugins"
            );
            return refuse(Code::UnknownPlugin, text);
        };
        // Another component cures neither: it would be refused for the same reason.
        let fault = wanted.fault(plugin, &self.capacity);
        if let Some(reason) = fault.or_else(|| self.conflict(plugin, &wanted.queues())) {
            let text = format!("plugin \"{plugin}\" cannot be rolled back: {reason}");
            return refuse(Code::PluginRefused, text);
        }
        let Some(entry) = self.entries.get_mut(plugin) else {
            return Vec::new();
        };
        match entry.pin_previous(plugin, id) {
            Ok(()) => vec![Action::Remember(plugin.clone(), entry.record.clone())],
            Err(text) => refuse(Code::NoPreviousVersion, text),
        }
    }

    /// The record of a rollback could not be written: a rollback that a restart would undo is none.
    pub(crate) fn record_failed(&mut self, plugin: &PluginName, reason: &str) -> Vec<Action> {
        let Some(entry) = self.entries.get_mut(plugin) else {
            return Vec::new();
        };
        let Some(waiting) = entry.waiting.take() else {
            return Vec::new();
        };
        entry.record.pin = waiting.before;
        let text = format!("plugin \"{plugin}\" cannot be rolled back: {reason}");
        vec![Action::Answer(waiting.id, Err((Code::StoreFull, text)))]
    }

    /// What is remembered of a plugin.
    #[cfg(test)]
    pub(super) fn record(&self, plugin: &PluginName) -> Option<&Record> {
        self.entries.get(plugin).map(|entry| &entry.record)
    }
}

impl Entry {
    fn pin_previous(&mut self, plugin: &PluginName, id: RollbackId) -> Result<(), String> {
        if self.waiting.is_some() {
            return Err(format!(
                "plugin \"{plugin}\" is being rolled back already; wait for it"
            ));
        }
        let file = self.wanted.as_ref().and_then(Candidate::digest).cloned();
        let (Some(file), Some(good)) = (file, &self.good) else {
            return Err(format!(
                "plugin \"{plugin}\" serves no version to go back from; drop a good one"
            ));
        };
        let serving = good.version.component.clone();
        let previous = self.previous(Some(&serving));
        let Some(component) = previous.into_iter().next() else {
            return Err(format!(
                "plugin \"{plugin}\" has no good version before {}; drop one",
                serving.short()
            ));
        };
        let pin = Pin {
            component: component.clone(),
            instead_of: file,
        };
        let before = self.record.pin.replace(pin);
        self.waiting = Some(Waiting {
            id,
            component,
            before,
        });
        Ok(())
    }

    /// Ends a pin whose file has changed or whose version cannot be served.
    pub(super) fn settle_pin(&mut self, plugin: &PluginName) -> Vec<Action> {
        let mut actions = Vec::new();
        let Some(pin) = &self.record.pin else {
            return actions;
        };
        let file = self.wanted.as_ref().and_then(Candidate::digest);
        if file.is_some_and(|file| pin.instead_of != *file) || self.wanted.is_none() {
            self.unpin();
            let text = format!("plugin \"{plugin}\": its file changed meanwhile");
            actions.extend(self.give_up(Code::PluginRefused, text));
            actions.push(Action::Remember(plugin.clone(), self.record.clone()));
            return actions;
        }
        let check = self.key(plugin).and_then(|key| self.checks.get(&key));
        if let Some(Check::Failed(reason) | Check::Deferred { reason, .. }) = check {
            let text = format!("plugin \"{plugin}\" cannot be rolled back: {reason}");
            self.record.pin = self
                .waiting
                .as_mut()
                .and_then(|waiting| waiting.before.take());
            actions.push(Action::Warn(text.clone()));
            actions.extend(self.give_up(Code::PluginRefused, text));
            actions.push(Action::Remember(plugin.clone(), self.record.clone()));
        }
        actions
    }

    /// Ends the pin; the version that it held is now the last that was good.
    fn unpin(&mut self) {
        let Some(pin) = self.record.pin.take() else {
            return;
        };
        let versions = &mut self.record.versions;
        if let Some(at) = versions
            .iter()
            .position(|kept| kept.component == pin.component)
        {
            let version = versions.remove(at);
            versions.insert(0, version);
        }
    }

    /// The manager refuses the version that a rollback goes to.
    pub(super) fn waiting_denied(
        &mut self,
        plugin: &PluginName,
        version: &Version,
        reason: &str,
    ) -> Vec<Action> {
        if self
            .waiting
            .as_ref()
            .is_none_or(|it| it.component != version.component)
        {
            return Vec::new();
        }
        self.record.pin = self
            .waiting
            .as_mut()
            .and_then(|waiting| waiting.before.take());
        let text = format!("plugin \"{plugin}\" cannot be rolled back: {reason}");
        let mut actions = vec![Action::Remember(plugin.clone(), self.record.clone())];
        actions.extend(self.give_up(Code::PluginRefused, text));
        actions
    }

    fn give_up(&mut self, code: Code, text: String) -> Option<Action> {
        let waiting = self.waiting.take()?;
        Some(Action::Answer(waiting.id, Err((code, text))))
    }

    /// The answer to a rollback, once the manager has taken what follows from it.
    pub(super) fn answer_waiting(&mut self) -> Option<Action> {
        let (waiting, told) = (self.waiting.as_ref()?, self.told.as_ref()?);
        match &told.state {
            State::Ready(version) if version.component == waiting.component => {
                let waiting = self.waiting.take()?;
                Some(Action::Answer(waiting.id, Ok(waiting.component)))
            }
            // The candidate as a whole is refused, for instance for its manifest.
            State::Quarantined { reason, .. } => {
                let text = reason.clone();
                self.record.pin = self
                    .waiting
                    .as_mut()
                    .and_then(|waiting| waiting.before.take());
                self.give_up(Code::PluginRefused, text)
            }
            _ => None,
        }
    }
}
