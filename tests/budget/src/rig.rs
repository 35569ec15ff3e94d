//! A manager stepped by hand: manual clock, memory store, tasks that wait to be run. No thread.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use oncue_core::definition::{ProcessPatch, QueuePatch, Style};
use oncue_core::names::{PluginName, QueueName};
use oncue_core::outcome::CallEnd;
use oncue_manager::reload::{PluginDefinitions, PluginState, PluginUpdate};
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use oncue_manager::tasks::{
    CallReport, ComponentVersion, Delivered, Handler, StartError, TaskCost, TaskHost, TaskSession,
    drain,
};
use oncue_manager::{Handle, Manager, ManagerConfig, ManualClock};
use oncue_store::memory::{MEMORY_STORE_MAX_BYTES, MemoryStore};
use parking_lot::Mutex;

use crate::values::{NOW, body, name};

/// Milliseconds between two sweeps.
pub const PERIOD: u64 = 1000;

/// Turns within which the manager must have nothing more to do.
const TURNS_MAX: usize = 100;

/// Started tasks wait here until they are run.
#[derive(Default)]
struct Started(Mutex<VecDeque<Arc<TaskSession>>>);

impl TaskHost for Started {
    fn start(&self, session: Arc<TaskSession>) -> Result<(), StartError> {
        self.0.lock().push_back(session);
        Ok(())
    }
}

/// A handler that puts what it got into another queue.
struct Echo {
    session: Arc<TaskSession>,
    to: QueueName,
}

impl Handler for Echo {
    async fn call(&mut self, message: &Arc<Delivered>) -> CallReport {
        let size = message.message.header.size;
        let read = self.session.read_body(message, 0, size);
        let body = read.expect("a body").to_vec();
        let request = request(self.to.clone(), Bytes::from(body));
        self.session.put(request).expect("the put is granted");
        CallReport {
            end: CallEnd::Ok,
            fuel: 1000,
            log_tail: String::new(),
        }
    }
}

fn request(queue: QueueName, body: Bytes) -> PutRequest {
    PutRequest {
        queue,
        body,
        options: PutOptions::default(),
    }
}

/// The manager, and what stands around it.
pub struct Rig {
    /// It.
    pub manager: Manager,
    /// To talk to it.
    pub handle: Handle,
    /// Its time.
    pub clock: Arc<ManualClock>,
    tasks: Arc<Started>,
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) body: Bytes,
}

impl Rig {
    /// A manager that serves `orders` into `done`, beside so many queues without messages.
    #[must_use]
    pub fn new(idle: usize) -> Self {
        let store = Arc::new(MemoryStore::new(1, MEMORY_STORE_MAX_BYTES));
        let clock = Arc::new(ManualClock::new(NOW));
        let tasks = Arc::new(Started::default());
        let config = ManagerConfig {
            seed: Some(7),
            sweep_period: PERIOD,
            ..ManagerConfig::default()
        };
        let (manager, handle, _) =
            Manager::open(config, store, clock.clone(), tasks.clone()).expect("it opens");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        let mut rig = Self {
            manager,
            handle,
            clock,
            tasks,
            runtime,
            body: body(),
        };
        rig.define(idle);
        rig.turn();
        rig
    }

    fn define(&mut self, idle: usize) {
        let handle = self.handle.clone();
        let served = (name("orders"), QueuePatch::default());
        let flag = |name: &str, value: &str| [(name.to_owned(), value.to_owned())];
        let none = QueuePatch::parse_flags(&flag("trigger", "none")).expect("attributes");
        let grants = ProcessPatch::parse_flags(&flag("grants.put", "done")).expect("grants");
        let mut queues = vec![served, (name("done"), none)];
        for number in 0..idle {
            queues.push((name(&format!("idle.{number}")), QueuePatch::default()));
        }
        let plugin = PluginName::new("orders").expect("a plugin's name");
        let update = PluginUpdate {
            name: plugin.clone(),
            file: "orders.wasm".to_owned(),
            state: PluginState::Ready(ComponentVersion {
                plugin,
                digest: "sha256:0".to_owned(),
                style: Style::Message,
            }),
            definitions: Some(PluginDefinitions {
                process: grants,
                queues,
            }),
            previous: Vec::new(),
            facts: Vec::new(),
        };
        self.ask(async move { handle.plugin_changed(update).await })
            .expect("the plugin is taken");
    }

    /// Runs a future while the manager turns beside it.
    fn ask<T>(&mut self, future: impl Future<Output = T>) -> T {
        let Self {
            runtime, manager, ..
        } = self;
        runtime.block_on(async {
            let mut future = std::pin::pin!(future);
            for _ in 0..TURNS_MAX {
                tokio::select! {
                    biased;
                    answer = &mut future => return answer,
                    () = tokio::task::yield_now() => { manager.turn(); }
                }
            }
            unreachable!("the manager answers within some turns")
        })
    }

    /// Turns until nothing more happens at this moment.
    pub fn turn(&mut self) {
        for _ in 0..TURNS_MAX {
            self.manager.turn();
            if !self.manager.wants_turn() {
                return;
            }
        }
        unreachable!("the manager comes to rest");
    }

    /// Puts a message.
    pub fn put(&mut self, queue: &str) {
        let put = request(name(queue), self.body.clone());
        let put = self.handle.put(vec![put], None);
        self.runtime.block_on(put).expect("the put is taken");
    }

    /// Puts messages, then runs the tasks that they start, so often.
    pub fn bursts(&mut self, count: u32, messages: usize) {
        for _ in 0..count {
            for _ in 0..messages {
                self.put("orders");
            }
            self.turn();
            let started = || self.tasks.0.lock().pop_front();
            let session = started().expect("a task was started");
            let mut echo = Echo {
                session: session.clone(),
                to: name("done"),
            };
            self.runtime.block_on(drain::drain(&session, &mut echo));
            session.finish(TaskCost::default());
            self.turn();
        }
    }
}
