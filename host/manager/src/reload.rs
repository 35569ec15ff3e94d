//! Plugins as the manager sees them: what the plugins directory tells, and what becomes of
//! processes and queues.
//!
//! The directory itself (files, compiling, versions) is the runtime's. Here a plugin is a name, a
//! state, and the definitions of its manifest.

use oncue_core::definition::{ProcessPatch, QueuePatch};
use oncue_core::names::{PluginName, ProcessName, QueueName};
use oncue_core::process_table::ComponentState;
use serde::Serialize;

use crate::tasks::ComponentVersion;

/// What the plugins directory tells of one plugin. Each update replaces the one before.
#[derive(Clone, Debug)]
pub struct PluginUpdate {
    /// Its name: also that of its process definition.
    pub name: PluginName,
    /// The component's file, for people.
    pub file: String,
    /// What can be run.
    pub state: PluginState,
    /// What its manifest defines, or what stands for one: the process, and the queues bound to it.
    /// `None` leaves the definitions as they are (a bad drop over a good version).
    pub definitions: Option<PluginDefinitions>,
    /// Digests of earlier good versions, newest first, to which a rollback can go.
    pub previous: Vec<String>,
    /// Facts for people: size, imports, exports, compile time.
    pub facts: Vec<(String, String)>,
}

/// The fact of a plugin that serves while its next version is being read and compiled.
pub const NEXT_VERSION: &str = "next version";

impl PluginUpdate {
    /// Whether this is only the news that the next version is being found out: what serves is what
    /// served before.
    #[must_use]
    pub fn awaits_next(&self) -> bool {
        awaits_next(&self.facts)
    }
}

fn awaits_next(facts: &[(String, String)]) -> bool {
    facts.iter().any(|(name, _)| name == NEXT_VERSION)
}

/// What a manifest defines.
#[derive(Clone, Debug, Default)]
pub struct PluginDefinitions {
    /// The process definition's base.
    pub process: ProcessPatch,
    /// The queues bound to it, with their base definitions.
    pub queues: Vec<(QueueName, QueuePatch)>,
}

/// What can be run of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginState {
    /// Its first version is being compiled.
    Compiling,
    /// This version serves.
    Ready(ComponentVersion),
    /// The latest drop was refused, for the reason given; the version before it serves on, if there
    /// is one.
    Quarantined {
        /// Why, naming the file.
        reason: String,
        /// What serves on.
        serving: Option<ComponentVersion>,
    },
    /// The manifest is there, the component is not.
    Missing,
    /// The files are gone.
    Removed,
}

impl PluginState {
    /// The version that serves.
    #[must_use]
    pub fn serving(&self) -> Option<&ComponentVersion> {
        match self {
            Self::Ready(version) => Some(version),
            Self::Quarantined { serving, .. } => serving.as_ref(),
            Self::Compiling | Self::Missing | Self::Removed => None,
        }
    }

    /// The word for it.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Compiling => "compiling",
            Self::Ready(_) => "ready",
            Self::Quarantined { .. } => "quarantined",
            Self::Missing => "missing",
            Self::Removed => "removed",
        }
    }

    /// What step 62 will find for a process whose component this is.
    #[must_use]
    pub fn component(&self, demand: oncue_core::admission::Demand) -> ComponentState {
        match self {
            Self::Compiling => ComponentState::Compiling,
            Self::Missing | Self::Removed => ComponentState::Missing,
            Self::Quarantined {
                reason,
                serving: None,
            } => ComponentState::Quarantined(reason.clone()),
            Self::Ready(version)
            | Self::Quarantined {
                serving: Some(version),
                ..
            } => ComponentState::Ready(oncue_core::process_table::ComponentVersion {
                digest: version.digest.as_str().into(),
                style: version.style,
                demand,
            }),
        }
    }
}

/// Why the manager does not take a plugin's definitions. The directory quarantines it with this
/// reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PluginRefusal(pub String);

/// A plugin for people.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PluginView {
    /// Its name.
    pub name: PluginName,
    /// The component's file.
    pub file: String,
    /// `compiling`, `ready`, `quarantined`, `missing`.
    pub state: &'static str,
    /// Why it is quarantined.
    pub reason: Option<String>,
    /// Digest of the version that serves.
    pub digest: Option<String>,
    /// How it is called.
    pub style: Option<oncue_core::definition::Style>,
    /// Its process definition.
    pub process: ProcessName,
    /// Queues bound to it by its manifest.
    pub queues: Vec<QueueName>,
    /// Digests of earlier good versions.
    pub previous: Vec<String>,
    /// Size, imports, exports, compile time.
    pub facts: Vec<(String, String)>,
}

impl PluginView {
    /// Whether it serves while its next version is being read and compiled.
    #[must_use]
    pub fn awaits_next(&self) -> bool {
        awaits_next(&self.facts)
    }
}

impl From<&PluginUpdate> for PluginView {
    fn from(update: &PluginUpdate) -> Self {
        let serving = update.state.serving();
        let reason = match &update.state {
            PluginState::Quarantined { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        Self {
            name: update.name.clone(),
            file: update.file.clone(),
            state: update.state.as_str(),
            reason,
            digest: serving.map(|version| version.digest.clone()),
            style: serving.map(|version| version.style),
            process: ProcessName::from(&update.name),
            queues: update
                .definitions
                .iter()
                .flat_map(|d| d.queues.iter().map(|(name, _)| name.clone()))
                .collect(),
            previous: update.previous.clone(),
            facts: update.facts.clone(),
        }
    }
}

/// What the plugins directory does at an operator's word.
#[derive(Debug)]
pub enum PluginCommand {
    /// Serve the version before the present one, until the file changes.
    Rollback(
        PluginName,
        crate::command::Answer<Result<String, crate::error::ApiError>>,
    ),
}
