//! Builds a handler project as its `oncue-project.toml` says, once for each content.
//!
//! The build runs in a copy, so that the repository stays as it is; the copy is kept below the
//! target directory and used again for as long as the project, the interfaces and the tools are
//! the same. The tools are those that `.ci/guest-tools` installs.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::host::{Home, Host};
use crate::wait::holds_within;

/// Files that a project's folder may hold, its interfaces counted: a folder beyond this holds what
/// a build by hand left there.
const MAX_FILES: usize = 500;

/// Far beyond what the largest component takes to compile: it is some ten seconds of both cores.
const COMPILING: Duration = Duration::from_secs(600);

/// What a build by hand leaves beside its sources.
const LEFT_BY_A_BUILD: &[&str] = &[
    "node_modules",
    "out",
    "__pycache__",
    "wit_world",
    ".venv",
    "target",
];

/// One build at a time: a compiler takes all the cores there are.
static BUILDING: Mutex<()> = Mutex::new(());

/// A project that was built.
pub struct Project {
    /// Its plugin's name.
    pub name: String,
    /// The copy that it was built in.
    pub folder: PathBuf,
    /// The component.
    pub component: PathBuf,
    /// Its manifest.
    pub manifest: PathBuf,
}

impl Project {
    /// Copies the plugin into the plugins directory, the manifest first.
    pub fn drop_into(&self, home: &Home) {
        home.copy(&self.manifest, &format!("{}.toml", self.name));
        home.copy(&self.component, &format!("{}.wasm", self.name));
    }

    /// Runs golden cases with no host, by `oncue test` in a folder of its own; all must pass.
    pub fn passes(&self, cases: &Path) {
        let output = Command::new(env!("CARGO_BIN_EXE_oncue"))
            .arg("test")
            .arg(&self.component)
            .arg("--case")
            .arg(cases)
            // Compiled once for all runs of the tests.
            .env("XDG_CACHE_HOME", guests().join("cache"))
            .stdin(Stdio::null())
            .output()
            .expect("the binary runs");
        assert!(
            output.status.success(),
            "{}: {}\n{}{}",
            self.component.display(),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// Waits until a plugin is ready that a machine under load compiles for minutes; answers the host's
/// view of it.
pub fn large_plugin(host: &Host, name: &str) -> Value {
    let path = format!("/v1/plugins/{name}");
    let is_settled = || {
        let answer = host.get(&path);
        let settled = ["ready", "quarantined"];
        answer.status == 200 && settled.iter().any(|state| answer.json()["state"] == *state)
    };
    let settled = holds_within(COMPILING, is_settled);
    let view = host.get(&path).expect(200).json();
    assert!(settled, "waited {COMPILING:?} in vain: {view}");
    assert_eq!(view["state"], "ready", "{view}");
    view
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `PATH` with the guests' tools first, then the command itself.
fn search_path() -> String {
    let bin = root().join("target/guest-tools/bin");
    let own = Path::new(env!("CARGO_BIN_EXE_oncue")).parent();
    let own = own.expect("it lies in a folder").display();
    let rest = std::env::var("PATH").unwrap_or_default();
    format!("{}:{own}:{rest}", bin.display())
}

/// Whether the tools are there. Without them a test has nothing to do, unless it must.
pub fn has(tools: &[&str]) -> bool {
    let path = search_path();
    let is_there = |tool: &&&str| {
        let mut folders = path.split(':');
        folders.any(|folder| Path::new(folder).join(tool).exists())
    };
    let missing: Vec<&&str> = tools.iter().filter(|tool| !is_there(tool)).collect();
    if missing.is_empty() {
        return true;
    }
    let must = std::env::var("ONCUE_NEED_LANGUAGES").is_ok_and(|value| value == "1");
    assert!(!must, "{missing:?} are missing; run .ci/guest-tools");
    eprintln!("skipped: {missing:?} are missing; .ci/guest-tools installs them");
    false
}

/// Builds the project in a folder of `sample-plugins/languages`, unless it was built before.
pub fn build(folder: &str) -> Project {
    let source = root().join("sample-plugins/languages").join(folder);
    build_from(&source, &folder.replace('/', "-"))
}

/// Builds the project in any folder; `label` is how the copy is called.
pub fn build_from(source: &Path, label: &str) -> Project {
    let settings = fs::read_to_string(source.join("oncue-project.toml")).expect("the project");
    let settings: toml::Table = settings.parse().expect("TOML");
    let setting = |name: &str| {
        let value = &settings["project"][name];
        value.as_str().expect("a text").to_owned()
    };
    let files = files(source);
    let place = guests().join(format!("{label}-{}", digest(&files)));
    let project = Project {
        name: setting("name"),
        folder: place.clone(),
        component: place.join(setting("component")),
        manifest: place.join(setting("manifest")),
    };
    let _one = BUILDING
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if !project.component.exists() {
        make(&files, &setting("build"), &place);
    }
    assert!(project.component.exists(), "{label}: no component");
    project
}

/// Where built projects are kept.
fn guests() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    target
        .expect("it lies in the target directory")
        .join("guests/languages")
}

/// Copies the files to a folder beside `place`, builds there, and moves it to `place` when it is
/// whole: another run of the tests may look for it meanwhile.
fn make(files: &[(PathBuf, Vec<u8>)], build: &str, place: &Path) {
    let partial = place.with_extension(format!("partial.{}", std::process::id()));
    let _ = fs::remove_dir_all(&partial);
    for (path, content) in files {
        let path = partial.join(path);
        fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder");
        fs::write(path, content).expect("a copy");
    }
    let output = Command::new("sh")
        .args(["-c", build])
        .current_dir(&partial)
        .env("PATH", search_path())
        // Where the samples in Rust are built: a project in Rust finds its dependencies compiled.
        .env(
            "CARGO_TARGET_DIR",
            guests().parent().expect("it lies in one"),
        )
        .output()
        .expect("sh runs");
    assert!(
        output.status.success(),
        "{build}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let _ = fs::remove_dir_all(place);
    fs::rename(&partial, place).expect("the folder moves");
}

/// The sources of a project, links followed, sorted by path.
fn files(source: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(source.join(&folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name();
            let path = folder.join(&name);
            let is_left = LEFT_BY_A_BUILD.iter().any(|left| name == *left)
                || path.extension().is_some_and(|ending| ending == "wasm");
            if is_left {
                continue;
            }
            if source.join(&path).is_dir() {
                folders.push(path);
            } else {
                let content = fs::read(source.join(&path)).expect("a file");
                found.push((path, content));
            }
            assert!(found.len() < MAX_FILES, "{} holds a lot", source.display());
        }
    }
    found.sort();
    found
}

/// What a build depends on, in 16 digits: the sources, and the tools by their stamps.
fn digest(files: &[(PathBuf, Vec<u8>)]) -> String {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update(bytes.len().to_le_bytes());
        hash.update(bytes);
    };
    for (path, content) in files {
        add(path.to_string_lossy().as_bytes());
        add(content);
    }
    add(&fs::read(root().join(".ci/guest-tools")).expect("the tools' script"));
    let mut text = String::new();
    for byte in hash.finalize().iter().take(8) {
        write!(text, "{byte:02x}").expect("a string takes it");
    }
    text
}
