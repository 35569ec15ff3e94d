//! A queue manager with the real sandbox in this process, serving the echo sample.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use oncue_core::definition::Style;
use oncue_core::definition::{Layered, ProcessPatch, QueuePatch};
use oncue_core::names::{PluginName, QueueName};
use oncue_manager::reload::{PluginDefinitions, PluginState, PluginUpdate};
use oncue_manager::tasks::ComponentVersion;
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use oncue_manager::{Handle, ManagerConfig, QueueManager, SystemClock};
use oncue_runtime::engine::compile;
use oncue_runtime::{Components, Loaded, Sandbox, WasmTaskHost};
use oncue_store::Store;

/// Stands for the component's digest: there is one component.
const DIGEST: &str = "echo";

/// The echo sample, compiled and loaded.
pub(crate) fn load_echo(sandbox: &Sandbox) -> anyhow::Result<Arc<Loaded>> {
    let component = std::fs::read(oncue_artifacts::ECHO).context("read the echo sample")?;
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), compile(&component)?)?;
    Ok(Arc::new(sandbox.load(file.path())?))
}

/// A manager over `store` that serves the queue `echo` into `echo.out`.
pub(crate) async fn start(
    store: Arc<dyn Store>,
    sandbox: &Sandbox,
    echo: &Arc<Loaded>,
    persistent: bool,
) -> anyhow::Result<QueueManager> {
    let components = Components::default();
    components.insert(DIGEST.to_owned(), Arc::clone(echo));
    let tasks = WasmTaskHost::new(sandbox.clone(), components, None)?;
    let clock = Arc::new(SystemClock);
    // The start waits for the disk, which a runtime's own thread may not.
    let begin =
        move || QueueManager::start(ManagerConfig::default(), store, clock, Arc::new(tasks));
    let manager = tokio::task::spawn_blocking(begin).await??;
    let handle = manager.handle();
    let persistence = if persistent {
        "persistent"
    } else {
        "non-persistent"
    };
    let queue = |more: &[(&str, &str)]| -> anyhow::Result<QueuePatch> {
        let mut flags = vec![("default-persistence".to_owned(), persistence.to_owned())];
        flags.extend(more.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
        QueuePatch::parse_flags(&flags).map_err(|faults| anyhow::anyhow!("{faults:?}"))
    };
    handle
        .define_queue(name("echo.out"), queue(&[("trigger", "none")])?)
        .await?;
    let plugin = PluginName::new("echo")?;
    let grants = [("grants.put".to_owned(), "echo.out".to_owned())];
    let process = ProcessPatch::parse_flags(&grants).map_err(|f| anyhow::anyhow!("{f:?}"))?;
    let process = Layered::from_manifest(process).base;
    let queues = vec![(name("echo"), queue(&[("max-tasks", "4")])?)];
    let version = ComponentVersion {
        plugin: plugin.clone(),
        digest: DIGEST.to_owned(),
        style: Style::Message,
    };
    handle
        .plugin_changed(PluginUpdate {
            name: plugin,
            file: "echo.wasm".to_owned(),
            state: PluginState::Ready(version),
            definitions: Some(PluginDefinitions { process, queues }),
            previous: Vec::new(),
            facts: Vec::new(),
        })
        .await?;
    Ok(manager)
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

pub(crate) fn name(queue: &str) -> QueueName {
    QueueName::new(queue).expect("a queue's name")
}
