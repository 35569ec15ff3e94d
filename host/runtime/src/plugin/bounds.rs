//! The bounds of the plugins directory, each with its unit. What an operator may set is in
//! [`PluginDirectoryConfig`](super::PluginDirectoryConfig); these are the fixed ones and the
//! defaults.

use std::time::Duration;

/// Largest component that is read, bytes.
pub(super) const MAX_COMPONENT_BYTES: u64 = 256 << 20;
/// Largest manifest that is read, bytes.
pub(super) const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// Most entries of the directory that one look takes in; those past it, in the order the system
/// gives them, are not seen.
pub(super) const MAX_ENTRIES: usize = 10_000;
/// Earlier good versions that are kept for a rollback, for each plugin.
pub(super) const KEPT_VERSIONS: usize = 3;
/// Disk for all kept versions together, bytes. The version that serves is never given up for it.
pub(super) const MAX_KEPT_BYTES: u64 = 4 << 30;
/// Kept components held in memory because the disk took no more, bytes together.
pub(super) const MAX_HELD_BYTES: usize = 512 << 20;
/// Records of kept versions that are read at start.
pub(super) const MAX_RECORDS: usize = 10_000;
/// Largest record of kept versions, bytes.
pub(super) const MAX_RECORD_BYTES: u64 = 16 << 20;

/// Disk for compiled components, bytes; the longest unused go first.
pub(super) const MAX_CACHE_BYTES: u64 = 2 << 30;
/// Largest compiled component, bytes: a few times the component.
pub(super) const MAX_COMPILED_BYTES: u64 = 1 << 30;
/// Memory for one compilation, bytes: 30 MiB for each MiB of WASM is usual.
pub(super) const COMPILE_MEMORY: u64 = 2 << 30;
/// Time for one compilation.
pub(super) const COMPILE_TIMEOUT: Duration = Duration::from_secs(300);
/// What is kept of a failed compilation's last words, bytes.
pub(super) const MAX_COMPILE_WORDS: u64 = 16 << 10;
/// How often a compilation is looked at: for its end, its time, and the host's stop.
pub(super) const COMPILE_LOOK: Duration = Duration::from_millis(20);

/// Time between the two equal looks after which a file counts as whole.
pub(super) const SETTLE: Duration = Duration::from_millis(200);
/// Time between looks at the directory when nothing hints at a change.
pub(super) const RESCAN: Duration = Duration::from_secs(5);
/// The same where the file system gives no hints.
pub(super) const RESCAN_WITHOUT_HINTS: Duration = Duration::from_secs(1);
/// Hints that come so close together lead to one look.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(20);
/// A file that has not settled for so long is warned of, once, and waited for further.
pub(super) const SLOW_FILE: Duration = Duration::from_secs(5);
/// Commands to the directory's thread that may wait.
pub(super) const MAX_COMMANDS: usize = 1024;
/// Rounds of decisions after one change. Each round answers the one before; a plugin set settles
/// in three.
pub(super) const MAX_ROUNDS: usize = 64;

/// Names that a sentence lists before it says how many more there are.
pub(super) const MAX_LISTED: usize = 8;
