//! One look at the directory: which files are there, and how each looks from outside.
//!
//! It reads no content and draws no conclusion: a look is compared with the next by `settle`, and
//! only then is a file [read](read()). Symbolic links are followed at every look, so a swapped
//! link shows as a changed file.
//!
//! Not seen: names that start with a dot (`..data` of a ConfigMap among them), names without
//! `.wasm` or `.toml` (so README.md, `orders.wasm.tmp`, `orders.wasm~`), folders and devices, and
//! `example.toml` while no `example.wasm` stands beside it.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::bounds::{MAX_COMPONENT_BYTES, MAX_ENTRIES, MAX_MANIFEST_BYTES};
use super::signatures::beside;

/// A manifest of this name without its component is documentation.
const EXAMPLE_MANIFEST: &str = "example.toml";
const EXAMPLE_COMPONENT: &str = "example.wasm";

/// What a name says a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `NAME.wasm`.
    Component,
    /// `NAME.toml`.
    Manifest,
}

impl Kind {
    /// The most bytes that are read of such a file.
    pub(crate) fn max_bytes(self) -> u64 {
        match self {
            Self::Component => MAX_COMPONENT_BYTES,
            Self::Manifest => MAX_MANIFEST_BYTES,
        }
    }
}

/// How a handler's project is built: it lies beside manifests in the author's folder and is none.
const PROJECT: &str = "oncue-project.toml";

/// Splits a file name into the plugin's name and the kind; `None` for what is no plugin's file.
pub(crate) fn classify(name: &str) -> Option<(&str, Kind)> {
    if name.starts_with('.') || name == PROJECT {
        return None;
    }
    let (stem, kind) = match name.rsplit_once('.')? {
        (stem, "wasm") => (stem, Kind::Component),
        (stem, "toml") => (stem, Kind::Manifest),
        _ => return None,
    };
    (!stem.is_empty()).then_some((stem, kind))
}

/// What tells two states of a file apart without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds of the last write.
    modified: (i64, i64),
    /// The same of the last change of any kind: it shows a file written over with its old size
    /// and its old time.
    changed: (i64, i64),
    /// How its signature looks, where signatures are looked at: a file changes with it.
    signature: Option<Box<Self>>,
}

impl Fingerprint {
    /// The same file, whatever its signature is.
    fn is_of(&self, metadata: &Metadata) -> bool {
        let bare = Self {
            signature: None,
            ..self.clone()
        };
        bare == Self::of(metadata)
    }

    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            signature: None,
        }
    }
}

/// How one file looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// A file that can be opened, as far as one can tell.
    File(Fingerprint),
    /// There is something of that name, and why it cannot be looked at.
    Unreadable(String),
}

/// One look at the whole directory.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// By file name.
    pub(crate) files: BTreeMap<String, Look>,
    /// Names that were not looked at because of [`MAX_ENTRIES`] or because they are not UTF-8.
    pub(crate) passed_over: usize,
}

/// Looks at the directory; at the files' signatures too, where they count.
///
/// # Errors
/// When the directory itself cannot be read. Nothing follows from that about its files.
pub(crate) fn list(directory: &Path, signed: bool) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for (count, entry) in fs::read_dir(directory)?.enumerate() {
        let entry = entry?;
        if count >= MAX_ENTRIES {
            listing.passed_over += 1;
            continue;
        }
        let Ok(name) = entry.file_name().into_string() else {
            listing.passed_over += 1;
            continue;
        };
        if classify(&name).is_none() {
            continue;
        }
        if let Some(mut look) = look_at(&entry.path()) {
            if let (true, Look::File(print)) = (signed, &mut look)
                && let Ok(metadata) = fs::metadata(beside(&entry.path()))
            {
                print.signature = Some(Box::new(Fingerprint::of(&metadata)));
            }
            listing.files.insert(name, look);
        }
    }
    if !listing.files.contains_key(EXAMPLE_COMPONENT) {
        listing.files.remove(EXAMPLE_MANIFEST);
    }
    Ok(listing)
}

/// Looks at one path; `None` when nothing is there that could be a plugin's file.
fn look_at(path: &Path) -> Option<Look> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Some(Look::File(Fingerprint::of(&metadata))),
        // A folder, a pipe, a device: opening one could block for ever.
        Ok(_) => None,
        // Also a link that points nowhere, as during a swap.
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(Look::Unreadable(error.to_string())),
    }
}

/// What came of reading a file that had settled.
#[derive(Debug)]
pub(crate) enum Content {
    /// Its bytes, as they were when it looked as expected.
    Bytes(Vec<u8>),
    /// It changed before or while it was read: it is waited for again.
    Changed,
}

/// Reads a settled file whole, once.
///
/// # Errors
/// When it cannot be opened or read, or is larger than such a file may be.
pub(crate) fn read(path: &Path, expected: &Fingerprint, max: u64) -> io::Result<Content> {
    if expected.size > max {
        let text = format!("has {} bytes of at most {max}", expected.size);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::Changed),
        Err(error) => return Err(error),
    };
    if !expected.is_of(&file.metadata()?) {
        return Ok(Content::Changed);
    }
    let capacity = usize::try_from(expected.size).unwrap_or_default();
    let mut bytes = Vec::with_capacity(capacity);
    // One byte more than expected shows growth, and bounds what a growing file can take.
    (&mut file)
        .take(expected.size.saturating_add(1))
        .read_to_end(&mut bytes)?;
    let is_same = expected.is_of(&file.metadata()?);
    if !is_same || bytes.len() as u64 != expected.size {
        return Ok(Content::Changed);
    }
    Ok(Content::Bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, wanted: Option<(&str, Kind)>) {
        assert_eq!(classify(name), wanted, "{name}");
    }

    #[test]
    fn only_plugins_files_are_seen() {
        check("orders.wasm", Some(("orders", Kind::Component)));
        check("a.b.toml", Some(("a.b", Kind::Manifest)));
        for name in [
            "oncue-project.toml",
            "README.md",
            "README",
            ".orders.wasm",
            ".wasm",
            "..data",
            "orders.wasm~",
            "orders.wasm.tmp",
            "orders.wasm.part",
            ".orders.toml.swp",
            "orders.WASM",
            "wasm",
        ] {
            check(name, None);
        }
    }

    #[test]
    fn the_directory_is_listed_through_its_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("..v1")).expect("a folder");
        fs::write(at("..v1/orders.wasm"), "one").expect("a file");
        std::os::unix::fs::symlink("..v1", at("..data")).expect("a link");
        std::os::unix::fs::symlink("..data/orders.wasm", at("orders.wasm")).expect("a link");
        std::os::unix::fs::symlink("nowhere", at("gone.wasm")).expect("a link");
        fs::create_dir(at("folder.wasm")).expect("a folder");
        fs::write(at("example.toml"), "").expect("a file");
        let before = list(folder.path(), false).expect("a listing");
        assert_eq!(before.files.keys().collect::<Vec<_>>(), ["orders.wasm"]);

        // The swap of a ConfigMap: a new folder, and the one link renamed over.
        fs::create_dir(at("..v2")).expect("a folder");
        fs::write(at("..v2/orders.wasm"), "two").expect("a file");
        std::os::unix::fs::symlink("..v2", at("..tmp")).expect("a link");
        fs::rename(at("..tmp"), at("..data")).expect("a rename");
        let after = list(folder.path(), false).expect("a listing");
        assert_ne!(before.files, after.files);

        fs::write(at("example.wasm"), "").expect("a file");
        let example = list(folder.path(), false).expect("a listing");
        assert!(example.files.contains_key("example.toml"));
    }

    #[test]
    fn a_file_that_changed_is_not_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("orders.wasm");
        fs::write(&path, "whole").expect("a file");
        let Some(Look::File(print)) = look_at(&path) else {
            panic!("no file")
        };
        let content = read(&path, &print, 100).expect("it reads");
        assert!(matches!(content, Content::Bytes(bytes) if bytes == b"whole"));
        let refused = read(&path, &print, 4).expect_err("too large");
        assert!(
            refused.to_string().contains("has 5 bytes of at most 4"),
            "{refused}"
        );

        fs::write(&path, "whole and more").expect("a file");
        assert!(matches!(read(&path, &print, 100), Ok(Content::Changed)));
        fs::remove_file(&path).expect("removed");
        assert!(matches!(read(&path, &print, 100), Ok(Content::Changed)));
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(list(&folder.path().join("none"), false).is_err());
    }
}
