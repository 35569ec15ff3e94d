//! What came of a run: from the ledger of commits, the messages that are left and the task
//! records.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use oncue_core::message::{DeadLetter, Header, MessageId};
use oncue_core::names::QueueName;
use oncue_core::outcome::Outcome;
use oncue_core::unit_of_work::{Disposition, Put};
use oncue_manager::handle::Browsed;
use oncue_manager::tasks::record::TaskRecord;

use super::bench::{BUCKET, ORIGIN};
use super::body::Wanted;
use super::case::{Expected, Fields, WantedMessage, WantedPut};
use super::ledger::Committed;

/// Digits of a message id in a text.
const ID_LENGTH: usize = 24;

/// A message that was given, and how it ended.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) id: MessageId,
    /// None: no task had it in hand.
    pub(super) outcome: Option<Outcome>,
    /// The guest's words, or the trap's.
    pub(super) detail: Option<String>,
    /// Charged attempts while it is still on its queue.
    pub(super) backout_count: u32,
    /// Where it was moved, and the record beside it.
    pub(super) moved: Option<(QueueName, Option<Box<DeadLetter>>)>,
    /// It is still on its queue.
    pub(super) waits: bool,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) messages: Vec<Given>,
    /// Puts of the handler that are durable, in the order in which they became so.
    pub(super) puts: Vec<Put>,
    /// Requests, which are durable at once.
    pub(super) requests: Vec<Put>,
    /// The state before and after.
    pub(super) before: BTreeMap<String, Bytes>,
    pub(super) state: BTreeMap<String, Bytes>,
    /// Oldest first.
    pub(super) tasks: Vec<TaskRecord>,
    /// Why nothing more happens, in a sentence.
    pub(super) held: Option<String>,
    /// How long it took.
    pub(super) time: Duration,
    names: BTreeMap<MessageId, String>,
}

impl Observed {
    pub(super) fn new(
        given: Vec<(QueueName, MessageId, Option<Browsed>)>,
        committed: &[Committed],
        mut tasks: Vec<TaskRecord>,
        before: BTreeMap<String, Bytes>,
        held: Option<String>,
        time: Duration,
    ) -> Self {
        tasks.reverse();
        let messages: Vec<Given> = given
            .into_iter()
            .map(|(_, id, left)| given_message(id, left.as_ref(), committed, &tasks))
            .collect();
        let (mut puts, mut requests, mut replies) = (Vec::new(), Vec::new(), Vec::new());
        for put in committed.iter().flat_map(|unit| &unit.puts) {
            let by_handler = put.header.put_by.as_deref();
            if by_handler.is_some_and(|by| by.starts_with("process/")) {
                if is_request(put) {
                    requests.push(put.clone());
                } else {
                    puts.push(put.clone());
                }
            } else if put.queue == QueueName::replies() {
                replies.push(put.clone());
            }
        }
        let mut state = before.clone();
        for write in committed.iter().flat_map(|unit| &unit.writes) {
            let Some(key) = write.key.strip_prefix(BUCKET) else {
                continue;
            };
            match &write.value {
                Some(value) => state.insert(key.to_owned(), value.clone()),
                None => state.remove(key),
            };
        }
        let mut observed = Self {
            messages,
            puts,
            requests,
            before,
            state,
            tasks,
            held,
            time,
            names: BTreeMap::new(),
        };
        observed.name_ids(&replies);
        observed
    }

    fn name_ids(&mut self, replies: &[Put]) {
        let ids = |puts: &[Put]| puts.iter().map(|put| put.header.id).collect::<Vec<_>>();
        let named = [
            ("message", self.messages.iter().map(|it| it.id).collect()),
            ("put", ids(&self.puts)),
            ("request", ids(&self.requests)),
            ("reply", ids(replies)),
        ];
        for (what, ids) in named {
            let names = ids.into_iter().zip(1_u32..);
            self.names
                .extend(names.map(|(id, number)| (id, format!("{{{{{what} {number}}}}}"))));
        }
    }

    /// A text without ids of messages: those of this run stand by their number.
    pub(super) fn mask(&self, text: &str) -> String {
        let origin = format!("{ORIGIN:08x}");
        let (mut masked, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find(&origin) {
            masked.push_str(&rest[..at]);
            let found = rest.get(at..at + ID_LENGTH);
            let id = found.and_then(|text| text.parse().ok());
            let (shown, length) = match id.and_then(|id: MessageId| self.names.get(&id)) {
                Some(name) => (name.as_str(), ID_LENGTH),
                None => (origin.as_str(), origin.len()),
            };
            masked.push_str(shown);
            rest = &rest[at + length..];
        }
        masked.push_str(rest);
        masked
    }

    /// What a case would expect of such a run.
    pub(super) fn expected(&self) -> Expected {
        let state = self.state.iter();
        Expected {
            messages: self.messages.iter().map(|it| self.message(it)).collect(),
            puts: self.puts.iter().map(|put| self.put(put)).collect(),
            requests: self.requests.iter().map(|put| self.put(put)).collect(),
            state: state
                .map(|(key, value)| (key.clone(), Wanted::of(value, |text| self.mask(text))))
                .collect(),
        }
    }

    fn message(&self, given: &Given) -> WantedMessage {
        // A handler's own words are part of what it does; a trap's change with every build.
        let worded = matches!(given.outcome, Some(Outcome::Retry | Outcome::Rejected));
        let detail = given.detail.as_deref().filter(|_| worded);
        WantedMessage {
            outcome: given.word().to_owned(),
            reason: detail.map(|detail| self.mask(detail)),
        }
    }

    /// A put as a case expects it.
    pub(super) fn put(&self, put: &Put) -> WantedPut {
        let Header {
            correlation_id,
            reply_to,
            group,
            group_sequence,
            priority,
            content_type,
            properties,
            put_time,
            expires,
            ..
        } = &put.header;
        let text = |text: &Option<String>| text.as_deref().map(|text| self.mask(text));
        let asks = |queue: &&QueueName| !queue.is_reserved();
        let mut pairs = serde_json::Map::new();
        for (name, value) in properties {
            let value = serde_json::Value::from(self.mask(value));
            match pairs.get_mut(name) {
                None => {
                    pairs.insert(name.clone(), value);
                }
                Some(serde_json::Value::Array(values)) => values.push(value),
                Some(first) => *first = serde_json::json!([first.take(), value]),
            }
        }
        WantedPut {
            queue: put.queue.to_string(),
            body: Wanted::of(&put.body, |text| self.mask(text)),
            fields: Fields {
                correlation_id: text(correlation_id),
                reply_to: reply_to.as_ref().filter(asks).map(ToString::to_string),
                group: text(group),
                group_sequence: *group_sequence,
                priority: Some(*priority).filter(|priority| *priority > 0),
                content_type: content_type.clone(),
                properties: pairs,
                delay: put.due.map(|due| due.since(*put_time)),
                expiry: expires.map(|end| end.since(*put_time)),
            },
        }
    }

    /// True when every message was committed.
    pub(super) fn is_committed(&self) -> bool {
        let committed = |it: &Given| it.outcome == Some(Outcome::Committed);
        self.messages.iter().all(committed)
            && self
                .tasks
                .iter()
                .all(|task| !task.outcome.is_some_and(Outcome::is_failure))
    }

    /// The worst outcome of a message or a task, for a headline.
    pub(super) fn word(&self) -> &'static str {
        let bad = self
            .messages
            .iter()
            .find(|it| it.outcome != Some(Outcome::Committed));
        match bad {
            Some(given) => given.word(),
            None => {
                let mut failed = self.tasks.iter().filter_map(|task| task.outcome);
                let failed = failed.find(|outcome| outcome.is_failure());
                failed.unwrap_or(Outcome::Committed).as_str()
            }
        }
    }
}

impl Given {
    /// How it ended, in a word.
    pub(super) fn word(&self) -> &'static str {
        self.outcome.map_or("not-handled", Outcome::as_str)
    }
}

fn is_request(put: &Put) -> bool {
    put.header.reply_to == Some(QueueName::replies())
        && put
            .key
            .as_ref()
            .is_some_and(|key| key.body_digest.is_none())
}

fn given_message(
    id: MessageId,
    left: Option<&Browsed>,
    committed: &[Committed],
    tasks: &[TaskRecord],
) -> Given {
    let mut notes = tasks.iter().flat_map(|task| &task.messages);
    let noted = notes.rfind(|note| note.id == id);
    let mut settles = committed
        .iter()
        .flat_map(|unit| unit.settles.iter().map(|settle| (settle, unit.by_handler)));
    let last = settles.rfind(|(it, _)| it.sequence == id.sequence);
    // The queue manager itself removes what has expired.
    let has_expired = left.is_none()
        && last.is_some_and(|(settle, by_handler)| {
            settle.disposition == Disposition::Remove && !by_handler
        });
    let moved = last.and_then(|(settle, _)| match &settle.disposition {
        Disposition::Move { to, record, .. } => Some((to.clone(), record.clone())),
        _ => None,
    });
    // Of a task that failed as a whole, or that handled more messages than it notes one by one,
    // only the end is known.
    let of_task = || {
        let failed = tasks.iter().rev().find(|task| {
            task.outcome
                .is_some_and(|outcome| outcome != Outcome::NoProgress)
        });
        match (left, failed) {
            (None, _) if has_expired => None,
            (None, _) => Some((Outcome::Committed, None)),
            (Some(_), Some(task)) => task
                .outcome
                .filter(|outcome| *outcome != Outcome::Committed)
                .map(|outcome| (outcome, task.detail.clone())),
            (Some(_), None) => None,
        }
    };
    let ended = noted
        .map(|note| (note.outcome, note.detail.clone()))
        .or_else(of_task);
    let (outcome, detail) = match ended {
        Some((outcome, detail)) => (Some(outcome), detail),
        None if has_expired => (None, Some("it expired before a handler had it".to_owned())),
        None => (None, None),
    };
    Given {
        id,
        outcome,
        detail,
        backout_count: left.map_or(0, |found| found.message.attempts.backout_count),
        moved,
        waits: left.is_some(),
    }
}
