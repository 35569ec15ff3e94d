//! What people see of the manager: plain views, made on its loop, serialised as they are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use oncue_core::definition::{Origin, ProcessAttributes, QueueAttributes};
use oncue_core::message::MessageId;
use oncue_core::names::{ProcessName, QueueName};
use oncue_core::outcome::Outcome;
use oncue_core::queue::Counts;
use oncue_core::time::{Millis, Timestamp};
use serde::Serialize;

use crate::tasks::TaskId;

/// A queue.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct QueueView {
    /// Its name.
    pub name: QueueName,
    /// All committed messages.
    pub depth: u64,
    /// Messages that applications and handlers put since the host started.
    pub puts: u64,
    /// Messages that count for the trigger rule.
    pub counted: u64,
    /// Tasks in process.
    pub running: u32,
    /// Starts that the rule still owes: what counts beyond starts under way.
    pub owed: u64,
    /// `fire` or `hold`.
    pub verdict: &'static str,
    /// The code of the reason to hold.
    pub reason: Option<&'static str>,
    /// The reason in a sentence.
    pub reason_text: Option<String>,
    /// `on`, `off by operator`, `off by depth`.
    pub control: &'static str,
    /// A depth trigger owes a start.
    pub start_owed: bool,
    /// An operator paused this queue.
    pub paused: bool,
    /// Unselective outside gets that wait now.
    pub waiting_inputs: u32,
    /// Age of the oldest ready message in milliseconds.
    pub oldest_age: Option<Millis>,
    /// When the queue manager itself puts the next message.
    pub next_scheduled: Option<Timestamp>,
    /// Messages by state.
    pub counts: Counts,
    /// The attributes that hold.
    pub attributes: QueueAttributes,
    /// Where each attribute's value comes from, when not the default.
    pub origins: BTreeMap<String, Origin>,
}

type Sees = dyn Fn(&QueueName) -> bool + Send + Sync;

/// Which queues somebody may know of. Everyone's by default.
#[derive(Clone, Default)]
pub struct Seen(Option<Arc<Sees>>);

impl Seen {
    /// Those for which `sees` answers true. It is asked on the manager's loop, for each queue: it
    /// must be quick, and must not wait.
    #[must_use]
    pub fn by(sees: impl Fn(&QueueName) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(sees)))
    }

    /// Whether it is one of those.
    #[must_use]
    pub fn has(&self, queue: &QueueName) -> bool {
        self.0.as_ref().is_none_or(|sees| sees(queue))
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.0.is_some() { "some" } else { "all" };
        formatter.debug_tuple("Seen").field(&word).finish()
    }
}

/// A queue's place in a list: what the list is sorted by, and the name. It stands while others come
/// and go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePlace {
    /// The value that is sorted by; 0 in a list by name.
    pub key: u64,
    /// The queue.
    pub name: QueueName,
}

/// Which queues are wanted, and in which order.
#[derive(Clone, Debug, Default)]
pub struct QueueFilter {
    /// Only those.
    pub seen: Seen,
    /// Only those whose name contains this text, whatever the case of its letters.
    pub search: String,
    /// Only those that hold messages.
    pub non_empty: bool,
    /// Only those that the queue manager does not keep for itself.
    pub no_reserved: bool,
    /// In which order.
    pub sort: QueueSort,
    /// The other way round.
    pub descending: bool,
    /// Only those that come after this place.
    pub after: Option<QueuePlace>,
    /// So many of those are passed over.
    pub offset: usize,
    /// At most so many views; all when `None`.
    pub max: Option<usize>,
}

/// What queues are sorted by; those that are equal, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueSort {
    /// By name.
    #[default]
    Name,
    /// By depth.
    Depth,
    /// By the age of the oldest message that may be taken. Those without one are youngest.
    OldestAge,
    /// By tasks in process.
    Running,
}

impl QueueSort {
    /// Every order.
    pub const ALL: [Self; 4] = [Self::Name, Self::Depth, Self::OldestAge, Self::Running];

    /// The permanent name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Depth => "depth",
            Self::OldestAge => "oldest-age",
            Self::Running => "running",
        }
    }
}

/// A part of the queues.
#[derive(Clone, Debug)]
pub struct QueuePage {
    /// The part.
    pub queues: Vec<QueueView>,
    /// The place of the last one, when more come after it.
    pub next: Option<QueuePlace>,
    /// How many queues the filter lets through, wherever the part begins.
    pub matching: u64,
    /// How many queues are defined, of those that are seen.
    pub defined: u64,
}

/// A process definition.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProcessView {
    /// Its name.
    pub name: ProcessName,
    /// `ready`, `compiling`, `quarantined`, `missing`.
    pub component: &'static str,
    /// Why, when not ready.
    pub component_reason: Option<String>,
    /// Digest of the version that serves.
    pub digest: Option<String>,
    /// An operator paused it.
    pub paused: bool,
    /// Tasks in process.
    pub running: u32,
    /// Queues that name it.
    pub queues: Vec<QueueName>,
    /// The attributes that hold.
    pub attributes: ProcessAttributes,
    /// Where each attribute's value comes from, when not the default.
    pub origins: BTreeMap<String, Origin>,
    /// Values that are accepted and probably not meant.
    pub warnings: Vec<String>,
}

/// Why a queue does or does not trigger. The product's signature.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Explanation {
    /// Which queue.
    pub queue: QueueName,
    /// `fire` or `hold`.
    pub verdict: &'static str,
    /// The code of the one reason that holds it.
    pub reason: Option<&'static str>,
    /// The verdict in a sentence.
    pub sentence: String,
    /// Every condition with its present value, in the order in which they are asked.
    pub conditions: Vec<ConditionView>,
    /// Steps of the last trigger, as numbers.
    pub last_trace: Vec<u8>,
    /// When it last fired.
    pub last_fired: Option<Timestamp>,
    /// When the queue is looked at again by itself.
    pub next_check: Option<Timestamp>,
    /// When the queue manager itself puts the next message.
    pub next_scheduled: Option<Timestamp>,
    /// When this was true.
    pub now: Timestamp,
}

/// One condition of the rule.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ConditionView {
    /// What is asked.
    pub name: String,
    /// It lets the trigger pass.
    pub holds: bool,
    /// It is the one that decides.
    pub decides: bool,
    /// Its present value.
    pub value: String,
    /// Where the value comes from.
    pub source: String,
}

/// The dead letters of a queue, by groups.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeadLettersView {
    /// The dead-letter or backout queue.
    pub queue: QueueName,
    /// The groups, the largest first.
    pub groups: Vec<DeadLetterGroup>,
    /// Messages looked at.
    pub scanned: u64,
    /// Of them, those that were put there and failed nowhere: they have no dead-letter record.
    pub without_record: u64,
    /// There are more messages than were looked at.
    pub more: bool,
    /// When this was true.
    pub now: Timestamp,
}

/// Dead letters that have origin, reason and process in common.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeadLetterGroup {
    /// `backout`, `rejected`, `consumer`, `deferred` or `hop-limit`.
    pub reason: &'static str,
    /// How the last attempt ended, for `backout`.
    pub outcome: Option<&'static str>,
    /// The queue they came from.
    pub queue: QueueName,
    /// The process definition that failed on them.
    pub process: Option<String>,
    /// How many.
    pub count: u64,
    /// When the oldest was put.
    pub oldest: Timestamp,
    /// When the newest was put.
    pub newest: Timestamp,
    /// When the last one was moved here.
    pub last: Timestamp,
    /// That one.
    pub message: MessageId,
    /// Its detail, the start of it.
    pub detail: String,
}

/// The ledger: what the host may run, and what it runs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LedgerView {
    /// All there is.
    pub capacity: ResourcesView,
    /// Reserved by running tasks.
    pub reserved: ResourcesView,
    /// Starts refused for want of resources, since the start of the host.
    pub refused: u64,
    /// The same, by what was wanting.
    pub refusals: RefusalsView,
    /// Reserved by each process definition.
    pub by_process: BTreeMap<String, ResourcesView>,
    /// Queues held at step 52 now, longest first.
    pub waiting: Vec<QueueName>,
}

/// Starts refused, by what was wanting.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub struct RefusalsView {
    /// Task slots.
    pub slots: u64,
    /// Memory in the ledger.
    pub memory: u64,
    /// Fuel.
    pub fuel: u64,
    /// Free memory of the machine, whatever the ledger says.
    pub headroom: u64,
}

/// Slots, memory and fuel.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub struct ResourcesView {
    /// Task slots.
    pub slots: u64,
    /// Bytes.
    pub memory: u64,
    /// Units of fuel.
    pub fuel: u64,
}

/// What this program was built from.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BuildView {
    /// The source's revision, if whoever built it said so.
    pub revision: Option<String>,
    /// Processor and system.
    pub target: String,
    /// The version of the sandbox's engine.
    pub wasmtime: String,
}

/// The host in numbers.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct StatusView {
    /// The queue manager's name.
    pub name: String,
    /// This program's version.
    pub version: &'static str,
    /// What it was built from.
    pub build: BuildView,
    /// `running`, `draining`.
    pub phase: &'static str,
    /// An operator paused the host.
    pub paused: bool,
    /// When it started.
    pub started: Timestamp,
    /// The time now.
    pub now: Timestamp,
    /// Queues defined.
    pub queues: u64,
    /// Messages on all of them.
    pub depth: u64,
    /// Tasks in process.
    pub running: u64,
    /// Triggers fired since the start.
    pub triggers: u64,
    /// How often the trigger rule was asked since the start.
    pub asked: u64,
    /// Tasks ended since the start, by outcome.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Messages in the dead-letter queue.
    pub dead_letters: u64,
    /// Alarms that are raised now.
    pub alarms: u64,
    /// `ok`, or why the store does not write.
    pub store: &'static str,
    /// Bytes on disk.
    pub disk_used: u64,
    /// Bytes free on that disk.
    pub disk_free: Option<u64>,
    /// Commits since the start.
    pub commits: u64,
    /// Syncs since the start.
    pub syncs: u64,
}

/// An alarm that is raised.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AlarmView {
    /// Its permanent name.
    pub alarm: &'static str,
    /// The queue that it is about, if it is about one.
    pub queue: Option<QueueName>,
    /// The plugin, if it is about one.
    pub plugin: Option<String>,
    /// When it was raised.
    pub since: Timestamp,
    /// What was then, in a sentence.
    pub detail: String,
    /// What to do.
    pub cure: String,
    /// It does not end by itself.
    pub needs_a_person: bool,
}

/// All raised alarms.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AlarmsView {
    /// How many there are, those included that are not listed.
    pub active: u64,
    /// The newest first, up to a bound.
    pub alarms: Vec<AlarmView>,
}

/// Something that happened, for whoever watches.
#[derive(Clone, Debug, Serialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
pub enum HostEvent {
    /// A task was started.
    TaskStarted {
        /// Which task.
        task: TaskId,
        /// For which queue.
        queue: QueueName,
        /// Running what.
        process: ProcessName,
        /// The steps passed.
        steps: Vec<u8>,
        /// When.
        time: Timestamp,
    },
    /// A task ended.
    TaskEnded {
        /// Which task.
        task: TaskId,
        /// For which queue.
        queue: QueueName,
        /// How.
        outcome: Outcome,
        /// Messages settled well.
        committed: u64,
        /// Messages that failed.
        failed: u64,
        /// When.
        time: Timestamp,
    },
    /// A queue is held for another reason than before, or no longer.
    Held {
        /// Which queue.
        queue: QueueName,
        /// The code of the reason; `None` when it fires.
        reason: Option<&'static str>,
        /// When.
        time: Timestamp,
    },
    /// A message was parked: an operator must act.
    Parked {
        /// On which queue.
        queue: QueueName,
        /// Which message.
        message: MessageId,
        /// When.
        time: Timestamp,
    },
    /// A plugin changed.
    Plugin {
        /// Which.
        name: String,
        /// Its state; `compiling` also while the next version is compiled and one serves.
        state: &'static str,
        /// Digest of the version that serves now, if one does.
        digest: Option<String>,
        /// Why, when quarantined.
        reason: Option<String>,
        /// When.
        time: Timestamp,
    },
    /// A definition changed.
    Defined {
        /// `queue` or `process`.
        what: &'static str,
        /// Its name.
        name: String,
        /// When.
        time: Timestamp,
    },
    /// An alarm was raised or cleared.
    Alarm {
        /// Its permanent name.
        alarm: &'static str,
        /// The queue that it is about, if it is about one.
        queue: Option<QueueName>,
        /// The plugin, if it is about one.
        plugin: Option<String>,
        /// When it was raised.
        since: Timestamp,
        /// What was then, in a sentence.
        detail: String,
        /// It is over.
        cleared: bool,
        /// When.
        time: Timestamp,
    },
    /// The store stopped writing, or writes again.
    Store {
        /// `ok`, `full`, `sync-failed`, `closed`.
        state: &'static str,
        /// When.
        time: Timestamp,
    },
}

/// The word for a store's state.
#[must_use]
pub fn store_word(why: Option<oncue_store::StopReason>) -> &'static str {
    match why {
        None => "ok",
        Some(oncue_store::StopReason::Full) => "full",
        Some(oncue_store::StopReason::SyncFailed) => "sync-failed",
        Some(oncue_store::StopReason::Closed) => "closed",
    }
}
