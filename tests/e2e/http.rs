//! Handlers and HTTP, both ways: requests under a grant, and messages as requests. Each sample's
//! usual case is in `samples`.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::host::{Home, Host};
use crate::wait::until;
use crate::web::Web;
use crate::work::{outcome_of, sample};

/// A host with the client in it, which may call these origins.
fn client(origins: &[&str], changes: &[(&str, &str)]) -> (Home, Host) {
    let home = Home::new();
    let granted = serde_json::to_string(origins).expect("JSON is TOML here");
    let mut all = vec![("[\"http://127.0.0.1:8080\"]", granted.as_str())];
    all.extend_from_slice(changes);
    home.drop_as("http-client", sample("http-client"), &all);
    let host = home.start();
    host.define_plain("http-client.out");
    host.wait_for_plugin("http-client", "ready");
    (home, host)
}

/// Has the client send a request; answers what it told of it, a line for each, and the record.
fn ask(host: &Host, text: &str) -> (Vec<String>, Value) {
    let before = host.depth("http-client.out");
    let id = host.put("http-client", text.as_bytes());
    let record = host.record_of("http-client", &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
    host.wait_for_depth("http-client.out", before + 1);
    let told = host.bodies("http-client.out").pop().expect("a result");
    (told.lines().map(str::to_owned).collect(), record)
}

/// What was refused in a task, each with how often.
fn refusals(record: &Value) -> Vec<(&str, u64)> {
    let refused = record["cost"]["refused"].as_array().expect("a list");
    refused
        .iter()
        .map(|it| (it["what"].as_str().unwrap(), it["times"].as_u64().unwrap()))
        .collect()
}

#[test]
fn a_granted_origin_is_reached() {
    let web = Web::start();
    let (_home, host) = client(&[&web.origin()], &[]);
    let (told, record) = ask(&host, &format!("{}/hello", web.origin()));
    assert_eq!(told, ["200 5 hello"]);
    assert_eq!(refusals(&record), []);
    let (told, _) = ask(&host, &format!("{}/echo post=question", web.origin()));
    assert_eq!(told, ["200 8 question"]);
    // Nothing follows a redirect.
    let (told, _) = ask(&host, &format!("{}/redirect", web.origin()));
    assert_eq!(told, ["302 9 elsewhere"]);
    let requests: Vec<_> = web.requests().into_iter().map(|(line, _)| line).collect();
    assert_eq!(requests, ["GET /hello", "POST /echo", "GET /redirect"]);
}

#[test]
fn what_is_not_granted_is_refused_and_recorded_and_never_reached() {
    let (granted, other) = (Web::start(), Web::start());
    let (_home, host) = client(&[&granted.origin()], &[]);
    for origin in [
        other.origin(),
        format!("https://127.0.0.1:{}", granted.port),
        format!("http://localhost:{}", granted.port),
        "http://nobody.example.com".to_owned(),
    ] {
        let (told, record) = ask(&host, &format!("{origin}/hello times=2"));
        assert_eq!(told, ["error ErrorCode::HttpRequestDenied"; 2], "{origin}");
        assert_eq!(refusals(&record), [(&*format!("request {origin}"), 2)]);
    }
    let (told, record) = ask(&host, &format!("http://x@127.0.0.1:{}/hello", granted.port));
    assert_eq!(told, ["error ErrorCode::HttpRequestUriInvalid"]);
    assert_eq!(refusals(&record), []);
    assert_eq!(granted.requests(), []);
    assert_eq!(other.requests(), []);
}

#[test]
fn failures_of_a_connection_have_their_names() {
    let web = Web::start();
    let plain = web.origin();
    let secure = plain.replace("http:", "https:");
    // A port that was free a moment ago.
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", listener.local_addr().expect("an address"))
    };
    let (_home, host) = client(&[&plain, &secure, &closed], &[]);
    for (text, wanted) in [
        (format!("{secure}/hello"), "TlsProtocolError"),
        (format!("{closed}/hello"), "ConnectionRefused"),
        (
            format!("{plain}/slow first-byte=50"),
            "ConnectionReadTimeout",
        ),
        (format!("{plain}/drip between=50"), "ConnectionReadTimeout"),
        (
            format!("{plain}/large"),
            "HttpResponseBodySize(Some(1099511627776))",
        ),
        (
            format!("{plain}/endless"),
            "HttpResponseBodySize(Some(67108864))",
        ),
        (format!("{plain}/headers"), "HttpResponseHeaderSectionSize"),
    ] {
        let (told, _) = ask(&host, &text);
        let error = format!("error ErrorCode::{wanted}");
        assert!(
            told.len() == 1 && told[0].starts_with(&error),
            "{text}: {told:?}"
        );
    }
}

#[test]
fn the_deadline_of_the_message_ends_a_request() {
    let web = Web::start();
    let short = [("deadline = \"20s\"", "deadline = \"1s\"")];
    let (_home, host) = client(&[&web.origin()], &short);
    let id = host.put("http-client", format!("{}/slow", web.origin()).as_bytes());
    let record = host.record_of("http-client", &id);
    assert_eq!(outcome_of(&record, &id), "past-deadline", "{record}");
    until("the connection to be closed", || {
        web.seen.given_up.load(Ordering::SeqCst) == 1
    });
}

#[test]
fn connections_of_one_task_are_capped() {
    let web = Web::start();
    let (_home, host) = client(&[&web.origin()], &[]);
    let id = host.put(
        "http-client",
        format!("{}/hold times=20", web.origin()).as_bytes(),
    );
    until("all its places to be taken", || web.held() == 8);
    web.release();
    let record = host.record_of("http-client", &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
    assert_eq!(web.most_held(), 8);
    let told = host.bodies("http-client.out").pop().expect("a result");
    assert_eq!(told.lines().collect::<Vec<_>>(), ["200 4 held"; 20]);
    // Who finds no place in the time to connect is told so.
    let request = format!("{}/slow times=10 connect=100 first-byte=2000", web.origin());
    let (told, _) = ask(&host, &request);
    let limited = |line: &&String| line.ends_with("ConnectionLimitReached");
    assert_eq!(told.iter().filter(limited).count(), 2, "{told:?}");
}

/// A host with the echo in it.
fn echo(changes: &[(&str, &str)]) -> (Home, Host) {
    let home = Home::new();
    home.drop_as("http-echo", sample("http-echo"), changes);
    let host = home.start();
    host.define_plain("answers");
    let view = host.wait_for_plugin("http-echo", "ready");
    assert_eq!(view["style"], "wasi-http", "{view}");
    (home, host)
}

const OUTPUT: (&str, &str) = ("[process]", "[process]\noutput = \"answers\"");

/// Demands how a message ends, and words of why; nothing was answered.
fn ends(host: &Host, body: &str, outcome: &str, words: &str) {
    let id = host.put("http-echo", body.as_bytes());
    let record = host.record_of("http-echo", &id);
    let noted = record["messages"].as_array().expect("messages").iter();
    let noted = noted
        .rev()
        .find(|it| it["id"] == id.as_str())
        .expect("its message");
    assert_eq!(noted["outcome"], outcome, "{body}: {record}");
    let detail = noted["detail"].as_str().unwrap_or_default();
    assert!(detail.contains(words), "{body}: {detail}");
    assert_eq!(host.depth("answers"), 0, "{body}");
    host.dead_letter(&id);
}

#[test]
fn an_answer_that_is_no_success_is_put_nowhere() {
    let (_home, host) = echo(&[OUTPUT]);
    for (body, outcome, words) in [
        (
            "!status 503 words of it",
            "retry",
            "answered 503: words of it",
        ),
        ("!status 404", "retry", "answered 404"),
        ("!status 302 there", "retry", "answered 302: there"),
        (
            "!header 200 oncue-reject bad order",
            "rejected",
            "bad order",
        ),
        (
            "!header 500 oncue-reject bad%0aorder",
            "rejected",
            "bad\norder",
        ),
        (
            "!error words",
            "retry",
            "answered the error ErrorCode::InternalError",
        ),
        ("!nothing", "retry", "returned without an answer"),
        ("!drops-out", "retry", "returned without an answer"),
        ("!panics-first", "trapped", "before the answer"),
        ("!panics-later", "trapped", "after the answer"),
        ("!panics-within", "trapped", "within the answer"),
        (
            "!leaves-open",
            "retry",
            "returned before its body was finished",
        ),
        ("!gives-up", "retry", "answered 200 and gave its body up"),
        ("!endless", "output-limit", "more than 64 MiB"),
    ] {
        ends(&host, body, outcome, words);
    }
    host.wait_for_capacity();
}

#[test]
fn an_answer_is_put_where_answers_go() {
    let (_home, host) = echo(&[OUTPUT, ("\"8 MiB\"", "\"64 MiB\"")]);
    let headers = [("content-type", "text/x-greeting")];
    let id = host.put_with("http-echo", &headers, b"hello");
    host.wait_for_depth("answers", 1);
    let answer = &host.browse("answers")[0];
    assert_eq!(answer["correlation-id"], id.as_str());
    assert_eq!(answer["content-type"], "text/x-greeting");
    assert_eq!(host.bodies("answers"), ["hello"]);
    // A body that is read and written in many pieces.
    let large = "0123456789abcdef".repeat(200 << 10);
    host.put("http-echo", large.as_bytes());
    host.wait_for_depth("answers", 2);
    assert!(host.bodies("answers")[1] == large, "the body comes back");
    // No content is no message.
    let id = host.put("http-echo", b"!status 204");
    let record = host.record_of("http-echo", &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
    assert_eq!(host.depth("answers"), 2);
}

#[test]
fn an_answer_goes_to_the_reply_queue_or_to_the_log() {
    let grant = "[queue.http-echo]";
    let granted = "[process.grants]\nput = [\"answers\"]\n[queue.http-echo]";
    let (_home, host) = echo(&[(grant, granted)]);
    host.put_with("http-echo", &[("oncue-reply-to", "answers")], b"hello");
    host.wait_for_depth("answers", 1);
    assert_eq!(host.bodies("answers"), ["hello"]);
    let id = host.put("http-echo", b"to nobody");
    let record = host.record_of("http-echo", &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
    let tail = record["cost"]["log-tail"].as_str().expect("a log");
    assert!(tail.contains("to nobody"), "{tail}");
    assert_eq!(host.depth("answers"), 1);
    // A reply that may not be put fails the message.
    host.define_plain("elsewhere");
    let id = host.put_with("http-echo", &[("oncue-reply-to", "elsewhere")], b"hello");
    let record = host.record_of("http-echo", &id);
    assert_eq!(outcome_of(&record, &id), "retry", "{record}");
    assert_eq!(refusals(&record), [("put elsewhere", 1)]);
}

#[test]
fn a_message_is_a_request() {
    let (_home, host) = echo(&[OUTPUT]);
    let headers = [
        ("content-type", "text/plain"),
        ("oncue-group", "g%20%c3%b6"),
        ("oncue-correlation-id", "c-1"),
        ("oncue-priority", "7"),
        ("oncue-property-region", "eu"),
        ("oncue-property-%52egion", "us"),
    ];
    let id = host.put_with("http-echo", &headers, b"!shows");
    host.wait_for_depth("answers", 1);
    let answer = host.bodies("answers").remove(0);
    for line in [
        "path: /http-echo".to_owned(),
        "content-type: text/plain".to_owned(),
        "content-length: 6".to_owned(),
        format!("oncue-id: {id}"),
        "oncue-queue: http-echo".to_owned(),
        "oncue-correlation-id: c-1".to_owned(),
        "oncue-group: g %c3%b6".to_owned(),
        "oncue-priority: 7".to_owned(),
        "oncue-persistence: persistent".to_owned(),
        "oncue-backout-count: 0".to_owned(),
        "oncue-attempts-left: 1".to_owned(),
        "oncue-hop-count: 0".to_owned(),
        "oncue-property-region: eu".to_owned(),
        "oncue-property-%52egion: us".to_owned(),
    ] {
        assert!(
            answer.lines().any(|it| it == line),
            "no {line} in:\n{answer}"
        );
    }
    assert_eq!(host.browse("answers")[0]["correlation-id"], "c-1");
}

#[test]
fn retry_after_says_when_a_message_comes_again() {
    let more = [("backout-threshold = 1", "backout-threshold = 9")];
    let (_home, host) = echo(&more);
    let id = host.put("http-echo", b"!header 503 retry-after 3600");
    let record = host.record_of("http-echo", &id);
    assert_eq!(outcome_of(&record, &id), "retry", "{record}");
    let message = host.message("http-echo", &id);
    assert_eq!(message["state"], "retrying", "{message}");
    let number = |name: &str| message[name].as_u64().expect("a time");
    assert!(
        number("until") - number("put-time") >= 3_600_000,
        "{message}"
    );
    assert_eq!(json!(1), message["backout-count"]);
}
