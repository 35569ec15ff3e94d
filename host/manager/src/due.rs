//! What time alone changes: delays, retries and deferrals that are over, leases that ended,
//! messages that expired. All of it is applied before the rule is asked.

use oncue_core::backout::Trouble;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{Disposition, Settle, Unit};
use oncue_store::{Due, DueWhat};

use crate::handle::consumer_failed;
use crate::main_loop::Manager;
use crate::metrics::By;
use crate::traces::Span;
use crate::traces::consumer::{Step, Stepping};

/// Messages of one unit.
const DUE_BATCH: usize = 1000;

/// Units of one turn; the rest waits for the next one, so that a flood of due messages does not
/// hold the loop.
const DUE_UNITS: usize = 16;

impl Manager {
    /// Applies all that is due now. Answers with when the next is due; a change after that which
    /// makes anything due earlier asks for a turn of its own.
    pub(crate) fn apply_due(&mut self, now: Timestamp) -> Option<Timestamp> {
        if self.host.store_stopped {
            return None;
        }
        for _ in 0..DUE_UNITS {
            let next = self.shared.store.next_due();
            if next.is_none_or(|due| due > now) {
                return next;
            }
            let owner = self.shared.new_owner();
            let dues = match self.shared.store.claim_due(owner, now, DUE_BATCH) {
                Ok(dues) if dues.is_empty() => return next,
                Ok(dues) => dues,
                Err(error) => {
                    tracing::error!(%error, "due messages cannot be read");
                    return next;
                }
            };
            let places = dues
                .iter()
                .map(|d| (d.queue.clone(), d.message.header.id.sequence))
                .collect();
            let mut told = Vec::new();
            let settles = dues.into_iter().map(|due| self.settle_due(due, &mut told));
            let settles = settles.collect();
            let unit = Unit {
                owner: Some(owner),
                settles,
                ..Unit::default()
            };
            self.submit_told(unit, Some((owner, places)), told);
        }
        self.shared.store.next_due()
    }

    /// What becomes of a due message; what is to be told of it once that is durable goes to
    /// `told`.
    fn settle_due(&self, due: Due, told: &mut Vec<Span>) -> Settle {
        let Due {
            queue,
            message,
            what,
        } = due;
        let sequence = message.header.id.sequence;
        let free = Disposition::Requeue(message.attempts);
        let disposition = match what {
            DueWhat::Wait(_) => free,
            DueWhat::Expiry => {
                self.shared.metrics.expired.add(1);
                Disposition::Remove
            }
            DueWhat::Lease => {
                let trouble = Trouble::LeaseExpired;
                let decided = consumer_failed(&self.shared, &queue, &message, &trouble, None);
                let disposition = decided.unwrap_or(free);
                self.shared.metrics.settled(By::Application, &disposition);
                disposition
            }
        };
        let step = match what {
            DueWhat::Wait(_) => None,
            DueWhat::Expiry => Some(Step::Expire),
            DueWhat::Lease => Some(Step::LeaseEnd),
        };
        if let Some(step) = step {
            let step = Stepping {
                queue: &queue,
                message: &message,
                step,
                disposition: Some(&disposition),
                began: self.shared.trace_time(),
                caller: None,
            };
            told.extend(step.span(&self.shared));
        }
        if !matches!(disposition, Disposition::Requeue(_)) {
            self.shared.settled(&queue, [sequence]);
        }
        Settle {
            queue,
            sequence,
            disposition,
        }
    }
}
