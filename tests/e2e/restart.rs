//! What a restart finds again, and what it must not find.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::host::{Home, Host};
use crate::ledger::browse;
use crate::mount::contents;
use crate::wait::until;

fn sample(name: &str) -> &'static oncue_artifacts::Artifact {
    oncue_artifacts::ALL
        .iter()
        .find(|sample| sample.name == name)
        .expect("a sample")
}

/// How a host ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Stopped,
    Killed,
}

const ENDS: [End; 2] = [End::Stopped, End::Killed];

/// Ends a host and starts the next one on the same directories.
fn again(home: &Home, host: Host, end: End) -> Host {
    match end {
        End::Stopped => assert_eq!(host.stop(), 0),
        End::Killed => host.kill(),
    }
    home.start()
}

#[test]
fn a9_every_message_owed_at_a_kill_is_handled_after_the_restart_with_no_put() {
    const OWED: u64 = 50;
    let home = Home::new();
    let host = home.start();
    host.define("echo.out", json!({"trigger": "none"}));
    host.define("echo", json!({"trigger": "every", "process": "echo"}));
    let ids: Vec<String> = (0..OWED)
        .map(|n| host.put("echo", &n.to_le_bytes()))
        .collect();
    assert_eq!(host.queue("echo")["owed"], OWED);
    assert_eq!(host.reason("echo"), "no-process");
    host.kill();
    home.drop_sample(sample("echo"));
    let host = home.start();
    host.wait_for_depth("echo.out", OWED);
    let echoes = browse(&host, "echo.out");
    let mut handled: Vec<_> = echoes.iter().map(|e| e["correlation-id"].clone()).collect();
    handled.sort_by_key(ToString::to_string);
    assert_eq!(handled, ids, "each of them once");
    // One start takes one message: 50 were owed, 50 were made.
    until("all records", || {
        let committed = host.get("/v1/status").expect(200).json()["outcomes"]["committed"].clone();
        committed == OWED
    });
    assert_eq!(host.queue("echo")["owed"], 0);
}

#[test]
fn persistent_messages_survive_and_others_do_not() {
    for end in ENDS {
        let home = Home::new();
        let host = home.start();
        host.define("kept", json!({"trigger": "none"}));
        let fields = [
            ("oncue-correlation-id", "c-1"),
            ("oncue-priority", "7"),
            ("oncue-group", "g"),
            ("oncue-property-colour", "blue"),
            ("content-type", "application/x-test"),
        ];
        let id = host.put_with("kept", &fields, b"\x00\xffbytes");
        host.put_with("kept", &[("oncue-persistence", "non-persistent")], b"gone");
        host.put_with("kept", &[("oncue-delay", "1h")], b"later");
        let before = browse(&host, "kept");
        assert_eq!(before.len(), 3);
        let host = again(&home, host, end);
        let after = browse(&host, "kept");
        let kept: Vec<_> = before
            .into_iter()
            .filter(|m| m["persistence"] == "persistent")
            .collect();
        assert_eq!(after, kept, "{end:?}");
        assert_eq!(host.depth("kept"), 2, "{end:?}");
        let one = host
            .get(&format!("/v1/queues/kept/messages/{id}"))
            .expect(200);
        assert_eq!(one.body, b"\x00\xffbytes", "{end:?}");
        assert_eq!(one.header("oncue-property-colour"), Some("blue"), "{end:?}");
    }
}

#[test]
fn leases_survive_a_restart() {
    for end in ENDS {
        let home = Home::new();
        let host = home.start();
        host.define("work", json!({"trigger": "none"}));
        let id = host.put("work", b"one");
        let got = host.post("/v1/queues/work/get?lease=10m", &[]).expect(200);
        let token = got.header("oncue-lease").expect("a lease").to_owned();
        let host = again(&home, host, end);
        let state = browse(&host, "work").pop().expect("it is there")["state"].clone();
        assert_eq!(state, "leased", "{end:?}");
        host.post("/v1/queues/work/get", &[]).expect(204);
        host.post(&format!("/v1/leases/{token}/ack"), &[]);
        assert_eq!(host.depth("work"), 0, "{end:?}");
        // And the ack as well.
        let host = again(&home, host, end);
        host.get(&format!("/v1/queues/work/messages/{id}"))
            .expect(404);
        host.post(&format!("/v1/leases/{token}/ack"), &[])
            .expect(404);
    }
}

#[test]
fn a_lease_that_ended_while_no_host_ran_gives_the_message_back() {
    let home = Home::new();
    let host = home.start();
    host.define("work", json!({"trigger": "none"}));
    host.put("work", b"one");
    host.post("/v1/queues/work/get?lease=1s", &[]).expect(200);
    let host = again(&home, host, End::Killed);
    let got = host.post("/v1/queues/work/get?wait=60s", &[]).expect(200);
    assert_eq!(got.body, b"one");
    assert_eq!(got.header("oncue-backout-count"), Some("1"));
}

#[test]
fn idempotency_keys_survive_a_restart() {
    for end in ENDS {
        let home = Home::new();
        let host = home.start();
        host.define("once", json!({"trigger": "none"}));
        let key = [("idempotency-key", "order-1")];
        let id = host.put_with("once", &key, b"body");
        let host = again(&home, host, end);
        assert_eq!(host.put_with("once", &key, b"body"), id, "{end:?}");
        assert_eq!(host.depth("once"), 1, "{end:?}");
        let other = host
            .request("POST", "/v1/queues/once/messages", &key, b"other")
            .unwrap();
        assert_eq!(other.expect(409).json()["code"], "duplicate-key", "{end:?}");
    }
}

/// What an operator has set, as the host shows it.
fn settings(host: &Host) -> Vec<Value> {
    let queue = |name: &str| {
        let view = host.queue(name);
        let all = [
            "attributes",
            "origins",
            "paused",
            "control",
            "depth",
            "counts",
            "reason",
        ];
        Value::from_iter(all.map(|field| (field, view[field].clone())))
    };
    let process = host.get("/v1/processes/echo").expect(200).json();
    let all = ["attributes", "origins", "paused"];
    let process = Value::from_iter(all.map(|field| (field, process[field].clone())));
    let status = host.get("/v1/status").expect(200).json();
    vec![
        queue("echo"),
        queue("held"),
        queue("off"),
        process,
        status["paused"].clone(),
    ]
}

#[test]
fn definitions_overlays_pauses_and_trigger_control_survive() {
    for end in ENDS {
        let home = Home::new();
        home.drop_sample(sample("echo"));
        let host = home.start();
        host.wait_for_plugin("echo", "ready");
        host.define(
            "held",
            json!({"process": "echo", "max-depth": 7, "trigger": "every"}),
        );
        host.define("off", json!({"process": "echo"}));
        let alter = |path: &str, change: Value| {
            host.send_json("PATCH", path, &change).expect(200);
        };
        alter(
            "/v1/queues/echo",
            json!({"max-tasks": 3, "retry": {"initial": "7s"}}),
        );
        alter("/v1/processes/echo", json!({"memory": "32 MiB"}));
        host.post("/v1/queues/held/pause", &[]).expect(200);
        host.send_json("POST", "/v1/queues/off/trigger", &json!({"on": false}))
            .expect(200);
        host.post("/v1/processes/echo/pause", &[]).expect(200);
        host.post("/v1/pause", &[]).expect(200);
        for queue in ["echo", "held", "off"] {
            host.put(queue, b"waits");
        }
        let before = settings(&host);
        assert_eq!(
            before[0]["origins"]["max-tasks"], "operator",
            "{}",
            before[0]
        );
        let host = again(&home, host, end);
        host.wait_for_plugin("echo", "ready");
        assert_eq!(settings(&host), before, "{end:?}");
        // Nothing has run, and each hold is the operator's to end.
        assert_eq!(host.tasks("echo"), [] as [Value; 0]);
        host.define("echo.out", json!({"trigger": "none"}));
        host.post("/v1/resume", &[]).expect(200);
        host.post("/v1/processes/echo/resume", &[]).expect(200);
        host.wait_for_depth("echo.out", 1);
        assert_eq!((host.depth("held"), host.depth("off")), (1, 1));
    }
}

#[test]
fn a_removed_queue_stays_removed() {
    for end in ENDS {
        let home = Home::new();
        let host = home.start();
        host.define("gone", json!({"trigger": "none"}));
        host.put("gone", b"one");
        host.request("DELETE", "/v1/queues/gone?force=true", &[], &[])
            .unwrap()
            .expect(204);
        let host = again(&home, host, end);
        host.get("/v1/queues/gone").expect(404);
    }
}

/// What of a record is durable with the failure itself. Steps and peaks are known only at the end.
fn diagnosis(records: &[Value]) -> Vec<Value> {
    let fields = [
        "id",
        "queue",
        "outcome",
        "detail",
        "backtrace",
        "failed",
        "messages",
    ];
    let one = |record: &Value| {
        let mut all = Vec::from(fields.map(|field| record[field].clone()));
        all.push(record["cost"]["log-tail"].clone());
        assert!(
            all.iter().all(|value| !value.is_null() && value != ""),
            "{record}"
        );
        Value::from(all)
    };
    records.iter().map(one).collect()
}

#[test]
fn records_of_failed_tasks_and_dead_letters_survive() {
    for end in ENDS {
        let home = Home::new();
        home.drop_sample(sample("traps"));
        let host = home.start();
        host.wait_for_plugin("traps", "ready");
        host.put("traps", b"one");
        host.wait_for_depth("oncue.dead-letter", 1);
        until("the record", || {
            host.tasks("traps")
                .iter()
                .any(|r| r["outcome"] == "trapped")
        });
        let before = host.tasks("traps");
        let letter = browse(&host, "oncue.dead-letter");
        let host = again(&home, host, end);
        assert_eq!(
            diagnosis(&host.tasks("traps")),
            diagnosis(&before),
            "{end:?}"
        );
        assert_eq!(browse(&host, "oncue.dead-letter"), letter, "{end:?}");
        assert_eq!(letter[0]["dead-letter"]["outcome"], "trapped");
    }
}

#[test]
fn a_second_host_on_the_same_directory_is_refused_with_a_sentence() {
    let home = Home::new();
    let host = home.start();
    host.define("q", json!({"trigger": "none"}));
    let output = home.command(&[], &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let process = format!("is in use by process {}", host.id());
    for part in [
        process.as_str(),
        "stop that one or name another directory",
        "[store-in-use]",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The first one has noticed nothing.
    host.put("q", b"one");
    let host = again(&home, host, End::Killed);
    assert_eq!(host.depth("q"), 1);
}

/// Unpacks the data directory that the first version of the store's format has written.
fn restore(home: &Home) {
    let packed = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/data-v1.tar.gz");
    let status = Command::new("tar")
        .args(["--extract", "--gzip", "--file", packed, "--directory"])
        .arg(home.path())
        .status();
    assert!(status.expect("tar runs").success());
}

#[test]
fn a84_a_data_directory_of_the_first_format_is_opened() {
    let home = Home::new();
    restore(&home);
    let host = home.start();
    let orders = browse(&host, "orders");
    assert_eq!(
        host.bodies("orders"),
        ["urgent", "first", "second", "later"]
    );
    assert_eq!(orders[0]["priority"], 9);
    assert_eq!(orders[1]["properties"]["region"], "eu");
    assert_eq!(orders[1]["correlation-id"], "c-1");
    assert_eq!(orders[2]["group"], "g");
    let queue = host.queue("orders");
    assert_eq!(
        (&queue["attributes"]["max-depth"], &queue["paused"]),
        (&json!(7), &json!(true))
    );
    // And it can be worked with: written, ended, opened again.
    host.put("orders", b"third");
    let host = again(&home, host, End::Stopped);
    assert_eq!(host.depth("orders"), 5);
}

#[test]
fn a84_a_newer_format_is_refused_with_the_way_forward_and_is_not_touched() {
    let home = Home::new();
    restore(&home);
    let format = home.data().join("store/format");
    let text = std::fs::read_to_string(&format).unwrap();
    assert_eq!(text, "oncue store format 1\n");
    std::fs::write(&format, "oncue store format 3\n").unwrap();
    let before = contents(&home.data());
    let log = home.try_start(&[], &[]).err().expect("refused");
    for part in [
        "has format 3 and this version knows 2",
        "or a later one",
        "[store-version]",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    let after = contents(&home.data());
    let names = |all: &[(PathBuf, Vec<u8>)]| all.iter().map(|f| f.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&after), names(&before));
    assert!(after == before, "bytes have changed");
    // With its own number again it opens: nothing was lost.
    std::fs::write(&format, text).unwrap();
    let host = home.start();
    assert_eq!(host.depth("orders"), 4);
}
