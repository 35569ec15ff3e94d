//! The budget: how much work a message may cost, in numbers that no clock distorts.
//!
//! `budget.toml` holds a line for each cost. [`paths`] are named stretches of work of which the
//! `oncue-budget` command counts the instructions; `tests/whole` counts syncs, allocations, copies
//! and questions of the whole way of a message. Both compare with the file through [`budget`].
//!
//! Refuses to do: measure time. That is `tests/bench`.

#![forbid(unsafe_code)]

pub mod budget;
pub mod paths;
pub mod rig;
mod values;
