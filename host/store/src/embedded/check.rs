//! The checks of a unit, in the order of the reference model: the fence, the states read, the
//! queues, the keys, the depths, the room. Nothing is changed, except that groups are brought into
//! memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use oncue_core::message::MessageId;
use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{Disposition, Put, PutAnswer, RecordKind, Revision, Unit};

use super::codec::DedupRow;
use super::engine::Engine;
use super::facts::Held;
use super::group_plan::GroupWork;
use super::index::Index;
use super::layout::{self, QueueNo, Space};
use super::plan::{Batch, Deferred, stopped};
use crate::{CommitError, StoreError};

/// The first put under a key: its id and digest.
type First = (MessageId, Option<[u8; 32]>);

/// What the checks found out.
pub(super) struct Checked {
    /// The messages to settle, in the order of the settles.
    pub(super) held: Vec<Held>,
    /// One answer per put.
    pub(super) answers: Vec<PutAnswer>,
}

/// What bounds a unit from outside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Persistent puts are refused.
    pub(super) disk_full: bool,
    /// Bytes of bodies that are not persistent.
    pub(super) loose_bytes_max: u64,
    /// No sequence from here on was used before this store was opened.
    pub(super) first_fresh: u64,
}

impl Batch {
    /// Checks a unit against memory and against the batch so far.
    ///
    /// # Errors
    /// The first fault.
    pub(super) fn check(
        &mut self,
        engine: &Engine,
        index: &mut Index,
        unit: &Unit,
        room: Room,
    ) -> Result<Checked, CommitError> {
        if unit.is_undone() {
            return Err(CommitError::Undone);
        }
        let held = self.check_fence(index, unit)?;
        self.check_reads(engine, index, unit)?;
        self.check_queues(index, unit)?;
        let answers = self.answer_puts(engine, index, unit, room)?;
        self.check_depths(index, unit, &answers)?;
        self.check_room(index, unit, &answers, room)?;
        self.load_groups(engine, index, unit, &held)
            .map_err(stopped)?;
        Ok(Checked { held, answers })
    }

    fn check_fence(&self, index: &Index, unit: &Unit) -> Result<Vec<Held>, CommitError> {
        let mut seen = BTreeSet::new();
        let mut all = Vec::with_capacity(unit.settles.len());
        for settle in &unit.settles {
            let sequence = settle.sequence.0;
            let held = index.held.get(&sequence).cloned();
            let held = held.or_else(|| self.deferred.get(&sequence).map(Deferred::held));
            let held = held.filter(|held| {
                Some(held.owner) == unit.owner
                    && !held.committing
                    && index.number(&settle.queue) == Some(held.facts.queue)
            });
            match held {
                Some(held) if unit.settles.len() == 1 || seen.insert(settle.sequence) => {
                    all.push(held);
                }
                _ => return Err(CommitError::Fenced),
            }
        }
        Ok(all)
    }

    fn check_reads(&self, engine: &Engine, index: &Index, unit: &Unit) -> Result<(), CommitError> {
        for read in &unit.reads {
            let key = layout::state(&read.namespace, &read.key);
            let present = match self.states.get(&key) {
                Some(revision) => *revision,
                None => read_revision(engine, index, &key).map_err(stopped)?,
            };
            if present != read.revision {
                return Err(CommitError::Conflict(read.key.clone()));
            }
        }
        Ok(())
    }

    /// Messages of a queue before this unit.
    fn depth(&self, index: &Index, number: QueueNo) -> i64 {
        let before = index
            .queues
            .get(&number)
            .map_or(0, |queue| queue.counts.depth());
        before + self.depths.get(&number).copied().unwrap_or(0)
    }

    fn check_queues(&self, index: &Index, unit: &Unit) -> Result<(), CommitError> {
        let mut changed: BTreeMap<&str, bool> = BTreeMap::new();
        for change in unit
            .records
            .iter()
            .filter(|change| change.kind == RecordKind::Queue)
        {
            changed.insert(&change.name, change.value.is_some());
        }
        for (name, exists) in &changed {
            if !exists
                && let Ok(name) = name.parse::<QueueName>()
                && let Some(number) = self.number(index, &name)
                && self.depth(index, number) > 0
            {
                return Err(CommitError::QueueNotEmpty(name));
            }
        }
        let moves = unit
            .settles
            .iter()
            .filter_map(|settle| match &settle.disposition {
                Disposition::Move { to, .. } => Some(to),
                _ => None,
            });
        for queue in unit.puts.iter().map(|put| &put.queue).chain(moves) {
            let before = || self.number(index, queue).is_some();
            if !changed.get(queue.as_str()).copied().unwrap_or_else(before) {
                return Err(CommitError::UnknownQueue(queue.clone()));
            }
        }
        Ok(())
    }

    fn answer_puts(
        &self,
        engine: &Engine,
        index: &Index,
        unit: &Unit,
        room: Room,
    ) -> Result<Vec<PutAnswer>, CommitError> {
        let mut of_unit: HashMap<(&QueueName, &str), First> = HashMap::new();
        let mut ids: BTreeSet<MessageId> = BTreeSet::new();
        let mut answers = Vec::with_capacity(unit.puts.len());
        for put in &unit.puts {
            let id = put.header.id;
            let mut answer = PutAnswer {
                id,
                repeated: false,
            };
            if let Some(key) = &put.key {
                let place = (&put.queue, key.key.as_str());
                let committed = self
                    .known_key(engine, index, put, &key.key)
                    .map_err(stopped)?;
                if committed.is_some() && unit.key_taken_is_conflict {
                    return Err(CommitError::Conflict(key.key.clone()));
                }
                let known = committed.map(|row| (row.id, row.digest));
                if let Some((first, digest)) = known.or_else(|| of_unit.get(&place).copied()) {
                    if digest
                        .zip(key.body_digest)
                        .is_some_and(|(one, other)| one != other)
                    {
                        let (queue, key) = (put.queue.clone(), key.key.clone());
                        return Err(CommitError::KeyReused { queue, key });
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
            if !answer.repeated {
                let used = self
                    .is_used(engine, index, id.sequence.0, room)
                    .map_err(stopped)?;
                if used || (unit.puts.len() > 1 && !ids.insert(id)) {
                    return Err(CommitError::Conflict(id.to_string()));
                }
            }
            answers.push(answer);
        }
        Ok(answers)
    }

    /// What an earlier commit made of a put's key, if it is remembered at the time of the put.
    fn known_key(
        &self,
        engine: &Engine,
        index: &Index,
        put: &Put,
        key: &str,
    ) -> Result<Option<DedupRow>, StoreError> {
        let Some(number) = self.number(index, &put.queue) else {
            return Ok(None);
        };
        let row = match self.keys.get(&layout::dedup(number, key)) {
            Some(row) => Some(*row),
            None => index.stored_key(engine, number, key)?,
        };
        Ok(row.filter(|row| index.remembers(row.until, put.header.put_time)))
    }

    fn is_used(
        &self,
        engine: &Engine,
        index: &Index,
        sequence: u64,
        room: Room,
    ) -> Result<bool, StoreError> {
        if self.ids.contains(&sequence) || index.loose.messages.contains_key(&sequence) {
            return Ok(true);
        }
        // What was put since the store was opened is at most the highest put, and the latest are
        // remembered; a fresh id needs no look.
        if sequence >= room.first_fresh
            && (sequence > index.highest_put || index.recent.is_new(sequence))
        {
            return Ok(false);
        }
        Ok(engine
            .get(&index.view, Space::Body, &layout::body(sequence))?
            .is_some())
    }

    fn check_depths(
        &self,
        index: &Index,
        unit: &Unit,
        answers: &[PutAnswer],
    ) -> Result<(), CommitError> {
        let before = |queue: &QueueName| {
            let number = self.number(index, queue);
            let depth = number.map_or(0, |number| self.depth(index, number));
            u64::try_from(depth).unwrap_or(0)
        };
        let check = |put: &Put, depth: u64| match put.max_depth {
            Some(max) if depth >= max => Err(CommitError::QueueFull {
                queue: put.queue.clone(),
                depth,
                max,
            }),
            _ => Ok(()),
        };
        // Almost every unit puts one message, and needs no table of its queues.
        if let ([put], [answer]) = (unit.puts.as_slice(), answers) {
            return match answer.repeated {
                true => Ok(()),
                false => check(put, before(&put.queue)),
            };
        }
        let mut depths: HashMap<&QueueName, u64> = HashMap::new();
        for (put, answer) in unit.puts.iter().zip(answers) {
            if answer.repeated {
                continue;
            }
            let depth = depths
                .entry(&put.queue)
                .or_insert_with(|| before(&put.queue));
            check(put, *depth)?;
            *depth += 1;
        }
        Ok(())
    }

    fn check_room(
        &self,
        index: &Index,
        unit: &Unit,
        answers: &[PutAnswer],
        room: Room,
    ) -> Result<(), CommitError> {
        let mut loose_bytes = 0_u64;
        for (put, answer) in unit.puts.iter().zip(answers) {
            if answer.repeated {
                continue;
            }
            if put.header.persistent {
                if room.disk_full {
                    return Err(CommitError::Full);
                }
            } else {
                loose_bytes = loose_bytes.saturating_add(put.body.len() as u64);
            }
        }
        let present = index.loose.bytes.saturating_add(self.loose_bytes);
        if loose_bytes > 0 && present.saturating_add(loose_bytes) > room.loose_bytes_max {
            return Err(CommitError::Full);
        }
        Ok(())
    }

    /// Brings every group that the unit touches into memory, and those of persistent messages into
    /// the batch.
    fn load_groups(
        &mut self,
        engine: &Engine,
        index: &mut Index,
        unit: &Unit,
        held: &[Held],
    ) -> Result<(), StoreError> {
        let mut touched = Vec::new();
        for (held, settle) in held.iter().zip(&unit.settles) {
            let Some(name) = &held.facts.group else {
                continue;
            };
            touched.push((held.facts.queue, name.clone(), held.facts.persistent));
            if let Disposition::Move { to, .. } = &settle.disposition
                && let Some(number) = self
                    .number(index, to)
                    .or_else(|| self.number_to_be(index, unit, to))
            {
                touched.push((number, name.clone(), held.facts.persistent));
            }
        }
        for put in &unit.puts {
            if let Some(name) = &put.header.group
                && let Some(number) = self
                    .number(index, &put.queue)
                    .or_else(|| self.number_to_be(index, unit, &put.queue))
            {
                touched.push((number, name.as_str().into(), put.header.persistent));
            }
        }
        for (number, name, persistent) in touched {
            let tally = index.group(engine, number, &name)?.tally.clone();
            if persistent {
                let work = || GroupWork::new(number, name.clone(), tally);
                self.groups
                    .entry(layout::tally(number, &name))
                    .or_insert_with(work);
            }
        }
        Ok(())
    }

    /// The number that the unit will give to a queue which it makes itself.
    fn number_to_be(&self, index: &Index, unit: &Unit, name: &QueueName) -> Option<QueueNo> {
        let mut next = self.progress.next_queue;
        let mut made: BTreeSet<&str> = BTreeSet::new();
        for change in unit
            .records
            .iter()
            .filter(|change| change.kind == RecordKind::Queue)
        {
            let exists = |text: &str| {
                text.parse()
                    .is_ok_and(|name| self.number(index, &name).is_some())
            };
            if change.value.is_none() || exists(&change.name) || !made.insert(&change.name) {
                continue;
            }
            if change.name == name.as_str() {
                return Some(next);
            }
            next += 1;
        }
        None
    }
}

impl Index {
    /// What a key stands for, whatever the time.
    ///
    /// # Errors
    /// A failed read.
    pub(super) fn stored_key(
        &self,
        engine: &Engine,
        number: QueueNo,
        key: &str,
    ) -> Result<Option<DedupRow>, StoreError> {
        if let Some((known, until)) = self.loose.keys.get(&(number, key.to_owned())) {
            return Ok(Some(DedupRow {
                id: known.id,
                digest: known.body_digest,
                until: *until,
            }));
        }
        let row_key = layout::dedup(number, key);
        let record = engine.get(&self.view, Space::Dedup, &row_key)?;
        record
            .map(|record| record.decode(Space::Dedup, &row_key))
            .transpose()
    }

    /// Whether a key that ends at `until` is remembered at `now`.
    pub(super) fn remembers(&self, until: Timestamp, now: Timestamp) -> bool {
        now < until && self.forgotten < until
    }
}

fn read_revision(
    engine: &Engine,
    index: &Index,
    key: &[u8],
) -> Result<Option<Revision>, StoreError> {
    let Some(record) = engine.get(&index.view, Space::State, key)? else {
        return Ok(None);
    };
    split_state(key, record.payload()).map(|(revision, _)| Some(revision))
}

/// The revision and the value of a state row.
pub(super) fn split_state<'a>(
    key: &[u8],
    payload: &'a [u8],
) -> Result<(Revision, &'a [u8]), StoreError> {
    match payload.split_first_chunk::<8>() {
        Some((revision, value)) => Ok((Revision(u64::from_le_bytes(*revision)), value)),
        None => Err(super::codec::corrupt(Space::State, key, "is too short")),
    }
}
