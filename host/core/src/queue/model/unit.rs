//! Applying a unit of work: first everything is checked, then everything is done.

use std::collections::{BTreeMap, BTreeSet};

use super::contents::Remembered;
use super::entry::{Entry, Home};
use super::laid_out::{LaidOut, LaidPut};
use super::{KnownKey, Model, TASK_ROWS_MAX_BYTES};
use crate::message::{Attempts, MessageId, Sequence};
use crate::names::QueueName;
use crate::unit_of_work::{
    Disposition, KeepTasks, PutAnswer, Receipt, RecordChange, RecordKind, Revision, Settle,
    StateWrite, TaskRow, Unit,
};

/// Why a unit was not applied. Nothing of it is visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A settle names a message that the owner does not hold.
    Fenced,
    /// A state key has another revision, or an idempotency key is taken.
    Conflict(String),
    /// No such queue.
    UnknownQueue(QueueName),
    /// The queue to delete has messages.
    QueueNotEmpty(QueueName),
    /// The key was used for another message.
    KeyReused {
        /// In which queue.
        queue: QueueName,
        /// The key.
        key: String,
    },
    /// A put met its bound of depth.
    QueueFull {
        /// Which queue.
        queue: QueueName,
        /// Messages in it, with those that the unit has put before.
        depth: u64,
        /// The bound.
        max: u64,
    },
    /// The bodies would take more memory than there may be.
    Full,
    /// An earlier unit of its chain was refused.
    Undone,
}

impl Model {
    /// Applies a unit, all or nothing.
    ///
    /// # Errors
    /// [`Refused`], with the first fault.
    pub fn commit(&mut self, unit: Unit) -> Result<Receipt, Refused> {
        self.commit_laid_out(&mut LaidOut::from(unit))
    }

    /// The same with a unit that was laid out before. What is left of it is for the caller to let
    /// go of.
    ///
    /// # Errors
    /// As [`Model::commit`].
    pub fn commit_laid_out(&mut self, laid: &mut LaidOut) -> Result<Receipt, Refused> {
        if laid.unit.is_undone() {
            return Err(Refused::Undone);
        }
        let applied = self.apply(laid);
        if let (Err(_), Some(chain)) = (&applied, &laid.unit.chain) {
            chain.cut();
        }
        applied
    }

    fn apply(&mut self, laid: &mut LaidOut) -> Result<Receipt, Refused> {
        self.check_fence(&laid.unit)?;
        self.check_reads(&laid.unit)?;
        self.check_queues(laid)?;
        self.answer_puts(laid)?;
        self.check_depths(laid)?;
        self.check_room(laid)?;

        self.commit += 1;
        for change in laid.unit.records.drain(..) {
            self.change_record(change);
        }
        for settle in laid.unit.settles.drain(..) {
            laid.gone.extend(self.settle(settle));
        }
        for (put, answer) in laid.puts.drain(..).zip(&laid.answers) {
            if !answer.repeated {
                self.store(put);
            }
        }
        for write in laid.unit.writes.drain(..) {
            self.write_state(write);
        }
        if let Some(row) = laid.unit.task.take() {
            self.keep_task(row);
        }
        if let Some(keep) = laid.unit.keep_tasks {
            self.trim_tasks(keep);
        }
        Ok(Receipt {
            commit: self.commit,
            puts: std::mem::take(&mut laid.answers),
        })
    }

    fn check_fence(&self, unit: &Unit) -> Result<(), Refused> {
        let mut seen = BTreeSet::new();
        let is_one = unit.settles.len() == 1;
        for settle in &unit.settles {
            let held = unit
                .owner
                .is_some_and(|owner| self.holds(owner, &settle.queue, settle.sequence));
            if !held || !(is_one || seen.insert(settle.sequence)) {
                return Err(Refused::Fenced);
            }
        }
        Ok(())
    }

    fn check_reads(&self, unit: &Unit) -> Result<(), Refused> {
        for read in &unit.reads {
            let present = self
                .state(&read.namespace, &read.key)
                .map(|(_, revision)| *revision);
            if present != read.revision {
                return Err(Refused::Conflict(read.key.clone()));
            }
        }
        Ok(())
    }

    fn check_queues(&self, laid: &LaidOut) -> Result<(), Refused> {
        let unit = &laid.unit;
        let mut changed: BTreeMap<&str, bool> = BTreeMap::new();
        for change in unit
            .records
            .iter()
            .filter(|change| change.kind == RecordKind::Queue)
        {
            changed.insert(&change.name, change.value.is_some());
        }
        for (name, exists) in &changed {
            if let Some((queue, contents)) = self.queues.get_key_value(*name)
                && !exists
                && contents.len() > 0
            {
                return Err(Refused::QueueNotEmpty(queue.clone()));
            }
        }
        let moves = unit
            .settles
            .iter()
            .filter_map(|settle| match &settle.disposition {
                Disposition::Move { to, .. } => Some(to),
                _ => None,
            });
        for queue in laid.puts.iter().map(|put| &put.queue).chain(moves) {
            let before = || self.queues.contains_key(queue);
            if !changed.get(queue.as_str()).copied().unwrap_or_else(before) {
                return Err(Refused::UnknownQueue(queue.clone()));
            }
        }
        Ok(())
    }

    /// One answer per put; that of a repeat names the first.
    fn answer_puts(&self, laid: &mut LaidOut) -> Result<(), Refused> {
        let mut of_unit: BTreeMap<(&QueueName, &str), KnownKey> = BTreeMap::new();
        let mut ids: BTreeSet<MessageId> = BTreeSet::new();
        let is_one = laid.puts.len() == 1;
        for put in &laid.puts {
            let id = put.id();
            let mut answer = PutAnswer {
                id,
                repeated: false,
            };
            if let Some(key) = &put.key {
                let place = (&put.queue, key.key.as_str());
                let committed = self.key(&put.queue, &key.key, put.put_time());
                if committed.is_some() && laid.unit.key_taken_is_conflict {
                    return Err(Refused::Conflict(key.key.clone()));
                }
                if let Some((first, digest)) = committed.or_else(|| of_unit.get(&place).copied()) {
                    if digest
                        .zip(key.body_digest)
                        .is_some_and(|(one, other)| one != other)
                    {
                        return Err(Refused::KeyReused {
                            queue: put.queue.clone(),
                            key: key.key.clone(),
                        });
                    }
                    answer = PutAnswer {
                        id: first,
                        repeated: true,
                    };
                } else {
                    of_unit.insert(place, (id, key.body_digest));
                }
            }
            // An id is used once. A second use would be a fault of the caller; it must not damage
            // the queue.
            let is_new = answer.repeated
                || !self.is_used(&put.queue, id.sequence) && (is_one || ids.insert(id));
            if !is_new {
                return Err(Refused::Conflict(id.to_string()));
            }
            laid.answers.push(answer);
        }
        Ok(())
    }

    fn is_used(&self, queue: &QueueName, sequence: Sequence) -> bool {
        self.queues
            .get(queue)
            .is_some_and(|contents| contents.get(sequence).is_some())
    }

    fn check_depths(&self, laid: &LaidOut) -> Result<(), Refused> {
        let before = |queue: &QueueName| {
            let contents = self.queues.get(queue);
            contents.map_or(0, |contents| contents.len() as u64)
        };
        let check = |put: &LaidPut, depth: u64| match put.max_depth {
            Some(max) if depth >= max => Err(Refused::QueueFull {
                queue: put.queue.clone(),
                depth,
                max,
            }),
            _ => Ok(()),
        };
        // The usual unit: nothing of its own comes before its one put.
        if let ([put], [answer]) = (laid.puts.as_slice(), laid.answers.as_slice()) {
            return if answer.repeated || put.max_depth.is_none() {
                Ok(())
            } else {
                check(put, before(&put.queue))
            };
        }
        let mut depths: BTreeMap<&QueueName, u64> = BTreeMap::new();
        for (put, answer) in laid.puts.iter().zip(&laid.answers) {
            if !answer.repeated {
                let queue = &put.queue;
                let depth = depths.entry(queue).or_insert_with(|| before(queue));
                check(put, *depth)?;
                *depth += 1;
            }
        }
        Ok(())
    }

    fn check_room(&self, laid: &LaidOut) -> Result<(), Refused> {
        let answered = laid.puts.iter().zip(&laid.answers);
        let stored = answered.filter(|(_, answer)| !answer.repeated);
        let bytes: u64 = stored.map(|(put, _)| put.entry.message.body.len()).sum();
        if bytes > 0 && self.bytes.saturating_add(bytes) > self.max_bytes {
            return Err(Refused::Full);
        }
        Ok(())
    }

    fn change_record(&mut self, change: RecordChange) {
        if change.kind == RecordKind::Queue {
            if change.value.is_none() {
                self.queues.remove(change.name.as_str());
            } else if let Ok(queue) = change.name.parse::<QueueName>() {
                self.queues.entry(queue).or_default();
            }
        }
        let row = (change.kind, change.name);
        match change.value {
            Some(value) => drop(self.records.insert(row, value)),
            None => drop(self.records.remove(&row)),
        }
    }

    /// Answers the message if it is gone.
    fn settle(&mut self, settle: Settle) -> Option<Box<Entry>> {
        let mut entry = self.lift(&settle.queue, settle.sequence);
        entry.holder = None;
        let mut queue = settle.queue;
        let mut stand = |home: Home, attempts: Attempts| {
            entry.home = home;
            entry.message.attempts = attempts;
        };
        match settle.disposition {
            Disposition::Remove => return Some(entry),
            Disposition::Requeue(attempts) => stand(Home::Free, attempts),
            Disposition::Park(attempts) => stand(Home::Parked, attempts),
            Disposition::Later {
                until,
                wait,
                attempts,
            } => stand(Home::Waiting(wait, until), attempts),
            Disposition::Lease {
                until,
                token,
                selective,
                attempts,
            } => {
                stand(
                    Home::Leased {
                        until,
                        token,
                        selective,
                    },
                    attempts,
                );
            }
            Disposition::Move {
                to,
                record,
                attempts,
            } => {
                stand(Home::Free, attempts);
                entry.message.dead_letter = record;
                queue = to;
            }
        }
        self.set_down(&queue, entry);
        None
    }

    fn store(&mut self, put: LaidPut) {
        let id = put.id();
        if let Some(key) = put.key {
            let known = Remembered {
                stands_for: (id, key.body_digest),
                until: key.until,
            };
            self.key_ends
                .insert((key.until, put.queue.clone(), key.key.clone()));
            self.contents(&put.queue).keys.insert(key.key, known);
        }
        self.set_down(&put.queue, put.entry);
    }

    fn write_state(&mut self, write: StateWrite) {
        let rows = self.states.entry(write.namespace.clone()).or_default();
        match write.value {
            Some(value) => drop(rows.insert(write.key, (value, Revision(self.commit)))),
            None => drop(rows.remove(&write.key)),
        }
        if rows.is_empty() {
            self.states.remove(&write.namespace);
        }
    }

    fn keep_task(&mut self, row: TaskRow) {
        self.task_bytes += row.value.len() as u64;
        if let Some(old) = self.tasks.insert(row.id, row.value) {
            self.task_bytes -= old.len() as u64;
        }
        self.trim_tasks(KeepTasks {
            bytes: TASK_ROWS_MAX_BYTES,
            from: 0,
        });
    }

    fn trim_tasks(&mut self, keep: KeepTasks) {
        for _ in 0..KeepTasks::MAX_DROPPED {
            let Some((id, _)) = self.tasks.first_key_value() else {
                return;
            };
            let too_many = self.task_bytes > keep.bytes && self.tasks.len() > 1;
            if *id >= keep.from && !too_many {
                return;
            }
            if let Some((_, oldest)) = self.tasks.pop_first() {
                self.task_bytes -= oldest.len() as u64;
            }
        }
    }
}
