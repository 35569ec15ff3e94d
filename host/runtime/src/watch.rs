//! Hints that files below some directories may have changed, for whoever looks at a project's
//! files. Only hints: a missed one costs time, a false one a look. The plugins directory has its
//! own watch.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use crate::plugin::{Hint, is_change};

/// Watches directories, each without those below it.
pub struct DirectoriesWatch {
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
}

impl std::fmt::Debug for DirectoriesWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectoriesWatch")
            .field("watched", &self.watched.len())
            .finish_non_exhaustive()
    }
}

impl DirectoriesWatch {
    /// A watch of nothing yet. `hint` is called at each hint, on a thread of the watcher's; it must
    /// not block.
    #[must_use]
    pub fn new(hint: Hint) -> Self {
        let heard = move |event: notify::Result<Event>| {
            // An error is a hint too: events may have been lost.
            if event.as_ref().map_or(true, is_change) {
                hint();
            }
        };
        Self {
            watcher: notify::recommended_watcher(heard).ok(),
            watched: BTreeSet::new(),
        }
    }

    /// Watches these directories from now on and no others. True when hints can be expected from
    /// all of them; else they must be looked at by themselves.
    pub fn set<'a>(&mut self, directories: impl IntoIterator<Item = &'a Path>) -> bool {
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        let wanted: BTreeSet<&Path> = directories.into_iter().collect();
        let gone = |path: &PathBuf| !wanted.contains(path.as_path());
        for path in self.watched.extract_if(.., gone) {
            // One that was removed is no longer watched anyway.
            let _ = watcher.unwatch(&path);
        }
        for path in &wanted {
            if !self.watched.contains(*path)
                && watcher.watch(path, RecursiveMode::NonRecursive).is_ok()
            {
                self.watched.insert(path.to_path_buf());
            }
        }
        self.watched.len() == wanted.len()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use super::*;

    /// Long enough for any machine; nothing waits for it when all is well.
    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn a_change_in_any_of_the_directories_gives_a_hint() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        fs::create_dir(&one).expect("a folder");
        fs::create_dir(&two).expect("a folder");
        let (say, heard) = mpsc::sync_channel(1);
        let mut watch = DirectoriesWatch::new(Arc::new(move || {
            let _ = say.try_send(());
        }));
        assert!(watch.set([one.as_path()]));
        fs::write(one.join("a"), "1").expect("written");
        heard.recv_timeout(PATIENCE).expect("a hint");
        assert!(watch.set([one.as_path(), two.as_path()]));
        while heard.try_recv().is_ok() {}
        fs::write(two.join("b"), "2").expect("written");
        heard.recv_timeout(PATIENCE).expect("a hint");
        assert!(!watch.set([one.as_path(), Path::new("/no/such/folder")]));
    }
}
