//! Task records: the newest are kept, within bounds of bytes and ids.

use std::collections::{BTreeMap, BTreeSet};

use oncue_core::queue::model::TASK_ROWS_MAX_BYTES;
use oncue_core::unit_of_work::{KeepTasks, TaskRow};

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

    /// Keeps a task row, within the store's own bound.
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
        let keep = KeepTasks {
            bytes: TASK_ROWS_MAX_BYTES,
            from: 0,
        };
        self.trim_tasks(engine, index, keep)
    }

    /// Drops the oldest task rows, of those that are too many or too old; of too many the last one
    /// always stays.
    pub(super) fn trim_tasks(
        &mut self,
        engine: &Engine,
        index: &Index,
        keep: KeepTasks,
    ) -> Result<(), StoreError> {
        let progress = &self.progress;
        let mut excess = progress.task_bytes.saturating_sub(keep.bytes);
        if excess == 0 && progress.task_low >= keep.from {
            return Ok(());
        }
        let start = layout::task(progress.task_low);
        let below = layout::task(keep.from);
        let mut oldest: BTreeMap<Key, u64> = BTreeMap::new();
        let planned = self
            .rows
            .range((Space::Tasks, start.clone())..=(Space::Tasks, layout::MARK_KEY.to_vec()));
        let mut planned_deletes = BTreeSet::new();
        for ((_, key), row) in planned {
            if let Planned::Sealed(row) = row {
                oldest.insert(key.clone(), (row.len() as u64).saturating_sub(4));
            } else {
                planned_deletes.insert(key.clone());
            }
        }
        let mut stored = engine.scan(&index.view, Space::Tasks, &start, layout::MARK_KEY);
        let (mut read_bytes, mut read_rows, mut is_past) = (0, 0, false);
        let mut is_last_known = false;
        while read_rows < KeepTasks::MAX_DROPPED && (read_bytes <= excess || !is_past) {
            let Some(row) = stored.next() else {
                is_last_known = true;
                break;
            };
            let (key, record) = row?;
            is_past |= key >= below;
            if !planned_deletes.contains(&key) {
                read_rows += 1;
                read_bytes += record.payload().len() as u64;
                oldest
                    .entry(key)
                    .or_insert_with(|| record.payload().len() as u64);
            }
        }
        for _ in 0..KeepTasks::MAX_DROPPED {
            let Some((key, length)) = oldest.first_key_value().map(|(k, l)| (k.clone(), *l)) else {
                break;
            };
            let too_many = excess > 0 && (oldest.len() > 1 || !is_last_known);
            if key >= below && !too_many {
                break;
            }
            oldest.pop_first();
            excess = excess.saturating_sub(length);
            self.progress.task_bytes = self.progress.task_bytes.saturating_sub(length);
            self.progress.task_low =
                layout::first_number(&key).map_or(0, |id| id.saturating_add(1));
            self.delete(Space::Tasks, key);
        }
        Ok(())
    }
}
