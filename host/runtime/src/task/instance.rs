//! The one place where a `wasmtime::Store` is made, with every limit set. A store serves one
//! instance, and none after a trap or a dropped call.

use wasmtime::{Engine, Store, UpdateDeadline};

use super::limits::Limits;
use crate::interfaces::Guest;

/// A store with its limits.
///
/// # Errors
/// The host has no memory for it.
pub(crate) fn new_store(
    engine: &Engine,
    guest: Guest,
    limits: &Limits,
) -> wasmtime::Result<Store<Guest>> {
    let mut store = Store::try_new(engine, guest)?;
    // Samples the counts of instances, tables and memories: the limiter in `guest` is final here.
    store.limiter(|guest| &mut guest.limiter);
    store.set_fuel(limits.fuel)?;
    // Each tick gives way to other tasks of the worker, and lets the deadline be looked at.
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|store| {
        store.data().gives_way();
        Ok(UpdateDeadline::Yield(1))
    });
    store.set_hostcall_fuel(usize::try_from(limits.host_call_bytes()).unwrap_or(usize::MAX));
    store.set_max_component_handles(limits.all_handles());
    Ok(store)
}
