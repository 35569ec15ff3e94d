//! Scheduled puts on the loop: at each time of a queue's schedule the queue manager itself puts a
//! message. When that is, core says ([`oncue_core::schedule`]).
//!
//! The put and the note of its time are one unit of work, so a crash can neither double nor lose
//! it; after a restart the note says from where on times were missed. A put that is refused is
//! tried again until the next time is due, which then takes its place.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use oncue_core::alarm::Alarm;
use oncue_core::definition::QueueAttributes;
use oncue_core::names::QueueName;
use oncue_core::schedule::{DueTime, IN_TIME, Missed, Schedule, Timetable};
use oncue_core::time::{Millis, Timestamp};
use oncue_core::unit_of_work::{IdempotencyKey, Put, RecordChange, RecordKind, Unit};
use oncue_store::Commit;
use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::event::Nudge;
use crate::main_loop::Manager;
use crate::rows::row;
use crate::tasks::port::{PutOptions, PutRequest};

/// Who put the message.
pub const PUT_BY: &str = "oncue.schedule";

/// The property with the time that was due, in the schedule's zone.
pub const TIME_PROPERTY: &str = "oncue-schedule-time";

/// The property with how many times before it were missed; absent when none was.
pub const MISSED_PROPERTY: &str = "oncue-schedule-missed";

/// Names of the rows that say which time was done last.
const ROW_PREFIX: &str = "schedule/";

/// When a put that was refused or held up is looked at again, milliseconds.
const AGAIN: Millis = 1_000;

/// Scheduled puts of one turn; the rest waits for the next one.
const MAX_PUTS: usize = 100;

/// How long a put's key is remembered at least, milliseconds.
const KEY_WINDOW: Millis = 86_400_000;

/// The durable form: which time was done last.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ScheduleRow {
    last: Timestamp,
}

/// One queue's schedule.
#[derive(Debug)]
struct Entry {
    cron: String,
    timetable: Timetable,
    /// The last time that was done, or when it was defined.
    last: Timestamp,
    /// When it is looked at; `None` while a put is under way.
    look: Option<Timestamp>,
}

/// Every schedule, and when the next one is looked at.
#[derive(Debug, Default)]
pub(crate) struct Schedules {
    entries: BTreeMap<QueueName, Entry>,
    looks: BTreeSet<(Timestamp, QueueName)>,
    under_way: Vec<(QueueName, Timestamp, Commit)>,
}

impl Schedules {
    /// When the next one is looked at.
    pub(crate) fn next_look(&self) -> Option<Timestamp> {
        self.looks.first().map(|(look, _)| *look)
    }

    /// When the queue's next put is due.
    pub(crate) fn next(&self, queue: &QueueName, now: Timestamp) -> Option<Timestamp> {
        let entry = self.entries.get(queue)?;
        entry.timetable.next(entry.last.max(now))
    }

    /// What becomes durable with a queue's definition.
    pub(crate) fn change(
        &self,
        queue: &QueueName,
        schedule: Option<&Schedule>,
        now: Timestamp,
    ) -> Option<RecordChange> {
        match (schedule, self.entries.get(queue)) {
            (Some(schedule), known) if known.is_none_or(|known| !known.is_of(schedule)) => {
                Some(row(
                    RecordKind::Host,
                    &row_name(queue),
                    &ScheduleRow { last: now },
                ))
            }
            (None, Some(_)) => Some(RecordChange {
                kind: RecordKind::Host,
                name: row_name(queue),
                value: None,
            }),
            _ => None,
        }
    }

    /// A queue's definition is in force, or the queue is gone. True when a schedule goes on as it
    /// was: one of the same times does.
    pub(crate) fn define(
        &mut self,
        queue: &QueueName,
        schedule: Option<&Schedule>,
        now: Timestamp,
    ) -> bool {
        let Some(schedule) = schedule else {
            self.forget(queue);
            return false;
        };
        let known = self.entries.get(queue);
        let goes_on = known.is_some_and(|known| known.is_of(schedule));
        if !goes_on {
            self.restore(queue, schedule, now);
        }
        goes_on
    }

    /// Takes a schedule in whose last time is known.
    pub(crate) fn restore(&mut self, queue: &QueueName, schedule: &Schedule, last: Timestamp) {
        self.forget(queue);
        let timetable = schedule.timetable();
        let first = timetable.next(last);
        let entry = Entry {
            cron: format!("{} {}", schedule.cron, schedule.zone),
            timetable,
            last,
            look: None,
        };
        self.entries.insert(queue.clone(), entry);
        self.look_at(queue, first);
    }

    fn forget(&mut self, queue: &QueueName) {
        self.look_at(queue, None);
        self.entries.remove(queue);
        self.under_way.retain(|(name, _, _)| name != queue);
    }

    fn look_at(&mut self, queue: &QueueName, look: Option<Timestamp>) {
        let Some(entry) = self.entries.get_mut(queue) else {
            return;
        };
        if let Some(before) = std::mem::replace(&mut entry.look, look) {
            self.looks.remove(&(before, queue.clone()));
        }
        if let Some(look) = look {
            self.looks.insert((look, queue.clone()));
        }
    }

    /// A time is done: the next one is waited for.
    fn done(&mut self, queue: &QueueName, at: Timestamp) {
        let Some(entry) = self.entries.get_mut(queue) else {
            return;
        };
        entry.last = entry.last.max(at);
        // A clock that went back brings no time again.
        let next = entry.timetable.next(entry.last);
        self.look_at(queue, next);
    }
}

impl Entry {
    /// Whether the schedule has the same times.
    fn is_of(&self, schedule: &Schedule) -> bool {
        self.cron == format!("{} {}", schedule.cron, schedule.zone)
    }
}

fn row_name(queue: &QueueName) -> String {
    format!("{ROW_PREFIX}{queue}")
}

/// The times that were done last, by queue, from the rows that stood in the store.
pub(crate) fn recovered(records: &[(RecordKind, String, Bytes)]) -> BTreeMap<&str, Timestamp> {
    let rows = records
        .iter()
        .filter(|(kind, _, _)| *kind == RecordKind::Host);
    rows.filter_map(|(_, name, bytes)| {
        let queue = name.strip_prefix(ROW_PREFIX)?;
        let row: ScheduleRow = serde_json::from_slice(bytes).ok()?;
        Some((queue, row.last))
    })
    .collect()
}

/// What is to be done about a schedule that is looked at.
enum Step {
    /// Later.
    Wait(Option<Timestamp>),
    /// The time counts as done, without a message.
    Skip(Timestamp),
    /// The put cannot be made now, for this reason.
    Refused(String),
    /// The put, and the time that it is for.
    Put(Box<Put>, Timestamp),
}

impl Manager {
    /// Makes the puts that are due.
    pub(crate) fn put_scheduled(&mut self, now: Timestamp) {
        self.poll_scheduled(now);
        self.submit_scheduled(now);
        // So that the answers wake the loop.
        self.poll_scheduled(now);
    }

    fn submit_scheduled(&mut self, now: Timestamp) {
        for _ in 0..MAX_PUTS {
            let due = self
                .schedules
                .looks
                .first()
                .filter(|(look, _)| *look <= now);
            let Some((_, queue)) = due.cloned() else {
                return;
            };
            let step = self.scheduled_step(&queue, now);
            match step {
                Step::Wait(look) => self.schedules.look_at(&queue, look),
                Step::Skip(at) => {
                    tracing::info!(%queue, missed = at.0, "a scheduled put was missed and skipped");
                    self.schedules.done(&queue, at);
                    if self.could_put(&queue) {
                        // Else it would stand until the next time, with nothing wrong any more.
                        self.turn_alarm(&queue, Alarm::ScheduleRefused, None, now);
                    }
                }
                Step::Refused(why) => {
                    self.schedules.look_at(&queue, Some(now.after(AGAIN)));
                    self.turn_alarm(&queue, Alarm::ScheduleRefused, Some(why), now);
                }
                Step::Put(put, at) => {
                    let done = row(
                        RecordKind::Host,
                        &row_name(&queue),
                        &ScheduleRow { last: at },
                    );
                    let commit = self.shared.store.commit(Unit {
                        puts: vec![*put],
                        records: vec![done],
                        ..Unit::default()
                    });
                    self.schedules.look_at(&queue, None);
                    self.schedules.under_way.push((queue, at, commit));
                }
            }
        }
    }

    fn could_put(&self, queue: &QueueName) -> bool {
        let cell = self.shared.cell(queue);
        cell.is_some_and(|cell| {
            let attributes = cell.attributes.load();
            attributes.put && cell.depth() < attributes.max_depth
        })
    }

    fn scheduled_step(&self, queue: &QueueName, now: Timestamp) -> Step {
        let known = self
            .queues
            .get(queue)
            .zip(self.schedules.entries.get(queue));
        let Some((entry, known)) = known else {
            return Step::Wait(None);
        };
        let Some(schedule) = entry.attributes.schedule.as_deref() else {
            return Step::Wait(None);
        };
        let host = &self.host;
        if host.paused || entry.paused || host.draining || host.store_stopped {
            return Step::Wait(Some(now.after(AGAIN)));
        }
        let Some(due) = known.timetable.due(known.last, now) else {
            return Step::Wait(known.timetable.next(known.last.max(now)));
        };
        if schedule.missed == Missed::Skip && now.since(due.at) > IN_TIME {
            return Step::Skip(due.at);
        }
        if !entry.attributes.put {
            return Step::Refused(format!(
                "queue \"{queue}\": put is disabled, so the put scheduled for {} cannot be made",
                known.timetable.written(due.at)
            ));
        }
        match self.scheduled_put(queue, &entry.attributes, schedule, &known.timetable, due) {
            Ok(put) => Step::Put(Box::new(put), due.at),
            Err(error) => Step::Refused(format!(
                "queue \"{queue}\": the scheduled put is not valid: {}",
                error.message
            )),
        }
    }

    fn scheduled_put(
        &self,
        queue: &QueueName,
        attributes: &QueueAttributes,
        schedule: &Schedule,
        timetable: &Timetable,
        due: DueTime,
    ) -> Result<Put, ApiError> {
        let now = self.shared.now();
        let own = schedule.properties.iter();
        let mut properties: Vec<_> = own.map(|(n, v)| (n.clone(), v.clone())).collect();
        properties.push((TIME_PROPERTY.to_owned(), timetable.written(due.at)));
        if due.missed > 0 {
            properties.push((MISSED_PROPERTY.to_owned(), due.missed.to_string()));
        }
        let request = PutRequest {
            queue: queue.clone(),
            body: Bytes::from(schedule.body.clone()),
            options: PutOptions {
                content_type: schedule.content_type.clone(),
                properties,
                ..PutOptions::default()
            },
        };
        let id = self.shared.store.next_id();
        let mut put = crate::put::build(request, attributes, now, id, Some(PUT_BY.to_owned()))?;
        put.max_depth = Some(attributes.max_depth);
        // Should the note be lost with the store's answer, the key still knows.
        put.key = Some(IdempotencyKey {
            key: format!("{PUT_BY}/{}", due.at.0),
            body_digest: None,
            until: now.after(KEY_WINDOW.max(attributes.idempotency_window)),
        });
        Ok(put)
    }

    /// Takes the answers of puts that were under way.
    fn poll_scheduled(&mut self, now: Timestamp) {
        if self.schedules.under_way.is_empty() {
            return;
        }
        let waker = Waker::from(Arc::new(Nudge(Arc::clone(&self.shared.inbox))));
        let mut context = Context::from_waker(&waker);
        let mut answered = Vec::new();
        self.schedules.under_way.retain_mut(|(queue, at, commit)| {
            match Pin::new(commit).poll(&mut context) {
                Poll::Pending => true,
                Poll::Ready(answer) => {
                    answered.push((queue.clone(), *at, answer));
                    false
                }
            }
        });
        for (queue, at, answer) in answered {
            match answer {
                Ok(_) => {
                    self.schedules.done(&queue, at);
                    self.turn_alarm(&queue, Alarm::ScheduleRefused, None, now);
                }
                Err(error) => {
                    self.schedules.look_at(&queue, Some(now.after(AGAIN)));
                    self.shared.note_refusal(&error);
                    let why = format!("queue \"{queue}\": the scheduled put was refused: {error}");
                    self.turn_alarm(&queue, Alarm::ScheduleRefused, Some(why), now);
                }
            }
        }
    }
}
