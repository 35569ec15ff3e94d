//! A definition in layers: default, manifest, operator.
//!
//! A manifest sets the base and may set it again at every reload; an operator's changes lie over it
//! and stay until they are reset. Neither layer ever holds a value that it was not given. Layers
//! are shared: those of many definitions may be one value in memory (see `pool`).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::attributes::Patch;
use super::fault::Fault;
use super::process::{ProcessAttributes, ProcessPatch};
use super::queue::{QueueAttributes, QueuePatch};
use crate::names::QueueName;

/// Where the value of an attribute comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// The plugin's manifest.
    Manifest,
    /// An operator, over HTTP or by the command line.
    Operator,
}

/// The layers of one definition. This is the durable form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    bound(
        serialize = "P: Serialize",
        deserialize = "P: Deserialize<'de> + Default"
    )
)]
pub struct Layered<P> {
    /// What the manifest says.
    #[serde(with = "shared")]
    pub base: Arc<P>,
    /// What the operator says; wins over the base.
    #[serde(with = "shared")]
    pub overlay: Arc<P>,
}

/// A shared layer is written and read as its value.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<P: Serialize, S: Serializer>(
        layer: &Arc<P>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        layer.serialize(serializer)
    }

    pub(super) fn deserialize<'de, P: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<P>, D::Error> {
        P::deserialize(deserializer).map(Arc::new)
    }
}

/// The definition of a queue.
pub type QueueDefinition = Layered<QueuePatch>;

/// The definition of a process.
pub type ProcessDefinition = Layered<ProcessPatch>;

impl<P: Patch> Layered<P> {
    /// A definition that comes from a manifest.
    #[must_use]
    pub fn from_manifest(base: P) -> Self {
        Self {
            base: Arc::new(base),
            overlay: Arc::default(),
        }
    }

    /// A definition that an operator makes: resets in it say nothing.
    #[must_use]
    pub fn from_operator(changes: &P) -> Self {
        let mut definition = Self {
            base: Arc::default(),
            overlay: Arc::default(),
        };
        definition.alter(changes);
        definition
    }

    /// The values that hold.
    #[must_use]
    pub fn resolve(&self) -> P::Attributes {
        let mut attributes = P::Attributes::default();
        self.base.apply(&mut attributes);
        self.overlay.apply(&mut attributes);
        attributes
    }

    /// Where the value of the attribute comes from; `Default` also for an unknown name.
    #[must_use]
    pub fn origin(&self, name: &str) -> Origin {
        if self.overlay.sets(name) {
            Origin::Operator
        } else if self.base.sets(name) {
            Origin::Manifest
        } else {
            Origin::Default
        }
    }

    /// Lays an operator's changes over the definition; a reset shows the base again.
    pub fn alter(&mut self, changes: &P) {
        Arc::make_mut(&mut self.overlay).merge(changes);
    }

    /// Rules between attributes, on the values that hold. Empty when all is well.
    #[must_use]
    pub fn check(&self) -> Vec<Fault> {
        P::check(&self.resolve())
    }
}

impl QueueDefinition {
    /// The rules of [`check`](Layered::check), and those that need the queue's own name.
    #[must_use]
    pub fn check_for(&self, queue: &QueueName) -> Vec<Fault> {
        let attributes: QueueAttributes = self.resolve();
        let mut faults = attributes.check();
        if attributes.backout_queue.as_ref() == Some(queue) {
            let message = format!("is \"{queue}\", the queue itself; name another, or \"\"");
            faults.push(Fault::new("backout-queue", message));
        }
        faults
    }
}

impl ProcessDefinition {
    /// Values that are accepted and probably not meant.
    #[must_use]
    pub fn warnings(&self) -> Vec<Fault> {
        let attributes: ProcessAttributes = self.resolve();
        attributes.warnings()
    }
}
