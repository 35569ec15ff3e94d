//! Every reason not to start a task, each with the numbers a person needs to act on it.
//!
//! The names are permanent: programs match on them. A reason is not an error: nobody is refused.

use crate::names::ProcessName;

/// What was paused by an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PausedBy {
    /// The queue alone.
    Queue,
    /// The process definition, so every queue bound to it.
    Process,
    /// The whole host.
    Host,
}

impl PausedBy {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Process => "process",
            Self::Host => "host",
        }
    }
}

/// Why nothing is started for a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldReason {
    /// No message is on the queue.
    Empty,
    /// Messages are ready, none of them of the trigger priority.
    BelowTriggerPriority {
        /// Ready messages below it.
        waiting: u64,
        /// The trigger priority.
        priority: u8,
    },
    /// Messages wait for their delay, or for the time to which a handler deferred them.
    Delayed {
        /// Put with a delay.
        delayed: u64,
        /// Deferred by a handler.
        deferred: u64,
    },
    /// Outside consumers have the messages under leases.
    Leased(u64),
    /// The messages are in open units of work.
    InOpenUnit(u64),
    /// A trigger of this queue is between steps 10 and 66.
    TriggerPending,
    /// An operator turned the trigger off.
    TriggerOffByOperator,
    /// The depth trigger fired and turned itself off.
    TriggerOffByDepth,
    /// The trigger type is none.
    TriggerTypeNone,
    /// An operator paused it.
    Paused(PausedBy),
    /// Gets are disabled by the definition.
    GetDisabled,
    /// An outside consumer has the queue open for input.
    ConsumerOpen {
        /// Gets that wait now.
        waiting: u32,
        /// Unsettled leases of such gets.
        leases: u64,
    },
    /// As many tasks are in process as the queue may have.
    AtMaxTasks {
        /// Tasks in process.
        running: u32,
        /// The most allowed.
        max: u32,
    },
    /// Enough starts are under way for what counts, or another trigger process serves the queue.
    AlreadyInProcess,
    /// Too little memory is left in the ledger.
    InsufficientMemory {
        /// Bytes a task needs.
        wanted: u64,
        /// Bytes left for this queue.
        free: u64,
    },
    /// Too little memory is left on the machine. Same name as the one above: the cure is the same.
    InsufficientHostMemory {
        /// Bytes a task needs.
        wanted: u64,
        /// Bytes of real headroom.
        free: u64,
    },
    /// Too little fuel is left in the ledger.
    InsufficientFuel {
        /// Fuel a task needs.
        wanted: u64,
        /// Fuel left for this queue.
        free: u64,
    },
    /// Every task slot is taken.
    NoTaskSlot {
        /// How many there are.
        slots: u32,
    },
    /// The queue names no process definition, or one that is not defined.
    NoProcess(Option<ProcessName>),
    /// The process definition's component is not in the plugins directory.
    ComponentMissing(String),
    /// The component is being compiled.
    ComponentCompiling(String),
    /// The component was refused; the text says why.
    ComponentQuarantined(String),
    /// The task could not be started; the text says why.
    StartFailed(String),
    /// Tasks without progress or failed starts came before; the next is paced.
    BackingOff {
        /// How many, since the last progress.
        failures: u32,
    },
    /// Fewer messages count than the trigger depth asks for.
    WaitingForDepth {
        /// Messages that count.
        counted: u64,
        /// The trigger depth.
        depth: u64,
    },
    /// The messages' groups are busy: a task or a consumer has another member in hand.
    GroupBusy(u64),
    /// Failed messages wait to be tried again.
    RetryDelay(u64),
    /// Messages are set aside, because nothing could take them.
    ParkedMessage(u64),
    /// The store stopped writing.
    StoreStopped,
    /// The host is stopping.
    Draining,
}

/// Makes the permanent names and their list from one list: a reason without a name does not
/// compile, and what has a name is listed.
macro_rules! names {
    ($($reason:pat => $name:literal,)+) => {
        /// The permanent names, in the order of the documentation.
        pub const ALL_NAMES: [&str; [$($name),+].len()] = [$($name),+];

        impl HoldReason {
            /// The permanent name.
            #[must_use]
            pub const fn as_str(&self) -> &'static str {
                match self {
                    $($reason => $name,)+
                }
            }
        }
    };
}

names! {
    Self::Empty => "empty",
    Self::BelowTriggerPriority { .. } => "below-trigger-priority",
    Self::Delayed { .. } => "delayed",
    Self::Leased(_) => "leased",
    Self::InOpenUnit(_) => "in-open-unit",
    Self::TriggerPending => "trigger-pending",
    Self::TriggerOffByOperator => "trigger-off-by-operator",
    Self::TriggerOffByDepth => "trigger-off-by-depth",
    Self::TriggerTypeNone => "trigger-type-none",
    Self::Paused(_) => "paused",
    Self::GetDisabled => "get-disabled",
    Self::ConsumerOpen { .. } => "consumer-open",
    Self::AtMaxTasks { .. } => "at-max-tasks",
    Self::AlreadyInProcess => "already-in-process",
    Self::InsufficientMemory { .. } | Self::InsufficientHostMemory { .. } => "insufficient-memory",
    Self::InsufficientFuel { .. } => "insufficient-fuel",
    Self::NoTaskSlot { .. } => "no-task-slot",
    Self::NoProcess(_) => "no-process",
    Self::ComponentMissing(_) => "component-missing",
    Self::ComponentCompiling(_) => "component-compiling",
    Self::ComponentQuarantined(_) => "component-quarantined",
    Self::StartFailed(_) => "start-failed",
    Self::BackingOff { .. } => "backing-off",
    Self::WaitingForDepth { .. } => "waiting-for-depth",
    Self::GroupBusy(_) => "group-busy",
    Self::RetryDelay(_) => "retry-delay",
    Self::ParkedMessage(_) => "parked-message",
    Self::StoreStopped => "store-stopped",
    Self::Draining => "draining",
}

impl HoldReason {
    /// True when messages that become ready can change the answer. False for what only an event of
    /// another kind can: a task's end, its first get, an operator's word. `starting` tells whether
    /// one more start waits for the starts under way, however many messages count (type first).
    #[must_use]
    pub const fn heeds_messages(&self, starting: bool) -> bool {
        match self {
            Self::AtMaxTasks { .. } | Self::TriggerTypeNone => false,
            Self::AlreadyInProcess => !starting,
            _ => true,
        }
    }

    /// True when the start was decided and resources lacked (step 52).
    #[must_use]
    pub const fn is_resources(&self) -> bool {
        matches!(
            self,
            Self::InsufficientMemory { .. }
                | Self::InsufficientHostMemory { .. }
                | Self::InsufficientFuel { .. }
                | Self::NoTaskSlot { .. }
        )
    }
}

mod sentence;
#[cfg(test)]
pub(crate) mod tests;
