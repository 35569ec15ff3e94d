//! Good versions that are kept: the bytes of components by digest, and one record for each plugin
//! that names them. They serve rollbacks, and restarts while the plugins directory has a bad drop.
//!
//! Every component that is read from the plugins directory passes through here first, so that what
//! is compiled is what was hashed. When the disk takes no more, bytes are held in memory, within a
//! bound: a full disk does not keep a plugin from being served.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oncue_core::names::PluginName;
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::bounds::{MAX_COMPONENT_BYTES, MAX_HELD_BYTES, MAX_RECORD_BYTES, MAX_RECORDS};
use super::digest::Digest;
use super::signatures::{PluginKeys, beside};
use super::storage::{make_private, remove, replace, sweep};

/// One version of a plugin that was good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptVersion {
    /// The component.
    pub(crate) component: Digest,
    /// The component's file name at that time.
    pub(crate) file: String,
    /// The text of the manifest beside it; none: there was no such manifest.
    #[serde(default)]
    pub(crate) manifest: Option<String>,
    /// The text of the manifest inside of it.
    #[serde(default)]
    pub(crate) embedded: Option<String>,
}

/// A rollback that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pin {
    /// What is served.
    pub(crate) component: Digest,
    /// What the file has: another content ends the pin.
    pub(crate) instead_of: Digest,
}

/// What is remembered of one plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Good versions, newest first.
    pub(crate) versions: Vec<KeptVersion>,
    /// The rollback that holds, if one does.
    #[serde(default)]
    pub(crate) pin: Option<Pin>,
}

/// The folder of kept versions.
#[derive(Debug)]
pub(crate) struct Kept {
    folder: PathBuf,
    /// Components that the disk did not take.
    held: BTreeMap<Digest, Arc<[u8]>>,
    /// Whether the last write failed: warned of on the edge.
    failing: bool,
}

impl Kept {
    /// Opens the folder, which need not exist.
    pub(crate) fn open(folder: PathBuf) -> Self {
        sweep(&folder);
        sweep(&folder.join("records"));
        Self {
            folder,
            held: BTreeMap::new(),
            failing: false,
        }
    }

    fn component(&self, digest: &Digest) -> PathBuf {
        self.folder.join(format!("{digest}.wasm"))
    }

    fn record(&self, plugin: &PluginName) -> PathBuf {
        self.folder.join("records").join(format!("{plugin}.json"))
    }

    /// Keeps a component.
    ///
    /// # Errors
    /// When neither the disk nor memory takes it; the sentence is for the operator.
    pub(crate) fn keep(&mut self, bytes: Vec<u8>) -> Result<Digest, String> {
        let digest = Digest::of(&bytes);
        let path = self.component(&digest);
        if fs::metadata(&path).is_ok_and(|known| known.len() == bytes.len() as u64)
            || self.held.contains_key(&digest)
        {
            return Ok(digest);
        }
        let written = make_private(&self.folder).and_then(|()| replace(&path, &bytes, true));
        match written {
            Ok(()) => self.failing = false,
            Err(error) => {
                let folder = self.folder.display();
                if !std::mem::replace(&mut self.failing, true) {
                    warn!("\"{folder}\" takes no component ({error}); held in memory for now");
                }
                let held: usize = self.held.values().map(|bytes| bytes.len()).sum();
                if held + bytes.len() > MAX_HELD_BYTES {
                    return Err(format!(
                        "cannot be kept in \"{folder}\" ({error}); free the disk"
                    ));
                }
                self.held.insert(digest.clone(), bytes.into());
            }
        }
        Ok(digest)
    }

    /// Keeps the signature of a component that is kept.
    ///
    /// # Errors
    /// When the disk does not take it; the sentence is for the operator.
    pub(crate) fn keep_signature(&self, digest: &Digest, signature: &str) -> Result<(), String> {
        if self.held.contains_key(digest) {
            // In memory for now: it was signed when it came, and does not outlive this process.
            return Ok(());
        }
        let path = beside(&self.component(digest));
        replace(&path, signature.as_bytes(), true).map_err(|error| {
            let folder = self.folder.display();
            format!("has a signature that cannot be kept in \"{folder}\" ({error}); free the disk")
        })
    }

    /// Where a trial finds a component's bytes.
    pub(crate) fn source(&self, digest: &Digest) -> Source {
        match self.held.get(digest) {
            Some(bytes) => Source::Memory(Arc::clone(bytes)),
            None => Source::File(self.component(digest)),
        }
    }

    /// Writes a plugin's record; durable when this returns.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub(crate) fn write_record(&self, plugin: &PluginName, record: &Record) -> io::Result<()> {
        let bytes = serde_json::to_vec_pretty(record).map_err(io::Error::other)?;
        replace(&self.record(plugin), &bytes, true)
    }

    /// Forgets a plugin. Its components go with the next [`collect`](Self::collect).
    pub(crate) fn remove_record(&self, plugin: &PluginName) -> io::Result<()> {
        remove(&self.record(plugin))
    }

    /// Reads all records. One that cannot be read is warned of and passed over: its plugin is
    /// served from the plugins directory as if it were new.
    pub(crate) fn read_records(&self) -> BTreeMap<PluginName, Record> {
        let mut records = BTreeMap::new();
        let Ok(entries) = fs::read_dir(self.folder.join("records")) else {
            return records;
        };
        for entry in entries.flatten().take(MAX_RECORDS) {
            let name = entry.file_name();
            let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".json")) else {
                continue;
            };
            let Ok(plugin) = PluginName::new(name) else {
                continue;
            };
            match read_record(&entry.path()) {
                Ok(record) => {
                    records.insert(plugin, record);
                }
                Err(error) => warn!("\"{}\" is passed over ({error})", entry.path().display()),
            }
        }
        records
    }

    /// Removes every component that is not wanted.
    pub(crate) fn collect(&mut self, wanted: &BTreeSet<Digest>) {
        self.held.retain(|digest, _| wanted.contains(digest));
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let stem = name.to_str().and_then(|name| name.strip_suffix(".wasm"));
            let Some(digest) = stem.and_then(Digest::parse) else {
                continue;
            };
            if !wanted.contains(&digest)
                && let Err(error) =
                    remove(&entry.path()).and_then(|()| remove(&beside(&entry.path())))
            {
                warn!("\"{}\" cannot be removed ({error})", entry.path().display());
            }
        }
    }

    /// A kept component's size on disk, bytes; 0 when it is not there.
    pub(crate) fn size(&self, digest: &Digest) -> u64 {
        fs::metadata(self.component(digest)).map_or(0, |metadata| metadata.len())
    }
}

fn read_record(path: &Path) -> io::Result<Record> {
    if fs::metadata(path)?.len() > MAX_RECORD_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    serde_json::from_slice(&fs::read(path)?).map_err(io::Error::other)
}

/// Where a component's bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// In the folder of kept versions.
    File(PathBuf),
    /// In memory.
    Memory(Arc<[u8]>),
}

impl Source {
    /// The signature that is kept with a component; none is needed for one in memory, which was
    /// signed when it came.
    pub(crate) fn is_signed(&self, bytes: &[u8], keys: &PluginKeys) -> bool {
        let Self::File(path) = self else {
            return true;
        };
        let signature = fs::read_to_string(beside(path)).unwrap_or_default();
        keys.have_signed(bytes, &signature)
    }

    /// Reads the bytes and makes sure that they are the ones of the digest.
    ///
    /// # Errors
    /// When they are gone or damaged. A damaged file is removed, so that the component is taken
    /// from the plugins directory again.
    pub(crate) fn read(&self, digest: &Digest) -> io::Result<Arc<[u8]>> {
        let path = match self {
            Self::Memory(bytes) => return Ok(Arc::clone(bytes)),
            Self::File(path) => path,
        };
        if fs::metadata(path)?.len() > MAX_COMPONENT_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let bytes = fs::read(path)?;
        if Digest::of(&bytes) != *digest {
            remove(path)?;
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the kept copy was damaged",
            ));
        }
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> PluginName {
        PluginName::new("orders").expect("a name")
    }

    #[test]
    fn components_are_kept_by_content_and_collected() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut kept = Kept::open(folder.path().join("kept"));
        let one = kept.keep(b"one".to_vec()).expect("kept");
        let two = kept.keep(b"two".to_vec()).expect("kept");
        assert_eq!(kept.keep(b"one".to_vec()), Ok(one.clone()));
        assert_eq!(
            kept.source(&one).read(&one).expect("it reads").as_ref(),
            b"one"
        );
        kept.collect(&BTreeSet::from([two.clone()]));
        assert!(kept.source(&one).read(&one).is_err());
        assert_eq!(
            kept.source(&two).read(&two).expect("it reads").as_ref(),
            b"two"
        );
        assert_eq!(kept.size(&two), 3);
    }

    #[test]
    fn a_damaged_copy_is_not_used_and_makes_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut kept = Kept::open(folder.path().to_path_buf());
        let digest = kept.keep(b"whole".to_vec()).expect("kept");
        fs::write(kept.component(&digest), b"whale").expect("damaged");
        assert!(kept.source(&digest).read(&digest).is_err());
        kept.keep(b"whole".to_vec()).expect("kept anew");
        assert!(kept.source(&digest).read(&digest).is_ok());
    }

    #[test]
    fn a64_a_full_disk_holds_components_in_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        // A file where the folder should be: nothing can be written below it.
        fs::write(folder.path().join("kept"), "").expect("a file");
        let mut kept = Kept::open(folder.path().join("kept"));
        let digest = kept.keep(b"bytes".to_vec()).expect("held");
        assert_eq!(
            kept.source(&digest)
                .read(&digest)
                .expect("it reads")
                .as_ref(),
            b"bytes"
        );
        assert!(kept.write_record(&name(), &Record::default()).is_err());
        kept.collect(&BTreeSet::new());
        assert!(kept.held.is_empty());
    }

    #[test]
    fn records_survive_and_damaged_ones_are_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = Kept::open(folder.path().to_path_buf());
        let version = KeptVersion {
            component: Digest::of(b"one"),
            file: "orders.wasm".to_owned(),
            manifest: Some("[process]\n".to_owned()),
            embedded: None,
        };
        let pin = Pin {
            component: Digest::of(b"one"),
            instead_of: Digest::of(b"two"),
        };
        let record = Record {
            versions: vec![version],
            pin: Some(pin),
        };
        kept.write_record(&name(), &record).expect("written");
        fs::write(folder.path().join("records/bad.json"), "{").expect("a file");
        assert_eq!(kept.read_records(), BTreeMap::from([(name(), record)]));
        kept.remove_record(&name()).expect("removed");
        kept.remove_record(&name()).expect("gone is fine");
        assert!(kept.read_records().is_empty());
    }
}
