//! Metrics against an outside ledger: what the test itself put, and what it found afterwards.

use serde_json::json;

use crate::host::{Home, Host};
use crate::wait::until;
use crate::work::{DEAD_LETTERS, sample};

/// One value of `/metrics`.
fn value(page: &str, series: &str) -> f64 {
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let line = line.unwrap_or_else(|| panic!("no {series} in\n{page}"));
    line.parse().expect("a number")
}

fn page(host: &Host) -> String {
    let answer = host.get("/metrics").expect(200);
    String::from_utf8(answer.body).expect("text")
}

fn check(page: &str, wanted: &[(&str, u32)]) {
    for (series, wanted) in wanted {
        let got = value(page, series);
        assert!(
            (got - f64::from(*wanted)).abs() < 1e-9,
            "{series}: {got}, wanted {wanted}"
        );
    }
}

#[test]
fn counts_agree_with_an_outside_ledger() {
    let home = Home::new();
    home.drop_sample(sample("echo"));
    home.drop_sample(sample("traps"));
    let host = home.start();
    host.define_plain("echo.out");
    host.define_plain("leased");
    host.wait_for_plugin("echo", "ready");
    host.wait_for_plugin("traps", "ready");
    for number in 0..20_u32 {
        host.put("echo", &number.to_le_bytes());
    }
    for _ in 0..3 {
        host.put("traps", b"x");
    }
    host.put_with("leased", &[("idempotency-key", "k")], b"y");
    host.put_with("leased", &[("idempotency-key", "k")], b"y");
    let refused = host.post("/v1/queues/nowhere/messages", b"z");
    assert_eq!(refused.status, 404);
    host.wait_for_depth("echo.out", 20);
    host.wait_for_depth(DEAD_LETTERS, 3);
    let got = host.post("/v1/queues/leased/get", b"").expect(200);
    let token = got.header("oncue-lease").expect("a token").to_owned();
    host.post(&format!("/v1/leases/{token}/ack"), b"")
        .expect(204);
    // A task is counted when it has ended, a little after its last message.
    until("all tasks to end", || {
        value(&page(&host), "oncue_handler_inflight").abs() < 1e-9
    });
    let page = page(&host);
    check(
        &page,
        &[
            (
                "oncue_messages_put_total{result=\"durable\",by=\"application\"}",
                24,
            ),
            (
                "oncue_messages_put_total{result=\"repeated\",by=\"application\"}",
                1,
            ),
            (
                "oncue_messages_put_total{result=\"refused\",by=\"application\"}",
                1,
            ),
            (
                "oncue_messages_put_total{result=\"durable\",by=\"handler\"}",
                20,
            ),
            ("oncue_messages_got_total{by=\"consumer\"}", 1),
            ("oncue_messages_committed_total{by=\"handler\"}", 20),
            ("oncue_messages_committed_total{by=\"consumer\"}", 1),
            ("oncue_messages_backed_out_total{by=\"handler\"}", 3),
            ("oncue_messages_dead_lettered_total{reason=\"backout\"}", 3),
            ("oncue_handler_invocations_total{outcome=\"committed\"}", 20),
            ("oncue_handler_invocations_total{outcome=\"trapped\"}", 3),
            ("oncue_handler_duration_seconds_count", 23),
            ("oncue_queue_messages_ready", 23),
            ("oncue_dead_letters", 3),
            ("oncue_ledger_slots_reserved", 0),
        ],
    );
    // Tasks that fired and tasks that ended are the same ones, by the records of the host.
    let records = host.records("echo").len() + host.records("traps").len();
    let tasks = f64::from(u32::try_from(records).expect("few"));
    let fired = value(&page, "oncue_trigger_fired_total{type=\"first\"}");
    assert!((fired - tasks).abs() < 1e-9, "{fired} of {tasks}");
    assert!(value(&page, "oncue_start_latency_seconds_count") > 0.0);
    let syncs = value(&page, "oncue_store_syncs_total");
    assert!((value(&page, "oncue_log_fsync_seconds_count") - syncs).abs() < 1e-9);
    let fuel = value(&page, "oncue_process_fuel_total{process=\"echo\"}");
    let spent: u64 = host
        .records("echo")
        .iter()
        .filter_map(|r| r["cost"]["fuel"].as_u64())
        .sum();
    assert!((fuel - f64::from(u32::try_from(spent).expect("not much"))).abs() < 1.0);
}

#[test]
fn a_queue_that_is_held_shows_its_reason_on_both_pages() {
    let home = Home::new();
    let host = home.start();
    host.define("orders", json!({"process": "no-such-process"}));
    host.put("orders", b"x");
    let held = "oncue_queues_held{reason=\"no-process\"}";
    until("the hold to show", || value(&page(&host), held) > 0.5);
    let answer = host
        .get("/metrics/detailed?queue=orders&family=info")
        .expect(200);
    let detailed = String::from_utf8(answer.body).expect("text");
    let wanted = "oncue_queue_info{queue=\"orders\",process=\"no-such-process\",trigger=\"first\",\
                  control=\"on\",reason=\"no-process\"}";
    assert!((value(&detailed, wanted) - 1.0).abs() < 1e-9);
}
