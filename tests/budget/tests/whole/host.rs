//! A queue manager over the embedded store, with the real sandbox and the echo sample, in this
//! process.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use oncue_artifacts::ECHO;
use oncue_core::definition::{ProcessPatch, QueuePatch, Style};
use oncue_core::names::{PluginName, QueueName};
use oncue_manager::reload::{PluginDefinitions, PluginState, PluginUpdate};
use oncue_manager::status::HostEvent;
use oncue_manager::tasks::ComponentVersion;
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use oncue_manager::{Handle, ManagerConfig, QueueManager, SystemClock};
use oncue_runtime::engine::compile;
use oncue_runtime::{Components, Sandbox, SandboxConfig, WasmTaskHost};
use oncue_store::embedded::{EmbeddedOptions, EmbeddedStore};
use tokio::sync::broadcast::Receiver;

/// Stands for the component's digest: there is one component.
const DIGEST: &str = "echo";

/// Longer than any run, in milliseconds: a sweep asks every queue, whatever the messages did.
const NEVER: u64 = 3_600_000;

/// How long one wait may last before the test has failed.
const BOUND: Duration = Duration::from_secs(60);

/// The queue manager and what it stands on.
pub(crate) struct Host {
    pub(crate) handle: Handle,
    manager: QueueManager,
    events: Receiver<HostEvent>,
    _directory: tempfile::TempDir,
}

impl Host {
    /// One that serves `echo` into `echo.out`.
    pub(crate) async fn start(persistent: bool) -> Self {
        let sandbox = Sandbox::new(SandboxConfig {
            slots: Some(16),
            ..SandboxConfig::default()
        })
        .expect("a sandbox");
        let directory = tempfile::tempdir().expect("a directory");
        let code = directory.path().join("echo.cwasm");
        let component = std::fs::read(ECHO).expect("the echo sample");
        std::fs::write(&code, compile(&component).expect("it compiles")).expect("it is written");
        let components = Components::default();
        let loaded = sandbox.load(&code).expect("it loads");
        components.insert(DIGEST.to_owned(), Arc::new(loaded));
        let tasks = WasmTaskHost::new(sandbox, components, None).expect("a task host");
        let options = EmbeddedOptions {
            reserve_bytes: 0,
            ballast_bytes: 0,
            guard_interval: Duration::from_millis(NEVER),
            ..EmbeddedOptions::default()
        };
        let path = directory.path().join("data");
        let store = EmbeddedStore::open(&path, options).expect("the store opens");
        let config = ManagerConfig {
            sweep_period: NEVER,
            in_hand: Some(directory.path().join("in-hand")),
            seed: Some(7),
            ..ManagerConfig::default()
        };
        let clock = Arc::new(SystemClock);
        // The start waits for the disk, which a runtime's own thread may not.
        let start = move || QueueManager::start(config, Arc::new(store), clock, Arc::new(tasks));
        let started = tokio::task::spawn_blocking(start).await;
        let manager = started.expect("no panic").expect("the manager starts");
        let handle = manager.handle();
        let events = handle.events();
        let host = Self {
            handle,
            manager,
            events,
            _directory: directory,
        };
        host.define(persistent).await;
        host
    }

    async fn define(&self, persistent: bool) {
        let word = if persistent {
            "persistent"
        } else {
            "non-persistent"
        };
        let queue = |trigger: &str| {
            let flags = [
                ("default-persistence".to_owned(), word.to_owned()),
                ("trigger".to_owned(), trigger.to_owned()),
            ];
            QueuePatch::parse_flags(&flags).expect("attributes")
        };
        let grants = [("grants.put".to_owned(), "echo.out".to_owned())];
        let plugin = PluginName::new("echo").expect("a plugin's name");
        let update = PluginUpdate {
            name: plugin.clone(),
            file: "echo.wasm".to_owned(),
            state: PluginState::Ready(ComponentVersion {
                plugin,
                digest: DIGEST.to_owned(),
                style: Style::Message,
            }),
            definitions: Some(PluginDefinitions {
                process: ProcessPatch::parse_flags(&grants).expect("grants"),
                queues: vec![
                    (name("echo.out"), queue("none")),
                    (name("echo"), queue("first")),
                ],
            }),
            previous: Vec::new(),
            facts: Vec::new(),
        };
        let taken = self.handle.plugin_changed(update).await;
        taken.expect("the plugin is taken");
    }

    /// Puts so many messages as one unit of work.
    pub(crate) async fn put(&self, body: &Bytes, count: usize) {
        let put = || PutRequest {
            queue: name("echo"),
            body: body.clone(),
            options: PutOptions::default(),
        };
        let puts = (0..count).map(|_| put()).collect();
        let put = self.handle.put(puts, None).await;
        put.expect("the puts are taken");
    }

    /// Waits until tasks that together handled so many messages have ended; answers how many tasks.
    pub(crate) async fn wait(&mut self, messages: u64) -> u64 {
        let (mut handled, mut tasks) = (0, 0);
        while handled < messages {
            let event = tokio::time::timeout(BOUND, self.events.recv()).await;
            let event = event.expect("the messages are handled in time");
            if let HostEvent::TaskEnded {
                committed, failed, ..
            } = event.expect("no event is missed")
            {
                assert_eq!(failed, 0, "no message fails");
                handled += committed;
                tasks += 1;
            }
        }
        tasks
    }

    /// Ends it.
    pub(crate) async fn stop(self) {
        assert!(self.manager.shutdown(BOUND).await, "every task has ended");
    }
}

pub(crate) fn name(queue: &str) -> QueueName {
    QueueName::new(queue).expect("a queue's name")
}
