//! The sandbox: runs handlers under their limits. The only crate that names wasmtime, wasmtime-wasi
//! and notify.
//!
//! It knows no queue, no trigger and no policy: a [`oncue_manager::tasks::TaskSession`] acts for
//! the guest, and `wasmtime::Error` becomes an outcome or a [`PluginError`] before it leaves. Start
//! at [`host`] for how a task is started, at `task` for how it runs, at
//! `style` for how it is called, at [`engine`] for the
//! settings, at `interfaces` for what a guest may call.

pub mod bare;
pub mod engine;
pub mod error;
pub mod host;
pub mod measure;
pub mod plugin;
pub mod pool;
pub mod secrets;
pub mod watch;

mod classify;
mod interfaces;
mod limiter;
mod loaded;
mod sink;
mod style;
mod task;
mod ticker;
mod worker;

/// The version of wasmtime inside.
pub const WASMTIME_VERSION: &str = "48.0.8";

pub use engine::{Loaded, Needs, Sandbox, SandboxConfig, SandboxLimits, Smoked};
pub use error::PluginError;
pub use host::{Components, WasmTaskHost};
pub use secrets::Secrets;

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_told_is_the_one_that_is_locked() {
        let locked = include_str!("../../../Cargo.lock");
        let wanted = format!(
            "name = \"wasmtime\"\nversion = \"{}\"\n",
            super::WASMTIME_VERSION
        );
        assert!(locked.contains(&wanted), "Cargo.lock has another wasmtime");
    }
}
