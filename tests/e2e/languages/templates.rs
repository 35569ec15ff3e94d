//! The templates of `oncue new`, as an author meets them: new, build, test, drop, put, committed.

use std::process::{Command, Stdio};

use serde_json::json;

use super::cases::{MOST_FUEL, MOST_MEMORY, MOST_MEMORY_OF_GO};
use super::project::{build_from, has, large_plugin};
use crate::host::Home;
use crate::work::outcome_of;

/// Each language has a test below.
const LANGUAGES: &[&str] = &["rust", "js", "ts", "python", "c", "go"];

fn check(lang: &str, tools: &[&str]) {
    assert!(LANGUAGES.contains(&lang));
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
    let most = if lang == "go" {
        MOST_MEMORY_OF_GO
    } else {
        MOST_MEMORY
    };
    assert!(memory < most, "{memory}");
    if ["js", "ts", "python"].contains(&lang) {
        let log = record["cost"]["log-tail"].as_str().expect("a log");
        assert!(log.contains("greets Ada"), "{log}");
    }
    // What can never succeed goes with the handler's own words.
    let letter = host.dead_letter(&host.put("greeter", b"\xff"));
    assert_eq!(letter["reason"], "rejected", "{letter}");
    assert_eq!(letter["detail"], "the name is not UTF-8", "{letter}");
}

#[test]
fn the_rust_template_greets() {
    check("rust", &["cargo"]);
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

#[test]
fn the_c_template_greets() {
    check("c", &["clang-19"]);
}

#[test]
fn the_go_template_greets() {
    check("go", &["go"]);
}

#[test]
fn every_language_has_a_test() {
    let output = Command::new(env!("CARGO_BIN_EXE_oncue"))
        .args(["new", "greeter", "--lang", "no-such"])
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    let all = format!("use one of {}\n", LANGUAGES.join(", "));
    assert!(said.contains(&all), "{said}");
}
