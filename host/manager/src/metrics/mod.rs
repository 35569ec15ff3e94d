//! What is counted for monitoring, as it happens: plain counters without a lock, added to by
//! whoever does the thing, read when somebody asks ([`crate::handle::Handle::metrics`]).
//!
//! Only here stands what cannot be read from state. What the loop alone does it counts in
//! [`LoopCounts`], without atomics. Queues' own numbers are in [`view`]. A count goes up once its
//! fact is durable; but what the loop itself settles (expired messages, leases that ended) is
//! counted when it is submitted, and a get is counted when it is made.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use oncue_core::message::DeadLetterReason;
use oncue_core::names::ProcessName;
use oncue_core::outcome::Outcome;
use oncue_core::unit_of_work::{Disposition, Wait};
pub use oncue_store::count::Count;
use oncue_store::histogram::Histogram;
pub use oncue_store::histogram::{BOUNDS, Distribution};

use crate::tasks::record::TaskRecord;

pub mod view;

/// Process definitions that are counted one by one; the others are counted together.
pub const MAX_PROCESSES: usize = 1000;

/// Under what name the others are counted. It has a space, so no process definition has it.
pub const OTHER: &str = "other processes";

/// On whose behalf something is done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A handler, in a task.
    Handler,
    /// An application: it puts, or it is an outside consumer.
    Application,
}

/// What is counted of messages, apart for handlers and for applications.
#[derive(Debug, Default)]
pub struct Messages {
    /// Put, durably.
    pub put: Count,
    /// Puts that repeated an earlier one under its idempotency key.
    pub repeated: Count,
    /// Puts that were refused, or whose unit was.
    pub refused: Count,
    /// Taken; a message that comes back may be taken again.
    pub got: Count,
    /// Settled well: the unit is durable, or the lease was acked.
    pub committed: Count,
    /// Attempts charged.
    pub backed_out: Count,
    /// Deferred.
    pub deferred: Count,
}

/// Why messages were moved to a backout or dead-letter queue, in the order of
/// [`Metrics::dead_lettered`].
pub const DEAD_LETTER_REASONS: [&str; 5] =
    ["backout", "rejected", "consumer", "deferred", "hop-limit"];

/// All of it.
#[derive(Debug)]
pub struct Metrics {
    /// By handlers.
    pub handlers: Messages,
    /// By applications.
    pub applications: Messages,
    /// Removed unread because their life was over.
    pub expired: Count,
    /// Moved to a backout or dead-letter queue, by [`DEAD_LETTER_REASONS`].
    pub dead_lettered: [Count; DEAD_LETTER_REASONS.len()],
    /// Calls of handlers, by the order of [`Outcome::ALL`].
    pub calls: [Count; Outcome::ALL.len()],
    /// How long calls took.
    pub call_times: Histogram,
    /// From the change that made a queue trigger until its guest was entered.
    pub start_times: Histogram,
    begun: Instant,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            handlers: Messages::default(),
            applications: Messages::default(),
            expired: Count::default(),
            dead_lettered: Default::default(),
            calls: Default::default(),
            call_times: Histogram::default(),
            start_times: Histogram::default(),
            begun: Instant::now(),
        }
    }
}

impl Metrics {
    /// Microseconds since the host began; never 0.
    pub(crate) fn micros(&self) -> u64 {
        self.micros_at(Instant::now())
    }

    /// The same at that moment.
    pub(crate) fn micros_at(&self, moment: Instant) -> u64 {
        let micros = moment.saturating_duration_since(self.begun).as_micros();
        u64::try_from(micros).unwrap_or(u64::MAX).max(1)
    }

    /// Those of one side.
    #[must_use]
    pub fn of(&self, by: By) -> &Messages {
        match by {
            By::Handler => &self.handlers,
            By::Application => &self.applications,
        }
    }

    /// A call of a handler has ended.
    pub(crate) fn called(&self, outcome: Outcome, time: Duration) {
        if let Some(calls) = self.calls.get(outcome as usize) {
            calls.add(1);
        }
        self.call_times.record(time);
    }

    /// What became of a message is durable. Only what its taker did to it is counted: what went
    /// back as it was is not.
    pub(crate) fn settled(&self, by: By, disposition: &Disposition) {
        let messages = self.of(by);
        match disposition {
            Disposition::Remove => messages.committed.add(1),
            Disposition::Later { wait, .. } => match wait {
                Wait::Retry => messages.backed_out.add(1),
                Wait::Defer => messages.deferred.add(1),
                Wait::Delay => {}
            },
            Disposition::Move { record, .. } => {
                let reason = record.as_ref().map(|record| record.reason);
                if let Some(DeadLetterReason::Backout(_) | DeadLetterReason::Consumer) = reason {
                    // The last attempt was charged, too.
                    messages.backed_out.add(1);
                }
                self.moved(disposition);
            }
            Disposition::Requeue(_) | Disposition::Lease { .. } | Disposition::Park(_) => {}
        }
    }

    /// A message is moved to a backout or dead-letter queue, if that is what the disposition says.
    pub(crate) fn moved(&self, disposition: &Disposition) {
        if let Disposition::Move {
            record: Some(record),
            ..
        } = disposition
        {
            self.dead_letters(record.reason, 1);
        }
    }

    /// So many messages are in a backout or dead-letter queue now.
    pub(crate) fn dead_letters(&self, reason: DeadLetterReason, messages: u64) {
        let place = match reason {
            DeadLetterReason::Backout(_) => 0,
            DeadLetterReason::Rejected => 1,
            DeadLetterReason::Consumer => 2,
            DeadLetterReason::Deferred => 3,
            DeadLetterReason::HopLimit => 4,
        };
        if let Some(count) = self.dead_lettered.get(place) {
            count.add(messages);
        }
    }
}

/// What tasks of one process definition did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessCounts {
    /// Tasks ended.
    pub tasks: u64,
    /// Those that failed.
    pub failed: u64,
    /// Fuel burnt.
    pub fuel: u64,
    /// Microseconds inside guests.
    pub guest_micros: u64,
    /// The largest memory of any instance so far, in bytes.
    pub peak_memory: u64,
}

/// What the loop counts: it alone writes it.
#[derive(Debug, Default)]
pub(crate) struct LoopCounts {
    /// Triggers fired: first, every, depth.
    pub(crate) fired: [u64; 3],
    /// How often a question ended in a hold, by the hold's name.
    pub(crate) held: Vec<(&'static str, u64)>,
    processes: BTreeMap<ProcessName, ProcessCounts>,
    others: ProcessCounts,
}

impl LoopCounts {
    /// A question to the rule ended in a hold.
    pub(crate) fn hold(&mut self, reason: &'static str) {
        // At most one place for each name, and the usual ones come first.
        match self.held.iter_mut().find(|(name, _)| *name == reason) {
            Some((_, count)) => *count += 1,
            None => self.held.push((reason, 1)),
        }
    }

    /// A task has ended.
    pub(crate) fn ended(&mut self, record: &TaskRecord, failed: bool) {
        let is_known = self.processes.contains_key(&record.process);
        if !is_known && self.processes.len() < MAX_PROCESSES {
            let counts = ProcessCounts::default();
            self.processes.insert(record.process.clone(), counts);
        }
        let counts = self.processes.get_mut(&record.process);
        let counts = counts.unwrap_or(&mut self.others);
        counts.tasks += 1;
        counts.failed += u64::from(failed);
        counts.fuel = counts.fuel.saturating_add(record.cost.fuel);
        counts.guest_micros = counts.guest_micros.saturating_add(record.cost.guest_micros);
        counts.peak_memory = counts.peak_memory.max(record.cost.peak_memory);
    }

    /// Each process definition's counts; last those of all others, if there are any.
    pub(crate) fn processes(&self) -> Vec<(String, ProcessCounts)> {
        let named = self.processes.iter();
        let mut all: Vec<_> = named
            .map(|(name, counts)| (name.to_string(), *counts))
            .collect();
        if self.others.tasks > 0 {
            all.push((OTHER.to_owned(), self.others));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_counted_in_their_own_order() {
        for (place, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, place, "{}", outcome.as_str());
        }
        let metrics = Metrics::default();
        metrics.called(Outcome::Cancelled, Duration::from_millis(3));
        assert_eq!(metrics.calls.last().map(Count::read), Some(1));
        assert_eq!(metrics.call_times.read().micros, 3000);
    }

    #[test]
    fn no_name_of_a_process_definition_is_that_of_the_others() {
        assert!(ProcessName::new(OTHER).is_err());
    }
}
