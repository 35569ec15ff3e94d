//! The programs: one case each, named as the sample. What a run means for its message, and that
//! each of its ends can be read in the task's record.

use serde_json::Value;

use crate::host::{Home, Host};
use crate::wait::until;
use crate::work::sample;

/// A host with one program in it, and the queue that its output goes to.
fn host_with(name: &str, output: &str) -> (Home, Host) {
    let home = Home::new();
    home.drop_sample(sample(name));
    let host = home.start();
    host.define_plain(output);
    let plugin = host.wait_for_plugin(name, "ready");
    assert_eq!(plugin["style"], "command", "{plugin}");
    (home, host)
}

pub(super) fn route_orders_command() {
    let (_home, host) = host_with("route-orders-command", "invoices");
    let order = r#"{"order":"o-1","kind":"invoice","amount":12.5}"#;
    let id = host.put("orders", order.as_bytes());
    host.wait_for_depth("invoices", 1);
    assert_eq!(host.bodies("invoices"), [order]);
    let invoice = &host.browse("invoices")[0];
    assert_eq!(invoice["correlation-id"], id.as_str());
    assert_eq!(invoice["put-by"], "process/route-orders-command");
    // An order with a correlation id of its own keeps it.
    host.put_with(
        "orders",
        &[("oncue-correlation-id", "c-7")],
        order.as_bytes(),
    );
    host.wait_for_depth("invoices", 2);
    assert_eq!(host.browse("invoices")[1]["correlation-id"], "c-7");
    // What is no order goes at once, whatever attempts are left.
    let wrong = host.put("orders", b"no order");
    let letter = host.dead_letter(&wrong);
    assert_eq!(letter["reason"], "rejected", "{letter}");
    let reason = "not an order: the body is no JSON object";
    assert_eq!(letter["detail"], reason, "{letter}");
    assert_eq!((host.depth("orders"), host.depth("invoices")), (0, 2));
}

pub(super) fn shows_call() {
    let (_home, host) = host_with("shows-call", "shows-call.out");
    let headers = [
        ("content-type", "text/x-order"),
        ("oncue-correlation-id", "c-1"),
        ("oncue-group", "g"),
        ("oncue-priority", "4"),
        ("oncue-property-colour", "red"),
        ("oncue-property-x.trace-id", "t-1"),
        // The putter's word against the operator's.
        ("oncue-property-region", "forged"),
    ];
    let body = vec![b'x'; 3 << 20];
    let id = host.put_with("shows-call", &headers, &body);
    host.wait_for_depth("shows-call.out", 1);
    let told = host.bodies("shows-call.out").remove(0);
    let told: Vec<&str> = told.lines().collect();
    let wanted = [
        "argument \"shows-call\"",
        "argument \"--all\"",
        "argument \"two words\"",
        "LOG=info",
        "ONCUE_QUEUE=shows-call",
        &format!("ONCUE_MESSAGE_ID={id}"),
        "ONCUE_CORRELATION_ID=c-1",
        "ONCUE_GROUP=g",
        "ONCUE_PRIORITY=4",
        "ONCUE_PERSISTENCE=persistent",
        "ONCUE_CONTENT_TYPE=text/x-order",
        "ONCUE_BACKOUT_COUNT=0",
        "ONCUE_ATTEMPTS_LEFT=1",
        "ONCUE_HOP_COUNT=0",
        "ONCUE_SIZE=3145728",
        "ONCUE_PROPERTY_COLOUR=red",
        "ONCUE_PROPERTY_X_TRACE_ID=t-1",
        "ONCUE_PROPERTY_REGION=granted",
        "ONCUE_TRIGGER_QUEUE=shows-call",
        "ONCUE_TRIGGER_PROCESS=shows-call",
        "ONCUE_TRIGGER_TYPE=first",
        "ONCUE_TRIGGER_DATA=of the queue",
        "ONCUE_TRIGGER_ENVIRONMENT_DATA=of the process",
        "ONCUE_TRIGGER_USER_DATA=--all 'two words'",
        "ONCUE_TRIGGER_DEPTH=1",
        "body 3145728",
    ];
    for line in wanted {
        assert!(told.contains(&line), "no {line:?} in {told:#?}");
    }
    // Nothing of the host's own environment, and no variable without a value.
    let mut names = told.iter().filter_map(|line| line.split_once('='));
    let foreign = names.find(|(name, _)| *name != "LOG" && !name.starts_with("ONCUE_"));
    assert_eq!(foreign, None);
    assert!(!told.iter().any(|line| line.starts_with("ONCUE_REPLY_TO=")));
    // Standard error is the log, standard output is not.
    let record = host.record_of("shows-call", &id);
    assert_eq!(record["cost"]["log-tail"], "told\n", "{record}");
}

/// Puts a message to the program that ends badly; demands the outcome of its record, and words of
/// what the record says of it.
fn ends(host: &Host, body: &[u8], outcome: &str, words: &[&str]) -> Value {
    let id = host.put("ends-badly", body);
    let record = host.record_of("ends-badly", &id);
    let messages = record["messages"].as_array().expect("messages");
    let noted = messages.iter().find(|it| it["id"] == id.as_str());
    let noted = noted.expect("its message");
    let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
    assert_eq!(noted["outcome"], outcome, "{shown}: {record}");
    let detail = noted["detail"].as_str().unwrap_or_default();
    for word in words {
        assert!(detail.contains(word), "{shown}: no {word:?} in {detail:?}");
    }
    if outcome != "committed" {
        let letter = host.dead_letter(&id);
        if outcome == "rejected" {
            assert_eq!(letter["reason"], outcome, "{letter}");
        } else {
            assert_eq!(letter["outcome"], outcome, "{letter}");
        }
        assert_eq!(letter["detail"], detail, "{letter}");
    }
    record
}

pub(super) fn ends_badly() {
    let (_home, host) = host_with("ends-badly", "ends-badly.out");
    let mut put = 0;
    let mut committed = |body: &[u8], output: &str| {
        ends(&host, body, "committed", &[]);
        put += 1;
        host.wait_for_depth("ends-badly.out", put);
        let bodies = host.bodies("ends-badly.out");
        assert_eq!(bodies.last().map(String::as_str), Some(output));
    };
    committed(b"zero", "on standard output\n");
    // A success is one, whatever was written; and a body may be left unread.
    committed(b"ok oncue-reject: not meant", "on standard output\n");
    let long = [&b"unread "[..], &vec![b'x'; 5 << 20]].concat();
    committed(&long, "done\n");

    let nothing = "wrote nothing to standard error";
    ends(&host, b"fails", "retry", &[nothing]);
    ends(
        &host,
        b"fails no \xff stock",
        "retry",
        &["no \u{fffd} stock"],
    );
    // The next message's reason is its own.
    ends(&host, b"three", "retry", &[nothing]);
    let record = ends(&host, b"three closed today", "retry", &["closed today"]);
    let tail = record["cost"]["log-tail"].as_str().expect("a tail");
    assert!(
        tail.contains("closed today") && tail.contains("on standard output"),
        "{tail}"
    );
    ends(&host, b"long", "retry", &["éé"]);
    let reject = |way: &str| format!("{way} a word\noncue-reject: no such customer\n");
    for way in ["fails", "three", "abort"] {
        ends(
            &host,
            reject(way).as_bytes(),
            "rejected",
            &["no such customer"],
        );
    }
    let panic = ends(
        &host,
        b"panic",
        "trapped",
        &["panicked", "the order is cursed"],
    );
    let backtrace = panic["backtrace"].as_str().expect("a backtrace");
    assert!(backtrace.contains("main"), "{panic}");
    ends(&host, b"spin", "out-of-fuel", &["50 M of 50 M"]);
    ends(&host, b"hoard", "over-memory", &["8 MiB", "raise memory"]);
    ends(&host, b"sleep", "past-deadline", &["5s"]);
    assert_eq!(
        host.depth("ends-badly.out"),
        put,
        "nothing of a failure is put"
    );
    host.wait_for_capacity();
    floods(&host);
}

/// Output past what its queue takes; and an output that its queue has no room for.
fn floods(host: &Host) {
    let small = serde_json::json!({"max-message-length": "256 KiB", "trigger": "none"});
    host.define("ends-badly.out", small);
    let words = ["256 KiB", "\"ends-badly.out\"", "max-message-length"];
    ends(host, b"flood", "output-limit", &words);
    let full = host.depth("ends-badly.out");
    let limit = serde_json::json!({"max-depth": full, "trigger": "none"});
    host.define("ends-badly.out", limit);
    let id = host.put("ends-badly", b"zero");
    let record = host.record_of("ends-badly", &id);
    assert_eq!(record["messages"][0]["outcome"], "deferred", "{record}");
    let tail = record["cost"]["log-tail"].as_str().expect("a tail");
    assert!(tail.contains("[queue-full]"), "{tail}");
    assert_eq!(host.message("ends-badly", &id)["backout-count"], 0);
    // With room again it is handled, with no attempt charged.
    let roomy = serde_json::json!({"max-depth": full + 1, "trigger": "none"});
    host.define("ends-badly.out", roomy);
    until("the deferred message to be handled", || {
        host.depth("ends-badly") == 0
    });
    host.wait_for_depth("ends-badly.out", full + 1);
}

pub(super) fn speaks_drafts() {
    let (_home, host) = host_with("speaks-drafts", "speaks-drafts.out");
    let id = host.put("speaks-drafts", b"first");
    host.wait_for_depth("speaks-drafts.out", 1);
    let told = host.bodies("speaks-drafts.out").remove(0);
    let wanted = include_str!("speaks-drafts.txt");
    assert_eq!(told, wanted);
    let record = host.record_of("speaks-drafts", &id);
    let log = "WARN plain: no version\nCRITICAL a version\n";
    assert_eq!(record["cost"]["log-tail"], log, "{record}");
    // Again, with more keys than a page has from the first time.
    host.put("speaks-drafts", b"second");
    host.wait_for_depth("speaks-drafts.out", 2);
    let told = host.bodies("speaks-drafts.out").remove(1);
    assert!(told.contains("all keys (1504, 2)"), "{told}");
}
