//! Plugins without a server: every one of a file or a folder is loaded as a host would load it,
//! and everything that is known of it or wrong with it is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use oncue_core::names::{PluginName, QueueName};
use serde::Serialize;

use super::bounds::{COMPILE_MEMORY, COMPILE_TIMEOUT};
use super::catalog::{Candidate, Component, derive};
use super::catalog::{Capacity, FileState, ManifestFile, NotPassed, attributes, both_claim};
use super::compile::{CompileBounds, Compiler};
use super::digest::Digest;
use super::loader::Loader;
use super::manifest;
use super::reading;
use super::scan::{self, Kind, classify};
use super::seam;
use super::signatures::PluginKeys;
use crate::engine::Sandbox;
use crate::error::PluginError;
use crate::style;

/// Between the faults of one reason.
const NEXT_FAULT: &str = "; also ";

/// What was found of one plugin.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CheckReport {
    /// The plugin's name, or the path when there is none.
    pub plugin: String,
    /// The component's file.
    pub component: Option<PathBuf>,
    /// The manifest's file; none: there is none beside the component.
    pub manifest: Option<PathBuf>,
    /// Whether the manifest that holds is inside of the component.
    pub embedded_manifest: bool,
    /// How it is called: `message`, `trigger`.
    pub style: Option<String>,
    /// By what that was found.
    pub why: Option<String>,
    /// The world of that style, as its authors know it.
    pub world: Option<String>,
    /// SHA-256 of the component.
    pub digest: Option<String>,
    /// Bytes of the component.
    pub size: Option<u64>,
    /// Names of its imports.
    pub imports: Vec<String>,
    /// Names of its exports.
    pub exports: Vec<String>,
    /// Attributes of its process: limits, grants and all others, as they are written.
    pub attributes: Vec<(String, String)>,
    /// The queues it serves.
    pub queues: Vec<String>,
    /// Milliseconds that compiling took.
    pub compile_time: Option<u64>,
    /// What is accepted and probably not meant.
    pub warnings: Vec<String>,
    /// Why it would be quarantined, each fault by itself. Empty: it would serve.
    pub faults: Vec<String>,
    /// Whether all that is wrong is that there is no such file.
    #[serde(skip)]
    pub is_absent: bool,
}

impl CheckReport {
    /// Whether it would serve.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Checks every plugin of the paths: folders, components or manifests. A component is checked with
/// the manifest beside it, a manifest with the component that it names.
///
/// # Errors
/// When the host cannot check at all; what is wrong with a plugin is in its report.
pub fn check(
    paths: &[PathBuf],
    sandbox: &Sandbox,
    compiler: Compiler,
    capacity: &Capacity,
    keys: &PluginKeys,
) -> Result<Vec<CheckReport>, PluginError> {
    let bounds = CompileBounds {
        timeout: COMPILE_TIMEOUT,
        memory: COMPILE_MEMORY,
    };
    let cancelled = Arc::new(AtomicBool::new(false));
    let engine = seam::compatibility()?;
    let loader = Loader::new(sandbox.clone(), None, compiler, engine, bounds, cancelled)
        .map_err(|error| PluginError::Io(format!("plugins cannot be tried: {error}")))?;
    let mut reports = Vec::new();
    for path in paths {
        match Found::at(path, keys) {
            Ok(found) => reports.extend(found.check(&loader, capacity)),
            Err(fault) => reports.push(CheckReport {
                plugin: path.display().to_string(),
                faults: vec![fault],
                is_absent: !path.exists(),
                ..CheckReport::default()
            }),
        }
    }
    for report in &mut reports {
        let faults = report.faults.iter();
        let each = faults.flat_map(|fault| fault.split(NEXT_FAULT));
        report.faults = each.map(str::to_owned).collect();
    }
    Ok(reports)
}

/// Files that are checked together.
pub(super) struct Found {
    folder: PathBuf,
    files: BTreeMap<String, FileState>,
    contents: BTreeMap<Digest, Vec<u8>>,
    keys: PluginKeys,
}

impl Found {
    /// The plugins of a folder, or of one file.
    fn at(path: &Path, keys: &PluginKeys) -> Result<Self, String> {
        if !path.exists() {
            let shown = path.display();
            return Err(format!("\"{shown}\" is not there; name a file that is"));
        }
        if path.is_dir() {
            Self::folder(path, keys)
        } else {
            Self::file(path, keys)
        }
    }

    /// All plugins of a folder.
    fn folder(folder: &Path, keys: &PluginKeys) -> Result<Self, String> {
        let listing = scan::list(folder, false)
            .map_err(|error| format!("\"{}\" cannot be read ({error})", folder.display()))?;
        let mut found = Self::nothing(folder, keys);
        for file in listing.files.keys() {
            found.take(file);
        }
        if found.files.is_empty() {
            return Err(format!(
                "\"{}\" has no plugin; drop a .wasm file there",
                folder.display()
            ));
        }
        Ok(found)
    }

    /// The plugin of one file.
    pub(super) fn file(path: &Path, keys: &PluginKeys) -> Result<Self, String> {
        let shown = path.display();
        let file = path.file_name().and_then(OsStr::to_str);
        let Some((file, (stem, kind))) = file.and_then(|file| Some((file, classify(file)?))) else {
            return Err(format!(
                "\"{shown}\" is no plugin; name a .wasm or a .toml file"
            ));
        };
        let folder = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let mut found = Self::nothing(folder.unwrap_or_else(|| Path::new(".")), keys);
        found.take(file);
        match kind {
            Kind::Component => {
                let manifest = format!("{stem}.toml");
                if found.folder.join(&manifest).is_file() {
                    found.take(&manifest);
                }
            }
            Kind::Manifest => {
                let wanted = derive(&found.files, &BTreeSet::new());
                let components: Vec<String> = wanted
                    .candidates
                    .values()
                    .map(|candidate| candidate.file.clone())
                    .collect();
                for component in components {
                    if found.folder.join(&component).is_file() {
                        found.take(&component);
                    }
                }
            }
        }
        Ok(found)
    }

    fn nothing(folder: &Path, keys: &PluginKeys) -> Self {
        Self {
            folder: folder.to_path_buf(),
            files: BTreeMap::new(),
            contents: BTreeMap::new(),
            keys: keys.clone(),
        }
    }

    fn take(&mut self, file: &str) {
        let Some((stem, kind)) = classify(file) else {
            return;
        };
        let path = self.folder.join(file);
        let read = || {
            let length = fs::metadata(&path)?.len();
            if length > kind.max_bytes() {
                return Err(std::io::ErrorKind::FileTooLarge.into());
            }
            fs::read(&path)
        };
        let signed = read()
            .map_err(|error| format!("cannot be read ({error})"))
            .and_then(|bytes| self.keys.check(&path, &bytes).map(|_signature| bytes));
        let state = match (signed, kind, PluginName::new(stem)) {
            (Err(fact), ..) => FileState::Unreadable(fact),
            (Ok(bytes), Kind::Component, _) => {
                let digest = Digest::of(&bytes);
                let embedded = ManifestFile::embedded(&bytes, file);
                self.contents.insert(digest.clone(), bytes);
                FileState::Component(digest, embedded)
            }
            (Ok(bytes), Kind::Manifest, Ok(plugin)) => {
                FileState::Manifest(Arc::new(ManifestFile::read(&bytes, file, &plugin)))
            }
            (Ok(_), Kind::Manifest, Err(error)) => FileState::Unreadable(error.to_string()),
        };
        self.files.insert(file.to_owned(), state);
    }

    fn check(&self, loader: &Loader, capacity: &Capacity) -> Vec<CheckReport> {
        let derived = derive(&self.files, &BTreeSet::new());
        let mut reports: Vec<CheckReport> = derived
            .nameless
            .iter()
            .map(|(file, reason)| CheckReport {
                plugin: file.clone(),
                faults: vec![reason.clone()],
                ..CheckReport::default()
            })
            .collect();
        let mut claims: BTreeMap<QueueName, Vec<&str>> = BTreeMap::new();
        for candidate in derived.candidates.values() {
            for queue in candidate.queues() {
                claims.entry(queue).or_default().push(&candidate.speaker);
            }
        }
        for (plugin, candidate) in &derived.candidates {
            let mut report = self.report(plugin, candidate);
            self.try_out(plugin, candidate, loader, capacity, &mut report);
            for queue in candidate.queues() {
                let others = claims.get(&queue).into_iter().flatten();
                let rivals = others.filter(|other| **other != candidate.speaker);
                let clash = |rival: &&str| both_claim(&candidate.speaker, rival, &queue);
                report.faults.extend(rivals.map(clash));
            }
            reports.push(report);
        }
        reports
    }

    /// What is wanted of the plugin of a component's file.
    pub(super) fn candidate(&self, file: &str) -> Option<Candidate> {
        let derived = derive(&self.files, &BTreeSet::new());
        let mut candidates = derived.candidates.into_values();
        candidates.find(|candidate| candidate.file == file)
    }

    /// What is known before the component is looked at.
    fn report(&self, plugin: &PluginName, candidate: &Candidate) -> CheckReport {
        let mut report = CheckReport {
            plugin: plugin.to_string(),
            component: Some(self.folder.join(&candidate.file)),
            ..CheckReport::default()
        };
        if candidate.speaker != candidate.file {
            report.manifest = Some(self.folder.join(&candidate.speaker));
        }
        report.embedded_manifest = candidate.is_packed();
        if let Ok(definitions) = &candidate.definitions {
            let entries = attributes(definitions).entries();
            let shown = |(name, raw): (&str, oncue_core::definition::Raw)| {
                (name.to_owned(), raw.to_string())
            };
            report.attributes = entries.into_iter().map(shown).collect();
            report.queues = candidate.queues().iter().map(ToString::to_string).collect();
            report.warnings = manifest::warnings(definitions);
        }
        if candidate.is_overridden() {
            let (beside, file) = (&candidate.speaker, &candidate.file);
            report.warnings.push(format!(
                "the manifest embedded in \"{file}\" is not used: \"{beside}\" beside it wins"
            ));
        }
        report
    }

    fn try_out(
        &self,
        plugin: &PluginName,
        candidate: &Candidate,
        loader: &Loader,
        capacity: &Capacity,
        report: &mut CheckReport,
    ) {
        report.faults.extend(candidate.fault(plugin, capacity));
        let file = &candidate.file;
        let digest = match &candidate.component {
            Component::There(digest) => digest,
            Component::Unreadable(_) => return,
            Component::Absent => {
                let text = format!("\"{file}\" is not there; drop it beside the manifest");
                report.faults.push(format!("{text} [plugin-refused]"));
                return;
            }
        };
        let Some(bytes) = self.contents.get(digest) else {
            return;
        };
        report.digest = Some(digest.to_string());
        report.size = Some(bytes.len() as u64);
        let component = match loader.component(bytes, digest, file) {
            Ok(component) => component,
            Err(NotPassed::Refused(reason) | NotPassed::Host(reason)) => {
                report.faults.push(reason);
                return;
            }
        };
        if let Ok(interfaces) = reading::read(&component, file) {
            report.imports = interfaces.imports.into_iter().map(|it| it.name).collect();
            report.exports = interfaces.exports.into_iter().map(|it| it.name).collect();
        }
        // Under a faulty manifest the component is tried under the defaults: all faults at once.
        let attributes = candidate
            .definitions
            .as_deref()
            .map(attributes)
            .unwrap_or_default();
        match loader.prepare(&component, digest, file, &attributes, None) {
            Ok(fit) => {
                let def = style::find(fit.judgement.style);
                report.world = def.map(|def| def.world.to_owned());
                report.style = Some(fit.judgement.style.to_string());
                report.why = Some(fit.judgement.why);
                report.warnings.extend(fit.judgement.warning);
                report.compile_time = fit.compile_time.map(millis);
            }
            Err(NotPassed::Refused(reason) | NotPassed::Host(reason)) => {
                report.faults.push(reason);
            }
        }
    }
}

pub(super) fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
