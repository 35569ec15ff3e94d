//! `oncue-project.toml`: what a handler's project is called, how it is built, and what comes of it.
//!
//! Read with every fault at once. It runs nothing and knows no language: the build is a command of
//! the project's own.

use std::fs;
use std::path::{Path, PathBuf};

use oncue_core::code::Code;
use oncue_core::definition::{Raw, nearest};
use oncue_core::names::PluginName;

use crate::exit::{Exit, Failure};

/// The file in a project's folder.
pub(crate) const PROJECT_FILE: &str = "oncue-project.toml";

/// Longest project file, in bytes.
const MAX_FILE: u64 = 64 << 10;

/// Paths that a project may name to be watched.
const MAX_WATCHED: usize = 256;

/// The table of the file.
const TABLE: &str = "project";

/// What the table may hold.
const KNOWN: &[&str] = &["name", "build", "component", "manifest", "cases", "watch"];

/// A handler's project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Project {
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// What it is called.
    pub(crate) name: String,
    /// The plugin that it makes: the manifest's name, else the component's.
    pub(crate) plugin: PluginName,
    /// The command that builds it; without one the component is made by somebody else.
    pub(crate) build: Option<String>,
    /// What the build makes.
    pub(crate) component: PathBuf,
    /// The plugin's manifest.
    pub(crate) manifest: Option<PathBuf>,
    /// The folder of golden cases.
    pub(crate) cases: Option<PathBuf>,
    /// What is watched; everything when it is empty.
    pub(crate) watch: Vec<PathBuf>,
}

impl Project {
    /// The project of a folder.
    ///
    /// # Errors
    /// Not found without the file; usage with every fault of it.
    pub(crate) fn read(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(PROJECT_FILE);
        let shown = path.display();
        let text = match fs::metadata(&path) {
            Ok(metadata) if metadata.len() > MAX_FILE => {
                let message = format!("\"{shown}\" has {} bytes of {MAX_FILE}", metadata.len());
                return Err(Failure::new(Exit::Usage, message));
            }
            _ => fs::read_to_string(&path),
        };
        let text = text.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::new(
                Exit::NotFound,
                format!(
                    "\"{shown}\" is not there; name a project's folder, or make one with \
                     \"oncue new\""
                ),
            ),
            _ => Failure::new(Exit::Failed, format!("\"{shown}\" cannot be read: {error}")),
        })?;
        parse(folder, &text).map_err(|faults| {
            let message = format!("\"{shown}\" has faults");
            Failure::coded(Code::InvalidConfiguration, message).with_faults(faults)
        })
    }
}

/// The table's values as they are read, with the faults so far.
struct Reader<'a> {
    table: &'a [(String, Raw)],
    faults: Vec<String>,
}

impl Reader<'_> {
    fn text(&mut self, name: &str) -> Option<String> {
        let (_, value) = self.table.iter().find(|(key, _)| key == name)?;
        match value {
            Raw::Text(text) if !text.trim().is_empty() => Some(text.clone()),
            other => {
                let fault = format!("\"{TABLE}.{name}\" is {other}; use a text that is not empty");
                self.faults.push(fault);
                None
            }
        }
    }

    fn path(&mut self, folder: &Path, name: &str) -> Option<PathBuf> {
        self.text(name).map(|path| folder.join(path))
    }

    fn paths(&mut self, folder: &Path, name: &str) -> Vec<PathBuf> {
        let Some((_, value)) = self.table.iter().find(|(key, _)| key == name) else {
            return Vec::new();
        };
        let texts = match value {
            Raw::List(items) if items.len() <= MAX_WATCHED => items.iter().map(|item| match item {
                Raw::Text(text) if !text.is_empty() => Some(folder.join(text)),
                _ => None,
            }),
            _ => {
                let fault = format!("\"{TABLE}.{name}\" is no list of at most {MAX_WATCHED} paths");
                self.faults.push(fault);
                return Vec::new();
            }
        };
        let paths: Option<Vec<PathBuf>> = texts.collect();
        if paths.is_none() {
            let fault = format!("\"{TABLE}.{name}\" has an item that is no path; use texts");
            self.faults.push(fault);
        }
        paths.unwrap_or_default()
    }

    fn unknown(&mut self) {
        for (name, _) in self.table {
            if !KNOWN.contains(&name.as_str()) {
                let cure = nearest(name, KNOWN.iter().copied()).map_or_else(
                    || format!("use {}", KNOWN.join(", ")),
                    |meant| format!("did you mean \"{meant}\"?"),
                );
                let fault = format!("\"{TABLE}.{name}\" is not known here; {cure}");
                self.faults.push(fault);
            }
        }
    }
}

fn parse(folder: &Path, text: &str) -> Result<Project, Vec<String>> {
    let raw = toml::from_str::<Raw>(text)
        .map_err(|error| vec![format!("it is no TOML: {}", error.to_string().trim_end())])?;
    let Some(Raw::Table(table)) = raw.get(TABLE) else {
        return Err(vec![format!("it has no table [{TABLE}]; add one")]);
    };
    let mut reader = Reader {
        table,
        faults: Vec::new(),
    };
    reader.unknown();
    let name = reader.text("name");
    let build = reader.text("build");
    let component = reader.path(folder, "component");
    let manifest = reader.path(folder, "manifest");
    let cases = reader.path(folder, "cases");
    let watch = reader.paths(folder, "watch");
    let mut faults = reader.faults;
    for (what, is_missing) in [("name", name.is_none()), ("component", component.is_none())] {
        if is_missing && !faults.iter().any(|fault| fault.contains(what)) {
            faults.push(format!("\"{TABLE}.{what}\" is missing; add it"));
        }
    }
    let named = manifest.as_ref().or(component.as_ref());
    let stem = named.and_then(|path| path.file_stem()?.to_str());
    let plugin = stem.map(PluginName::new).transpose();
    if let Err(error) = &plugin {
        faults.push(format!("the plugin is named by its file: {error}"));
    }
    match (name, component, plugin) {
        (Some(name), Some(component), Ok(Some(plugin))) if faults.is_empty() => Ok(Project {
            folder: folder.to_owned(),
            name,
            plugin,
            build,
            component,
            manifest,
            cases,
            watch,
        }),
        _ => Err(faults),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_read() {
        let text = "[project]\nname = \"route\"\nbuild = \"make\"\ncomponent = \"out/a.wasm\"\n\
                    manifest = \"route.toml\"\ncases = \"cases\"\nwatch = [\"src\", \"wit\"]\n";
        let project = parse(Path::new("/p"), text).expect("a project");
        assert_eq!(project.plugin.as_str(), "route");
        assert_eq!(project.component, Path::new("/p/out/a.wasm"));
        assert_eq!(project.watch, [Path::new("/p/src"), Path::new("/p/wit")]);
        let text = "[project]\nname = \"x\"\ncomponent = \"a.wasm\"\n";
        let project = parse(Path::new("/p"), text).expect("a project");
        assert_eq!(
            (project.plugin.as_str(), project.build, project.manifest),
            ("a", None, None)
        );
    }

    #[test]
    fn every_fault_is_named() {
        let check = |text: &str, wanted: &[&str]| {
            let faults = parse(Path::new("/p"), text).expect_err("faults");
            assert_eq!(faults.len(), wanted.len(), "{faults:#?}");
            for (fault, wanted) in faults.iter().zip(wanted) {
                assert!(fault.contains(wanted), "{fault}, wanted {wanted}");
            }
        };
        check("a = ", &["it is no TOML"]);
        check("a = 1", &["it has no table [project]"]);
        check(
            "[project]\nnme = \"x\"\nbuild = \"\"\ncomponent = \"a b.wasm\"\nwatch = [1]\n",
            &[
                "did you mean \"name\"?",
                "\"project.build\" is",
                "\"project.watch\" has an item",
                "the plugin is named by its file",
            ],
        );
        check(
            "[project]\n",
            &[
                "\"project.name\" is missing",
                "\"project.component\" is missing",
            ],
        );
    }
}
