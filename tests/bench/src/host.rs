//! A queue manager with the real sandbox in this process.
//!
//! [`start`] serves the echo sample as most scenarios want it; [`Setup`] is for those that want
//! other samples, other settings, or another count of workers.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use oncue_core::definition::{ProcessPatch, QueuePatch};
use oncue_core::names::{PluginName, QueueName};
use oncue_manager::reload::{PluginDefinitions, PluginState, PluginUpdate};
use oncue_manager::retention::Retention;
use oncue_manager::tasks::ComponentVersion;
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use oncue_manager::tasks::probe::Probe;
use oncue_manager::{Handle, ManagerConfig, QueueManager, SystemClock};
use oncue_runtime::engine::{compile, pools};
use oncue_runtime::{Components, Loaded, Sandbox, SandboxConfig, WasmTaskHost};
use oncue_store::Store;
use oncue_store::embedded::{EmbeddedOptions, EmbeddedStore};
use oncue_store::memory::MemoryStore;

/// How long a manager may take to end.
pub(crate) const END: Duration = Duration::from_secs(5);

/// Bytes that a memory store of the benches may hold: never what bounds a run.
const MEMORY: u64 = 4 << 30;

/// A pair of an attribute's name and its value.
pub(crate) type Flag = (&'static str, &'static str);

/// A plugin and the queue of the same name that it serves.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) name: &'static str,
    pub(crate) loaded: Arc<Loaded>,
    /// Attributes of the process definition.
    pub(crate) process: Vec<Flag>,
    /// Attributes of the queue.
    pub(crate) queue: Vec<Flag>,
}

/// What to start.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) persistent: bool,
    /// Worker threads; one for each core when not said.
    pub(crate) workers: Option<NonZeroUsize>,
    pub(crate) serving: Vec<Serving>,
    /// Queues that nothing serves.
    pub(crate) outputs: Vec<&'static str>,
    pub(crate) probe: Option<Arc<dyn Probe>>,
    /// Bytes of task records that are kept; as on a host when not said.
    pub(crate) records: Option<u64>,
}

impl Setup {
    /// The echo sample on the queue `echo`, putting to `echo.out`.
    pub(crate) fn echo(echo: &Arc<Loaded>, persistent: bool) -> Self {
        let serving = Serving {
            name: "echo",
            loaded: Arc::clone(echo),
            process: vec![("grants.put", "echo.out")],
            queue: vec![("max-tasks", "4")],
        };
        Self {
            persistent,
            workers: None,
            serving: vec![serving],
            outputs: vec!["echo.out"],
            probe: None,
            records: None,
        }
    }
}

/// A sandbox for so many instances, with pools as a host has them.
pub(crate) fn sandbox(slots: u32) -> anyhow::Result<Sandbox> {
    Ok(Sandbox::new(SandboxConfig {
        slots: Some(slots),
        pools: pools(None),
    })?)
}

/// The echo sample, compiled and loaded.
pub(crate) fn load_echo(sandbox: &Sandbox) -> anyhow::Result<Arc<Loaded>> {
    load(sandbox, oncue_artifacts::ECHO)
}

/// A sample, compiled and loaded.
pub(crate) fn load(sandbox: &Sandbox, sample: &str) -> anyhow::Result<Arc<Loaded>> {
    let component = std::fs::read(sample).with_context(|| format!("read sample {sample}"))?;
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), compile(&component)?)?;
    Ok(Arc::new(sandbox.load(file.path())?))
}

/// A folder on the disk that is measured: the build's own target folder, or what
/// `ONCUE_BENCH_DIR` names. Removed with what is in it when the answer is dropped.
pub(crate) fn directory() -> anyhow::Result<tempfile::TempDir> {
    let place = match std::env::var_os("ONCUE_BENCH_DIR") {
        Some(named) => PathBuf::from(named),
        None => {
            let program = std::env::current_exe()?;
            program.parent().unwrap_or(Path::new(".")).to_owned()
        }
    };
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(&place);
    folder.with_context(|| format!("make a folder in {}", place.display()))
}

/// A new memory store.
pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(1, MEMORY))
}

/// A new embedded store in a folder of its own.
pub(crate) fn embedded(directory: &Path, name: &str) -> anyhow::Result<Arc<dyn Store>> {
    let store = EmbeddedStore::open(&directory.join(name), EmbeddedOptions::default())?;
    Ok(Arc::new(store))
}

/// A manager over `store` that serves the queue `echo` into `echo.out`.
pub(crate) async fn start(
    store: Arc<dyn Store>,
    sandbox: &Sandbox,
    echo: &Arc<Loaded>,
    persistent: bool,
) -> anyhow::Result<QueueManager> {
    start_with(store, sandbox, &Setup::echo(echo, persistent)).await
}

/// A manager over `store` as it was set up.
pub(crate) async fn start_with(
    store: Arc<dyn Store>,
    sandbox: &Sandbox,
    setup: &Setup,
) -> anyhow::Result<QueueManager> {
    let components = Components::default();
    for serving in &setup.serving {
        // Stands for the component's digest: names differ as digests would.
        components.insert(serving.name.to_owned(), Arc::clone(&serving.loaded));
    }
    let tasks = WasmTaskHost::new(sandbox.clone(), components, setup.workers)?;
    let clock = Arc::new(SystemClock);
    let usual = Retention::default();
    let config = ManagerConfig {
        probe: setup.probe.clone(),
        retention: Retention {
            bytes: setup.records.unwrap_or(usual.bytes),
            ..usual
        },
        ..ManagerConfig::default()
    };
    // The start waits for the disk, which a runtime's own thread may not.
    let begin = move || QueueManager::start(config, store, clock, Arc::new(tasks));
    let manager = tokio::task::spawn_blocking(begin).await??;
    let handle = manager.handle();
    for output in &setup.outputs {
        let patch = queue_patch(setup, &[("trigger", "none")])?;
        handle.define_queue(name(output), patch).await?;
    }
    for serving in &setup.serving {
        let update = update(setup, serving)?;
        handle.plugin_changed(update).await?;
    }
    Ok(manager)
}

fn queue_patch(setup: &Setup, more: &[Flag]) -> anyhow::Result<QueuePatch> {
    let persistence = if setup.persistent {
        "persistent"
    } else {
        "non-persistent"
    };
    let mut flags = vec![
        ("default-persistence".to_owned(), persistence.to_owned()),
        ("max-depth".to_owned(), "100000000".to_owned()),
    ];
    flags.extend(more.iter().map(owned));
    QueuePatch::parse_flags(&flags).map_err(|faults| anyhow::anyhow!("{faults:?}"))
}

fn owned((name, value): &Flag) -> (String, String) {
    ((*name).to_owned(), (*value).to_owned())
}

fn update(setup: &Setup, serving: &Serving) -> anyhow::Result<PluginUpdate> {
    let plugin = PluginName::new(serving.name)?;
    let flags: Vec<_> = serving.process.iter().map(owned).collect();
    let process = ProcessPatch::parse_flags(&flags).map_err(|f| anyhow::anyhow!("{f:?}"))?;
    let queue = queue_patch(setup, &serving.queue)?;
    let version = ComponentVersion {
        plugin: plugin.clone(),
        digest: serving.name.to_owned(),
        style: serving.loaded.style(),
    };
    Ok(PluginUpdate {
        name: plugin,
        file: format!("{}.wasm", serving.name),
        state: PluginState::Ready(version),
        definitions: Some(PluginDefinitions {
            process,
            queues: vec![(name(serving.name), queue)],
        }),
        previous: Vec::new(),
        facts: Vec::new(),
    })
}

/// Puts `count` messages of `length` bytes from `producers` at once; each waits for its answer.
pub(crate) async fn put_all(
    handle: &Handle,
    queue: &str,
    count: usize,
    length: usize,
    producers: usize,
) -> anyhow::Result<()> {
    let body = Bytes::from(vec![b'x'; length]);
    let mut running = Vec::new();
    for producer in 0..producers {
        let (handle, body, queue) = (handle.clone(), body.clone(), name(queue));
        let share = count / producers + usize::from(producer < count % producers);
        running.push(tokio::spawn(async move {
            for _ in 0..share {
                let (queue, body) = (queue.clone(), body.clone());
                let put = PutRequest {
                    queue,
                    body,
                    options: PutOptions::default(),
                };
                handle.put(vec![put], None).await?;
            }
            anyhow::Ok(())
        }));
    }
    for producer in running {
        producer.await??;
    }
    Ok(())
}

/// Waits until a queue holds `depth` messages.
pub(crate) async fn wait_for(handle: &Handle, queue: &str, depth: u64) -> anyhow::Result<()> {
    while handle.queue(name(queue)).await?.depth < depth {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// Fails unless every message that was put has had its one effect and nothing else happened: the
/// queue empty, the output full, no dead letter.
pub(crate) async fn check_done(
    handle: &Handle,
    queue: &str,
    output: &str,
    put: u64,
) -> anyhow::Result<()> {
    // The last task commits before it ends: its queue is looked at as it stands.
    let left = handle.queue(name(queue)).await?.depth;
    let out = handle.queue(name(output)).await?.depth;
    let dead = handle.status().await?.dead_letters;
    anyhow::ensure!(
        left == 0 && out == put && dead == 0,
        "{put} messages were put to {queue}: {out} are in {output}, {left} are left, {dead} are \
         dead letters"
    );
    Ok(())
}

pub(crate) fn name(queue: &str) -> QueueName {
    QueueName::new(queue).expect("a queue's name")
}
