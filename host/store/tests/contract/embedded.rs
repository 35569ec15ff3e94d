//! The embedded store under the contract, and what only a store on a disk must do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use oncue_store::Store;
use oncue_store::embedded::{EmbeddedOptions, EmbeddedStore};
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::rig::{Ending, Harness, Rig, check_sink_is_let_go};

mod busy;
mod crash;
mod damage;
mod disk;
mod early;
mod opening;
mod together;
mod windows;

/// Small windows, so that what is in memory is never all.
const WINDOW_ROWS: usize = 4;

/// Options that suit a test: little set aside, no wait for the guard.
fn options() -> EmbeddedOptions {
    EmbeddedOptions {
        ballast_bytes: 0,
        reserve_bytes: 0,
        window_rows: WINDOW_ROWS,
        guard_interval: Duration::from_millis(5),
        ..EmbeddedOptions::default()
    }
}

/// Opens what a rig left, with the same options.
fn open(path: &Path) -> EmbeddedStore {
    EmbeddedStore::open(path, options()).unwrap()
}

/// A directory for one store. The rules need no disk, only its cost, so it is in memory where that
/// can be.
fn new_home() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    }
    .unwrap()
}

/// Stores in directories of their own.
#[derive(Clone)]
struct Embedded {
    home: Arc<Mutex<TempDir>>,
    options: EmbeddedOptions,
}

impl Embedded {
    fn new() -> Self {
        Self::with(options())
    }

    fn with(options: EmbeddedOptions) -> Self {
        Self {
            home: Arc::new(Mutex::new(new_home())),
            options,
        }
    }

    /// A rig over a store with these options, and its directory.
    fn rig(options: EmbeddedOptions) -> (Rig, Home) {
        let embedded = Self::with(options);
        let rig = Rig::new(embedded.clone());
        let path = embedded.home.lock().path().to_owned();
        (
            rig,
            Home {
                path,
                _keep: embedded.home,
            },
        )
    }
}

/// The directory of a rig's store. It is there as long as this is, also when the rig has ended.
struct Home {
    path: PathBuf,
    _keep: Arc<Mutex<TempDir>>,
}

impl std::ops::Deref for Home {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

/// Copies a directory as it stands: what the death of its process would leave, since no byte that a
/// process has given to the kernel depends on it, and none that it has not is there.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            copy_sparse(&entry.path(), &target);
        }
    }
}

/// A journal is long and nearly empty: its zeros are left out.
fn copy_sparse(from: &Path, to: &Path) {
    use std::io::{Read, Seek, SeekFrom, Write};
    let mut source = std::fs::File::open(from).unwrap();
    let mut target = std::fs::File::create(to).unwrap();
    let mut buffer = vec![0; 64 * 1024];
    let mut length = 0;
    loop {
        let read = source.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        if buffer[..read].iter().any(|byte| *byte != 0) {
            target.seek(SeekFrom::Start(length)).unwrap();
            target.write_all(&buffer[..read]).unwrap();
        }
        length += read as u64;
    }
    target.set_len(length).unwrap();
}

impl Harness for Embedded {
    fn open(&self) -> Arc<dyn Store> {
        let home = new_home();
        let store = EmbeddedStore::open(home.path(), self.options.clone()).unwrap();
        *self.home.lock() = home;
        Arc::new(store)
    }

    fn reopen(&self, store: Arc<dyn Store>, ending: Ending) -> Arc<dyn Store> {
        let mut home = self.home.lock();
        if ending == Ending::Kill {
            let copied = new_home();
            copy(home.path(), copied.path());
            drop(store);
            *home = copied;
        } else {
            store.close();
            drop(store);
        }
        Arc::new(EmbeddedStore::open(home.path(), self.options.clone()).unwrap())
    }
}

#[test]
fn a_closed_store_lets_go_of_its_sink() {
    check_sink_is_let_go(&Embedded::new());
}

contract!(Embedded::new());
durable_contract!(Embedded::new());
