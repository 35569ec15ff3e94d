//! What the workshop sees of a handler's calls, and where it refuses one or ends the guest.
//!
//! It learns the queues that a handler wants to put to, so that those which a pattern grants can be
//! made. One order for one run: the call with that number, counted from 1 over the whole run.

use std::collections::BTreeSet;

use oncue_core::names::QueueName;
use oncue_manager::tasks::port::PortError;
use oncue_manager::tasks::probe::{Probe, SessionCall};
use parking_lot::Mutex;

/// Calls of one run that are remembered in words; all are counted.
const MAX_CALLS: usize = 10_000;

/// Queues of one run that are remembered.
const MAX_QUEUES: usize = 1_000;

/// What shall go wrong in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// Nothing.
    #[default]
    None,
    /// The guest is ended at that call.
    CutAt(usize),
    /// That put (or request) is refused as `full`.
    RefusePut(usize),
    /// That commit of a handler that ended well is refused as a state conflict.
    Redeliver(usize),
}

/// What was seen.
#[derive(Debug, Default)]
struct Seen {
    calls: Vec<String>,
    counted: usize,
    puts: usize,
    struck: bool,
    queues: BTreeSet<QueueName>,
}

/// The workshop's probe.
#[derive(Debug, Default)]
pub(super) struct Watch {
    order: Order,
    seen: Mutex<Seen>,
}

impl Watch {
    pub(super) fn new(order: Order) -> Self {
        Self {
            order,
            seen: Mutex::default(),
        }
    }

    /// The calls so far, in words, and how many there were.
    pub(super) fn calls(&self) -> (Vec<String>, usize) {
        let seen = self.seen.lock();
        (seen.calls.clone(), seen.counted)
    }

    /// True when a call was refused or the guest ended, as ordered.
    pub(super) fn has_struck(&self) -> bool {
        self.seen.lock().struck
    }

    /// How many of them were puts or requests.
    pub(super) fn puts(&self) -> usize {
        self.seen.lock().puts
    }

    /// The queues that were named in them.
    pub(super) fn queues(&self) -> BTreeSet<QueueName> {
        self.seen.lock().queues.clone()
    }
}

impl Probe for Watch {
    fn before(&self, call: SessionCall<'_>) -> Result<(), PortError> {
        let mut seen = self.seen.lock();
        seen.counted += 1;
        if seen.calls.len() < MAX_CALLS {
            seen.calls.push(call.to_string());
        }
        let queue = match call {
            SessionCall::Get(queue)
            | SessionCall::Browse(queue)
            | SessionCall::Depth(queue)
            | SessionCall::Put(queue)
            | SessionCall::Request(queue) => Some(queue),
            _ => None,
        };
        if let Some(queue) = queue.filter(|_| seen.queues.len() < MAX_QUEUES) {
            seen.queues.insert(queue.clone());
        }
        let puts_to = match call {
            SessionCall::Put(queue) | SessionCall::Request(queue) => Some(queue),
            _ => None,
        };
        seen.puts += usize::from(puts_to.is_some());
        match (self.order, puts_to) {
            (Order::CutAt(number), _) if number == seen.counted => {
                seen.struck = true;
                Err(PortError::Cut(format!(
                    "the workshop ended it at its call {number}: {call}"
                )))
            }
            (Order::RefusePut(number), Some(queue)) if number == seen.puts => {
                seen.struck = true;
                Err(PortError::Full(format!(
                    "queue \"{queue}\" is full (the workshop refuses put {number}); raise \
                     max-depth or drain it [queue-full]"
                )))
            }
            _ => Ok(()),
        }
    }
}
