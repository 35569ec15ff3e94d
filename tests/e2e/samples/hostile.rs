//! The hostile samples: one case each, named as the sample.

use serde_json::Value;

use crate::host::{Home, Host};
use crate::wait::until;
use crate::work::{DEAD_LETTERS, outcomes, sample, task};

/// A host with one sample in it, and the plain queues that it may put to.
fn host_with(name: &str) -> (Home, Host) {
    let home = Home::new();
    home.drop_sample(sample(name));
    let host = home.start();
    host.define_plain(&format!("{name}.out"));
    host.wait_for_plugin(name, "ready");
    (home, host)
}

/// Puts a message to a sample; demands its outcome and words of its detail; answers the record.
fn ends(host: &Host, name: &str, body: &[u8], outcome: &str, words: &[&str]) -> Value {
    let id = host.put(name, body);
    let record = host.record_of(name, &id);
    let noted = record["messages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["id"] == id.as_str());
    let noted = noted.expect("its message");
    assert_eq!(noted["outcome"], outcome, "{record}");
    assert_eq!(record["outcome"], outcome, "{record}");
    let detail = noted["detail"].as_str().unwrap_or_default();
    for word in words {
        assert!(detail.contains(word), "{name}: no {word:?} in {detail:?}");
    }
    if outcome != "committed" {
        // The manifests have a threshold of 1: charged once, it goes with its reason.
        let letter = host.dead_letter(&id);
        assert_eq!(
            (&letter["outcome"], letter["queue"].as_str()),
            (&record["outcome"], Some(name))
        );
        assert_eq!(letter["attempts"], 1, "{letter}");
    }
    assert_eq!(host.depth(name), 0);
    host.wait_for_capacity();
    record
}

/// A fresh host, one message, one end.
fn check(name: &str, outcome: &str, words: &[&str]) -> Value {
    let (_home, host) = host_with(name);
    let record = ends(&host, name, b"hello", outcome, words);
    assert_eq!(host.depth(&format!("{name}.out")), 0, "its puts are undone");
    record
}

pub(super) fn spins() {
    let record = check("spins", "out-of-fuel", &["20 M of 20 M", "raise fuel"]);
    assert!(
        record["cost"]["fuel"].as_u64() >= Some(19_000_000),
        "{record}"
    );
}

pub(super) fn hoards() {
    let record = check("hoards", "over-memory", &["8 MiB", "raise memory"]);
    let peak = record["cost"]["peak-memory"].as_u64().unwrap();
    assert!((4 << 20..=8 << 20).contains(&peak), "{peak}");
}

pub(super) fn hoards_table() {
    check(
        "hoards-table",
        "over-memory",
        &["1000", "raise table-elements"],
    );
}

pub(super) fn traps() {
    check(
        "traps",
        "trapped",
        &["panicked at", "cannot handle", "of 5 bytes"],
    );
}

pub(super) fn recurses() {
    check("recurses", "trapped", &["stack"]);
}

pub(super) fn floods_output() {
    let record = check("floods-output", "committed", &[]);
    let cost = &record["cost"];
    let tail = cost["log-tail"].as_str().unwrap();
    assert!(
        tail.len() <= 4096 + 256,
        "the tail has {} bytes",
        tail.len()
    );
    assert!(
        tail.ends_with("the end of the flood\n"),
        "the tail is the end of it: {tail:?}"
    );
    assert!(tail.contains("cut"), "the cut is marked: {tail:?}");
    let written = (1 << 30) + "\nthe end of the flood\n".len() as u64;
    let cut = cost["log-cut"].as_u64().unwrap();
    assert!(
        (written - 4096..written).contains(&cut),
        "{cut} of {written} bytes counted as cut"
    );
}

pub(super) fn floods_puts() {
    check(
        "floods-puts",
        "output-limit",
        &["100 puts of 100", "raise max-puts"],
    );
}

pub(super) fn huge_put() {
    check(
        "huge-put",
        "retry",
        &["268435456 bytes", "max-message-length", "[too-large]"],
    );
}

pub(super) fn leaks_handles() {
    check(
        "leaks-handles",
        "handle-limit",
        &["1000 resource handles", "raise max-handles"],
    );
}

pub(super) fn leaks_pollables() {
    check(
        "leaks-pollables",
        "handle-limit",
        &["1000 resource handles", "raise max-handles"],
    );
}

pub(super) fn sleeps() {
    let (_home, host) = host_with("sleeps");
    for body in ["get", "clock"] {
        let record = ends(&host, "sleeps", body.as_bytes(), "past-deadline", &["50ms"]);
        let lasted = record["ended"].as_u64().unwrap() - record["started"].as_u64().unwrap();
        assert!(
            lasted < 60_000,
            "the sleep of a minute was waited for: {lasted} ms"
        );
    }
}

pub(super) fn backs_out() {
    let home = Home::new();
    let threshold = ("backout-threshold = 1", "backout-threshold = 3");
    home.drop_as("backs-out", sample("backs-out"), &[threshold]);
    let host = home.start();
    host.wait_for_plugin("backs-out", "ready");
    let id = host.put("backs-out", b"hello");
    let letter = host.dead_letter(&id);
    assert_eq!(
        (letter["reason"].as_str(), letter["attempts"].as_u64()),
        (Some("backout"), Some(3))
    );
    assert_eq!(letter["detail"], "attempt 3 failed, 0 left");
    until("its tasks to end", || {
        host.queue("backs-out")["running"] == 0
    });
    let records = host.records("backs-out");
    let attempts: Vec<&str> = records.iter().flat_map(outcomes).collect();
    assert_eq!(attempts, ["retry"; 3]);
    // The queue goes on behind it.
    let next = host.put("backs-out", b"next");
    host.dead_letter(&next);
    host.wait_for_capacity();
}

pub(super) fn writes_to_itself() {
    let (_home, host) = host_with("writes-to-itself");
    host.put("writes-to-itself", b"round and round");
    host.wait_for_depth(DEAD_LETTERS, 1);
    let letter = &host.browse(DEAD_LETTERS)[0]["dead-letter"];
    assert_eq!(letter["reason"], "hop-limit", "{letter}");
    assert_eq!(host.bodies(DEAD_LETTERS), ["round and round"]);
    until("its tasks to end", || {
        host.depth("writes-to-itself") == 0 && host.queue("writes-to-itself")["running"] == 0
    });
    let records = host.records("writes-to-itself");
    assert!(
        records
            .iter()
            .all(|record| record["outcome"] == "committed"),
        "{records:?}"
    );
    let handled: usize = records.iter().map(|record| outcomes(record).len()).sum();
    // The first and one for each of the sixteen hops that the queue allows.
    assert_eq!(handled, 17);
}

pub(super) fn reaches_out() {
    let (_home, host) = host_with("reaches-out");
    ends(&host, "reaches-out", b"hello", "committed", &[]);
    let report = &host.bodies("reaches-out.out")[0];
    assert!(!report.contains("allowed"), "{report}");
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines.len(), 7, "{report}");
    assert!(lines.contains(&"environment: 0 variables"), "{report}");
}

/// A trigger-style sample that never gets: the message waits, the queue backs off and says so.
fn never_gets(name: &str, outcome: &str) {
    let home = Home::new();
    // Long enough to be looked at.
    let slow = ("max = \"10ms\"", "max = \"1h\"");
    home.drop_as(
        name,
        sample(name),
        &[("initial = \"1ms\"", "initial = \"40ms\""), slow],
    );
    let host = home.start();
    host.wait_for_plugin(name, "ready");
    let id = host.put(name, b"hello");
    let (mut seen, mut delays) = (0, Vec::new());
    for _ in 0..4 {
        let record = host.ended_after(name, seen);
        assert_eq!(record["outcome"], outcome, "{record}");
        seen = task(&record);
        until("a back-off", || {
            let explained = host.explain(name);
            let until = explained["next-check"].as_u64().unwrap_or_default();
            let is_off = explained["reason"] == "backing-off";
            if is_off {
                let sentence = explained["sentence"].as_str().unwrap();
                assert!(sentence.contains("backing off"), "{sentence}");
                let ended = record["ended"].as_u64().unwrap();
                delays.push(until.saturating_sub(ended));
            }
            is_off || !host.records(name).iter().all(|record| task(record) <= seen)
        });
    }
    // Each wait is longer than the one before, and no message is charged for it.
    assert!(delays.len() >= 3, "{delays:?}");
    assert!(delays.first() < delays.last(), "{delays:?}");
    assert_eq!(host.message(name, &id)["backout-count"], 0);
    assert_eq!(host.depth(name), 1);
}

pub(super) fn traps_before_get() {
    never_gets("traps-before-get", "trapped");
}

pub(super) fn commits_half() {
    let (_home, host) = host_with("commits-half");
    ends(&host, "commits-half", b"to and fro", "committed", &[]);
    // As long as nothing goes wrong.
    assert_eq!(host.bodies("commits-half.out"), ["to an", "d fro"]);
}

pub(super) fn idle() {
    never_gets("idle", "no-progress");
}

/// Refused at load: the sentence, with the file's name; the queue of its name says why it waits.
fn refused(name: &str, words: &[&str]) {
    let home = Home::new();
    home.drop_sample(sample(name));
    let host = home.start();
    let view = host.wait_for_plugin(name, "quarantined");
    let reason = view["reason"].as_str().unwrap();
    for word in words {
        assert!(reason.contains(word), "no {word:?} in {reason:?}");
    }
    assert!(reason.contains(&format!("\"{name}.wasm\"")), "{reason}");
    host.put(name, b"hello");
    until("the hold", || host.reason(name) == "component-quarantined");
    assert!(host.records(name).is_empty());
}

pub(super) fn wrong_world() {
    refused(
        "wrong-world",
        &[
            "exports acme:weather/forecast@1.0.0",
            "the nearest world is message-handler",
            "oncue:handler/on-message@0.1.0",
            "[wrong-world]",
        ],
    );
}

pub(super) fn unknown_import() {
    refused(
        "unknown-import",
        &["imports acme:secret/vault@1.0.0", "[plugin-refused]"],
    );
}
