//! What a task did, as it is kept and shown: the task record, and the bounded memory of recent
//! ones.
//!
//! Records of failed tasks are durable too: they are written with the failure's own commit
//! ([`super::settle`]), so they cost no sync.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use oncue_core::message::{MessageId, Sequence};
use oncue_core::names::{ProcessName, QueueName};
use oncue_core::outcome::Outcome;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::Put;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{TaskCost, TaskId, TaskSpec};
use crate::traces::call::TriggerTrace;

/// Message outcomes kept one by one in a record; later ones are only counted.
pub const MAX_MESSAGE_OUTCOMES: usize = 32;

/// Queues of a task's puts that are counted one by one; puts to others are counted nowhere.
pub const MAX_PUT_QUEUES: usize = 32;

/// Records that are dropped at a time because of their age.
pub const MAX_DROPPED: usize = 10_000;

/// Messages that a task remembers having had, to tell fresh ones.
const MAX_SEEN: usize = 65_536;

/// What happened to one message in a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MessageOutcome {
    /// Which message.
    pub id: MessageId,
    /// How it ended.
    pub outcome: Outcome,
    /// The guest's words, or the trap's.
    pub detail: Option<String>,
}

/// How many messages a task put to one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PutCount {
    /// Which queue.
    pub queue: QueueName,
    /// Messages that are committed there.
    pub messages: u64,
}

/// A task, running or ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TaskRecord {
    /// Which task.
    pub id: TaskId,
    /// The triggered queue.
    pub queue: QueueName,
    /// Its process definition.
    pub process: ProcessName,
    /// The plugin whose version ran.
    pub plugin: String,
    /// Digest of the component that ran.
    pub digest: String,
    /// How it ended; `None` while it runs.
    pub outcome: Option<Outcome>,
    /// Why, in a sentence, when there is more to say than the outcome.
    pub detail: Option<String>,
    /// Backtrace of the last trap.
    pub backtrace: Option<String>,
    /// When it was started.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Messages settled well.
    pub committed: u64,
    /// Messages that failed: charged, rejected, or deferred.
    pub failed: u64,
    /// The first messages, one by one.
    pub messages: Vec<MessageOutcome>,
    /// What it put, by queue.
    #[serde(default)]
    pub puts: Vec<PutCount>,
    /// Steps that led to its start.
    pub steps: Vec<u8>,
    /// Milliseconds from the event that fired the trigger to the start.
    pub start_latency: u64,
    /// The trace of its first recorded message: 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// What it cost.
    pub cost: TaskCost,
}

/// What a task has done so far. Lives in the session.
#[derive(Debug, Default)]
pub struct Progress {
    /// Messages settled well.
    pub committed: u64,
    /// Messages that failed.
    pub failed: u64,
    /// A message left the counted set durably.
    pub moved_on: bool,
    /// State conflicts in a row.
    pub conflicts: u32,
    /// The last thing that went wrong.
    pub outcome: Option<Outcome>,
    /// It is not yet in a durable record.
    pub(crate) unrecorded: bool,
    /// The end of what the failed call wrote to its log.
    pub log_tail: String,
    detail: Option<String>,
    backtrace: Option<String>,
    messages: Vec<MessageOutcome>,
    puts: Vec<PutCount>,
    had: HashSet<Sequence>,
}

impl Progress {
    /// Notes that the task has a message; true when it had not had it before.
    pub fn seen(&mut self, id: MessageId) -> bool {
        if self.had.len() >= MAX_SEEN {
            self.had.clear();
        }
        self.had.insert(id.sequence)
    }

    /// Notes how a message ended.
    pub fn note(&mut self, id: MessageId, outcome: Outcome, detail: Option<String>) {
        if outcome == Outcome::Committed {
            self.committed += 1;
        } else {
            self.failed += 1;
        }
        if self.messages.len() < MAX_MESSAGE_OUTCOMES {
            self.messages.push(MessageOutcome {
                id,
                outcome,
                detail,
            });
        }
    }

    /// Notes puts that were committed.
    pub fn put(&mut self, puts: &[PutCount]) {
        for put in puts {
            add(&mut self.puts, &put.queue, put.messages);
        }
    }

    /// Notes that something went wrong: the latest is the task's outcome.
    pub fn fail(
        &mut self,
        id: Option<MessageId>,
        outcome: Outcome,
        detail: String,
        backtrace: Option<String>,
    ) {
        if let Some(id) = id {
            self.note(id, outcome, Some(detail.clone()));
        }
        self.outcome = Some(outcome);
        self.unrecorded = true;
        self.detail = Some(detail);
        self.backtrace = backtrace;
    }

    /// The record as far as it goes, without the end.
    #[must_use]
    pub fn record(&self, spec: &TaskSpec, started: Timestamp) -> TaskRecord {
        TaskRecord {
            id: spec.id,
            queue: spec.queue.clone(),
            process: spec.process.clone(),
            plugin: spec.component.plugin.to_string(),
            digest: spec.component.digest.clone(),
            outcome: self.outcome,
            detail: self.detail.clone(),
            backtrace: self.backtrace.clone(),
            started,
            ended: None,
            committed: self.committed,
            failed: self.failed,
            messages: self.messages.clone(),
            puts: self.puts.clone(),
            steps: Vec::new(),
            start_latency: 0,
            trace: None,
            cost: TaskCost::default(),
        }
    }
}

/// The puts of a unit, by queue.
#[must_use]
pub fn count_puts(puts: &[Put]) -> Vec<PutCount> {
    let mut counts: Vec<PutCount> = Vec::new();
    for put in puts {
        add(&mut counts, &put.queue, 1);
    }
    counts
}

fn add(counts: &mut Vec<PutCount>, queue: &QueueName, messages: u64) {
    if let Some(known) = counts.iter_mut().find(|known| known.queue == *queue) {
        known.messages += messages;
    } else if counts.len() < MAX_PUT_QUEUES {
        let queue = queue.clone();
        counts.push(PutCount { queue, messages });
    }
}

/// The news of a task's end, as the manager gets it.
#[derive(Debug)]
pub struct TaskEnd {
    /// The record, whole but for the steps.
    pub record: TaskRecord,
    /// A message left the counted set durably.
    pub progressed: bool,
    /// It looked for messages and was given none, in all its time.
    pub found_none: bool,
    /// The trigger in the trace of its first recorded message.
    pub trigger: Option<TriggerTrace>,
}

impl TaskEnd {
    /// The end of a task; `tried` when it has looked for a message at least once.
    #[must_use]
    pub fn new(
        spec: &TaskSpec,
        started: Timestamp,
        ended: Timestamp,
        progress: Progress,
        tried: bool,
        cost: TaskCost,
    ) -> Self {
        let found_none = tried && progress.had.is_empty();
        let mut record = progress.record(spec, started);
        let quiet = if progress.moved_on {
            Outcome::Committed
        } else {
            Outcome::NoProgress
        };
        record.outcome = Some(progress.outcome.unwrap_or(quiet));
        record.ended = Some(ended);
        record.cost = cost;
        Self {
            record,
            progressed: progress.moved_on,
            found_none,
            trigger: None,
        }
    }
}

/// Recent task records in memory, bounded by bytes.
#[derive(Debug)]
pub struct Records {
    bound: usize,
    kept: Mutex<(VecDeque<Arc<TaskRecord>>, usize)>,
}

impl Records {
    /// Keeps up to `bound` bytes of records.
    #[must_use]
    pub fn new(bound: usize) -> Self {
        Self {
            bound,
            kept: Mutex::new((VecDeque::new(), 0)),
        }
    }

    /// Adds a record, and answers with it as it is kept; the oldest go.
    pub fn add(&self, record: TaskRecord) -> Arc<TaskRecord> {
        let record = Arc::new(record);
        let mut kept = self.kept.lock();
        kept.1 += size(&record);
        kept.0.push_back(Arc::clone(&record));
        while kept.1 > self.bound && kept.0.len() > 1 {
            if let Some(old) = kept.0.pop_front() {
                kept.1 -= size(&old);
            }
        }
        record
    }

    /// Drops the oldest that were started before `limit`, up to [`MAX_DROPPED`].
    pub fn drop_before(&self, limit: Timestamp) {
        let mut kept = self.kept.lock();
        for _ in 0..MAX_DROPPED {
            let old = kept.0.pop_front_if(|record| record.started < limit);
            let Some(old) = old else { return };
            kept.1 -= size(&old);
        }
    }

    /// All of them, newest first.
    #[must_use]
    pub fn newest_first(&self) -> Vec<Arc<TaskRecord>> {
        self.kept.lock().0.iter().rev().cloned().collect()
    }

    /// One of them.
    #[must_use]
    pub fn find(&self, id: TaskId) -> Option<Arc<TaskRecord>> {
        self.kept
            .lock()
            .0
            .iter()
            .rev()
            .find(|record| record.id == id)
            .cloned()
    }
}

/// Bytes a record takes, nearly: its texts and a constant for the rest.
fn size(record: &TaskRecord) -> usize {
    let texts = record.cost.log_tail.len()
        + record.detail.as_ref().map_or(0, String::len)
        + record.backtrace.as_ref().map_or(0, String::len);
    let messages: usize = record
        .messages
        .iter()
        .map(|m| 64 + m.detail.as_ref().map_or(0, String::len))
        .sum();
    512 + texts + messages
}
