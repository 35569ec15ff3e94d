//! `wasi:logging/logging`: lines into the tail of the task's log, beside standard error.

use wasmtime::StoreContextMut;
use wasmtime::component::{HasSelf, Linker};

use super::Guest;
use super::bindings::wasi::logging::logging::{self, Host, Level};

/// Links it under its version, and under none, as older components name it.
pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    logging::add_to_linker::<_, HasSelf<_>>(linker, |guest| guest)?;
    linker.instance("wasi:logging/logging")?.func_wrap(
        "log",
        |mut store: StoreContextMut<'_, Guest>, line: (Level, String, String)| {
            store.data_mut().log(line.0, line.1, line.2)
        },
    )
}

impl Host for Guest {
    fn log(&mut self, level: Level, context: String, message: String) -> wasmtime::Result<()> {
        let level = match level {
            Level::Trace => "TRACE",
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Warn => "WARN",
            Level::Error => "ERROR",
            Level::Critical => "CRITICAL",
        };
        let line = if context.is_empty() {
            format!("{level} {message}")
        } else {
            format!("{level} {context}: {message}")
        };
        self.log.line(&line);
        Ok(())
    }
}
