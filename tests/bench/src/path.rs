//! One measurement of the whole path under load: a new manager, a closed loop, and the proof that
//! all of the work was done.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use oncue_manager::status::StatusView;
use oncue_runtime::{Loaded, Sandbox};
use oncue_store::Store;

use crate::floor;
use crate::host::{self, Flag, Setup};
use crate::load::{self, Load, Taken};
use crate::watched::{self, Arrived};

/// Where messages are.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kept {
    /// In the memory store.
    Memory,
    /// In the embedded store, not persistent.
    Volatile,
    /// In the embedded store, persistent.
    Durable,
}

impl Kept {
    /// A new store for them, in a folder of its own if it needs one.
    pub(crate) fn store(self, directory: &Path) -> anyhow::Result<Arc<dyn Store>> {
        match self {
            Self::Memory => Ok(host::memory()),
            Self::Volatile | Self::Durable => host::embedded(directory, "store"),
        }
    }
}

/// How the echo sample is run.
pub(crate) struct Way {
    pub(crate) kept: Kept,
    /// Messages between their put and their committed effect.
    pub(crate) in_flight: u64,
    /// Bytes of a message.
    pub(crate) length: usize,
    /// Worker threads; one for each core when not said.
    pub(crate) workers: Option<NonZeroUsize>,
    pub(crate) queue: &'static [Flag],
    pub(crate) process: &'static [Flag],
    pub(crate) measure: Duration,
}

/// Runs it once. What the manager counted comes with it.
pub(crate) async fn measure(
    sandbox: &Sandbox,
    echo: &Arc<Loaded>,
    way: &Way,
) -> anyhow::Result<(Taken, StatusView)> {
    let directory = host::directory()?;
    let arrived = Arrived::new(host::name("echo.out"));
    let mut setup = Setup::echo(echo, way.kept == Kept::Durable);
    setup.workers = way.workers;
    for serving in &mut setup.serving {
        serving.queue = way.queue.to_vec();
        serving.process.extend(way.process);
    }
    let store = watched::watch(way.kept.store(directory.path())?, &arrived);
    let manager = host::start_with(store, sandbox, &setup).await?;
    let handle = manager.handle();
    let load = Load {
        queue: "echo",
        body: Bytes::from(vec![b'x'; way.length]),
        in_flight: way.in_flight,
        warm: floor::WARM,
        measure: way.measure,
    };
    let taken = load::run(handle.clone(), arrived, load).await?;
    host::check_done(&handle, "echo", "echo.out", taken.put).await?;
    let status = handle.status().await?;
    manager.shutdown(host::END).await;
    Ok((taken, status))
}
