//! What comes due: the ends of waits, leases and lives.

use super::entry::Home;
use super::{Claimed, KEYS_FORGOTTEN_PER_CLAIM, Model, Over};
use crate::message::Sequence;
use crate::names::QueueName;
use crate::time::Timestamp;
use crate::unit_of_work::OwnerId;

impl Model {
    /// Claims up to `max` messages that are due at `now`, the longest due first. Also forgets keys
    /// that ended.
    pub fn claim_due(&mut self, owner: OwnerId, now: Timestamp, max: usize) -> Vec<Claimed> {
        self.forget_keys(now);
        let mut claimed = Vec::new();
        while claimed.len() < max
            && let Some(((time, sequence), queue)) = self.due.first_key_value()
            && *time <= now
        {
            let (queue, sequence) = (queue.clone(), *sequence);
            let over = self.over(&queue, sequence, now);
            let message = self.hand_out(&queue, sequence, owner);
            claimed.push((queue, message, over));
        }
        claimed
    }

    /// When the next message is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        self.due.first_key_value().map(|((time, _), _)| *time)
    }

    fn over(&self, queue: &QueueName, sequence: Sequence, now: Timestamp) -> Over {
        let entry = self.queues[queue].entry(sequence);
        match entry.home {
            _ if entry.has_expired(now) => Over::Expiry,
            Home::Waiting(wait, _) => Over::Wait(wait),
            Home::Leased { .. } => Over::Lease,
            Home::Free | Home::Parked => unreachable!("such a message is due only by its expiry"),
        }
    }

    fn forget_keys(&mut self, now: Timestamp) {
        for _ in 0..KEYS_FORGOTTEN_PER_CLAIM {
            match self.key_ends.first() {
                Some((until, _, _)) if *until <= now => {}
                _ => return,
            }
            let Some((until, queue, key)) = self.key_ends.pop_first() else {
                return;
            };
            // The key may have been used again since, or its queue made anew: then another end
            // stands for it.
            if let Some(contents) = self.queues.get_mut(&queue)
                && contents
                    .keys
                    .get(&key)
                    .is_some_and(|known| known.until == until)
            {
                contents.keys.remove(&key);
            }
        }
    }
}
