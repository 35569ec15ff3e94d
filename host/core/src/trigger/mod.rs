//! Triggering: when a queue gets a task, decided by numbered steps that are the product's words.
//!
//! [`rule`] says whether something more should be running, by the present state alone. [`gate`] is
//! what a queue remembers between questions: the pending trigger counter, the indicator, control,
//! back-off. [`process`] performs steps 10 to 68 over them. [`hold`] names every reason not to
//! start.
//!
//! Refuses to do: start anything, read a clock, write a record. The caller starts the task between
//! steps 64 and 66 and makes the control record durable. Neighbours: [`crate::queue_table`] is
//! asked at 60, [`crate::process_table`] at 62, [`crate::admission`] at 50.

use std::fmt;

use serde::{Deserialize, Serialize};

pub mod explain;
pub mod gate;
pub mod hold;
pub mod message;
pub mod process;
pub mod rule;
#[cfg(test)]
pub(crate) mod scene;
pub mod step;

pub use explain::{Condition, ConditionSource, Explanation, conditions, explain};
pub use gate::{BackOffState, Control, ControlRecord, Gate, Held, InProcess, Pending, TaskEnd};
pub use hold::{HoldReason, PausedBy};
pub use message::{TriggerMessage, TriggerRecord};
pub use process::{Ask, End, Report, Start, finish, run};
pub use rule::{Cause, Facts, Verdict, evaluate};
pub use step::{Step, Trace};

/// Identity of a task: unique within a host, growing with time. Also the fence of its indicator.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct TaskId(pub u64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
