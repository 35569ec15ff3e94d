//! `wasi:logging/logging`: lines into the tail of the task's log, beside standard error.

use super::Guest;
use super::bindings::wasi::logging::logging::{Host, Level};

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
