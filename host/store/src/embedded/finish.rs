//! The last rows of a batch: groups, queues with their counts and cursors, and the marks.

use std::collections::{BTreeMap, HashMap};

use fjall::Snapshot;
use oncue_core::names::QueueName;
use oncue_core::queue::Counts;

use super::codec::{Cursors, MarkRow, MetaMarkRow, QueueRow, RowKey};
use super::engine::{Change, Engine};
use super::index::Index;
use super::layout::{self, QueueNo, Space};
use super::plan::{Batch, Planned, Progress};
use crate::StoreError;

impl Batch {
    /// Finishes the rows: groups, queues, marks. After it the batch is ready to be written.
    ///
    /// # Errors
    /// A failed read of a group.
    pub(super) fn finish(&mut self, engine: &Engine, index: &Index) -> Result<(), StoreError> {
        self.finish_groups(engine, &index.view)?;
        if !self.is_durable() {
            return Ok(());
        }
        self.finish_queues(index);
        self.finish_marks(index);
        Ok(())
    }

    /// Finishes the rows of groups, and the counts that follow from them.
    ///
    /// # Errors
    /// A failed read.
    pub(super) fn finish_groups(
        &mut self,
        engine: &Engine,
        view: &Snapshot,
    ) -> Result<(), StoreError> {
        for work in self.groups.values_mut() {
            let (rows, delta) = work.finish(engine, view)?;
            if !delta.is_zero() {
                *self.queues.entry(work.queue).or_default() += &delta;
            }
            for (key, row) in rows {
                self.rows.insert(key, row);
            }
        }
        Ok(())
    }

    /// Plans the rows of a clean end: queues with their present cursors.
    pub(super) fn finish_last(&mut self, index: &Index) {
        self.finish_queues(index);
        self.finish_marks(index);
    }

    fn finish_queues(&mut self, index: &Index) {
        let mut rows: BTreeMap<QueueNo, QueueRow> = BTreeMap::new();
        let made: HashMap<QueueNo, &QueueName> = self
            .names
            .iter()
            .filter_map(|(name, number)| Some(((*number)?, name)))
            .collect();
        for (number, delta) in &self.queues {
            let mut row = match (index.queues.get(number), made.get(number)) {
                (Some(queue), _) => queue.row(),
                (None, Some(name)) => {
                    let name = name.as_str().to_owned();
                    QueueRow {
                        name,
                        counts: Counts::default(),
                        cursors: Vec::new(),
                    }
                }
                (None, None) => continue,
            };
            row.counts += delta;
            rows.insert(*number, row);
        }
        // The cursors in memory are those before this batch: right for what it deletes, too high
        // for what it adds.
        self.lower_cursors(&mut rows);
        for (number, row) in rows {
            self.put_row(Space::Meta, layout::queue(number), &row);
        }
    }

    /// Brings cursors down to the rows that the batch adds.
    pub(super) fn lower_cursors(&self, rows: &mut BTreeMap<QueueNo, QueueRow>) {
        let shared = self.rows.iter();
        let shared = shared.map(|((space, key), row)| (*space, key.as_slice(), row));
        let own = self.own.iter();
        let own = own.map(|(space, key, row)| (*space, key.as_ref(), row));
        for (space, key, row) in shared.chain(own) {
            let Planned::Index(_) = row else { continue };
            let (spot, slot): (_, fn(&mut Cursors) -> &mut Option<u64>) = match space {
                Space::Ready => (layout::split_ordered(key), |cursors| &mut cursors.ready),
                Space::Straggler => (layout::split_ordered(key), |cursors| &mut cursors.straggler),
                Space::Group => (layout::split_member(key), |cursors| &mut cursors.member),
                _ => continue,
            };
            let Some((number, priority, sequence)) = spot else {
                continue;
            };
            if let Some(row) = rows.get_mut(&number) {
                row.lower(priority, sequence, slot);
            }
        }
    }

    fn finish_marks(&mut self, index: &Index) {
        let commit = self.progress.commit;
        let mut is_touched = [false; Space::ALL.len()];
        let shared = self.rows.keys().map(|(space, _)| *space);
        let own = self.own.iter().map(|(space, _, _)| *space);
        for space in shared.chain(own).chain([Space::Meta]) {
            if let Some(slot) = is_touched.get_mut(space as usize) {
                *slot = true;
            }
        }
        let touched = Space::ALL.into_iter().zip(is_touched);
        let touched = touched.filter_map(|(space, is_touched)| is_touched.then_some(space));
        self.progress.spaces.resize(Space::ALL.len(), 0);
        for space in touched {
            if let Some(slot) = self.progress.spaces.get_mut(space as usize) {
                *slot = commit;
            }
            if space == Space::Meta {
                continue;
            }
            let (low, total) = match space {
                Space::Due => (self.timed_low(space, index.due.low()), 0),
                Space::Expiry => (self.timed_low(space, index.expiry.low()), 0),
                Space::Tasks => ((self.progress.task_low, 0), self.progress.task_bytes),
                Space::Dedup => ((self.progress.dedup_low, 0), 0),
                _ => ((0, 0), 0),
            };
            self.put_row(
                space,
                layout::MARK_KEY.to_vec(),
                &MarkRow { commit, low, total },
            );
        }
        let Progress {
            spaces, next_queue, ..
        } = self.progress.clone();
        self.put_row(
            Space::Meta,
            layout::MARK_KEY.to_vec(),
            &MetaMarkRow {
                commit,
                spaces,
                next_queue,
            },
        );
    }

    fn timed_low(&self, space: Space, low: Option<(u64, u64)>) -> (u64, u64) {
        let first_planned = self
            .rows
            .range((space, Vec::new())..)
            .take_while(|((other, _), _)| *other == space)
            .find(|(_, row)| matches!(row, Planned::Timed(_)))
            .and_then(|((_, key), _)| layout::first_number(key).zip(layout::last_number(key)));
        // With no row at all the next one may stand anywhere: the batch that brings it says where.
        [low, first_planned]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or((layout::LAST_TIME, 0))
    }

    /// The rows as the engine takes them.
    pub(super) fn changes(&self) -> impl Iterator<Item = Change> + '_ {
        let own = self.own.iter();
        let own = own.map(|(space, key, row)| ((*space, key.clone()), row.seal(*space, key)));
        let shared = self.rows.iter().map(|((space, key), row)| {
            let row = row.seal(*space, key);
            ((*space, RowKey::from(key)), row)
        });
        own.chain(shared)
    }
}

impl QueueRow {
    fn lower(&mut self, priority: u8, sequence: u64, slot: fn(&mut Cursors) -> &mut Option<u64>) {
        let position = match self
            .cursors
            .iter()
            .position(|cursors| cursors.priority == priority)
        {
            Some(position) => position,
            None => {
                self.cursors.push(Cursors {
                    priority,
                    ..Cursors::default()
                });
                self.cursors.len() - 1
            }
        };
        if let Some(cursors) = self.cursors.get_mut(position) {
            let slot = slot(cursors);
            *slot = Some(slot.map_or(sequence, |low| low.min(sequence)));
        }
    }
}
