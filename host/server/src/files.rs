//! Files that are read again when they change: tokens, certificates.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What tells one state of a file from another, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl Stamp {
    /// The stamp of the file, or of the one that a link leads to; `None` when there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        Some(Self {
            device: meta.dev(),
            inode: meta.ino(),
            length: meta.len(),
            changed: (meta.ctime(), meta.ctime_nsec()),
            modified: (meta.mtime(), meta.mtime_nsec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_replaced_has_another_stamp() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("file");
        assert_eq!(Stamp::of(&path), None);
        std::fs::write(&path, "a").expect("written");
        let first = Stamp::of(&path);
        assert_eq!(Stamp::of(&path), first);
        let other = folder.path().join("other");
        std::fs::write(&other, "b").expect("written");
        std::fs::rename(&other, &path).expect("renamed");
        assert_ne!(Stamp::of(&path), first);
    }
}
