//! Task records: those that run, recent ones in memory, failed ones of earlier times in the store.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use oncue_core::code::Code;
use oncue_core::names::QueueName;
use oncue_core::outcome::Outcome;

use super::Handle;
use crate::command::Command;
use crate::error::ApiError;
use crate::status::Seen;
use crate::tasks::TaskId;
use crate::tasks::record::TaskRecord;

/// Task records of one answer.
pub const MAX_TASKS: usize = 1000;

/// Stored records of one read. How many the store keeps is bounded by their bytes and their age.
const ROWS: usize = 100;

/// Which task records are wanted.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Of these queues.
    pub seen: Seen,
    /// Of this queue.
    pub queue: Option<QueueName>,
    /// With this outcome.
    pub outcome: Option<Outcome>,
    /// Only failures.
    pub failed: bool,
    /// Older than this task.
    pub before: Option<TaskId>,
    /// At most so many; 0 means [`MAX_TASKS`].
    pub max: usize,
}

impl TaskFilter {
    fn wants(&self, record: &TaskRecord) -> bool {
        let of_queue = |queue: &QueueName| record.queue == *queue;
        let with_outcome = |outcome| record.outcome == Some(outcome);
        self.queue.as_ref().is_none_or(of_queue)
            && self.outcome.is_none_or(with_outcome)
            && (!self.failed || record.outcome.is_some_and(Outcome::is_failure))
            && self.before.is_none_or(|before| record.id < before)
            && self.seen.has(&record.queue)
    }

    fn max(&self) -> usize {
        match self.max {
            0 => MAX_TASKS,
            max => max.min(MAX_TASKS),
        }
    }
}

impl Handle {
    /// Task records, newest first: running tasks, recent ones, then failed ones of earlier times.
    /// Fewer than asked for are all that there are.
    ///
    /// # Errors
    /// A failed read.
    pub async fn tasks(&self, filter: TaskFilter) -> Result<Vec<TaskRecord>, ApiError> {
        let max = filter.max();
        let running = self.ask(Command::Running).await?;
        let recent = self.shared.records.newest_first();
        let known = running.into_iter().map(Arc::new).chain(recent);
        // By their ids: tasks do not end in the order in which they were started.
        let mut found = BTreeMap::new();
        for record in known.filter(|record| filter.wants(record)) {
            found.insert(Reverse(record.id), record);
        }
        let mut before = filter.before.map(|id| id.0);
        // What memory no longer has: only failures were kept. They may lie between others.
        loop {
            let floor = found.keys().nth(max - 1).map(|Reverse(id)| id.0);
            if before.is_some_and(|before| floor.is_some_and(|floor| before <= floor)) {
                break;
            }
            let rows = self.shared.store.tasks(before, ROWS)?;
            let Some((last, _)) = rows.last() else {
                break;
            };
            before = Some(*last);
            for record in rows.iter().filter_map(|(_, row)| read(row)) {
                if filter.wants(&record) {
                    found.entry(Reverse(record.id)).or_insert(Arc::new(record));
                }
            }
            // There may be many that are not wanted: others have their turn between.
            tokio::task::yield_now().await;
        }
        let found = found.into_values().take(max);
        Ok(found.map(Arc::unwrap_or_clone).collect())
    }

    /// One task's record.
    ///
    /// # Errors
    /// `unknown-task`.
    pub async fn task(&self, id: TaskId) -> Result<TaskRecord, ApiError> {
        if let Some(record) = self.shared.records.find(id) {
            return Ok((*record).clone());
        }
        let running = self.ask(Command::Running).await?;
        if let Some(record) = running.into_iter().find(|record| record.id == id) {
            return Ok(record);
        }
        let row = self
            .shared
            .store
            .tasks(Some(id.0.saturating_add(1)), 1)?
            .pop();
        row.filter(|(found, _)| *found == id.0)
            .and_then(|(_, row)| read(&row))
            .ok_or_else(|| {
                ApiError::new(
                    Code::UnknownTask,
                    format!(
                        "task {id} is not known; take one that is listed, the oldest are dropped"
                    ),
                )
            })
    }
}

fn read(row: &[u8]) -> Option<TaskRecord> {
    serde_json::from_slice(row).ok()
}
