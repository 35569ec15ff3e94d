//! The plugins directory: drop a file, and it serves.
//!
//! Who does what, outermost first:
//!
//! - `directory` has the threads: one looks and decides, a few compile; `watch` gives it hints.
//! - `keeper` looks (`scan`, `settle`), reads whole files, and performs what `catalog` decides.
//! - `catalog` is the state machine: which version of which plugin serves, and why not.
//! - `loader` makes a version from bytes: `adapt` makes a component of a core module, `reading` and
//!   `shape` judge it, `compile` does the work in a child process, `cache` keeps the result, `seam`
//!   loads and tries it in the sandbox.
//! - `kept` remembers good versions, `manifest` reads `NAME.toml`, `packed` finds one that is
//!   inside of a component.
//! - [`check`] does the same for `oncue plugin check`, `inspect` for one file, `single` for `oncue
//!   run` and `oncue test`, all without a server; `componentize` and `packed` make files for it.
//!
//! It never loads a file that is still being written, never lets a bad file remove a good version,
//! never loads compiled code that it has not verified, and never writes to the directory itself.

mod adapt;
mod bounds;
mod cache;
mod catalog;
pub mod check;
mod compile;
mod componentize;
pub(crate) mod contract;
mod digest;
mod directory;
mod go_memory;
mod inspect;
mod keeper;
mod kept;
mod loader;
mod manifest;
mod module;
mod packed;
mod reading;
mod scan;
mod schedule;
mod seam;
mod settle;
mod shape;
mod signatures;
mod single;
mod storage;
mod watch;

pub use catalog::Capacity;
pub use check::{CheckReport, check};
pub use compile::{CompileBounds, CompileCommand, Compiler, SUBCOMMAND, compile_child};
pub use componentize::{Made, World, componentize};
pub use digest::Digest;
pub use directory::{PluginDirectory, PluginDirectoryConfig};
pub use inspect::{EmptyCall, InspectFault, Inspected, Inspection, inspect};
pub use packed::{Packed, pack};
pub use signatures::PluginKeys;
pub use single::{SingleFault, SinglePlugin, SingleRequest, load_single};
pub use watch::Hint;
pub(crate) use watch::is_change;
