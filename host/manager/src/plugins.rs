//! What a plugin's change does to processes, queues and running tasks.

use std::sync::Arc;

use oncue_core::definition::{Change, ProcessDefinition, QueueDefinition, QueuePatch, Raw};
use oncue_core::names::{ProcessName, QueueName};
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{RecordChange, RecordKind};

use crate::main_loop::Manager;
use crate::reload::{PluginDefinitions, PluginRefusal, PluginState, PluginUpdate};
use crate::status::HostEvent;

impl Manager {
    /// Applies a plugin's update: definitions first, durably, then the component.
    pub(crate) fn plugin_changed(
        &mut self,
        mut update: PluginUpdate,
        now: Timestamp,
    ) -> Result<(), PluginRefusal> {
        let process = ProcessName::from(&update.name);
        if update.state == PluginState::Removed {
            return self.plugin_removed(&update, &process, now);
        }
        match &update.definitions {
            Some(definitions) => self.apply_definitions(&update, &process, definitions)?,
            // A bad drop over a good version: what was defined stays.
            None => {
                let known = self.plugins.get(&update.name);
                update.definitions = known.and_then(|known| known.definitions.clone());
            }
        }
        let before = self
            .plugins
            .get(&update.name)
            .and_then(|known| known.state.serving().cloned());
        let changed = before.is_some() && before.as_ref() != update.state.serving();
        let was_compiling = self
            .plugins
            .get(&update.name)
            .is_some_and(|known| known.state == PluginState::Compiling);
        if !(was_compiling && update.state == PluginState::Compiling) {
            self.tell_plugin(&update, now);
        }
        let name = update.name.clone();
        self.plugins.insert(name.clone(), update);
        self.judge_plugin(&name, now);
        if changed {
            self.stop_tasks(|running| running.process == process);
        }
        self.after_plugin_change();
        Ok(())
    }

    fn plugin_removed(
        &mut self,
        update: &PluginUpdate,
        process: &ProcessName,
        now: Timestamp,
    ) -> Result<(), PluginRefusal> {
        // Its process goes, with what an operator laid over it kept for the next drop; its queues
        // stay.
        let known = self.processes.get(process);
        let overlay = known.map(|entry| entry.definition.overlay.clone());
        if self.plugins.remove(&update.name).is_none() && overlay.is_none() {
            return Ok(());
        }
        let left = ProcessDefinition {
            overlay: overlay.unwrap_or_default(),
            ..ProcessDefinition::default()
        };
        let refused = |error: crate::error::ApiError| PluginRefusal(error.message);
        if left == ProcessDefinition::default() {
            let name = process.to_string();
            let record = RecordChange {
                kind: RecordKind::Process,
                name,
                value: None,
            };
            self.write_rows(vec![record]).map_err(refused)?;
            self.processes.remove(process);
        } else {
            self.redefine_process(process, left).map_err(refused)?;
        }
        self.stop_tasks(|running| running.process == *process);
        self.tell_plugin(update, now);
        self.judge_plugin(&update.name, now);
        self.after_plugin_change();
        Ok(())
    }

    /// Components may have come, gone or changed: every queue that a process binds is asked.
    fn after_plugin_change(&mut self) {
        self.refresh_components();
        for entry in self.queues.iter_mut() {
            if entry.attributes.process.is_some() {
                entry.gate.cure();
                if !entry.is_idle() {
                    self.ready.push(&entry.name);
                }
            }
        }
    }

    fn tell_plugin(&self, update: &PluginUpdate, now: Timestamp) {
        // That the next version is compiled is no news of the one that serves.
        let state = if update.awaits_next() {
            PluginState::Compiling.as_str()
        } else {
            update.state.as_str()
        };
        let digest = update.state.serving().map(|version| version.digest.clone());
        let plugin = &update.name;
        let reason = match &update.state {
            PluginState::Quarantined { reason, .. } if !update.awaits_next() => {
                tracing::warn!(%plugin, %reason, "plugin quarantined");
                Some(reason.clone())
            }
            _ => {
                tracing::info!(%plugin, state, digest, "plugin");
                None
            }
        };
        self.shared.tell(|| HostEvent::Plugin {
            name: plugin.to_string(),
            state,
            digest,
            reason,
            time: now,
        });
    }

    /// The plugins directory has been read for the first time: what it has not told of is not
    /// there.
    pub(crate) fn plugins_read(&mut self) {
        if std::mem::take(&mut self.plugins_awaited) {
            self.after_plugin_change();
        }
    }

    fn apply_definitions(
        &mut self,
        update: &PluginUpdate,
        process: &ProcessName,
        definitions: &PluginDefinitions,
    ) -> Result<(), PluginRefusal> {
        self.check_claims(update, process, definitions)?;
        let refused = |error: crate::error::ApiError| PluginRefusal(error.message);
        let known = self.processes.get(process);
        let overlay = known
            .map(|entry| entry.definition.overlay.clone())
            .unwrap_or_default();
        let definition = ProcessDefinition {
            base: Arc::new(definitions.process.clone()),
            overlay,
        };
        let faults = definition.check();
        if !faults.is_empty() {
            let listed: Vec<String> = faults.iter().map(ToString::to_string).collect();
            return Err(PluginRefusal(format!(
                "process \"{process}\" is not valid: {}",
                listed.join("; ")
            )));
        }
        if known.is_none_or(|entry| entry.definition != definition) {
            self.redefine_process(process, definition)
                .map_err(refused)?;
        }
        let mut new = Vec::new();
        for (queue, patch) in &definitions.queues {
            let base = Arc::new(bound(patch, process));
            match self.queues.get(queue) {
                Some(entry) => {
                    let overlay = entry.definition.overlay.clone();
                    let definition = QueueDefinition { base, overlay };
                    self.redefine_queue(queue, definition).map_err(refused)?;
                }
                None => {
                    let definition = QueueDefinition {
                        base,
                        ..QueueDefinition::default()
                    };
                    new.push((queue.clone(), definition));
                }
            }
        }
        if !new.is_empty() {
            self.make_queues(new).map_err(refused)?;
        }
        self.unbind_left_out(process, definitions).map_err(refused)
    }

    /// A queue that the manifest no longer names stays, unbound.
    fn unbind_left_out(
        &mut self,
        process: &ProcessName,
        definitions: &PluginDefinitions,
    ) -> Result<(), crate::error::ApiError> {
        let left: Vec<QueueName> = self
            .queues
            .iter()
            .filter(|entry| {
                let base = &entry.definition.base;
                matches!(&base.process, Some(Change::Set(Some(bound))) if bound == process)
                    && !definitions
                        .queues
                        .iter()
                        .any(|(name, _)| *name == entry.name)
            })
            .map(|entry| entry.name.clone())
            .collect();
        for name in left {
            let overlay = self.queues.get(&name).map(|e| e.definition.overlay.clone());
            let definition = QueueDefinition {
                overlay: overlay.unwrap_or_default(),
                ..Default::default()
            };
            self.redefine_queue(&name, definition)?;
        }
        Ok(())
    }

    /// Two plugins that claim one queue: the one that is bound goes on, the other is refused.
    fn check_claims(
        &self,
        update: &PluginUpdate,
        process: &ProcessName,
        definitions: &PluginDefinitions,
    ) -> Result<(), PluginRefusal> {
        for (queue, patch) in &definitions.queues {
            if queue.is_reserved() {
                return Err(PluginRefusal(format!(
                    "queue \"{queue}\" is the queue manager's own; bind another [reserved-name]"
                )));
            }
            let definition = QueueDefinition {
                base: Arc::new(bound(patch, process)),
                overlay: self
                    .queues
                    .get(queue)
                    .map(|entry| entry.definition.overlay.clone())
                    .unwrap_or_default(),
            };
            let mut faults = definition.check_for(queue);
            faults.extend(self.backout_circle(queue, &definition));
            if !faults.is_empty() {
                let listed: Vec<String> = faults.iter().map(ToString::to_string).collect();
                return Err(PluginRefusal(format!(
                    "queue \"{queue}\" is not valid: {}",
                    listed.join("; ")
                )));
            }
            let holder = self.plugins.values().find(|other| {
                other.name != update.name
                    && other
                        .definitions
                        .iter()
                        .any(|d| d.queues.iter().any(|(name, _)| name == queue))
            });
            if let Some(holder) = holder {
                return Err(PluginRefusal(format!(
                    "queue \"{queue}\" is claimed by {} and by {}; {} goes on with it, remove the \
                     queue from one of the manifests",
                    holder.file, update.file, holder.file
                )));
            }
        }
        Ok(())
    }

    /// The plugin whose component a process definition names: the plugin of its own name, else the
    /// one whose file it is.
    pub(crate) fn plugin_of(&self, process: &ProcessName) -> Option<&PluginUpdate> {
        let own = self
            .plugins
            .iter()
            .find(|(name, _)| name.as_str() == process.as_str());
        if let Some((_, update)) = own {
            return Some(update);
        }
        let component = self
            .processes
            .get(process)?
            .attributes
            .component_for(process);
        self.plugins.values().find(|update| {
            let file = std::path::Path::new(&update.file);
            file.file_name()
                .is_some_and(|name| name == component.as_str())
        })
    }
}

/// A manifest's patch for a queue, with the binding that the manifest means.
fn bound(patch: &QueuePatch, process: &ProcessName) -> QueuePatch {
    let binding = Raw::Table(vec![("process".to_owned(), Raw::Text(process.to_string()))]);
    let binding = QueuePatch::parse(&binding).expect("a process name is a valid binding");
    let mut bound = binding;
    oncue_core::definition::Patch::merge(&mut bound, patch);
    bound
}
