//! One plugin alone: found by its file or its manifest, refused with every fault, compiled once.

use super::*;
use crate::engine::SandboxConfig;
use oncue_core::admission::Demand;

fn capacity() -> Capacity {
    Capacity {
        total: Demand {
            memory: 1 << 30,
            fuel: u64::MAX,
        },
        table_elements: 1 << 20,
    }
}

/// Loads, and says how often compiling was announced.
fn load(
    plugin: &Path,
    manifest: Option<&Path>,
    cache: Option<&Path>,
) -> (Result<SinglePlugin, SingleFault>, usize) {
    let sandbox = Sandbox::new(SandboxConfig {
        slots: Some(4),
        ..SandboxConfig::default()
    })
    .expect("a sandbox");
    let request = SingleRequest {
        plugin,
        manifest,
        cache,
        capacity: capacity(),
    };
    let mut announced = 0;
    let loaded = load_single(&request, &sandbox, Compiler::InProcess, &mut |_| {
        announced += 1;
    });
    (loaded, announced)
}

/// A folder with the echo sample under another name, and a manifest if one is given.
fn folder(manifest: Option<&str>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(oncue_artifacts::ECHO, folder.path().join("greet.wasm")).expect("copied");
    if let Some(text) = manifest {
        fs::write(folder.path().join("greet.toml"), text).expect("written");
    }
    folder
}

#[test]
fn a_component_has_the_manifest_beside_it_or_defaults() {
    let check = |manifest: Option<&str>, name: &str, queue: &str| {
        let folder = folder(manifest);
        let (loaded, _) = load(&folder.path().join(name), None, None);
        let plugin = loaded.expect("it loads");
        assert_eq!(plugin.version.plugin.as_str(), "greet");
        assert_eq!(plugin.definitions.queues[0].0.as_str(), queue);
    };
    check(None, "greet.wasm", "greet");
    check(Some("[queue.hello]\n"), "greet.wasm", "hello");
    check(Some("[queue.hello]\n"), "greet.toml", "hello");
}

#[test]
fn every_fault_is_named_at_once() {
    let folder = folder(Some("[process]\nfuel = \"many\"\nmemory = \"none\"\n"));
    fs::write(folder.path().join("greet.wasm"), "no component").expect("written");
    let (refused, _) = load(&folder.path().join("greet.wasm"), None, None);
    let Err(SingleFault::Refused(faults)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(faults[0].starts_with("greet.toml:2:"), "{faults:?}");
    assert!(
        faults[2].contains("\"greet.wasm\" is not WebAssembly"),
        "{faults:?}"
    );
}

#[test]
fn what_is_not_there_is_absent() {
    let (absent, _) = load(Path::new("/nowhere/greet.wasm"), None, None);
    assert!(matches!(absent, Err(SingleFault::Absent(_))), "{absent:?}");
}

#[test]
fn a_second_load_compiles_nothing() {
    let (folder, cache) = (folder(None), tempfile::tempdir().expect("a folder"));
    let cache = cache.path().join("compiled");
    let component = folder.path().join("greet.wasm");
    let (first, announced) = load(&component, None, Some(&cache));
    assert!(first.expect("it loads").compile_time.is_some() && announced == 1);
    let (second, announced) = load(&component, None, Some(&cache));
    assert!(second.expect("it loads").compile_time.is_none() && announced == 0);
}

#[test]
fn a_cache_that_others_can_write_to_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let (folder, cache) = (folder(None), tempfile::tempdir().expect("a folder"));
    fs::set_permissions(cache.path(), fs::Permissions::from_mode(0o777)).expect("set");
    let component = folder.path().join("greet.wasm");
    for _ in 0..2 {
        let (loaded, announced) = load(&component, None, Some(cache.path()));
        assert!(loaded.is_ok() && announced == 1);
    }
}
