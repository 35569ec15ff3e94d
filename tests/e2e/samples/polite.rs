//! The polite samples: one case each, named as the sample.

use serde_json::{Value, json};

use crate::host::{Home, Host};
use crate::wait::until;
use crate::work::{outcomes, sample};

/// A host with one sample in it, and the plain queues that it puts to.
fn host_with(name: &str, outputs: &[&str]) -> (Home, Host) {
    let home = Home::new();
    home.drop_sample(sample(name));
    let host = home.start();
    for output in outputs {
        host.define_plain(output);
    }
    host.wait_for_plugin(name, "ready");
    (home, host)
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

pub(super) fn echo() {
    let (_home, host) = host_with("echo", &["echo.out", "elsewhere"]);
    let headers = [
        ("content-type", "text/x-greeting"),
        ("oncue-property-colour", "red"),
    ];
    let id = host.put_with("echo", &headers, b"hello");
    host.wait_for_depth("echo.out", 1);
    let echoed = &host.browse("echo.out")[0];
    assert_eq!(echoed["correlation-id"], id.as_str());
    assert_eq!(echoed["content-type"], "text/x-greeting");
    assert_eq!(echoed["properties"], json!({"colour": "red"}));
    assert_eq!(host.bodies("echo.out"), ["hello"]);
    // Another reply-to than the granted one is refused, and the message kept.
    let refused = host.put_with("echo", &[("oncue-reply-to", "elsewhere")], b"hello");
    let record = host.record_of("echo", &refused);
    assert_eq!(record["outcome"], "retry");
    assert!(
        record["detail"].as_str().unwrap().contains("elsewhere"),
        "{record}"
    );
    assert_eq!(host.depth("elsewhere"), 0);
    assert_eq!(host.message("echo", &refused)["backout-count"], 1);
}

pub(super) fn route_orders() {
    let home = Home::new();
    home.drop_as(
        "route-orders",
        sample("route-orders"),
        &[(
            "backout-threshold = 3",
            "backout-threshold = 3\nretry = { initial = \"10ms\", max = \"20ms\" }",
        )],
    );
    let host = home.start();
    host.define_plain("invoices");
    host.define_plain("audit.refund");
    host.wait_for_plugin("route-orders", "ready");
    let invoice = r#"{"order":"o-1","kind":"invoice","amount":12.5}"#;
    let refund = r#"{"order":"o-2","kind":"refund","amount":3}"#;
    host.put("orders", invoice.as_bytes());
    host.put("orders", refund.as_bytes());
    host.wait_for_depth("invoices", 1);
    host.wait_for_depth("audit.refund", 1);
    assert_eq!(host.bodies("invoices"), [invoice]);
    assert_eq!(host.bodies("audit.refund"), [refund]);

    // What can never succeed is rejected at the first attempt, with the handler's reason.
    for (body, why) in [
        ("not JSON", "not an order"),
        (
            r#"{"order":"","kind":"invoice","amount":1}"#,
            "\"order\" is empty",
        ),
        (
            r#"{"order":"o-3","kind":"invoice","amount":-1}"#,
            "\"amount\" is below 0",
        ),
        (
            r#"{"order":"o-4","kind":"a/b","amount":1}"#,
            "\"a/b\" is no queue name",
        ),
    ] {
        let id = host.put("orders", body.as_bytes());
        let letter = host.dead_letter(&id);
        assert_eq!(letter["reason"], "rejected", "{letter}");
        assert_eq!(letter["attempts"], 1, "{letter}");
        assert!(letter["detail"].as_str().unwrap().contains(why), "{letter}");
    }
    // What may succeed later is tried as often as the queue says.
    let id = host.put("orders", br#"{"order":"o-5","kind":"nowhere","amount":1}"#);
    let letter = host.dead_letter(&id);
    assert_eq!(
        (&letter["outcome"], &letter["attempts"]),
        (&json!("retry"), &json!(3)),
        "{letter}"
    );
    assert!(
        letter["detail"].as_str().unwrap().contains("audit.nowhere"),
        "{letter}"
    );
    assert_eq!(host.depth("orders"), 0);
}

pub(super) fn running_total() {
    let (home, host) = host_with("running-total", &["totals"]);
    let order = |kind: &str, amount: u64| json!({"kind": kind, "amount": amount}).to_string();
    for (kind, amount) in [("tea", 2), ("salt", 10), ("tea", 3)] {
        host.put("running-total", order(kind, amount).as_bytes());
    }
    host.wait_for_depth("totals", 3);
    let wanted = [("salt", 10), ("tea", 2), ("tea", 5)]
        .map(|(kind, total)| json!({"kind": kind, "total": total}).to_string());
    assert_eq!(sorted(host.bodies("totals")), wanted);
    // A failed attempt leaves no trace in the state: each total is there once, without a gap.
    host.alter("totals", &json!({"max-depth": 3}));
    host.alter(
        "running-total",
        &json!({"retry": {"initial": "10ms", "max": "20ms"},
        "backout-threshold": 1000}),
    );
    let stuck = host.put("running-total", order("tea", 7).as_bytes());
    until("a second attempt", || {
        host.message("running-total", &stuck)["backout-count"].as_u64() >= Some(2)
    });
    host.alter("totals", &json!({"max-depth": 100}));
    host.wait_for_depth("totals", 4);
    assert!(
        host.bodies("totals")
            .contains(&r#"{"kind":"tea","total":12}"#.to_owned())
    );
    // And it outlives the host.
    assert_eq!(host.stop(), 0);
    let host = home.start();
    host.wait_for_plugin("running-total", "ready");
    host.put("running-total", order("tea", 1).as_bytes());
    host.wait_for_depth("totals", 5);
    assert!(
        host.bodies("totals")
            .contains(&r#"{"kind":"tea","total":13}"#.to_owned())
    );
}

pub(super) fn batch_settle() {
    let (_home, host) = host_with("batch-settle", &["settled"]);
    let bodies: Vec<String> = (0..10).map(|number| format!("m{number}")).collect();
    let texts: Vec<&str> = bodies.iter().map(String::as_str).collect();
    let commits = || {
        host.get("/v1/status").expect(200).json()["commits"]
            .as_u64()
            .unwrap()
    };
    let before = commits();
    let ids = host.put_together("batch-settle", &texts);
    host.wait_for_depth("settled", 10);
    assert_eq!(sorted(host.bodies("settled")), bodies);
    // One durable write for the puts and one for all ten messages, and none for each of them.
    let record = host.record_of("batch-settle", &ids[9]);
    assert_eq!(outcomes(&record), ["committed"; 10]);
    let made = commits() - before;
    assert!(made < 10, "{made} commits for a batch of ten");
}

pub(super) fn request_reply() {
    let (_home, host) = host_with("request-reply", &["quotes", "quoted"]);
    let id = host.put("request-reply", b"a ton of tea");
    // The other handler is the test: it gets the question and puts the answer where it is wanted.
    let question = host.post("/v1/queues/quotes/get?wait=60s", b"").expect(200);
    assert_eq!(question.body, b"a ton of tea");
    let header = |name: &str| question.header(name).unwrap_or_else(|| panic!("no {name}"));
    let (reply_to, asked) = (header("oncue-reply-to"), header("oncue-id"));
    host.put_with(reply_to, &[("oncue-correlation-id", asked)], b"12 florins");
    let acknowledge = format!("/v1/leases/{}/ack", header("oncue-lease"));
    assert!(host.post(&acknowledge, b"").status < 300);
    host.wait_for_depth("quoted", 1);
    assert_eq!(host.bodies("quoted"), ["12 florins"]);
    let record = host.record_of("request-reply", &id);
    assert_eq!(record["outcome"], "committed");
    let tail = record["cost"]["log-tail"].as_str().unwrap();
    assert!(tail.contains("of 10 bytes"), "{tail:?}");
    assert_eq!(host.depth("quotes"), 0);
}

pub(super) fn drain() {
    let (_home, host) = host_with("drain", &["drained"]);
    let bodies: Vec<String> = (0..25).map(|number| format!("m{number:02}")).collect();
    let texts: Vec<&str> = bodies.iter().map(String::as_str).collect();
    host.put_together("drain", &texts);
    host.wait_for_depth("drained", 25);
    assert_eq!(sorted(host.bodies("drained")), bodies);
    until("all its tasks to end", || {
        host.records("drain")
            .iter()
            .all(|record| record["outcome"] == "committed")
    });
    // It was started for all of them, not for each.
    let records = host.records("drain");
    let committed: u64 = records
        .iter()
        .map(|record| record["committed"].as_u64().unwrap())
        .sum();
    assert_eq!(committed, 25);
    assert!(
        records.len() <= 3,
        "{} tasks for one unit of puts",
        records.len()
    );
    let said = |record: &Value| record["cost"]["log-tail"].as_str().unwrap().to_owned();
    assert!(
        said(&records[0]).contains("messages counted on \"drain\""),
        "{}",
        said(&records[0])
    );
}

pub(super) fn call_costs() {
    let (_home, host) = host_with("call-costs", &["call-costs.out"]);
    let body = vec![b'x'; 64 << 10];
    let mut lists = Vec::new();
    for _ in 0..2 {
        let id = host.put("call-costs", &body);
        let record = host.record_of("call-costs", &id);
        assert_eq!(record["outcome"], "committed", "{record}");
        lists.push(fuel_of_calls(record["cost"]["log-tail"].as_str().unwrap()));
        host.post("/v1/queues/call-costs.out/clear", b"")
            .expect(200);
    }
    assert_eq!(lists[0].len(), 20, "{lists:#?}");
    // Fuel is exact: what is written in the authors' page stays true from run to run.
    assert_eq!(lists[0], lists[1]);
    let page = include_str!("../../../wit/what-a-call-costs.md");
    for (call, fuel) in &lists[0] {
        let dearest = if call.contains("65536") {
            200_000
        } else {
            5_000
        };
        assert!((1..dearest).contains(fuel), "{call} burns {fuel}");
        assert!(
            page.contains(&format!("| `{call}` |")),
            "{call} is not in the page"
        );
    }
}

/// The calls that were measured, and the fuel of each.
fn fuel_of_calls(log: &str) -> Vec<(String, u64)> {
    let line = |line: &str| {
        let (call, costs) = line.split_once(": ")?;
        let fuel = costs.split_once(" fuel, ")?.0.parse().ok()?;
        Some((call.to_owned(), fuel))
    };
    log.lines().filter_map(line).collect()
}
