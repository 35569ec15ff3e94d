//! After an accepted loss: every index and every count is made anew from bodies and places.
//!
//! A body says in which queue its message was put; a place row says where it stands when that is
//! not simply there and ready. A message whose removal was lost with the rest comes again; one
//! whose body was lost does not. Takes time with the number of messages: nothing else in the store
//! does.

use std::collections::{BTreeMap, HashMap};

use fjall::Snapshot;
use oncue_core::message::Attempts;
use oncue_core::queue::Counts;

use super::body_row::BodyRow;
use super::codec::{Home, MarkRow, MetaMarkRow, PlaceRow, QueueRow, TallyRow};
use super::engine::{Engine, WriteFault, unavailable};
use super::facts::{Facts, Standing};
use super::group_plan::GroupWork;
use super::layout::{self, Key, QueueNo, Space};
use super::plan::{Batch, Planned, Progress};
use crate::StoreError;

/// Rows or messages in one batch.
const CHUNK: usize = 4096;

/// Keyspaces that hold nothing but what follows from bodies and places.
const DERIVED: [Space; 7] = [
    Space::Ready,
    Space::Straggler,
    Space::Group,
    Space::Due,
    Space::Expiry,
    Space::Parked,
    Space::Correlation,
];

struct Rebuild<'a> {
    engine: &'a Engine,
    places: HashMap<u64, (QueueNo, PlaceRow)>,
    queues: BTreeMap<QueueNo, QueueRow>,
    tallies: HashMap<Key, TallyRow>,
}

/// Makes everything anew. The marks come last: until then the store is still found damaged.
///
/// # Errors
/// A failed read or write; it can be tried again.
pub(super) fn rebuild(engine: &Engine) -> Result<(), StoreError> {
    let view = engine.view();
    let mut rebuild = Rebuild {
        engine,
        places: read_places(engine, &view),
        queues: read_queues(engine, &view),
        tallies: HashMap::new(),
    };
    for space in DERIVED {
        clear(engine, &view, space)?;
    }
    let mut lost = 0_u64;
    let mut batch = Batch::new(Progress::default());
    let mut planned = 0;
    for row in engine.scan_raw(&view, Space::Body, &[], layout::MARK_KEY) {
        let (key, record) = row?;
        if key.len() != size_of::<u64>() {
            continue;
        }
        let plain = record.and_then(|record| BodyRow::read(&key, record));
        let Ok(body) = plain else {
            lost += 1;
            continue;
        };
        if !rebuild.plan(&mut batch, &view, &body)? {
            lost += 1;
        }
        planned += 1;
        if planned % CHUNK == 0 {
            rebuild.write(std::mem::replace(
                &mut batch,
                Batch::new(Progress::default()),
            ))?;
        }
    }
    rebuild.write(batch)?;
    rebuild.finish(&view)?;
    if lost > 0 {
        tracing::error!(
            lost,
            "messages could not be read, or their queues are gone; they are left out"
        );
    }
    Ok(())
}

fn read_places(engine: &Engine, view: &Snapshot) -> HashMap<u64, (QueueNo, PlaceRow)> {
    let start = layout::place(0, u8::MAX, 0);
    let end = layout::place(QueueNo::MAX, 0, u64::MAX);
    let rows = engine.scan(view, Space::Place, &start, &end).flatten();
    let rows = rows.filter_map(|(key, record)| {
        let (queue, _, sequence) = layout::split_place(&key)?;
        Some((sequence, (queue, record.decode(Space::Place, &key).ok()?)))
    });
    rows.collect()
}

fn read_queues(engine: &Engine, view: &Snapshot) -> BTreeMap<QueueNo, QueueRow> {
    let start = layout::queues_prefix();
    let rows = engine
        .scan(view, Space::Meta, &start, &layout::after_prefix(&start))
        .flatten();
    let rows = rows.filter_map(|(key, record)| {
        let row: QueueRow = record.decode(Space::Meta, &key).ok()?;
        let row = QueueRow {
            counts: Counts::default(),
            cursors: Vec::new(),
            ..row
        };
        Some((layout::tagged_queue(&key)?, row))
    });
    rows.collect()
}

fn clear(engine: &Engine, view: &Snapshot, space: Space) -> Result<(), StoreError> {
    let mut rows = Vec::with_capacity(CHUNK);
    for row in engine.scan_raw(view, space, &[], layout::MARK_KEY) {
        rows.push(((space, row?.0.into()), None));
        if rows.len() == CHUNK {
            engine
                .write(std::mem::take(&mut rows))
                .map_err(write_fault)?;
        }
    }
    engine.write(rows).map_err(write_fault)?;
    Ok(())
}

fn write_fault(fault: WriteFault) -> StoreError {
    let (WriteFault::Write(error) | WriteFault::Sync(error)) = fault;
    unavailable(&error)
}

impl Rebuild<'_> {
    /// Plans the indexes of one message. False when it belongs nowhere.
    fn plan(&self, batch: &mut Batch, view: &Snapshot, body: &BodyRow) -> Result<bool, StoreError> {
        let sequence = body.header.id.sequence.0;
        let place = self.places.get(&sequence);
        let queue = place.map_or(body.queue, |(queue, _)| *queue);
        if !self.queues.contains_key(&queue) {
            return Ok(false);
        }
        let letter = layout::dead_letter(sequence);
        let dead = matches!(self.engine.get(view, Space::Place, &letter), Ok(Some(_)));
        let standing = match place {
            Some((_, PlaceRow { home, attempts, .. })) => Standing {
                home: *home,
                attempts: *attempts,
                placed: true,
                dead,
            },
            None => Standing {
                home: Home::Free,
                attempts: Attempts::default(),
                placed: false,
                dead,
            },
        };
        let facts = Facts::new(queue, &body.header, body.parts);
        if let Some(name) = &facts.group {
            let key = layout::tally(queue, name);
            let tally = || self.tallies.get(&key).cloned().unwrap_or_default();
            let work = || GroupWork::new(queue, name.clone(), tally());
            batch.groups.entry(key.clone()).or_insert_with(work);
        }
        if let Some(id) = &facts.correlation {
            let key = layout::correlation(queue, id, facts.priority, sequence);
            batch.set(Space::Correlation, key, Planned::Bare);
        }
        batch.plan_enter(&facts, &standing);
        Ok(true)
    }

    fn write(&mut self, mut batch: Batch) -> Result<(), StoreError> {
        batch.finish_groups(self.engine, &self.engine.view())?;
        for (key, work) in &batch.groups {
            self.tallies.insert(key.clone(), work.tally.clone());
        }
        for (number, delta) in &batch.queues {
            if let Some(row) = self.queues.get_mut(number) {
                row.counts += delta;
            }
        }
        batch.lower_cursors(&mut self.queues);
        self.engine.write(batch.changes()).map_err(write_fault)?;
        Ok(())
    }

    fn finish(&self, view: &Snapshot) -> Result<(), StoreError> {
        let mut batch = Batch::new(Progress::default());
        for (number, row) in &self.queues {
            batch.put_row(Space::Meta, layout::queue(*number), row);
        }
        let meta: MetaMarkRow = read_or_default(self.engine, view, Space::Meta);
        let marks: Vec<MarkRow> = Space::ALL
            .iter()
            .map(|space| read_or_default(self.engine, view, *space))
            .collect();
        let newest = marks.iter().map(|mark| mark.commit).max().unwrap_or(0);
        // A number of its own: no revision that anybody has seen is given again for another value.
        let commit = meta.commit.max(newest) + 1;
        for space in Space::ALL.into_iter().filter(|space| *space != Space::Meta) {
            let total = if space == Space::Tasks {
                self.task_bytes(view)
            } else {
                0
            };
            batch.put_row(
                space,
                layout::MARK_KEY.to_vec(),
                &MarkRow {
                    commit,
                    low: (0, 0),
                    total,
                },
            );
        }
        let spaces = vec![commit; Space::ALL.len()];
        let mark = MetaMarkRow {
            commit,
            spaces,
            next_queue: meta.next_queue,
        };
        batch.put_row(Space::Meta, layout::MARK_KEY.to_vec(), &mark);
        self.engine.write(batch.changes()).map_err(write_fault)?;
        Ok(())
    }

    fn task_bytes(&self, view: &Snapshot) -> u64 {
        let rows = self
            .engine
            .scan(view, Space::Tasks, &[], layout::MARK_KEY)
            .flatten();
        rows.map(|(_, record)| record.payload().len() as u64).sum()
    }
}

/// A mark; that of another keyspace than meta has another form, and none when it cannot be read.
fn read_or_default<T: serde::de::DeserializeOwned + Default>(
    engine: &Engine,
    view: &Snapshot,
    space: Space,
) -> T {
    let record = engine.get(view, space, layout::MARK_KEY).ok().flatten();
    record
        .and_then(|record| record.decode(space, layout::MARK_KEY).ok())
        .unwrap_or_default()
}
