//! Hints that the directory may have changed. Only hints: a missed one costs time, a false one a
//! look, and a directory that cannot be watched is looked at more often.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tracing::{info, warn};

/// Called at each hint, on a thread of the watcher's. Must not block.
pub type Hint = Arc<dyn Fn() + Send + Sync>;

/// A watched directory.
pub(crate) struct Watch {
    directory: PathBuf,
    hint: Hint,
    /// The watcher, and which directory it watches: another may take the path's place.
    watcher: Option<(RecommendedWatcher, Identity)>,
    /// Whether the last try failed: said on the edge.
    failing: bool,
}

/// Device and inode.
type Identity = (u64, u64);

fn identity(directory: &Path) -> Option<Identity> {
    fs::metadata(directory)
        .ok()
        .map(|metadata| (metadata.dev(), metadata.ino()))
}

impl Watch {
    /// Begins to watch. That it cannot is no error.
    pub(crate) fn new(directory: PathBuf, hint: Hint) -> Self {
        let mut watch = Self {
            directory,
            hint,
            watcher: None,
            failing: false,
        };
        watch.refresh();
        watch
    }

    /// Whether hints can be expected.
    pub(crate) fn is_watching(&self) -> bool {
        self.watcher.is_some()
    }

    /// Watches what is at the path now, if it was not watched or was replaced.
    pub(crate) fn refresh(&mut self) {
        let now = identity(&self.directory);
        if now.is_some() && self.watcher.as_ref().map(|(_, identity)| *identity) == now {
            return;
        }
        self.watcher = None;
        let Some(identity) = now else { return };
        let hint = Arc::clone(&self.hint);
        let heard = move |event: notify::Result<Event>| {
            // An error is a hint too: events may have been lost.
            if event.as_ref().map_or(true, is_change) {
                hint();
            }
        };
        let directory = self.directory.display();
        let watching = notify::recommended_watcher(heard).and_then(|mut watcher| {
            watcher.watch(&self.directory, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        match watching {
            Ok(watcher) => {
                self.watcher = Some((watcher, identity));
                if std::mem::take(&mut self.failing) {
                    info!("\"{directory}\" is watched again");
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    warn!("\"{directory}\" cannot be watched ({error}); looked at every second");
                }
            }
        }
    }
}

/// Reading a file is no change; our own looks would otherwise lead to looks without end.
pub(crate) fn is_change(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Long enough for any machine; nothing waits for it when all is well.
    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn a_change_gives_a_hint_and_a_replaced_directory_is_watched() {
        let folder = tempfile::tempdir().expect("a folder");
        let plugins = folder.path().join("plugins");
        fs::create_dir(&plugins).expect("a folder");
        let (say, heard) = mpsc::sync_channel(1);
        let hint: Hint = Arc::new(move || {
            let _ = say.try_send(());
        });
        let mut watch = Watch::new(plugins.clone(), hint);
        assert!(watch.is_watching());
        fs::write(plugins.join("a.wasm"), "one").expect("written");
        heard.recv_timeout(PATIENCE).expect("a hint");

        fs::rename(&plugins, folder.path().join("old")).expect("renamed");
        watch.refresh();
        assert!(!watch.is_watching());
        fs::create_dir(&plugins).expect("a folder");
        watch.refresh();
        assert!(watch.is_watching());
        while heard.try_recv().is_ok() {}
        fs::write(plugins.join("a.wasm"), "two").expect("written");
        heard.recv_timeout(PATIENCE).expect("a hint");
    }

    #[test]
    fn reading_is_no_change() {
        let event = |kind| Event::new(kind);
        assert!(!is_change(&event(EventKind::Access(AccessKind::Read))));
        assert!(!is_change(&event(EventKind::Access(AccessKind::Open(
            AccessMode::Read
        )))));
        assert!(is_change(&event(EventKind::Access(AccessKind::Close(
            AccessMode::Write
        )))));
        assert!(is_change(&event(EventKind::Any)));
    }
}
