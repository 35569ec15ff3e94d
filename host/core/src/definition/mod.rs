//! Definitions of queues and processes: their attributes, defaults, ranges and layers.
//!
//! Everything a manifest, an HTTP request or a flag can say about a queue or a process is read here
//! and nowhere else, and all faults of an input are named at once. This module does not know where
//! definitions are kept, which names exist, nor what a component exports: the manager checks a
//! definition against the world. It never invents a value that it was not given: a limit or grant
//! that this version cannot honour is refused.
//!
//! An attribute is one line in the list of `queue` or `process` and a field with its default there:
//! reader, writer, documentation and layers follow from the list. Neighbours: `names` and
//! `quantity` read single values; `trigger` lives by the resolved attributes.

mod attributes;
mod collection;
mod fault;
mod kind;
mod layered;
pub mod limits;
mod origin;
mod pattern;
mod pool;
mod process;
mod queue;
mod raw;
mod schedule;
#[cfg(test)]
mod tests;
mod words;

pub use attributes::{AttributeInfo, Change, Patch};
pub use fault::{Fault, list_faults, nearest};
pub use layered::{Layered, Origin, ProcessDefinition, QueueDefinition};
pub use origin::WebOrigin;
pub use pattern::Pattern;
pub use pool::Pool;
pub use process::{Grants, PROCESS_ATTRIBUTES, ProcessAttributes, ProcessPatch};
pub use queue::{Backoff, QUEUE_ATTRIBUTES, QueueAttributes, QueuePatch, Retry};
pub use raw::Raw;
pub use words::{Delivery, Rearm, Style, TriggerType, Usage};
