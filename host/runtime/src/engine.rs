//! The one engine of the process: its settings, its pool of instances, and what every component is
//! linked against.
//!
//! Two pooled engines in one process would reserve the address space twice, and a third would not
//! fit, so a [`Sandbox`] is made once and cloned. Where a plugin's bytes come from, and that
//! compiled code is the code that was compiled, is the plugin directory's business: a file given to
//! [`Sandbox::load`] is trusted.

use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oncue_core::definition::{ProcessAttributes, limits};
use oncue_core::outcome::CallEnd;
use sha2::{Digest, Sha256};
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::classify::{Facts, classify, sentence};
use crate::error::PluginError;
use crate::interfaces::{self, Guest};
use crate::limiter::{MAX_MEMORIES, MAX_TABLES};
use crate::sink::Log;
use crate::task::deadline::{Deadline, Ended, within};
use crate::task::instance::new_store;
use crate::task::limits::Limits;
use crate::ticker::Ticker;

pub use crate::loaded::{Loaded, Needs};

/// The shortest time in which a component is tried out, whatever its deadline: a host that is busy
/// with other compilations must not refuse a plugin for it. Fuel bounds what the guest itself does.
const TRY_OUT_MIN: Duration = Duration::from_secs(10);

/// The export by which a component is called once for each message.
pub const ON_MESSAGE: &str = "oncue:handler/on-message@0.1.0";
/// The export by which a component is told that there is work.
pub const ON_TRIGGER: &str = "oncue:handler/on-trigger@0.1.0";

/// Most instances at a time, whatever the system allows.
const MAX_SLOTS: u32 = 10_000;
/// Fewest for which a pool is worth its while.
const MIN_SLOTS: u32 = 16;
/// Memory mappings of one live instance.
const MAPS_PER_SLOT: u64 = 6;
/// Memory mappings left for everything else in the process.
const SPARE_MAPS: u64 = 5_000;
/// The usual bound of mappings, where the system does not tell.
const USUAL_MAPS: u64 = 65_530;

/// Core instances of one component; an interpreter with its adapters has some twenty.
const CORE_INSTANCES: u32 = 64;
/// Largest core instance, in bytes without its memory and tables: those of interpreters pass one
/// MiB.
const CORE_INSTANCE_BYTES: usize = 4 << 20;
/// Table elements that the pool holds for one table.
const TABLE_ELEMENTS: usize = 1_000_000;
/// Memory of an instance that stays with its slot: what an interpreter touches. Needs the page-map
/// scan.
const KEEP_MEMORY: usize = 2 << 20;
/// The same for tables.
const KEEP_TABLE: usize = 64 << 10;
/// Slots given back to the system at once, where there is no page-map scan.
const GIVE_BACK: usize = 16;
/// Frames of a backtrace: enough to see a recursion.
const BACKTRACE_FRAMES: usize = 32;

/// How a sandbox is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct SandboxConfig {
    /// Instances at a time; none: what the system allows. Never more than that.
    pub slots: Option<u32>,
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

/// The engine and what guests are linked against. Cloning shares it; one is made for the process.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    engine: Engine,
    linker: Linker<Guest>,
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

/// How many instances may live at a time: as configured, and never past what the system's bound of
/// memory mappings allows. Past that bound the host itself would be refused memory.
#[must_use]
pub fn slots(configured: Option<u32>) -> u32 {
    let maps = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    let maps = maps
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(USUAL_MAPS);
    let most = (maps.saturating_sub(SPARE_MAPS) / MAPS_PER_SLOT).min(u64::from(MAX_SLOTS));
    let most = u32::try_from(most).unwrap_or(MAX_SLOTS).max(1);
    configured.unwrap_or(most).clamp(1, most)
}

/// What decides how code is compiled; the same for the pool and for the child that compiles.
fn settings() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .concurrency_support(false)
        // Many loaded modules make the system's unwinder slow; backtraces do not need it.
        .native_unwind_info(false)
        .wasm_backtrace_max_frames(NonZeroUsize::new(BACKTRACE_FRAMES));
    config
}

/// The pool's settings for so many instances.
fn pool(slots: u32) -> PoolingAllocationConfig {
    let count = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_core_instances(slots.saturating_mul(8).max(2 * CORE_INSTANCES))
        .total_memories(slots.saturating_mul(2))
        .total_tables(slots.saturating_mul(4).max(2 * count(MAX_TABLES)))
        .total_stacks(slots)
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(count(MAX_MEMORIES))
        .max_tables_per_component(count(MAX_TABLES))
        .max_tables_per_module(count(MAX_TABLES))
        .max_core_instance_size(CORE_INSTANCE_BYTES)
        .max_component_instance_size(CORE_INSTANCE_BYTES)
        .table_elements(TABLE_ELEMENTS)
        // The limiter has the last word; a slot is all that 32 bits can address anyway.
        .max_memory_size(usize::try_from(limits::MAX_MEMORY).unwrap_or(usize::MAX));
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        pool.pagemap_scan(Enabled::Yes)
            .linear_memory_keep_resident(KEEP_MEMORY)
            .table_keep_resident(KEEP_TABLE);
    } else {
        // Without the scan, what is kept is zeroed whole at each end: dearer than new pages.
        pool.decommit_batch_size(GIVE_BACK);
    }
    pool
}

/// A pooled engine; with fewer slots, and at last without a pool, where the address space is short.
fn pooled(slots: u32) -> Result<(Engine, u32, bool), PluginError> {
    let mut fewer = slots;
    while fewer >= MIN_SLOTS.min(slots) {
        let mut config = settings();
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(fewer)));
        match Engine::new(&config) {
            Ok(engine) => return Ok((engine, fewer, true)),
            Err(error) => tracing::warn!(
                slots = fewer,
                "the pool of instances cannot be reserved, a smaller one is tried: {error:#}"
            ),
        }
        if fewer == 1 {
            break;
        }
        fewer /= 2;
    }
    tracing::warn!("no pool of instances can be reserved; each instance costs more to make");
    let engine = Engine::new(&settings()).map_err(host_fault)?;
    Ok((engine, slots, false))
}

fn host_fault(error: wasmtime::Error) -> PluginError {
    PluginError::Io(format!("the sandbox cannot be made: {error:#}"))
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
        let (engine, slots, pooled) = pooled(slots(config.slots))?;
        let mut linker = Linker::new(&engine);
        interfaces::add_to_linker(&mut linker).map_err(host_fault)?;
        let ticker = Ticker::start(&engine)
            .map_err(|error| PluginError::Io(format!("the ticker cannot start: {error}")))?;
        let limits = SandboxLimits {
            slots,
            max_memory: limits::MAX_MEMORY,
            max_table_elements: TABLE_ELEMENTS as u64,
            pooled,
        };
        let compatibility = compatibility(&engine);
        Ok(Self(Arc::new(Inner {
            engine,
            linker,
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

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(crate) fn linker(&self) -> &Linker<Guest> {
        &self.0.linker
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
        let component = unsafe { Component::deserialize_file(&self.0.engine, serialized) };
        let component = component.map_err(|error| {
            PluginError::Incompatible(format!("the compiled component does not fit: {error:#}"))
        })?;
        Loaded::new(self, &component)
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
        let mut store = new_store(self.engine(), guest, &limits).map_err(host_fault)?;
        let running = self.ticker().running();
        let (fuel, started) = (store.get_fuel().unwrap_or_default(), Instant::now());
        let tried = loaded.try_out(&mut store);
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
    fn slots_never_pass_what_the_system_allows() {
        let most = slots(None);
        assert!((1..=MAX_SLOTS).contains(&most), "{most}");
        assert_eq!(slots(Some(0)), 1);
        assert_eq!(slots(Some(u32::MAX)), most);
        assert_eq!(slots(Some(7)), 7.min(most));
    }

    #[test]
    fn code_compiled_by_the_child_fits_the_pool() {
        let sandbox = Sandbox::new(SandboxConfig { slots: Some(16) }).expect("made");
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
