//! How long task records are kept: by bytes and by age, in memory and in the store.
//!
//! Too many bytes are dropped with each failed task's record. What is too old is looked for now and
//! then, by halves over the ids, which grow with time; some of it is dropped at a time.

use oncue_core::time::{Millis, Timestamp};
use oncue_core::unit_of_work::{KeepTasks, Unit};
use oncue_store::StoreError;

use crate::main_loop::Manager;
use crate::tasks::record::TaskRecord;

/// How often old records are looked for, milliseconds.
const LOOK_PERIOD: Millis = 60_000;

/// When there are more than one unit may drop, the next one comes so soon, milliseconds.
const AGAIN: Millis = 1_000;

/// Bytes of records in memory at most, whatever the store keeps.
const MEMORY_MAX: u64 = 16 << 20;

/// What is kept of task records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Bytes in the store, and in memory up to 16 MiB.
    pub bytes: u64,
    /// Milliseconds since the start of a task.
    pub age: Millis,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            age: 7 * 86_400_000,
        }
    }
}

impl Retention {
    /// Bytes of records in memory.
    pub(crate) fn memory(&self) -> usize {
        usize::try_from(self.bytes.min(MEMORY_MAX)).unwrap_or(usize::MAX)
    }

    /// What stays in the store, of records from the id `from` on.
    pub(crate) fn keep(&self, from: u64) -> Option<KeepTasks> {
        Some(KeepTasks {
            bytes: self.bytes,
            from,
        })
    }
}

impl Manager {
    /// Drops records that are too old. The work of one call is bounded.
    pub(crate) fn retain_records(&mut self, now: Timestamp) {
        // Further off than a period: the clock was set back, and would be waited for.
        let set_back = self.records_looked > now.after(LOOK_PERIOD);
        let is_due = now >= self.records_looked || set_back;
        if !is_due || self.host.store_stopped || self.host.draining {
            return;
        }
        self.records_looked = now.after(LOOK_PERIOD);
        let Some(limit) = now.0.checked_sub(self.retention.age).map(Timestamp) else {
            return;
        };
        self.shared.records.drop_before(limit);
        match self.oldest_kept(limit) {
            Ok(Some(from)) => {
                let unit = Unit {
                    keep_tasks: self.retention.keep(from),
                    ..Unit::default()
                };
                self.submit(unit, None);
                // Until nothing is below it any more.
                self.records_looked = now.after(AGAIN);
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "old task records cannot be read"),
        }
    }

    /// The id from which on records are young enough; `None` when none is too old.
    fn oldest_kept(&self, limit: Timestamp) -> Result<Option<u64>, StoreError> {
        let store = &self.shared.store;
        let newest_below = |id: u64| store.tasks(Some(id), 1).map(|mut rows| rows.pop());
        // Below `old` all are too old, from `young` on none is.
        let (mut old, mut young) = (0, self.next_task.0);
        while old < young {
            let middle = old + (young - old) / 2;
            match newest_below(middle + 1)? {
                // One that cannot be read any more is of no use.
                Some((id, row)) if started(&row).is_some_and(|started| started >= limit) => {
                    young = id;
                }
                _ => old = middle + 1,
            }
        }
        Ok(newest_below(old)?.map(|_| old))
    }
}

fn started(row: &[u8]) -> Option<Timestamp> {
    let record = serde_json::from_slice::<TaskRecord>(row);
    record.ok().map(|record| record.started)
}
