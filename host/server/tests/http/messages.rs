//! Put, browse, show, remove, release, units and CloudEvents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::harness::{START, Server};

#[tokio::test]
async fn a_message_is_put_and_shown_with_its_fields() {
    let server = Server::start().await;
    server.queue("q").await;
    let headers = [
        ("content-type", "text/plain"),
        ("oncue-correlation-id", "c%201"),
        ("oncue-reply-to", "replies"),
        ("oncue-group", "g"),
        ("oncue-group-sequence", "7"),
        ("oncue-priority", "5"),
        ("oncue-persistence", "non-persistent"),
        ("oncue-expiry", "10m"),
        ("oncue-property-region", "eu"),
        ("oncue-request-id", "mine"),
    ];
    let path = "/v1/queues/q/messages";
    let put = server.call("POST", path, &headers, "hello").await.is(201);
    let id = put.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(put.json(), json!({ "id": id }));
    assert_eq!(put.header("location"), format!("{path}/{id}"));
    assert_eq!(put.header("oncue-id"), id);
    assert_eq!(put.header("oncue-request-id"), "mine");

    let shown = server.get(&format!("{path}/{id}")).await.is(200);
    assert_eq!(shown.body, "hello");
    for (name, value) in headers
        .into_iter()
        .filter(|(name, _)| *name != "oncue-request-id")
    {
        let value = if name == "oncue-correlation-id" {
            "c 1"
        } else {
            value
        };
        assert_eq!(shown.header(name), value, "{name}");
    }
    assert_eq!(shown.header("oncue-id"), id);
    assert_eq!(shown.header("oncue-state"), "ready");
    assert_eq!(shown.header("oncue-backout-count"), "0");
    assert_eq!(shown.header("oncue-put-time"), START.0.to_string());
    assert!(!shown.headers.contains_key("oncue-lease"));

    let accept = [("accept", "application/json")];
    let json = server
        .call("GET", &format!("{path}/{id}"), &accept, "")
        .await
        .is(200)
        .json();
    assert_eq!(json["body"], "hello");
    assert_eq!(json["properties"], json!({ "region": "eu" }));
    assert_eq!(json["expires"], START.0 + 600_000);
    let page = server.get(path).await.is(200).json();
    assert_eq!(page["messages"][0]["id"], id.as_str());
    assert_eq!(page["messages"][0].get("body"), None);
}

#[tokio::test]
async fn any_bytes_come_back_as_they_were() {
    let server = Server::start().await;
    server.queue("q").await;
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let put = server
        .call("POST", "/v1/queues/q/messages", &[], bytes.clone())
        .await
        .is(201);
    let id = put.json()["id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/queues/q/messages/{id}");
    let shown = server.get(&path).await.is(200);
    assert_eq!(shown.body, bytes);
    assert!(!shown.headers.contains_key("content-type"));
    let json = server
        .call("GET", &path, &[("accept", "application/json")], "")
        .await
        .json();
    assert_eq!(json["body-base64"], STANDARD.encode(&bytes));
}

#[tokio::test]
async fn all_faults_of_the_headers_are_named_at_once() {
    let server = Server::start().await;
    server.queue("q").await;
    let headers = [
        ("oncue-priority", "12"),
        ("oncue-prority", "1"),
        ("oncue-delay", "5"),
    ];
    let put = server
        .call("POST", "/v1/queues/q/messages", &headers, "")
        .await;
    let problem = put.problem(400, "invalid-message");
    let faults = problem["faults"].as_array().expect("faults");
    assert_eq!(faults.len(), 3, "{problem:#}");
    assert!(
        problem
            .to_string()
            .contains("did you mean \\\"oncue-priority\\\"?"),
        "{problem:#}"
    );
    assert_eq!(server.ids("q").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_repeat_answers_with_the_first_id() {
    let server = Server::start().await;
    server.queue("q").await;
    let key = [("idempotency-key", "k")];
    let first = server.put("q", &key, "a").await;
    let again = server
        .call("POST", "/v1/queues/q/messages", &key, "a")
        .await
        .is(200);
    assert_eq!(again.json(), json!({ "id": first, "repeated": true }));
    let other = server
        .call("POST", "/v1/queues/q/messages", &key, "b")
        .await;
    other.problem(409, "duplicate-key");
    assert_eq!(server.ids("q").await, [first]);
}

#[tokio::test]
async fn refusals_have_their_status() {
    let server = Server::start().await;
    let put = |queue: &str, body: String| {
        let path = format!("/v1/queues/{queue}/messages");
        let server = &server;
        async move { server.call("POST", &path, &[], body).await }
    };
    put("nowhere", String::new())
        .await
        .problem(404, "unknown-queue");
    put("a%20b", String::new())
        .await
        .problem(400, "invalid-name");
    let limits = json!({ "trigger": "none", "max-depth": 1, "max-message-length": 3 });
    server.json("PUT", "/v1/queues/small", limits).await.is(201);
    put("small", "long".to_owned())
        .await
        .problem(413, "too-large");
    put("small", "a".to_owned()).await.is(201);
    let full = put("small", "b".to_owned()).await.is(429);
    assert_eq!(full.header("retry-after"), "1");
    full.problem(429, "queue-full");
    let closed = json!({ "put": "disabled" });
    server
        .json("PATCH", "/v1/queues/small", closed)
        .await
        .is(200);
    put("small", "c".to_owned())
        .await
        .problem(403, "put-disabled");
    let id = "0".repeat(24);
    server
        .get(&format!("/v1/queues/small/messages/{id}"))
        .await
        .problem(404, "unknown-message");
    server
        .get("/v1/queues/small/messages/66")
        .await
        .problem(400, "invalid-parameter");
    server
        .get("/v1/queues/small/messages?mxa=3")
        .await
        .problem(400, "invalid-parameter");
}

#[tokio::test]
async fn a_body_past_the_limit_is_refused_before_it_is_read() {
    let options = oncue_server::ServerOptions {
        body_limit: 1000,
        ..Default::default()
    };
    let server = Server::with(options).await;
    server.queue("q").await;
    let path = "/v1/queues/q/messages";
    let named = [("content-length", "1001")];
    let problem = server
        .call("POST", path, &named, "")
        .await
        .problem(413, "body-too-large");
    assert!(
        problem["detail"].to_string().contains("1001 bytes of 1000"),
        "{problem:#}"
    );
    let chunked = [("transfer-encoding", "chunked")];
    server
        .call("POST", path, &chunked, vec![0; 1001])
        .await
        .problem(413, "body-too-large");
    server
        .call("POST", path, &chunked, vec![0; 1000])
        .await
        .is(201);
}

#[tokio::test]
async fn pages_follow_each_other() {
    let server = Server::start().await;
    server.queue("q").await;
    let mut put = Vec::new();
    for body in ["a", "b", "c", "d", "e"] {
        put.push(server.put("q", &[], body).await);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for _ in 0..3 {
        let path = format!("/v1/queues/q/messages?max=2{cursor}");
        let page = server.get(&path).await.is(200).json();
        for message in page["messages"].as_array().expect("messages") {
            seen.push(message["id"].as_str().expect("an id").to_owned());
        }
        let next = page["next"].as_str().map(|next| format!("&cursor={next}"));
        cursor = next.unwrap_or_default();
    }
    assert_eq!(seen, put);
    assert_eq!(cursor, "");
    let wrong = server.get("/v1/queues/q/messages?cursor=x").await;
    assert_eq!(wrong.status, 400, "{wrong:?}");
}

#[tokio::test]
async fn a_message_is_removed_or_released() {
    let server = Server::start().await;
    server.queue("q").await;
    let id = server.put("q", &[], "a").await;
    let delayed = server.put("q", &[("oncue-delay", "1h")], "b").await;
    let path = format!("/v1/queues/q/messages/{delayed}");
    let shown = server.get(&path).await.is(200);
    assert_eq!(shown.header("oncue-state"), "delayed");
    assert_eq!(
        shown.header("oncue-state-until"),
        (START.0 + 3_600_000).to_string()
    );
    server.post(&format!("{path}/release")).await.is(204);
    assert_eq!(
        server.get(&path).await.is(200).header("oncue-state"),
        "ready"
    );
    server
        .delete(&format!("/v1/queues/q/messages/{id}"))
        .await
        .is(204);
    server
        .delete(&format!("/v1/queues/q/messages/{id}"))
        .await
        .problem(404, "unknown-message");
    assert_eq!(server.ids("q").await, [delayed]);
}

#[tokio::test]
async fn a_unit_is_all_or_nothing() {
    let server = Server::start().await;
    server.queue("a").await;
    server.queue("b").await;
    let unit = json!({ "puts": [
        { "queue": "a", "body": "text", "priority": 3, "properties": { "p": ["1", "2"] } },
        { "queue": "b", "body-base64": "AAE=", "idempotency-key": "k" }
    ] });
    let answered = server
        .json("POST", "/v1/units", unit.clone())
        .await
        .is(201)
        .json();
    let b = answered["puts"][1]["id"].clone();
    assert_eq!(server.ids("a").await, [answered["puts"][0]["id"].clone()]);
    let path = format!("/v1/queues/b/messages/{}", b.as_str().expect("an id"));
    assert_eq!(server.get(&path).await.body, vec![0, 1]);
    let again = server.json("POST", "/v1/units", unit).await.is(201).json();
    assert_eq!(again["puts"][1], json!({ "id": b, "repeated": true }));

    let before = (server.ids("a").await, server.ids("b").await);
    let one_unknown = json!({ "puts": [{ "queue": "a" }, { "queue": "nowhere" }] });
    server
        .json("POST", "/v1/units", one_unknown)
        .await
        .problem(404, "unknown-queue");
    assert_eq!((server.ids("a").await, server.ids("b").await), before);
    let faulty = json!({ "puts": [{ "queue": "a", "prio": 1 }, { "body": "x" }] });
    let problem = server
        .json("POST", "/v1/units", faulty)
        .await
        .problem(400, "invalid-message");
    assert_eq!(problem["faults"][0]["path"], "puts.0.prio");
    assert_eq!(problem["faults"][1]["path"], "puts.1.queue");
    server
        .call(
            "POST",
            "/v1/units",
            &[("content-type", "application/json")],
            "{",
        )
        .await
        .problem(400, "invalid-json");
    server
        .call("POST", "/v1/units", &[("content-type", "text/plain")], "{}")
        .await
        .problem(415, "unsupported-media-type");
}

#[tokio::test]
async fn an_event_is_put_in_both_modes_and_comes_back_in_binary() {
    let server = Server::start().await;
    server.queue("q").await;
    let binary = [
        ("ce-specversion", "1.0"),
        ("ce-id", "1"),
        ("ce-source", "/shop"),
        ("ce-type", "order"),
        ("ce-traceparent", "00-x"),
        ("content-type", "application/json"),
    ];
    let path = "/v1/queues/q/messages";
    let id = server.put("q", &binary, r#"{"n": 1}"#).await;
    let shown = server.get(&format!("{path}/{id}")).await.is(200);
    assert_eq!(shown.body, r#"{"n": 1}"#);
    for (name, value) in binary {
        assert_eq!(shown.header(name), value, "{name}");
    }
    let repeat = server
        .call("POST", path, &binary, r#"{"n": 1}"#)
        .await
        .is(200);
    assert_eq!(repeat.json()["id"], id.as_str());

    let structured = [(
        "content-type",
        "application/cloudevents+json; charset=utf-8",
    )];
    let event = json!({
        "specversion": "1.0", "id": "2", "source": "/shop", "type": "order", "subject": "Größe",
        "datacontenttype": "application/json", "data": { "n": 2 }
    });
    let id = server.put("q", &structured, &event.to_string()).await;
    let shown = server.get(&format!("{path}/{id}")).await.is(200);
    assert_eq!(shown.body, r#"{"n":2}"#);
    assert_eq!(shown.header("content-type"), "application/json");
    assert_eq!(shown.header("ce-subject"), "Gr%c3%b6%c3%9fe");

    let wrong = json!({ "specversion": "1.0", "id": "2" });
    let problem = server
        .call("POST", path, &structured, wrong.to_string())
        .await;
    assert_eq!(
        problem.problem(400, "invalid-event")["faults"][1]["path"],
        "type"
    );
    let batch = [("content-type", "application/cloudevents-batch+json")];
    server
        .call("POST", path, &batch, "[]")
        .await
        .problem(415, "unsupported-media-type");
    server
        .call("POST", path, &[("ce-id", "1")], "")
        .await
        .problem(400, "invalid-event");
}
