//! A manager with plugins in place, and waiting for what its tasks do.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use oncue_artifacts::Artifact;
use oncue_core::definition::Style;
use oncue_core::definition::{ProcessPatch, QueuePatch, Raw};
use oncue_core::names::{PluginName, QueueName};
use oncue_manager::reload::{PluginDefinitions, PluginState, PluginUpdate};
use oncue_manager::status::HostEvent;
use oncue_manager::tasks::ComponentVersion;
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use oncue_manager::tasks::record::TaskRecord;
use oncue_manager::{Handle, ManagerConfig, QueueManager, SystemClock};
use oncue_runtime::engine::compile;
use oncue_runtime::{Components, Loaded, PluginError, Sandbox, SandboxConfig, WasmTaskHost};
use oncue_store::memory::MemoryStore;
use tokio::sync::broadcast::Receiver;

/// Longer than any machine takes: a test that waits so long has failed.
const BOUND: Duration = Duration::from_secs(120);

/// The sandbox of this process.
pub(crate) fn sandbox() -> Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    let make = || {
        Sandbox::new(SandboxConfig {
            slots: Some(64),
            pools: 2,
        })
        .expect("a sandbox")
    };
    SANDBOX.get_or_init(make).clone()
}

/// Compiles a component and loads what came of it.
pub(crate) fn load(component: &Path) -> Result<Loaded, PluginError> {
    load_bytes(&std::fs::read(component).expect("the sample is there"))
}

/// Compiles the bytes of a component and loads what came of it.
pub(crate) fn load_bytes(component: &[u8]) -> Result<Loaded, PluginError> {
    let compiled = compile(component)?;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sample.cwasm");
    std::fs::write(&file, compiled).expect("written");
    sandbox().load(&file)
}

/// A sample, loaded once for all tests.
fn loaded(name: &str) -> Arc<Loaded> {
    static LOADED: Mutex<Option<HashMap<String, Arc<Loaded>>>> = Mutex::new(None);
    let mut all = LOADED.lock().expect("no test panics in here");
    let all = all.get_or_insert_default();
    if let Some(known) = all.get(name) {
        return Arc::clone(known);
    }
    let new = Arc::new(load(Path::new(sample(name).component)).expect("the sample loads"));
    all.insert(name.to_owned(), Arc::clone(&new));
    new
}

/// A sample by its name.
pub(crate) fn sample(name: &str) -> &'static Artifact {
    let found = oncue_artifacts::ALL
        .iter()
        .find(|artifact| artifact.name == name);
    found.expect("a sample of that name")
}

/// The manifest of a sample.
pub(crate) fn manifest(name: &str) -> String {
    let manifest = sample(name).manifest.map(std::fs::read_to_string);
    manifest
        .expect("a manifest")
        .expect("the manifest is there")
}

pub(crate) fn queue_name(name: &str) -> QueueName {
    QueueName::new(name).expect("a valid name")
}

/// A running manager with its sandbox.
pub(crate) struct Host {
    runtime: tokio::runtime::Runtime,
    manager: Option<QueueManager>,
    components: Components,
    pub(crate) tasks: Arc<WasmTaskHost>,
    pub(crate) handle: Handle,
}

impl Host {
    /// A host with samples in place, under their own manifests.
    pub(crate) fn with(samples: &[&str]) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let components = Components::default();
        let two = NonZeroUsize::new(2);
        let tasks = WasmTaskHost::new(sandbox(), components.clone(), two).expect("workers");
        let tasks = Arc::new(tasks);
        let store = Arc::new(MemoryStore::new(7, 1 << 30));
        let clock = Arc::new(SystemClock);
        let (config, host) = (ManagerConfig::default(), Arc::clone(&tasks));
        let manager = QueueManager::start(config, store, clock, host).expect("a manager");
        let handle = manager.handle();
        let host = Self {
            runtime,
            manager: Some(manager),
            components,
            tasks,
            handle,
        };
        for name in samples {
            host.install(name, &manifest(name));
        }
        host
    }

    /// Puts a sample in place under another manifest.
    pub(crate) fn install(&self, name: &str, manifest: &str) {
        self.place(name, loaded(name), manifest);
    }

    /// Puts a component in place under a manifest.
    pub(crate) fn place(&self, name: &str, component: Arc<Loaded>, manifest: &str) {
        let style = if manifest.contains("style = \"trigger\"") {
            Style::Trigger
        } else {
            component.style()
        };
        let plugin = PluginName::new(name).expect("a valid name");
        let digest = format!("digest of {name}");
        self.components.insert(digest.clone(), component);
        let update = PluginUpdate {
            name: plugin.clone(),
            file: format!("{name}.wasm"),
            state: PluginState::Ready(ComponentVersion {
                plugin,
                digest,
                style,
            }),
            definitions: Some(definitions(manifest)),
            previous: Vec::new(),
            facts: Vec::new(),
        };
        let applied = self.runtime.block_on(self.handle.plugin_changed(update));
        applied.expect("the plugin is accepted");
    }

    /// Defines queues that nothing serves.
    pub(crate) fn define(&self, queues: &[&str]) {
        for name in queues {
            let made = self
                .handle
                .define_queue(queue_name(name), QueuePatch::default());
            self.runtime.block_on(made).expect("the queue is defined");
        }
    }

    /// Puts messages as one unit.
    pub(crate) fn put(&self, queue: &str, bodies: &[&[u8]]) {
        let request = |body: &&[u8]| PutRequest {
            queue: queue_name(queue),
            body: Bytes::copy_from_slice(body),
            options: PutOptions::default(),
        };
        let puts = bodies.iter().map(request).collect();
        self.runtime
            .block_on(self.handle.put(puts, None))
            .expect("the put is accepted");
    }

    /// What happens from now on.
    pub(crate) fn watch(&self) -> Receiver<HostEvent> {
        self.handle.events()
    }

    /// The record of the next task of a queue that ends.
    pub(crate) fn next_end(&self, events: &mut Receiver<HostEvent>, of: &str) -> TaskRecord {
        let of = queue_name(of);
        let task = self.runtime.block_on(async {
            loop {
                let event = tokio::time::timeout(BOUND, events.recv()).await;
                match event
                    .expect("a task ends in time")
                    .expect("the manager lives")
                {
                    HostEvent::TaskEnded { task, queue, .. } if queue == of => return task,
                    _ => {}
                }
            }
        });
        self.runtime
            .block_on(self.handle.task(task))
            .expect("the record is kept")
    }

    /// Puts one message and waits for the end of the task that handles it.
    pub(crate) fn handle_one(&self, queue: &str, body: &[u8]) -> TaskRecord {
        let mut events = self.watch();
        self.put(queue, &[body]);
        self.next_end(&mut events, queue)
    }

    /// The bodies on a queue, in order.
    pub(crate) fn bodies(&self, queue: &str) -> Vec<String> {
        let page = self
            .handle
            .browse(&queue_name(queue), None, 1000, false)
            .expect("a page");
        let body = |found: &oncue_store::Browsed| {
            let body = self.handle.body(&found.message.body).expect("a body");
            String::from_utf8_lossy(&body).into_owned()
        };
        page.messages.iter().map(body).collect()
    }

    /// Waits until so many messages of a queue are in units of work: then its handlers run.
    pub(crate) fn await_in_unit(&self, queue: &str, count: i64) {
        let begun = Instant::now();
        loop {
            let view = self.runtime.block_on(self.handle.queue(queue_name(queue)));
            let now = view.expect("the queue is defined").counts.in_unit;
            if now == count {
                return;
            }
            assert!(
                begun.elapsed() < BOUND,
                "{now} messages in units, not {count}"
            );
        }
    }

    /// Waits until so many tasks are left: one whose record is there is a moment from its end.
    pub(crate) fn settle(&self, left: usize) {
        let begun = Instant::now();
        while self.tasks.tasks() != left {
            let now = self.tasks.tasks();
            assert!(begun.elapsed() < BOUND, "{now} tasks are left, not {left}");
            std::thread::yield_now();
        }
    }

    /// Stops the manager; true when all tasks ended by themselves.
    pub(crate) fn stop(&mut self, deadline: Duration) -> bool {
        let manager = self.manager.take().expect("not stopped yet");
        self.runtime.block_on(manager.shutdown(deadline))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if self.manager.is_some() {
            self.stop(Duration::ZERO);
        }
    }
}

/// What a manifest defines, read without the plugins directory.
fn definitions(manifest: &str) -> PluginDefinitions {
    let table: toml::Table = manifest.parse().expect("a manifest is TOML");
    let part = |name: &str| table.get(name).cloned().map_or(Raw::Table(Vec::new()), raw);
    let queues = match part("queue") {
        Raw::Table(queues) => queues,
        other => panic!("[queue] is {other:?}"),
    };
    PluginDefinitions {
        process: ProcessPatch::parse(&part("process")).expect("a valid process"),
        queues: queues
            .into_iter()
            .map(|(name, patch)| {
                (
                    queue_name(&name),
                    QueuePatch::parse(&patch).expect("a valid queue"),
                )
            })
            .collect(),
    }
}

fn raw(value: toml::Value) -> Raw {
    match value {
        toml::Value::String(text) => Raw::Text(text),
        toml::Value::Integer(number) => Raw::Integer(number),
        toml::Value::Float(number) => Raw::Float(number),
        toml::Value::Boolean(truth) => Raw::Boolean(truth),
        toml::Value::Array(list) => Raw::List(list.into_iter().map(raw).collect()),
        toml::Value::Table(table) => Raw::Table(
            table
                .into_iter()
                .map(|(name, value)| (name, raw(value)))
                .collect(),
        ),
        toml::Value::Datetime(_) => panic!("no manifest has a date"),
    }
}
