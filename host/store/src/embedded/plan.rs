//! One batch: the units that are committed together, as rows to write and effects to apply.
//!
//! Each unit is checked whole before anything of it is planned, against memory (as of the last
//! batch) and against what earlier units of the same batch have planned. Only the committer plans,
//! so nothing that is planned on can change before it is applied, except who holds what; and
//! messages that a planned unit settles are marked. Neighbours: `check.rs` (the checks),
//! `group_plan.rs` (groups), `apply.rs` (memory, after the write).

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use oncue_core::message::{Attempts, DeadLetter, Header, MessageId};
use oncue_core::names::QueueName;
use oncue_core::queue::Counts;
use oncue_core::unit_of_work::{
    Disposition, IdempotencyKey, OwnerId, Put, Receipt, RecordChange, RecordKind, Revision,
    StateWrite, Unit, Wait,
};

use super::check::Checked;
use super::codec::{Address, DedupRow, Home, IndexRow, Row, RowKey, encode, seal};
use super::engine::Engine;
use super::facts::{Facts, Held, Standing};
use super::group_plan::GroupWork;
use super::index::Index;
use super::layout::{self, Key, QueueNo, Space};
use super::message_plan::parts_of;
use super::sealed::Sealed;
use super::warm::{Warm, WarmMessage};
use crate::{CommitError, StoreError};
use oncue_core::quick_hash::{QuickMap, QuickSet};

/// A row to come. Those that windows mirror stay values until they are written.
#[derive(Clone, Debug)]
pub(super) enum Planned {
    Delete,
    Sealed(Row),
    Index(IndexRow),
    Timed(Address),
    /// A key that says it all.
    Bare,
}

impl Planned {
    /// The row as bytes. What was sealed before is shared with the engine.
    pub(super) fn seal(&self, space: Space, key: &[u8]) -> Option<Row> {
        match self {
            Self::Delete => None,
            Self::Sealed(row) => Some(row.clone()),
            Self::Index(row) => Some(encode(space, key, row)),
            Self::Timed(address) => Some(encode(space, key, address)),
            Self::Bare => Some(seal(space, key, &[])),
        }
    }
}

/// What a unit changes in memory once it is durable.
#[derive(Debug)]
pub(super) enum Effect {
    Settled {
        sequence: u64,
        /// Where it stands now; `None` when it is gone.
        to: Option<(QueueNo, Standing)>,
        /// Set on a move of a message that is not persistent.
        dead_letter: Option<Option<Box<DeadLetter>>>,
    },
    Put {
        facts: Facts,
        standing: Standing,
        /// So that its take need not read it.
        warm: Option<WarmMessage>,
    },
    PutLoose {
        facts: Facts,
        standing: Standing,
        header: Box<Header>,
        body: Bytes,
        dead_letter: Option<Box<DeadLetter>>,
    },
    LooseKey {
        queue: QueueNo,
        key: IdempotencyKey,
        id: MessageId,
    },
    MakeQueue(QueueNo, QueueName),
    DeleteQueue(QueueName),
}

/// A put whose message a task has taken before it is durable.
#[derive(Debug)]
pub(super) struct Deferred {
    pub(super) put: Put,
    pub(super) queue: QueueNo,
    pub(super) owner: OwnerId,
}

impl Deferred {
    /// The message as if it were there, for the checks of the unit that settles it.
    pub(super) fn held(&self) -> Held {
        let standing = Standing {
            home: Home::Free,
            attempts: Attempts::default(),
            placed: false,
            dead: false,
        };
        Held {
            owner: self.owner,
            committing: false,
            facts: Facts::new(self.queue, &self.put.header, 0),
            standing,
        }
    }
}

/// What the committer remembers between batches; the durable part stands in the marks.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    pub(super) commit: u64,
    /// The last commit that wrote to each keyspace.
    pub(super) spaces: Vec<u64>,
    pub(super) next_queue: QueueNo,
    pub(super) task_low: u64,
    pub(super) task_bytes: u64,
    /// Keys that end before it have no rows.
    pub(super) dedup_low: u64,
}

/// A batch.
pub(super) struct Batch {
    /// Rows that a later unit of the same batch may change again: one per key.
    pub(super) rows: BTreeMap<(Space, Key), Planned>,
    /// Rows that no other unit of the batch can touch, as they are of a message that is put by it,
    /// or was held by it: in no order, one per key.
    pub(super) own: Vec<(Space, RowKey, Planned)>,
    /// Puts that a task has taken already: planned at the end, unless the task's own unit in the
    /// batch removes them again.
    pub(super) deferred: QuickMap<u64, Deferred>,
    /// Those that were removed so: nothing of them is written.
    pub(super) removed: Vec<u64>,
    pub(super) effects: Vec<Effect>,
    pub(super) groups: BTreeMap<Key, GroupWork>,
    /// Change of the durable counts.
    pub(super) queues: BTreeMap<QueueNo, Counts>,
    /// Queues made and deleted.
    pub(super) names: HashMap<QueueName, Option<QueueNo>>,
    /// Messages put less messages gone, of any persistence.
    pub(super) depths: QuickMap<QueueNo, i64>,
    pub(super) states: HashMap<Key, Option<Revision>>,
    pub(super) keys: HashMap<Key, DedupRow>,
    pub(super) ids: QuickSet<u64>,
    pub(super) loose_bytes: u64,
    pub(super) progress: Progress,
    pub(super) bytes: u64,
}

impl Batch {
    pub(super) fn new(progress: Progress) -> Self {
        Self {
            rows: BTreeMap::new(),
            own: Vec::new(),
            deferred: QuickMap::default(),
            removed: Vec::new(),
            effects: Vec::new(),
            groups: BTreeMap::new(),
            queues: BTreeMap::new(),
            names: HashMap::new(),
            depths: QuickMap::default(),
            states: HashMap::new(),
            keys: HashMap::new(),
            ids: QuickSet::default(),
            loose_bytes: 0,
            progress,
            bytes: 0,
        }
    }

    /// True when something must be written before the batch can be applied.
    pub(super) fn is_durable(&self) -> bool {
        !self.rows.is_empty() || !self.own.is_empty()
    }

    /// Plans a unit that was found applicable. `sealed` are rows of its puts' bodies, if there are
    /// any.
    ///
    /// # Errors
    /// A failed read of an old task row; nothing of the unit is planned then.
    pub(super) fn plan(
        &mut self,
        engine: &Engine,
        index: &Index,
        unit: Unit,
        checked: Checked,
        early: Option<OwnerId>,
        sealed: Vec<Option<Sealed>>,
    ) -> Result<Receipt, CommitError> {
        let replaced = match &unit.task {
            Some(row) => self
                .old_task_bytes(engine, index, row.id)
                .map_err(stopped)?,
            None => 0,
        };
        self.progress.commit += 1;
        let commit = self.progress.commit;
        for change in unit.records {
            self.plan_record(change, index);
        }
        for (held, settle) in checked.held.into_iter().zip(unit.settles) {
            let to = match &settle.disposition {
                Disposition::Move { to, .. } => self.number(index, to),
                _ => Some(held.facts.queue),
            };
            self.plan_settle(held, settle.disposition, to);
        }
        let mut sealed = sealed.into_iter();
        for (put, answer) in unit.puts.into_iter().zip(&checked.answers) {
            let sealed = sealed.next().flatten();
            if !answer.repeated {
                let number = self
                    .number(index, &put.queue)
                    .expect("the check has found the queue");
                match early {
                    Some(owner) => self.defer(put, number, owner),
                    None => self.plan_put(put, number, sealed),
                }
            }
        }
        for write in unit.writes {
            self.plan_state(write, Revision(commit));
        }
        if let Some(row) = unit.task {
            self.plan_task(engine, index, row, replaced)
                .map_err(stopped)?;
        }
        if let Some(keep) = unit.keep_tasks {
            self.trim_tasks(engine, index, keep).map_err(stopped)?;
        }
        Ok(Receipt {
            commit,
            puts: checked.answers,
        })
    }

    /// A put that `owner` has taken already.
    fn defer(&mut self, put: Put, queue: QueueNo, owner: OwnerId) {
        let sequence = put.header.id.sequence.0;
        *self.depths.entry(queue).or_default() += 1;
        self.ids.insert(sequence);
        let deferred = Deferred { put, queue, owner };
        self.deferred.insert(sequence, deferred);
    }

    /// Keeps room in their queues for the puts of a unit that begins the next batch.
    pub(super) fn keep_room(&mut self, index: &Index, unit: &Unit) {
        for put in &unit.puts {
            if let Some(number) = self.number(index, &put.queue) {
                *self.depths.entry(number).or_default() += 1;
            }
        }
    }

    /// Plans the puts that the batch does not remove again.
    pub(super) fn plan_deferred(&mut self) {
        let mut deferred = std::mem::take(&mut self.deferred);
        for (_, Deferred { put, queue, .. }) in deferred.drain() {
            *self.depths.entry(queue).or_default() -= 1;
            self.plan_put(put, queue, None);
        }
        self.deferred = deferred;
    }

    /// True for a unit that does with a put of this batch what its rows must be written for: it
    /// belongs into the next one.
    pub(super) fn must_come_before(&self, unit: &Unit) -> bool {
        !self.deferred.is_empty()
            && unit.settles.iter().any(|settle| {
                settle.disposition != Disposition::Remove
                    && self.deferred.contains_key(&settle.sequence.0)
            })
    }

    pub(super) fn number(&self, index: &Index, name: &QueueName) -> Option<QueueNo> {
        self.names
            .get(name)
            .copied()
            .unwrap_or_else(|| index.number(name))
    }

    pub(super) fn set(&mut self, space: Space, key: Key, row: Planned) {
        self.rows.insert((space, key), row);
    }

    /// Plans a row of which no other unit of the batch can know.
    pub(super) fn set_own(&mut self, space: Space, key: impl Into<RowKey>, row: Planned) {
        self.own.push((space, key.into(), row));
    }

    pub(super) fn put_row<T: serde::Serialize>(&mut self, space: Space, key: Key, value: &T) {
        let row = encode(space, &key, value);
        self.set(space, key, Planned::Sealed(row));
    }

    pub(super) fn delete(&mut self, space: Space, key: Key) {
        self.set(space, key, Planned::Delete);
    }

    fn plan_record(&mut self, change: RecordChange, index: &Index) {
        let key = layout::record(change.kind, &change.name);
        if change.kind == RecordKind::Queue
            && let Ok(name) = change.name.parse::<QueueName>()
        {
            match (self.number(index, &name), change.value.is_some()) {
                (None, true) => {
                    let number = self.progress.next_queue;
                    self.progress.next_queue += 1;
                    self.names.insert(name.clone(), Some(number));
                    self.queues.entry(number).or_default();
                    self.effects.push(Effect::MakeQueue(number, name));
                }
                (Some(number), false) => {
                    self.names.insert(name.clone(), None);
                    self.queues.remove(&number);
                    self.delete(Space::Meta, layout::queue(number));
                    self.effects.push(Effect::DeleteQueue(name));
                }
                _ => {}
            }
        }
        match change.value {
            Some(value) => {
                let row = seal(Space::Meta, &key, &[&value]);
                self.set(Space::Meta, key, Planned::Sealed(row));
            }
            None => self.delete(Space::Meta, key),
        }
    }

    fn plan_settle(&mut self, held: Held, disposition: Disposition, to: Option<QueueNo>) {
        let Held {
            facts, standing, ..
        } = held;
        if self.deferred.remove(&facts.sequence).is_some() {
            *self.depths.entry(facts.queue).or_default() -= 1;
            self.removed.push(facts.sequence);
            return;
        }
        let stand = |home: Home, attempts: Attempts| Standing {
            home,
            attempts,
            placed: true,
            ..standing
        };
        let mut letter = None;
        let new = match disposition {
            Disposition::Remove => None,
            Disposition::Requeue(attempts) => Some(stand(Home::Free, attempts)),
            Disposition::Park(attempts) => Some(stand(Home::Parked, attempts)),
            Disposition::Later {
                until,
                wait,
                attempts,
            } => Some(stand(Home::Waiting(wait, until), attempts)),
            Disposition::Lease {
                until,
                token,
                selective,
                attempts,
            } => Some(stand(
                Home::Leased {
                    until,
                    token,
                    selective,
                },
                attempts,
            )),
            Disposition::Move {
                record, attempts, ..
            } => {
                let dead = record.is_some();
                letter = Some(record);
                Some(Standing {
                    dead,
                    ..stand(Home::Free, attempts)
                })
            }
        };
        let sequence = facts.sequence;
        let to = new.zip(to).map(|(standing, queue)| (queue, standing));
        if facts.persistent {
            self.plan_move(&facts, &standing, to, letter.as_ref().map(Option::as_deref));
        }
        let target = to.map(|(queue, _)| queue);
        if target != Some(facts.queue) {
            *self.depths.entry(facts.queue).or_default() -= 1;
            if let Some(queue) = target {
                *self.depths.entry(queue).or_default() += 1;
            }
        }
        let dead_letter = if facts.persistent { None } else { letter };
        self.effects.push(Effect::Settled {
            sequence,
            to,
            dead_letter,
        });
    }

    fn plan_put(&mut self, put: Put, number: QueueNo, sealed: Option<Sealed>) {
        let mut header = put.header;
        header.size = put.body.len() as u64;
        let id = header.id;
        let parts = parts_of(header.size);
        let facts = Facts::new(number, &header, parts);
        // A delay that is over at the put is none.
        let home = match put.due {
            Some(until) if until > header.put_time => Home::Waiting(Wait::Delay, until),
            _ => Home::Free,
        };
        let standing = Standing {
            home,
            attempts: Attempts::default(),
            placed: home != Home::Free,
            dead: put.dead_letter.is_some(),
        };
        *self.depths.entry(number).or_default() += 1;
        self.ids.insert(id.sequence.0);
        self.bytes += header.size;
        if let Some(key) = put.key {
            self.plan_key(number, key, id, facts.persistent);
        }
        if !facts.persistent {
            self.loose_bytes += header.size;
            let header = Box::new(header);
            let (body, dead_letter) = (put.body, put.dead_letter);
            self.effects.push(Effect::PutLoose {
                facts,
                standing,
                header,
                body,
                dead_letter,
            });
            return;
        }
        let row = self.plan_body(number, &header, &put.body, parts, sealed);
        if let Some(id) = &facts.correlation {
            let key = layout::correlation(number, id, facts.priority, facts.sequence);
            self.set_own(Space::Correlation, key, Planned::Bare);
        }
        self.plan_enter(&facts, &standing);
        self.plan_letter(facts.sequence, put.dead_letter.as_deref().map(Some), false);
        let is_plain = parts == 0 && home == Home::Free && !standing.dead;
        let warm = if is_plain {
            Warm::of(header, row)
        } else {
            None
        };
        self.effects.push(Effect::Put {
            facts,
            standing,
            warm,
        });
    }

    fn plan_key(&mut self, queue: QueueNo, key: IdempotencyKey, id: MessageId, durable: bool) {
        let row_key = layout::dedup(queue, &key.key);
        let row = DedupRow {
            id,
            digest: key.body_digest,
            until: key.until,
        };
        self.keys.insert(row_key.clone(), row);
        if durable {
            self.progress.dedup_low = self.progress.dedup_low.min(key.until.0);
            self.put_row(Space::Dedup, row_key.clone(), &row);
            self.set(
                Space::Dedup,
                layout::dedup_until(key.until.0, &row_key),
                Planned::Bare,
            );
        } else {
            self.effects.push(Effect::LooseKey { queue, key, id });
        }
    }

    fn plan_state(&mut self, write: StateWrite, revision: Revision) {
        let key = layout::state(&write.namespace, &write.key);
        self.states
            .insert(key.clone(), write.value.is_some().then_some(revision));
        match write.value {
            Some(value) => {
                let row = seal(Space::State, &key, &[&revision.0.to_le_bytes(), &value]);
                self.bytes += value.len() as u64;
                self.set(Space::State, key, Planned::Sealed(row));
            }
            None => self.delete(Space::State, key),
        }
    }
}

/// A unit that cannot be checked is refused: nothing of it is applied.
pub(super) fn stopped(error: StoreError) -> CommitError {
    CommitError::Stopped(error.to_string())
}
