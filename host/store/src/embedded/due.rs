//! What comes due, and what has been ready for longest.

use std::ops::Bound;

use oncue_core::message::MAX_PRIORITY;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::OwnerId;

use super::codec::Home;
use super::engine::Engine;
use super::index::{Index, Kind};
use super::layout::{QueueNo, Space};
use super::look::Found;
use super::select::PASSED_OVER_MAX;
use crate::{Due, DueWhat, StoreError};

impl Index {
    /// Holds up to `max` messages whose time has come, the longest due first.
    ///
    /// # Errors
    /// A failed read, when nothing else could be claimed.
    pub(super) fn claim_due(
        &mut self,
        engine: &Engine,
        owner: OwnerId,
        now: Timestamp,
        max: usize,
    ) -> Result<Vec<Due>, StoreError> {
        let mut claimed = Vec::new();
        let mut fault = None;
        let mut after = None;
        while claimed.len() < max {
            let Some((time, number, sequence)) = self.first_due(engine, after)? else {
                break;
            };
            if time > now.0 {
                break;
            }
            after = Some((time, sequence));
            let found = match self.locate(engine, number, sequence) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(error @ StoreError::Corrupt(_)) => {
                    self.damaged.insert(sequence);
                    fault = Some(error);
                    continue;
                }
                Err(error) => {
                    fault = Some(error);
                    break;
                }
            };
            let Found {
                facts,
                standing,
                message,
                ..
            } = found;
            let expired = facts.expires.is_some_and(|time| time <= now);
            let what = match standing.home {
                Home::Waiting(wait, _) if !expired => DueWhat::Wait(wait),
                Home::Leased { .. } if !expired => DueWhat::Lease,
                _ => DueWhat::Expiry,
            };
            self.hold(engine, owner, facts, standing)?;
            let queue = self.queue(number).name.clone();
            claimed.push(Due {
                queue,
                message,
                what,
            });
        }
        match fault {
            Some(error) if claimed.is_empty() => Err(error),
            _ => Ok(claimed),
        }
    }

    /// The first message to come due after `position`: time, queue, sequence.
    ///
    /// # Errors
    /// A failed read.
    pub(super) fn first_due(
        &mut self,
        engine: &Engine,
        position: Option<(u64, u64)>,
    ) -> Result<Option<(u64, QueueNo, u64)>, StoreError> {
        let mut first: Option<(u64, u64, QueueNo)> = None;
        for space in [Space::Due, Space::Expiry] {
            let mut position = position;
            while let Some(((time, sequence), address)) =
                self.peek_timed(engine, space, position)?
            {
                if self.damaged.contains(&sequence) {
                    position = Some((time, sequence));
                    continue;
                }
                let candidate = (time, sequence, address.queue);
                first = Some(first.map_or(candidate, |best| best.min(candidate)));
                break;
            }
        }
        let start = position.map_or(Bound::Unbounded, Bound::Excluded);
        let loose = self.loose.due.range((start, Bound::Unbounded)).next();
        if let Some((time, sequence)) = loose
            && let Some(message) = self.loose.messages.get(sequence)
        {
            let candidate = (*time, *sequence, message.facts.queue);
            first = Some(first.map_or(candidate, |best| best.min(candidate)));
        }
        Ok(first.map(|(time, sequence, queue)| (time, queue, sequence)))
    }

    /// The put time of the oldest ready message of at least `priority`.
    ///
    /// # Errors
    /// A failed read.
    pub(super) fn oldest(
        &mut self,
        engine: &Engine,
        number: QueueNo,
        priority: u8,
    ) -> Result<Option<Timestamp>, StoreError> {
        let mut oldest = None;
        for priority in priority..=MAX_PRIORITY {
            let ready = self
                .queue(number)
                .counts
                .ready
                .get(usize::from(priority))
                .copied();
            if ready.unwrap_or(0) == 0 {
                continue;
            }
            let (mut open, mut grouped) = (None, None);
            let mut position = None;
            // The first that anyone may take, and the first ready member of any group: the trigger
            // counts both.
            for _ in 0..PASSED_OVER_MAX {
                let kinds = [Kind::Ready, Kind::Straggler, Kind::Member];
                let Some((sequence, row)) =
                    self.peek(engine, number, priority, position, &kinds)?
                else {
                    break;
                };
                position = Some(sequence);
                match &row.group {
                    None => open = open.or(Some(row.put_time)),
                    Some(name) => {
                        let group = self.group(engine, number, name)?;
                        if group.is_ready(sequence) {
                            grouped = grouped.or(Some(row.put_time));
                            if group.open() == Some(sequence) {
                                open = open.or(Some(row.put_time));
                            }
                        }
                    }
                }
                if open.is_some() {
                    break;
                }
            }
            oldest = [oldest, open, grouped].into_iter().flatten().min();
        }
        Ok(oldest)
    }
}
