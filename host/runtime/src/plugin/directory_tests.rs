//! The whole way: files in a real directory, the real sandbox, a real manager over memory.

use std::fs;
use std::sync::Arc;

use oncue_core::admission::Demand;
use oncue_core::names::PluginName;
use oncue_manager::reload::PluginView;
use oncue_manager::{ManagerConfig, QueueManager, SystemClock};
use oncue_store::memory::MemoryStore;
use tempfile::TempDir;

use super::super::loader::tests::{good, sandbox};
use super::*;
use crate::host::WasmTaskHost;

/// Long enough for any machine; nothing waits for it when all is well.
const PATIENCE: Duration = Duration::from_secs(120);
/// Memory of the store, bytes.
const STORE_BYTES: u64 = 1 << 20;

struct Host {
    folder: TempDir,
    components: Components,
    sandbox: Sandbox,
    manager: QueueManager,
    directory: Option<PluginDirectory>,
    runtime: tokio::runtime::Runtime,
}

impl Host {
    fn start() -> Self {
        let (sandbox, components) = (sandbox(), Components::default());
        let tasks = WasmTaskHost::new(sandbox.clone(), components.clone(), None).expect("workers");
        let store = Arc::new(MemoryStore::new(1, STORE_BYTES));
        let clock = Arc::new(SystemClock);
        let manager = QueueManager::start(ManagerConfig::default(), store, clock, Arc::new(tasks));
        let manager = manager.expect("a manager");
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("plugins")).expect("a folder");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        let runtime = runtime.expect("a runtime");
        Self {
            folder,
            components,
            sandbox,
            manager,
            directory: None,
            runtime,
        }
    }

    fn open(&mut self) {
        let total = Demand {
            memory: 1 << 30,
            fuel: 20_000_000_000,
        };
        let capacity = Capacity {
            total,
            table_elements: 100_000,
        };
        let (plugins, data) = (
            self.folder.path().join("plugins"),
            self.folder.path().join("data"),
        );
        let config = PluginDirectoryConfig {
            settle: Duration::from_millis(5),
            rescan: Duration::from_millis(50),
            ..PluginDirectoryConfig::new(plugins, data, Compiler::InProcess, capacity)
        };
        let commands = self.manager.take_plugin_commands().expect("the commands");
        let directory = PluginDirectory::start(
            config,
            &self.sandbox,
            &self.components,
            self.manager.handle(),
            commands,
        );
        self.directory = Some(directory.expect("a directory"));
    }

    fn write(&self, file: &str, bytes: &[u8]) {
        fs::write(self.folder.path().join("plugins").join(file), bytes).expect("written");
    }

    /// Waits until the manager shows the plugin so; answers how it shows it.
    fn wait_for(&self, is_so: impl Fn(Option<&PluginView>) -> bool) -> Option<PluginView> {
        let handle = self.manager.handle();
        let mut events = handle.events();
        let name = PluginName::new("orders").expect("a name");
        let waiting = async {
            loop {
                let view = handle.plugin(name.clone()).await.ok();
                if is_so(view.as_ref()) {
                    return view;
                }
                // A lagging or closed channel leads to another look, or to the end by time.
                let _ = events.recv().await;
            }
        };
        let waited = self
            .runtime
            .block_on(async { tokio::time::timeout(PATIENCE, waiting).await });
        waited.unwrap_or_else(|_| panic!("it never came so: {:?}", self.now()))
    }

    fn now(&self) -> Vec<PluginView> {
        self.runtime
            .block_on(self.manager.handle().plugins())
            .expect("plugins")
    }

    fn end(mut self) {
        if let Some(directory) = self.directory.take() {
            directory.shutdown();
        }
        assert!(self.runtime.block_on(self.manager.shutdown(PATIENCE)));
    }
}

fn is_state(word: &'static str) -> impl Fn(Option<&PluginView>) -> bool {
    move |view| view.is_some_and(|view| view.state == word)
}

/// The good component with something in it that makes its digest another.
fn other_good() -> Vec<u8> {
    let mut bytes = good();
    // A custom section: id 0, 3 bytes, a name of 2.
    bytes.extend([0, 3, 2, b'h', b'i']);
    bytes
}

#[test]
fn a65_a_dropped_component_is_live_and_goes_with_its_file() {
    let mut host = Host::start();
    host.write("orders.wasm", &good());
    host.open();
    let directory = host.directory.as_ref().expect("open");
    assert!(directory.wait_until_quiet(PATIENCE));
    let view = host.wait_for(is_state("ready")).expect("a plugin");
    assert_eq!(
        view.queues
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["orders"]
    );
    assert!(view.file.ends_with("plugins/orders.wasm"), "{}", view.file);
    let first = view.digest.expect("a digest");
    assert!(host.components.get(&first).is_some());

    host.write("orders.wasm", b"not wasm");
    let view = host.wait_for(is_state("quarantined")).expect("a plugin");
    assert_eq!(view.digest.as_ref(), Some(&first));
    assert!(
        view.reason
            .expect("a reason")
            .starts_with("\"orders.wasm\" is not WebAssembly")
    );

    host.write("orders.wasm", &other_good());
    let view = host.wait_for(is_state("ready")).expect("a plugin");
    let second = view.digest.expect("a digest");
    assert_ne!(first, second);
    assert_eq!(view.previous, std::slice::from_ref(&first));

    let orders = PluginName::new("orders").expect("a name");
    let back = host
        .runtime
        .block_on(host.manager.handle().rollback(orders))
        .expect("rolled back");
    assert_eq!(back, first);
    host.wait_for(|view| view.is_some_and(|view| view.digest.as_ref() == Some(&first)));

    fs::remove_file(host.folder.path().join("plugins/orders.wasm")).expect("removed");
    host.wait_for(|view| view.is_none());
    let queue = oncue_core::names::QueueName::new("orders").expect("a name");
    host.runtime
        .block_on(host.manager.handle().queue(queue))
        .expect("the queue stays");
    host.end();
}

#[test]
fn an_unknown_plugin_cannot_be_rolled_back() {
    let mut host = Host::start();
    host.open();
    let orders = PluginName::new("orders").expect("a name");
    let refused = host
        .runtime
        .block_on(host.manager.handle().rollback(orders));
    let refused = refused.expect_err("refused").to_string();
    assert!(refused.ends_with("[unknown-plugin]"), "{refused}");
    host.end();
}
