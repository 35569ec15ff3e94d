//! The data directory as a place: its lock, its files beside the engine, and the room on its disk.
//!
//! | file | meaning |
//! |---|---|
//! | `format` | what kind of directory this is, as text; written last when it is made |
//! | `lock` | locked while a process has the store; holds its id |
//! | `running` | there from opening until a clean end: found at opening, the last end was unclean |
//! | `high-water` | two slots, written in turn: the last commit known as durable, the opening |
//! | `ballast` | given up when the disk is full |
//! | `engine/` | the engine's own |
//!
//! The high-water file exists because the engine drops a damaged middle of its journal without a
//! word: an engine that knows less than this file has lost something. It is written beside the
//! commits, about once a second, so it never claims too much.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::options::{EmbeddedOptions, OpenError};
use crate::lock_file;

/// The newest format that this version reads and the one it writes.
pub(super) const FORMAT: u32 = 2;

const FORMAT_FILE: &str = "format";
const FORMAT_WORDS: &str = "oncue store format ";
const LOCK_FILE: &str = "lock";
const RUNNING_FILE: &str = "running";
const HIGH_WATER_FILE: &str = "high-water";
const BALLAST_FILE: &str = "ballast";
const ENGINE_FOLDER: &str = "engine";

/// What stands in the `running` file after a failed sync.
const SYNC_FAILED: &str = "a sync failed\n";

/// Bytes of one slot of the high-water file: commit, opening, checksum.
const SLOT_BYTES: usize = 16;

/// What is known to be durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HighWater {
    pub(super) commit: u64,
    pub(super) opening: u32,
}

impl HighWater {
    fn encode(self) -> [u8; SLOT_BYTES] {
        let mut slot = [0; SLOT_BYTES];
        let (front, sum) = slot.split_at_mut(12);
        let (commit, opening) = front.split_at_mut(8);
        commit.copy_from_slice(&self.commit.to_le_bytes());
        opening.copy_from_slice(&self.opening.to_le_bytes());
        sum.copy_from_slice(&crc32c::crc32c(front).to_le_bytes());
        slot
    }

    fn decode(slot: &[u8]) -> Option<Self> {
        let (front, sum) = slot.split_at_checked(12)?;
        let sum = u32::from_le_bytes(sum.try_into().ok()?);
        let (commit, opening) = front.split_first_chunk::<8>()?;
        let opening = u32::from_le_bytes(opening.try_into().ok()?);
        (crc32c::crc32c(front) == sum).then_some(Self {
            commit: u64::from_le_bytes(*commit),
            opening,
        })
    }
}

/// A data directory that this process has locked.
pub(super) struct Home {
    path: PathBuf,
    /// Held for its lock, until the end.
    lock: Mutex<Option<File>>,
    high_water: Mutex<(File, usize)>,
    ballast_bytes: u64,
    reserve_bytes: u64,
    free_bytes: Option<std::sync::Arc<AtomicU64>>,
}

/// What a directory was found to be.
pub(super) struct Arrival {
    pub(super) home: Home,
    /// It was empty.
    pub(super) is_new: bool,
    /// The last end was not a clean one.
    pub(super) unclean: bool,
    /// And it was a failed sync.
    pub(super) sync_failed: bool,
    pub(super) high_water: HighWater,
}

impl Home {
    /// Locks a directory, and finds out what it is. Makes it when it does not exist.
    pub(super) fn enter(path: &Path, options: &EmbeddedOptions) -> Result<Arrival, OpenError> {
        let disk = |error| OpenError::Disk {
            path: path.to_owned(),
            error,
        };
        std::fs::create_dir_all(path).map_err(disk)?;
        check_contents(path)?;
        // Of another version not even the lock is touched.
        check_format(path)?;
        let lock = lock(path)?;
        // Asked again: only now nobody else can make it one.
        let is_new = !check_format(path)?;
        let engine = path.join(ENGINE_FOLDER);
        if is_new && engine.exists() {
            // It was left by a first opening that did not come to its end: nothing was ever
            // acknowledged from it.
            std::fs::remove_dir_all(&engine).map_err(disk)?;
        }
        let running = std::fs::read_to_string(path.join(RUNNING_FILE)).ok();
        let unclean = running.is_some() && !is_new;
        let sync_failed = running.is_some_and(|text| text == SYNC_FAILED);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join(HIGH_WATER_FILE))
            .map_err(disk)?;
        let (high_water, slot) = read_high_water(&mut file).map_err(disk)?;
        let home = Self {
            path: path.to_owned(),
            lock: Mutex::new(Some(lock)),
            high_water: Mutex::new((file, slot)),
            ballast_bytes: options.ballast_bytes,
            reserve_bytes: options.reserve_bytes,
            free_bytes: options.free_bytes.clone(),
        };
        Ok(Arrival {
            home,
            is_new,
            unclean,
            sync_failed,
            high_water,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn engine_path(&self) -> PathBuf {
        self.path.join(ENGINE_FOLDER)
    }

    /// Makes it a data directory of this format: the last step of making one.
    pub(super) fn write_format(&self) -> io::Result<()> {
        let path = self.path.join(FORMAT_FILE);
        let temporary = self.path.join("format.new");
        let mut file = File::create(&temporary)?;
        file.write_all(format!("{FORMAT_WORDS}{FORMAT}\n").as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, &path)?;
        self.sync_folder()
    }

    /// Whether the directory says that it is of the format that is written now.
    pub(super) fn is_of_newest_format(&self) -> bool {
        let text = std::fs::read_to_string(self.path.join(FORMAT_FILE));
        text.is_ok_and(|text| text == format!("{FORMAT_WORDS}{FORMAT}\n"))
    }

    /// Another process may have the directory.
    pub(super) fn unlock(&self) {
        self.lock.lock().take();
    }

    /// From now on an end is unclean, until [`Home::mark_clean`].
    pub(super) fn mark_running(&self) -> io::Result<()> {
        File::create(self.path.join(RUNNING_FILE))?.sync_all()?;
        self.sync_folder()
    }

    /// A sync has failed: the next opening must not trust what the kernel shows of the journal.
    /// Not synced: it is meant for the case that the kernel lives on.
    pub(super) fn mark_sync_failed(&self) {
        if let Err(error) = std::fs::write(self.path.join(RUNNING_FILE), SYNC_FAILED) {
            tracing::error!(%error, "the failed sync cannot be noted for the next opening");
        }
    }

    /// The end is clean.
    pub(super) fn mark_clean(&self) -> io::Result<()> {
        std::fs::remove_file(self.path.join(RUNNING_FILE))?;
        self.sync_folder()
    }

    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// Notes what is durable. The older of two slots is written over: no new space is needed, and a
    /// torn write leaves the other.
    pub(super) fn write_high_water(&self, high_water: HighWater) -> io::Result<()> {
        let mut guard = self.high_water.lock();
        let (file, slot) = &mut *guard;
        file.write_all_at(&high_water.encode(), (*slot * SLOT_BYTES) as u64)?;
        file.sync_data()?;
        *slot = 1 - *slot;
        Ok(())
    }

    /// Bytes free for an ordinary user.
    pub(super) fn free_bytes(&self) -> io::Result<u64> {
        if let Some(free) = &self.free_bytes {
            return Ok(free.load(Ordering::Relaxed));
        }
        let found = rustix::fs::statvfs(&self.path)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// True when puts must be refused.
    pub(super) fn is_full(&self, free: u64) -> bool {
        free < self.reserve_bytes
    }

    /// True when there is room for puts, and for the ballast besides.
    pub(super) fn has_room(&self, free: u64) -> bool {
        let ballast = if self.ballast().exists() {
            0
        } else {
            self.ballast_bytes
        };
        free >= self.reserve_bytes.saturating_add(ballast)
    }

    fn ballast(&self) -> PathBuf {
        self.path.join(BALLAST_FILE)
    }

    /// Sets space aside, when there is enough.
    pub(super) fn make_ballast(&self) {
        if self.ballast_bytes == 0 || self.ballast().exists() {
            return;
        }
        let make = || -> io::Result<()> {
            if !self.has_room(self.free_bytes()?) {
                return Ok(());
            }
            let file = File::create(self.ballast())?;
            rustix::fs::fallocate(
                &file,
                rustix::fs::FallocateFlags::empty(),
                0,
                self.ballast_bytes,
            )?;
            Ok(())
        };
        if let Err(error) = make() {
            tracing::warn!(%error, "no space can be set aside for a full disk");
            self.drop_ballast();
        }
    }

    /// Gives up what was set aside.
    pub(super) fn drop_ballast(&self) {
        match std::fs::remove_file(self.ballast()) {
            Ok(()) => tracing::warn!(
                "the disk is full; the ballast file was given up so that gets can go on"
            ),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::error!(%error, "the ballast file cannot be removed"),
        }
    }
}

/// Refuses a directory in which something else stands.
fn check_contents(path: &Path) -> Result<(), OpenError> {
    let known = [
        FORMAT_FILE,
        "format.new",
        LOCK_FILE,
        RUNNING_FILE,
        HIGH_WATER_FILE,
        BALLAST_FILE,
        ENGINE_FOLDER,
        "lost+found",
    ];
    let disk = |error| OpenError::Disk {
        path: path.to_owned(),
        error,
    };
    if path.join(FORMAT_FILE).exists() {
        return Ok(());
    }
    let mut strange = Vec::new();
    for entry in std::fs::read_dir(path).map_err(disk)? {
        let name = entry
            .map_err(disk)?
            .file_name()
            .to_string_lossy()
            .into_owned();
        if !known.contains(&name.as_str()) {
            strange.push(name);
        }
    }
    strange.sort();
    match strange.first() {
        None => Ok(()),
        Some(first) => Err(OpenError::Foreign {
            path: path.to_owned(),
            found: match strange.len() {
                1 => format!("\"{first}\""),
                count => format!("\"{first}\" and {} more", count - 1),
            },
        }),
    }
}

/// Whether it is a data directory, when it is one that this version can read.
fn check_format(path: &Path) -> Result<bool, OpenError> {
    let text = match std::fs::read_to_string(path.join(FORMAT_FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => {
            return Err(OpenError::Disk {
                path: path.join(FORMAT_FILE),
                error,
            });
        }
    };
    let found = text.strip_prefix(FORMAT_WORDS).unwrap_or(&text).trim();
    match found.parse::<u32>() {
        Ok(version) if (1..=FORMAT).contains(&version) => Ok(true),
        _ => {
            let found = found.chars().take(40).collect();
            Err(OpenError::Version {
                path: path.to_owned(),
                found,
                known: FORMAT,
            })
        }
    }
}

fn lock(path: &Path) -> Result<File, OpenError> {
    let name = path.join(LOCK_FILE);
    let disk = |error| OpenError::Disk {
        path: name.clone(),
        error,
    };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&name)
        .map_err(disk)?;
    match lock_file::lock(&file) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut process = String::new();
            let known = file.read_to_string(&mut process).is_ok() && !process.trim().is_empty();
            let process = if known {
                process.trim().to_owned()
            } else {
                "of unknown id".to_owned()
            };
            return Err(OpenError::InUse {
                path: path.to_owned(),
                process,
            });
        }
        Err(TryLockError::Error(error)) => return Err(disk(error)),
    }
    file.set_len(0)
        .and_then(|()| file.write_all_at(format!("{}\n", std::process::id()).as_bytes(), 0))
        .map_err(disk)?;
    Ok(file)
}

/// The higher of the two slots that are whole, and the slot to write next.
fn read_high_water(file: &mut File) -> io::Result<(HighWater, usize)> {
    let mut bytes = Vec::new();
    file.take(2 * SLOT_BYTES as u64).read_to_end(&mut bytes)?;
    let slots = bytes.chunks(SLOT_BYTES).enumerate();
    let whole = slots.filter_map(|(slot, bytes)| Some((HighWater::decode(bytes)?, slot)));
    let newest = whole.max_by_key(|(high_water, _)| (high_water.opening, high_water.commit));
    Ok(
        newest.map_or((HighWater::default(), 0), |(high_water, slot)| {
            (high_water, 1 - slot)
        }),
    )
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may end at the first surprise")]
mod tests {
    use super::*;

    #[test]
    fn a_torn_slot_leaves_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("high-water");
        let older = HighWater {
            commit: 7,
            opening: 1,
        };
        let newer = HighWater {
            commit: 9,
            opening: 1,
        };
        let mut bytes = [older.encode(), newer.encode()].concat();
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(
            read_high_water(&mut File::open(&path).unwrap()).unwrap(),
            (newer, 0)
        );
        bytes[20] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(
            read_high_water(&mut File::open(&path).unwrap()).unwrap(),
            (older, 1)
        );
        std::fs::write(&path, &bytes[..5]).unwrap();
        assert_eq!(
            read_high_water(&mut File::open(&path).unwrap()).unwrap(),
            (HighWater::default(), 0)
        );
    }
}
