//! The samples that are written against the interfaces of other hosts: one case each, named as the
//! sample.

use serde_json::{Value, json};

use crate::host::{Home, Host};
use crate::wait::until;
use crate::work::{outcome_of, sample};

/// Plain queues that the samples put to.
const QUEUES: &[&str] = &["echoed", "questions", "elsewhere"];

/// A host with one sample in it.
fn host_with(name: &str, style: &str) -> (Home, Host) {
    let home = Home::new();
    home.drop_sample(sample(name));
    let host = home.start();
    for queue in QUEUES {
        host.define_plain(queue);
    }
    let view = host.wait_for_plugin(name, "ready");
    assert_eq!(view["style"], style, "{view}");
    (home, host)
}

/// Puts a message that wants its reply on `echoed`; answers that reply and its body.
fn reply_to(host: &Host, name: &str, headers: &[(&str, &str)], body: &str) -> (Value, String) {
    let before = host.depth("echoed");
    let mut all = vec![("oncue-reply-to", "echoed")];
    all.extend_from_slice(headers);
    let id = host.put_with(name, &all, body.as_bytes());
    let record = host.record_of(name, &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
    assert_eq!(host.depth("echoed"), before + 1, "{record}");
    let reply = host.browse("echoed").pop().expect("a reply");
    if !headers
        .iter()
        .any(|(name, _)| *name == "oncue-correlation-id")
    {
        assert_eq!(reply["correlation-id"], id.as_str(), "{reply}");
    }
    (reply, host.bodies("echoed").pop().expect("its body"))
}

/// Answers the next question on `questions`, as another application would, while `ask` waits.
fn answering<T: Send>(host: &Host, text: &str, ask: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let asking = scope.spawn(ask);
        let question = host
            .post("/v1/queues/questions/get?wait=60s", b"")
            .expect(200);
        assert_eq!(question.body, b"how much?");
        let header = |name: &str| question.header(name).expect("a header").to_owned();
        let asked = header("oncue-id");
        let to = header("oncue-reply-to");
        host.put_with(&to, &[("oncue-correlation-id", &asked)], text.as_bytes());
        let acknowledge = format!("/v1/leases/{}/ack", header("oncue-lease"));
        assert!(host.post(&acknowledge, b"").status < 300);
        asking.join().expect("an answer")
    })
}

/// What a put may not do is a value for the component and stands in the record.
fn refusals(host: &Host, name: &str, denied: &str) {
    for (queue, words) in [
        ("elsewhere", &[denied, "elsewhere"][..]),
        ("no/name", &["no/name", "[unknown-queue]"]),
        ("undefined", &["undefined"]),
    ] {
        let (_, said) = reply_to(host, name, &[], &format!("tell {queue} hello"));
        for word in words {
            assert!(said.contains(word), "no {word:?} in {said:?}");
        }
    }
    let records = host.records(name);
    let refused: Vec<&Value> = records
        .iter()
        .flat_map(|record| record["cost"]["refused"].as_array().into_iter().flatten())
        .collect();
    let text = json!(refused).to_string();
    assert!(text.contains("elsewhere"), "{text} of {records:?}");
}

/// A failure is backed out with its reason, and what was put is undone.
fn fails(host: &Host, name: &str, reason: &str) {
    let before = host.depth("echoed");
    let headers = [("oncue-reply-to", "echoed")];
    let id = host.put_with(name, &headers, b"fail for a reason");
    let record = host.record_of(name, &id);
    assert_eq!(outcome_of(&record, &id), "retry", "{record}");
    let detail = record["detail"].as_str().expect("a detail");
    assert!(detail.contains(reason), "{detail}");
    let letter = host.dead_letter(&id);
    assert_eq!(letter["outcome"], "retry", "{letter}");
    assert_eq!(host.depth("echoed"), before);
}

pub(super) fn wasmcloud_messaging_echo() {
    let name = "wasmcloud-messaging-echo";
    let (_home, host) = host_with(name, "wasmcloud-messaging");
    let (_, body) = reply_to(&host, name, &[], "hello, other world");
    assert_eq!(body, "hello, other world");
    let (_, subject) = reply_to(&host, name, &[], "subject");
    assert_eq!(subject, name);
    let correlated = [("oncue-correlation-id", "order 7")];
    let (reply, _) = reply_to(&host, name, &correlated, "hello");
    assert_eq!(reply["correlation-id"], "order 7");
    let (_, answer) = answering(&host, "12 florins", || {
        reply_to(&host, name, &[], "ask questions how much?")
    });
    assert_eq!(answer, "12 florins from oncue.replies");
    let (_, told) = reply_to(&host, name, &[], "tell questions aside");
    assert_eq!(told, "told");
    assert_eq!(host.bodies("questions"), ["aside"]);
    let aside = &host.browse("questions")[0];
    assert!(aside["correlation-id"].is_null(), "{aside}");
    refusals(&host, name, "not-granted");
    fails(&host, name, "fail for a reason");
    // Who wants no reply is not a fault.
    let id = host.put(name, b"nobody waits");
    let record = host.record_of(name, &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
}

pub(super) fn wasi_messaging_echo() {
    let name = "wasi-messaging-echo";
    let (_home, host) = host_with(name, "wasi-messaging");
    let (reply, body) = reply_to(&host, name, &[], "reply quickly");
    assert_eq!(body, "quickly");
    assert_eq!(reply["content-type"], "text/x-answer", "{reply}");
    assert_eq!(reply["properties"], json!({"colour": "blue"}), "{reply}");
    let told = [
        ("content-type", "text/x-question"),
        ("oncue-property-size", "large"),
        ("oncue-correlation-id", "order 7"),
        ("oncue-group", "seven"),
    ];
    let (_, facts) = reply_to(&host, name, &told, "facts");
    for line in [
        name,
        "text/x-question",
        "size=large",
        "oncue-correlation-id=order 7",
        "oncue-reply-to=echoed",
        "oncue-group=seven",
        "oncue-backout-count=0",
        "oncue-attempts-left=1",
    ] {
        assert!(
            facts.lines().any(|known| known == line),
            "{line} in {facts}"
        );
    }
    // Sent on as it came, and tied to itself since it goes where its reply is wanted.
    let (sent, body) = reply_to(&host, name, &told, "as it is");
    assert_eq!(body, "as it is");
    assert_eq!(sent["content-type"], "text/x-question", "{sent}");
    assert_eq!(sent["properties"], json!({"size": "large"}), "{sent}");
    assert_eq!(sent["correlation-id"], "order 7", "{sent}");
    assert!(sent["reply-to"].is_null(), "{sent}");
    let (_, answer) = answering(&host, "12 florins", || {
        reply_to(&host, name, &[], "ask questions how much?")
    });
    assert_eq!(answer, "12 florins");
    let (_, told) = reply_to(&host, name, &[], "tell questions aside");
    assert_eq!((told.as_str(), host.depth("questions")), ("told", 1));
    refusals(&host, name, "denied: ");
    fails(&host, name, "fail for a reason");
    let id = host.put(name, b"hoard");
    let record = host.record_of(name, &id);
    assert_eq!(outcome_of(&record, &id), "over-memory", "{record}");
    let detail = record["messages"][0]["detail"].as_str().expect("a detail");
    assert!(detail.contains("messages that it makes"), "{detail}");
    host.wait_for_capacity();
}

pub(super) fn wasmcloud_v1_reply() {
    let name = "wasmcloud-v1-reply";
    let (_home, host) = host_with(name, "wasi-messaging");
    // The manager's own reply queue needs no grant while a message wants its reply there.
    let id = host.put_with(name, &[("oncue-reply-to", "oncue.replies")], b"louder");
    host.wait_for_depth("oncue.replies", 1);
    assert_eq!(host.bodies("oncue.replies"), ["LOUDER"]);
    let reply = &host.browse("oncue.replies")[0];
    assert_eq!(reply["correlation-id"], id.as_str(), "{reply}");
    // Nobody is told of a reply that nobody wants.
    let id = host.put(name, b"silence");
    let record = host.record_of(name, &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
}

#[test]
fn a31_a_component_of_another_host_replies_once_whenever_its_host_is_killed() {
    let name = "wasmcloud-messaging-echo";
    let (home, host) = host_with(name, "wasmcloud-messaging");
    let bodies: Vec<String> = (0..30).map(|number| format!("m{number:02}")).collect();
    for body in &bodies {
        host.put_with(name, &[("oncue-reply-to", "echoed")], body.as_bytes());
    }
    until("the first reply", || host.depth("echoed") > 0);
    host.kill();
    let host = home.start();
    host.wait_for_depth("echoed", bodies.len() as u64);
    let mut replies = host.bodies("echoed");
    replies.sort();
    assert_eq!(replies, bodies);
    host.wait_for_depth(name, 0);
}

pub(super) fn http_echo() {
    let home = Home::new();
    home.drop_sample(sample("http-echo"));
    let host = home.start();
    let view = host.wait_for_plugin("http-echo", "ready");
    assert_eq!(view["style"], "wasi-http", "{view}");
    // A request and its answer, as an application sees it that waits for it.
    let id = host.put_with(
        "http-echo",
        &[("oncue-reply-to", "oncue.replies")],
        b"hello",
    );
    let path = format!("/v1/queues/oncue.replies/get?wait=60s&correlation-id={id}");
    let answer = host.post(&path, b"").expect(200);
    assert_eq!(answer.body, b"hello");
    let record = host.record_of("http-echo", &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
}

pub(super) fn http_client() {
    let home = Home::new();
    home.drop_sample(sample("http-client"));
    let host = home.start();
    host.define_plain("http-client.out");
    let view = host.wait_for_plugin("http-client", "ready");
    assert_eq!(view["style"], "message", "{view}");
    // Its manifest grants another place than this one.
    let id = host.put("http-client", b"http://127.0.0.1:9/hello");
    let record = host.record_of("http-client", &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
    let refused = &record["cost"]["refused"][0];
    assert_eq!(refused["what"], "request http://127.0.0.1:9", "{record}");
    assert_eq!(
        host.bodies("http-client.out"),
        ["error ErrorCode::HttpRequestDenied"]
    );
}

pub(super) fn spin_sqs() {
    let home = Home::new();
    home.drop_sample(sample("spin-sqs"));
    let host = home.start();
    let view = host.wait_for_plugin("spin-sqs", "ready");
    assert_eq!(view["style"], "spin-sqs", "{view}");
    let headers = [
        ("content-type", "text/plain"),
        ("oncue-correlation-id", "c-1"),
        ("oncue-property-colour", "red"),
    ];
    let id = host.put_with("spin-sqs", &headers, b"delete");
    let record = host.record_of("spin-sqs", &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
    let tail = record["cost"]["log-tail"].as_str().expect("a log");
    for line in [
        format!("id: {id}"),
        "colour (String): red".to_owned(),
        "content-type (String): text/plain".to_owned(),
        "oncue-correlation-id (String): c-1".to_owned(),
        "oncue-queue (String): spin-sqs".to_owned(),
        "oncue-backout-count (Number): 0".to_owned(),
    ] {
        assert!(tail.lines().any(|it| it == line), "no {line} in:\n{tail}");
    }
    for (body, outcome, words) in [
        (&b"leave"[..], "retry", "left the message on its queue"),
        (b"fail no stock", "retry", "no stock"),
        (b"dance", "trapped", "the body says \"dance\""),
        (b"delete \xff", "rejected", "the body is not UTF-8"),
    ] {
        let id = host.put("spin-sqs", body);
        let record = host.record_of("spin-sqs", &id);
        assert_eq!(outcome_of(&record, &id), outcome, "{record}");
        let detail = host.dead_letter(&id)["detail"].take();
        assert!(
            detail.as_str().unwrap_or_default().contains(words),
            "{detail}"
        );
    }
}
