//! Queue semantics as values and functions: no I/O, no async, no clock, no lock.
//!
//! The shell around it (`oncue-manager`) performs what is decided here. `now` is always an
//! argument. Start at [`trigger`] for the rule and the steps, at [`unit_of_work`] for what a commit
//! is, at [`definition`] for what operators set.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod admission;
pub mod alarm;
pub mod backout;
pub mod code;
pub mod cursor;
pub mod definition;
pub mod escape;
pub mod fairness;
pub mod message;
pub mod names;
pub mod outcome;
pub mod process_table;
pub mod quantity;
pub mod queue;
pub mod queue_table;
pub mod quick_hash;
pub mod schedule;
pub mod time;
pub mod trace;
pub mod trigger;
pub mod unit_of_work;
