//! Task records: the newest are kept, within a bound of bytes.

use std::collections::{BTreeMap, BTreeSet};

use oncue_core::queue::model::TASK_ROWS_MAX_BYTES;
use oncue_core::unit_of_work::TaskRow;

use super::codec::seal;
use super::engine::Engine;
use super::index::Index;
use super::layout::{self, Key, Space};
use super::plan::{Batch, Planned};
use crate::StoreError;

impl Batch {
    pub(super) fn old_task_bytes(
        &self,
        engine: &Engine,
        index: &Index,
        id: u64,
    ) -> Result<u64, StoreError> {
        let key = layout::task(id);
        match self.rows.get(&(Space::Tasks, key.clone())) {
            Some(Planned::Sealed(row)) => Ok((row.len() as u64).saturating_sub(4)),
            Some(_) => Ok(0),
            None => {
                let record = engine.get(&index.view, Space::Tasks, &key)?;
                Ok(record.map_or(0, |record| record.payload().len() as u64))
            }
        }
    }

    /// Keeps a task row, and drops the oldest while there are too many bytes of them; the last one
    /// always stays.
    pub(super) fn plan_task(
        &mut self,
        engine: &Engine,
        index: &Index,
        row: TaskRow,
        replaced: u64,
    ) -> Result<(), StoreError> {
        let key = layout::task(row.id);
        let sealed = seal(Space::Tasks, &key, &[&row.value]);
        self.set(Space::Tasks, key, Planned::Sealed(sealed));
        let progress = &mut self.progress;
        progress.task_bytes =
            (progress.task_bytes + row.value.len() as u64).saturating_sub(replaced);
        progress.task_low = progress.task_low.min(row.id);
        if progress.task_bytes <= TASK_ROWS_MAX_BYTES {
            return Ok(());
        }
        let start = layout::task(progress.task_low);
        let mut oldest: BTreeMap<Key, u64> = BTreeMap::new();
        let planned = self
            .rows
            .range((Space::Tasks, start.clone())..=(Space::Tasks, layout::MARK_KEY.to_vec()));
        let mut excess = self.progress.task_bytes - TASK_ROWS_MAX_BYTES;
        let mut planned_deletes = BTreeSet::new();
        for ((_, key), row) in planned {
            if let Planned::Sealed(row) = row {
                oldest.insert(key.clone(), (row.len() as u64).saturating_sub(4));
            } else {
                planned_deletes.insert(key.clone());
            }
        }
        let mut stored = engine.scan(&index.view, Space::Tasks, &start, layout::MARK_KEY);
        let mut read_bytes = 0;
        while read_bytes <= excess
            && let Some(row) = stored.next()
        {
            let (key, record) = row?;
            if !planned_deletes.contains(&key) {
                read_bytes += record.payload().len() as u64;
                oldest
                    .entry(key)
                    .or_insert_with(|| record.payload().len() as u64);
            }
        }
        let is_last_known = stored.next().is_none();
        while excess > 0
            && (oldest.len() > 1 || !is_last_known)
            && let Some((key, length)) = oldest.pop_first()
        {
            excess = excess.saturating_sub(length);
            self.progress.task_bytes -= length;
            self.progress.task_low =
                layout::first_number(&key).map_or(0, |id| id.saturating_add(1));
            self.delete(Space::Tasks, key);
        }
        Ok(())
    }
}
