//! The engine's journal files, before the engine sees them.
//!
//! Each is copied to a new file and synced, and the engine gets the copy. Two reasons:
//!
//! - The last end may have been a failed sync, after which the kernel shows pages as clean that
//!   never reached the disk: what the engine reads back then would be gone at the next power cut,
//!   with everything written behind it. What was read is now in new pages, and the sync of new
//!   pages is a true one. (Tables need no copy: the engine syncs each before it drops the journal
//!   that stands for it, and stops at the first failure.)
//! - The engine cuts a damaged journal at the damage without a word. When what is left turns out to
//!   be less than was durable, the originals are put back, so that a person can still look at all
//!   of it.
//!
//! Also here: a batch that a power cut tore in the middle has its end on disk and not its inside.
//! The engine refuses such a journal; nobody was answered for that batch, so it is cut off, if it
//! is the last.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes copied at once.
const COPY_BYTES: usize = 1024 * 1024;

const JOURNAL: &str = "jnl";
const KEPT: &str = "kept";
const COPY: &str = "copy";

/// The originals, until the store is open.
pub(super) struct Kept {
    folder: PathBuf,
}

impl Kept {
    /// Copies all journals. An opening that did not come to its end before is undone first.
    pub(super) fn set_aside(folder: &Path) -> io::Result<Self> {
        let kept = Self {
            folder: folder.to_owned(),
        };
        if !folder.exists() {
            return Ok(kept);
        }
        kept.put_back()?;
        for path in files(folder, JOURNAL)? {
            let copy = path.with_extension(COPY);
            copy_file(&path, &copy)?;
            std::fs::hard_link(&path, path.with_extension(KEPT))?;
            std::fs::rename(&copy, &path)?;
        }
        File::open(folder)?.sync_all()?;
        Ok(kept)
    }

    /// The engine gets the originals.
    pub(super) fn without_copies(folder: &Path) -> io::Result<Self> {
        let kept = Self {
            folder: folder.to_owned(),
        };
        kept.put_back()?;
        for path in files(folder, COPY)? {
            std::fs::remove_file(path)?;
        }
        Ok(kept)
    }

    /// Puts the originals back.
    pub(super) fn put_back(&self) -> io::Result<()> {
        for path in files(&self.folder, KEPT)? {
            std::fs::rename(&path, path.with_extension(JOURNAL))?;
        }
        Ok(())
    }

    /// The store is open and the copies are good.
    pub(super) fn forget(self) -> io::Result<()> {
        for path in files(&self.folder, KEPT)? {
            std::fs::remove_file(path)?;
        }
        Ok(())
    }

    /// Cuts the newest journal, of which the engine has found that a batch is damaged, before that
    /// batch. Unless `any` is set only the last batch may go. `try_open` says whether the engine
    /// takes it now. False when nothing helped; the journals are then to be put back.
    pub(super) fn cut(&self, any: bool, try_open: &mut dyn FnMut() -> bool) -> io::Result<bool> {
        let mut journals = files(&self.folder, JOURNAL)?;
        journals.sort_by_key(|path| {
            path.file_stem()
                .and_then(|stem| stem.to_str())
                .and_then(|stem| stem.parse::<u64>().ok())
        });
        let Some(newest) = journals.pop() else {
            return Ok(false);
        };
        let original = newest.with_extension(KEPT);
        if !original.exists() {
            return Ok(false);
        }
        let walk = walk(&mut BufReader::new(File::open(&original)?))?;
        let cut_at = |position: u64| -> io::Result<()> {
            // The engine may have cut the copy further: each try starts from the original.
            copy_file(&original, &newest)?;
            let file = OpenOptions::new().write(true).open(&newest)?;
            file.set_len(position)?;
            file.sync_all()
        };
        if !any {
            let Some(last) = walk.starts.last().filter(|_| walk.is_whole) else {
                return Ok(false);
            };
            cut_at(*last)?;
            return Ok(try_open());
        }
        // The longest front that the engine takes. It takes any front of one that it takes.
        let (mut good, mut bad) = (0, walk.starts.len());
        while good + 1 < bad {
            let middle = usize::midpoint(good, bad);
            cut_at(walk.starts.get(middle).copied().unwrap_or(0))?;
            if try_open() {
                good = middle
            } else {
                bad = middle
            }
        }
        cut_at(walk.starts.get(good).copied().unwrap_or(0))?;
        Ok(try_open())
    }
}

fn files(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|other| other == extension) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Copies a file through this process's memory, so that no file system shares the old blocks with
/// the new file. Zeros are left out: the engine reserves the rest of a journal with them.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut target = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(to)?;
    let mut buffer = vec![0; COPY_BYTES];
    let mut length = 0_u64;
    loop {
        let read = source.read(&mut buffer)?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        if bytes.iter().any(|byte| *byte != 0) {
            target.seek(SeekFrom::Start(length))?;
            target.write_all(bytes)?;
        }
        length += bytes.len() as u64;
    }
    target.set_len(length)?;
    target.sync_all()
}

/// Where the batches of a journal start.
#[derive(Debug, Default, PartialEq, Eq)]
struct Walk {
    starts: Vec<u64>,
    /// After the last batch there is nothing but reserved zeros.
    is_whole: bool,
}

/// Walks the form of a journal (of fjall 3.1): entries by tag and length. Checksums are the
/// engine's business.
fn walk(reader: &mut impl Read) -> io::Result<Walk> {
    let mut walk = Walk::default();
    let mut position = 0_u64;
    loop {
        let mut tag = [0];
        if reader.read(&mut tag)? == 0 {
            walk.is_whole = true;
            return Ok(walk);
        }
        let length = match tag {
            [1] => {
                walk.starts.push(position);
                skip(reader, 12)?.map(|_| 13)
            }
            [2] => skip_item(reader)?,
            [3] => skip(reader, 12)?.map(|_| 13),
            [4] => skip(reader, 8)?.map(|_| 9),
            [0] => {
                walk.is_whole = rest_is_zero(reader)?;
                return Ok(walk);
            }
            _ => None,
        };
        match length {
            Some(length) => position += length,
            None => return Ok(walk),
        }
    }
}

/// An item: type, compression, keyspace, three lengths, key, value.
fn skip_item(reader: &mut impl Read) -> io::Result<Option<u64>> {
    let mut front = [0; 20];
    if let Err(error) = reader.read_exact(&mut front) {
        return ended(error).map(|()| None);
    }
    let [
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        k0,
        k1,
        _,
        _,
        _,
        _,
        v0,
        v1,
        v2,
        v3,
    ] = front;
    let key = u64::from(u16::from_le_bytes([k0, k1]));
    let value = u64::from(u32::from_le_bytes([v0, v1, v2, v3]));
    Ok(skip(reader, key + value)?.map(|_| 21 + key + value))
}

fn skip(reader: &mut impl Read, length: u64) -> io::Result<Option<()>> {
    let skipped = io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
    Ok((skipped == length).then_some(()))
}

fn ended(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        Ok(())
    } else {
        Err(error)
    }
}

fn rest_is_zero(reader: &mut impl Read) -> io::Result<bool> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = reader.read(&mut buffer)?;
        match buffer.get(..read) {
            None | Some([]) => return Ok(true),
            Some(bytes) if bytes.iter().any(|byte| *byte != 0) => return Ok(false),
            Some(_) => {}
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may end at the first surprise")]
mod tests {
    use super::*;

    fn batch(values: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![1];
        bytes.extend([0; 12]);
        for value in values {
            bytes.extend([2, 0, 0]);
            bytes.extend(1_u64.to_le_bytes());
            bytes.extend(3_u16.to_le_bytes());
            bytes.extend(u32::try_from(value.len()).unwrap().to_le_bytes());
            bytes.extend(u32::try_from(value.len()).unwrap().to_le_bytes());
            bytes.extend(b"key");
            bytes.extend(*value);
        }
        bytes.push(3);
        bytes.extend([0; 12]);
        bytes
    }

    fn check(bytes: &[u8], starts: &[u64], is_whole: bool) {
        let found = walk(&mut &bytes[..]).unwrap();
        assert_eq!(
            found,
            Walk {
                starts: starts.to_vec(),
                is_whole
            }
        );
    }

    #[test]
    fn a_journal_is_walked_batch_by_batch() {
        let (first, second) = (batch(&[b"a", b"bcd"]), batch(&[b""]));
        let end = first.len() as u64;
        check(&[], &[], true);
        check(&first, &[0], true);
        check(&[first.clone(), second.clone()].concat(), &[0, end], true);
        check(
            &[first.clone(), second.clone(), vec![0; 100_000]].concat(),
            &[0, end],
            true,
        );
        check(
            &[first.clone(), second.clone(), vec![0; 100], vec![1]].concat(),
            &[0, end],
            false,
        );
        check(&[first, second, vec![9]].concat(), &[0, end], false);
    }
}
