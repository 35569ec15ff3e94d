//! `oncue:handler/budget`: what is left of fuel and time. Linked by hand, because fuel is the
//! `wasmtime::Store`'s.

use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use super::Guest;

pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut budget = linker.instance("oncue:handler/budget@0.1.0")?;
    budget.func_wrap("fuel-left", |store: StoreContextMut<'_, Guest>, (): ()| {
        Ok((store.get_fuel()?,))
    })?;
    budget.func_wrap("time-left", |store: StoreContextMut<'_, Guest>, (): ()| {
        let left = store.data().deadline.left().as_millis();
        Ok((u64::try_from(left).unwrap_or(u64::MAX),))
    })?;
    Ok(())
}
