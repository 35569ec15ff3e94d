//! Reading the audit log: the last entries, those since a time, those before a point, or those
//! after what was read.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use oncue_core::cursor;
use serde_json::Value;

use super::{DONE, FILES, back, name_of};

/// Most entries of one answer.
pub(crate) const MAX_ENTRIES: usize = 1_000;

/// Bytes that one answer looks at.
pub(super) const MAX_SCAN: u64 = 16 << 20;

/// More bytes than any line has.
const LONGEST: u64 = 64 << 10;

/// What a cursor belongs to.
const LIST: [&str; 1] = ["audit"];

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditQuery {
    /// Only what comes after this point, which an earlier answer named.
    pub(crate) cursor: Option<Cursor>,
    /// Only what comes before this point, the last of it.
    pub(crate) before: Option<Cursor>,
    /// Only what is not older, in milliseconds since the Unix epoch.
    pub(crate) since: Option<u64>,
    /// Which entries.
    pub(crate) wanted: Wanted,
    /// At most so many.
    pub(crate) max: usize,
}

/// Which entries are wanted: those that bear all of these texts, whatever the case of ASCII
/// letters. An empty text is in every entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// In the identity's name.
    pub(crate) identity: String,
    /// In the action.
    pub(crate) action: String,
    /// In what the action was on.
    pub(crate) object: String,
    /// Only what was refused, or failed.
    pub(crate) refused: bool,
}

impl Wanted {
    /// Whether an entry is one of them.
    pub(super) fn is(&self, entry: &Value) -> bool {
        let field = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let bears = |name: &str, text: &str| {
            let (field, text) = (field(name).as_bytes(), text.as_bytes());
            text.is_empty()
                || field
                    .windows(text.len())
                    .any(|part| part.eq_ignore_ascii_case(text))
        };
        bears("identity", &self.identity)
            && bears("action", &self.action)
            && bears("object", &self.object)
            && !(self.refused && field("result") == DONE)
    }
}

/// A point in the log: a file, which keeps its number while it is renamed, and a place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(super) file: u64,
    pub(super) offset: u64,
}

impl Cursor {
    /// The beginning of a log that is not there.
    pub(super) const START: Self = Self { file: 0, offset: 0 };
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = format!("{:x}-{:x}", self.file, self.offset);
        formatter.write_str(&cursor::seal(&LIST, &place))
    }
}

impl std::str::FromStr for Cursor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = |text: &str| u64::from_str_radix(text, 16).ok();
        cursor::open(&LIST, text)
            .and_then(|place| place.split_once('-'))
            .and_then(|(file, offset)| {
                Some(Self {
                    file: read(file)?,
                    offset: read(offset)?,
                })
            })
            .ok_or("the cursor is not one that the audit log gave; start without it")
    }
}

/// Entries, the oldest first.
#[derive(Debug)]
pub(crate) struct Page {
    /// They.
    pub(crate) entries: Vec<Value>,
    /// Where to go on.
    pub(crate) next: Cursor,
    /// Where to go on backwards; nothing at the log's beginning, and when it was read forwards.
    pub(crate) previous: Option<Cursor>,
    /// There are more already.
    pub(crate) more: bool,
}

impl Page {
    fn forward(entries: Vec<Value>, next: Cursor, more: bool) -> Self {
        Self {
            entries,
            next,
            previous: None,
            more,
        }
    }
}

/// A file of the log, open: it is the same one when it gets another name meanwhile.
pub(super) struct Part {
    pub(super) file: File,
    pub(super) inode: u64,
    pub(super) length: u64,
    changed: u64,
}

impl Part {
    /// The point after the last whole line.
    pub(super) fn whole_lines(&mut self) -> io::Result<Cursor> {
        let start = self.length.saturating_sub(LONGEST);
        let bytes = lines(self, start, LONGEST)?;
        Ok(Cursor {
            file: self.inode,
            offset: start + bytes.len() as u64,
        })
    }
}

/// The files, the oldest first.
fn parts(directory: &Path) -> io::Result<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    for number in 0..FILES {
        let file = match File::open(name_of(directory, number)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        let meta = file.metadata()?;
        // Turned over while we look: it was there under the number before.
        if parts.iter().any(|part| part.inode == meta.ino()) {
            continue;
        }
        let changed = u64::try_from(meta.mtime()).unwrap_or_default();
        parts.push(Part {
            file,
            inode: meta.ino(),
            length: meta.len(),
            changed: changed.saturating_add(1).saturating_mul(1_000),
        });
    }
    parts.reverse();
    Ok(parts)
}

/// Reads a page.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn read(directory: &Path, query: &AuditQuery) -> io::Result<Page> {
    let mut parts = parts(directory)?;
    match (query.cursor, query.since) {
        _ if query.before.is_some() => back::read(&mut parts, query),
        (Some(cursor), _) => {
            let at = parts.iter().position(|part| part.inode == cursor.file);
            // A file that is gone was the oldest: what is left comes after it.
            let offset = at.map_or(0, |_| cursor.offset);
            forward(&mut parts[at.unwrap_or(0)..], offset, query)
        }
        (None, Some(since)) => {
            let first = parts.iter().position(|part| part.changed >= since);
            let first = first.unwrap_or(parts.len().saturating_sub(1));
            forward(&mut parts[first..], 0, query)
        }
        (None, None) => back::read(&mut parts, query),
    }
}

/// Whole lines of a file from an offset on, at most so many bytes.
fn lines(part: &mut Part, offset: u64, most: u64) -> io::Result<Vec<u8>> {
    part.file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    (&part.file).take(most).read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n');
    bytes.truncate(whole.map_or(0, |end| end + 1));
    Ok(bytes)
}

fn forward(parts: &mut [Part], offset: u64, query: &AuditQuery) -> io::Result<Page> {
    let since = query.since.unwrap_or_default();
    let mut entries = Vec::new();
    let mut left = MAX_SCAN;
    let mut next = Cursor::START;
    for (at, part) in parts.iter_mut().enumerate() {
        let start = if at == 0 { offset.min(part.length) } else { 0 };
        next = Cursor {
            file: part.inode,
            offset: start,
        };
        let bytes = lines(part, start, left)?;
        left -= bytes.len() as u64;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if entries.len() >= query.max {
                return Ok(Page::forward(entries, next, true));
            }
            next.offset += line.len() as u64;
            let entry = entry(line).filter(|entry| time_of(entry) >= since);
            entries.extend(entry.filter(|entry| query.wanted.is(entry)));
        }
        if next.offset < part.length && left == 0 {
            return Ok(Page::forward(entries, next, true));
        }
    }
    Ok(Page::forward(entries, next, false))
}

pub(super) fn entry(line: &[u8]) -> Option<Value> {
    serde_json::from_slice(line).ok().filter(Value::is_object)
}

pub(super) fn time_of(entry: &Value) -> u64 {
    entry
        .get("time")
        .and_then(Value::as_u64)
        .unwrap_or_default()
}
