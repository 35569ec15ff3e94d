//! What can be set when an embedded store is opened, and why one may not open.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Settings of an embedded store.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// Open although acknowledged commits are known to be lost, or rows known to be damaged.
    pub accept_loss: bool,
    /// Puts are refused while fewer bytes are free on the disk.
    pub reserve_bytes: u64,
    /// A file of this many bytes is given up when the disk is full, so that gets can go on; 0
    /// makes none.
    pub ballast_bytes: u64,
    /// Bodies of messages that are not persistent, in bytes: more are refused.
    pub volatile_bytes_max: u64,
    /// Bytes of units that wait for the disk, past which applications' puts are refused.
    pub waiting_bytes_max: u64,
    /// Memory for blocks read from disk, in bytes.
    pub cache_bytes: u64,
    /// Rows kept in memory of each index's front.
    pub window_rows: usize,
    /// How often the disk is looked at and the high-water file is written.
    pub guard_interval: Duration,
    /// Stands for the free bytes of the disk, for tests.
    pub free_bytes: Option<Arc<AtomicU64>>,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            accept_loss: false,
            reserve_bytes: 256 * 1024 * 1024,
            ballast_bytes: 64 * 1024 * 1024,
            volatile_bytes_max: 256 * 1024 * 1024,
            waiting_bytes_max: 256 * 1024 * 1024,
            cache_bytes: 64 * 1024 * 1024,
            window_rows: 4096,
            guard_interval: Duration::from_secs(1),
            free_bytes: None,
        }
    }
}

/// Why a store was not opened. Nothing in the directory was changed, unless it says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it.
    #[error(
        "data directory \"{}\" is in use by process {process}; stop that one or name \
         another directory [store-in-use]",
        path.display()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// Its process id, when it is known.
        process: String,
    },
    /// It is not a data directory.
    #[error(
        "data directory \"{}\" holds something else ({found}); name an empty or a new \
         directory [store-version]",
        path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// What stands in it.
        found: String,
    },
    /// It was written by another version.
    #[error(
        "data directory \"{}\" has format {found} and this version knows {known}; open \
         it with the version that wrote it, or a later one [store-version]",
        path.display()
    )]
    Version {
        /// The directory.
        path: PathBuf,
        /// Its format.
        found: String,
        /// The newest known format.
        known: u32,
    },
    /// Acknowledged commits are gone.
    #[error(
        "data directory \"{}\" has lost acknowledged commits: {what}; restore a copy, \
         or open with --accept-loss to go on without them [store-corrupt]",
        path.display()
    )]
    Lost {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        what: String,
    },
    /// A row or a file is damaged.
    #[error(
        "data directory \"{}\" is damaged: {what}; keep it, and restore a copy or open \
         with --accept-loss [store-corrupt]",
        path.display()
    )]
    Damaged {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The disk refused.
    #[error(
        "data directory \"{}\" cannot be opened: {error}; check that it exists, is \
         writable and has room [store-stopped]",
        path.display()
    )]
    Disk {
        /// The directory or file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}
