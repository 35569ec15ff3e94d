//! From a file's bytes to a version that can be started: made a component if it is a core module,
//! read, judged, compiled or found in the cache, loaded, tried under its limits. On a thread of its
//! own, away from tasks.
//!
//! It knows no plugin and no queue; a sentence of refusal names the file that it is given.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oncue_core::code::Code;
use oncue_core::definition::ProcessAttributes;
use oncue_core::quantity::{format_bytes, format_count, format_millis};
use tempfile::NamedTempFile;
use tokio::runtime::Runtime;
use tracing::warn;

use super::adapt;
use super::bounds::MAX_CACHE_BYTES;
use super::cache::{Cache, Compiled, Form};
use super::catalog::{NotPassed, Passed, Trial};
use super::compile::{Cancelled, CompileBounds, CompileError, Compiler};
use super::digest::Digest;
use super::kept::Source;
use super::reading::{self, Interfaces};
use super::seam::{self, LoadFault};
use super::shape::{self, Judgement};
use super::signatures::PluginKeys;
use crate::engine::{Loaded, Sandbox, Smoked};
use crate::host::Components;

/// What compiles and loads.
pub(crate) struct Loader {
    pub(crate) sandbox: Sandbox,
    /// None: nothing is kept, as for a check without a server.
    pub(crate) cache: Option<Cache>,
    pub(crate) compiler: Compiler,
    /// The engine's compatibility.
    pub(crate) engine: String,
    pub(crate) bounds: CompileBounds,
    pub(crate) cancelled: Cancelled,
    /// What a component must be signed with.
    pub(crate) keys: PluginKeys,
    /// For the timers of a trial.
    runtime: Runtime,
}

/// A component that is loaded and fit to be called.
pub(crate) struct Fit {
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) interfaces: Interfaces,
    pub(crate) judgement: Judgement,
    /// None: it came from the cache, or was loaded already.
    pub(crate) compile_time: Option<Duration>,
    /// What its trial took.
    pub(crate) smoked: Smoked,
    /// Whether the file is a core module, and the component was made of it.
    pub(crate) is_adapted: bool,
}

impl Loader {
    /// # Errors
    /// When the system has no timer to give.
    pub(crate) fn new(
        sandbox: Sandbox,
        cache: Option<Cache>,
        compiler: Compiler,
        engine: String,
        bounds: CompileBounds,
        cancelled: Cancelled,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        Ok(Self {
            sandbox,
            cache,
            compiler,
            engine,
            bounds,
            cancelled,
            keys: PluginKeys::default(),
            runtime,
        })
    }

    /// Does a trial: afterwards its component can be started, or there is a reason why not.
    pub(crate) fn check(
        &self,
        trial: &Trial,
        source: &Source,
        components: &Components,
    ) -> Result<Passed, NotPassed> {
        let (file, digest) = (&trial.file, &trial.key.component);
        let bytes = source.read(digest).map_err(|error| {
            NotPassed::Host(format!(
                "\"{file}\": its kept copy cannot be read ({error})"
            ))
        })?;
        // An earlier version may have been kept before there were keys, or by other keys. Its bytes
        // are not to blame: they may come again with a signature.
        if !self.keys.is_empty() && !source.is_signed(&bytes, &self.keys) {
            return Err(NotPassed::Host(format!(
                "\"{file}\": version {digest} is not signed by a key of plugin-keys [{}]",
                Code::SignatureWrong
            )));
        }
        let known = components.get(digest.as_str());
        let fit = self.prepare(&bytes, digest, file, &trial.attributes, known)?;
        if let Some(warning) = &fit.judgement.warning {
            warn!("{warning}");
        }
        let passed = Passed {
            style: fit.judgement.style,
            facts: facts(&fit, bytes.len()),
        };
        components.insert(digest.to_string(), fit.loaded);
        Ok(passed)
    }

    /// Judges, compiles, loads and tries a component.
    ///
    /// # Errors
    /// Why it cannot be called, or why that could not be found out.
    pub(crate) fn prepare(
        &self,
        bytes: &[u8],
        digest: &Digest,
        file: &str,
        attributes: &ProcessAttributes,
        known: Option<Arc<Loaded>>,
    ) -> Result<Fit, NotPassed> {
        let component = self.component(bytes, digest, file)?;
        let interfaces = reading::read(&component, file).map_err(NotPassed::Refused)?;
        let judgement =
            shape::judge(&interfaces, attributes.style, file).map_err(NotPassed::Refused)?;
        let (loaded, compile_time) = match known {
            Some(loaded) => (loaded, None),
            None => self.load(&component, digest, file)?,
        };
        if !seam::has_style(&loaded, judgement.style) {
            return Err(NotPassed::Refused(format!(
                "\"{file}\" {}, and the sandbox finds no such handler; build it against the worlds \
                 of this host [{}]",
                judgement.why,
                Code::WrongWorld
            )));
        }
        let smoked = self.try_out(&loaded, file, attributes)?;
        Ok(Fit {
            loaded,
            interfaces,
            judgement,
            compile_time,
            smoked,
            is_adapted: matches!(component, Cow::Owned(_)),
        })
    }

    /// Instantiates a component once under its limits.
    ///
    /// # Errors
    /// What keeps it from that.
    pub(crate) fn try_out(
        &self,
        loaded: &Loaded,
        file: &str,
        attributes: &ProcessAttributes,
    ) -> Result<Smoked, NotPassed> {
        let tried = seam::try_out(&self.sandbox, loaded, file, attributes);
        self.runtime.block_on(tried)
    }

    /// The component of a file: the file itself, or what is made of a core module, once for all
    /// starts.
    ///
    /// # Errors
    /// Why no component can be made of it, or why that could not be done now.
    pub(crate) fn component<'a>(
        &self,
        bytes: &'a [u8],
        digest: &Digest,
        file: &str,
    ) -> Result<Cow<'a, [u8]>, NotPassed> {
        if !adapt::is_core_module(bytes) {
            return Ok(Cow::Borrowed(bytes));
        }
        let lost = |error: io::Error| {
            NotPassed::Host(format!(
                "\"{file}\": the component made of it cannot be read ({error})"
            ))
        };
        let cached = self.cache.as_ref();
        if let Some(made) = cached.and_then(|cache| cache.look_up(Form::Adapted, digest)) {
            return fs::read(made.path()).map(Cow::Owned).map_err(lost);
        }
        let made = self.make(Form::Adapted, bytes, digest, file)?;
        fs::read(made.path()).map(Cow::Owned).map_err(lost)
    }

    /// Loads a component from the cache, or compiles it. `digest` is that of its file.
    fn load(
        &self,
        bytes: &[u8],
        digest: &Digest,
        file: &str,
    ) -> Result<(Arc<Loaded>, Option<Duration>), NotPassed> {
        if let Some(cache) = &self.cache
            && let Some(compiled) = cache.look_up(Form::Compiled, digest)
        {
            match seam::load(&self.sandbox, file, compiled.path()) {
                Ok(loaded) => return Ok((loaded, None)),
                Err(LoadFault::NotPassed(not_passed)) => return Err(not_passed),
                Err(LoadFault::Stale(text)) => {
                    warn!("the cached form of \"{file}\" is not used ({text}); compiled again");
                    cache.discard(Form::Compiled, digest);
                }
            }
        }
        let started = Instant::now();
        let compiled = self.make(Form::Compiled, bytes, digest, file)?;
        let time = started.elapsed();
        match seam::load(&self.sandbox, file, compiled.path()) {
            Ok(loaded) => Ok((loaded, Some(time))),
            Err(LoadFault::NotPassed(not_passed)) => Err(not_passed),
            Err(LoadFault::Stale(text)) => Err(NotPassed::Host(format!(
                "\"{file}\": what was just compiled is bad ({text})"
            ))),
        }
    }

    /// Makes something of a file's bytes, apart from this process if it is a server, and gives it
    /// to the cache. `digest` is that of the file.
    pub(crate) fn make(
        &self,
        form: Form,
        bytes: &[u8],
        digest: &Digest,
        file: &str,
    ) -> Result<Compiled, NotPassed> {
        // Without a cache, one that keeps nothing: its files lie in the temporary folder.
        let nowhere = Cache::open("/dev/null".into(), &self.engine, 0);
        let host = |error: io::Error| {
            NotPassed::Host(format!(
                "\"{file}\": there is no room for what is made of it ({error})"
            ))
        };
        let (cache, mut output) = match &self.cache {
            Some(cache) => (cache, cache.output().map_err(host)?),
            None => (&nowhere, nowhere.output_outside().map_err(host)?),
        };
        let mut made = self.make_to(form, bytes, &mut output);
        if matches!(made, Err(CompileError::Host(_))) {
            // Perhaps the cache's disk is full: once more, elsewhere.
            output = cache.output_outside().map_err(host)?;
            made = self.make_to(form, bytes, &mut output);
        }
        match made {
            Ok(()) => Ok(cache.store(form, digest, output)),
            Err(CompileError::Refused(text)) => {
                Err(NotPassed::Refused(format!("\"{file}\": {text}")))
            }
            Err(error) => Err(NotPassed::Host(format!("\"{file}\": {error}"))),
        }
    }

    fn make_to(
        &self,
        form: Form,
        bytes: &[u8],
        output: &mut NamedTempFile,
    ) -> Result<(), CompileError> {
        let (compiler, engine) = (&self.compiler, &self.engine);
        let file = output.as_file_mut();
        match form {
            Form::Compiled => compiler.compile(bytes, engine, file, self.bounds, &self.cancelled),
            Form::Adapted => compiler.adapt(bytes, engine, file, self.bounds, &self.cancelled),
        }
    }
}

/// What people may want to know of a version.
fn facts(fit: &Fit, size: usize) -> Vec<(String, String)> {
    let Fit {
        interfaces,
        judgement,
        compile_time,
        ..
    } = fit;
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let compiled = match compile_time {
        Some(time) => {
            format!(
                "in {}",
                format_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
            )
        }
        None => "before, from the cache".to_owned(),
    };
    let mut size = format_bytes(size as u64);
    if fit.is_adapted {
        size.push_str(", a core module made a component");
    }
    let mut facts = vec![
        fact("size", size),
        fact("style", judgement.why.clone()),
        fact(
            "exports",
            shape::list(interfaces.exports.iter().map(|it| it.name.as_str())),
        ),
        fact(
            "imports",
            shape::list(interfaces.imports.iter().map(|it| it.name.as_str())),
        ),
        fact("compiled", compiled),
        fact("instantiated", instantiated(&fit.smoked)),
    ];
    let warning = judgement.warning.iter().cloned();
    facts.extend(warning.map(|text| fact("warning", text)));
    facts
}

/// What an instance takes before it handles anything.
fn instantiated(smoked: &Smoked) -> String {
    let Smoked { fuel, memory, .. } = *smoked;
    format!(
        "with {} fuel and {} of memory",
        format_count(fuel),
        format_bytes(memory)
    )
}

/// A cache in the host's data directory.
pub(crate) fn cache_in(data: &std::path::Path, engine: &str) -> Cache {
    Cache::open(data.join("plugins-cache"), engine, MAX_CACHE_BYTES)
}

#[cfg(test)]
#[path = "loader_tests.rs"]
pub(crate) mod tests;
