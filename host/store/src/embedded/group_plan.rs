//! What one batch does to one group: rows of members, the tally, and which member stands in
//! straggler.
//!
//! Every free member has a row by arrival, and one row by priority: in straggler when anyone may
//! take it, else among the members. Every member that is set back has a row by arrival of its own.
//! So the first of each kind is found by one seek, and the tally keeps even that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fjall::Snapshot;
use oncue_core::message::PRIORITIES;
use oncue_core::queue::Counts;

use super::codec::{Home, IndexRow, TallyRow, corrupt, encode};
use super::engine::Engine;
use super::facts::{Facts, Standing};
use super::group::{add, count_ahead};
use super::layout::{self, Key, QueueNo, Space, Stand};
use super::plan::Planned;
use crate::StoreError;

/// A row to plan.
pub(super) type PlannedRow = ((Space, Key), Planned);

/// A group within a batch.
#[derive(Debug)]
pub(super) struct GroupWork {
    pub(super) queue: QueueNo,
    name: Arc<str>,
    /// As it stands on disk.
    before: TallyRow,
    /// As it will stand; complete only after [`GroupWork::finish`].
    pub(super) tally: TallyRow,
    free_in: BTreeMap<u64, IndexRow>,
    free_out: BTreeMap<u64, u8>,
    back_in: BTreeSet<u64>,
    back_out: BTreeSet<u64>,
}

impl GroupWork {
    pub(super) fn new(queue: QueueNo, name: Arc<str>, before: TallyRow) -> Self {
        Self {
            queue,
            name,
            tally: before.clone(),
            before,
            free_in: BTreeMap::new(),
            free_out: BTreeMap::new(),
            back_in: BTreeSet::new(),
            back_out: BTreeSet::new(),
        }
    }

    fn arrival(&self, stand: Stand, sequence: u64) -> (Space, Key) {
        (
            Space::Group,
            layout::in_group(stand, self.queue, &self.name, sequence),
        )
    }

    fn member(&self, priority: u8, sequence: u64) -> (Space, Key) {
        (Space::Group, layout::member(self.queue, priority, sequence))
    }

    fn head(&self, priority: u8, sequence: u64) -> (Space, Key) {
        (
            Space::Straggler,
            layout::ordered(self.queue, priority, sequence).to_vec(),
        )
    }

    /// A member leaves where it stood before the batch.
    pub(super) fn leave(&mut self, facts: &Facts, home: Home) -> Vec<PlannedRow> {
        let Facts {
            sequence, priority, ..
        } = *facts;
        match home {
            Home::Free => {
                add(&mut self.tally.free, priority, -1);
                self.free_out.insert(sequence, priority);
                let is_head = self.before.open().is_some_and(|(head, _)| head == sequence);
                let by_priority = if is_head {
                    self.head(priority, sequence)
                } else {
                    self.member(priority, sequence)
                };
                vec![
                    (self.arrival(Stand::Free, sequence), Planned::Delete),
                    (by_priority, Planned::Delete),
                ]
            }
            Home::Leased { .. } => {
                self.tally.leased -= 1;
                Vec::new()
            }
            Home::Waiting(..) | Home::Parked => {
                self.tally.set_back -= 1;
                self.back_out.insert(sequence);
                vec![(self.arrival(Stand::SetBack, sequence), Planned::Delete)]
            }
        }
    }

    /// A member comes to where it will stand.
    pub(super) fn enter(&mut self, facts: &Facts, standing: &Standing) -> Vec<PlannedRow> {
        let Facts {
            sequence, priority, ..
        } = *facts;
        match standing.home {
            Home::Free => {
                let row = standing.index_row(facts);
                add(&mut self.tally.free, priority, 1);
                self.free_in.insert(sequence, row.clone());
                vec![
                    (
                        self.arrival(Stand::Free, sequence),
                        Planned::Index(row.clone()),
                    ),
                    (self.member(priority, sequence), Planned::Index(row)),
                ]
            }
            Home::Leased { .. } => {
                self.tally.leased += 1;
                Vec::new()
            }
            Home::Waiting(..) | Home::Parked => {
                self.tally.set_back += 1;
                self.back_in.insert(sequence);
                vec![(self.arrival(Stand::SetBack, sequence), Planned::Bare)]
            }
        }
    }

    /// The rest of the rows, and how the queue's durable counts change by this group.
    ///
    /// # Errors
    /// A failed read.
    pub(super) fn finish(
        &mut self,
        engine: &Engine,
        view: &Snapshot,
    ) -> Result<(Vec<PlannedRow>, Counts), StoreError> {
        self.tally.first = self.first_free(engine, view)?;
        self.tally.barrier = self.first_set_back(engine, view)?;
        self.tally.ahead = self.ahead(engine, view)?;
        let mut rows = Vec::new();
        let (old, new) = (self.before.open(), self.tally.open());
        if let Some((sequence, priority)) = old
            && new != old
            && !self.free_out.contains_key(&sequence)
        {
            let row = self.row(engine, view, sequence)?;
            rows.push((self.head(priority, sequence), Planned::Delete));
            rows.push((self.member(priority, sequence), Planned::Index(row)));
        }
        if let Some((sequence, priority)) = new
            && (new != old || self.free_in.contains_key(&sequence))
        {
            let row = self.row(engine, view, sequence)?;
            rows.push((self.member(priority, sequence), Planned::Delete));
            rows.push((self.head(priority, sequence), Planned::Index(row)));
        }
        let key = layout::tally(self.queue, &self.name);
        let row = match self.tally.is_empty() {
            true => Planned::Delete,
            false => Planned::Sealed(encode(Space::Group, &key, &self.tally)),
        };
        rows.push(((Space::Group, key), row));
        let mut delta = self.tally.counts();
        delta -= &self.before.counts();
        Ok((rows, delta))
    }

    fn row(&self, engine: &Engine, view: &Snapshot, sequence: u64) -> Result<IndexRow, StoreError> {
        if let Some(row) = self.free_in.get(&sequence) {
            return Ok(row.clone());
        }
        let (space, key) = self.arrival(Stand::Free, sequence);
        match engine.get(view, space, &key)? {
            Some(record) => record.decode(space, &key),
            None => Err(corrupt(space, &key, "is missing")),
        }
    }

    fn first_free(
        &self,
        engine: &Engine,
        view: &Snapshot,
    ) -> Result<Option<(u64, u8)>, StoreError> {
        let stored: i64 = self.before.free.iter().sum();
        let left = usize::try_from(stored)
            .unwrap_or(0)
            .saturating_sub(self.free_out.len());
        let stored = match self.before.first {
            _ if left == 0 => None,
            Some((first, _)) if self.free_out.contains_key(&first) => {
                self.next_free(engine, view, first.saturating_add(1))?
            }
            first => first,
        };
        let planned = self
            .free_in
            .first_key_value()
            .map(|(sequence, row)| (*sequence, row.priority));
        Ok([stored, planned].into_iter().flatten().min())
    }

    /// The first free member on disk from `start` on that stays.
    fn next_free(
        &self,
        engine: &Engine,
        view: &Snapshot,
        start: u64,
    ) -> Result<Option<(u64, u8)>, StoreError> {
        let (space, start) = self.arrival(Stand::Free, start);
        let (_, end) = self.arrival(Stand::Free, u64::MAX);
        for row in engine.scan(view, space, &start, &end) {
            let (key, record) = row?;
            let sequence = layout::last_number(&key).unwrap_or(0);
            if !self.free_out.contains_key(&sequence) {
                return Ok(Some((
                    sequence,
                    record.decode::<IndexRow>(space, &key)?.priority,
                )));
            }
        }
        Ok(None)
    }

    fn first_set_back(&self, engine: &Engine, view: &Snapshot) -> Result<Option<u64>, StoreError> {
        let left = usize::try_from(self.before.set_back)
            .unwrap_or(0)
            .saturating_sub(self.back_out.len());
        let mut stored = self.before.barrier.filter(|_| left > 0);
        if let Some(first) = stored
            && self.back_out.contains(&first)
        {
            stored = None;
            let (space, start) = self.arrival(Stand::SetBack, first.saturating_add(1));
            let (_, end) = self.arrival(Stand::SetBack, u64::MAX);
            for row in engine.scan(view, space, &start, &end) {
                let sequence = layout::last_number(&row?.0).unwrap_or(0);
                if !self.back_out.contains(&sequence) {
                    stored = Some(sequence);
                    break;
                }
            }
        }
        Ok([stored, self.back_in.first().copied()]
            .into_iter()
            .flatten()
            .min())
    }

    /// Free members before the barrier. Those on disk are walked only when the barrier has moved to
    /// between them.
    fn ahead(&self, engine: &Engine, view: &Snapshot) -> Result<[i64; PRIORITIES], StoreError> {
        let Some(barrier) = self.tally.barrier else {
            return Ok(self.tally.free);
        };
        if self.tally.first.is_none_or(|(first, _)| barrier <= first) {
            return Ok([0; PRIORITIES]);
        }
        let mut ahead = match self.before.barrier == Some(barrier) {
            true => self.before.ahead,
            false => count_ahead(
                engine,
                view,
                self.queue,
                &self.name,
                &self.before.free,
                barrier,
            )?,
        };
        for (_, priority) in self.free_out.range(..barrier) {
            add(&mut ahead, *priority, -1);
        }
        for (_, row) in self.free_in.range(..barrier) {
            add(&mut ahead, row.priority, 1);
        }
        Ok(ahead)
    }
}
