//! `oncue-project.toml`: where a handler's project has its component, manifest and cases. What else
//! stands there is read by other commands.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::exit::{Exit, Failure};

/// The file in a project's folder.
const FILE: &str = "oncue-project.toml";

/// Largest such file, in bytes.
const MAX_FILE: u64 = 1 << 20;

#[derive(Debug, Deserialize)]
struct File {
    project: Table,
}

#[derive(Debug, Deserialize)]
struct Table {
    component: PathBuf,
    manifest: Option<PathBuf>,
    cases: Option<PathBuf>,
    build: Option<String>,
}

/// What a test needs to know of a project; paths from where the command runs.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) component: PathBuf,
    pub(super) manifest: Option<PathBuf>,
    pub(super) cases: Option<PathBuf>,
    /// The command that makes the component.
    pub(super) build: Option<String>,
}

impl Project {
    /// Reads the project of a folder.
    ///
    /// # Errors
    /// Not found when there is none; usage when it is not valid.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(FILE);
        let shown = path.display();
        let whole = || {
            if std::fs::metadata(&path)?.len() > MAX_FILE {
                return Err(std::io::ErrorKind::FileTooLarge.into());
            }
            std::fs::read_to_string(&path)
        };
        let text = whole().map_err(|error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::new(
                Exit::NotFound,
                format!("\"{shown}\" is not there; name a component, or a project's folder"),
            ),
            _ => Failure::new(Exit::Failed, format!("\"{shown}\" cannot be read: {error}")),
        })?;
        let File { project } = toml::from_str(&text).map_err(|error| {
            let text = error.to_string();
            Failure::new(
                Exit::Usage,
                format!("\"{shown}\" is not valid: {}", text.trim()),
            )
        })?;
        Ok(Self {
            component: folder.join(project.component),
            manifest: project.manifest.map(|path| folder.join(path)),
            cases: project.cases.map(|path| folder.join(path)),
            build: project.build,
        })
    }
}
