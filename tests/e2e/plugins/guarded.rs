//! Plugins that are given secrets, and plugins that must be signed.

use std::io::Cursor;
use std::path::Path;

use crate::host::{Home, oncue};
use crate::wait::until;
use crate::work::{outcome_of, sample};

const SECRET: &str = "correct horse battery staple";

/// Drops the program that tells its environment, with a secret granted; what it tells goes to the
/// log, or to its output queue.
fn drop_teller(home: &Home, to_log: bool) {
    let grant = (
        "[process.grants]",
        "[process.grants]\nsecrets = [\"db-password\"]",
    );
    let output = ("output = \"shows-call.out\"\n", "");
    let changes = if to_log {
        vec![grant, output]
    } else {
        vec![grant]
    };
    home.drop_as("shows-call", sample("shows-call"), &changes);
}

#[test]
fn a_secret_reaches_its_plugin_and_no_record_or_answer() {
    let home = Home::new();
    let folder = home.path().join("secrets");
    std::fs::create_dir(&folder).expect("a directory");
    let secret = folder.join("db-password");
    let flags = [
        "--secrets-dir",
        folder.to_str().expect("a text"),
        "--log",
        "debug",
    ];
    drop_teller(&home, true);
    let host = home.start_with(&flags, &[]);
    host.wait_for_plugin("shows-call", "ready");
    // Without it nothing starts, no message is charged, and the reason says what to do.
    let id = host.put("shows-call", b"one");
    until("the start to fail", || {
        host.reason("shows-call") == "start-failed"
    });
    // Between two tries the reason is another one for a moment.
    until("the reason to say what to do", || {
        let explained = host.get("/v1/queues/shows-call/explain").expect(200);
        let why = explained.json().to_string();
        why.contains("db-password") && why.contains("is not there")
    });
    assert_eq!(host.message("shows-call", &id)["backout-count"], 0);
    std::fs::write(&secret, format!("{SECRET}\n")).expect("written");
    let record = host.record_of("shows-call", &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
    let tail = record["cost"]["log-tail"].as_str().expect("a tail");
    assert!(tail.contains("DB_PASSWORD=[secret db-password]"), "{tail}");
    // The message's own output is its own: there the program may say it.
    drop_teller(&home, false);
    host.define_plain("shows-call.out");
    until("the new version", || {
        host.put("shows-call", b"two");
        host.depth("shows-call.out") > 0
    });
    let told = host.bodies("shows-call.out").remove(0);
    assert!(told.contains(&format!("DB_PASSWORD={SECRET}")), "{told}");
    // A new value is there at the next start.
    std::fs::write(&secret, "another value entirely").expect("written");
    until("the new value", || {
        host.put("shows-call", b"three");
        let bodies = host.bodies("shows-call.out");
        bodies
            .iter()
            .any(|body| body.contains("DB_PASSWORD=another value entirely"))
    });
    // Nowhere else: no answer of the API, no log, no file of the host but the message.
    for path in [
        "/v1/queues",
        "/v1/queues/shows-call/explain",
        "/v1/processes",
        "/v1/processes/shows-call",
        "/v1/plugins",
        "/v1/plugins/shows-call",
        "/v1/tasks?max=1000",
        "/v1/status",
        "/v1/ledger",
        "/v1/audit?max=1000",
    ] {
        let answer = host.get(path).expect(200);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(
            !text.contains(SECRET) && !text.contains("another value"),
            "{path}: {text}"
        );
        if path.starts_with("/v1/processes/") {
            assert!(text.contains("db-password"), "the name is shown: {text}");
        }
    }
    let (code, shown, _) = oncue(&host, &["plugin", "show", "shows-call"]);
    assert!(code == 0 && !shown.contains(SECRET), "{shown}");
    for place in [host.log(), host.out()] {
        assert!(!place.contains(SECRET), "{place}");
    }
    let audit = std::fs::read_to_string(home.data().join("audit/audit.jsonl")).expect("the log");
    assert!(!audit.contains(SECRET));
}

#[test]
fn a_secret_of_the_environment_is_given_too_and_the_hosts_own_is_not() {
    let home = Home::new();
    drop_teller(&home, false);
    let environment = [
        ("ONCUE_SECRET_DB_PASSWORD", SECRET),
        ("ONCUE_SECRET_OTHER", "hidden"),
    ];
    let host = home.start_with(&[], &environment);
    host.wait_for_plugin("shows-call", "ready");
    host.define_plain("shows-call.out");
    host.put("shows-call", b"one");
    host.wait_for_depth("shows-call.out", 1);
    let told = host.bodies("shows-call.out").remove(0);
    assert!(
        told.contains(&format!("\nDB_PASSWORD={SECRET}\n")),
        "{told}"
    );
    assert!(!told.contains("hidden"), "{told}");
    assert!(
        !host.log().contains("ONCUE_SECRET_OTHER is no setting"),
        "{}",
        host.log()
    );
}

fn pair() -> minisign::KeyPair {
    minisign::KeyPair::generate_unencrypted_keypair().expect("a pair of keys")
}

fn sign(pair: &minisign::KeyPair, path: &Path) {
    let bytes = std::fs::read(path).expect("the file");
    let signed = minisign::sign(None, &pair.sk, Cursor::new(bytes), None, None);
    let beside = format!("{}.minisig", path.display());
    std::fs::write(beside, signed.expect("a signature").into_string()).expect("written");
}

#[test]
fn only_what_a_key_has_signed_is_loaded() {
    let home = Home::new();
    let (ours, other) = (pair(), pair());
    let keys = ours.pk.to_base64();
    let echo = sample("echo");
    home.drop_sample(echo);
    let component = home.plugins().join("echo.wasm");
    let manifest = home.plugins().join("echo.toml");
    // Kept from a time without keys, it is no better.
    let host = home.start();
    host.wait_for_plugin("echo", "ready");
    assert_eq!(host.stop(), 0);
    let host = home.start_with(&["--plugin-keys", &keys], &[]);
    let reason = |state: &str| {
        let view = host.wait_for_plugin("echo", state);
        view["reason"].as_str().unwrap_or_default().to_owned()
    };
    let why = reason("quarantined");
    assert!(why.contains("[signature-missing]"), "{why}");
    let id = host.put("echo", b"hello");
    sign(&other, &component);
    sign(&other, &manifest);
    until("the wrong key to be told", || {
        reason("quarantined").contains("[signature-wrong]")
    });
    // The manifest counts as much as the component.
    sign(&ours, &component);
    until("the manifest to be told", || {
        let why = reason("quarantined");
        why.contains("\"echo.toml\"") && why.contains("[signature-wrong]")
    });
    assert_eq!(host.message("echo", &id)["backout-count"], 0);
    let check = |exit: i32| {
        let folder = home.plugins().display().to_string();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_oncue"));
        command
            .args(["plugin", "check", &folder])
            .env("ONCUE_PLUGIN_KEYS", &keys);
        let output = command
            .current_dir(home.path())
            .output()
            .expect("the binary runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(exit), "{text}");
        text
    };
    assert!(check(4).contains("[signature-wrong]"));
    sign(&ours, &manifest);
    reason("ready");
    check(0);
    host.define_plain("echo.out");
    host.wait_for_depth("echo.out", 1);
    // A bad file never replaces a good version, whoever has dropped it.
    let forged = std::fs::read(&component).expect("the file");
    let forged = [forged.as_slice(), &[0, 2, 1, b'x']].concat();
    std::fs::write(&component, forged).expect("written");
    until("the forged file to be told", || {
        let view = host.get("/v1/plugins/echo").expect(200).json();
        view.to_string().contains("signature-wrong")
    });
    host.put("echo", b"again");
    host.wait_for_depth("echo.out", 2);
}
