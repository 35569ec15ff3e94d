//! The directories of a host.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::config::Config;
use crate::exit::Failure;

/// Where the host keeps what is its own.
pub(crate) struct Home {
    pub(super) data: PathBuf,
    pub(super) plugins: PathBuf,
}

impl Home {
    /// Makes its directories.
    ///
    /// # Errors
    /// One of them cannot be made.
    pub(crate) fn make(config: &Config) -> Result<Self, Failure> {
        let home = Self {
            data: PathBuf::from(config.text("data-dir")),
            plugins: PathBuf::from(config.text("plugins-dir")),
        };
        let plugins = DirBuilder::new().recursive(true).create(&home.plugins);
        for (what, path, made) in [
            ("data", &home.data, make_data(&home.data)),
            ("plugins", &home.plugins, plugins),
        ] {
            made.with_context(|| {
                format!("{what} directory \"{}\" cannot be made", path.display())
            })?;
        }
        Ok(home)
    }
}

/// Makes a data directory. Messages and the hashes of tokens are for nobody else on the machine; a
/// directory that is there stays as it is.
///
/// # Errors
/// It cannot be made.
pub(crate) fn make_data(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_new_data_directory_is_for_its_user_only_and_one_that_is_there_stays_as_it_is() {
        let folder = tempfile::tempdir().expect("a directory");
        let mode = |path: &Path| {
            let meta = fs::metadata(path).expect("it is there");
            meta.permissions().mode() & 0o777
        };
        let data = folder.path().join("deep/data");
        let flags = |data: &Path| {
            let text = |path: PathBuf| path.display().to_string();
            let plugins = folder.path().join("plugins");
            vec![
                ("data-dir", text(data.to_owned())),
                ("plugins-dir", text(plugins)),
            ]
        };
        let config = Config::load(flags(&data), None).expect("settings");
        Home::make(&config).expect("made");
        assert_eq!(mode(&data), 0o700);
        assert!(folder.path().join("plugins").is_dir());
        fs::set_permissions(&data, Permissions::from_mode(0o750)).expect("set");
        Home::make(&config).expect("there");
        assert_eq!(mode(&data), 0o750);
    }
}
