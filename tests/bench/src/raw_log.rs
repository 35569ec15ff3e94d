//! What a disk and a guest allow together: a file that records are appended to, group after group,
//! with nothing that could find them again.
//!
//! Each record has a checksum, each group one write and one sync. What a store does beside that
//! (an index, cursors, checks) is what the comparison shows.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use oncue_manager::tasks::Delivered;
use oncue_runtime::bare::Bare;

use crate::cpu::Cpu;
use crate::floor::Cost;

/// Bytes beside the body in a record: about what a message's header takes.
const HEADER: usize = 48;

/// A file that is only appended to.
pub(crate) struct RawLog {
    file: File,
    record: Vec<u8>,
    group: Vec<u8>,
}

impl RawLog {
    /// A new file in a folder, for records with bodies of so many bytes.
    pub(crate) fn create(directory: &Path, body: usize) -> anyhow::Result<Self> {
        let path = directory.join("raw.log");
        let file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .open(&path)
            .with_context(|| format!("make {}", path.display()))?;
        Ok(Self {
            file,
            record: vec![b'x'; HEADER + body],
            group: Vec::new(),
        })
    }

    /// Appends so many records and syncs once.
    pub(crate) fn append(&mut self, records: usize) -> anyhow::Result<()> {
        self.group.clear();
        for _ in 0..records {
            let sum = crc32c::crc32c(&self.record);
            self.group.extend_from_slice(&sum.to_le_bytes());
            self.group.extend_from_slice(&self.record);
        }
        self.file.write_all(&self.group).context("append")?;
        self.file.sync_data().context("sync")
    }
}

/// Messages on their way, by what they wait for.
#[derive(Default)]
struct Stages {
    /// Their first record.
    to_put: usize,
    /// Their call.
    to_call: usize,
    /// Their second record.
    to_settle: usize,
    closed: bool,
    failed: Option<String>,
}

/// What the committer and the guests' threads share.
#[derive(Default)]
struct Shared {
    stages: Mutex<Stages>,
    committer: Condvar,
    guests: Condvar,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Stages> {
        // A panic elsewhere ends the run anyway.
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a message costs the best that a queue manager could be here: two records a message, in
/// groups of all that wait, and one guest's call between them on so many threads; always so many
/// messages in flight.
pub(crate) fn ceiling(
    log: &mut RawLog,
    bare: &Bare,
    message: &Arc<Delivered>,
    in_flight: usize,
    threads: usize,
    (warm, measure): (Duration, Duration),
) -> anyhow::Result<Cost> {
    let shared = Shared::default();
    shared.lock().to_put = in_flight;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let shared = &shared;
            scope.spawn(move || guests(shared, thread, bare, message));
        }
        let taken = commit(log, &shared, warm, measure);
        shared.lock().closed = true;
        shared.guests.notify_all();
        taken
    })
}

/// The committer: until the time is over.
fn commit(
    log: &mut RawLog,
    shared: &Shared,
    warm: Duration,
    measure: Duration,
) -> anyhow::Result<Cost> {
    let mut begin = Instant::now() + warm;
    let (mut done, mut counting, mut before) = (0_u64, false, Cpu::now());
    loop {
        let (puts, settles) = next_group(shared)?;
        log.append(puts + settles)?;
        done += settles as u64;
        let mut stages = shared.lock();
        // Each that is done makes room for another.
        stages.to_put += settles;
        stages.to_call += puts;
        drop(stages);
        shared.guests.notify_all();
        let now = Instant::now();
        if !counting && now >= begin {
            (begin, done, counting, before) = (now, 0, true, Cpu::now());
        }
        if counting && now.duration_since(begin) >= measure && done > 0 {
            #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
            let done = done as f64;
            return Ok(Cost {
                us: now.duration_since(begin).as_secs_f64() * 1e6 / done,
                cpu: Cpu::now().since(&before).system_us() / done,
            });
        }
    }
}

/// Takes all that waits for the disk.
fn next_group(shared: &Shared) -> anyhow::Result<(usize, usize)> {
    let mut stages = shared.lock();
    loop {
        if let Some(why) = stages.failed.take() {
            anyhow::bail!(why);
        }
        if stages.to_put + stages.to_settle > 0 {
            let puts = std::mem::take(&mut stages.to_put);
            return Ok((puts, std::mem::take(&mut stages.to_settle)));
        }
        stages = shared
            .committer
            .wait(stages)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

/// A thread of guests.
fn guests(shared: &Shared, thread: usize, bare: &Bare, message: &Arc<Delivered>) {
    loop {
        let mut stages = shared.lock();
        while stages.to_call == 0 || stages.closed {
            if stages.closed {
                return;
            }
            stages = shared
                .guests
                .wait(stages)
                .unwrap_or_else(PoisonError::into_inner);
        }
        stages.to_call -= 1;
        drop(stages);
        let ran = bare.run(thread, message, 1);
        let mut stages = shared.lock();
        match ran {
            Ok(end) if end.puts == 1 => stages.to_settle += 1,
            Ok(end) => stages.failed = Some(format!("a guest put {} messages", end.puts)),
            Err(error) => stages.failed = Some(error.to_string()),
        }
        drop(stages);
        shared.committer.notify_one();
    }
}
