//! Small helpers for the directory's own files: private folders, and files that are there whole or
//! not at all.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

/// Only the host's own user may look into its folders: a compiled component is native code that
/// the host loads.
const PRIVATE: u32 = 0o700;

/// Makes a private folder, with those above it.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE)
        .create(folder)
}

/// Writes a file whole or not at all; `durable` waits until it is on the disk.
pub(crate) fn replace(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    make_private(folder)?;
    let mut file = tempfile::Builder::new()
        .prefix(".new-")
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    if durable {
        file.as_file().sync_data()?;
    }
    file.persist(path).map_err(|error| error.error)?;
    if durable {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Removes a file; that it is gone already is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes what a process that died has left half-written. At start only: nobody else writes here.
pub(crate) fn sweep(folder: &Path) {
    sweep_old(folder, Duration::ZERO);
}

/// The same where others may write at the same time: only what is older than `age` is removed.
pub(crate) fn sweep_old(folder: &Path, age: Duration) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let written = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = || written.is_ok_and(|time| time.elapsed().unwrap_or_default() >= age);
        if entry.file_name().to_string_lossy().starts_with(".new-") && is_old() {
            // What cannot be removed is found again at the next start.
            let _ = fs::remove_file(entry.path());
        }
    }
}
