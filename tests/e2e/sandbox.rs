//! What a handler can do to a host and to the other queues: nothing. The limits of real tasks from
//! the outside, and what is undone when one is met. Each sample's own end is in `samples`.

use serde_json::{Value, json};

use crate::host::{Home, Host};
use crate::wait::until;
use crate::work::{DEAD_LETTERS, outcome_of, sample};

/// A host with these samples in it, ready, and plain queues.
fn host_with(samples: &[&str], queues: &[&str]) -> (Home, Host) {
    let home = Home::new();
    samples
        .iter()
        .for_each(|name| home.drop_sample(sample(name)));
    let host = home.start();
    queues.iter().for_each(|queue| host.define_plain(queue));
    for name in samples {
        host.wait_for_plugin(name, "ready");
    }
    (home, host)
}

#[test]
fn a50_other_queues_go_on_while_a_handler_spins() {
    let home = Home::new();
    home.drop_sample(sample("echo"));
    let lasting = [
        ("fuel = \"20 M\"", "fuel = \"900 G\""),
        ("\"5s\"", "\"5m\""),
    ];
    home.drop_as("spins", sample("spins"), &lasting);
    // Two workers, whatever the machine has: a task that computes long may take but one of them.
    let host = home.start_with(&["--fuel", "1000 G", "--workers", "2"], &[]);
    host.define_plain("echo.out");
    host.wait_for_plugin("spins", "ready");
    host.wait_for_plugin("echo", "ready");
    host.put("spins", b"round");
    until("the spin", || host.queue("spins")["running"] == 1);
    for count in 1..=20 {
        host.put("echo", b"hello");
        host.wait_for_depth("echo.out", count);
    }
    let records = host.records("spins");
    assert_eq!(records.len(), 1);
    assert_eq!(
        records[0]["outcome"],
        Value::Null,
        "it still spins: {}",
        records[0]
    );
    assert_eq!(host.reserved()["fuel"], 900_000_000_000_u64);
}

#[test]
fn a50_with_fuel_for_the_whole_capacity_the_deadline_ends_a_loop() {
    let home = Home::new();
    let all = [
        ("fuel = \"20 M\"", "fuel = \"1000 G\""),
        ("\"5s\"", "\"300ms\""),
    ];
    home.drop_as("spins", sample("spins"), &all);
    let host = home.start_with(&["--fuel", "1000 G"], &[]);
    host.wait_for_plugin("spins", "ready");
    let id = host.put("spins", b"round");
    let record = host.record_of("spins", &id);
    assert_eq!(record["outcome"], "past-deadline", "{record}");
    assert!(
        record["detail"].as_str().unwrap().contains("300ms"),
        "{record}"
    );
    assert_eq!(host.dead_letter(&id)["outcome"], "past-deadline");
    host.wait_for_capacity();
}

#[test]
fn a50_what_a_unit_did_before_its_limit_is_undone() {
    // A hundred puts were taken before the one that ended it.
    let (_home, host) = host_with(&["floods-puts"], &["floods-puts.out"]);
    let id = host.put("floods-puts", b"hello");
    assert_eq!(host.dead_letter(&id)["outcome"], "output-limit");
    assert!(host.browse("floods-puts.out").is_empty());
    assert_eq!(host.queue("floods-puts.out")["counts"]["in-unit"], 0);
    host.wait_for_capacity();
}

#[test]
fn a52_a_message_that_always_fails_leaves_the_queue_to_the_others() {
    let home = Home::new();
    home.drop_sample(sample("batch-settle"));
    let host = home.start();
    host.define_plain("settled");
    host.wait_for_plugin("batch-settle", "ready");
    let poison = host.put("batch-settle", b"trap");
    let good = host.put("batch-settle", b"good");
    // Its manifest: two attempts, soon after each other.
    let letter = host.dead_letter(&poison);
    assert_eq!(letter["reason"], "backout", "{letter}");
    assert_eq!(
        (&letter["outcome"], &letter["attempts"]),
        (&json!("trapped"), &json!(2))
    );
    assert_eq!(
        (&letter["queue"], &letter["process"]),
        (&json!("batch-settle"), &json!("batch-settle"))
    );
    assert!(
        letter["detail"]
            .as_str()
            .unwrap()
            .contains("the body says trap"),
        "{letter}"
    );
    host.wait_for_depth("settled", 1);
    assert_eq!(host.bodies("settled"), ["good"]);
    assert_eq!(host.browse("settled")[0]["correlation-id"], good.as_str());
    assert_eq!(host.depth("batch-settle"), 0);
    assert_eq!(host.depth(DEAD_LETTERS), 1);
}

/// A batch of ten with some that fail, put at once; those stay put until they are looked at.
fn batch(bodies: &[&str; 10]) -> (Home, Host, Vec<String>) {
    let (home, host) = host_with(&["batch-settle"], &["settled"]);
    host.alter(
        "batch-settle",
        &json!({"retry": {"initial": "1h", "max": "1h"}}),
    );
    let ids = host.put_together("batch-settle", bodies);
    (home, host, ids)
}

#[test]
fn a54_of_a_batch_of_ten_two_fail_and_eight_are_committed() {
    let bodies = [
        "m0", "m1", "fail", "m3", "m4", "m5", "m6", "fail", "m8", "m9",
    ];
    let (_home, host, ids) = batch(&bodies);
    host.wait_for_depth("settled", 8);
    let record = host.record_of("batch-settle", &ids[0]);
    for (body, id) in bodies.iter().zip(&ids) {
        let wanted = if *body == "fail" {
            "retry"
        } else {
            "committed"
        };
        assert_eq!(outcome_of(&record, id), wanted, "{record}");
    }
    // The two are back with one more on their count, and none of their puts is there.
    let back = host.browse("batch-settle");
    let back: Vec<_> = back
        .iter()
        .map(|it| (it["id"].as_str(), &it["backout-count"]))
        .collect();
    let one = json!(1);
    assert_eq!(
        back,
        [(Some(ids[2].as_str()), &one), (Some(ids[7].as_str()), &one)]
    );
    let mut settled = host.bodies("settled");
    settled.sort();
    assert_eq!(settled, ["m0", "m1", "m3", "m4", "m5", "m6", "m8", "m9"]);
}

#[test]
fn a54_a_trap_at_the_fourth_commits_three_charges_one_and_frees_the_rest() {
    let bodies = ["m0", "m1", "m2", "trap", "m4", "m5", "m6", "m7", "m8", "m9"];
    let (_home, host, ids) = batch(&bodies);
    host.wait_for_depth("settled", 9);
    let record = host.record_of("batch-settle", &ids[3]);
    let ends: Vec<&str> = ids[..4].iter().map(|id| outcome_of(&record, id)).collect();
    assert_eq!(
        ends,
        ["committed", "committed", "committed", "trapped"],
        "{record}"
    );
    // The rest was neither charged nor failed: the next instance handled it.
    for id in &ids[4..] {
        let record = host.record_of("batch-settle", id);
        assert!(
            ["committed", "released"].contains(&outcome_of(&record, id)),
            "{record}"
        );
    }
    let back = host.browse("batch-settle");
    assert_eq!(back.len(), 1);
    assert_eq!(
        (&back[0]["id"], &back[0]["backout-count"]),
        (&json!(ids[3]), &json!(1))
    );
    assert!(!host.bodies("settled").contains(&"trap".to_owned()));
}

#[test]
fn a54_state_of_a_message_that_fails_in_a_batch_is_undone() {
    let home = Home::new();
    let batches = [(
        "[process.grants]",
        "batch = 10\nreuse = 10\n\n[process.grants]",
    )];
    home.drop_as("running-total", sample("running-total"), &batches);
    let host = home.start();
    host.define("totals", json!({"trigger": "none", "max-depth": 8}));
    host.wait_for_plugin("running-total", "ready");
    host.alter(
        "running-total",
        &json!({"retry": {"initial": "10ms", "max": "20ms"}, "backout-threshold": 100_000}),
    );
    let order = json!({"kind": "tea", "amount": 1}).to_string();
    let ids = host.put_together("running-total", &[order.as_str(); 10]);
    // The last two set their total before their put was refused.
    host.wait_for_depth("totals", 8);
    until("a failed attempt", || {
        host.browse("running-total")
            .iter()
            .any(|it| it["backout-count"].as_u64() > Some(0))
    });
    let record = host.record_of("running-total", &ids[9]);
    assert_eq!(
        [&ids[8], &ids[9]].map(|id| outcome_of(&record, id)),
        ["retry"; 2],
        "{record}"
    );
    host.alter("totals", &json!({"max-depth": 10}));
    host.wait_for_depth("totals", 10);
    let total = |body: &String| serde_json::from_str::<Value>(body).unwrap()["total"].as_u64();
    let mut totals: Vec<u64> = host.bodies("totals").iter().filter_map(total).collect();
    totals.sort_unstable();
    assert_eq!(totals, (1..=10).collect::<Vec<u64>>());
}

#[test]
fn a56_what_was_not_granted_is_refused_and_recorded() {
    let (_home, host) = host_with(&["reaches-out"], &["reaches-out.out", "secrets"]);
    host.put("secrets", b"not yours");
    let id = host.put("reaches-out", b"hello");
    host.wait_for_depth("reaches-out.out", 1);
    let record = host.record_of("reaches-out", &id);
    let refused = record["cost"]["refused"].as_array().unwrap();
    let what: Vec<&str> = refused
        .iter()
        .map(|it| it["what"].as_str().unwrap())
        .collect();
    assert_eq!(
        what,
        ["connect 127.0.0.1:7373", "get secrets", "put secrets"],
        "{record}"
    );
    assert!(refused.iter().all(|it| it["times"] == 1), "{record}");
    assert_eq!(host.bodies("secrets"), ["not yours"]);
    let report = host.bodies("reaches-out.out").remove(0);
    let line = |name: &str| {
        let found = report.lines().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("no {name} in {report}"))
    };
    assert_eq!(line("environment"), "environment: 0 variables");
    for name in ["tcp", "file", "folder", "put", "get"] {
        assert!(line(name).contains("refused"), "{report}");
    }
    assert!(
        line("put").contains("NotGranted") && line("get").contains("NotGranted"),
        "{report}"
    );
    // With the grant the same put passes, and nothing else does.
    let grants = json!({"grants": {"put": ["reaches-out.out", "secrets"]}});
    let altered = host.send_json("PATCH", "/v1/processes/reaches-out", &grants);
    assert!(
        altered.status < 300,
        "{}",
        String::from_utf8_lossy(&altered.body)
    );
    host.put("reaches-out", b"again");
    host.wait_for_depth("secrets", 2);
}

#[test]
fn a58_the_deadline_ends_a_guest_that_waits_in_the_host() {
    let (_home, host) = host_with(&["sleeps", "echo"], &["echo.out"]);
    for (count, body) in (1..).zip([&b"get"[..], b"clock"]) {
        let id = host.put("sleeps", body);
        host.put("echo", b"meanwhile");
        let record = host.record_of("sleeps", &id);
        assert_eq!(record["outcome"], "past-deadline", "{record}");
        assert_eq!(host.dead_letter(&id)["outcome"], "past-deadline");
        host.wait_for_depth("echo.out", count);
    }
    host.wait_for_capacity();
}
