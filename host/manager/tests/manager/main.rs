//! The manager over the memory store, a manual clock and scripted tasks: triggering, units of work,
//! steps. Each test is named for the acceptance number that it shows.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod alarms;
mod at_hand;
mod batches;
mod change;
mod consumers;
mod counting;
mod early;
mod explain;
mod failures;
mod found;
mod gated;
mod groups;
mod lingers;
mod logged;
mod pipelines;
mod plugins;
mod properties;
mod recovery;
mod requests;
mod retention;
mod rig;
mod scheduler;
mod schedules;
mod steps;
mod threads;
mod trigger_types;
mod units;
mod values;
