//! The served OpenAPI document, tried by schemathesis: requests that fit it and requests that do
//! not, against a host with queues, a dead letter and plugins. No answer is a server error, and
//! none is one that the document does not name.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::auth::token;
use crate::host::{Home, Host};
use crate::wait::until;
use crate::work::{DEAD_LETTERS, sample};

/// Set where it must be tried: then what is missing fails the test.
const NEEDED: &str = "ONCUE_NEED_SCHEMATHESIS";

/// Test cases of each operation and phase; more by this variable.
const CASES: (&str, &str) = ("ONCUE_CASES", "4");

/// Repeats the cases.
const SEED: (&str, &str) = ("ONCUE_SEED", "66");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where `.ci/run` installs it.
fn program() -> PathBuf {
    root().join("target/schemathesis/bin/schemathesis")
}

/// What is put is JSON and says so: the tool may come upon the messages by their ids, and holds a
/// body without a type to be wrong.
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// A host with something of everything. Tokens come after: with one, every request needs it.
fn stocked(home: &Home) -> Host {
    for name in ["echo", "traps", "route-orders"] {
        home.drop_sample(sample(name));
    }
    let host = home.start();
    for plugin in ["echo", "traps", "route-orders"] {
        host.wait_for_plugin(plugin, "ready");
    }
    for queue in ["replies", "invoices"] {
        host.define_plain(queue);
        host.put_with(queue, &JSON, b"\"hello\"");
    }
    host.put_with("traps", &JSON, b"\"x\"");
    host.wait_for_depth(DEAD_LETTERS, 1);
    host
}

/// Tries the document of a host in all phases, if it can be done here.
fn try_document(host: &Host, flags: &[&str]) {
    if !program().exists() {
        let why = "target/schemathesis is not there; see tests/README.md";
        assert!(std::env::var_os(NEEDED).is_none(), "{why}");
        eprintln!("\n*** THE DOCUMENT IS NOT TRIED: {why} ***\n");
        return;
    }
    let setting = |(name, usual): (&str, &str)| std::env::var(name).unwrap_or(usual.to_owned());
    let folder = tempfile::tempdir().expect("a directory");
    let tried = Command::new(program())
        .arg("--config-file")
        .arg(root().join("tests/document/schemathesis.toml"))
        .args(["run", &format!("{}/openapi.json", host.url)])
        .args(["--phases", "examples,coverage,fuzzing,stateful"])
        .args(["--checks", "all", "--continue-on-failure", "--no-color"])
        .args(["--max-examples", &setting(CASES), "--seed", &setting(SEED)])
        // A host answers 429 to whoever fails to name itself again and again, which the check of
        // ignored tokens takes for a fault; the tests of http ask every route without one.
        .args(["--exclude-checks", "ignored_auth,missing_required_header"])
        // A stream has no end.
        .args(["--exclude-path", "/v1/events", "--request-timeout", "60"])
        .args(["--generation-database", "none"])
        .args(flags)
        .current_dir(folder.path())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&tried.stdout);
    assert!(tried.status.success(), "{said}\n{}", host.log());
    host.get("/livez").expect(200);
    // A guest's panic stands within a line, as the words of a task that failed.
    let log = host.log();
    let panicked = |line: &&str| line.starts_with("thread '") && line.contains("panicked");
    assert_eq!(log.lines().find(panicked), None);
    let end: Vec<&str> = said.lines().rev().take(12).collect();
    for line in end.into_iter().rev() {
        eprintln!("{line}");
    }
}

#[test]
fn the_document_is_true_of_a_host_that_asks_nobody() {
    let home = Home::new();
    let host = stocked(&home);
    // It is told of tokens, and takes whatever comes.
    let flags = ["--generation-with-security-parameters", "false"];
    try_document(&host, &flags);
}

#[test]
fn the_document_is_true_of_a_host_with_tokens() {
    let home = Home::new();
    let host = stocked(&home);
    let admin = token(&home, &["ops", "--role", "admin"]);
    until("the token to be asked for", || {
        host.get("/v1/status").status == 401
    });
    let header = format!("Authorization: Bearer {admin}");
    try_document(&host, &["--header", &header]);
}
