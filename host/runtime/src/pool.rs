//! The pools that instances are made in: what the system has room for, the engines' settings, and
//! who has a place where.
//!
//! Each pool has an engine of its own. Threads that make instances in one engine hinder each other
//! at every step, since its locks and counts are shared; so a host has a pool for each worker, up
//! to [`MAX_POOLS`], and a worker makes its instances in its own while there is room. The reasons
//! and figures stand in decision record 0042. Together the pools have as many places as one would
//! have: they share the address space and the memory mappings that the system allows.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering};

use oncue_core::definition::limits;
use wasmtime::component::Linker;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::error::PluginError;
use crate::interfaces::{self, Guest};
use crate::limiter::{MAX_MEMORIES, MAX_TABLES};

/// Most pools of a process. Every plugin is loaded into each: what an engine knows of it is in
/// memory so often, its code and data once.
pub const MAX_POOLS: usize = 4;

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
pub(crate) const TABLE_ELEMENTS: usize = 1_000_000;
/// Memory of an instance that stays with its slot: what an interpreter touches. Needs the page-map
/// scan.
const KEEP_MEMORY: usize = 2 << 20;
/// The same for tables.
const KEEP_TABLE: usize = 64 << 10;
/// Slots of all pools together that keep their memory while nothing uses them.
const WARM_SLOTS: u32 = 100;
/// Slots given back to the system at once, where there is no page-map scan.
const GIVE_BACK: usize = 16;
/// Frames of a backtrace: enough to see a recursion.
const BACKTRACE_FRAMES: usize = 32;

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
pub(crate) fn settings() -> Config {
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

/// How many pools a host has with so many workers, of which there is one for each core unless told
/// otherwise.
#[must_use]
pub fn pools(workers: Option<NonZeroUsize>) -> usize {
    worker_count(workers).min(MAX_POOLS)
}

/// How many workers there are: as told, or one for each core.
pub(crate) fn worker_count(told: Option<NonZeroUsize>) -> usize {
    let cores = std::thread::available_parallelism().ok();
    told.or(cores).map_or(1, NonZeroUsize::get)
}

/// A pool's settings for so many instances, when there are so many pools.
fn allocation(slots: u32, pools: u32) -> PoolingAllocationConfig {
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
        .max_unused_warm_slots(WARM_SLOTS.div_ceil(pools))
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
fn pooled(slots: u32, pools: u32) -> Result<(Engine, u32, bool), PluginError> {
    let mut fewer = slots;
    while fewer >= MIN_SLOTS.min(slots) {
        match with_pool(fewer, pools) {
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

fn with_pool(slots: u32, pools: u32) -> wasmtime::Result<Engine> {
    let mut config = settings();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(allocation(
        slots, pools,
    )));
    Engine::new(&config)
}

/// One pool, and what guests are linked against in its engine. On a cache line of its own: each
/// instance is counted in and out.
#[repr(align(128))]
pub(crate) struct Pool {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<Guest>,
    slots: u32,
    /// Places that are taken.
    taken: AtomicU32,
}

impl Pool {
    fn new(engine: Engine, slots: u32) -> Result<Self, PluginError> {
        let mut linker = Linker::new(&engine);
        interfaces::add_to_linker(&mut linker).map_err(host_fault)?;
        Ok(Self {
            engine,
            linker,
            slots,
            taken: AtomicU32::new(0),
        })
    }
}

/// All pools of the process. Never empty.
pub(crate) struct Pools {
    all: Vec<Pool>,
    /// False when the system refused even one.
    pub(crate) pooled: bool,
}

impl Pools {
    /// Reserves up to `wanted` pools with `slots` places together; fewer where the address space is
    /// short.
    ///
    /// # Errors
    /// [`PluginError::Io`] when the system refuses what even an engine without a pool needs.
    pub(crate) fn reserve(slots: u32, wanted: usize) -> Result<Self, PluginError> {
        let wanted = u32::try_from(wanted.clamp(1, MAX_POOLS)).unwrap_or(1);
        // A pool of few places is one that is full too often.
        let wanted = wanted.min(slots.div_ceil(MIN_SLOTS)).max(1);
        let (engine, each, pooled) = pooled(slots.div_ceil(wanted), wanted)?;
        let mut all = vec![Pool::new(engine, each)?];
        while pooled && all.len() < wanted as usize {
            match with_pool(each, wanted) {
                Ok(engine) => all.push(Pool::new(engine, each)?),
                Err(error) => {
                    tracing::warn!("workers share {} pools of instances: {error:#}", all.len());
                    break;
                }
            }
        }
        Ok(Self { all, pooled })
    }

    /// Places of all of them together.
    pub(crate) fn slots(&self) -> u32 {
        self.all.iter().map(|pool| pool.slots).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pool> {
        self.all.iter()
    }

    /// The pool that all have.
    pub(crate) fn first(&self) -> &Pool {
        self.all.first().expect("there is always one")
    }

    /// A place for one instance: in the pool of that worker while there is room, else in another.
    /// When all are full the engine says so.
    pub(crate) fn place(&self, worker: usize) -> Place<'_> {
        let (from, to) = self.all.split_at(worker % self.all.len());
        let (from, to) = (from.iter().enumerate(), to.iter().enumerate());
        let near = to.map(|(at, pool)| (from.len() + at, pool));
        for (number, pool) in near.chain(from.clone()) {
            let place = Place::take(number, pool);
            if place.taken <= pool.slots {
                return place;
            }
        }
        Place::take(0, self.first())
    }
}

/// A place for one instance in a pool, until it is dropped. The instance goes first.
pub(crate) struct Place<'a> {
    number: usize,
    pool: &'a Pool,
    /// Places that were taken in the pool when this one was, itself among them.
    taken: u32,
}

impl<'a> Place<'a> {
    fn take(number: usize, pool: &'a Pool) -> Self {
        let taken = pool.taken.fetch_add(1, Ordering::Relaxed) + 1;
        Self {
            number,
            pool,
            taken,
        }
    }

    /// The pool's number, by which a component is found in it.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn engine(&self) -> &'a Engine {
        &self.pool.engine
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.pool.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) fn host_fault(error: wasmtime::Error) -> PluginError {
    PluginError::Io(format!("the sandbox cannot be made: {error:#}"))
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
    fn pools_share_the_places_and_small_ones_are_not_divided() {
        for (slots, wanted, pools, all) in [
            (64, 2, 2, 64),
            (65, 2, 2, 66),
            (64, 0, 1, 64),
            (64, 100, MAX_POOLS, 64),
            (17, 4, 2, 18),
            (16, 4, 1, 16),
            (1, 4, 1, 1),
        ] {
            let made = Pools::reserve(slots, wanted).expect("made");
            assert_eq!(
                (made.all.len(), made.slots()),
                (pools, all),
                "{slots} {wanted}"
            );
            assert!(made.pooled);
        }
    }

    #[test]
    fn a_worker_has_its_own_pool_while_there_is_room_and_then_any() {
        let pools = Pools::reserve(32, 2).expect("made");
        let number = |places: &[Place<'_>]| places.iter().map(Place::number).sum::<usize>();
        for worker in 0..4 {
            let mut places: Vec<_> = (0..16).map(|_| pools.place(worker)).collect();
            assert_eq!(
                number(&places),
                16 * (worker % 2),
                "all in the worker's own"
            );
            places.extend((0..16).map(|_| pools.place(worker)));
            assert_eq!(number(&places), 16, "the rest in the other");
            // One more than there is: the engine refuses it, and nothing is lost by it.
            drop(pools.place(worker));
            places.remove(3);
            assert_eq!(
                pools.place(worker).number(),
                worker % 2,
                "a place is free again"
            );
        }
        assert!(
            pools
                .iter()
                .all(|pool| pool.taken.load(Ordering::Relaxed) == 0)
        );
    }
}
