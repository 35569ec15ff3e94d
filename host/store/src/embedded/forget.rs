//! Idempotency keys whose time is over: their rows go with the next batch that is written anyway.

use oncue_core::time::Timestamp;

use super::codec::DedupRow;
use super::engine::Engine;
use super::index::Index;
use super::layout::{self, Space};
use super::plan::{Batch, Planned};
use crate::StoreError;

/// Rows looked at by one batch, at most.
const FORGOTTEN_PER_BATCH: usize = 512;

/// Keys that are not durable, forgotten by one claim, at most.
const FORGOTTEN_PER_CLAIM: usize = 1024;

impl Batch {
    /// Plans the end of keys that are forgotten, when there is something to write at all.
    ///
    /// # Errors
    /// A failed read.
    pub(super) fn plan_forgetting(
        &mut self,
        engine: &Engine,
        index: &Index,
    ) -> Result<(), StoreError> {
        if !self.is_durable() || index.forgotten.0 <= self.progress.dedup_low {
            return Ok(());
        }
        let start = layout::dedup_until(self.progress.dedup_low, &[]);
        let end = layout::dedup_until(index.forgotten.0.saturating_add(1), &[]);
        let mut low = index.forgotten.0;
        for (looked_at, row) in engine
            .scan(&index.view, Space::Dedup, &start, &end)
            .enumerate()
        {
            let (key, _) = row?;
            let Some((until, dedup_key)) = layout::split_dedup_until(&key) else {
                continue;
            };
            if looked_at == FORGOTTEN_PER_BATCH {
                low = until;
                break;
            }
            // The key may have been used again since: then another end stands for it.
            let known = match self.keys.get(dedup_key) {
                Some(row) => Some(*row),
                None => match engine.get(&index.view, Space::Dedup, dedup_key)? {
                    Some(record) => Some(record.decode::<DedupRow>(Space::Dedup, dedup_key)?),
                    None => None,
                },
            };
            if known.is_some_and(|row| row.until.0 == until) && !self.keys.contains_key(dedup_key) {
                self.set(Space::Dedup, dedup_key.to_vec(), Planned::Delete);
            }
            let planned_anew = matches!(
                self.rows.get(&(Space::Dedup, key.clone())),
                Some(Planned::Bare)
            );
            if !planned_anew {
                self.set(Space::Dedup, key, Planned::Delete);
            }
        }
        let planned = self.keys.values().map(|row| row.until.0).min();
        self.progress.dedup_low = planned.map_or(low, |planned| low.min(planned));
        Ok(())
    }
}

impl Index {
    /// Keys that end at or before `now` stand for nothing from now on.
    pub(super) fn forget_keys(&mut self, now: Timestamp) {
        self.forgotten = self.forgotten.max(now);
        for _ in 0..FORGOTTEN_PER_CLAIM {
            let Some((until, queue, key)) = self.loose.key_ends.first().cloned() else {
                return;
            };
            if until > now {
                return;
            }
            self.loose.key_ends.pop_first();
            let place = (queue, key);
            if self
                .loose
                .keys
                .get(&place)
                .is_some_and(|(_, known_until)| *known_until == until)
            {
                self.loose.keys.remove(&place);
            }
        }
    }
}
