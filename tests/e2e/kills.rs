//! `kill -9` under load and in the midst of a task: what was acknowledged is handled once in
//! effect, and who was in hand is known.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::chance::{chance, kills};
use crate::host::{Home, Host};
use crate::ledger::{Ledger, browse};
use crate::wait::until;

/// A spell of load before a kill, in milliseconds.
const LOAD_MS: std::ops::Range<u64> = 20..300;

/// So that plugins are soon ready after a restart.
const QUICK: &[&str] = &["--plugin-settle", "10ms"];

/// Puts a sample's component into the plugins directory with a manifest of the test's own.
fn drop_with(home: &Home, sample: &str, manifest: &str) {
    let found = oncue_artifacts::ALL
        .iter()
        .find(|s| s.name == sample)
        .expect("a sample");
    std::fs::write(home.plugins().join(format!("{sample}.toml")), manifest).expect("manifest");
    home.copy(Path::new(found.component), &format!("{sample}.wasm"));
}

/// The only message of a queue.
fn only(host: &Host, queue: &str) -> Value {
    let mut messages = browse(host, queue);
    assert_eq!(messages.len(), 1, "{messages:?}");
    messages.pop().expect("one")
}

#[test]
fn a31_killed_at_any_moment_each_acknowledged_put_is_handled_once_in_effect() {
    let mut chance = chance("a31");
    let home = Home::new();
    Ledger::prepare(&home);
    let ledger = Ledger::default();
    for _ in 0..kills() {
        let host = home.start_with(QUICK, &[]);
        if chance.u8(0..4) > 0 {
            for plugin in ["echo", "running-total"] {
                let view = host.wait_for_plugin(plugin, "ready");
                let facts = view["facts"].to_string();
                assert!(facts.contains("from the cache"), "compiled again: {facts}");
            }
        }
        let time = Duration::from_millis(chance.u64(LOAD_MS));
        ledger.load_for(&host, time, || host.signal("KILL"));
        host.kill();
    }
    eprintln!("a31: {} kills, {:?}", kills(), ledger.counts());
    assert!(ledger.counts().acknowledged > 0);
    ledger.drain_and_judge(&home);
}

#[test]
fn a31_killed_between_write_and_sync_and_between_sync_and_answer() {
    let mut chance = chance("a31, fail points");
    let home = Home::new();
    Ledger::prepare(&home);
    let ledger = Ledger::default();
    let points = [
        "commit.before-sync.abort",
        "commit.after-sync.abort",
        "take.after-hold.abort",
    ];
    for round in 0..6 {
        let point = format!("{}:{}", points[round % points.len()], chance.u32(5..60));
        let mut host = home.start_with(QUICK, &[("ONCUE_FAIL_POINT", &point)]);
        ledger.load(&host, || {});
        ledger.load(&host, || until(&point, || host_is_gone(&host)));
        until("the host's end", || !host.is_running());
    }
    eprintln!("a31: fail points, {:?}", ledger.counts());
    ledger.drain_and_judge(&home);
}

fn host_is_gone(host: &Host) -> bool {
    host.request("GET", "/livez", &[], &[]).is_err()
}

/// A task that never ends by itself.
const SLEEPS: &str = r#"
[process]
deadline = "10m"
task-deadline = "20m"
[queue.sleeps]
trigger = "first"
retry = { initial = "1ms", max = "2ms" }
"#;

/// Waits until a handler has the only message of `sleeps` in hand, and answers the message.
fn wait_for_sleeper(home: &Home, host: &Host) -> Value {
    // The mark is what the attempt is known by after a kill; it is set before the handler runs.
    until("the message in hand", || {
        let marks = std::fs::read(home.data().join("in-hand")).unwrap_or_default();
        marks.windows(6).any(|name| name == b"sleeps")
    });
    let message = only(host, "sleeps");
    assert_eq!(message["state"], "in-unit");
    assert_eq!(host.queue("sleeps")["running"], 1);
    message
}

fn check_counts(message: &Value, interrupted: u32, backout: u32) {
    assert_eq!(message["interrupted-count"], interrupted, "{message}");
    assert_eq!(message["backout-count"], backout, "{message}");
}

#[test]
fn a30_killed_in_a_task_the_message_is_a_suspect_and_charged_only_when_alone_again() {
    let home = Home::new();
    drop_with(&home, "sleeps", SLEEPS);
    let host = home.start();
    host.wait_for_plugin("sleeps", "ready");
    let id = host.put("sleeps", b"get");
    check_counts(&wait_for_sleeper(&home, &host), 0, 0);
    host.kill();
    // The first time it may be anybody's fault; the second time it was the only suspect in hand.
    for (interrupted, backout) in [(1, 0), (2, 1)] {
        let host = home.start();
        let message = wait_for_sleeper(&home, &host);
        assert_eq!(message["id"], id);
        check_counts(&message, interrupted, backout);
        host.kill();
    }
}

#[test]
fn a30_outputs_of_a_dead_task_are_never_seen_and_its_messages_are_back_once() {
    const MESSAGES: usize = 6;
    let home = Home::new();
    let drain = oncue_artifacts::ALL
        .iter()
        .find(|s| s.name == "drain")
        .unwrap();
    let host = home.start();
    host.define("drained", json!({"trigger": "none"}));
    // On the queue before there is a handler: one unit of work gets them all.
    host.define("drain", json!({"trigger": "none"}));
    for number in 0..MESSAGES {
        host.put("drain", format!("m{number}").as_bytes());
    }
    host.send_json("PATCH", "/v1/queues/drain", &json!({"trigger": null}))
        .expect(200);
    assert_eq!(host.stop(), 0);
    home.drop_sample(drain);
    let mut host = home.start_with(&[], &[("ONCUE_FAIL_POINT", "take.after-hold.abort:4")]);
    until("the host's end in the task", || !host.is_running());
    // Four were in hand and three of them put on; now nothing handles them.
    std::fs::remove_file(home.plugins().join("drain.wasm")).unwrap();
    let host = home.start();
    assert_eq!(browse(&host, "drained"), [] as [Value; 0]);
    let messages = browse(&host, "drain");
    let seen = |name: &str| -> Vec<u64> {
        messages
            .iter()
            .map(|message| message[name].as_u64().unwrap())
            .collect()
    };
    assert_eq!(seen("backout-count"), [0; MESSAGES]);
    // The abort comes within the fourth get, before its mark.
    assert_eq!(seen("interrupted-count"), [1, 1, 1, 0, 0, 0]);
    home.drop_sample(drain);
    host.wait_for_depth("drained", MESSAGES as u64);
    let mut bodies = host.bodies("drained");
    bodies.sort();
    assert_eq!(bodies, ["m0", "m1", "m2", "m3", "m4", "m5"]);
    assert_eq!(host.depth("drain"), 0);
}
