//! A bench: one queue manager over a memory store with the real sandbox, for one run of one
//! plugin.
//!
//! Queues, tasks, units of work and failures are the manager's as on a host; only time stands
//! still until [`Running::come_again`] moves it, so that each message is tried once at first.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use oncue_core::admission::Resources;
use oncue_core::definition::QueuePatch;
use oncue_core::message::MessageId;
use oncue_core::names::{ProcessName, QueueName};
use oncue_core::unit_of_work::{StateWrite, Unit};
use oncue_manager::handle::{DEFAULT_LEASE, GetRequest, TaskFilter};
use oncue_manager::reload::{PluginDefinitions, PluginState, PluginUpdate};
use oncue_manager::tasks::port::{MAX_WAIT, PutOptions, PutRequest};
use oncue_manager::{Clock as _, Handle, ManagerConfig, ManualClock, QueueManager};
use oncue_runtime::plugin::SinglePlugin;
use oncue_runtime::{Components, Sandbox, WasmTaskHost};
use oncue_store::Store as _;
use oncue_store::memory::MemoryStore;
use tokio::runtime::Runtime;

use super::job::Job;
use super::ledger::LedgerStore;
use super::observed::Observed;
use super::probe::{Order, Watch};
use crate::exit::{Exit, Failure};

/// The number in the ids of a bench's messages: by it they are found in texts.
pub(super) const ORIGIN: u32 = 0xbe9c_0de5;

/// Bytes of all bodies of one run.
const MAX_BYTES: u64 = 1 << 30;

/// Workers: one for short tasks only, one for all.
const WORKERS: usize = 2;

/// How often a run is looked at when nothing tells of a change.
const LOOK: Duration = Duration::from_millis(20);

/// Longest time for one run. A task deadline is at most an hour; nothing that ends well lasts so
/// long.
const MAX_RUN: Duration = Duration::from_secs(3_700);

/// Milliseconds that a manual clock is moved on where nothing tells when a message is due again.
const PATIENCE: u64 = 60_000;

/// Between bucket and key in a stored state key.
pub(super) const BUCKET: &str = "default\u{1f}";

/// Tasks of one run that may be reserved at a time; far more than one queue needs.
const SLOTS: u32 = 16;

/// A plugin on the bench, to be run any number of times.
pub(super) struct Bench {
    pub(super) plugin: SinglePlugin,
    runtime: Runtime,
    tasks: Arc<WasmTaskHost>,
}

impl Bench {
    /// Puts a plugin on a bench.
    pub(super) fn new(plugin: SinglePlugin, sandbox: Sandbox) -> Result<Self, Failure> {
        let components = Components::default();
        components.insert(plugin.version.digest.clone(), Arc::clone(&plugin.loaded));
        let workers = std::num::NonZeroUsize::new(WORKERS);
        let tasks = WasmTaskHost::new(sandbox, components, workers)
            .map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| Failure::new(Exit::Failed, format!("no timers: {error}")))?;
        Ok(Self {
            plugin,
            runtime,
            tasks: Arc::new(tasks),
        })
    }

    /// Begins a run: everything is defined, no message is put yet.
    pub(super) fn begin(&self, job: &Job, order: Order) -> Result<Running<'_>, Failure> {
        Running::start(self, job, order)
    }

    /// Runs a job until nothing more happens, all messages at once. Queues that a pattern grants
    /// are made when the handler names them: the run then begins anew.
    pub(super) fn run(&self, job: &mut Job, order: Order) -> Result<Running<'_>, Failure> {
        loop {
            let mut running = self.begin(job, order)?;
            running.put(&job.puts)?;
            running.settle()?;
            // Each round makes at least one queue of a bounded number.
            if !running.finds_queues(job) {
                return Ok(running);
            }
        }
    }
}

/// A run. Dropping it ends its queue manager.
pub(super) struct Running<'a> {
    bench: &'a Bench,
    manager: Option<QueueManager>,
    handle: Handle,
    clock: Arc<ManualClock>,
    store: Arc<LedgerStore>,
    pub(super) watch: Arc<Watch>,
    queue: QueueName,
    /// The ids of the given messages.
    given: Vec<(QueueName, MessageId)>,
    state: std::collections::BTreeMap<String, Bytes>,
    begun: Instant,
}

impl<'a> Running<'a> {
    fn start(bench: &'a Bench, job: &Job, order: Order) -> Result<Self, Failure> {
        let memory = MemoryStore::new(ORIGIN, MAX_BYTES);
        seed(&memory, bench.plugin.version.plugin.as_str(), job)?;
        let store = Arc::new(LedgerStore::new(memory, order));
        let watch = Arc::new(Watch::new(order));
        let clock = Arc::new(ManualClock::new(job.time));
        let config = ManagerConfig {
            name: "workshop".to_owned(),
            capacity: Resources {
                slots: SLOTS,
                memory: bench.plugin.attributes.memory.saturating_mul(SLOTS.into()),
                fuel: bench.plugin.attributes.fuel.saturating_mul(SLOTS.into()),
            },
            seed: Some(0),
            probe: Some(watch.clone()),
            ..ManagerConfig::default()
        };
        let tasks = bench.tasks.clone();
        let manager =
            QueueManager::start(config, store.clone(), clock.clone(), tasks).map_err(refused)?;
        let running = Self {
            handle: manager.handle(),
            manager: Some(manager),
            bench,
            clock,
            store,
            watch,
            queue: job.queue.clone(),
            given: Vec::new(),
            state: job.state.clone(),
            begun: Instant::now(),
        };
        bench.runtime.block_on(prepare(&running, job))?;
        Ok(running)
    }

    /// Puts more messages, as one unit of work.
    pub(super) fn put(&mut self, puts: &[PutRequest]) -> Result<(), Failure> {
        let put = self.handle.put(puts.to_vec(), None);
        let answers = self.bench.runtime.block_on(put).map_err(refused)?;
        let ids = puts.iter().zip(answers);
        let ids = ids.map(|(put, answer)| (put.queue.clone(), answer.id));
        self.given.extend(ids);
        Ok(())
    }

    /// Adds the queues that the handler named and a pattern grants to those of the job; false when
    /// there are no new ones.
    pub(super) fn finds_queues(&self, job: &mut Job) -> bool {
        let known = job.queues.len();
        let grants = &self.bench.plugin.attributes.grants;
        let wanted = self.watch.queues().into_iter().filter(|queue| {
            let granted =
                grants.may_put(queue) || grants.may_get(queue) || grants.may_browse(queue);
            granted && *queue != job.queue && !queue.is_reserved()
        });
        job.queues.extend(wanted);
        job.queues.len() > known
    }

    /// Waits until nothing more happens. Requests of the handler are answered by the other side.
    pub(super) fn settle(&self) -> Result<(), Failure> {
        self.bench.runtime.block_on(async {
            let mut events = self.handle.events();
            loop {
                let view = self
                    .handle
                    .queue(self.queue.clone())
                    .await
                    .map_err(refused)?;
                let busy = view.running > 0 || view.counts.in_unit > 0 || view.verdict == "fire";
                if !busy {
                    return Ok(());
                }
                if self.begun.elapsed() > MAX_RUN {
                    let text = format!("queue \"{}\" is still busy; ended", self.queue);
                    return Err(Failure::new(Exit::Failed, text));
                }
                // An event, or the next look: what it tells is looked up.
                let _ = tokio::time::timeout(LOOK, events.recv()).await;
            }
        })
    }

    /// Lets messages that wait to be tried again come again, and waits for that.
    pub(super) fn come_again(&self) -> Result<(), Failure> {
        let now = self.clock.now();
        let due = self.store.next_due().unwrap_or(now);
        self.clock.advance(due.since(now).max(PATIENCE));
        self.settle()
    }

    /// Gives a message other fuel from now on.
    pub(super) fn set_fuel(&self, fuel: u64) -> Result<(), Failure> {
        let name = ProcessName::from(&self.bench.plugin.version.plugin);
        let altered = self
            .handle
            .alter_process(name, super::job::fuel_patch(fuel));
        self.bench.runtime.block_on(altered).map_err(refused)?;
        Ok(())
    }

    /// What has come of it so far.
    pub(super) fn observe(&self) -> Result<Observed, Failure> {
        let (queue, tasks) = self.bench.runtime.block_on(async {
            let queue = self
                .handle
                .queue(self.queue.clone())
                .await
                .map_err(refused)?;
            let filter = TaskFilter {
                queue: Some(self.queue.clone()),
                ..TaskFilter::default()
            };
            let tasks = self.handle.tasks(filter).await.map_err(refused)?;
            Ok::<_, Failure>((queue, tasks))
        })?;
        let find = |queue: &QueueName, id: MessageId| self.handle.message(queue, id).ok();
        let given: Vec<_> = self
            .given
            .iter()
            .map(|(queue, id)| (queue.clone(), *id, find(queue, *id)))
            .collect();
        Ok(Observed::new(
            given,
            &self.store.committed(),
            tasks,
            self.state.clone(),
            queue.reason_text,
            self.begun.elapsed(),
        ))
    }

    /// True when what was ordered has happened.
    pub(super) fn has_struck(&self) -> bool {
        self.watch.has_struck() || self.store.has_struck()
    }

    /// Commits of the handler that took messages off their queues.
    pub(super) fn done_commits(&self) -> usize {
        self.store.done()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(manager) = self.manager.take() {
            self.bench
                .runtime
                .block_on(manager.shutdown(Duration::ZERO));
        }
    }
}

fn refused(error: oncue_manager::ApiError) -> Failure {
    Failure::new(Exit::of_code(error.code), error.message)
}

/// Writes the state that a plugin has before the run.
fn seed(store: &MemoryStore, plugin: &str, job: &Job) -> Result<(), Failure> {
    let writes = job.state.iter().map(|(key, value)| StateWrite {
        namespace: plugin.to_owned(),
        key: format!("{BUCKET}{key}"),
        value: Some(value.clone()),
    });
    let unit = Unit {
        writes: writes.collect(),
        ..Unit::default()
    };
    if unit.writes.is_empty() {
        return Ok(());
    }
    let written = store.commit(unit).wait();
    written.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    Ok(())
}

/// Defines everything.
async fn prepare(running: &Running<'_>, job: &Job) -> Result<(), Failure> {
    let (handle, plugin) = (&running.handle, &running.bench.plugin);
    let unserved = QueuePatch::parse_flags(&[("trigger".to_owned(), "none".to_owned())])
        .expect("an attribute that there is");
    for queue in &job.queues {
        let defined = handle.define_queue(queue.clone(), unserved.clone());
        defined.await.map_err(refused)?;
    }
    let update = PluginUpdate {
        name: plugin.version.plugin.clone(),
        file: plugin.component.display().to_string(),
        state: PluginState::Ready(plugin.version.clone()),
        definitions: Some(PluginDefinitions {
            process: plugin.definitions.process.clone(),
            queues: vec![(job.queue.clone(), job.base.clone())],
        }),
        previous: Vec::new(),
        facts: Vec::new(),
    };
    handle
        .plugin_changed(update)
        .await
        .map_err(|refusal| Failure::new(Exit::Refused, refusal.to_string()))?;
    let overlay = handle.alter_queue(job.queue.clone(), job.overlay.clone());
    overlay.await.map_err(refused)?;
    if !job.process.is_empty() {
        let name = ProcessName::from(&plugin.version.plugin);
        let altered = handle.alter_process(name, job.process.clone());
        altered.await.map_err(refused)?;
    }
    for (queue, answers) in &job.replies {
        tokio::spawn(answer(handle.clone(), queue.clone(), answers.clone()));
    }
    Ok(())
}

/// Is the other side of requests: answers those that come to a queue, in order. What is put there
/// and asks for no answer is taken away.
async fn answer(handle: Handle, queue: QueueName, answers: Vec<(Bytes, PutOptions)>) {
    let mut answers = answers.into_iter();
    let request = GetRequest {
        queue,
        wait: MAX_WAIT,
        max: 1,
        lease: DEFAULT_LEASE,
        id: None,
        correlation_id: None,
    };
    // Ends with the manager.
    while let Ok(got) = handle.get(request.clone()).await {
        if got.is_empty() && handle.is_ready().is_err() {
            return;
        }
        for leased in got {
            let header = &leased.message.header;
            let reply_to = header.reply_to.clone();
            if let Some(reply_to) = reply_to.filter(|queue| *queue == QueueName::replies()) {
                // Without an answer the handler's wait runs out, as with nobody there.
                let Some((body, options)) = answers.next() else {
                    continue;
                };
                let asked = header.correlation_id.clone();
                let put = PutRequest {
                    queue: reply_to,
                    body,
                    options: PutOptions {
                        correlation_id: Some(asked.unwrap_or_else(|| header.id.to_string())),
                        ..options
                    },
                };
                if handle.put(vec![put], None).await.is_err() {
                    return;
                }
            }
            if handle.ack(leased.token).await.is_err() {
                return;
            }
        }
    }
}
