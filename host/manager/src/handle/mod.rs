//! The queue manager as an application or an operator sees it. Every door (HTTP now, others later)
//! is a thin adapter over this.
//!
//! Messages go straight to the store ([`messages`], [`leases`], [`dead_letters`]); definitions and
//! questions about triggering go through the loop, which owns them.

use std::sync::Arc;

use oncue_core::code::Code;
use oncue_core::definition::{ProcessPatch, QueuePatch};
use oncue_core::names::{PluginName, ProcessName, QueueName};
use oncue_core::quantity::number_of;
use oncue_core::time::Timestamp;
use oncue_core::trace::TraceContext;
use oncue_store::StoreStatus;
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::alarms::AlarmCount;
use crate::command::{Answer, Command, PauseTarget};
use crate::definition_set::{DefinitionChange, DefinitionSet};
use crate::error::ApiError;
use crate::event::Refused;
use crate::reload::{PluginCommand, PluginRefusal, PluginUpdate, PluginView};
use crate::shared::{Phase, QueueCell, Shared};
use crate::status::{
    AlarmsView, Explanation, HostEvent, LedgerView, ProcessView, QueueFilter, QueuePage, QueueView,
    StatusView,
};

mod dead_letters;
mod failures;
mod leases;
mod messages;
mod metrics;
mod tasks;

pub use dead_letters::{DeadLetterFilter, DeadLettersDone, MAX_DEAD_LETTERS, MAX_REDRIVE};
pub use failures::Failure;
pub(crate) use leases::consumer_failed;
pub use leases::{DEFAULT_LEASE, GetRequest, Leased, MAX_GET, MAX_LEASE, MIN_LEASE};
pub use messages::{MAX_PAGE, MAX_UNIT_PUTS};
pub use oncue_store::{Browsed, MessageState, Page};
pub use tasks::{MAX_TASKS, TaskFilter};

/// A queue manager to talk to. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
    plugins: mpsc::Sender<PluginCommand>,
    /// The place in its own trace from which the caller asks.
    caller: Option<TraceContext>,
}

/// What came to a queue, and what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueFlow {
    /// Which queue.
    pub queue: QueueName,
    /// Messages that applications and handlers put since the host started.
    pub puts: u64,
    /// Messages that are there.
    pub depth: u64,
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>, plugins: mpsc::Sender<PluginCommand>) -> Self {
        Self {
            shared,
            plugins,
            caller: None,
        }
    }

    /// The same for a caller who asks from that place in a trace of its own: what it gets and
    /// settles is linked to it.
    #[must_use]
    pub fn called_from(&self, caller: Option<TraceContext>) -> Self {
        Self {
            caller,
            ..self.clone()
        }
    }

    async fn ask<T>(&self, make: impl FnOnce(Answer<T>) -> Command) -> Result<T, ApiError> {
        let (answer, wait) = oneshot::channel();
        self.shared
            .inbox
            .command(make(answer))
            .map_err(|refused| match refused {
                Refused::Full => ApiError::new(
                    Code::TooManyRequests,
                    "the queue manager has too many commands waiting; try again",
                ),
                Refused::Closed => stopping(),
            })?;
        wait.await.map_err(|_| stopping())
    }

    pub(crate) fn cell(&self, queue: &QueueName) -> Result<Arc<QueueCell>, ApiError> {
        self.shared
            .look_up(queue, Arc::clone)
            .ok_or_else(|| self.shared.unknown_queue(queue))
    }

    /// Makes a queue, or alters one that is there; true when it was made.
    ///
    /// # Errors
    /// `invalid-definition` with all faults, `reserved-name`, or a store that does not write.
    pub async fn define_queue(
        &self,
        name: QueueName,
        patch: QueuePatch,
    ) -> Result<(QueueView, bool), ApiError> {
        self.ask(|answer| Command::DefineQueue(name, patch, answer))
            .await?
    }

    /// Alters a queue.
    ///
    /// # Errors
    /// As [`Handle::define_queue`], and `unknown-queue`.
    pub async fn alter_queue(
        &self,
        name: QueueName,
        patch: QueuePatch,
    ) -> Result<QueueView, ApiError> {
        self.ask(|answer| Command::AlterQueue(name, patch, answer))
            .await?
    }

    /// Deletes a queue; with `force` its messages too, unless somebody has one of them in hand.
    /// Answers with how many were removed.
    ///
    /// # Errors
    /// `unknown-queue`, `reserved-name`, `queue-in-use`, `queue-not-empty`.
    pub async fn delete_queue(&self, name: QueueName, force: bool) -> Result<u64, ApiError> {
        let delete = |name| self.ask(|answer| Command::DeleteQueue(name, answer));
        let answer = delete(name.clone()).await?;
        let not_empty = matches!(&answer, Err(error) if error.code == Code::QueueNotEmpty);
        if !(force && not_empty) {
            return answer.map(|()| 0);
        }
        // Only messages stand in the way. None is removed if the queue would stay all the same.
        let counts = self.queue(name.clone()).await?.counts;
        let in_hand = counts.in_unit + counts.leased;
        if in_hand > 0 {
            return Err(ApiError::new(
                Code::QueueInUse,
                format!(
                    "queue \"{name}\" has {} in the hand of consumers; have what they got settled, \
                     or wait for the end of the leases",
                    number_of(in_hand.unsigned_abs(), "message")
                ),
            ));
        }
        let removed = self.clear(&name).await?;
        delete(name).await?.map(|()| removed)
    }

    /// Makes a process definition, or alters one that is there; true when it was made.
    ///
    /// # Errors
    /// `invalid-definition` with all faults, or a store that does not write.
    pub async fn define_process(
        &self,
        name: ProcessName,
        patch: ProcessPatch,
    ) -> Result<(ProcessView, bool), ApiError> {
        self.ask(|answer| Command::DefineProcess(name, patch, answer))
            .await?
    }

    /// Alters a process definition.
    ///
    /// # Errors
    /// As [`Handle::define_process`], and `unknown-process`.
    pub async fn alter_process(
        &self,
        name: ProcessName,
        patch: ProcessPatch,
    ) -> Result<ProcessView, ApiError> {
        self.ask(|answer| Command::AlterProcess(name, patch, answer))
            .await?
    }

    /// Deletes a process definition.
    ///
    /// # Errors
    /// `unknown-process`.
    pub async fn delete_process(&self, name: ProcessName) -> Result<(), ApiError> {
        self.ask(|answer| Command::DeleteProcess(name, answer))
            .await?
    }

    /// What would change if definitions got exactly these layers of the operator's; nothing is
    /// done. What the set does not name stays.
    ///
    /// # Errors
    /// `invalid-definition` with the faults of all definitions.
    pub async fn look_at_definitions(
        &self,
        set: DefinitionSet,
    ) -> Result<Vec<DefinitionChange>, ApiError> {
        self.ask(|answer| Command::Apply(set, None, answer)).await?
    }

    /// Gives definitions exactly these layers: all of them in one durable write, or none. Done only
    /// if the changes are those that were `agreed` to, which a look has told.
    ///
    /// # Errors
    /// As [`Handle::look_at_definitions`]; `definitions-changed` when it would change something
    /// else; a store that does not write.
    pub async fn apply_definitions(
        &self,
        set: DefinitionSet,
        agreed: Vec<DefinitionChange>,
    ) -> Result<Vec<DefinitionChange>, ApiError> {
        self.ask(|answer| Command::Apply(set, Some(agreed), answer))
            .await?
    }

    /// Pauses or resumes a queue.
    ///
    /// # Errors
    /// `unknown-queue`.
    pub async fn pause_queue(&self, name: QueueName, paused: bool) -> Result<(), ApiError> {
        self.ask(|answer| Command::Pause(PauseTarget::Queue(name), paused, answer))
            .await?
    }

    /// Pauses or resumes every queue bound to a process definition.
    ///
    /// # Errors
    /// `unknown-process`.
    pub async fn pause_process(&self, name: ProcessName, paused: bool) -> Result<(), ApiError> {
        self.ask(|answer| Command::Pause(PauseTarget::Process(name), paused, answer))
            .await?
    }

    /// Pauses or resumes all triggering.
    ///
    /// # Errors
    /// A store that does not write.
    pub async fn pause_host(&self, paused: bool) -> Result<(), ApiError> {
        self.ask(|answer| Command::Pause(PauseTarget::Host, paused, answer))
            .await?
    }

    /// Turns a queue's trigger on or off.
    ///
    /// # Errors
    /// `unknown-queue`, or a store that does not write.
    pub async fn trigger(&self, name: QueueName, on: bool) -> Result<QueueView, ApiError> {
        self.ask(|answer| Command::Trigger(name, on, answer))
            .await?
    }

    /// All queues, by name.
    ///
    /// # Errors
    /// Only when the manager has ended.
    pub async fn queues(&self) -> Result<Vec<QueueView>, ApiError> {
        let all = self.queue_page(QueueFilter::default()).await?;
        Ok(all.queues)
    }

    /// Some of the queues, and how many there are.
    ///
    /// # Errors
    /// Only when the manager has ended.
    pub async fn queue_page(&self, filter: QueueFilter) -> Result<QueuePage, ApiError> {
        self.ask(|answer| Command::Queues(filter, answer)).await
    }

    /// What came to each queue since the host started, and what is there; in no order. Cheap: the
    /// loop is not asked.
    #[must_use]
    pub fn flows(&self) -> Vec<QueueFlow> {
        let mut flows = Vec::new();
        self.shared.each_cell(|cell| {
            flows.push(QueueFlow {
                queue: cell.name.clone(),
                puts: cell.puts(),
                depth: cell.depth(),
            });
        });
        flows
    }

    /// The manager's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared.now()
    }

    /// One queue.
    ///
    /// # Errors
    /// `unknown-queue`.
    pub async fn queue(&self, name: QueueName) -> Result<QueueView, ApiError> {
        self.ask(|answer| Command::Queue(name, answer)).await?
    }

    /// All process definitions, by name.
    ///
    /// # Errors
    /// Only when the manager has ended.
    pub async fn processes(&self) -> Result<Vec<ProcessView>, ApiError> {
        self.processes_after(None, usize::MAX).await
    }

    /// Process definitions, by name: those that come after a name, at most `max`.
    ///
    /// # Errors
    /// Only when the manager has ended.
    pub async fn processes_after(
        &self,
        after: Option<ProcessName>,
        max: usize,
    ) -> Result<Vec<ProcessView>, ApiError> {
        self.ask(|answer| Command::Processes(after, max, answer))
            .await
    }

    /// One process definition.
    ///
    /// # Errors
    /// `unknown-process`.
    pub async fn process(&self, name: ProcessName) -> Result<ProcessView, ApiError> {
        self.ask(|answer| Command::Process(name, answer)).await?
    }

    /// Why a queue does or does not trigger.
    ///
    /// # Errors
    /// `unknown-queue`.
    pub async fn explain(&self, name: QueueName) -> Result<Explanation, ApiError> {
        self.ask(|answer| Command::Explain(name, answer)).await?
    }

    /// Applies a plugin's update; answers when it is durable and in force.
    ///
    /// # Errors
    /// [`PluginRefusal`]: the directory quarantines the plugin with that reason.
    pub async fn plugin_changed(&self, update: PluginUpdate) -> Result<(), PluginRefusal> {
        self.ask(|answer| Command::Plugin(Box::new(update), answer))
            .await
            .unwrap_or_else(|error| Err(PluginRefusal(error.message)))
    }

    /// Says that the plugins directory has been read for the first time: what it has not told of is
    /// not there. See [`awaits_plugins`](crate::ManagerConfig::awaits_plugins).
    ///
    /// # Errors
    /// Only when the manager has ended.
    pub async fn plugins_read(&self) -> Result<(), ApiError> {
        self.ask(Command::PluginsRead).await
    }

    /// All plugins, by name.
    ///
    /// # Errors
    /// Only when the manager has ended.
    pub async fn plugins(&self) -> Result<Vec<PluginView>, ApiError> {
        self.plugins_after(None, usize::MAX).await
    }

    /// Plugins, by name: those that come after a name, at most `max`.
    ///
    /// # Errors
    /// Only when the manager has ended.
    pub async fn plugins_after(
        &self,
        after: Option<PluginName>,
        max: usize,
    ) -> Result<Vec<PluginView>, ApiError> {
        self.ask(|answer| Command::Plugins(after, max, answer))
            .await
    }

    /// One plugin.
    ///
    /// # Errors
    /// `unknown-plugin`.
    pub async fn plugin(&self, name: PluginName) -> Result<PluginView, ApiError> {
        self.ask(|answer| Command::PluginOne(name, answer)).await?
    }

    /// Serves the version before the present one; answers with its digest.
    ///
    /// # Errors
    /// `unknown-plugin`, `no-previous-version`, or no plugins directory.
    pub async fn rollback(&self, name: PluginName) -> Result<String, ApiError> {
        let (answer, wait) = oneshot::channel();
        let none = || ApiError::new(Code::UnknownPlugin, "there is no plugins directory");
        self.plugins
            .send(PluginCommand::Rollback(name, answer))
            .await
            .map_err(|_| none())?;
        wait.await.map_err(|_| none())?
    }

    /// The host in numbers.
    ///
    /// # Errors
    /// Only when the manager has ended.
    pub async fn status(&self) -> Result<StatusView, ApiError> {
        self.ask(Command::Status).await
    }

    /// The ledger.
    ///
    /// # Errors
    /// Only when the manager has ended.
    pub async fn ledger(&self) -> Result<LedgerView, ApiError> {
        self.ask(Command::Ledger).await
    }

    /// Alarms that are raised, the newest first.
    ///
    /// # Errors
    /// Only when the manager has ended.
    pub async fn alarms(&self) -> Result<AlarmsView, ApiError> {
        self.ask(Command::Alarms).await
    }

    /// Every alarm in numbers, without asking the loop: for metrics.
    #[must_use]
    pub fn alarm_counts(&self) -> Vec<AlarmCount> {
        self.shared.alarm_counts.all()
    }

    /// What happens from now on. A reader that lags behind skips events and is told so.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<HostEvent> {
        self.shared.events.subscribe()
    }

    /// The store's health.
    #[must_use]
    pub fn store_status(&self) -> StoreStatus {
        self.shared.store.status()
    }

    /// Whether work can be taken on: recovered, writing, not stopping.
    ///
    /// # Errors
    /// What is missing, in a sentence.
    pub fn is_ready(&self) -> Result<(), String> {
        if self.shared.phase() != Phase::Running {
            return Err("the queue manager is stopping".to_owned());
        }
        match self.shared.store.status().stopped {
            None => Ok(()),
            Some(why) => Err(format!(
                "the store does not write: {}",
                crate::status::store_word(Some(why))
            )),
        }
    }

    /// Answered when no task runs.
    pub(crate) async fn quiet(&self) {
        // An ended manager runs no task.
        let _ = self.ask(Command::Quiet).await;
    }
}

fn stopping() -> ApiError {
    ApiError::new(Code::Draining, "the queue manager is stopping")
}
