//! The engine: one fjall database, its keyspaces, and the few things that are asked of it. No other
//! file but `recovery.rs` names fjall's types beyond [`Snapshot`].
//!
//! Reads go through a snapshot, never through the keyspace: a batch becomes visible row by row
//! while fjall applies it, and a read of half a batch would see a message in two states.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, OwnedWriteBatch as WriteBatch,
    PersistMode, Readable, Snapshot,
};

use super::codec::{Record, Row, RowKey};
use super::layout::{Key, Space};
use crate::StoreError;
use crate::fail_point;

/// Bodies from this length on are kept apart from their keys, so that compaction does not move
/// them, in bytes.
const SEPARATION_BYTES: u32 = 16 * 1024;

/// A rotated memtable costs every commit a pause; bodies come fast, so theirs is larger, in bytes.
const BODY_MEMTABLE_BYTES: u64 = 64 * 1024 * 1024;
/// Memtable of every other keyspace, in bytes.
const INDEX_MEMTABLE_BYTES: u64 = 16 * 1024 * 1024;

/// What recovery replays at most, in bytes.
const JOURNAL_BYTES: u64 = 128 * 1024 * 1024;

/// Threads that flush and compact.
const WORKER_THREADS: usize = 2;

/// A row to write; `None` deletes.
pub(super) type Change = ((Space, RowKey), Option<Row>);

/// A row as a scan meets it: the engine may fail, and the row's own checksum may be wrong.
type RawRow = Result<(Key, Result<Record, StoreError>), StoreError>;

/// Why a batch is not on disk.
#[derive(Debug)]
pub(super) enum WriteFault {
    /// The disk is full, or the engine closed itself because it was. Whether the batch is in the
    /// journal shows when the engine is opened again.
    Write(fjall::Error),
    /// The batch is written; a sync of it failed. Nothing that the page cache says is to be
    /// trusted.
    Sync(fjall::Error),
}

/// An open engine.
pub(super) struct Engine {
    database: Database,
    spaces: Vec<Keyspace>,
    rows_read: Arc<AtomicU64>,
}

impl Engine {
    /// Opens or makes the database and its keyspaces.
    pub(super) fn open(
        path: &Path,
        cache_bytes: u64,
        rows_read: Arc<AtomicU64>,
    ) -> Result<Self, fjall::Error> {
        let database = Database::builder(path)
            .manual_journal_persist(true)
            .worker_threads(WORKER_THREADS)
            .cache_size(cache_bytes)
            .max_journaling_size(JOURNAL_BYTES)
            .open()?;
        let mut spaces = Vec::with_capacity(Space::ALL.len());
        for space in Space::ALL {
            spaces.push(database.keyspace(space.name(), || options(space))?);
        }
        Ok(Self {
            database,
            spaces,
            rows_read,
        })
    }

    /// Everything committed so far, and nothing of what comes later.
    pub(super) fn view(&self) -> Snapshot {
        self.database.snapshot()
    }

    fn keyspace(&self, space: Space) -> &Keyspace {
        self.spaces
            .get(space as usize)
            .expect("one keyspace was opened for each space")
    }

    /// One row.
    pub(super) fn get(
        &self,
        view: &Snapshot,
        space: Space,
        key: &[u8],
    ) -> Result<Option<Record>, StoreError> {
        self.rows_read.fetch_add(1, Ordering::Relaxed);
        let value = view
            .get(self.keyspace(space), key)
            .map_err(|error| unavailable(&error))?;
        value
            .map(|value| Record::open(space, key, value))
            .transpose()
    }

    /// Rows from `start` until before `end`, in order or from the back.
    pub(super) fn scan(
        &self,
        view: &Snapshot,
        space: Space,
        start: &[u8],
        end: &[u8],
    ) -> impl DoubleEndedIterator<Item = Result<(Key, Record), StoreError>> + use<> {
        self.scan_raw(view, space, start, end).map(|row| {
            let (key, record) = row?;
            Ok((key, record?))
        })
    }

    /// As [`Engine::scan`], going on behind rows whose own checksum is wrong.
    pub(super) fn scan_raw(
        &self,
        view: &Snapshot,
        space: Space,
        start: &[u8],
        end: &[u8],
    ) -> impl DoubleEndedIterator<Item = RawRow> + use<> {
        let rows_read = self.rows_read.clone();
        // An empty range is asked for where an index has nothing; the engine may not like its ends
        // crossed.
        let range = (start < end).then(|| view.range(self.keyspace(space), start..end));
        range.into_iter().flatten().map(move |guard| {
            rows_read.fetch_add(1, Ordering::Relaxed);
            let (key, value) = guard.into_inner().map_err(|error| unavailable(&error))?;
            let record = Record::open(space, &key, value);
            Ok((key.to_vec(), record))
        })
    }

    /// Writes rows, all or none, and syncs them. One row per key. Answers how long the sync took.
    pub(super) fn write(
        &self,
        rows: impl IntoIterator<Item = Change>,
    ) -> Result<Duration, WriteFault> {
        if fail_point::hit(fail_point::WRITE_ENOSPC) {
            let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(WriteFault::Write(full.into()));
        }
        let rows = rows.into_iter();
        let mut batch = WriteBatch::with_capacity(self.database.clone(), rows.size_hint().0);
        for ((space, key), row) in rows {
            match row {
                Some(row) => batch.insert(self.keyspace(space), key, row),
                None => batch.remove(self.keyspace(space), key),
            }
        }
        if batch.is_empty() {
            return Ok(Duration::ZERO);
        }
        batch.commit().map_err(WriteFault::Write)?;
        // Two steps, to tell them apart: handing over to the kernel may meet a full disk and can be
        // tried again after reopening; a failed sync leaves pages that look written and are not.
        self.database
            .persist(PersistMode::Buffer)
            .map_err(WriteFault::Write)?;
        fail_point::abort_at(fail_point::BEFORE_SYNC_ABORT);
        if fail_point::hit(fail_point::SYNC_FAIL) {
            return Err(WriteFault::Sync(
                std::io::Error::other("the fail point says so").into(),
            ));
        }
        let begun = Instant::now();
        self.database
            .persist(PersistMode::SyncData)
            .map_err(WriteFault::Sync)?;
        let took = begun.elapsed();
        fail_point::abort_at(fail_point::AFTER_SYNC_ABORT);
        Ok(took)
    }

    /// Bytes on disk.
    pub(super) fn disk_used(&self) -> u64 {
        self.database.disk_space().unwrap_or(0)
    }
}

fn options(space: Space) -> KeyspaceCreateOptions {
    let options = KeyspaceCreateOptions::default().manual_journal_persist(true);
    match space {
        Space::Body => options
            .max_memtable_size(BODY_MEMTABLE_BYTES)
            .with_kv_separation(Some(
                KvSeparationOptions::default().separation_threshold(SEPARATION_BYTES),
            )),
        _ => options.max_memtable_size(INDEX_MEMTABLE_BYTES),
    }
}

/// A failed read of the engine as the store's error.
pub(super) fn unavailable(error: &fjall::Error) -> StoreError {
    let text = match error {
        fjall::Error::Io(error) => error.to_string(),
        fjall::Error::Storage(error) => format!("{error:?}"),
        other => format!("{other:?}"),
    };
    // The engine's own checksums: a damaged block is damage, not a passing trouble.
    if text.contains("Checksum") || text.contains("Decode") || text.contains("InvalidHeader") {
        return StoreError::Corrupt(text);
    }
    StoreError::Unavailable(text)
}
