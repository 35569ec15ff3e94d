//! The audit log: who changed what, and who was refused. One line of JSON each, in files that are
//! turned over by size, so that what it takes is bounded.
//!
//! It has names, never bodies, tokens or secrets. Messages that are put and got are not in it:
//! their trace is the putter in each message. A line is written before the answer leaves and is not
//! synced: it survives the process, not always the machine.

mod back;
mod read;

use std::fs::File;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::response::Response;
use oncue_manager::{Clock as _, SystemClock};
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) use read::{AuditQuery, Cursor, MAX_ENTRIES, Page, Wanted, read};

/// The directory within the data directory.
pub const DIRECTORY: &str = "audit";

/// The file that is written to; older ones have a number behind it, the oldest the largest.
const FILE: &str = "audit.jsonl";

/// Bytes of a file before the next one is begun.
const FILE_BYTES: u64 = 10 << 20;

/// Files that are kept.
const FILES: usize = 10;

/// Longest object or path in an entry, in characters.
pub(crate) const MAX_OBJECT: usize = 300;

/// The result of what was done.
pub(crate) const DONE: &str = "done";

/// One line.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = AuditEntry)]
pub(crate) struct Entry {
    /// When, in milliseconds since the Unix epoch.
    pub(crate) time: u64,
    /// Whose token it was; `local` where no token is asked for, `plugins-directory` for changes by
    /// files, `host` for the host itself, nothing when the request named nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<String>,
    /// Where the request came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<String>,
    /// What was asked for, such as `queue-alter`; the method and path where the route has no name.
    pub(crate) action: String,
    /// On what.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) object: String,
    /// Which message of it, where one was meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// How many messages were removed or moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<u64>,
    /// Of a plugin the version that serves since then, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    /// `done`, or the code of the refusal.
    pub(crate) result: String,
    /// The status of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// The request's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
    /// Refusals that were not written before this one: whoever is refused too often fills no log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unwritten: Option<u64>,
}

/// What a route says of what it has done, for its entry: an extension of its answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// On what, where the path does not say it.
    pub(crate) object: Option<String>,
    /// How many messages were removed or moved.
    pub(crate) messages: Option<u64>,
}

impl Told {
    /// So many messages were removed or moved.
    pub(crate) fn messages(count: u64) -> Self {
        Self {
            messages: Some(count),
            ..Self::default()
        }
    }

    /// Says it with an answer.
    pub(crate) fn with(self, mut response: Response) -> Response {
        response.extensions_mut().insert(self);
        response
    }
}

impl Entry {
    /// An entry of now.
    pub(crate) fn new(action: &str, object: &str, result: &str) -> Self {
        Self {
            time: SystemClock.now().0,
            identity: None,
            address: None,
            action: action.to_owned(),
            object: object.chars().take(MAX_OBJECT).collect(),
            message: None,
            messages: None,
            digest: None,
            result: result.to_owned(),
            status: None,
            request_id: None,
            unwritten: None,
        }
    }

    /// Who did it, from where.
    pub(crate) fn by(mut self, identity: Option<&str>, address: Option<IpAddr>) -> Self {
        self.identity = identity.map(str::to_owned);
        self.address = address.map(|address| address.to_canonical().to_string());
        self
    }
}

/// The audit log of a host. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Audit(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    file_bytes: u64,
    open: Mutex<Open>,
    /// A warning is given once, not for every line.
    is_broken: AtomicBool,
}

#[derive(Debug)]
struct Open {
    file: File,
    length: u64,
}

impl Audit {
    /// Opens the log of a data directory, and makes it if it is not there.
    ///
    /// # Errors
    /// The directory or the file cannot be made.
    pub fn open(data: &Path) -> io::Result<Self> {
        Self::with(data.join(DIRECTORY), FILE_BYTES)
    }

    fn with(directory: PathBuf, file_bytes: u64) -> io::Result<Self> {
        std::fs::create_dir_all(&directory)?;
        let open = open(&directory.join(FILE))?;
        Ok(Self(Arc::new(Shared {
            directory,
            file_bytes,
            open: Mutex::new(open),
            is_broken: AtomicBool::new(false),
        })))
    }

    /// Notes that the host did something itself.
    pub fn note_host(&self, action: &str, object: &str) {
        self.note(&Entry::new(action, object, DONE).by(Some("host"), None));
    }

    /// Writes an entry. One that cannot be written is warned of, and what was asked for goes on.
    pub(crate) fn note(&self, entry: &Entry) {
        let mut line = serde_json::to_vec(entry).expect("texts and numbers can be written");
        line.push(b'\n');
        let written = {
            let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
            self.write(&mut open, &line)
        };
        let was_broken = self.0.is_broken.swap(written.is_err(), Ordering::Relaxed);
        if let (Err(error), false) = (written, was_broken) {
            let directory = self.0.directory.display();
            tracing::error!("the audit log in \"{directory}\" cannot be written: {error}");
        }
    }

    fn write(&self, open: &mut Open, line: &[u8]) -> io::Result<()> {
        let length = line.len() as u64;
        if open.length > 0 && open.length + length > self.0.file_bytes {
            *open = turn_over(&self.0.directory)?;
        }
        open.file.write_all(line)?;
        open.length += length;
        Ok(())
    }

    /// Where it is.
    pub(crate) fn directory(&self) -> &Path {
        &self.0.directory
    }
}

fn open(path: &Path) -> io::Result<Open> {
    let mut options = File::options();
    let file = options.append(true).create(true).mode(0o600).open(path)?;
    let length = file.metadata()?.len();
    Ok(Open { file, length })
}

/// The name of a file: number 0 is the one that is written to.
fn name_of(directory: &Path, number: usize) -> PathBuf {
    match number {
        0 => directory.join(FILE),
        number => directory.join(format!("{FILE}.{number}")),
    }
}

/// Gives every file the next number; the oldest one goes.
fn turn_over(directory: &Path) -> io::Result<Open> {
    for number in (0..FILES - 1).rev() {
        let moved = std::fs::rename(name_of(directory, number), name_of(directory, number + 1));
        match moved {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    open(&name_of(directory, 0))
}

#[cfg(test)]
mod tests;
