//! The templates of `oncue new`, as an author meets them: new, build, test, drop, put, committed.

use std::process::{Command, Stdio};

use serde_json::json;

use super::project::{build_from, has, large_plugin};
use crate::host::Home;
use crate::work::outcome_of;

/// A quarter of the default limits: what a first message may take at most.
const MOST_FUEL: u64 = 10_000_000_000 / 4;

/// The same for memory.
const MOST_MEMORY: u64 = (64 << 20) / 4;

fn check(lang: &str, tools: &[&str]) {
    if !has(tools) {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let folder = place.path().join("greeter");
    let status = Command::new(env!("CARGO_BIN_EXE_oncue"))
        .args(["new", "greeter", "--lang", lang, "--dir"])
        .arg(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .expect("the binary runs");
    assert!(status.success(), "{status}");
    let project = build_from(&folder, &format!("template-{lang}"));
    project.passes(&project.folder.join("cases"));

    let home = Home::new();
    project.drop_into(&home);
    let host = home.start();
    host.define("greeter.out", json!({"trigger": "none"}));
    large_plugin(&host, "greeter");
    let id = host.put("greeter", b"Ada");
    let record = host.record_of("greeter", &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
    assert_eq!(host.bodies("greeter.out"), ["hello Ada"]);
    let cost = |name: &str| record["cost"][name].as_u64().expect("a cost");
    let (fuel, memory) = (cost("fuel"), cost("peak-memory"));
    eprintln!("{lang}: a first message: fuel {fuel}, peak memory {memory}");
    assert!(fuel < MOST_FUEL, "{fuel}");
    assert!(memory < MOST_MEMORY, "{memory}");
    let log = record["cost"]["log-tail"].as_str().expect("a log");
    assert!(log.contains("greets Ada"), "{log}");
}

#[test]
fn the_javascript_template_greets() {
    check("js", &["npm", "componentize-qjs"]);
}

#[test]
fn the_typescript_template_greets() {
    check("ts", &["npm", "tsc", "componentize-qjs"]);
}

#[test]
fn the_python_template_greets() {
    check("python", &["componentize-py"]);
}
