//! What the last failed units of work had in hand: the messages, the state they read, the answers
//! they got and what they had put, so that an author can run the failure again at a desk.
//!
//! In memory only, bounded by bytes and count, the oldest go first: a restart loses them, and they
//! cost neither a write nor a byte on disk. Nothing is kept of a unit that commits. Neighbours:
//! [`super::seen`] notes reads while a unit is open, [`super::settle`] and [`super::drain`] hand
//! failed units over, `Handle::failed_unit` answers.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use oncue_core::definition::ProcessAttributes;
use oncue_core::message::{Attempts, Header, MessageId};
use oncue_core::names::{ProcessName, QueueName};
use oncue_core::outcome::{CallEnd, Outcome};
use oncue_core::time::Timestamp;
use oncue_core::trigger::message::TriggerMessage;
use oncue_core::unit_of_work::Put;
use parking_lot::Mutex;

use super::open_unit::Savepoint;
use super::seen::{Look, Seen};
use super::session::TaskSession;
use super::settle::{detail, outcome};
use super::state::split_key;
use super::{CallReport, ComponentVersion, Delivered, TaskId};

/// Bytes of all kept units together.
pub const MAX_BYTES: usize = 16 << 20;

/// Kept units.
pub const MAX_UNITS: usize = 256;

/// Bytes kept of one unit: bodies and state values together.
pub const MAX_UNIT_BYTES: usize = 1 << 20;

/// Bytes kept of one body; a longer one is looked for in the queues when it is asked for.
pub const MAX_BODY_BYTES: usize = 256 << 10;

/// Messages, answers, puts and state keys kept of one unit, of each so many.
pub const MAX_PARTS: usize = 256;

/// What a unit counts beside its bodies and values, and what each part counts, nearly: in bytes.
const UNIT_OVERHEAD: usize = 1024;
const PART_OVERHEAD: usize = 256;

/// A body or a value, as much of it as was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptBody {
    /// Its beginning.
    pub bytes: Bytes,
    /// Its whole length.
    pub size: u64,
}

impl KeptBody {
    /// True when nothing of it is missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.bytes.len() as u64 == self.size
    }
}

/// A message that the failed unit had in hand.
#[derive(Clone, Debug)]
pub struct KeptMessage {
    /// Where it was got; for an answer, the queue that was asked.
    pub queue: QueueName,
    /// What was said of it.
    pub header: Header,
    /// What had happened to it before.
    pub attempts: Attempts,
    /// Its body.
    pub body: KeptBody,
}

/// A put that was undone.
#[derive(Clone, Debug)]
pub struct KeptPut {
    /// Where to.
    pub queue: QueueName,
    /// What was said of it.
    pub header: Header,
    /// Its body.
    pub body: KeptBody,
}

/// A state key as the failed unit read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptState {
    /// Which bucket.
    pub bucket: String,
    /// Which key.
    pub key: String,
    /// What was there; `None` when nothing was.
    pub value: Option<KeptBody>,
}

/// A unit of work that failed by its guest's fault.
#[derive(Clone, Debug)]
pub struct FailedUnit {
    /// In which task.
    pub task: TaskId,
    /// The triggered queue.
    pub queue: QueueName,
    /// The process definition.
    pub process: ProcessName,
    /// What ran.
    pub component: ComponentVersion,
    /// The definition at the start, the configuration among it.
    pub attributes: Arc<ProcessAttributes>,
    /// The trigger message.
    pub trigger: TriggerMessage,
    /// How it ended.
    pub outcome: Outcome,
    /// Why, in a sentence.
    pub detail: String,
    /// When.
    pub time: Timestamp,
    /// Messages in hand, in the order in which they were got. In message style the first is the
    /// one that the handler was called for.
    pub messages: Vec<KeptMessage>,
    /// The state it read.
    pub state: Vec<KeptState>,
    /// Answers to its requests.
    pub replies: Vec<KeptMessage>,
    /// What it had put.
    pub puts: Vec<KeptPut>,
    /// It listed the keys of its state.
    pub listed_keys: bool,
    /// It browsed a queue or asked for a depth.
    pub browsed: bool,
    /// Parts past [`MAX_PARTS`] that were not kept at all.
    pub not_kept: usize,
    /// Bytes that count for the bound.
    bytes: usize,
}

impl FailedUnit {
    /// True when that message was in hand.
    #[must_use]
    pub fn had(&self, message: MessageId) -> bool {
        self.messages.iter().any(|kept| kept.header.id == message)
    }

    /// The message that it failed on, as far as it had one.
    #[must_use]
    pub fn message(&self) -> Option<MessageId> {
        self.messages.first().map(|kept| kept.header.id)
    }
}

/// The last failed units, in memory.
#[derive(Debug, Default)]
pub struct Failures {
    kept: Mutex<(VecDeque<Arc<FailedUnit>>, usize)>,
}

impl Failures {
    /// Adds a unit. One that the same task had on the same message before is replaced; the oldest
    /// go when there are too many.
    pub fn add(&self, unit: FailedUnit) {
        let mut kept = self.kept.lock();
        let (units, bytes) = &mut *kept;
        let same = |old: &Arc<FailedUnit>| old.task == unit.task && old.message() == unit.message();
        if let Some(old) = units
            .iter()
            .position(same)
            .and_then(|place| units.remove(place))
        {
            *bytes -= old.bytes;
        }
        *bytes += unit.bytes;
        units.push_back(Arc::new(unit));
        while units.len() > MAX_UNITS || (*bytes > MAX_BYTES && units.len() > 1) {
            if let Some(old) = units.pop_front() {
                *bytes -= old.bytes;
            }
        }
    }

    /// All that are kept of a task, the oldest first.
    #[must_use]
    pub fn of(&self, task: TaskId) -> Vec<Arc<FailedUnit>> {
        let kept = self.kept.lock();
        let units = kept.0.iter().filter(|unit| unit.task == task);
        units.cloned().collect()
    }
}

/// Copies what is kept, within the bounds of one unit. Copies, because a part of a large buffer
/// would keep all of it alive.
struct Copier {
    left: usize,
    not_kept: usize,
}

impl Copier {
    fn body(&mut self, bytes: &[u8], size: u64) -> KeptBody {
        let taken = bytes.len().min(self.left).min(MAX_BODY_BYTES);
        self.left -= taken;
        KeptBody {
            bytes: Bytes::copy_from_slice(&bytes[..taken]),
            size,
        }
    }

    /// The first of many, the others counted.
    fn first<'a, T>(&mut self, all: &'a [T]) -> std::slice::Iter<'a, T> {
        let taken = all.len().min(MAX_PARTS);
        self.not_kept += all.len() - taken;
        all[..taken].iter()
    }

    fn message(
        &mut self,
        session: &TaskSession,
        queue: &QueueName,
        delivered: &Delivered,
    ) -> KeptMessage {
        let wanted = self.left.min(MAX_BODY_BYTES) as u64;
        // One that cannot be read any more is kept without its body.
        let read = session.read_body(delivered, 0, wanted).unwrap_or_default();
        KeptMessage {
            queue: queue.clone(),
            header: delivered.message.header.clone(),
            attempts: delivered.message.attempts,
            body: self.body(&read, delivered.message.body.len()),
        }
    }

    fn state(&mut self, seen: &Seen) -> Vec<KeptState> {
        let looks: Vec<_> = seen.state.iter().collect();
        let mut state = Vec::new();
        for (key, look) in self.first(&looks) {
            let value = match look {
                Look::Own => continue,
                Look::Value(None) => None,
                Look::Value(Some(value)) => Some(self.body(value, value.len() as u64)),
                Look::Long(size) => Some(self.body(&[], *size as u64)),
            };
            let (bucket, key) = split_key(key);
            state.push(KeptState { bucket, key, value });
        }
        state
    }
}

impl TaskSession {
    /// Keeps what the unit has in hand that is about to be undone because its guest failed: since
    /// `savepoint`, with the message it was called for; or all of it (trigger style).
    pub(crate) fn keep_failure(
        &self,
        report: &CallReport,
        call: Option<(&Arc<Delivered>, &Savepoint)>,
    ) {
        let outcome = outcome(&report.end);
        if !outcome.is_failure() {
            return;
        }
        let (messages, puts, seen) = {
            let mut unit = self.unit.lock();
            let (taken, puts) = match call {
                Some((_, savepoint)) => unit.since(savepoint),
                None => (&unit.taken[..], &unit.puts[..]),
            };
            let got = taken.iter().filter(|taken| !taken.is_reply);
            let got = got.map(|taken| &taken.delivered);
            let messages: Vec<Arc<Delivered>> = call
                .map(|(delivered, _)| delivered)
                .into_iter()
                .chain(got)
                .cloned()
                .collect();
            let puts: Vec<Put> = puts.to_vec();
            (messages, puts, std::mem::take(&mut unit.seen))
        };
        let kept = self.copied(outcome, &report.end, (&messages, &puts, &seen));
        self.shared.failures.add(kept);
    }

    fn copied(
        &self,
        outcome: Outcome,
        end: &CallEnd,
        (messages, puts, seen): (&[Arc<Delivered>], &[Put], &Seen),
    ) -> FailedUnit {
        let mut copier = Copier {
            left: MAX_UNIT_BYTES,
            not_kept: 0,
        };
        // The message comes first: without it nothing can be run again.
        let messages: Vec<_> = copier
            .first(messages)
            .map(|delivered| copier.message(self, &delivered.queue, delivered))
            .collect();
        let state = copier.state(seen);
        let replies: Vec<_> = copier
            .first(&seen.replies)
            .map(|(asked, delivered)| copier.message(self, asked, delivered))
            .collect();
        let puts: Vec<_> = copier
            .first(puts)
            .map(|put| KeptPut {
                queue: put.queue.clone(),
                header: put.header.clone(),
                body: copier.body(&put.body, put.body.len() as u64),
            })
            .collect();
        let parts = messages.len() + state.len() + replies.len() + puts.len();
        let detail = detail(end);
        FailedUnit {
            task: self.spec.id,
            queue: self.spec.queue.clone(),
            process: self.spec.process.clone(),
            component: self.spec.component.clone(),
            attributes: Arc::clone(&self.spec.attributes),
            trigger: self.spec.trigger.clone(),
            outcome,
            time: self.shared.now(),
            bytes: UNIT_OVERHEAD
                + detail.len()
                + parts * PART_OVERHEAD
                + (MAX_UNIT_BYTES - copier.left),
            detail,
            messages,
            state,
            replies,
            puts,
            listed_keys: seen.listed_keys,
            browsed: seen.browsed,
            not_kept: copier.not_kept,
        }
    }
}
