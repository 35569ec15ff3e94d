//! One file looked at closely: what it is, how it would be called and why, what its manifest asks
//! for, and what it costs to compile and to instantiate.
//!
//! What is no WebAssembly is refused; a component that no host would call is described like any
//! other. It runs in the sandbox with nothing granted. Neighbour: `check` says whether a host would
//! load a plugin.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use oncue_core::definition::{ProcessAttributes, ProcessPatch};
use oncue_core::names::PluginName;
use oncue_manager::reload::PluginDefinitions;
use serde::Serialize;

use super::bounds::{COMPILE_MEMORY, COMPILE_TIMEOUT};
use super::cache::Form;
use super::catalog::{Candidate, NotPassed, attributes};
use super::check::{Found, millis};
use super::compile::{CompileBounds, Compiler};
use super::digest::Digest;
use super::loader::Loader;
use super::manifest::Definitions;
use super::scan::Kind;
use super::seam::{self, LoadFault};
use super::signatures::PluginKeys;
use super::single::SinglePlugin;
use super::{adapt, reading, shape};
use crate::engine::{Loaded, Sandbox, Smoked};
use crate::style;

/// Attributes by which a plugin is granted something.
const GRANTS: &str = "grants.";

/// What a component is, whether it can serve or not.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Inspection {
    /// The file.
    pub file: PathBuf,
    /// SHA-256 of the file.
    pub digest: String,
    /// Bytes of the file.
    pub size: u64,
    /// Whether the file is a core module, which is made a component at load.
    pub core_module: bool,
    /// How it would be called; none: it would not.
    pub style: Option<String>,
    /// By what that was found, or why it would not be called.
    pub why: String,
    /// What is accepted and probably not meant.
    pub warnings: Vec<String>,
    /// The world of that style.
    pub world: Option<String>,
    /// Names of its exports.
    pub exports: Vec<String>,
    /// Names of its imports.
    pub imports: Vec<String>,
    /// The manifest's file; none: there is none beside the file.
    pub manifest: Option<PathBuf>,
    /// Whether the manifest that holds is inside of the file.
    pub embedded_manifest: bool,
    /// What is wrong with the manifest that holds.
    pub manifest_fault: Option<String>,
    /// The grants that the manifest asks for, by attribute.
    pub grants: Vec<(String, String)>,
    /// Milliseconds that compiling took; none when it was not compiled.
    pub compile_time: Option<u64>,
    /// Bytes of machine code and data that it was compiled to.
    pub compiled_size: Option<u64>,
    /// Microseconds that the first instance took.
    pub instantiate_microseconds: Option<u64>,
    /// Fuel that the first instance burned before any call.
    pub instantiate_fuel: Option<u64>,
    /// Bytes of linear memory of an instance that was not called.
    pub memory: Option<u64>,
    /// Fuel of a call with an empty message, and how it ended; whoever can make one fills it in.
    pub empty_call: Option<EmptyCall>,
    /// What keeps it from being compiled or instantiated.
    pub fault: Option<String>,
}

/// A call with an empty message and nothing granted.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct EmptyCall {
    /// Fuel that it burned, with a new instance.
    pub fuel: u64,
    /// How it ended.
    pub outcome: String,
    /// Why, where that is no success.
    pub detail: Option<String>,
}

/// Why a file is not described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InspectFault {
    /// It is no component and cannot be made one: the sentence names it.
    Refused(String),
    /// It could not be found out.
    Host(String),
}

impl From<NotPassed> for InspectFault {
    fn from(fault: NotPassed) -> Self {
        match fault {
            NotPassed::Refused(text) => Self::Refused(text),
            NotPassed::Host(text) => Self::Host(text),
        }
    }
}

/// An inspection, and what it loaded.
#[derive(Debug)]
pub struct Inspected {
    /// What was found.
    pub inspection: Inspection,
    /// The plugin under its manifest's limits and with nothing granted, to be called; none when it
    /// cannot be.
    pub plugin: Option<SinglePlugin>,
}

/// Looks at one file, compiles it, and instantiates it once.
///
/// # Errors
/// [`InspectFault`].
pub fn inspect(
    path: &Path,
    sandbox: &Sandbox,
    compiler: Compiler,
) -> Result<Inspected, InspectFault> {
    let shown = path.display().to_string();
    let cannot = |error: &dyn std::fmt::Display| {
        InspectFault::Host(format!("\"{shown}\" cannot be read ({error})"))
    };
    let length = fs::metadata(path).map_err(|error| cannot(&error))?.len();
    if length > Kind::Component.max_bytes() {
        return Err(cannot(&"it is too large"));
    }
    let bytes = fs::read(path).map_err(|error| cannot(&error))?;
    let file = path.file_name().and_then(OsStr::to_str).unwrap_or(&shown);
    let digest = Digest::of(&bytes);
    let loader = loader(sandbox, compiler)?;
    let component = loader.component(&bytes, &digest, file)?;
    let interfaces = reading::read(&component, file).map_err(InspectFault::Refused)?;
    let mut inspection = Inspection {
        file: path.to_path_buf(),
        digest: digest.to_string(),
        size: bytes.len() as u64,
        core_module: adapt::is_core_module(&bytes),
        ..Inspection::default()
    };
    let candidate = Found::file(path, &PluginKeys::default()).ok();
    let candidate = candidate.and_then(|found| found.candidate(file));
    let definitions = inspection.manifest(path, candidate);
    let attributes = attributes(&definitions);
    let judgement = shape::judge(&interfaces, attributes.style, file);
    match &judgement {
        Ok(judgement) => {
            inspection.style = Some(judgement.style.to_string());
            inspection.why.clone_from(&judgement.why);
            inspection.warnings.extend(judgement.warning.clone());
            let def = style::find(judgement.style);
            inspection.world = def.map(|def| def.world.to_owned());
        }
        Err(why) => inspection.why.clone_from(why),
    }
    inspection.exports = interfaces.exports.into_iter().map(|it| it.name).collect();
    inspection.imports = interfaces.imports.into_iter().map(|it| it.name).collect();
    let measured = inspection.measure(&loader, &component, &digest, file, &attributes);
    let loaded = measured.unwrap_or_else(|fault| {
        let (NotPassed::Refused(text) | NotPassed::Host(text)) = fault;
        inspection.fault = Some(text);
        None
    });
    let plugin = loaded.zip(judgement.ok()).map(|(loaded, judgement)| {
        let name = name_of(path);
        SinglePlugin {
            version: seam::version(&name, &digest, judgement.style),
            component: path.to_path_buf(),
            manifest: None,
            definitions: alone(&name, definitions),
            attributes,
            loaded,
            why: judgement.why,
            compile_time: None,
            warnings: judgement.warning.into_iter().collect(),
        }
    });
    Ok(Inspected { inspection, plugin })
}

/// The plugin's name, or one that stands for it where the file's is none.
fn name_of(path: &Path) -> PluginName {
    let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let name = PluginName::new(stem).ok();
    name.filter(|name| !name.is_reserved())
        .unwrap_or_else(|| PluginName::new("inspected").expect("a name"))
}

/// What a manifest defines without its grants, and with no queue but one of the plugin's name.
fn alone(name: &PluginName, definitions: Definitions) -> PluginDefinitions {
    PluginDefinitions {
        process: definitions.process,
        queues: Definitions::without_manifest(name).queues,
    }
}

/// Takes everything away that the manifest asks for.
fn ungrant(process: &mut ProcessPatch) {
    process.component = None;
    process.output = None;
    process.grants_put = None;
    process.grants_get = None;
    process.grants_browse = None;
    process.grants_http = None;
    process.grants_environment = None;
    process.grants_secrets = None;
}

fn loader(sandbox: &Sandbox, compiler: Compiler) -> Result<Loader, InspectFault> {
    let host = |error: &dyn std::fmt::Display| {
        InspectFault::Host(format!("components cannot be tried: {error}"))
    };
    let bounds = CompileBounds {
        timeout: COMPILE_TIMEOUT,
        memory: COMPILE_MEMORY,
    };
    let engine = seam::compatibility().map_err(|error| host(&error))?;
    let cancelled = Arc::new(AtomicBool::new(false));
    let loader = Loader::new(sandbox.clone(), None, compiler, engine, bounds, cancelled);
    loader.map_err(|error| host(&error))
}

impl Inspection {
    /// Takes in the manifest; answers what holds without its grants, the defaults under a faulty
    /// one.
    fn manifest(&mut self, path: &Path, candidate: Option<Candidate>) -> Definitions {
        let Some(candidate) = candidate else {
            return Definitions::default();
        };
        if candidate.manifest_text.is_some() {
            self.manifest = Some(path.with_file_name(&candidate.speaker));
        }
        self.embedded_manifest = candidate.is_packed();
        match &candidate.definitions {
            Ok(definitions) => {
                let entries = attributes(definitions).entries().into_iter();
                let grants = entries.filter(|(name, _)| name.starts_with(GRANTS));
                let shown = grants.map(|(name, raw)| (name.to_owned(), raw.to_string()));
                self.grants = shown
                    .filter(|(_, value)| value != "[]" && value != "{}")
                    .collect();
                let mut definitions = (**definitions).clone();
                ungrant(&mut definitions.process);
                definitions
            }
            Err(reason) => {
                self.manifest_fault = Some(reason.clone());
                Definitions::default()
            }
        }
    }

    fn measure(
        &mut self,
        loader: &Loader,
        component: &[u8],
        digest: &Digest,
        file: &str,
        attributes: &ProcessAttributes,
    ) -> Result<Option<Arc<Loaded>>, NotPassed> {
        let started = Instant::now();
        let compiled = loader.make(Form::Compiled, component, digest, file)?;
        self.compile_time = Some(millis(started.elapsed()));
        let metadata = fs::metadata(compiled.path());
        self.compiled_size = metadata.ok().map(|metadata| metadata.len());
        if self.style.is_none() {
            // The sandbox would only say the same in other words.
            return Ok(None);
        }
        let loaded = match seam::load(&loader.sandbox, file, compiled.path()) {
            Ok(loaded) => loaded,
            Err(LoadFault::NotPassed(fault)) => return Err(fault),
            Err(LoadFault::Stale(text)) => {
                let text = format!("\"{file}\": what was just compiled is bad ({text})");
                return Err(NotPassed::Host(text));
            }
        };
        let Smoked { time, fuel, memory } = loader.try_out(&loaded, file, attributes)?;
        self.instantiate_microseconds = Some(micros(time));
        self.instantiate_fuel = Some(fuel);
        self.memory = Some(memory);
        Ok(Some(loaded))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
