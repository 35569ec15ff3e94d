//! `oncue plugin check` and `oncue plugin inspect`: exit codes and sentences, with no host.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{MANIFEST, digest, fixture, version};
use crate::host::Home;
use crate::work::sample;

/// Runs the command line with no host; answers exit code, standard output, standard error.
fn alone(arguments: &[&str], file: &Path) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_oncue"))
        .args(arguments)
        .arg(file)
        // Nothing listens there: nobody is to ask.
        .env("ONCUE_URL", "http://127.0.0.1:1")
        .output()
        .expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

fn check(file: &Path, code: i32, words: &[&str]) {
    let (got, said, error) = alone(&["plugin", "check"], file);
    assert_eq!(got, code, "{}: {said}{error}", file.display());
    for word in words {
        assert!(
            said.contains(word) || error.contains(word),
            "no {word:?} in {said}{error}"
        );
    }
}

fn component(name: &str) -> PathBuf {
    PathBuf::from(sample(name).component)
}

#[test]
fn a_good_plugin_passes_the_check() {
    let home = Home::new();
    home.write("p.toml", MANIFEST);
    home.write("p.wasm", version(1));
    let file = home.plugins().join("p.wasm");
    check(&file, 0, &["ok    p", "message", &digest(&version(1))]);
    check(
        &home.plugins().join("none.wasm"),
        4,
        &["none.wasm", "is not there"],
    );
}

#[test]
fn a63_the_check_says_what_a_component_exports_and_what_differs() {
    let wrong = [
        "exports acme:weather/forecast@1.0.0",
        "the nearest world is message-handler",
    ];
    check(
        &component("wrong-world"),
        4,
        &[wrong[0], wrong[1], "BAD   wrong-world"],
    );
    let unknown = ["acme:secret/vault@1.0.0", "[plugin-refused]"];
    check(&component("unknown-import"), 4, &unknown);
    let home = Home::new();
    home.write("other.wasm", fixture("other-version.wasm"));
    let other = ["oncue:handler/types@0.9.0", "oncue:handler@0.1"];
    check(&home.plugins().join("other.wasm"), 4, &other);
    home.write("core.wasm", fixture("core-module.wasm"));
    check(&home.plugins().join("core.wasm"), 4, &["core module"]);
    home.write("text.wasm", fixture("not-a-component.wasm"));
    check(&home.plugins().join("text.wasm"), 4, &["\"text.wasm\""]);
}

#[test]
fn a61_the_check_lists_every_fault_of_a_manifest() {
    let home = Home::new();
    home.write("p.wasm", version(1));
    home.write(
        "p.toml",
        "[process]\nfuell = 1\nmemory = \"lots\"\n[queue.p]\ntrigger = \"x\"\n",
    );
    let file = home.plugins().join("p.wasm");
    check(
        &file,
        4,
        &[
            "p.toml:2", "fuell", "p.toml:3", "lots", "p.toml:5", "trigger",
        ],
    );
}

#[test]
fn inspect_says_what_a_component_is() {
    let (code, said, error) = alone(&["plugin", "inspect"], &component("echo"));
    assert_eq!(code, 0, "{error}");
    for word in [
        "message style",
        "oncue:handler/on-message@0.1.0",
        "oncue:handler/queues@0.1.0",
    ] {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
    let (code, said, _) = alone(&["plugin", "inspect"], &component("wrong-world"));
    assert_eq!(code, 0);
    assert!(said.contains("acme:weather/forecast@1.0.0"), "{said}");
    let home = Home::new();
    home.write("text.wasm", b"this is text");
    // What is no component is described too: only a file that is not there is a failure.
    let (code, said, error) = alone(&["plugin", "inspect"], &home.plugins().join("text.wasm"));
    assert_eq!(code, 0, "{error}");
    assert!(
        said.contains("text.wasm") && said.contains("not WebAssembly"),
        "{said}"
    );
    let (code, _, error) = alone(&["plugin", "inspect"], &home.plugins().join("none.wasm"));
    assert_eq!(code, 3, "{error}");
}
