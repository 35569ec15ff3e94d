//! What a project's files look like: two looks say which of them changed.
//!
//! A file that was written again with the same bytes has not changed: a build that writes into the
//! project makes no build after itself. Bounded in files and folders; what is past the bound is
//! not seen. It neither waits nor watches; that is `watcher`'s.

use std::collections::BTreeMap;
use std::fs;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hasher};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::project::{PROJECT_FILE, Project};

/// Folders that are never looked into, beside those whose names start with a dot.
const IGNORED: &[&str] = &["target", "node_modules"];

/// Files of one look.
const MAX_FILES: usize = 20_000;

/// Folders of one look.
const MAX_FOLDERS: usize = 2_000;

/// Longest file that is compared by its bytes; longer ones by size and time.
const MAX_COMPARED: u64 = 1 << 20;

/// A file as it looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Print {
    size: u64,
    modified: Option<SystemTime>,
    /// Of its bytes; `None` for a long one.
    digest: Option<u64>,
}

impl Print {
    fn is_same(&self, other: &Self) -> bool {
        match (self.digest, other.digest) {
            (Some(one), Some(two)) => one == two && self.size == other.size,
            _ => self.size == other.size && self.modified == other.modified,
        }
    }
}

/// One look.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    files: BTreeMap<PathBuf, Print>,
    /// Folders that hold what is watched.
    pub(super) folders: Vec<PathBuf>,
}

impl Look {
    /// Files that are not as they were at an earlier look, or not there any more.
    pub(super) fn changed_since(&self, before: &Self) -> Vec<PathBuf> {
        let same = |path: &PathBuf, print: &Print| {
            before
                .files
                .get(path)
                .is_some_and(|earlier| earlier.is_same(print))
        };
        let new = self.files.iter().filter(|(path, print)| !same(path, print));
        let gone = before
            .files
            .keys()
            .filter(|path| !self.files.contains_key(*path));
        new.map(|(path, _)| path).chain(gone).cloned().collect()
    }
}

/// What to look at.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    roots: Vec<PathBuf>,
    /// What the build makes.
    made: Option<PathBuf>,
    /// Where this process prints: a file in the project, perhaps, that is no part of it.
    own: Vec<Identity>,
}

/// Device and inode.
type Identity = (u64, u64);

fn printed_to() -> Vec<Identity> {
    let identity = |stream: &dyn AsFd| {
        let stat = rustix::fs::fstat(stream.as_fd()).ok()?;
        Some((stat.st_dev, stat.st_ino))
    };
    let streams: [&dyn AsFd; 2] = [&std::io::stdout(), &std::io::stderr()];
    streams.into_iter().filter_map(identity).collect()
}

impl Tree {
    /// What a project wants watched: what it names, or all of its folder; its manifest and its own
    /// file always, its cases when they are run.
    pub(super) fn of(project: &Project, with_cases: bool) -> Self {
        let mut roots = if project.watch.is_empty() {
            vec![project.folder.clone()]
        } else {
            project.watch.clone()
        };
        roots.push(project.folder.join(PROJECT_FILE));
        roots.extend(project.manifest.clone());
        if with_cases {
            roots.extend(project.cases.clone());
        }
        let made = project.build.is_some().then(|| project.component.clone());
        if made.is_none() {
            roots.push(project.component.clone());
        }
        Self {
            roots,
            made,
            own: printed_to(),
        }
    }

    /// Looks. What looks as at the look before is not read again.
    pub(super) fn look(&self, before: &Look) -> Look {
        let mut look = Look::default();
        for root in &self.roots {
            if root.is_dir() {
                self.look_into(root, before, &mut look);
            } else {
                self.add(root, before, &mut look);
                // An editor puts another file in its place: that shows in its folder.
                look.folders.extend(root.parent().map(Path::to_path_buf));
            }
        }
        look.folders.sort();
        look.folders.dedup();
        look
    }

    fn look_into(&self, root: &Path, before: &Look, look: &mut Look) {
        let mut waiting = vec![root.to_path_buf()];
        while let Some(folder) = waiting.pop() {
            // One that cannot be read is seen once it can be.
            let Ok(entries) = fs::read_dir(&folder) else {
                continue;
            };
            if look.folders.len() >= MAX_FOLDERS {
                return;
            }
            look.folders.push(folder);
            for entry in entries.flatten() {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                // Links to folders are not followed: they may lead in circles.
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => {
                        if !name.starts_with('.') && !IGNORED.contains(&&*name) {
                            waiting.push(entry.path());
                        }
                    }
                    Ok(_) => self.add(&entry.path(), before, look),
                    Err(_) => {}
                }
            }
        }
    }

    fn is_own(&self, metadata: &Metadata) -> bool {
        self.own.contains(&(metadata.dev(), metadata.ino()))
    }

    fn add(&self, path: &Path, before: &Look, look: &mut Look) {
        if self.made.as_deref() == Some(path) || look.files.len() >= MAX_FILES {
            return;
        }
        let Ok(metadata) = fs::metadata(path) else {
            return;
        };
        if !metadata.is_file() || self.is_own(&metadata) {
            return;
        }
        let (size, modified) = (metadata.len(), metadata.modified().ok());
        let earlier = before.files.get(path);
        let known = earlier.filter(|earlier| earlier.size == size && earlier.modified == modified);
        let digest = match known {
            Some(known) => known.digest,
            None if size <= MAX_COMPARED => fs::read(path).ok().map(|bytes| digest(&bytes)),
            None => None,
        };
        let print = Print {
            size,
            modified,
            digest,
        };
        look.files.insert(path.to_path_buf(), print);
    }
}

fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[PathBuf]) -> Vec<String> {
        let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into());
        paths.iter().filter_map(name).collect()
    }

    #[test]
    fn changed_new_and_removed_files_are_seen_and_ignored_ones_are_not() {
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: &str| place.path().join(name);
        for folder in ["src", "target", "node_modules", ".oncue"] {
            fs::create_dir(at(folder)).expect("a folder");
        }
        let text = "[project]\nname = \"p\"\nbuild = \"true\"\ncomponent = \"p.wasm\"\n";
        for (name, text) in [("src/a", "1"), ("src/b", "1"), (PROJECT_FILE, text)] {
            fs::write(at(name), text).expect("written");
        }
        let project = Project::read(place.path()).expect("a project");
        let tree = Tree::of(&project, false);
        let first = tree.look(&Look::default());
        assert!(tree.look(&first).changed_since(&first).is_empty());

        // Written again with the same bytes: no change.
        fs::write(at("src/a"), "1").expect("written");
        for ignored in ["target/x", "node_modules/x", ".oncue/x", "p.wasm"] {
            fs::write(at(ignored), "x").expect("written");
        }
        let second = tree.look(&first);
        assert_eq!(names(&second.changed_since(&first)), [""; 0]);

        fs::write(at("src/a"), "2").expect("written");
        fs::write(at("src/c"), "1").expect("written");
        fs::remove_file(at("src/b")).expect("removed");
        let third = tree.look(&second);
        assert_eq!(names(&third.changed_since(&second)), ["a", "c", "b"]);
    }

    #[test]
    fn only_what_is_named_is_watched() {
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: &str| place.path().join(name);
        let text = "[project]\nname = \"p\"\nbuild = \"true\"\ncomponent = \"p.wasm\"\n\
                    manifest = \"p.toml\"\nwatch = [\"handler.js\"]\n";
        for (name, text) in [("handler.js", "1"), ("other.js", "1"), (PROJECT_FILE, text)] {
            fs::write(at(name), text).expect("written");
        }
        let project = Project::read(place.path()).expect("a project");
        let tree = Tree::of(&project, false);
        let first = tree.look(&Look::default());
        fs::write(at("other.js"), "2").expect("written");
        fs::write(at("p.toml"), "").expect("written");
        let second = tree.look(&first);
        assert_eq!(names(&second.changed_since(&first)), ["p.toml"]);
    }
}
