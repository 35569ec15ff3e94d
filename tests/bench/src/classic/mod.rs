//! The classic architecture over this project's own store and runtime: a trigger message on an
//! initiation queue, a separate monitor that reads it over the API and starts the application.
//!
//! How it maps, and where it is kinder to the classic design than that design is:
//!
//! - The rule fires for `first` and `every`, and again when the last server closes and messages are
//!   left: the manager's own rule decides, with the same conditions.
//! - The queue manager puts a trigger message, not persistent, on the initiation queue: so does the
//!   host, one of the same size, instead of starting the task.
//! - The trigger monitor, a process of its own, gets it, one at a time: so does the child process,
//!   over HTTP on a connection kept alive, and it acknowledges beside its next step.
//! - The monitor starts a program, which connects, opens the queue and drains it in units of work:
//!   here it sends the number of the start over a connection kept open, and the host runs that task
//!   in its pooled sandbox, next to the store, with every saving of the product.
//! - Trigger messages pile up on the initiation queue: here too, up to max-tasks a queue; further
//!   starts wait as owed ones, so that nothing overflows or is lost.
//!
//! So the two contenders differ by nothing but the way from the rule to the start of the task.

mod host;
mod load;
mod monitor;

pub(crate) use host::{Host, Initiation, Shape};
pub(crate) use load::{closed, open, outage};
pub(crate) use monitor::{MONITOR, Monitor, run as monitor};
