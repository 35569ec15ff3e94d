//! From settled files to what each plugin should be: the component, and the definitions of the
//! manifest or what stands for one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use oncue_core::admission::Demand;
use oncue_core::code::Code;
use oncue_core::definition::{Layered, ProcessAttributes};
use oncue_core::names::{PluginName, QueueName};
use oncue_core::quantity::{format_bytes, format_count};

use super::super::digest::Digest;
use super::super::manifest::{self, Definitions, Manifest};
use super::super::scan::{Kind, classify};

/// A settled file, as the directory's thread read it.
#[derive(Clone, Debug)]
pub(crate) enum FileState {
    /// A component, by content.
    Component(Digest),
    /// A manifest, read.
    Manifest(Arc<ManifestFile>),
    /// It cannot be read, and why.
    Unreadable(String),
}

/// A manifest with its text.
#[derive(Clone, Debug)]
pub(crate) struct ManifestFile {
    digest: Digest,
    text: String,
    component: Option<String>,
    definitions: Result<Arc<Definitions>, String>,
}

impl ManifestFile {
    /// Reads a manifest; its faults are part of the answer.
    pub(crate) fn read(bytes: &[u8], file: &str, plugin: &PluginName) -> Self {
        let Manifest {
            component,
            definitions,
        } = manifest::parse(bytes, file, plugin);
        Self {
            digest: Digest::of(bytes),
            text: String::from_utf8_lossy(bytes).into_owned(),
            component,
            definitions: match definitions {
                Ok(definitions) => Ok(Arc::new(definitions)),
                Err(faults) => Err(manifest::reason(&faults)),
            },
        }
    }
}

/// What a version is made of, by content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) component: Digest,
    /// The manifest's digest; none: no manifest.
    pub(crate) manifest: Option<Digest>,
}

/// The component of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Component {
    There(Digest),
    Absent,
    Unreadable(String),
}

/// What the directory wants of one plugin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    /// The component's file name.
    pub(crate) file: String,
    /// The file that makes its claims, for sentences: the manifest, or else the component.
    pub(crate) speaker: String,
    pub(crate) component: Component,
    pub(crate) manifest: Option<Digest>,
    pub(crate) manifest_text: Option<String>,
    /// What it defines, or why that cannot be told.
    pub(crate) definitions: Result<Arc<Definitions>, String>,
}

impl Candidate {
    /// A version that was kept.
    pub(crate) fn kept(
        plugin: &PluginName,
        version: &super::super::kept::KeptVersion,
    ) -> Candidate {
        let speaker = format!("{plugin}.toml");
        let manifest = version
            .manifest
            .as_ref()
            .map(|text| ManifestFile::read(text.as_bytes(), &speaker, plugin));
        let component = Component::There(version.component.clone());
        Self::new(plugin, version.file.clone(), component, manifest.as_ref())
    }

    fn new(
        plugin: &PluginName,
        file: String,
        component: Component,
        manifest: Option<&ManifestFile>,
    ) -> Self {
        let speaker = match manifest {
            Some(_) => format!("{plugin}.toml"),
            None => file.clone(),
        };
        let definitions = match manifest {
            Some(manifest) => manifest.definitions.clone(),
            None => Ok(Arc::new(Definitions::without_manifest(plugin))),
        };
        Self {
            file,
            speaker,
            component,
            manifest: manifest.map(|manifest| manifest.digest.clone()),
            manifest_text: manifest.map(|manifest| manifest.text.clone()),
            definitions,
        }
    }

    /// The content of the component's file, if it is there.
    pub(crate) fn digest(&self) -> Option<&Digest> {
        match &self.component {
            Component::There(digest) => Some(digest),
            Component::Absent | Component::Unreadable(_) => None,
        }
    }

    /// The queues it claims; none while that cannot be told.
    pub(crate) fn queues(&self) -> BTreeSet<QueueName> {
        self.definitions.as_deref().map(queues).unwrap_or_default()
    }

    /// What is wrong with it whatever its component is.
    pub(crate) fn fault(&self, plugin: &PluginName, capacity: &Capacity) -> Option<String> {
        if plugin.is_reserved() {
            let code = Code::ReservedName;
            return Some(format!(
                "\"{}\": names that start with \"oncue.\" belong to the manager; rename the file \
                 [{code}]",
                self.speaker
            ));
        }
        let definitions = match &self.definitions {
            Ok(definitions) => definitions,
            Err(reason) => return Some(reason.clone()),
        };
        if let Component::Unreadable(reason) = &self.component {
            return Some(format!(
                "\"{}\" {reason} [{}]",
                self.file,
                Code::PluginRefused
            ));
        }
        capacity.refuse(&self.speaker, &attributes(definitions))
    }
}

/// The queues of some definitions.
pub(super) fn queues(definitions: &Definitions) -> BTreeSet<QueueName> {
    definitions
        .queues
        .iter()
        .map(|(name, _)| name.clone())
        .collect()
}

/// The process's attributes as the manifest alone has them.
pub(crate) fn attributes(definitions: &Definitions) -> ProcessAttributes {
    Layered::from_manifest(definitions.process.clone()).resolve()
}

/// What the host has in all, and what its sandbox can enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Memory and fuel for all tasks together.
    pub total: Demand,
    /// Most table elements that the sandbox can hold an instance to.
    pub table_elements: u64,
}

impl Capacity {
    /// Why a process with these attributes could never run.
    pub(crate) fn refuse(&self, file: &str, attributes: &ProcessAttributes) -> Option<String> {
        let Self {
            total,
            table_elements,
        } = self;
        let mut faults = Vec::new();
        if attributes.memory > total.memory {
            let (asked, all) = (format_bytes(attributes.memory), format_bytes(total.memory));
            faults.push(format!(
                "memory is {asked} and the host has {all} for all tasks"
            ));
        }
        if attributes.fuel > total.fuel {
            let (asked, all) = (format_count(attributes.fuel), format_count(total.fuel));
            faults.push(format!(
                "fuel is {asked} and the host has {all} for all tasks"
            ));
        }
        if attributes.table_elements > *table_elements {
            let asked = attributes.table_elements;
            faults.push(format!(
                "table-elements is {asked} and the sandbox enforces at most {table_elements}"
            ));
        }
        let faults = faults.join("; also ");
        (!faults.is_empty())
            .then(|| format!("\"{file}\": {faults}; lower it [{}]", Code::OverCapacity))
    }
}

/// All candidates that the files make, by plugin, and names that no plugin can have.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    pub(crate) candidates: BTreeMap<PluginName, Candidate>,
    /// File names whose plugin's name is none, with why.
    pub(crate) nameless: BTreeMap<String, String>,
}

/// Pairs manifests and components. A component that another plugin's manifest names is no plugin
/// of its own; one whose manifest is being written waits for it.
pub(crate) fn derive(files: &BTreeMap<String, FileState>, restless: &BTreeSet<String>) -> Derived {
    let mut derived = Derived::default();
    let mut named = BTreeSet::new();
    for (file, state) in files {
        let Some((stem, Kind::Manifest)) = classify(file) else {
            continue;
        };
        let plugin = match PluginName::new(stem) {
            Ok(plugin) => plugin,
            Err(error) => {
                derived.nameless.insert(file.clone(), error.to_string());
                continue;
            }
        };
        let (manifest, unreadable) = match state {
            FileState::Manifest(manifest) => (Some(&**manifest), None),
            FileState::Unreadable(reason) => (None, Some(reason)),
            FileState::Component(_) => (None, None),
        };
        let component = manifest.and_then(|manifest| manifest.component.clone());
        let component = component.unwrap_or_else(|| format!("{stem}.wasm"));
        if component != format!("{stem}.wasm") {
            named.insert(component.clone());
        }
        let there = component_of(files, &component);
        let mut candidate = Candidate::new(&plugin, component, there, manifest);
        if let Some(reason) = unreadable {
            candidate.speaker.clone_from(file);
            candidate.definitions = Err(format!("\"{file}\" {reason} [{}]", Code::InvalidManifest));
        }
        derived.candidates.insert(plugin, candidate);
    }
    for file in files.keys() {
        let Some((stem, Kind::Component)) = classify(file) else {
            continue;
        };
        let manifest = format!("{stem}.toml");
        if named.contains(file) || files.contains_key(&manifest) || restless.contains(&manifest) {
            continue;
        }
        match PluginName::new(stem) {
            Ok(plugin) => {
                let there = component_of(files, file);
                let candidate = Candidate::new(&plugin, file.clone(), there, None);
                derived.candidates.insert(plugin, candidate);
            }
            Err(error) => {
                derived.nameless.insert(file.clone(), error.to_string());
            }
        }
    }
    derived
}

fn component_of(files: &BTreeMap<String, FileState>, file: &str) -> Component {
    match files.get(file) {
        Some(FileState::Component(digest)) => Component::There(digest.clone()),
        Some(FileState::Unreadable(reason)) => Component::Unreadable(reason.clone()),
        Some(FileState::Manifest(_)) => {
            Component::Unreadable("is a manifest, not a component".to_owned())
        }
        None => Component::Absent,
    }
}
