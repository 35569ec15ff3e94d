//! The embedded store: durable, in one directory of one process, on the fjall engine.
//!
//! | file | what it does |
//! |---|---|
//! | `layout`, `codec`, `body_row` | keys and rows |
//! | `engine` | the only user of the engine |
//! | `window`, `index`, `group` | what is in memory: fronts of indexes, who holds what |
//! | `warm`, `recent`, `hash` | what spares the hot path a read or a slow hash |
//! | `select`, `look`, `browse` | takes, claims and looks |
//! | `early` | messages that a task may begin on before they are durable |
//! | `check`, `plan`, `group_plan`, `forget` | units of work become one batch |
//! | `committer`, `prepared`, `apply` | the batch becomes durable, then visible |
//! | `recovery`, `journal`, `rebuild` | opening, also after damage |
//! | `guard`, `shared`, `options` | the directory, the disk's room, the threads |
//!
//! A persistent message is on disk before its commit is answered. One that is not lives in memory,
//! within [`EmbeddedOptions::volatile_bytes_max`]; it is counted and taken like the others and is
//! gone after the end. `commit` never waits: while 256 MiB of units wait for the disk, an
//! application's puts are refused with [`CommitError::Busy`](crate::CommitError::Busy).
//!
//! Refuses to do: decide anything about messages. Neighbour: `oncue_core::queue::model`, whose
//! rules it follows.

mod apply;
mod body_row;
mod browse;
mod check;
mod codec;
mod committer;
mod due;
mod early;
mod engine;
mod facts;
mod fill;
mod finish;
mod forget;
mod group;
mod group_plan;
mod guard;
mod index;
mod journal;
mod layout;
mod look;
mod message_plan;
mod options;
mod plan;
mod prepared;
mod rebuild;
mod recent;
mod recovery;
mod sealed;
mod select;
mod shared;
mod store;
mod task_plan;
mod warm;
mod window;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use oncue_core::message::Message;
use oncue_core::unit_of_work::{Chain, OwnerId};
use parking_lot::Mutex;

pub use self::options::{EmbeddedOptions, OpenError};

use self::committer::Committer;
use self::engine::Engine;
use self::facts::Facts;
use self::index::Index;
use self::layout::QueueNo;
use self::look::read_message;
use self::plan::{Batch, Progress};
use self::shared::Shared;
use crate::{Recovered, Select, StoreError, Take, fail_point};

/// A durable store in a directory.
///
/// Dropping it without [`crate::Store::close`] ends its threads and leaves the directory as an
/// unclean end would.
pub struct EmbeddedStore {
    shared: Arc<Shared>,
    recovered: Mutex<Recovered>,
    opening: u32,
    threads: Mutex<Option<Threads>>,
}

struct Threads {
    committer: JoinHandle<Progress>,
    guard: JoinHandle<()>,
}

impl EmbeddedStore {
    /// Opens the store in `path`, and makes it when there is none. One process at a time has it.
    ///
    /// # Errors
    /// [`OpenError`]; the directory is then as it was.
    pub fn open(path: &Path, options: EmbeddedOptions) -> Result<Self, OpenError> {
        let (home, opened) = recovery::open(path, &options)?;
        home.make_ballast();
        let shared = Arc::new(Shared::new(
            options,
            home,
            opened.engine,
            opened.index,
            opened.recovered.origin,
            opened.first_fresh,
            &opened.progress,
            opened.rows_read,
        ));
        let opening = opened.opening;
        let known = guard::HighWater {
            commit: opened.progress.commit,
            opening,
        };
        let thread = |error| OpenError::Disk {
            path: path.to_owned(),
            error,
        };
        let committer = Committer::new(shared.clone(), opened.progress);
        let committer = std::thread::Builder::new()
            .name("oncue-committer".to_owned())
            .spawn(move || committer.run())
            .map_err(thread)?;
        let guarded = shared.clone();
        shared.look_at_disk();
        let guard = std::thread::Builder::new()
            .name("oncue-disk-guard".to_owned())
            .spawn(move || guarded.guard(known))
            .map_err(thread)?;
        let threads = Mutex::new(Some(Threads { committer, guard }));
        Ok(Self {
            shared,
            recovered: Mutex::new(opened.recovered),
            opening,
            threads,
        })
    }

    /// Rows read from disk since the store was opened. A measure of work that no clock distorts.
    #[must_use]
    pub fn rows_read(&self) -> u64 {
        self.shared.rows_read.load(Ordering::Relaxed)
    }

    /// From now on units are accepted and not written, or are written again. For tests of what
    /// happens in between.
    pub fn pause_commits(&self, paused: bool) {
        self.shared.inbox.lock().paused = paused;
        self.shared.arrived.notify_one();
    }

    /// Calls `f` with the engine and the index locked, then tells the sink.
    fn with<R>(
        &self,
        f: impl FnOnce(&Engine, &mut Index) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let engine = self.shared.engine.read();
        let engine = engine.as_ref().ok_or_else(closed)?;
        let mut index = self.shared.index.lock();
        let result = f(engine, &mut index);
        index.tell();
        result
    }

    /// Ends the threads. `None` when they have ended before.
    fn end_threads(&self) -> Option<Progress> {
        let threads = self.threads.lock().take()?;
        self.shared.inbox.lock().closing = true;
        self.shared.arrived.notify_all();
        self.shared.ending.notify_all();
        let progress = threads.committer.join().ok();
        if threads.guard.join().is_err() {
            tracing::error!("the disk guard has ended with a panic");
        }
        progress
    }

    /// Takes messages; with a chain, after the durable ones also those that are not yet.
    fn take_with(&self, take: &Take, chain: Option<&Chain>) -> Result<Vec<Message>, StoreError> {
        let engine = self.shared.engine.read();
        let engine = engine.as_ref().ok_or_else(closed)?;
        let mut index = self.shared.index.lock();
        let chosen = index.take(engine, take);
        let number = index.number(&take.queue);
        let early = match (&chosen, chain) {
            (Ok(chosen), Some(chain)) => {
                self.take_young(&index, take, chain, take.max.saturating_sub(chosen.len()))
            }
            _ => Vec::new(),
        };
        index.tell();
        drop(index);
        let (chosen, Some(number)) = (chosen?, number) else {
            return Ok(early);
        };
        let mut messages = match self.read_chosen(engine, take.owner, number, chosen) {
            Ok(messages) => messages,
            Err(error) => {
                let mut given_back = self.shared.early.lock();
                for message in &early {
                    given_back.release(take.owner, message.header.id.sequence.0);
                }
                return Err(error);
            }
        };
        messages.extend(early);
        if !messages.is_empty() {
            fail_point::abort_at(fail_point::TAKE_ABORT);
        }
        Ok(messages)
    }

    /// Takes messages that are not yet durable. The index is locked: none of them becomes durable
    /// meanwhile, so what is taken is behind what is durable.
    fn take_young(&self, index: &Index, take: &Take, chain: &Chain, max: usize) -> Vec<Message> {
        let number = index.number(&take.queue);
        let Some(queue) = number.and_then(|number| index.queues.get(&number)) else {
            return Vec::new();
        };
        if take.select != Select::Next || self.shared.stop_reason().is_some() {
            return Vec::new();
        }
        self.shared.follow_early(&take.queue);
        if max == 0 {
            return Vec::new();
        }
        let depth = u64::try_from(queue.counts.depth()).unwrap_or(0);
        let mut early = self.shared.early.lock();
        early.take(&take.queue, depth, (take.owner, chain), max)
    }

    /// Reads the messages that a take has chosen; gives them all back when one cannot be read.
    fn read_chosen(
        &self,
        engine: &Engine,
        owner: OwnerId,
        number: QueueNo,
        chosen: Vec<select::Chosen>,
    ) -> Result<Vec<Message>, StoreError> {
        if chosen.iter().all(|one| one.message.is_some()) {
            return Ok(chosen.into_iter().filter_map(|one| one.message).collect());
        }
        let view = self.shared.index.lock().view.clone();
        let mut messages = Vec::with_capacity(chosen.len());
        let mut read: Vec<Facts> = Vec::new();
        let sequences: Vec<u64> = chosen.iter().map(|one| one.sequence).collect();
        for one in chosen {
            if let Some(message) = one.message {
                messages.push(message);
                continue;
            }
            match read_message(engine, &view, number, one.sequence, &one.standing) {
                Ok((facts, message)) => {
                    read.push(facts);
                    messages.push(message);
                }
                Err(error) => {
                    let mut index = self.shared.index.lock();
                    if matches!(error, StoreError::Corrupt(_)) {
                        // Reported once; from now on takes pass over it, so that it does not block
                        // the queue.
                        index.damaged.insert(one.sequence);
                    }
                    for sequence in sequences {
                        index.let_go(engine, sequence);
                    }
                    index.tell();
                    return Err(error);
                }
            }
        }
        let mut index = self.shared.index.lock();
        for facts in read {
            if let Some(held) = index.held.get_mut(&facts.sequence)
                && held.owner == owner
            {
                held.facts = facts;
            }
        }
        Ok(messages)
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("it is closed".to_owned())
}

/// Writes the queue rows whose cursors have moved since. Gives the last commit.
fn write_last(shared: &Shared, engine: &Engine, progress: Progress) -> Result<u64, String> {
    let index = shared.index.lock();
    let mut batch = Batch::new(progress);
    for (number, queue) in &index.queues {
        if queue.stale {
            batch.queues.entry(*number).or_default();
        }
    }
    let durable = shared.durable_commit.load(Ordering::Acquire);
    if batch.queues.is_empty() && batch.progress.commit == durable {
        return Ok(durable);
    }
    batch.finish_last(&index);
    engine
        .write(batch.changes())
        .map_err(|fault| format!("{fault:?}"))?;
    Ok(batch.progress.commit)
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.end_threads();
        // The engine ends before the lock of the directory is given up.
        *self.shared.engine.write() = None;
    }
}
