//! Where `oncue dev` keeps its host: `.oncue` in the project's folder, with a plugins directory of
//! its own into which what was built is dropped.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use oncue_core::code::Code;
use oncue_core::definition::Raw;
use oncue_store::lock_file;

use crate::exit::{Exit, Failure};
use crate::project::Project;

/// The folder in the project's.
const FOLDER: &str = ".oncue";

/// What `--fresh` leaves: compiled components and a measurement, which only cost time to make.
const KEPT: &[&str] = &["plugins-cache", "fuel-rate"];

/// The place of one `oncue dev`.
pub(super) struct Place {
    folder: PathBuf,
    /// Held for as long as it runs.
    _lock: File,
}

/// What a drop has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dropped {
    /// A file is another one now.
    Changed,
    /// The same bytes as before.
    Same,
}

impl Place {
    /// Takes the place, for one `oncue dev` at a time; `fresh` empties it first.
    ///
    /// # Errors
    /// Refused when another one has it.
    pub(super) fn take(project: &Path, fresh: bool) -> Result<Self, Failure> {
        let folder = project.join(FOLDER);
        let shown = folder.display().to_string();
        fs::create_dir_all(&folder).with_context(|| format!("\"{shown}\" cannot be made"))?;
        let lock = File::create(folder.join("lock"))
            .with_context(|| format!("\"{shown}\" cannot be written to"))?;
        match lock_file::lock(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("project \"{}\" has an oncue dev already", project.display());
                return Err(Failure::coded(Code::StoreInUse, message));
            }
            Err(TryLockError::Error(error)) => {
                return Err(anyhow::Error::from(error)
                    .context(format!("lock \"{shown}\""))
                    .into());
            }
        }
        let place = Self {
            folder,
            _lock: lock,
        };
        // Nothing of it belongs to the project's history.
        fs::write(place.folder.join(".gitignore"), "*\n")
            .with_context(|| format!("\"{shown}\" cannot be written to"))?;
        if fresh {
            place
                .empty()
                .with_context(|| format!("\"{shown}\" cannot be emptied"))?;
        }
        Ok(place)
    }

    /// The host's data directory.
    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The host's plugins directory.
    pub(super) fn plugins(&self) -> PathBuf {
        self.folder.join("plugins")
    }

    fn empty(&self) -> io::Result<()> {
        if self.plugins().exists() {
            fs::remove_dir_all(self.plugins())?;
        }
        let entries = match fs::read_dir(self.data()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if KEPT.iter().any(|kept| entry.file_name() == *kept) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Drops what the project has made into the plugins directory, each file whole at once, and
    /// removes what is not the project's.
    ///
    /// # Errors
    /// What is missing or cannot be copied, in a sentence.
    pub(super) fn drop_plugin(&self, project: &Project) -> Result<Dropped, Failure> {
        let plugins = self.plugins();
        let component = read(&project.component, "component")?;
        let manifest = project
            .manifest
            .as_ref()
            .map(|path| read(path, "manifest"))
            .transpose()?;
        let plugin = &project.plugin;
        let named = manifest.as_deref().and_then(component_of);
        let mut files = vec![(named.unwrap_or_else(|| format!("{plugin}.wasm")), component)];
        files.extend(manifest.map(|bytes| (format!("{plugin}.toml"), bytes)));
        let mut dropped = Dropped::Same;
        // The component last: with it the plugin is whole.
        for (name, bytes) in files.iter().rev() {
            let path = plugins.join(name);
            if fs::read(&path).is_ok_and(|old| old == *bytes) {
                continue;
            }
            let partial = plugins.join(format!(".{name}.partial"));
            fs::write(&partial, bytes)
                .and_then(|()| fs::rename(&partial, &path))
                .with_context(|| format!("\"{}\" cannot be written", path.display()))?;
            dropped = Dropped::Changed;
        }
        let entries = fs::read_dir(&plugins).context("read the plugins directory")?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let ours = files.iter().any(|(file, _)| name == file.as_str());
            if !ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                // What stays is a plugin too many, no more.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(dropped)
    }
}

fn read(path: &Path, what: &str) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| {
        let shown = path.display();
        let message = match error.kind() {
            io::ErrorKind::NotFound => format!(
                "{what} \"{shown}\" is not there; the build should have made it, see \
                 {}",
                crate::project::PROJECT_FILE
            ),
            _ => format!("{what} \"{shown}\" cannot be read: {error}"),
        };
        Failure::new(Exit::Failed, message)
    })
}

/// The file that a manifest names as its component.
fn component_of(manifest: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(manifest).ok()?;
    let raw = toml::from_str::<Raw>(text).ok()?;
    match raw.get("process")?.get("component")? {
        // What is no plain file name is refused by the host, at its place.
        Raw::Text(name) if !name.is_empty() && !name.contains('/') => Some(name.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(folder: &Path, manifest: &str) -> Project {
        let text = "[project]\nname = \"p\"\ncomponent = \"out.wasm\"\nmanifest = \"p.toml\"\n";
        fs::write(folder.join(crate::project::PROJECT_FILE), text).expect("written");
        fs::write(folder.join("p.toml"), manifest).expect("written");
        Project::read(folder).expect("a project")
    }

    #[test]
    fn what_was_built_is_dropped_under_the_manifests_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::take(folder.path(), false).expect("a place");
        fs::create_dir(place.plugins()).expect("a folder");
        let mut files = project(folder.path(), "");
        let missing = place.drop_plugin(&files).expect_err("nothing is built");
        assert!(missing.message.contains("should have made it"), "{missing}");
        fs::write(folder.path().join("out.wasm"), "one").expect("written");
        let names = |place: &Place| {
            let entries = fs::read_dir(place.plugins()).expect("a folder").flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(
            place.drop_plugin(&files).expect("dropped"),
            Dropped::Changed
        );
        assert_eq!(names(&place), ["p.toml", "p.wasm"]);
        assert_eq!(place.drop_plugin(&files).expect("dropped"), Dropped::Same);

        files = project(folder.path(), "[process]\ncomponent = \"other.wasm\"\n");
        assert_eq!(
            place.drop_plugin(&files).expect("dropped"),
            Dropped::Changed
        );
        assert_eq!(names(&place), ["other.wasm", "p.toml"]);
    }

    #[test]
    fn a_place_is_for_one_and_can_be_emptied() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::take(folder.path(), false).expect("a place");
        let second = Place::take(folder.path(), true).err().expect("it is taken");
        assert_eq!(second.exit, Exit::Refused);
        for name in ["store", "plugins-cache"] {
            fs::create_dir_all(place.data().join(name)).expect("a folder");
        }
        fs::create_dir_all(place.plugins()).expect("a folder");
        drop(place);
        let place = Place::take(folder.path(), true).expect("a place");
        assert!(!place.data().join("store").exists() && !place.plugins().exists());
        assert!(place.data().join("plugins-cache").exists());
    }
}
