//! Reading the audit log from its end backwards: the last entries, or those before a point.

use std::io::{self, Read as _, Seek as _, SeekFrom};

use super::read::{AuditQuery, Cursor, MAX_SCAN, Page, Part, entry, time_of};

/// Bytes that are read at a time. No line is as long.
const CHUNK: u64 = 256 << 10;

/// Reads the last entries of the parts, the oldest part first; those before the query's point, if
/// it names one.
pub(super) fn read(parts: &mut [Part], query: &AuditQuery) -> io::Result<Page> {
    let mut looking = Looking {
        query,
        found: Vec::new(),
        left: MAX_SCAN,
        is_over: false,
    };
    let (mut parts, mut end) = match query.before {
        None => (parts, None),
        Some(before) => {
            let at = parts.iter().position(|part| part.inode == before.file);
            // A file that is gone was the oldest: nothing is left before it.
            let count = at.map_or(0, |at| at + 1);
            (&mut parts[..count], Some(before))
        }
    };
    let newest = match (end, parts.last_mut()) {
        (Some(before), _) => before,
        (None, Some(part)) => part.whole_lines()?,
        (None, None) => Cursor::START,
    };
    let mut previous = None;
    while let Some((part, older)) = parts.split_last_mut() {
        let length = part.length;
        let offset = end.take().map_or(length, |end| end.offset.min(length));
        let stopped = looking.go_back(part, offset)?;
        // Before the first byte of the oldest file is nothing.
        previous = stopped.filter(|point| point.offset > 0 || !older.is_empty());
        if stopped.is_some() || looking.is_over {
            break;
        }
        parts = older;
    }
    looking.found.reverse();
    Ok(Page {
        entries: looking.found,
        next: newest,
        previous,
        more: false,
    })
}

/// What was found on the way back, the newest first.
struct Looking<'a> {
    query: &'a AuditQuery,
    found: Vec<serde_json::Value>,
    /// Bytes that may still be read.
    left: u64,
    /// What is further back is older than what is wanted.
    is_over: bool,
}

impl Looking<'_> {
    /// Goes back through a file from an offset; answers with the point where it stopped before the
    /// file's beginning.
    fn go_back(&mut self, part: &mut Part, mut end: u64) -> io::Result<Option<Cursor>> {
        let stop = |offset| {
            let file = part.inode;
            Ok(Some(Cursor { file, offset }))
        };
        while end > 0 {
            if self.left == 0 {
                return stop(end);
            }
            let start = end.saturating_sub(CHUNK.min(self.left));
            let mut bytes = Vec::new();
            part.file.seek(SeekFrom::Start(start))?;
            (&part.file).take(end - start).read_to_end(&mut bytes)?;
            self.left -= (end - start).min(self.left);
            // The first line may have been cut into; it is read whole with what is before it.
            let first = if start == 0 {
                Some(0)
            } else {
                let ends = bytes.iter().position(|byte| *byte == b'\n');
                ends.map(|at| at + 1).filter(|at| *at < bytes.len())
            };
            let Some(first) = first else {
                end = start;
                continue;
            };
            let mut offset = start + bytes.len() as u64;
            for line in bytes[first..].split_inclusive(|byte| *byte == b'\n').rev() {
                if self.found.len() >= self.query.max {
                    return stop(offset);
                }
                offset -= line.len() as u64;
                // A line that is being written belongs to the next look.
                let whole = line.ends_with(b"\n").then(|| entry(line)).flatten();
                let Some(entry) = whole else { continue };
                if time_of(&entry) < self.query.since.unwrap_or_default() {
                    self.is_over = true;
                    return Ok(None);
                }
                self.found
                    .extend(Some(entry).filter(|it| self.query.wanted.is(it)));
            }
            end = start + first as u64;
        }
        Ok(None)
    }
}
