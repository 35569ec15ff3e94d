//! The queue manager: one loop that evaluates queues and starts tasks, and the sessions that tasks
//! run in.
//!
//! Start at [`main_loop`] for what happens when, at [`trigger_process`] for steps 10 to 66, at
//! [`tasks`] for the seam to the sandbox, at [`handle`] for what applications and operators may do.
//! The loop owns gates, indicators, counts and the ledger; nothing else writes them.
//!
//! Refuses to do: know wasmtime, HTTP, or files other than the in-hand file.

pub mod alarms;
pub mod clock;
pub mod command;
pub mod commits;
pub mod dead_letters;
pub mod definition_set;
pub mod definitions;
pub mod due;
pub mod error;
pub mod event;
pub mod handle;
pub mod idempotency;
pub mod in_hand;
pub mod main_loop;
pub mod metrics;
pub mod plugins;
pub mod put;
pub mod queue_manager;
pub mod recovery;
pub mod reload;
mod requesters;
pub mod retention;
mod rows;
pub mod schedules;
pub mod shared;
pub mod status;
pub mod sweep;
mod task_ends;
pub mod tasks;
pub mod traces;
pub mod trigger_process;
pub mod views;

pub use clock::{Clock, ManualClock, SystemClock};
pub use error::ApiError;
pub use handle::Handle;
pub use main_loop::Manager;
pub use queue_manager::{ManagerConfig, QueueManager};
