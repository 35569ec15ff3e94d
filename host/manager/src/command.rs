//! What operators, applications and the plugins directory may ask of the loop: the rest of the
//! closed event list.

use oncue_core::definition::{ProcessPatch, QueuePatch};
use oncue_core::names::{PluginName, ProcessName, QueueName};
use tokio::sync::oneshot;

use crate::definition_set::{DefinitionChange, DefinitionSet};
use crate::error::ApiError;
use crate::metrics::view::{LoopView, QueuesView, QueuesWanted};
use crate::reload::{PluginRefusal, PluginUpdate, PluginView};
use crate::status::{
    AlarmsView, Explanation, LedgerView, ProcessView, QueueFilter, QueuePage, QueueView, StatusView,
};
use crate::tasks::record::TaskRecord;

/// Where an answer goes. Dropped unanswered when the manager has ended.
pub type Answer<T> = oneshot::Sender<T>;

/// A question or an order. Orders are durable before they are answered.
#[derive(Debug)]
pub enum Command {
    /// Make a queue, or lay the patch over one that is there.
    DefineQueue(
        QueueName,
        QueuePatch,
        Answer<Result<(QueueView, bool), ApiError>>,
    ),
    /// Lay the patch over a queue's definition.
    AlterQueue(QueueName, QueuePatch, Answer<Result<QueueView, ApiError>>),
    /// Delete an empty queue.
    DeleteQueue(QueueName, Answer<Result<(), ApiError>>),
    /// Make a process definition, or lay the patch over one that is there.
    DefineProcess(
        ProcessName,
        ProcessPatch,
        Answer<Result<(ProcessView, bool), ApiError>>,
    ),
    /// Lay the patch over a process definition.
    AlterProcess(
        ProcessName,
        ProcessPatch,
        Answer<Result<ProcessView, ApiError>>,
    ),
    /// Delete a process definition. Queues that name it are held with `no-process`.
    DeleteProcess(ProcessName, Answer<Result<(), ApiError>>),
    /// Look what giving definitions these layers would change; do it, if that is what is agreed to.
    Apply(
        DefinitionSet,
        Option<Vec<DefinitionChange>>,
        Answer<Result<Vec<DefinitionChange>, ApiError>>,
    ),
    /// Pause or resume.
    Pause(PauseTarget, bool, Answer<Result<(), ApiError>>),
    /// Turn a queue's trigger on or off.
    Trigger(QueueName, bool, Answer<Result<QueueView, ApiError>>),
    /// A plugin changed.
    Plugin(Box<PluginUpdate>, Answer<Result<(), PluginRefusal>>),
    /// The plugins directory has been read for the first time.
    PluginsRead(Answer<()>),
    /// Some of the queues.
    Queues(QueueFilter, Answer<QueuePage>),
    /// One queue.
    Queue(QueueName, Answer<Result<QueueView, ApiError>>),
    /// Process definitions by name: those after a name, at most so many.
    Processes(Option<ProcessName>, usize, Answer<Vec<ProcessView>>),
    /// One process definition.
    Process(ProcessName, Answer<Result<ProcessView, ApiError>>),
    /// Why a queue does or does not trigger.
    Explain(QueueName, Answer<Result<Explanation, ApiError>>),
    /// Plugins by name: those after a name, at most so many.
    Plugins(Option<PluginName>, usize, Answer<Vec<PluginView>>),
    /// One plugin.
    PluginOne(PluginName, Answer<Result<PluginView, ApiError>>),
    /// Tasks that run now, oldest first.
    Running(Answer<Vec<TaskRecord>>),
    /// The host in numbers.
    Status(Answer<StatusView>),
    /// The ledger.
    Ledger(Answer<LedgerView>),
    /// What a monitoring system wants to know of all together.
    Metrics(Answer<LoopView>),
    /// What it wants to know of some queues.
    QueueMetrics(QueuesWanted, Answer<QueuesView>),
    /// Alarms that are raised.
    Alarms(Answer<AlarmsView>),
    /// Answered when no task runs.
    Quiet(Answer<()>),
}

/// What to pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PauseTarget {
    /// One queue.
    Queue(QueueName),
    /// Every queue bound to a process definition.
    Process(ProcessName),
    /// The whole host.
    Host,
}
