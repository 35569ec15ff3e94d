//! Traces as a collector gets them: a receiver that decodes the real OTLP protobuf.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use serde_json::json;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use crate::host::{Home, Host};
use crate::wait::until;
use crate::work::{DEAD_LETTERS, sample};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT: &str = "00f067aa0ba902b7";

/// What no span may hold.
const SECRET: &str = "correct horse battery staple";
/// A request that a collector got: its headers, and what it decoded.
type Taken = (BTreeMap<String, String>, ExportTraceServiceRequest);

/// A collector on loopback.
struct Collector {
    scheme: &'static str,
    port: u16,
    requests: Arc<Mutex<Vec<Taken>>>,
}

impl Collector {
    fn start() -> Self {
        Self::with("http", |stream, sink| {
            let mut reader = BufReader::new(stream);
            while take(&mut reader, sink).is_some() {}
        })
    }

    /// The same over TLS, for the name `localhost`; and the certificate that vouches for it.
    fn start_tls() -> (Self, String) {
        let names = vec!["localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let certificate = made.cert.pem();
        let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.expect("a key"))
            .expect("they belong together");
        let config = Arc::new(config);
        let collector = Self::with("https", move |stream, sink| {
            let session = rustls::ServerConnection::new(Arc::clone(&config));
            let stream = rustls::StreamOwned::new(session.expect("a session"), stream);
            let mut reader = BufReader::new(stream);
            while take(&mut reader, sink).is_some() {}
        });
        (collector, certificate)
    }

    fn with(
        scheme: &'static str,
        serve: impl Fn(TcpStream, &Mutex<Vec<Taken>>) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let requests: Arc<Mutex<Vec<Taken>>> = Arc::default();
        let sink = Arc::clone(&requests);
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (serve, sink) = (Arc::clone(&serve), Arc::clone(&sink));
                std::thread::spawn(move || serve(stream, &sink));
            }
        });
        Self {
            scheme,
            port,
            requests,
        }
    }

    fn address(&self) -> String {
        format!("{}://localhost:{}", self.scheme, self.port)
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self.requests.lock().expect("requests");
        let requests = requests.iter().map(|(_, request)| request);
        let resources = requests.flat_map(|request| &request.resource_spans);
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    /// The spans, once there are so many.
    fn wait(&self, count: usize) -> Vec<Span> {
        until(&format!("{count} spans"), || self.spans().len() >= count);
        let spans = self.spans();
        let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(spans.len(), count, "{names:?}");
        spans
    }
}

/// One request of a connection; `None` at its end.
fn take(stream: &mut BufReader<impl Read + Write>, sink: &Mutex<Vec<Taken>>) -> Option<()> {
    let mut line = String::new();
    stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
    assert_eq!(line.trim_end(), "POST /v1/traces HTTP/1.1");
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).expect("a header");
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let length = headers["content-length"].parse().expect("a length");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("the body");
    let request = ExportTraceServiceRequest::decode(&*body).expect("OTLP");
    sink.lock().expect("requests").push((headers, request));
    let answer =
        "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
    let out = stream.get_mut();
    out.write_all(answer.as_bytes()).expect("the answer");
    out.flush().expect("the answer is on its way");
    Some(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn one<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let mut found = spans.iter().filter(|span| span.name == name);
    let span = found.next().unwrap_or_else(|| panic!("no span {name:?}"));
    assert!(found.next().is_none(), "two spans {name:?}");
    span
}

/// An attribute as text.
fn attribute(span: &Span, name: &str) -> String {
    let found = span.attributes.iter().find(|pair| pair.key == name);
    let value = found.and_then(|pair| pair.value.as_ref()?.value.as_ref());
    match value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(value)) => value.to_string(),
        Some(Value::ArrayValue(list)) => {
            let numbers = list.values.iter().filter_map(|value| match value.value {
                Some(Value::IntValue(number)) => Some(number.to_string()),
                _ => None,
            });
            numbers.collect::<Vec<_>>().join(" ")
        }
        other => panic!("{} has {name} {other:?}", span.name),
    }
}

/// A host whose queue `echo` is served by a handler of message style, which puts to `echo.out`,
/// which is served by one of trigger style, which puts to `drained`.
fn two_handlers(home: &Home, flags: &[&str]) -> Host {
    home.drop_sample(sample("echo"));
    let serve = ("[queue.drain]", "[queue.\"echo.out\"]");
    home.drop_as("drain", sample("drain"), &[serve]);
    let host = home.start_with(flags, &[]);
    host.define_plain("drained");
    host.wait_for_plugin("echo", "ready");
    host.wait_for_plugin("drain", "ready");
    host
}

fn check_child(child: &Span, parent: &Span) {
    assert_eq!(
        child.trace_id, parent.trace_id,
        "{} and {}",
        child.name, parent.name
    );
    assert_eq!(
        hex(&child.parent_span_id),
        hex(&parent.span_id),
        "{} comes from {}",
        child.name,
        parent.name
    );
    assert!(parent.start_time_unix_nano <= child.start_time_unix_nano);
    assert!(child.start_time_unix_nano <= child.end_time_unix_nano);
}

#[test]
fn one_message_through_two_handlers_is_one_trace() {
    let collector = Collector::start();
    let home = Home::new();
    let host = two_handlers(&home, &["--otlp-endpoint", &collector.address()]);
    let headers = [("traceparent", PARENT), ("tracestate", "vendor=1")];
    let id = host.put_with("echo", &headers, b"hello");
    let spans = collector.wait(7);
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE));
    assert!(spans.iter().all(|span| span.trace_state == "vendor=1"));
    let chain = [
        ("send echo", SpanKind::Producer),
        ("trigger echo", SpanKind::Internal),
        ("process echo", SpanKind::Consumer),
        ("send echo.out", SpanKind::Producer),
        ("trigger echo.out", SpanKind::Internal),
        ("process echo.out", SpanKind::Consumer),
        ("send drained", SpanKind::Producer),
    ];
    for (name, kind) in chain {
        assert_eq!(one(&spans, name).kind(), kind, "{name}");
    }
    for pair in chain.windows(2) {
        check_child(one(&spans, pair[1].0), one(&spans, pair[0].0));
    }
    let first = one(&spans, chain[0].0);
    assert_eq!(hex(&first.parent_span_id), CLIENT);
    assert_eq!(attribute(first, "messaging.message.id"), id);
    assert_eq!(attribute(first, "messaging.system"), "oncue");
    let work = one(&spans, "process echo");
    assert_eq!(attribute(work, "messaging.destination.name"), "echo");
    assert_eq!(attribute(work, "messaging.operation.type"), "process");
    assert_eq!(attribute(work, "messaging.message.id"), id);
    assert_eq!(attribute(work, "faas.name"), "echo");
    assert_eq!(attribute(work, "faas.coldstart"), "true");
    assert_eq!(attribute(work, "oncue.outcome"), "committed");
    assert_eq!(attribute(work, "oncue.puts"), "1");
    let record = host.record_of("echo", &id);
    let task = record["id"].as_u64().map(|id| id.to_string());
    let task = task.or(record["id"].as_str().map(ToOwned::to_owned));
    assert_eq!(Some(attribute(work, "faas.invocation_id")), task);
    assert_eq!(
        attribute(work, "faas.version"),
        record["digest"].as_str().unwrap()
    );
    assert_eq!(
        attribute(work, "oncue.fuel"),
        record["cost"]["fuel"].to_string()
    );
    let trigger = one(&spans, "trigger echo");
    let steps = attribute(trigger, "oncue.trigger.steps");
    assert_eq!(steps, "10 12 14 50 54 58 60 62 64 66 68");
    // What the last handler put carries the last span, and an answer says so in its header.
    let last = one(&spans, "send drained");
    let got = host.post("/v1/queues/drained/get", b"").expect(200);
    let wanted = format!("00-{TRACE}-{}-01", hex(&last.span_id));
    assert_eq!(got.header("traceparent"), Some(wanted.as_str()));
    assert_eq!(got.header("tracestate"), Some("vendor=1"));
    assert_eq!(got.header("oncue-property-traceparent"), None);
}

#[test]
fn a_trace_begins_at_a_put_that_has_none() {
    let collector = Collector::start();
    let home = Home::new();
    let host = two_handlers(&home, &["--otlp-endpoint", &collector.address()]);
    host.put("echo", b"hello");
    let spans = collector.wait(7);
    let first = one(&spans, "send echo");
    assert!(first.parent_span_id.is_empty());
    assert!(spans.iter().all(|span| span.trace_id == first.trace_id));
    // What its putter did not record is not recorded here, and passed on as it is.
    let plain = PARENT.replace("-01", "-00");
    host.put_with("echo", &[("traceparent", &plain)], b"unseen");
    host.wait_for_depth("drained", 2);
    let found = host.browse("drained");
    let parents = found
        .iter()
        .map(|message| message["properties"]["traceparent"].clone());
    assert!(
        parents.into_iter().any(|parent| parent == plain.as_str()),
        "{found:?}"
    );
    // Nor is one that cannot be understood a reason to refuse a put.
    host.put_with(
        "drained",
        &[("traceparent", "no"), ("tracestate", "a=1")],
        b"x",
    );
    let found = host.browse("drained");
    let newest = found.last().expect("three");
    assert_eq!(
        hexless(&newest["properties"]["traceparent"]),
        55,
        "{newest}"
    );
    assert_eq!(newest["properties"].get("tracestate"), None);
}

/// How long a text is.
fn hexless(text: &serde_json::Value) -> usize {
    text.as_str().map_or(0, str::len)
}

#[test]
fn messages_of_one_unit_are_linked() {
    let collector = Collector::start();
    let home = Home::new();
    home.drop_sample(sample("drain"));
    let host = home.start_with(&["--otlp-endpoint", &collector.address()], &[]);
    host.define_plain("drained");
    host.wait_for_plugin("drain", "ready");
    let put = |body: &str| json!({"queue": "drain", "body": body});
    let unit = json!({"puts": [put("1"), put("2"), put("3")]});
    host.send_json("POST", "/v1/units", &unit).expect(201);
    // Three puts in, one trigger, one unit of work, three puts out.
    let spans = collector.wait(8);
    let work = one(&spans, "process drain");
    assert_eq!(attribute(work, "messaging.batch.message_count"), "3");
    let trigger = one(&spans, "trigger drain");
    check_child(work, trigger);
    let puts: Vec<&Span> = spans
        .iter()
        .filter(|span| span.name == "send drain")
        .collect();
    let places = |span: &Span| (hex(&span.trace_id), hex(&span.span_id));
    let (first, others): (Vec<&Span>, Vec<&Span>) = puts
        .into_iter()
        .partition(|span| span.trace_id == work.trace_id);
    check_child(trigger, first[0]);
    let links = work.links.iter();
    let mut linked: Vec<_> = links
        .map(|link| (hex(&link.trace_id), hex(&link.span_id)))
        .collect();
    let mut wanted: Vec<_> = others.into_iter().map(places).collect();
    linked.sort();
    wanted.sort();
    assert_eq!(linked, wanted);
}

/// Where the consumer of the tests asks from, in a trace of its own.
const CONSUMER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A get from `q` with that place in a trace, of a lease of `lease`; the token.
fn get_from(host: &Host, lease: &str, from: &str) -> String {
    let path = format!("/v1/queues/q/get?lease={lease}&wait=20s");
    let headers = [("traceparent", from)];
    let got = host
        .request("POST", &path, &headers, b"")
        .expect("an answer");
    let got = got.expect(200);
    // What the message carries is its own, not the consumer's.
    assert!(
        got.header("traceparent")
            .expect("a context")
            .contains(TRACE)
    );
    got.header("oncue-lease").expect("a token").to_owned()
}

fn linked(span: &Span) -> Vec<String> {
    let links = span.links.iter();
    links
        .map(|link| format!("00-{}-{}-01", hex(&link.trace_id), hex(&link.span_id)))
        .collect()
}

#[test]
fn a_message_that_leaves_by_a_consumer_ends_its_trace_with_the_consumers_steps() {
    let collector = Collector::start();
    let home = Home::new();
    let host = home.start_with(&["--otlp-endpoint", &collector.address()], &[]);
    host.define_plain("q");
    let id = host.put_with(
        "q",
        &[("traceparent", PARENT), ("tracestate", "v=1")],
        b"hello",
    );
    let token = get_from(&host, "1m", CONSUMER);
    let extend = format!("/v1/leases/{token}/extend?lease=2m");
    host.post(&extend, b"").expect(200);
    let ack = format!("/v1/leases/{token}/ack");
    let headers = [("traceparent", CONSUMER)];
    let acked = host
        .request("POST", &ack, &headers, b"")
        .expect("an answer");
    acked.expect(204);
    let spans = collector.wait(3);
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE));
    assert!(spans.iter().all(|span| span.trace_state == "v=1"));
    let put = one(&spans, "send q");
    for (name, kind) in [("receive", "receive"), ("ack", "settle")] {
        let span = one(&spans, &format!("{name} q"));
        check_child(span, put);
        assert_eq!(span.kind(), SpanKind::Client);
        assert_eq!(linked(span), [CONSUMER]);
        assert_eq!(attribute(span, "messaging.operation.name"), name);
        assert_eq!(attribute(span, "messaging.operation.type"), kind);
        assert_eq!(attribute(span, "messaging.message.id"), id);
        assert_eq!(span.status.clone().unwrap_or_default().code, 0);
    }
    // A trace that its putter does not record is not recorded here, whatever the consumer does.
    host.put_with("q", &[("traceparent", &PARENT.replace("-01", "-00"))], b"x");
    let token = get_from(&host, "1m", CONSUMER);
    host.post(&format!("/v1/leases/{token}/ack"), b"")
        .expect(204);
    assert_eq!(host.stop(), 0);
    collector.wait(3);
}

#[test]
fn a_message_that_its_consumer_fails_on_or_nobody_gets_says_so_in_its_trace() {
    let collector = Collector::start();
    let home = Home::new();
    let host = home.start_with(&["--otlp-endpoint", &collector.address()], &[]);
    let soon = json!({"initial": "10ms", "max": "10ms"});
    host.define(
        "q",
        json!({"trigger": "none", "backout-threshold": 3, "retry": soon}),
    );
    host.put_with("q", &[("traceparent", PARENT)], b"poison");
    // A context that is none is no link, and no error.
    let token = get_from(&host, "1m", "nonsense");
    host.post(&format!("/v1/leases/{token}/nack"), b"")
        .expect(204);
    get_from(&host, "100ms", CONSUMER);
    let token = get_from(&host, "1m", CONSUMER);
    host.post(&format!("/v1/leases/{token}/nack"), b"")
        .expect(204);
    host.wait_for_depth(DEAD_LETTERS, 1);
    let spans = collector.wait(7);
    let failed = |name: &str| -> Vec<&Span> {
        let named = spans.iter().filter(|span| span.name == name);
        named
            .inspect(|span| {
                assert_eq!(hex(&span.trace_id), TRACE);
                assert_eq!(span.status.as_ref().map(|status| status.code), Some(2));
            })
            .collect()
    };
    let ended = failed("lease-end q");
    assert_eq!(attribute(ended[0], "error.type"), "lease-end");
    assert_eq!(attribute(ended[0], "oncue.backout_count"), "1");
    let last = failed("nack q")[1];
    assert_eq!(attribute(last, "oncue.moved_to"), DEAD_LETTERS);
    let links: Vec<_> = spans.iter().map(linked).collect();
    assert_eq!(
        links.concat(),
        [CONSUMER; 2],
        "of the two gets that had one"
    );
    let headers = [("traceparent", PARENT), ("oncue-expiry", "100ms")];
    host.put_with("q", &headers, b"short");
    let spans = collector.wait(9);
    check_child(
        one(&spans, "expire q"),
        spans.iter().rfind(|span| span.name == "send q").unwrap(),
    );
}

#[test]
fn an_attempt_that_failed_says_so_and_put_nothing() {
    let collector = Collector::start();
    let home = Home::new();
    home.drop_sample(sample("traps"));
    let host = home.start_with(&["--otlp-endpoint", &collector.address()], &[]);
    host.wait_for_plugin("traps", "ready");
    host.put_with("traps", &[("traceparent", PARENT)], b"x");
    host.wait_for_depth(DEAD_LETTERS, 1);
    let spans = collector.wait(3);
    let work = one(&spans, "process traps");
    assert_eq!(attribute(work, "error.type"), "trapped");
    let status = work.status.as_ref().expect("a status");
    assert_eq!(status.code, 2, "{status:?}");
    assert!(!status.message.is_empty());
    // A put that is refused is told, too.
    let path = "/v1/queues/traps/messages";
    host.send_json(
        "PATCH",
        "/v1/queues/traps",
        &json!({"max-depth": 1, "trigger": "none"}),
    )
    .expect(200);
    host.put("traps", b"fills it");
    let headers = [("traceparent", PARENT)];
    let refused = host
        .request("POST", path, &headers, b"x")
        .expect("it answers");
    assert_eq!(refused.status, 429);
    let spans = collector.wait(5);
    let failed = spans.iter().filter(|span| span.name == "send traps");
    let codes: Vec<i32> = failed
        .filter_map(|span| Some(span.status.as_ref()?.code))
        .collect();
    assert!(codes.contains(&2), "{codes:?}");
}

#[test]
fn no_secret_is_in_a_span_that_leaves_the_host() {
    let collector = Collector::start();
    let home = Home::new();
    let grant = (
        "deadline = \"5s\"",
        "deadline = \"5s\"\ngrants = { secrets = [\"key\"] }",
    );
    home.drop_as("ends-badly", sample("ends-badly"), &[grant]);
    let flags = ["--otlp-endpoint", &collector.address()];
    let host = home.start_with(&flags, &[("ONCUE_SECRET_KEY", SECRET)]);
    host.wait_for_plugin("ends-badly", "ready");
    // Its last words are the secret, in each way in which words get into a span.
    for (way, count) in [("fails", 3), ("abort", 6)] {
        host.put("ends-badly", format!("{way} {SECRET}\n").as_bytes());
        let spans = collector.wait(count);
        let told = spans.iter().filter(|span| span.name.starts_with("process"));
        let told: Vec<_> = told.filter_map(|span| span.status.clone()).collect();
        let last = told.last().expect("a status");
        assert_eq!(last.code, 2, "{way}: {last:?}");
        assert!(!last.message.is_empty(), "{way}");
        assert!(last.message.contains("[secret key]"), "{way}: {last:?}");
    }
    let sent = format!("{:?}", collector.requests.lock().expect("requests"));
    assert!(!sent.contains(SECRET), "{sent}");
    for path in ["/v1/dead-letters", "/v1/tasks", "/metrics", "/v1/audit"] {
        let answer = host.get(path).expect(200);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!text.contains(SECRET), "{path}: {text}");
    }
    for place in [host.log(), host.out()] {
        assert!(!place.contains(SECRET), "{place}");
    }
}

#[test]
fn without_a_collector_a_context_is_passed_on_and_none_begins() {
    let home = Home::new();
    let host = two_handlers(&home, &[]);
    host.put("echo", b"carries none");
    // Else both may be one unit of work, which passes the context of its first message on.
    host.wait_for_depth("drained", 1);
    host.put_with(
        "echo",
        &[("traceparent", PARENT), ("tracestate", "a=1")],
        b"carries one",
    );
    host.wait_for_depth("drained", 2);
    let found = host.browse("drained");
    let carried: Vec<_> = found
        .iter()
        .map(|message| {
            message["properties"]
                .as_object()
                .expect("properties")
                .clone()
        })
        .collect();
    let with = carried
        .iter()
        .find(|properties| !properties.is_empty())
        .expect("one");
    assert_eq!(with["traceparent"], PARENT);
    assert_eq!(with["tracestate"], "a=1");
    assert!(carried.iter().any(serde_json::Map::is_empty), "{carried:?}");
}

#[test]
fn a_collector_that_is_not_there_costs_its_spans_and_one_line() {
    let home = Home::new();
    // A port that was just free.
    let port = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .unwrap()
        .port();
    let address = format!("http://127.0.0.1:{port}");
    let host = two_handlers(&home, &["--otlp-endpoint", &address]);
    host.put("echo", b"1");
    host.wait_for_depth("drained", 1);
    until("spans to be lost", || lost(&host) >= 7);
    host.put("echo", b"2");
    until("more spans to be lost", || lost(&host) >= 14);
    let lines = host.log().matches("spans cannot be sent").count();
    assert_eq!(lines, 1, "{}", host.log());
    assert_eq!(host.stop(), 0);
}

/// Spans of this host that its collector did not take.
fn lost(host: &Host) -> u64 {
    let page = String::from_utf8(host.get("/metrics").expect(200).body).expect("text");
    let series = "oncue_spans_total{result=\"lost\"} ";
    let line = page.lines().find_map(|line| line.strip_prefix(series));
    line.expect("the series").parse().expect("a count")
}

#[test]
fn spans_go_over_tls_to_a_collector_that_a_file_vouches_for_and_to_no_other() {
    let (collector, certificate) = Collector::start_tls();
    let home = Home::new();
    let file = home.path().join("collector.pem");
    std::fs::write(&file, certificate).expect("written");
    let file = file.to_str().expect("a path");
    let address = collector.address();
    let key = [("OTEL_EXPORTER_OTLP_HEADERS", "x-key=topsecret,a=b%20c")];
    let host = home.start_with(&["--otlp-endpoint", &address, "--otlp-ca-file", file], &key);
    host.define_plain("q");
    host.put_with("q", &[("traceparent", PARENT)], b"x");
    let spans = collector.wait(1);
    assert_eq!(hex(&one(&spans, "send q").trace_id), TRACE);
    let headers = collector.requests.lock().expect("requests")[0].0.clone();
    assert_eq!(
        (headers["x-key"].as_str(), headers["a"].as_str()),
        ("topsecret", "b c")
    );
    assert!(!host.log().contains("topsecret"), "{}", host.log());
    assert_eq!(host.stop(), 0);
    // The variable that others have for the file does the same.
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", address.as_str()),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", file),
    ];
    let host = home.start_with(&[], &variables);
    host.put_with("q", &[("traceparent", PARENT)], b"y");
    collector.wait(2);
    assert_eq!(host.stop(), 0);
    // The system's certificates do not vouch for it.
    let host = home.start_with(&["--otlp-endpoint", &address], &[]);
    host.put_with("q", &[("traceparent", PARENT)], b"z");
    until("the span to be lost", || lost(&host) == 1);
    assert!(
        host.log().contains("spans cannot be sent"),
        "{}",
        host.log()
    );
    assert_eq!(collector.spans().len(), 2);
}

#[test]
fn what_cannot_be_sent_with_is_refused_at_the_start() {
    let home = Home::new();
    let https = ["--otlp-endpoint", "https://localhost:1"];
    let said = |flags: &[&str], variables: &[(&str, &str)]| {
        let said = home.try_start(flags, variables).map(drop);
        said.expect_err("it is refused")
    };
    let no_file = said(&[https[0], https[1], "--otlp-ca-file", "/nowhere.pem"], &[]);
    assert!(
        no_file.contains("\"/nowhere.pem\" cannot be read"),
        "{no_file}"
    );
    let wrong = [("OTEL_EXPORTER_OTLP_HEADERS", "topsecret")];
    let no_header = said(&https, &wrong);
    assert!(no_header.contains("part 1 is no header"), "{no_header}");
    assert!(!no_header.contains("topsecret"), "{no_header}");
}
