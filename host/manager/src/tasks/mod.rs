//! The seam to the sandbox: what a task is, and who runs it.
//!
//! [`TaskHost`] has two implementations: the wasmtime one in `oncue-runtime`, and the scripted one
//! of the tests. Both drive a [`TaskSession`], which alone touches queues and state on a task's
//! behalf.

use std::sync::Arc;
use std::time::Duration;

use oncue_core::definition::{ProcessAttributes, QueueAttributes, Style};
use oncue_core::message::Message;
use oncue_core::names::{PluginName, ProcessName, QueueName};
use oncue_core::outcome::CallEnd;
use oncue_core::trigger::message::TriggerMessage;
use serde::{Deserialize, Serialize};

pub(crate) mod at_hand;
pub mod drain;
pub mod failures;
pub(crate) mod linger;
pub mod open_unit;
pub mod pipeline;
pub mod port;
pub mod probe;
pub mod puts;
pub mod record;
pub mod requests;
pub mod seen;
pub mod session;
pub mod settle;
pub mod state;
mod traced;
pub mod trigger_style;

pub use oncue_core::trigger::TaskId;
pub use session::TaskSession;

/// A component version that can be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentVersion {
    /// The plugin it came with; also the namespace of its state.
    pub plugin: PluginName,
    /// SHA-256 of the component, 64 lower-case hexadecimal digits.
    pub digest: String,
    /// How it is called: never [`Style::Auto`], which is settled when it is loaded.
    pub style: Style,
}

/// Everything settled at step 62 about a task that is about to start.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// Its identity.
    pub id: TaskId,
    /// The triggered queue.
    pub queue: QueueName,
    /// That queue's attributes at the start.
    pub queue_attributes: Arc<QueueAttributes>,
    /// The process definition's name.
    pub process: ProcessName,
    /// Its attributes at the start: limits and grants.
    pub attributes: Arc<ProcessAttributes>,
    /// What to run.
    pub component: ComponentVersion,
    /// The trigger message.
    pub trigger: TriggerMessage,
}

/// Starts tasks. Never blocks: a task runs on the host's own workers.
pub trait TaskHost: Send + Sync + 'static {
    /// Tasks that run at the same time, at most; more of them take turns.
    fn workers(&self) -> usize {
        usize::MAX
    }

    /// About how long it takes from a message that wakes the manager to the call of a handler in a
    /// task that is started for it. A task that is done with the message sooner is left it.
    fn begins_in(&self) -> Duration {
        Duration::from_micros(200)
    }

    /// Step 64: initiates the task that `session` describes. The task lives until `session` is
    /// finished; a host that drops it unfinished has lost the task, which is reported as such.
    ///
    /// # Errors
    /// [`StartError`] when it cannot begin; the queue is then held with that reason.
    fn start(&self, session: Arc<TaskSession>) -> Result<(), StartError>;
}

/// A task could not be started, for a reason of the host's. No message is charged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StartError(pub String);

/// A handler as the message-style drain calls it: one message, one call. Implemented by the runtime
/// (an instance of a component) and by scripted tests.
pub trait Handler: Send {
    /// Calls the handler for one message, under all its limits, and says how that ended. After
    /// anything but [`CallEnd::Ok`] the instance is not used again.
    fn call(&mut self, message: &Arc<Delivered>) -> impl Future<Output = CallReport> + Send;

    /// Resolves when a task that has emptied its queue has waited long enough for the next message:
    /// some milliseconds. At once, where nothing is gained by waiting.
    fn patience(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// A message in a task's hand.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// Where it was taken from.
    pub queue: QueueName,
    /// The message.
    pub message: Message,
    /// Attempts left before it is moved to the backout queue, this one included.
    pub attempts_left: u32,
    /// True when this task has not had it before: a fresh message renews fuel and deadline in
    /// trigger style.
    pub fresh: bool,
}

/// How one call ended, and what it cost.
#[derive(Clone, Debug)]
pub struct CallReport {
    /// How it ended.
    pub end: CallEnd,
    /// Fuel burnt by this call, instantiation included.
    pub fuel: u64,
    /// The end of what the guest wrote so far: it goes into the dead-letter record.
    pub log_tail: String,
}

/// What a whole task cost, for its record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TaskCost {
    /// Fuel burnt.
    pub fuel: u64,
    /// Largest linear memory of any instance, in bytes.
    pub peak_memory: u64,
    /// Time inside the guest, in microseconds, waits in the host excluded where they can be told.
    pub guest_micros: u64,
    /// The end of standard output, standard error and log calls.
    pub log_tail: String,
    /// Bytes of log that were cut.
    pub log_cut: u64,
    /// What was asked for without a grant, each once, with how often.
    pub refused: Vec<Refusal>,
}

/// Something asked for without a grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// `put orders`, `connect 10.0.0.1:80`, ...
    pub what: String,
    /// How often.
    pub times: u64,
}
