//! `wasi:config/store`: the `[process.config]` of the definition as it was when the task started,
//! and the secrets that are granted, by their names. Read only. Its drafts differ in their names
//! alone.

use wasmtime::StoreContextMut;
use wasmtime::component::{HasSelf, Linker};

use super::Guest;
use super::bindings::wasi::config::store::{self, Error, Host};

/// The other names in use: the package's own drafts, the oldest under another interface, and
/// Spin's.
const OTHER_NAMES: [&str; 3] = [
    "wasi:config/runtime@0.2.0-draft",
    "wasi:config/store@0.2.0-draft",
    "wasi:config/store@0.2.0-draft-2024-09-27",
];

/// Links it under every name.
pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    store::add_to_linker::<_, HasSelf<_>>(linker, |guest| guest)?;
    for name in OTHER_NAMES {
        let mut config = linker.instance(name)?;
        config.func_wrap(
            "get",
            |mut store: StoreContextMut<'_, Guest>, (key,): (String,)| {
                Ok((store.data_mut().get(key)?,))
            },
        )?;
        config.func_wrap(
            "get-all",
            |mut store: StoreContextMut<'_, Guest>, (): ()| Ok((store.data_mut().get_all()?,)),
        )?;
    }
    Ok(())
}

impl Host for Guest {
    fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<String>, Error>> {
        let attributes = &self.session()?.spec().attributes;
        let secret = || self.log.secrets().get(&key).map(str::to_owned);
        Ok(Ok(attributes.config.get(&key).cloned().or_else(secret)))
    }

    fn get_all(&mut self) -> wasmtime::Result<Result<Vec<(String, String)>, Error>> {
        let mut all = self.session()?.spec().attributes.config.clone();
        for (name, value) in self.log.secrets().all() {
            all.entry(name.to_owned())
                .or_insert_with(|| value.to_owned());
        }
        Ok(Ok(all.into_iter().collect()))
    }
}
