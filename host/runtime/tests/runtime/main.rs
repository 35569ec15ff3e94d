//! The sandbox with real guests, under a real manager over the memory store.
//!
//! What a limit does to the guest is judged by the task's record, and what remains of its unit by a
//! browse of the queues. Nothing is asserted about time.

mod by_hand;
mod harness;
mod hostile;
mod loading;
mod polite;
mod sharing;
