//! Every call that the plugins directory makes to the sandbox and to the manager, in one place.

use std::path::Path;
use std::sync::Arc;

use oncue_core::definition::{ProcessAttributes, Style};
use oncue_core::names::PluginName;
use oncue_core::quantity::format_bytes;
use oncue_manager::reload::{PluginDefinitions, PluginState, PluginUpdate};
use oncue_manager::tasks::ComponentVersion;

use super::catalog::{NotPassed, State, Update, Version};
use super::digest::Digest;
use crate::engine::{self, Loaded, Sandbox, Smoked};
use crate::error::PluginError;

/// Names the engine that this build compiles for, 64 hexadecimal digits.
pub(crate) fn compatibility() -> Result<String, PluginError> {
    engine::compile_compatibility()
}

/// Compiles in this process.
pub(crate) fn precompile(component: &[u8]) -> Result<Vec<u8>, String> {
    engine::compile(component).map_err(|error| error.to_string())
}

/// Why a compiled component was not loaded.
pub(crate) enum LoadFault {
    /// The file is not what this engine compiled: compile again.
    Stale(String),
    /// The component.
    NotPassed(NotPassed),
}

/// Loads a verified file.
pub(crate) fn load(sandbox: &Sandbox, file: &str, path: &Path) -> Result<Arc<Loaded>, LoadFault> {
    match sandbox.load(path) {
        Ok(loaded) => Ok(Arc::new(loaded)),
        Err(PluginError::Incompatible(text)) => Err(LoadFault::Stale(text)),
        Err(error) => Err(LoadFault::NotPassed(not_passed(file, &error))),
    }
}

/// Tries a component under its limits.
pub(crate) async fn try_out(
    sandbox: &Sandbox,
    loaded: &Loaded,
    file: &str,
    attributes: &ProcessAttributes,
) -> Result<Smoked, NotPassed> {
    let needs = loaded.needs();
    if needs.memory > attributes.memory {
        let (needs, limit) = (format_bytes(needs.memory), format_bytes(attributes.memory));
        return Err(NotPassed::Refused(format!(
            "\"{file}\" starts with {needs} of memory and its limit is {limit}; raise memory in \
             its manifest [plugin-refused]"
        )));
    }
    if needs.table_elements > attributes.table_elements {
        let (needs, limit) = (needs.table_elements, attributes.table_elements);
        return Err(NotPassed::Refused(format!(
            "\"{file}\" starts with {needs} table elements and its limit is {limit}; raise \
             table-elements in its manifest [plugin-refused]"
        )));
    }
    let tried = sandbox.smoke(loaded, attributes).await;
    tried.map_err(|error| not_passed(file, &error))
}

fn not_passed(file: &str, error: &PluginError) -> NotPassed {
    let text = format!("\"{file}\": {error}");
    match error {
        PluginError::Io(_) => NotPassed::Host(text),
        _ => NotPassed::Refused(text),
    }
}

/// Whether the component really has a handler of the style.
pub(crate) fn has_style(loaded: &Loaded, style: Style) -> bool {
    loaded.bound(style).is_some()
}

/// A version in the manager's words.
pub(crate) fn version(plugin: &PluginName, digest: &Digest, style: Style) -> ComponentVersion {
    ComponentVersion {
        plugin: plugin.clone(),
        digest: digest.to_string(),
        style,
    }
}

/// The update in the manager's words. `directory` is where the file lies.
pub(crate) fn update(directory: &Path, update: &Update) -> PluginUpdate {
    let version = |found: &Version| version(&update.plugin, &found.component, found.style);
    PluginUpdate {
        name: update.plugin.clone(),
        file: directory.join(&update.file).display().to_string(),
        state: match &update.state {
            State::Compiling => PluginState::Compiling,
            State::Ready(ready) => PluginState::Ready(version(ready)),
            State::Quarantined { reason, serving } => PluginState::Quarantined {
                reason: reason.clone(),
                serving: serving.as_ref().map(version),
            },
            State::Missing => PluginState::Missing,
            State::Removed => PluginState::Removed,
        },
        definitions: update
            .definitions
            .as_ref()
            .map(|definitions| PluginDefinitions {
                process: definitions.process.clone(),
                queues: definitions.queues.clone(),
            }),
        previous: update.previous.iter().map(ToString::to_string).collect(),
        facts: update.facts.clone(),
    }
}
