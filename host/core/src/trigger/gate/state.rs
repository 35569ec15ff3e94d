//! The parts of a gate, as plain values.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;
use crate::trigger::TaskId;
use crate::trigger::hold::HoldReason;
use crate::trigger::step::Step;

/// Whether the trigger is on, and who turned it off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// On.
    #[default]
    On,
    /// Off until an operator turns it on.
    OffByOperator,
    /// A depth trigger fired; on again by its re-arm rule, or by an operator.
    OffByDepth,
}

impl Control {
    /// The words for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::OffByOperator => "off by operator",
            Self::OffByDepth => "off by depth",
        }
    }
}

/// The durable part of a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ControlRecord {
    /// Trigger control.
    pub control: Control,
    /// A depth trigger fired and no task has yet served it to its end.
    pub start_owed: bool,
}

/// Paces a queue whose tasks make no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOffState {
    /// Tasks without progress and failed starts since the last progress.
    pub failures: u32,
    /// Nothing starts before.
    pub until: Timestamp,
}

/// Where the last start was held, until it is cured or tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Why.
    pub reason: HoldReason,
    /// At which step: 52, 60, 62 or 64.
    pub step: Step,
    /// Since when it is held for a reason of this name.
    pub since: Timestamp,
    /// When the start is tried again without any event.
    pub retry_at: Timestamp,
}

/// One task in process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InProcess {
    /// Which task.
    pub task: TaskId,
    /// Its first get has not been answered yet: its start is under way.
    pub starting: bool,
    /// It was started for the start that a depth trigger owes.
    pub(super) serves_owed: bool,
}

/// How a task ended, as far as its queue's gate is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskEnd {
    /// A message it got left the counted set durably: committed, rejected, moved, charged or
    /// deferred to a due time.
    pub progress: bool,
    /// The handler returned ok.
    pub ended_ok: bool,
    /// The task never ran; the text says why. Such an end is no progress.
    pub start_failed: Option<String>,
    /// It looked and was given nothing, because others had taken all that there was: no progress,
    /// and nothing to pace either.
    pub found_nothing: bool,
}

impl TaskEnd {
    /// A task that ended well and got something done.
    pub const DONE: Self = Self {
        progress: true,
        ended_ok: true,
        start_failed: None,
        found_nothing: false,
    };
    /// A task that ended well and got nothing done.
    pub const IDLE: Self = Self {
        progress: false,
        ended_ok: true,
        start_failed: None,
        found_nothing: false,
    };
    /// A task that failed and got nothing done.
    pub const FAILED: Self = Self {
        progress: false,
        ended_ok: false,
        start_failed: None,
        found_nothing: false,
    };
}
