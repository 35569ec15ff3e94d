//! From settled files to what each plugin should be: the component, and the definitions of the
//! manifest or what stands for one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use oncue_core::admission::Demand;
use oncue_core::code::Code;
use oncue_core::definition::{Layered, ProcessAttributes};
use oncue_core::names::{PluginName, QueueName};
use oncue_core::quantity::{format_bytes, format_count};

use super::super::bounds::MAX_MANIFEST_BYTES;
use super::super::digest::Digest;
use super::super::kept::KeptVersion;
use super::super::manifest::{self, Definitions, Manifest};
use super::super::packed;
use super::super::scan::{Kind, classify};

/// A settled file, as the directory's thread read it.
#[derive(Clone, Debug)]
pub(crate) enum FileState {
    /// A component, by content, with the manifest that is embedded in it.
    Component(Digest, Option<Arc<ManifestFile>>),
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
        if bytes.len() as u64 > MAX_MANIFEST_BYTES {
            // Only an embedded one: a file so large is not read.
            let reason = format!("{file}: {}", packed::too_large(bytes));
            return Self {
                digest: Digest::of(bytes),
                text: String::new(),
                component: None,
                definitions: Err(reason),
            };
        }
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

impl ManifestFile {
    /// Reads the manifest that is embedded in a component's file, if there is one and the file's
    /// name can be a plugin's.
    pub(crate) fn embedded(component: &[u8], file: &str) -> Option<Arc<Self>> {
        let bytes = packed::find(component)?;
        let (stem, _) = classify(file)?;
        let plugin = PluginName::new(stem).ok()?;
        Some(Arc::new(Self::read(bytes, &packed::speaker(file), &plugin)))
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
    /// The manifest that holds; none: no manifest.
    pub(crate) manifest: Option<Digest>,
    /// The text of the manifest beside the component.
    pub(crate) manifest_text: Option<String>,
    /// The text of the manifest inside of it, which holds when there is none beside.
    pub(crate) embedded_text: Option<String>,
    /// What it defines, or why that cannot be told.
    pub(crate) definitions: Result<Arc<Definitions>, String>,
}

impl Candidate {
    /// A version that was kept.
    pub(crate) fn kept(plugin: &PluginName, version: &KeptVersion) -> Candidate {
        let read =
            |text: &String, speaker: &str| ManifestFile::read(text.as_bytes(), speaker, plugin);
        let beside = version.manifest.as_ref();
        let beside = beside.map(|text| read(text, &format!("{plugin}.toml")));
        let embedded = version.embedded.as_ref();
        let embedded = embedded.map(|text| read(text, &packed::speaker(&version.file)));
        let component = Component::There(version.component.clone());
        let file = version.file.clone();
        Self::new(plugin, file, component, beside.as_ref(), embedded.as_ref())
    }

    /// The same plugin as wanted with another version of its component: what lies beside stays,
    /// what is inside of the component goes with it.
    pub(crate) fn with_version(&self, plugin: &PluginName, version: &KeptVersion) -> Cow<'_, Self> {
        if self.manifest_text.is_some() || self.embedded_text == version.embedded {
            return Cow::Borrowed(self);
        }
        let alone = KeptVersion {
            manifest: None,
            ..version.clone()
        };
        Cow::Owned(Self {
            file: self.file.clone(),
            component: self.component.clone(),
            ..Self::kept(plugin, &alone)
        })
    }

    fn new(
        plugin: &PluginName,
        file: String,
        component: Component,
        beside: Option<&ManifestFile>,
        embedded: Option<&ManifestFile>,
    ) -> Self {
        let speaker = match beside {
            Some(_) => format!("{plugin}.toml"),
            None => file.clone(),
        };
        let manifest = beside.or(embedded);
        let definitions = match manifest {
            Some(manifest) => manifest.definitions.clone(),
            None => Ok(Arc::new(Definitions::without_manifest(plugin))),
        };
        let text = |manifest: &ManifestFile| manifest.text.clone();
        Self {
            file,
            speaker,
            component,
            manifest: manifest.map(|manifest| manifest.digest.clone()),
            manifest_text: beside.map(text),
            embedded_text: embedded.map(text),
            definitions,
        }
    }

    /// Where the manifest that holds is, for people, if one is embedded.
    pub(crate) fn packed_fact(&self) -> Option<String> {
        let Self { file, speaker, .. } = self;
        self.embedded_text.as_ref()?;
        Some(if self.is_overridden() {
            format!("{speaker}, which wins over the one embedded in {file}")
        } else {
            format!("embedded in {file}")
        })
    }

    /// Whether the manifest that holds is inside of the component.
    pub(crate) fn is_packed(&self) -> bool {
        self.embedded_text.is_some() && self.manifest_text.is_none()
    }

    /// Whether there is an embedded manifest that does not hold, for the one beside it.
    pub(crate) fn is_overridden(&self) -> bool {
        self.embedded_text.is_some() && self.manifest_text.is_some()
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
            return Some(coded(&self.file, reason, Code::PluginRefused));
        }
        capacity.refuse(&self.speaker, &attributes(definitions))
    }
}

/// What is wrong with a file, with a code unless it brings its own.
fn coded(file: &str, reason: &str, code: Code) -> String {
    if reason.ends_with(']') {
        format!("\"{file}\" {reason}")
    } else {
        format!("\"{file}\" {reason} [{code}]")
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
    /// Plugins whose component is there and not whole yet.
    pub(crate) arriving: BTreeSet<PluginName>,
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
            FileState::Component(..) => (None, None),
        };
        let component = manifest.and_then(|manifest| manifest.component.clone());
        let component = component.unwrap_or_else(|| format!("{stem}.wasm"));
        if component != format!("{stem}.wasm") {
            named.insert(component.clone());
        }
        let (there, embedded) = component_of(files, &component);
        let mut candidate = Candidate::new(&plugin, component, there, manifest, embedded);
        if let Some(reason) = unreadable {
            candidate.speaker.clone_from(file);
            candidate.definitions = Err(coded(file, reason, Code::InvalidManifest));
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
                let (there, embedded) = component_of(files, file);
                let candidate = Candidate::new(&plugin, file.clone(), there, None, embedded);
                derived.candidates.insert(plugin, candidate);
            }
            Err(error) => {
                derived.nameless.insert(file.clone(), error.to_string());
            }
        }
    }
    derived.arriving = arriving(files, restless, &named);
    derived
}

/// Plugins whose component comes for the first time. While the manifest of another is not whole
/// there is none: it may name the component as its own.
fn arriving(
    files: &BTreeMap<String, FileState>,
    restless: &BTreeSet<String>,
    named: &BTreeSet<String>,
) -> BTreeSet<PluginName> {
    let stems = |wanted: Kind| {
        let all = restless.iter().filter_map(|file| classify(file));
        all.filter_map(move |(stem, kind)| (kind == wanted).then_some(stem))
    };
    let may_be_anothers = |stem: &str| stems(Kind::Manifest).any(|other| other != stem);
    let coming = stems(Kind::Component).filter(|stem| {
        let file = format!("{stem}.wasm");
        !named.contains(&file) && !files.contains_key(&file) && !may_be_anothers(stem)
    });
    coming
        .filter_map(|stem| PluginName::new(stem).ok())
        .collect()
}

/// The component's file, and the manifest that is embedded in it.
fn component_of<'a>(
    files: &'a BTreeMap<String, FileState>,
    file: &str,
) -> (Component, Option<&'a ManifestFile>) {
    match files.get(file) {
        Some(FileState::Component(digest, embedded)) => {
            (Component::There(digest.clone()), embedded.as_deref())
        }
        Some(FileState::Unreadable(reason)) => (Component::Unreadable(reason.clone()), None),
        Some(FileState::Manifest(_)) => {
            let reason = "is a manifest, not a component".to_owned();
            (Component::Unreadable(reason), None)
        }
        None => (Component::Absent, None),
    }
}
