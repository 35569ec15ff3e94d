//! Components for the real sandbox, compiled in this process.

use std::fs;
use std::path::PathBuf;

use oncue_core::definition::{Style, limits};
use oncue_core::names::PluginName;

use super::super::bounds::{COMPILE_MEMORY, COMPILE_TIMEOUT};
use super::super::catalog::Key;
use super::super::shape;
use super::*;
use crate::engine::SandboxConfig;

const ON_MESSAGE: &str = "oncue:handler/on-message@0.1.0";
const HANDLE: &str = r#"(param "message" (borrow $message)) (result (result (error $failure)))"#;

/// A handler that fits.
pub(in super::super) fn good() -> Vec<u8> {
    shape::tests::handler(ON_MESSAGE, HANDLE)
}

pub(in super::super) fn sandbox() -> Sandbox {
    Sandbox::new(SandboxConfig {
        slots: Some(16),
        ..SandboxConfig::default()
    })
    .expect("a sandbox")
}

struct Bench {
    folder: tempfile::TempDir,
    loader: Loader,
    components: Components,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::at(folder, sandbox())
    }

    fn at(folder: tempfile::TempDir, sandbox: Sandbox) -> Self {
        let engine = seam::compatibility().expect("an engine");
        let cache = cache_in(folder.path(), &engine);
        let bounds = CompileBounds {
            timeout: COMPILE_TIMEOUT,
            memory: COMPILE_MEMORY,
        };
        let compiler = Compiler::InProcess;
        let loader = Loader::new(
            sandbox,
            Some(cache),
            compiler,
            engine,
            bounds,
            Cancelled::default(),
        );
        let loader = loader.expect("a loader");
        Self {
            folder,
            loader,
            components: Components::default(),
        }
    }

    fn load(&self, bytes: &[u8], attributes: ProcessAttributes) -> Result<Passed, NotPassed> {
        let trial = Trial {
            plugin: PluginName::new("orders").expect("a name"),
            key: Key {
                component: Digest::of(bytes),
                manifest: None,
            },
            file: "orders.wasm".to_owned(),
            attributes,
        };
        self.loader
            .check(&trial, &Source::Memory(bytes.into()), &self.components)
    }

    /// Loads the good component; answers whether it came from the cache.
    fn load_good(&self) -> bool {
        // As after a restart: only the cache remembers.
        let digest = Digest::of(&good());
        self.components.remove(digest.as_str());
        let passed = self
            .load(&good(), ProcessAttributes::default())
            .expect("it passes");
        assert_eq!(passed.style, Style::Message);
        assert!(self.components.get(digest.as_str()).is_some());
        let compiled = passed.facts.iter().find(|(name, _)| name == "compiled");
        compiled.is_some_and(|(_, how)| how.contains("cache"))
    }

    fn cached(&self) -> PathBuf {
        let entries = fs::read_dir(self.folder.path().join("plugins-cache")).expect("a folder");
        let mut paths = entries.map(|entry| entry.expect("an entry").path());
        let is_compiled = |path: &PathBuf| path.extension().is_some_and(|it| it == "cwasm");
        paths.find(is_compiled).expect("a cached file")
    }
}

#[test]
fn a64_whatever_happens_to_the_cache_the_component_serves() {
    let bench = Bench::new();
    assert!(!bench.load_good());
    assert!(bench.load_good());
    let cached = bench.cached();
    // Damaged in the middle: the sandbox itself would not notice.
    let mut bytes = fs::read(&cached).expect("it reads");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&cached, &bytes).expect("written");
    assert!(!bench.load_good());
    fs::write(&cached, &bytes[..middle]).expect("written");
    assert!(!bench.load_good());
    // Another engine's code, with its own right check.
    fs::write(&cached, "not for this engine").expect("written");
    let check = cached.with_extension("cwasm.sha256");
    fs::write(check, Digest::of(b"not for this engine").as_str()).expect("written");
    assert!(!bench.load_good());
    assert!(bench.load_good());
    // Its folder a file.
    let folder = bench.folder.path().join("plugins-cache");
    fs::remove_dir_all(&folder).expect("removed");
    fs::write(&folder, "").expect("written");
    assert!(!bench.load_good());
    assert!(!bench.load_good());
}

#[test]
fn a61_what_cannot_serve_is_refused_with_the_files_name() {
    let bench = Bench::new();
    let refused = |bytes: &[u8], attributes: ProcessAttributes, part: &str| match bench
        .load(bytes, attributes)
    {
        Err(NotPassed::Refused(reason)) => {
            assert!(reason.starts_with("\"orders.wasm\""), "{reason}");
            assert!(reason.contains(part), "{reason} lacks {part}");
        }
        other => panic!("{other:?}"),
    };
    let usual = ProcessAttributes::default;
    refused(b"junk", usual(), "is not WebAssembly");
    refused(&good()[..100], usual(), "is truncated");
    let trigger = ProcessAttributes {
        style: Style::Trigger,
        ..usual()
    };
    refused(&good(), trigger, "asks for style \"trigger\"");
    let other = shape::tests::handler("demo:host/on-message@0.1.0", HANDLE);
    refused(&other, usual(), "the nearest world is message-handler");
    // More memory at the start than its limit.
    let large = String::from_utf8_lossy(&wat_of_good()).replace("\"memory\") 1)", "\"memory\") 9)");
    let large = wat::parse_str(&large).expect("the text is a component");
    let small = ProcessAttributes {
        memory: limits::MIN_MEMORY,
        ..usual()
    };
    refused(&large, small, "and its limit is 64 KiB");
    assert!(bench.components.is_empty());
}

fn wat_of_good() -> Vec<u8> {
    shape::tests::handler_text(ON_MESSAGE, HANDLE).into_bytes()
}

#[test]
fn a_kept_copy_that_is_gone_is_the_hosts_fault() {
    let bench = Bench::new();
    let trial = Trial {
        plugin: PluginName::new("orders").expect("a name"),
        key: Key {
            component: Digest::of(b"gone"),
            manifest: None,
        },
        file: "orders.wasm".to_owned(),
        attributes: ProcessAttributes::default(),
    };
    let source = Source::File(bench.folder.path().join("gone.wasm"));
    let result = bench.loader.check(&trial, &source, &bench.components);
    assert!(matches!(result, Err(NotPassed::Host(_))), "{result:?}");
}

#[test]
fn a_core_module_is_adapted_once_and_known_by_its_own_digest() {
    let bench = Bench::new();
    let module = adapt::tests::with_world(adapt::tests::HANDLER, "message-handler");
    let digest = Digest::of(&module);
    let load = || {
        // As after a restart: only the cache remembers.
        bench.components.remove(digest.as_str());
        let passed = bench.load(&module, ProcessAttributes::default());
        let passed = passed.expect("it passes");
        assert_eq!(passed.style, Style::Message);
        assert!(bench.components.get(digest.as_str()).is_some());
        let fact = |name: &str| {
            let mut facts = passed.facts.iter();
            let fact = facts.find(|(known, _)| known == name);
            fact.map(|(_, text)| text.clone()).unwrap_or_default()
        };
        assert!(fact("size").contains("a core module"), "{}", fact("size"));
        fact("compiled").contains("cache")
    };
    let adapted = || {
        let entries = fs::read_dir(bench.folder.path().join("plugins-cache")).expect("a folder");
        let mut paths = entries.map(|entry| entry.expect("an entry").path());
        let is_it = |path: &PathBuf| path.extension().is_some_and(|it| it == "adapted");
        let path = paths.find(is_it).expect("a cached component");
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        assert!(name.starts_with(digest.as_str()), "{name}");
        path
    };
    assert!(!load());
    let made = fs::metadata(adapted()).and_then(|it| it.created());
    assert!(load(), "compiled again");
    let again = fs::metadata(adapted()).and_then(|it| it.created());
    assert_eq!(made.ok(), again.ok(), "adapted again");
    // Damaged: it is made again, and nothing else is wrong.
    fs::write(adapted(), "damaged").expect("written");
    assert!(load());
}
