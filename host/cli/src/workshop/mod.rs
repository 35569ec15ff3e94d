//! The workshop of plugin authors: `oncue run` and `oncue test`, with no host.
//!
//! A plugin is loaded as a host would load it and runs on a [`bench`]: the real queue manager over
//! a memory store, with the real sandbox. What came of it is judged by a [`ledger`] of what became
//! durable. Nothing here knows how queues, tasks or units of work behave.
//!
//! | Module | What |
//! |---|---|
//! | `plugin` | loading, with a compile cache of the user's |
//! | `case`, `body` | golden cases on disk |
//! | `job` | a case's input as the queue manager takes it |
//! | `bench`, `ledger`, `probe` | one run, what became durable in it, and the calls of its guest |
//! | `observed` | what came of a run |
//! | `diff` | where that differs from what was expected |
//! | `faults`, `fuel`, `verdict` | runs in which something goes wrong, and what they must come to |
//! | `one_shot`, `suite` | `oncue run`, `oncue test` |
//! | `report`, `junit` | what is printed, and what CI systems read |

mod bench;
mod body;
mod case;
mod diff;
mod faults;
mod fuel;
mod job;
mod junit;
mod ledger;
mod observed;
mod one_shot;
mod plugin;
mod probe;
mod report;
mod suite;
mod verdict;

pub(crate) use faults::FaultKind;
pub(crate) use one_shot::{empty_call, run};
pub(crate) use suite::test;
