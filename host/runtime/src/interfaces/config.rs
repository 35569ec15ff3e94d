//! `wasi:config/store`: the `[process.config]` of the definition as it was when the task started.
//! Read only.

use super::Guest;
use super::bindings::wasi::config::store::{Error, Host};

impl Host for Guest {
    fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<String>, Error>> {
        let attributes = &self.session()?.spec().attributes;
        Ok(Ok(attributes.config.get(&key).cloned()))
    }

    fn get_all(&mut self) -> wasmtime::Result<Result<Vec<(String, String)>, Error>> {
        let attributes = &self.session()?.spec().attributes;
        Ok(Ok(attributes.config.clone().into_iter().collect()))
    }
}
