//! One plugin by itself, loaded as a host would load it: for the workshop, where its author runs
//! it with no host.
//!
//! It refuses what a host would quarantine, with every fault at once. What was compiled is kept
//! in the user's own cache if there is one, so that only the first run of a large component waits.
//! Neighbours: `check` reports about many plugins and keeps none; `loader` does the work.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use oncue_core::code::Code;
use oncue_core::definition::ProcessAttributes;
use oncue_core::names::PluginName;
use oncue_manager::reload::PluginDefinitions;
use oncue_manager::tasks::ComponentVersion;

use super::bounds::{COMPILE_MEMORY, COMPILE_TIMEOUT, MAX_CACHE_BYTES};
use super::cache::{Cache, Form};
use super::catalog::{Capacity, NotPassed, attributes};
use super::compile::{CompileBounds, Compiler};
use super::digest::Digest;
use super::loader::Loader;
use super::manifest::{self, Definitions};
use super::packed;
use super::scan::{Kind, classify};
use super::seam;
use super::storage::make_private;
use crate::engine::{Loaded, Sandbox};

/// Bits of a folder's mode by which others than its owner could write there.
const OTHERS_WRITE: u32 = 0o022;

/// What to load, and with what.
#[derive(Debug)]
pub struct SingleRequest<'a> {
    /// The component, or a manifest that names it.
    pub plugin: &'a Path,
    /// The manifest; else the one beside the component, else defaults.
    pub manifest: Option<&'a Path>,
    /// Where compiled components are kept; none: nowhere.
    pub cache: Option<&'a Path>,
    /// What the plugin may ask for.
    pub capacity: Capacity,
}

/// A plugin that can be started.
#[derive(Debug)]
pub struct SinglePlugin {
    /// Its name, digest and style.
    pub version: ComponentVersion,
    /// The component's file.
    pub component: PathBuf,
    /// The manifest's file, if there is one.
    pub manifest: Option<PathBuf>,
    /// What the manifest defines, or what stands for one.
    pub definitions: PluginDefinitions,
    /// The attributes of its process.
    pub attributes: ProcessAttributes,
    /// The loaded code.
    pub loaded: Arc<Loaded>,
    /// By what its style was found.
    pub why: String,
    /// How long compiling took; none when it came from the cache.
    pub compile_time: Option<Duration>,
    /// What is accepted and probably not meant.
    pub warnings: Vec<String>,
}

/// Why a plugin is not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SingleFault {
    /// No such file.
    Absent(String),
    /// A host would quarantine it: every fault, one sentence each.
    Refused(Vec<String>),
    /// It could not be found out.
    Host(String),
}

/// Loads one plugin. `compiling` is told the component's file when it is not in the cache, before
/// the compiler begins.
///
/// # Errors
/// [`SingleFault`].
pub fn load_single(
    request: &SingleRequest<'_>,
    sandbox: &Sandbox,
    compiler: Compiler,
    compiling: &mut dyn FnMut(&str),
) -> Result<SinglePlugin, SingleFault> {
    let files = Files::find(request)?;
    let component = read(&files.component, Kind::Component)?;
    let mut faults = Vec::new();
    let definitions = files.definitions(&component, &mut faults)?;
    let attributes = definitions.as_ref().map(attributes).unwrap_or_default();
    if files.name.is_reserved() {
        faults.push(format!(
            "\"{}\": names that start with \"oncue.\" belong to the manager; rename the file [{}]",
            files.name,
            Code::ReservedName
        ));
    }
    let speaker = files.manifest.as_ref().unwrap_or(&files.component);
    faults.extend(request.capacity.refuse(&file_name(speaker), &attributes));
    let loader = loader(request, sandbox, compiler)
        .map_err(|error| SingleFault::Host(format!("plugins cannot be tried: {error}")))?;
    let (digest, file) = (Digest::of(&component), file_name(&files.component));
    let known = |cache: &Cache| cache.look_up(Form::Compiled, &digest).is_some();
    if !loader.cache.as_ref().is_some_and(known) {
        compiling(&file);
    }
    let fit = match loader.prepare(&component, &digest, &file, &attributes, None) {
        Ok(fit) => Some(fit),
        Err(NotPassed::Host(text)) => return Err(SingleFault::Host(text)),
        Err(NotPassed::Refused(text)) => {
            faults.push(text);
            None
        }
    };
    let (Some(fit), Some(definitions), true) = (fit, definitions, faults.is_empty()) else {
        return Err(SingleFault::Refused(faults));
    };
    Ok(SinglePlugin {
        version: seam::version(&files.name, &digest, fit.judgement.style),
        warnings: manifest::warnings(&definitions)
            .into_iter()
            .chain(fit.judgement.warning)
            .collect(),
        component: files.component,
        manifest: files.manifest,
        definitions: PluginDefinitions {
            process: definitions.process,
            queues: definitions.queues,
        },
        attributes,
        loaded: fit.loaded,
        why: fit.judgement.why,
        compile_time: fit.compile_time,
    })
}

fn loader(
    request: &SingleRequest<'_>,
    sandbox: &Sandbox,
    compiler: Compiler,
) -> Result<Loader, String> {
    let engine = seam::compatibility().map_err(|error| error.to_string())?;
    let ours = request.cache.filter(|folder| is_private(folder));
    let cache = ours.map(|folder| Cache::open_shared(folder.into(), &engine, MAX_CACHE_BYTES));
    let bounds = CompileBounds {
        timeout: COMPILE_TIMEOUT,
        memory: COMPILE_MEMORY,
    };
    let cancelled = Arc::new(AtomicBool::new(false));
    Loader::new(sandbox.clone(), cache, compiler, engine, bounds, cancelled)
        .map_err(|error| error.to_string())
}

/// Whether nobody else can put native code into the folder, which is made if it is not there.
fn is_private(folder: &Path) -> bool {
    if make_private(folder).is_err() {
        return false;
    }
    let user = rustix::process::geteuid().as_raw();
    fs::metadata(folder).is_ok_and(|found| found.uid() == user && found.mode() & OTHERS_WRITE == 0)
}

/// The files of one plugin.
struct Files {
    name: PluginName,
    component: PathBuf,
    manifest: Option<PathBuf>,
}

impl Files {
    fn find(request: &SingleRequest<'_>) -> Result<Self, SingleFault> {
        let shown = request.plugin.display();
        let kind = request
            .plugin
            .file_name()
            .and_then(OsStr::to_str)
            .and_then(classify)
            .map(|(_, kind)| kind);
        let (component, manifest) = match (kind, request.manifest) {
            (Some(Kind::Component), Some(manifest)) => (None, Some(manifest.to_path_buf())),
            (Some(Kind::Component), None) => {
                let beside = request.plugin.with_extension("toml");
                (None, beside.is_file().then_some(beside))
            }
            (Some(Kind::Manifest), None) => {
                let manifest = request.plugin.to_path_buf();
                (Some(component_of(&manifest)?), Some(manifest))
            }
            _ => {
                let text = format!("\"{shown}\" is no plugin; name a .wasm or a .toml file");
                return Err(SingleFault::Refused(vec![format!(
                    "{text} [{}]",
                    Code::PluginRefused
                )]));
            }
        };
        let component = component.unwrap_or_else(|| request.plugin.to_path_buf());
        for file in std::iter::once(&component).chain(&manifest) {
            if !file.is_file() {
                let text = format!("\"{}\" is not there; name a file that is", file.display());
                return Err(SingleFault::Absent(text));
            }
        }
        let speaker = manifest.as_ref().unwrap_or(&component);
        let name = PluginName::new(&stem(speaker))
            .map_err(|error| SingleFault::Refused(vec![error.to_string()]))?;
        Ok(Self {
            name,
            component,
            manifest,
        })
    }

    /// What the manifest defines, which may be inside of the component; its faults are added to
    /// the others.
    fn definitions(
        &self,
        component: &[u8],
        faults: &mut Vec<String>,
    ) -> Result<Option<Definitions>, SingleFault> {
        let (bytes, speaker) = match (&self.manifest, packed::find(component)) {
            (Some(path), _) => (read(path, Kind::Manifest)?, file_name(path)),
            (None, Some(inside)) => {
                let speaker = packed::speaker(&file_name(&self.component));
                if inside.len() as u64 > Kind::Manifest.max_bytes() {
                    faults.push(format!("{speaker}: {}", packed::too_large(inside)));
                    return Ok(None);
                }
                (inside.to_vec(), speaker)
            }
            (None, None) => return Ok(Some(Definitions::without_manifest(&self.name))),
        };
        match manifest::parse(&bytes, &speaker, &self.name).definitions {
            Ok(definitions) => Ok(Some(definitions)),
            Err(found) => {
                let code = Code::InvalidManifest;
                faults.extend(found.iter().map(|fault| format!("{fault} [{code}]")));
                Ok(None)
            }
        }
    }
}

/// The component of a manifest: the one that it names, or that of its own name.
fn component_of(manifest: &Path) -> Result<PathBuf, SingleFault> {
    if !manifest.is_file() {
        let text = format!(
            "\"{}\" is not there; name a file that is",
            manifest.display()
        );
        return Err(SingleFault::Absent(text));
    }
    let bytes = read(manifest, Kind::Manifest)?;
    let stem = stem(manifest);
    let name =
        PluginName::new(&stem).map_err(|error| SingleFault::Refused(vec![error.to_string()]))?;
    let named = manifest::parse(&bytes, &file_name(manifest), &name).component;
    Ok(manifest.with_file_name(named.unwrap_or_else(|| format!("{stem}.wasm"))))
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn read(path: &Path, kind: Kind) -> Result<Vec<u8>, SingleFault> {
    let whole = || {
        if fs::metadata(path)?.len() > kind.max_bytes() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        fs::read(path)
    };
    whole().map_err(|error| {
        SingleFault::Host(format!("\"{}\" cannot be read ({error})", path.display()))
    })
}

#[cfg(test)]
#[path = "single_tests.rs"]
mod tests;
