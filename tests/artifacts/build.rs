//! Builds the guests of `sample-plugins/` for `wasm32-wasip2` and writes the Rust file that names
//! them. The index is the folders themselves: `polite/NAME`, `borrowed/NAME`, `hostile/NAME`,
//! `command/NAME` and `core/NAME`, each a package, or a folder that holds a ready made `NAME.wasm`.
//! Those of `core` are built for `wasm32-wasip1` instead, which gives core modules.
//!
//! The nested cargo has a target directory of its own, since the outer one holds the lock of
//! its own until this script has ended, and an environment without the outer build's settings.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-wasip2";

/// The target of the kind [`CORE`].
const CORE_TARGET: &str = "wasm32-wasip1";

/// The kinds of samples, in the order in which they are listed.
const KINDS: &[&str] = &["polite", "borrowed", "hostile", "command", CORE];

/// The kind whose samples are core modules.
const CORE: &str = "core";

/// Settings of the outer build that would change the guests, or make them differ from what
/// `cargo build` gives by hand. Registry and network settings pass.
const OUTER_SETTINGS: &[&str] = &[
    "CARGO_BUILD_",
    "CARGO_CFG_",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_FEATURE_",
    "CARGO_INCREMENTAL",
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_PROFILE_",
    "CARGO_TARGET_",
    "CARGO_UNSTABLE_",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
];

/// One sample: where its component and its manifest are.
struct Sample {
    name: String,
    kind: &'static str,
    component: PathBuf,
    manifest: Option<PathBuf>,
}

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let root = here
        .ancestors()
        .nth(2)
        .expect("this package lies two folders below the root");
    let guests = root.join("sample-plugins");

    // The guests' true inputs; cargo looks through folders for itself. Not `sample-plugins` as a
    // whole: a build by hand leaves a target folder there.
    let others = ["bindings", "Cargo.toml", "Cargo.lock"];
    for input in KINDS.iter().chain(&others) {
        println!("cargo::rerun-if-changed={}", guests.join(input).display());
    }
    println!("cargo::rerun-if-changed={}", root.join("wit").display());
    println!(
        "cargo::rerun-if-changed={}",
        root.join("rust-toolchain.toml").display()
    );
    println!("cargo::rerun-if-changed=build.rs");

    demand_target(TARGET);
    demand_target(CORE_TARGET);
    let target_dir = target_dir(&out);
    let cores = folders(&guests.join(CORE));
    let all = ["--workspace".to_owned()].into_iter();
    let others = cores.iter().map(|name| format!("--exclude={name}"));
    let components = build_guests(&guests, &target_dir, TARGET, all.chain(others));
    let packages = cores.iter().map(|name| format!("--package={name}"));
    let modules = build_guests(&guests, &target_dir, CORE_TARGET, packages);
    let mut samples = Vec::new();
    for &kind in KINDS {
        let built = if kind == CORE { &modules } else { &components };
        // Emptied first: what a removed sample left would still look like a plugin.
        let place = out.join(kind);
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).expect("make a folder in OUT_DIR");
        for name in folders(&guests.join(kind)) {
            samples.push(collect(kind, name, &guests, built, &place));
        }
    }
    let text = render(&samples);
    fs::write(out.join("samples.rs"), text).expect("write samples.rs to OUT_DIR");
}

/// Cargo sets these for every build script.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for a build script"))
}

/// Says what to do before cargo fails with "can't find crate for `std`".
fn demand_target(target: &str) {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let answer = Command::new(rustc)
        .args(["--print", "target-libdir", "--target", target])
        .output()
        .expect("run rustc");
    let folder = String::from_utf8_lossy(&answer.stdout);
    assert!(
        answer.status.success() && Path::new(folder.trim()).is_dir(),
        "the sample plugins need the target {target}; run: rustup target add {target}"
    );
}

/// Where the nested cargo builds: beside the outer profile's folder, so that all profiles share
/// it; in `OUT_DIR` if that is not laid out as expected.
fn target_dir(out: &Path) -> PathBuf {
    // TARGET_DIR/PROFILE/build/PACKAGE-HASH/out
    let in_build = out
        .ancestors()
        .nth(2)
        .is_some_and(|folder| folder.ends_with("build"));
    match out.ancestors().nth(4) {
        Some(shared) if in_build => shared.join("guests"),
        _ => out.join("guests-target"),
    }
}

/// Runs the nested cargo for the packages; answers the folder that holds what came of them.
fn build_guests(
    guests: &Path,
    target_dir: &Path,
    target: &str,
    packages: impl Iterator<Item = String>,
) -> PathBuf {
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .args(["build", "--release", "--locked", "--target", target])
        .args(packages)
        .arg("--target-dir")
        .arg(target_dir)
        .current_dir(guests);
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if OUTER_SETTINGS.iter().any(|prefix| text.starts_with(prefix)) {
            cargo.env_remove(&name);
        }
    }
    let status = cargo.status().expect("run cargo for the sample plugins");
    assert!(
        status.success(),
        "the sample plugins do not build ({status}); to see it alone, run in {}: \
         cargo build --release --target {target}",
        guests.display()
    );
    target_dir.join(target).join("release")
}

/// The names of the samples in one folder, sorted so that the output is the same everywhere.
fn folders(parent: &Path) -> Vec<String> {
    let entries = fs::read_dir(parent)
        .unwrap_or_else(|error| panic!("read folder {}: {error}", parent.display()));
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("read a folder's entry"))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| {
            entry
                .file_name()
                .into_string()
                .expect("a sample's name is ASCII")
        })
        .collect();
    names.sort();
    names
}

/// Copies a sample's component, and its manifest, side by side into `OUT_DIR/KIND/`, under the
/// sample's name: as they would lie in a plugins directory.
fn collect(kind: &'static str, name: String, guests: &Path, built: &Path, place: &Path) -> Sample {
    let folder = guests.join(kind).join(&name);
    let source = if folder.join("Cargo.toml").exists() {
        // rustc's name for a package's library has no dashes; a program's has.
        let program = folder.join("src/main.rs").exists();
        let file = if program {
            name.clone()
        } else {
            name.replace('-', "_")
        };
        built.join(format!("{file}.wasm"))
    } else {
        folder.join(format!("{name}.wasm"))
    };
    let component = copy(&source, &place.join(format!("{name}.wasm")));
    let manifest = folder.join(format!("{name}.toml"));
    let manifest = manifest
        .exists()
        .then(|| copy(&manifest, &place.join(format!("{name}.toml"))));
    Sample {
        name,
        kind,
        component,
        manifest,
    }
}

fn copy(from: &Path, to: &Path) -> PathBuf {
    fs::copy(from, to)
        .unwrap_or_else(|error| panic!("copy {} to {}: {error}", from.display(), to.display()));
    to.to_path_buf()
}

/// The generated file: a constant for each sample, the list, and the macro.
fn render(samples: &[Sample]) -> String {
    let mut text = String::new();
    let mut list = String::new();
    let mut calls = String::new();
    for sample in samples {
        let Sample {
            name,
            kind,
            component,
            manifest,
        } = sample;
        let constant = name.replace('-', "_").to_uppercase();
        let function = name.replace('-', "_");
        let component = literal(component);
        let _ = writeln!(text, "/// The component of the {kind} sample `{name}`.");
        let _ = writeln!(text, "pub const {constant}: &str = {component};");
        let manifest = match manifest {
            Some(path) => {
                let _ = writeln!(text, "/// The manifest of the {kind} sample `{name}`.");
                let _ = writeln!(
                    text,
                    "pub const {constant}_MANIFEST: &str = {};",
                    literal(path)
                );
                format!("Some({constant}_MANIFEST)")
            }
            None => "None".to_owned(),
        };
        let (polite, core) = (*kind == "polite", *kind == CORE);
        let _ = writeln!(
            list,
            "    Artifact {{ name: {name:?}, polite: {polite}, core: {core}, \
             component: {constant}, manifest: {manifest} }},"
        );
        let _ = writeln!(calls, "        $each!({kind} {function});");
    }
    let _ = writeln!(
        text,
        "/// Every sample, the polite ones first, each kind sorted by name.\n\
         pub const ALL: &[Artifact] = &[\n{list}];"
    );
    let _ = writeln!(
        text,
        "/// Expands the macro `$each` once for each sample, as `$each!(polite echo);` or\n\
         /// `$each!(hostile traps_before_get);`. See the crate's page.\n\
         #[macro_export]\n\
         macro_rules! for_each_sample {{\n    ($each:ident) => {{\n{calls}    }};\n}}"
    );
    text
}

/// A path as a Rust string literal.
fn literal(path: &Path) -> String {
    format!(
        "{:?}",
        path.to_str().expect("the target directory's path is UTF-8")
    )
}
