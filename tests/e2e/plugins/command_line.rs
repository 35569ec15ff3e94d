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
        3,
        &["none.wasm", "is not there", "1 of 1 files are not there"],
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
    let other = [
        "oncue:handler/types@0.9.0",
        "oncue:handler@0.1",
        "its version is 0.9.0, and this host knows 0.1",
    ];
    check(&home.plugins().join("other.wasm"), 4, &other);
    home.write("core.wasm", fixture("core-module.wasm"));
    let neither = "a core module with neither a main function (_start) nor an embedded world";
    check(&home.plugins().join("core.wasm"), 4, &[neither]);
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
fn inspect_says_what_a_component_is_and_costs() {
    let inspect = |file: &Path| alone(&["plugin", "inspect"], file);
    let (code, said, error) = inspect(&component("echo"));
    assert_eq!(code, 0, "{error}");
    for word in [
        "message style",
        "message-handler",
        "oncue:handler/on-message@0.1.0",
        "oncue:handler/queues@0.1.0",
        "instantiated  in ",
        "empty call",
    ] {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
    let (code, said, _) = inspect(&component("wrong-world"));
    assert_eq!(code, 0);
    assert!(said.contains("acme:weather/forecast@1.0.0"), "{said}");
    let home = Home::new();
    home.write("p.wasm", version(1));
    home.write("p.toml", MANIFEST);
    let (code, said, error) = alone(
        &["plugin", "inspect", "-o", "json"],
        &home.plugins().join("p.wasm"),
    );
    assert_eq!(code, 0, "{error}");
    let told: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let grants = serde_json::json!([["grants.put", "[echo.out]"]]);
    assert_eq!(told["grants"], grants, "{said}");
    assert_eq!(told["style"], "message", "{said}");
    // With nothing granted the sample can only fail at its first put.
    let call = &told["empty-call"];
    assert!(call["fuel"].as_u64().is_some_and(|fuel| fuel > 0), "{said}");
    assert!(call["outcome"].is_string(), "{said}");
    assert!(
        told["instantiate-fuel"].is_u64() && told["memory"].is_u64(),
        "{said}"
    );
    // What is no component at all is no answer but a refusal.
    home.write("text.wasm", b"this is text");
    let (code, said, error) = inspect(&home.plugins().join("text.wasm"));
    assert_eq!((code, said.as_str()), (4, ""));
    assert!(
        error.contains("text.wasm") && error.contains("not WebAssembly"),
        "{error}"
    );
    home.write("cut.wasm", &version(1)[..2000]);
    let (code, _, error) = inspect(&home.plugins().join("cut.wasm"));
    assert!(
        code == 4 && error.contains("is truncated at 2000 bytes"),
        "{error}"
    );
    let (code, _, error) = inspect(&home.plugins().join("none.wasm"));
    assert_eq!(code, 3, "{error}");
}
