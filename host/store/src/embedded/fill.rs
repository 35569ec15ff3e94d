//! Windows are filled here: the front of an index is read from disk when somebody wants to see it.

use std::ops::Bound;

use fjall::Snapshot;

use super::codec::{Address, IndexRow, Record, corrupt};
use super::engine::Engine;
use super::index::{Index, Kind};
use super::layout::{self, QueueNo, Space};
use crate::StoreError;

/// Rows read from disk at once when a window is empty.
const FILL_ROWS: usize = 256;

/// A row of a timed index: time and sequence, and where the message is.
pub(super) type Timed = ((u64, u64), Address);

/// Rows read at once, and the sequence of the first that was not read.
pub(super) type Portion<V> = (Vec<(u64, V)>, Option<u64>);

impl Index {
    /// The first row of a lane after `position` in any of `kinds` or among the loose, whoever may
    /// take it.
    ///
    /// # Errors
    /// A failed read.
    pub(super) fn peek(
        &mut self,
        engine: &Engine,
        number: QueueNo,
        priority: u8,
        position: Option<u64>,
        kinds: &[Kind],
    ) -> Result<Option<(u64, IndexRow)>, StoreError> {
        if !self
            .queues
            .get(&number)
            .is_some_and(|queue| queue.has_lane(priority))
        {
            return Ok(None);
        }
        let mut first: Option<(u64, IndexRow)> = None;
        let mut offer = |sequence: u64, row: &IndexRow| {
            if first.as_ref().is_none_or(|(best, _)| sequence < *best) {
                first = Some((sequence, row.clone()));
            }
        };
        for kind in kinds {
            loop {
                let window = self.queue(number).lane(priority).window(*kind);
                if let Some((sequence, row)) = window.after(position) {
                    offer(sequence, row);
                    break;
                }
                // What is unread lies behind everything loaded, and may lie behind the position
                // too.
                let Some(unread) = window.unread() else { break };
                self.fill_lane(engine, number, priority, *kind, unread)?;
            }
        }
        let start = position.map_or(Bound::Unbounded, Bound::Excluded);
        let lane = self.queue(number).lane(priority);
        if let Some((sequence, row)) = lane.loose.range((start, Bound::Unbounded)).next() {
            offer(*sequence, row);
        }
        Ok(first)
    }

    fn fill_lane(
        &mut self,
        engine: &Engine,
        number: QueueNo,
        priority: u8,
        kind: Kind,
        unread: u64,
    ) -> Result<(), StoreError> {
        let key = |sequence| match kind {
            Kind::Ready | Kind::Straggler => layout::ordered(number, priority, sequence).to_vec(),
            Kind::Member => layout::member(number, priority, sequence),
        };
        let space = match kind {
            Kind::Ready => Space::Ready,
            Kind::Straggler => Space::Straggler,
            Kind::Member => Space::Group,
        };
        let (rows, next) = read_sequences(
            engine,
            &self.view,
            space,
            &key(unread),
            &key(u64::MAX),
            |key, record| record.decode::<IndexRow>(space, key),
        )?;
        self.change_window((number, priority, kind), |window| window.fill(rows, next));
        Ok(())
    }

    /// The first row of a timed index after `position`.
    ///
    /// # Errors
    /// A failed read.
    pub(super) fn peek_timed(
        &mut self,
        engine: &Engine,
        space: Space,
        position: Option<(u64, u64)>,
    ) -> Result<Option<Timed>, StoreError> {
        loop {
            let window = self.timed(space);
            if let Some((time, address)) = window.after(position) {
                return Ok(Some((time, *address)));
            }
            let Some((time, sequence)) = window.unread() else {
                return Ok(None);
            };
            let start = layout::timed(time, sequence);
            let mut rows = Vec::new();
            let mut next = None;
            for row in engine.scan(&self.view, space, &start, layout::MARK_KEY) {
                let (key, record) = row?;
                let time = layout::first_number(&key).zip(layout::last_number(&key));
                let time = time.ok_or_else(|| corrupt(space, &key, "has no time"))?;
                if rows.len() == FILL_ROWS {
                    next = Some(time);
                    break;
                }
                rows.push((time, record.decode(space, &key)?));
            }
            self.timed(space).fill(rows, next);
        }
    }
}

/// Rows whose keys end in a sequence: up to [`FILL_ROWS`], and the sequence of the first that was
/// not read.
pub(super) fn read_sequences<V>(
    engine: &Engine,
    view: &Snapshot,
    space: Space,
    start: &[u8],
    end: &[u8],
    decode: impl Fn(&[u8], &Record) -> Result<V, StoreError>,
) -> Result<Portion<V>, StoreError> {
    let mut rows = Vec::new();
    for row in engine.scan(view, space, start, end) {
        let (key, record) = row?;
        let sequence =
            layout::last_number(&key).ok_or_else(|| corrupt(space, &key, "has no sequence"))?;
        if rows.len() == FILL_ROWS {
            return Ok((rows, Some(sequence)));
        }
        rows.push((sequence, decode(&key, &record)?));
    }
    Ok((rows, None))
}
