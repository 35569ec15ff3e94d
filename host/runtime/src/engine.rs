//! The sandbox of the process: components are compiled for it, loaded into its pools
//! ([`crate::pool`]) and tried out.
//!
//! A second one would reserve the address space twice, and a third would not fit, so a [`Sandbox`]
//! is made once and cloned. Where a plugin's bytes come from, and that
//! compiled code is the code that was compiled, is the plugin directory's business: a file given to
//! [`Sandbox::load`] is trusted.

use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oncue_core::definition::{ProcessAttributes, limits};
use oncue_core::outcome::CallEnd;
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::classify::{Facts, classify, sentence};
use crate::error::PluginError;
use crate::interfaces::Guest;
use crate::pool::{Place, Pool, Pools, TABLE_ELEMENTS, host_fault, settings};
use crate::sink::Log;
use crate::task::deadline::{Deadline, Ended, within};
use crate::task::instance::new_store;
use crate::task::limits::Limits;
use crate::ticker::Ticker;
use crate::worker;

pub use crate::loaded::{Loaded, Needs};
pub use crate::pool::{pools, slots};

/// The shortest time in which a component is tried out, whatever its deadline: a host that is busy
/// with other compilations must not refuse a plugin for it. Fuel bounds what the guest itself does.
const TRY_OUT_MIN: Duration = Duration::from_secs(10);

/// The export by which a component is called once for each message.
pub const ON_MESSAGE: &str = "oncue:handler/on-message@0.1.0";
/// The export by which a component is told that there is work.
pub const ON_TRIGGER: &str = "oncue:handler/on-trigger@0.1.0";

/// How a sandbox is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct SandboxConfig {
    /// Instances at a time; none: what the system allows. Never more than that.
    pub slots: Option<u32>,
    /// Pools that they are spread over ([`pools`]): one when not said, at most
    /// [`crate::pool::MAX_POOLS`], and fewer where there are few slots.
    pub pools: usize,
}

/// What a sandbox can give and enforce. A demand past it is refused when a plugin is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Instances at a time.
    pub slots: u32,
    /// Linear memory of one instance, in bytes.
    pub max_memory: u64,
    /// Table elements of one instance.
    pub max_table_elements: u64,
    /// False when the system refused the pool: instances cost more to make.
    pub pooled: bool,
}

/// What it took to instantiate a component once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smoked {
    /// Time, with the check of what it exports.
    pub time: Duration,
    /// Fuel: what the guest's own start-up burns, before any message.
    pub fuel: u64,
    /// Linear memory of the instance, in bytes.
    pub memory: u64,
}

/// The pools, and who advances their epochs. Cloning shares it; one is made for the process.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    pools: Pools,
    ticker: Ticker,
    limits: SandboxLimits,
    compatibility: String,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox")
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}

/// Compiles a component to what [`Sandbox::load`] reads. For a child process: it takes time and
/// memory without bound of its own, about 30 MB for each MB of the component.
///
/// # Errors
/// [`PluginError::NotComponent`] and [`PluginError::CompileFailed`].
pub fn compile(component: &[u8]) -> Result<Vec<u8>, PluginError> {
    let is_component = component.starts_with(b"\0asm") && component.get(6..8) == Some(&[1, 0]);
    if !is_component {
        let what = if component.starts_with(b"\0asm") {
            "the file is a WebAssembly module and not a component; build it for wasm32-wasip2"
        } else {
            "the file is not WebAssembly; build a component for wasm32-wasip2"
        };
        return Err(PluginError::NotComponent(what.to_owned()));
    }
    let engine = Engine::new(&settings()).map_err(host_fault)?;
    engine.precompile_component(component).map_err(|error| {
        PluginError::CompileFailed(format!("the component does not compile: {error:#}"))
    })
}

/// Names the engine that [`compile`] compiles for; equal to [`Sandbox::compatibility`] of the same
/// build.
///
/// # Errors
/// The engine cannot be made.
pub fn compile_compatibility() -> Result<String, PluginError> {
    Ok(compatibility(
        &Engine::new(&settings()).map_err(host_fault)?,
    ))
}

/// The engine's own compatibility hash under a hash that is the same in every run.
fn compatibility(engine: &Engine) -> String {
    struct Stable(Sha256);
    impl Hasher for Stable {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            // Only what is written counts here.
            0
        }
    }
    let mut hasher = Stable(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher
        .0
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl Sandbox {
    /// Makes the sandbox of this process.
    ///
    /// # Errors
    /// [`PluginError::Io`] when the system refuses what even an engine without a pool needs.
    pub fn new(config: SandboxConfig) -> Result<Self, PluginError> {
        let wanted = slots(config.slots);
        let pools = Pools::reserve(wanted, config.pools)?;
        let ticker = Ticker::start(pools.iter().map(|pool| &pool.engine))
            .map_err(|error| PluginError::Io(format!("the ticker cannot start: {error}")))?;
        let limits = SandboxLimits {
            slots: pools.slots().min(wanted),
            max_memory: limits::MAX_MEMORY,
            max_table_elements: TABLE_ELEMENTS as u64,
            pooled: pools.pooled,
        };
        let compatibility = compatibility(&pools.first().engine);
        Ok(Self(Arc::new(Inner {
            pools,
            ticker,
            limits,
            compatibility,
        })))
    }

    /// What it can give and enforce.
    #[must_use]
    pub fn limits(&self) -> SandboxLimits {
        self.0.limits
    }

    /// Names the engine: compiled code fits this engine if it was compiled under the same name. 64
    /// hexadecimal digits.
    #[must_use]
    pub fn compatibility(&self) -> &str {
        &self.0.compatibility
    }

    pub(crate) fn pools(&self) -> &Pools {
        &self.0.pools
    }

    /// A place for an instance of the worker whose thread this is.
    pub(crate) fn place(&self) -> Place<'_> {
        self.0.pools.place(worker::number())
    }

    pub(crate) fn ticker(&self) -> &Ticker {
        &self.0.ticker
    }

    /// Loads what [`compile`] made and links it. The caller has verified that the file is what the
    /// compiler wrote, by a digest that is kept elsewhere: the code in it runs as it stands.
    ///
    /// # Errors
    /// [`PluginError::Incompatible`] for another engine's code or a truncated file; else why the
    /// component cannot run here.
    pub fn load(&self, serialized: &Path) -> Result<Loaded, PluginError> {
        #[expect(
            unsafe_code,
            reason = "compiled code is native code, and mapping it is how it is loaded in \
                      microseconds; it was written by our own compiler into a private \
                      directory, and the caller has just checked its digest"
        )]
        // SAFETY: the file is the unchanged output of `compile`, as the caller's contract above
        // says; that it is of an engine with the same settings and version is checked by wasmtime
        // itself.
        let load = |pool: &Pool| unsafe { Component::deserialize_file(&pool.engine, serialized) };
        let components = self.0.pools.iter().map(load).collect::<Result<Vec<_>, _>>();
        let components = components.map_err(|error| {
            PluginError::Incompatible(format!("the compiled component does not fit: {error:#}"))
        })?;
        Loaded::new(self, &components)
    }

    /// Instantiates a component once under its limits, and drops the instance. Needs tokio's timers
    /// around it.
    ///
    /// # Errors
    /// [`PluginError::Smoke`] with what the guest did, in words.
    pub async fn smoke(
        &self,
        loaded: &Loaded,
        attributes: &ProcessAttributes,
    ) -> Result<Smoked, PluginError> {
        let limits = Limits::new(attributes);
        let log = Log::new(limits.log);
        let [each, task] =
            [limits.deadline, limits.task_deadline].map(|time| time.max(TRY_OUT_MIN));
        let deadline = Arc::new(Deadline::new(each, task));
        let guest = Guest::new(None, &limits, &log, &deadline, false, None);
        let place = self.place();
        let mut store = new_store(place.engine(), guest, &limits).map_err(host_fault)?;
        let running = self.ticker().running();
        let (fuel, started) = (store.get_fuel().unwrap_or_default(), Instant::now());
        let tried = loaded.in_pool(place.number()).try_out(&mut store);
        let ended = within(tried, &deadline, std::future::pending()).await;
        let time = started.elapsed();
        drop(running);
        let refused = |what: &str| {
            PluginError::Smoke(format!("the component cannot be instantiated: it {what}"))
        };
        match ended {
            Ended::Done(Ok(())) => Ok(Smoked {
                time,
                fuel: fuel.saturating_sub(store.get_fuel().unwrap_or_default()),
                memory: store.data().limiter.peak_memory(),
            }),
            Ended::Done(Err(error)) => {
                let facts = Facts::new(&limits, store.data());
                match classify(&error, &facts) {
                    // No room now: the plugins directory tries again later.
                    CallEnd::HostFailed(reason) => Err(PluginError::Io(format!(
                        "the component could not be tried: {reason}"
                    ))),
                    end => Err(refused(&sentence(&end))),
                }
            }
            Ended::PastDeadline | Ended::Stopped => Err(refused("ran past its deadline")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_compiled_by_the_child_fits_the_pool() {
        let sandbox = Sandbox::new(SandboxConfig {
            slots: Some(16),
            ..SandboxConfig::default()
        })
        .expect("made");
        let child = compile_compatibility().expect("made");
        assert_eq!(sandbox.compatibility(), child);
        assert_eq!(child.len(), 64);
        let mut other = settings();
        other.consume_fuel(false);
        assert_ne!(compatibility(&Engine::new(&other).expect("made")), child);
    }

    #[test]
    fn a61_what_is_no_component_is_refused_in_words() {
        for (bytes, wanted) in [
            (&b"#!/bin/sh"[..], "is not WebAssembly"),
            (&b""[..], "is not WebAssembly"),
            (
                &b"\0asm\x01\0\0\0"[..],
                "is a WebAssembly module and not a component",
            ),
            (&b"\0asm\x0d\0\x01\0\xff"[..], "does not compile"),
        ] {
            let error = compile(bytes).expect_err("refused").to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
