//! The compile cache: any fault of it is a miss and a warning.

use std::fs;
use std::path::{Path, PathBuf};

use super::{host_with_version_1, serves, version};

fn cached(folder: &Path, ending: &str) -> PathBuf {
    let files = fs::read_dir(folder)
        .expect("the cache is read")
        .map(|it| it.unwrap().path());
    let mut found = files.filter(|path| path.to_string_lossy().ends_with(ending));
    found.next().expect("a file of the cache")
}

/// Lets `damage` at the cache between two starts; demands service and these words in the log.
fn check(damage: impl FnOnce(&Path), warning: Option<&str>) {
    let (home, host) = host_with_version_1();
    let folder = home.data().join("plugins-cache");
    assert_eq!(host.stop(), 0);
    damage(&folder);
    let host = home.start();
    serves(&host, "p", &version(1));
    let log = host.log();
    assert!(!log.contains("ERROR"), "{log}");
    match warning {
        Some(words) => {
            let said = log
                .lines()
                .any(|line| line.contains("WARN") && line.contains(words));
            assert!(said, "no {words:?} in\n{log}");
        }
        None => assert!(!log.contains("plugins-cache"), "{log}"),
    }
}

#[test]
fn a64_a_whole_cache_is_used_in_silence() {
    check(|_| (), None);
}

#[test]
fn a64_a_damaged_cached_file_is_a_miss() {
    let damage = |folder: &Path| {
        let path = cached(folder, ".cwasm");
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        fs::write(&path, bytes).unwrap();
    };
    check(damage, Some("compiled again"));
}

#[test]
fn a64_a_truncated_cached_file_is_a_miss() {
    let damage = |folder: &Path| {
        let path = cached(folder, ".cwasm");
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    };
    check(damage, Some("compiled again"));
}

#[test]
fn a64_a_stale_cached_file_is_a_miss() {
    // What another component was compiled to, under this one's name.
    let damage = |folder: &Path| fs::write(cached(folder, ".cwasm"), b"another").unwrap();
    check(damage, Some("compiled again"));
}

#[test]
fn a64_a_file_in_the_caches_place_is_a_miss() {
    let damage = |folder: &Path| {
        fs::remove_dir_all(folder).unwrap();
        fs::write(folder, b"no folder").unwrap();
    };
    check(damage, Some("plugins-cache"));
}
