//! Whose turn it is among the queues that are ready: deficit round robin on fuel burnt.
//!
//! A task's cost is known when it has ended, so a queue is served first and pays afterwards. It is
//! passed over while it is in debt and another is not; each round pays every queue one quantum, and
//! none saves up more. A round passes when a debtor was served, never because one was only asked.
//! Refuses to do: measure fuel, know why a queue is ready. Neighbour: [`crate::admission`].

use std::collections::{BTreeMap, BTreeSet};

use crate::names::QueueName;

/// What each queue is paid a round, units of fuel: about 0.1 s of work on one core.
pub const ROUND_PAY: i64 = 500_000_000;

#[derive(Clone, Copy, Debug)]
struct Account {
    /// At most [`ROUND_PAY`]; zero or less is debt.
    balance: i64,
    /// The round up to which the balance was paid.
    round: u64,
}

/// Where a ready queue stands in line.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The round in which it is out of debt; 0 for one that is not in debt.
    due: u64,
    /// When it became ready.
    arrival: u64,
}

/// The ready queues and what each has burnt. Bounded by the number of queues.
#[derive(Debug, Default)]
pub struct Fairness {
    ready: BTreeMap<QueueName, Place>,
    /// Ready and out of debt, by arrival.
    solvent: BTreeSet<(u64, QueueName)>,
    /// Ready and in debt, by the round in which they are out of it.
    debtors: BTreeSet<(u64, u64, QueueName)>,
    /// Absent: paid in full.
    accounts: BTreeMap<QueueName, Account>,
    round: u64,
    arrivals: u64,
}

impl Fairness {
    /// The queue wants to be served; a second wish before it is served changes nothing.
    pub fn push(&mut self, queue: &QueueName) {
        if !self.ready.contains_key(queue) {
            self.arrivals += 1;
            self.stand(queue, self.arrivals);
        }
    }

    /// Whose turn it is. It leaves the line: push it again while it stays ready.
    #[expect(
        clippy::should_implement_trait,
        reason = "the line grows between two calls, so it is no iterator"
    )]
    pub fn next(&mut self) -> Option<QueueName> {
        let solvent = self.solvent.pop_first().map(|(_, queue)| queue);
        let queue = solvent.or_else(|| self.debtors.pop_first().map(|(_, _, queue)| queue))?;
        self.ready.remove(&queue);
        Some(queue)
    }

    /// A task of the queue has burnt so much fuel.
    pub fn charge(&mut self, queue: &QueueName, fuel: u64) {
        // A debtor was served, so nobody out of debt could use the capacity: rounds have passed.
        self.pass_rounds(self.due(queue));
        let fuel = i64::try_from(fuel).unwrap_or(i64::MAX);
        let balance = self.balance(queue).saturating_sub(fuel);
        self.accounts.insert(
            queue.clone(),
            Account {
                balance,
                round: self.round,
            },
        );
        if let Some(place) = self.leave(queue) {
            self.stand(queue, place.arrival);
        }
    }

    /// The queue is gone.
    pub fn forget(&mut self, queue: &QueueName) {
        self.accounts.remove(queue);
        self.leave(queue);
    }

    /// What the queue may burn before it is passed over; zero or less is debt. Units of fuel.
    #[must_use]
    pub fn balance(&self, queue: &QueueName) -> i64 {
        self.accounts.get(queue).map_or(ROUND_PAY, |account| {
            let rounds = i64::try_from(self.round - account.round).unwrap_or(i64::MAX);
            let paid = account
                .balance
                .saturating_add(rounds.saturating_mul(ROUND_PAY));
            paid.min(ROUND_PAY)
        })
    }

    /// How many queues are ready.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// True when none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// The round in which the queue is out of debt; 0 when it is.
    fn due(&self, queue: &QueueName) -> u64 {
        let balance = self.balance(queue);
        if balance > 0 {
            return 0;
        }
        self.round + balance.unsigned_abs() / ROUND_PAY.unsigned_abs() + 1
    }

    fn stand(&mut self, queue: &QueueName, arrival: u64) {
        let due = self.due(queue);
        self.ready.insert(queue.clone(), Place { due, arrival });
        if due == 0 {
            self.solvent.insert((arrival, queue.clone()));
        } else {
            self.debtors.insert((due, arrival, queue.clone()));
        }
    }

    fn leave(&mut self, queue: &QueueName) -> Option<Place> {
        let place = self.ready.remove(queue)?;
        self.solvent.remove(&(place.arrival, queue.clone()));
        self.debtors
            .remove(&(place.due, place.arrival, queue.clone()));
        Some(place)
    }

    /// Lets rounds pass up to `round`; whoever is out of debt by then lines up with the others.
    fn pass_rounds(&mut self, round: u64) {
        self.round = self.round.max(round);
        while self
            .debtors
            .first()
            .is_some_and(|(due, _, _)| *due <= self.round)
        {
            let Some((_, arrival, queue)) = self.debtors.pop_first() else {
                return;
            };
            self.stand(&queue, arrival);
        }
    }
}

#[cfg(test)]
mod tests;
