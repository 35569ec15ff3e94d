//! The thread that waits for changes of a project's files: hints of the system, and a look of its
//! own now and then. A change is told once the files have come to rest.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use oncue_runtime::watch::DirectoriesWatch;
use tokio::sync::mpsc::Sender;

use super::Event;
use super::tree::{Look, Tree};
use crate::exit::Failure;

/// Between two looks when the system gives hints, in case it lost one.
const SLOW_LOOK: Duration = Duration::from_secs(5);

/// Between two looks when it gives none.
const QUICK_LOOK: Duration = Duration::from_millis(500);

/// How long files must stay the same before a change is told.
const QUIET: Duration = Duration::from_millis(120);

/// Looks at files that do not come to rest before the change is told all the same.
const MAX_RESTLESS: usize = 20;

/// Watches a project. Dropping it ends the thread.
pub(super) struct Watcher {
    stop: Arc<AtomicBool>,
    nudge: SyncSender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Begins to watch; changes from now on are told to `events`.
    ///
    /// # Errors
    /// No thread can be had.
    pub(super) fn start(tree: Tree, events: Sender<Event>) -> Result<Self, Failure> {
        // One hint that waits stands for all.
        let (nudge, hints) = sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let hint = {
            let nudge = nudge.clone();
            Arc::new(move || {
                let _ = nudge.try_send(());
            })
        };
        let first = tree.look(&Look::default());
        let thread = {
            let stop = Arc::clone(&stop);
            let watch = DirectoriesWatch::new(hint);
            let body = move || run(&tree, first, watch, &hints, &events, &stop);
            std::thread::Builder::new()
                .name("oncue-dev-watch".to_owned())
                .spawn(body)
                .context("start the thread that watches the project")?
        };
        Ok(Self {
            stop,
            nudge,
            thread: Some(thread),
        })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.nudge.try_send(());
        if let Some(thread) = self.thread.take() {
            // A panic there was printed there.
            let _ = thread.join();
        }
    }
}

fn run(
    tree: &Tree,
    mut before: Look,
    mut watch: DirectoriesWatch,
    hints: &Receiver<()>,
    events: &Sender<Event>,
    stop: &AtomicBool,
) {
    let folders = |look: &Look| look.folders.clone();
    loop {
        let has_hints = watch.set(folders(&before).iter().map(PathBuf::as_path));
        let period = if has_hints { SLOW_LOOK } else { QUICK_LOOK };
        match hints.recv_timeout(period) {
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
        }
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let mut now = tree.look(&before);
        if !now.changed_since(&before).is_empty() {
            now = at_rest(tree, now, hints, stop);
        }
        let changed = now.changed_since(&before);
        before = now;
        if stop.load(Ordering::SeqCst) {
            return;
        }
        // Whoever listens reads without end; a full channel holds changes enough.
        if !changed.is_empty() {
            let _ = events.try_send(Event::Changed(changed));
        }
    }
}

/// Looks until two looks are the same.
fn at_rest(tree: &Tree, mut now: Look, hints: &Receiver<()>, stop: &AtomicBool) -> Look {
    for _ in 0..MAX_RESTLESS {
        // A hint alone is no reason to look earlier: the time in between is the point.
        std::thread::sleep(QUIET);
        while hints.try_recv().is_ok() {}
        let next = tree.look(&now);
        let is_same = next.changed_since(&now).is_empty();
        now = next;
        if is_same || stop.load(Ordering::SeqCst) {
            break;
        }
    }
    now
}

/// A path as people know it: below the project's folder.
pub(super) fn below(folder: &Path, path: &Path) -> String {
    path.strip_prefix(folder)
        .unwrap_or(path)
        .display()
        .to_string()
}
