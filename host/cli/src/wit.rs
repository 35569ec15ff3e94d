//! The WIT packages that handlers are built against, inside of the binary: an author needs no
//! registry and no network. `oncue wit` and `oncue new` write them, `oncue plugin componentize`
//! reads them.
//!
//! It writes these files and touches no other: a world of the author's own beside them stays.
//! Neighbour: `commands::wit` shows what was written.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failure};

/// A file of the repository's `wit/`, with its path there.
macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../wit/", $path)))),*]
    };
}

/// Every file: where it goes, relative, and its text.
pub(crate) const FILES: &[(&str, &str)] = files![
    "README.md",
    "handlers.wit",
    "languages.md",
    "queues.wit",
    "testing.md",
    "toolchains.md",
    "types.wit",
    "what-a-call-costs.md",
    "why-was-my-handler-stopped.md",
    "worlds.wit",
    "deps/LICENSE",
    "deps/LICENSE-note",
    "deps/cli/cli.wit",
    "deps/clocks/clocks.wit",
    "deps/config/store.wit",
    "deps/config/world.wit",
    "deps/filesystem/filesystem.wit",
    "deps/io/io.wit",
    "deps/keyvalue/atomic.wit",
    "deps/keyvalue/batch.wit",
    "deps/keyvalue/store.wit",
    "deps/keyvalue/watch.wit",
    "deps/keyvalue/world.wit",
    "deps/logging/logging.wit",
    "deps/logging/world.wit",
    "deps/random/random.wit",
    "deps/sockets/sockets.wit",
    "styles/README.md",
    "styles/command.md",
    "styles/message.md",
    "styles/spin-sqs.md",
    "styles/trigger.md",
    "styles/wasi-http.md",
    "styles/wasi-messaging.md",
    "styles/wasmcloud-messaging.md",
];

/// Writes every file under a folder, which is made if it is not there. A file of the same name is
/// replaced when its text differs, all others are left alone. Answers the paths of all files,
/// relative to the folder.
///
/// # Errors
/// When a folder or a file cannot be written; those before it are.
pub(crate) fn write(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut written = Vec::with_capacity(FILES.len());
    for (path, text) in FILES {
        let to = directory.join(path);
        write_file(&to, text).map_err(|error| {
            let message = format!("\"{}\" cannot be written ({error})", to.display());
            Failure::new(Exit::Failed, message)
        })?;
        written.push(PathBuf::from(path));
    }
    Ok(written)
}

fn write_file(to: &Path, text: &str) -> io::Result<()> {
    let folder = to.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    // The same text again would make build tools build again.
    if fs::read(to).is_ok_and(|present| present == text.as_bytes()) {
        return Ok(());
    }
    replace(to, text.as_bytes())
}

/// Writes a file whole or not at all. One that is there keeps its permissions.
///
/// # Errors
/// Those of the system; there is no trace of the attempt then.
pub(crate) fn replace(to: &Path, bytes: &[u8]) -> io::Result<()> {
    // Through a link: what it points to is replaced, and the link stays.
    let to = fs::canonicalize(to).unwrap_or_else(|_| to.to_path_buf());
    let folder = to
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or_else(|| Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".oncue-");
    // What a new file usually gets; the system takes the user's mask off.
    let usual = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666);
    builder.permissions(usual);
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    if let Ok(metadata) = fs::metadata(&to) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&to).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Files of a folder of the repository, relative to it.
    fn files_under(folder: &Path, below: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder.join(below)).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = below.join(entry.file_name());
            if entry.path().is_dir() {
                files_under(folder, &path, found);
            } else {
                found.insert(path.display().to_string());
            }
        }
    }

    #[test]
    fn the_table_has_every_file_that_an_author_needs() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let mut there = BTreeSet::new();
        files_under(&folder, Path::new(""), &mut there);
        let table: BTreeSet<String> = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
        // Those of other hosts come with what is built for them.
        let ours = |path: &&String| !path.starts_with("borrowed/");
        let missing: Vec<&String> = there.difference(&table).filter(ours).collect();
        assert!(missing.is_empty(), "not in the table: {missing:?}");
    }

    #[test]
    fn what_is_written_can_be_written_again_and_leaves_the_rest_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let wit = folder.path().join("a/wit");
        let written = write(&wit).expect("written");
        assert_eq!(written.len(), FILES.len());
        fs::write(wit.join("mine.wit"), "package my:own;").expect("written");
        fs::write(wit.join("types.wit"), "spoilt").expect("written");
        write(&wit).expect("written again");
        for (path, text) in FILES {
            let there = fs::read_to_string(wit.join(path)).expect("it reads");
            assert_eq!(there, *text, "{path}");
        }
        let mine = fs::read_to_string(wit.join("mine.wit")).expect("it reads");
        assert_eq!(mine, "package my:own;");
    }

    #[test]
    fn a_folder_that_is_a_file_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("wit");
        fs::write(&file, "").expect("written");
        let failure = write(&file).expect_err("refused");
        assert_eq!(failure.exit, Exit::Failed);
        assert!(failure.message.contains("README.md"), "{}", failure.message);
    }
}
