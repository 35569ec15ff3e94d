//! From a directory to an open store: what is checked, what is read, what is made durable before
//! anything is served.
//!
//! Read are the queue rows, the definition rows and the marks: as many rows as there are queues and
//! definitions, never as many as there are messages. What of the journal is made durable anew, and
//! why, stands in `journal.rs`.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::{Bytes, BytesMut};
use fjall::Snapshot;
use oncue_core::names::QueueName;
use oncue_core::unit_of_work::RecordKind;

use super::codec::{Cursors, FormatRow, MarkRow, MetaMarkRow, QueueRow, corrupt, encode};
use super::engine::{Engine, WriteFault};
use super::guard::{Arrival, FORMAT, HighWater, Home};
use super::index::{Index, Lane, Queue};
use super::journal::Kept;
use super::layout::{self, QueueNo, Space};
use super::options::{EmbeddedOptions, OpenError};
use super::plan::Progress;
use super::rebuild;
use super::window::Window;
use crate::{Recovered, StoreError};

/// Each opening of the store has its own range of sequences, of two to the power of this.
const SEQUENCE_BITS: u32 = 40;

/// An open store, before its threads run.
pub(super) struct Opened {
    pub(super) engine: Engine,
    pub(super) index: Index,
    pub(super) progress: Progress,
    pub(super) recovered: Recovered,
    pub(super) first_fresh: u64,
    pub(super) opening: u32,
    pub(super) rows_read: Arc<AtomicU64>,
}

/// Opens a directory. When it fails, the journals are put back as they were.
pub(super) fn open(path: &Path, options: &EmbeddedOptions) -> Result<(Home, Opened), OpenError> {
    let arrival = Home::enter(path, options)?;
    let home = &arrival.home;
    let kept = set_journals_aside(&arrival).map_err(|error| disk(home, error))?;
    match open_engine(&arrival, options, &kept) {
        Ok(opened) => {
            kept.forget().map_err(|error| disk(home, error))?;
            Ok((arrival.home, opened))
        }
        Err(error) => {
            if !arrival.is_new
                && let Err(fault) = kept.put_back()
            {
                tracing::error!(%fault, "the journals cannot be put back; they end in .kept");
            }
            Err(error)
        }
    }
}

/// Copies the journals. On a full disk the store must open all the same, so that gets make room:
/// then without copies, unless the last end was a failed sync, after which the originals are not
/// to be trusted.
fn set_journals_aside(arrival: &Arrival) -> io::Result<Kept> {
    let home = &arrival.home;
    if home.free_bytes().is_ok_and(|free| home.is_full(free)) {
        home.drop_ballast();
    }
    match Kept::set_aside(&home.engine_path()) {
        Err(error) if error.kind() == io::ErrorKind::StorageFull && !arrival.sync_failed => {
            tracing::warn!("the disk is full; the journals are opened without a copy of them");
            Kept::without_copies(&home.engine_path())
        }
        result => result,
    }
}

fn open_engine(
    arrival: &Arrival,
    options: &EmbeddedOptions,
    kept: &Kept,
) -> Result<Opened, OpenError> {
    let Arrival {
        home,
        is_new,
        unclean,
        high_water,
        sync_failed: _,
    } = arrival;
    let (is_new, unclean, high_water) = (*is_new, *unclean, *high_water);
    let rows_read = Arc::new(AtomicU64::new(0));
    let engine = open_journal(home, options, kept, &rows_read)?;
    let mut found = read_meta(home, &engine, is_new)?;
    if let Err(error) = check_loss(home, &engine, &found.mark, high_water) {
        if !options.accept_loss {
            return Err(error);
        }
        tracing::error!(%error, "the loss is accepted; indexes and counts are made anew");
        rebuild::rebuild(&engine).map_err(|error| damaged(home, &error))?;
        found = read_meta(home, &engine, is_new)?;
    }
    let opening = found.opening.max(high_water.opening).saturating_add(1);
    let (mut index, recovered, progress) = read_index(home, &engine, options, &mut found, unclean)?;
    // A sequence is used once even when everything else of the last opening is lost: its number is
    // durable first.
    // What an older version wrote is read; what is written from now on it could not read.
    found.format.version = FORMAT;
    if !is_new && !home.is_of_newest_format() {
        home.write_format().map_err(|error| disk(home, error))?;
    }
    write_opening(home, &engine, found.format, opening)?;
    if is_new {
        home.write_format().map_err(|error| disk(home, error))?;
    }
    home.mark_running().map_err(|error| disk(home, error))?;
    home.write_high_water(HighWater {
        commit: progress.commit,
        opening,
    })
    .map_err(|error| disk(home, error))?;
    index.view = engine.view();
    let first_fresh = u64::from(opening) << SEQUENCE_BITS;
    Ok(Opened {
        engine,
        index,
        progress,
        recovered,
        first_fresh,
        opening,
        rows_read,
    })
}

/// Opens the engine; when it finds a damaged batch in the journal, without that batch if it may go.
fn open_journal(
    home: &Home,
    options: &EmbeddedOptions,
    kept: &Kept,
    rows_read: &Arc<AtomicU64>,
) -> Result<Engine, OpenError> {
    let path = home.engine_path();
    let fault = match Engine::open(&path, options.cache_bytes, rows_read.clone()) {
        Ok(engine) => return Ok(engine),
        Err(fault @ (fjall::Error::JournalRecovery(_) | fjall::Error::InvalidTrailer)) => fault,
        Err(fault) => return Err(engine_fault(home, &fault)),
    };
    tracing::warn!(?fault, "the journal has a damaged batch");
    let mut opened = None;
    let mut try_open = || {
        // Only one engine may be open at a time.
        opened = None;
        opened = Engine::open(&path, options.cache_bytes, rows_read.clone()).ok();
        opened.is_some()
    };
    let helped = kept
        .cut(false, &mut try_open)
        .and_then(|helped| match helped {
            false if options.accept_loss => kept.cut(true, &mut try_open),
            helped => Ok(helped),
        });
    helped.map_err(|error| disk(home, error))?;
    match opened {
        Some(engine) => {
            tracing::warn!("the journal was cut before the damage");
            Ok(engine)
        }
        None => Err(engine_fault(home, &fault)),
    }
}

struct Found {
    format: FormatRow,
    opening: u32,
    mark: MetaMarkRow,
}

fn read_meta(home: &Home, engine: &Engine, is_new: bool) -> Result<Found, OpenError> {
    let view = engine.view();
    let get = |key: &[u8]| {
        engine
            .get(&view, Space::Meta, key)
            .map_err(|error| damaged(home, &error))
    };
    let format = match get(layout::FORMAT_KEY)? {
        Some(record) => record
            .decode::<FormatRow>(Space::Meta, layout::FORMAT_KEY)
            .map_err(|error| damaged(home, &error))?,
        None if is_new => FormatRow {
            version: FORMAT,
            origin: random_origin(),
        },
        None => {
            let what = "the engine has no format row: its first journal is missing".to_owned();
            return Err(OpenError::Damaged {
                path: home.path().to_owned(),
                what,
            });
        }
    };
    if !(1..=FORMAT).contains(&format.version) {
        let found = format.version.to_string();
        return Err(OpenError::Version {
            path: home.path().to_owned(),
            found,
            known: FORMAT,
        });
    }
    let opening = match get(layout::OPENING_KEY)? {
        Some(record) => record
            .decode(Space::Meta, layout::OPENING_KEY)
            .map_err(|error| damaged(home, &error))?,
        None => 0,
    };
    let mark = match get(layout::MARK_KEY)? {
        Some(record) => record
            .decode(Space::Meta, layout::MARK_KEY)
            .map_err(|error| damaged(home, &error))?,
        None => MetaMarkRow::default(),
    };
    Ok(Found {
        format,
        opening,
        mark,
    })
}

/// Compares the marks of all keyspaces with each other and with the high-water file.
fn check_loss(
    home: &Home,
    engine: &Engine,
    meta: &MetaMarkRow,
    high_water: HighWater,
) -> Result<(), OpenError> {
    let mut lost = Vec::new();
    if meta.commit < high_water.commit {
        lost.push(format!(
            "commit {} is the last that the engine has, and commit {} was durable",
            meta.commit, high_water.commit
        ));
    }
    for space in Space::ALL.into_iter().filter(|space| *space != Space::Meta) {
        let expected = meta.spaces.get(space as usize).copied().unwrap_or(0);
        let found = read_mark(engine, space)
            .map_err(|error| damaged(home, &error))?
            .commit;
        if found != expected {
            lost.push(format!(
                "\"{}\" ends at commit {found} instead of {expected}",
                space.name()
            ));
        }
    }
    if lost.is_empty() {
        return Ok(());
    }
    Err(OpenError::Lost {
        path: home.path().to_owned(),
        what: lost.join("; "),
    })
}

fn read_mark(engine: &Engine, space: Space) -> Result<MarkRow, StoreError> {
    match engine.get(&engine.view(), space, layout::MARK_KEY)? {
        Some(record) => record.decode(space, layout::MARK_KEY),
        None => Ok(MarkRow::default()),
    }
}

fn read_index(
    home: &Home,
    engine: &Engine,
    options: &EmbeddedOptions,
    found: &mut Found,
    unclean: bool,
) -> Result<(Index, Recovered, Progress), OpenError> {
    let fault = |error| damaged(home, &error);
    let mut index = Index::new(engine.view(), options.window_rows);
    let mut recovered = Recovered {
        origin: found.format.origin,
        unclean,
        ..Recovered::default()
    };
    let view = engine.view();
    let (start, end) = (
        layout::queues_prefix(),
        layout::after_prefix(&layout::queues_prefix()),
    );
    for row in engine.scan(&view, Space::Meta, &start, &end) {
        let (key, record) = row.map_err(fault)?;
        let row: QueueRow = record.decode(Space::Meta, &key).map_err(fault)?;
        let number = layout::tagged_queue(&key);
        let (Some(number), Ok(name)) = (number, row.name.parse::<QueueName>()) else {
            return Err(fault(corrupt(Space::Meta, &key, "names no queue")));
        };
        found.mark.next_queue = found.mark.next_queue.max(number + 1);
        recovered.counts.push((name.clone(), row.counts));
        add_queue(&mut index, number, name, &row);
    }
    recovered.records = read_records(engine, &view).map_err(fault)?;
    let due = read_mark(engine, Space::Due).map_err(fault)?;
    let expiry = read_mark(engine, Space::Expiry).map_err(fault)?;
    let tasks = read_mark(engine, Space::Tasks).map_err(fault)?;
    let dedup = read_mark(engine, Space::Dedup).map_err(fault)?;
    index.due = Window::unread_from(Some(due.low));
    index.expiry = Window::unread_from(Some(expiry.low));
    let MetaMarkRow {
        commit,
        spaces,
        next_queue,
    } = found.mark.clone();
    let progress = Progress {
        commit,
        spaces,
        next_queue,
        task_low: tasks.low.0,
        task_bytes: tasks.total,
        dedup_low: dedup.low.0,
    };
    Ok((index, recovered, progress))
}

/// Every definition row.
fn read_records(
    engine: &Engine,
    view: &Snapshot,
) -> Result<Vec<(RecordKind, String, Bytes)>, StoreError> {
    let start = layout::records_prefix();
    let mut found = Vec::new();
    // All in one piece of memory, which goes in one piece when they have been read: among what
    // stays they would leave holes of no use.
    let mut all = BytesMut::new();
    for row in engine.scan(view, Space::Meta, &start, &layout::after_prefix(&start)) {
        let (key, record) = row?;
        let Some((kind, name)) = layout::split_record(&key) else {
            return Err(corrupt(Space::Meta, &key, "names no definition"));
        };
        let begin = all.len();
        all.extend_from_slice(record.payload());
        found.push((kind, name.to_owned(), begin..all.len()));
    }
    let all = all.freeze();
    let records = found.into_iter();
    Ok(records
        .map(|(kind, name, place)| (kind, name, all.slice(place)))
        .collect())
}

fn add_queue(index: &mut Index, number: QueueNo, name: QueueName, row: &QueueRow) {
    let mut queue = Queue::new(name.clone());
    queue.counts = row.counts.into();
    queue.durable = row.counts.into();
    for Cursors {
        priority,
        ready,
        straggler,
        member,
    } in &row.cursors
    {
        if usize::from(*priority) < queue.lanes.len() {
            *queue.lane(*priority) = Lane {
                ready: Window::unread_from(*ready),
                straggler: Window::unread_from(*straggler),
                member: Window::unread_from(*member),
                ..Lane::default()
            };
        }
    }
    index.numbers.insert(name, number);
    index.queues.insert(number, Box::new(queue));
}

fn write_opening(
    home: &Home,
    engine: &Engine,
    format: FormatRow,
    opening: u32,
) -> Result<(), OpenError> {
    let format_row = encode(Space::Meta, layout::FORMAT_KEY, &format);
    let opening_row = encode(Space::Meta, layout::OPENING_KEY, &opening);
    let rows = [
        ((Space::Meta, layout::FORMAT_KEY.into()), Some(format_row)),
        ((Space::Meta, layout::OPENING_KEY.into()), Some(opening_row)),
    ];
    engine.write(rows).map_err(|fault| {
        let (WriteFault::Write(error) | WriteFault::Sync(error)) = fault;
        engine_fault(home, &error)
    })?;
    Ok(())
}

/// A number that two stores share with a chance of one in four thousand million.
fn random_origin() -> u32 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library's hash keys are drawn from the system's randomness.
    let hash = std::hash::RandomState::new().build_hasher().finish();
    u32::try_from(hash >> 32).unwrap_or(1).max(1)
}

fn disk(home: &Home, error: io::Error) -> OpenError {
    OpenError::Disk {
        path: home.path().to_owned(),
        error,
    }
}

fn damaged(home: &Home, error: &StoreError) -> OpenError {
    OpenError::Damaged {
        path: home.path().to_owned(),
        what: error.to_string(),
    }
}

fn engine_fault(home: &Home, error: &fjall::Error) -> OpenError {
    match error {
        fjall::Error::Io(error) => disk(home, io::Error::new(error.kind(), error.to_string())),
        fjall::Error::Locked => OpenError::InUse {
            path: home.path().to_owned(),
            process: "of unknown id".to_owned(),
        },
        other => OpenError::Damaged {
            path: home.path().to_owned(),
            what: format!("the engine says {other:?}"),
        },
    }
}
