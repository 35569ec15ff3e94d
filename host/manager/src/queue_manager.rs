//! The queue manager as a whole: opened over a store, run on a thread of its own, shut down by a
//! protocol.
//!
//! Shutdown: no new task starts and running ones end at their next unit boundary (*draining*); at
//! the deadline what still runs is cut off, undone and uncharged (*cancelling*); then the loop ends
//! and the store is closed. What was owed is owed again at the next start, because owed is
//! computed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use oncue_core::admission::{Demand, Ledger, Resources};
use oncue_core::fairness::Fairness;
use oncue_core::message::MessageId;
use oncue_core::names::QueueName;
use oncue_core::process_table::ProcessTable;
use oncue_core::queue_table::QueueTable;
use oncue_core::time::Millis;
use oncue_core::trigger::TaskId;
use oncue_core::trigger::process::HostState;
use oncue_store::Store;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::error::ApiError;
use crate::handle::Handle;
use crate::in_hand::InHand;
use crate::main_loop::Manager;
use crate::reload::PluginCommand;
use crate::retention::Retention;
use crate::shared::{Phase, Shared};
use crate::status::BuildView;
use crate::sweep::Sweep;
use crate::tasks::TaskHost;
use crate::tasks::probe::Probe;
use crate::traces::{TraceConfig, Tracer};

/// Commands to the plugins directory that may wait.
const PLUGIN_COMMANDS: usize = 16;

/// After the deadline of a shutdown, how long tasks that were cut off may take to be gone.
const CUT_OFF: Duration = Duration::from_secs(5);

/// How a queue manager is set up.
pub struct ManagerConfig {
    /// Its name, in trigger messages.
    pub name: String,
    /// What the program was built from, to be shown.
    pub build: BuildView,
    /// All there is to run tasks with.
    pub capacity: Resources,
    /// What step 50 reserves for a queue to which nothing is bound.
    pub default_demand: Demand,
    /// Milliseconds between two sweeps.
    pub sweep_period: Millis,
    /// How much is kept of task records.
    pub retention: Retention,
    /// The in-hand file; `None` for a volatile manager.
    pub in_hand: Option<PathBuf>,
    /// Seed of the sweep's order; drawn when `None`.
    pub seed: Option<u64>,
    /// Real memory headroom in bytes, if it can be measured.
    pub headroom: Option<Box<dyn Fn() -> Option<u64> + Send>>,
    /// Records traces, and where to; `None` records none.
    pub traces: Option<TraceConfig>,
    /// Sees the calls of guests: a bench's. A host has none.
    pub probe: Option<Arc<dyn Probe>>,
    /// A plugins directory will be read, and [`Handle::plugins_read`] told when it was: until then
    /// a component that nobody has told of counts as being read, not as missing.
    pub awaits_plugins: bool,
}

impl Default for ManagerConfig {
    fn default() -> Self {
        let default_demand = Demand {
            memory: 64 << 20,
            fuel: 10_000_000_000,
        };
        Self {
            name: "oncue".to_owned(),
            build: BuildView::default(),
            capacity: Resources {
                slots: 1000,
                memory: 8 << 30,
                fuel: 1_000_000_000_000,
            },
            default_demand,
            sweep_period: 1000,
            retention: Retention::default(),
            in_hand: None,
            seed: None,
            headroom: None,
            traces: None,
            probe: None,
            awaits_plugins: false,
        }
    }
}

/// A running queue manager.
pub struct QueueManager {
    handle: Handle,
    plugin_commands: Option<mpsc::Receiver<PluginCommand>>,
    thread: Option<JoinHandle<()>>,
}

impl Manager {
    /// A manager over a store: recovered, not yet running. For tests, which step it by hand; see
    /// [`QueueManager::start`].
    ///
    /// # Errors
    /// A store that cannot be read or written, or definitions that cannot be understood.
    pub fn open(
        config: ManagerConfig,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        task_host: Arc<dyn TaskHost>,
    ) -> Result<(Self, Handle, mpsc::Receiver<PluginCommand>), ApiError> {
        let recovered = store.take_recovered();
        let (in_hand, suspects) = open_in_hand(config.in_hand.as_deref())?;
        let shared = Shared::new(
            store,
            clock,
            config.name.clone(),
            in_hand,
            config.retention.memory(),
            (config.traces.map(Tracer::new), config.probe),
            (task_host.workers(), task_host.begins_in()),
        );
        let now = shared.now();
        let (plugins, plugin_commands) = mpsc::channel(PLUGIN_COMMANDS);
        let handle = Handle::new(Arc::clone(&shared), plugins);
        let mut manager = Self {
            shared,
            task_host,
            queues: QueueTable::default(),
            processes: ProcessTable::default(),
            plugins: std::collections::BTreeMap::new(),
            plugins_awaited: config.awaits_plugins,
            ledger: Ledger::new(config.capacity.at_least(config.default_demand)),
            host: host_state(config.name, config.default_demand),
            running: std::collections::BTreeMap::new(),
            waits: std::collections::BTreeMap::new(),
            resuming: std::collections::VecDeque::new(),
            ready: Fairness::default(),
            notes: std::collections::HashMap::new(),
            timers: std::collections::BinaryHeap::new(),
            pending: Vec::new(),
            next_task: TaskId(1),
            sweep: Sweep::new(config.sweep_period, now),
            alarms: crate::alarms::Alarms::default(),
            schedules: crate::schedules::Schedules::default(),
            retention: config.retention,
            records_looked: now,
            gathered: Vec::new(),
            random: config
                .seed
                .map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            build: config.build,
            started: now,
            ran: 1,
            triggers: 0,
            asked: 0,
            outcomes: std::collections::BTreeMap::new(),
            counts: crate::metrics::LoopCounts::default(),
            quiet: Vec::new(),
            headroom: config.headroom,
        };
        manager.recover(&recovered)?;
        manager.refresh_components();
        crate::recovery::attach(&manager);
        manager.prepare(&recovered)?;
        manager.suspect(&suspects)?;
        Ok((manager, handle, plugin_commands))
    }
}

/// A host of which nothing is known yet.
fn host_state(manager: String, default_demand: Demand) -> HostState {
    HostState {
        manager,
        paused: false,
        draining: false,
        store_stopped: false,
        default_demand,
    }
}

impl QueueManager {
    /// Opens a manager and runs it on a thread of its own.
    ///
    /// # Errors
    /// As [`Manager::open`], or no thread could be made.
    pub fn start(
        config: ManagerConfig,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        task_host: Arc<dyn TaskHost>,
    ) -> Result<Self, ApiError> {
        let (mut manager, handle, plugin_commands) =
            Manager::open(config, store, clock, task_host)?;
        let thread = std::thread::Builder::new()
            .name("oncue-manager".to_owned())
            .spawn(move || run(&mut manager))
            .map_err(|error| {
                ApiError::new(
                    oncue_core::code::Code::Internal,
                    format!("the manager's thread cannot be made: {error}"),
                )
            })?;
        Ok(Self {
            handle,
            plugin_commands: Some(plugin_commands),
            thread: Some(thread),
        })
    }

    /// To talk to it.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The plugins directory's end of its commands. `None` the second time.
    pub fn take_plugin_commands(&mut self) -> Option<mpsc::Receiver<PluginCommand>> {
        self.plugin_commands.take()
    }

    /// Ends it: drains for at most `deadline`, then cuts off, then closes the store. True when
    /// every task ended by itself.
    pub async fn shutdown(mut self, deadline: Duration) -> bool {
        let shared = Arc::clone(&self.handle.shared);
        shared.enter(Phase::Draining);
        shared.inbox.nudge();
        let drained = tokio::time::timeout(deadline, self.handle.quiet())
            .await
            .is_ok();
        if !drained {
            tracing::warn!("tasks still run at the shutdown deadline: they are cut off, uncharged");
        }
        shared.enter(Phase::Cancelling);
        shared.inbox.nudge();
        if tokio::time::timeout(CUT_OFF, self.handle.quiet())
            .await
            .is_err()
        {
            tracing::error!("a task did not end when it was cut off");
        }
        shared.inbox.close();
        shared.inbox.nudge();
        let thread = self.thread.take();
        let store = Arc::clone(&shared.store);
        let closed = tokio::task::spawn_blocking(move || {
            if let Some(thread) = thread
                && thread.join().is_err()
            {
                tracing::error!("the manager's thread panicked");
            }
            store.close();
        });
        if closed.await.is_err() {
            tracing::error!("the store could not be closed");
        }
        drained
    }
}

/// The in-hand file, and the messages that stood in it after an unclean end.
fn open_in_hand(path: Option<&Path>) -> Result<(InHand, Vec<(QueueName, MessageId)>), ApiError> {
    let Some(path) = path else {
        return Ok((InHand::none(), Vec::new()));
    };
    InHand::open(path).map_err(|error| {
        let path = path.display();
        ApiError::new(
            oncue_core::code::Code::StoreStopped,
            format!("in-hand file \"{path}\" cannot be opened: {error}"),
        )
    })
}

fn run(manager: &mut Manager) {
    let shared = Arc::clone(&manager.shared);
    while !shared.inbox.is_closed() {
        let next = manager.turn();
        let sleep = next.since(shared.now());
        shared.inbox.wait(sleep);
    }
}
