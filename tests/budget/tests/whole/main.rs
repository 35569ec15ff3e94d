//! What one message costs on its whole way, in counts: put over the handle, trigger, task in the
//! real sandbox, commit. Nothing is timed.
//!
//! Threads gather their work in batches that differ from run to run, so a count is an upper bound:
//! it holds in every schedule. The bounds stand in `budget.toml`.

#![deny(unsafe_op_in_unsafe_fn)]

mod allocations;
mod counts;
mod host;
mod idle;
