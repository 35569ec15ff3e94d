//! Compiled components on disk, by the component's digest and the engine's compatibility hash; and
//! components that were made of core modules, by the module's.
//!
//! The sandbox loads such a file as native code without checking it, so nothing is answered here
//! that was not verified first: beside each file lies the digest that it had when it was compiled.
//! Every fault is a miss with a warning, never an error: the component is compiled again, and if
//! the folder takes nothing, it is loaded from a private temporary file. Nothing but the host's own
//! compiler writes here; the folder is private.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::NamedTempFile;
use tracing::warn;

use super::bounds::{COMPILE_TIMEOUT, MAX_COMPILED_BYTES};
use super::digest::Digest;
use super::storage::{make_private, remove, replace, sweep, sweep_old};

const CHECK: &str = "sha256";

/// What was made of a dropped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Native code.
    Compiled,
    /// The component that was made of a core module.
    Adapted,
}

impl Form {
    const ALL: [Self; 2] = [Self::Compiled, Self::Adapted];

    /// How that is called.
    fn made(self) -> &'static str {
        match self {
            Self::Compiled => "compiled",
            Self::Adapted => "made a component",
        }
    }

    /// How its files end.
    fn extension(self) -> &'static str {
        match self {
            Self::Compiled => "cwasm",
            Self::Adapted => "adapted",
        }
    }
}

/// The folder of compiled components.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    /// What stands for the engine in file names.
    engine: String,
    /// Bytes that all files together may have.
    max_bytes: u64,
    /// A test's full disk.
    #[cfg(test)]
    full: bool,
}

/// A file that was made of a dropped one and may be loaded.
#[derive(Debug)]
pub(crate) struct Compiled {
    path: PathBuf,
    /// Removes the file when it is not in the cache. What was loaded from it stays mapped.
    _temporary: Option<NamedTempFile>,
}

impl Compiled {
    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Cache {
    /// Opens the folder, which need not exist. `engine` is the compatibility hash in hexadecimal.
    pub(crate) fn open(folder: PathBuf, engine: &str, max_bytes: u64) -> Self {
        let folder = whole(folder);
        sweep(&folder);
        Self {
            folder,
            engine: engine.to_owned(),
            max_bytes,
            #[cfg(test)]
            full: false,
        }
    }

    /// Opens a folder in which other processes of the same user may be at work too: only what has
    /// been left half-written for long is removed.
    pub(crate) fn open_shared(folder: PathBuf, engine: &str, max_bytes: u64) -> Self {
        let folder = whole(folder);
        sweep_old(&folder, COMPILE_TIMEOUT * 2);
        Self {
            folder,
            engine: engine.to_owned(),
            max_bytes,
            #[cfg(test)]
            full: false,
        }
    }

    fn file(&self, form: Form, dropped: &Digest) -> PathBuf {
        let extension = form.extension();
        self.folder
            .join(format!("{dropped}-{}.{extension}", self.engine))
    }

    fn check_file(made: &Path) -> PathBuf {
        let mut name = made.as_os_str().to_owned();
        name.push(format!(".{CHECK}"));
        name.into()
    }

    /// Finds what was made of a file before, and verifies it.
    pub(crate) fn look_up(&self, form: Form, dropped: &Digest) -> Option<Compiled> {
        let path = self.file(form, dropped);
        match verify(&path) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => {
                let file = path.display();
                let made = form.made();
                warn!("the cached \"{file}\" is not used ({error}); {made} again");
                self.discard(form, dropped);
                return None;
            }
        }
        let used = File::options().append(true).open(&path);
        if let Err(error) = used.and_then(|file| file.set_modified(now())) {
            warn!("\"{}\" cannot be marked as used ({error})", path.display());
        }
        Some(Compiled {
            path,
            _temporary: None,
        })
    }

    /// Removes what was made of a file, for instance when the sandbox refuses it.
    pub(crate) fn discard(&self, form: Form, dropped: &Digest) {
        let path = self.file(form, dropped);
        for file in [Self::check_file(&path), path] {
            if let Err(error) = remove(&file) {
                warn!("\"{}\" cannot be removed ({error})", file.display());
            }
        }
    }

    /// An empty file for the compiler to write to: in the cache's folder, or else in the system's
    /// temporary one.
    ///
    /// # Errors
    /// When neither takes a file.
    pub(crate) fn output(&self) -> io::Result<NamedTempFile> {
        match self.output_inside() {
            Ok(file) => Ok(file),
            Err(error) => {
                let folder = self.folder.display();
                warn!("the compile cache \"{folder}\" cannot be written ({error}); not used");
                self.output_outside()
            }
        }
    }

    fn output_inside(&self) -> io::Result<NamedTempFile> {
        #[cfg(test)]
        if self.full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        make_private(&self.folder)?;
        tempfile::Builder::new()
            .prefix(".new-")
            .tempfile_in(&self.folder)
    }

    /// A private file outside of the cache, for when the cache has no room.
    ///
    /// # Errors
    /// When the system's temporary folder takes none.
    pub(crate) fn output_outside(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new()
            .prefix("oncue-")
            .suffix(".cwasm")
            .tempfile()
    }

    /// Takes in what the compiler wrote to a file of [`output`](Self::output). It can be loaded
    /// whether the cache keeps it or not.
    pub(crate) fn store(&self, form: Form, dropped: &Digest, output: NamedTempFile) -> Compiled {
        let path = self.file(form, dropped);
        if output.path().parent() != Some(self.folder.as_path()) {
            return Compiled {
                path: output.path().to_path_buf(),
                _temporary: Some(output),
            };
        }
        let check = fs::read(output.path()).map(|bytes| Digest::of(&bytes));
        let written = check.and_then(|check| {
            // The check goes first to nowhere: no file is believed that has another's check.
            remove(&Self::check_file(&path))?;
            Ok(check)
        });
        let check = match written {
            Ok(check) => check,
            Err(error) => {
                warn!("\"{}\" is not cached ({error})", path.display());
                return Compiled {
                    path: output.path().to_path_buf(),
                    _temporary: Some(output),
                };
            }
        };
        match output.persist(&path) {
            Ok(_) => {}
            Err(error) => {
                warn!("\"{}\" is not cached ({})", path.display(), error.error);
                let file = error.file;
                return Compiled {
                    path: file.path().to_path_buf(),
                    _temporary: Some(file),
                };
            }
        }
        if let Err(error) = replace(&Self::check_file(&path), check.as_str().as_bytes(), false) {
            let made = form.made();
            warn!("\"{}\" will be {made} again ({error})", path.display());
        }
        self.trim(&path);
        Compiled {
            path,
            _temporary: None,
        }
    }

    /// Removes the longest unused files until the rest fits. The newest stays in any case.
    fn trim(&self, newest: &Path) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in entries.flatten() {
            let path = entry.path();
            let is_made = |form: &Form| path.extension().is_some_and(|it| it == form.extension());
            if Form::ALL.iter().any(is_made)
                && let Ok(metadata) = entry.metadata()
                && let Ok(used) = metadata.modified()
            {
                files.push((used, metadata.len(), path));
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, length, _)| length).sum();
        for (_, length, path) in files {
            if total <= self.max_bytes {
                break;
            }
            if path == newest {
                continue;
            }
            // Loaded code stays mapped when its file is removed.
            let removed = remove(&Self::check_file(&path)).and_then(|()| remove(&path));
            match removed {
                Ok(()) => total -= length,
                Err(error) => warn!("\"{}\" cannot be removed ({error})", path.display()),
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a file's age, compared only with other files'"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Whether the file is there; an error when it is there and not what was written.
fn verify(path: &Path) -> io::Result<bool> {
    let length = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if length > MAX_COMPILED_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let wanted = match fs::read_to_string(Cache::check_file(path)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "its check is missing",
            ));
        }
        Err(error) => return Err(error),
    };
    if Digest::of(&fs::read(path)?).as_str() != wanted {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is damaged"));
    }
    Ok(true)
}

/// A path from the root. A file that is made under a relative one has a whole path, and would be
/// taken for one outside of the cache.
fn whole(folder: PathBuf) -> PathBuf {
    std::path::absolute(&folder).unwrap_or(folder)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Duration;

    use super::*;

    const ENGINE: &str = "engine1";

    fn compile(cache: &Cache, component: &Digest, bytes: &[u8]) -> Compiled {
        let mut output = cache.output().expect("a place to write to");
        output.write_all(bytes).expect("written");
        cache.store(Form::Compiled, component, output)
    }

    #[test]
    fn a_folder_that_is_named_from_here_keeps_what_it_is_given() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = std::env::current_dir().expect("a folder");
        let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
        let below = folder.path().strip_prefix("/").expect("a whole path");
        let relative = up.join(".").join(below).join("cache");
        assert!(relative.is_relative());
        let cache = Cache::open(relative, ENGINE, 1 << 20);
        let component = Digest::of(b"component");
        drop(compile(&cache, &component, b"native code"));
        assert!(cache.look_up(Form::Compiled, &component).is_some());
    }

    /// Fills a cache with one file, lets `damage` at it, and demands a miss and then a cure.
    fn check(what: &str, damage: impl FnOnce(&Path)) {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::open(folder.path().join("cache"), ENGINE, 1 << 20);
        let component = Digest::of(b"component");
        assert!(
            cache.look_up(Form::Compiled, &component).is_none(),
            "{what}: hit in an empty cache"
        );
        let stored = compile(&cache, &component, b"native code");
        let found = cache.look_up(Form::Compiled, &component).expect("a hit");
        assert_eq!(found.path(), stored.path());
        damage(stored.path());
        assert!(
            cache.look_up(Form::Compiled, &component).is_none(),
            "{what}: used"
        );
        let again = compile(&cache, &component, b"native code");
        assert_eq!(fs::read(again.path()).expect("it reads"), b"native code");
        assert!(
            cache.look_up(Form::Compiled, &component).is_some(),
            "{what}: not cured"
        );
    }

    #[test]
    fn a64_every_fault_of_a_cached_file_is_a_miss() {
        check("damaged", |path| {
            fs::write(path, b"native codE").expect("written")
        });
        check("truncated", |path| {
            fs::write(path, b"native").expect("written")
        });
        check("empty", |path| fs::write(path, b"").expect("written"));
        check("gone", |path| fs::remove_file(path).expect("removed"));
        check("without check", |path| {
            fs::remove_file(Cache::check_file(path)).expect("removed");
        });
        check("with another's check", |path| {
            fs::write(Cache::check_file(path), Digest::of(b"x").as_str()).expect("written");
        });
    }

    #[test]
    fn a64_another_engines_file_is_not_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let component = Digest::of(b"component");
        let one = Cache::open(folder.path().to_path_buf(), ENGINE, 1 << 20);
        compile(&one, &component, b"native code");
        let other = Cache::open(folder.path().to_path_buf(), "engine2", 1 << 20);
        assert!(other.look_up(Form::Compiled, &component).is_none());
    }

    /// Demands that a cache which keeps nothing still gives something to load.
    fn check_unusable(cache: &Cache) {
        let component = Digest::of(b"component");
        assert!(cache.look_up(Form::Compiled, &component).is_none());
        let compiled = compile(cache, &component, b"native code");
        assert_eq!(fs::read(compiled.path()).expect("it reads"), b"native code");
        assert!(cache.look_up(Form::Compiled, &component).is_none());
        let path = compiled.path().to_path_buf();
        drop(compiled);
        assert!(!path.exists(), "the temporary file is left behind");
    }

    #[test]
    fn a64_a_cache_that_cannot_be_written_still_serves() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("cache");
        fs::write(&file, "").expect("a file in the folder's place");
        check_unusable(&Cache::open(file, ENGINE, 1 << 20));
        let mut full = Cache::open(folder.path().join("full"), ENGINE, 1 << 20);
        full.full = true;
        check_unusable(&full);
    }

    #[test]
    fn the_longest_unused_go_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::open(folder.path().to_path_buf(), ENGINE, 25);
        let digests = [b"a", b"b", b"c"].map(|bytes| Digest::of(bytes));
        for (index, digest) in digests.iter().take(2).enumerate() {
            let compiled = compile(&cache, digest, b"0123456789");
            let used = SystemTime::UNIX_EPOCH + Duration::from_secs(1000 - index as u64 * 10);
            let file = File::options()
                .append(true)
                .open(compiled.path())
                .expect("opened");
            file.set_modified(used).expect("set");
        }
        compile(&cache, &digests[2], b"0123456789");
        let there = digests
            .each_ref()
            .map(|digest| cache.look_up(Form::Compiled, digest).is_some());
        assert_eq!(there, [true, false, true]);
    }
}
