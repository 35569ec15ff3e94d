//! Gets by outside consumers, and what becomes of their leases.

use serde_json::json;

use crate::harness::{START, Server};

#[tokio::test]
async fn one_message_is_got_under_a_lease_and_acknowledged() {
    let server = Server::start().await;
    server.queue("q").await;
    server.post("/v1/queues/q/get").await.is(204);
    let id = server
        .put("q", &[("content-type", "text/plain")], "hello")
        .await;
    let got = server.post("/v1/queues/q/get?lease=1m").await.is(200);
    assert_eq!(got.body, "hello");
    assert_eq!(got.header("content-type"), "text/plain");
    assert_eq!(got.header("oncue-id"), id);
    assert_eq!(got.header("oncue-queue"), "q");
    assert_eq!(
        got.header("oncue-lease-until"),
        (START.0 + 60_000).to_string()
    );
    let lease = got.header("oncue-lease").to_owned();
    server.post("/v1/queues/q/get").await.is(204);
    server
        .delete(&format!("/v1/queues/q/messages/{id}"))
        .await
        .problem(409, "message-in-use");
    let extended = server
        .post(&format!("/v1/leases/{lease}/extend?lease=2m"))
        .await
        .is(200);
    assert_eq!(extended.json(), json!({ "until": START.0 + 120_000 }));
    server
        .post(&format!("/v1/leases/{lease}/ack"))
        .await
        .is(204);
    server
        .post(&format!("/v1/leases/{lease}/ack"))
        .await
        .problem(404, "unknown-lease");
    server
        .post("/v1/leases/66/ack")
        .await
        .problem(400, "invalid-parameter");
    assert_eq!(server.ids("q").await, Vec::<String>::new());
}

#[tokio::test]
async fn several_are_got_as_a_list_with_a_token_each() {
    let server = Server::start().await;
    server.queue("q").await;
    let a = server.put("q", &[], "a").await;
    let b = server.put("q", &[], "b").await;
    let got = server.post("/v1/queues/q/get?max=10").await.is(200).json();
    let list = got.as_array().expect("a list");
    let ids: Vec<_> = list.iter().map(|message| message["id"].clone()).collect();
    assert_eq!(ids, [a, b]);
    assert_eq!(list[0]["body"], "a");
    let tokens: Vec<&str> = list
        .iter()
        .map(|message| message["lease"]["token"].as_str().expect("a token"))
        .collect();
    assert_ne!(tokens[0], tokens[1]);
    for token in tokens {
        server
            .post(&format!("/v1/leases/{token}/ack"))
            .await
            .is(204);
    }
    server.put("q", &[], "c").await;
    let got = server.post("/v1/queues/q/get?max=10").await.is(200).json();
    assert_eq!(got.as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn one_is_json_when_json_is_asked_for() {
    let server = Server::start().await;
    server.queue("q").await;
    server.put("q", &[], "a").await;
    let accept = [("accept", "application/json")];
    let got = server
        .call("POST", "/v1/queues/q/get", &accept, "")
        .await
        .is(200)
        .json();
    assert_eq!(got["body"], "a");
    assert!(got["lease"]["token"].is_string(), "{got:#}");
}

#[tokio::test]
async fn bodies_that_are_too_long_for_a_list_are_left_out_and_can_be_read() {
    let server = Server::start().await;
    server.queue("q").await;
    let long = "x".repeat(9 << 20);
    let first = server.put("q", &[], &long).await;
    let second = server.put("q", &[], &long).await;
    let got = server.post("/v1/queues/q/get?max=2").await.is(200).json();
    assert_eq!(got[0]["id"], first.as_str());
    assert_eq!(got[0]["body"].as_str().map(str::len), Some(long.len()));
    assert_eq!(got[1]["body-omitted"], true);
    assert_eq!(got[1].get("body"), None);
    let body = server
        .get(&format!("/v1/queues/q/messages/{second}"))
        .await
        .is(200)
        .body;
    assert_eq!(body.len(), long.len());
}

#[tokio::test]
async fn a_message_is_selected_by_id_or_correlation_id() {
    let server = Server::start().await;
    server.queue("q").await;
    server.put("q", &[], "a").await;
    let b = server
        .put("q", &[("oncue-correlation-id", "c 1")], "b")
        .await;
    let c = server.put("q", &[], "c").await;
    let got = server
        .post("/v1/queues/q/get?correlation-id=c%201")
        .await
        .is(200);
    assert_eq!(got.header("oncue-id"), b);
    let got = server
        .post(&format!("/v1/queues/q/get?id={c}"))
        .await
        .is(200);
    assert_eq!(got.body, "c");
    server
        .post(&format!("/v1/queues/q/get?id={c}"))
        .await
        .is(204);
}

#[tokio::test]
async fn a_get_waits_for_a_put() {
    let server = Server::start().await;
    server.queue("q").await;
    let waits = server.post("/v1/queues/q/get?wait=60s");
    let puts = server.put("q", &[], "late");
    let (got, _id) = tokio::join!(waits, puts);
    assert_eq!(got.is(200).body, "late");
}

#[tokio::test]
async fn a_client_that_goes_away_while_it_waits_loses_nothing() {
    let server = Server::start().await;
    server.queue("q").await;
    {
        let waits = server.post("/v1/queues/q/get?wait=60s");
        tokio::pin!(waits);
        // One turn: it waits now, and is dropped with the client.
        tokio::select! {
            biased;
            answered = &mut waits => panic!("{answered:?}"),
            () = std::future::ready(()) => {}
        }
    }
    let id = server.put("q", &[], "a").await;
    assert_eq!(
        server
            .post("/v1/queues/q/get")
            .await
            .is(200)
            .header("oncue-id"),
        id
    );
}

#[tokio::test]
async fn all_faults_of_a_get_are_named_at_once() {
    let server = Server::start().await;
    server.queue("q").await;
    let get = |query: &str| {
        let path = format!("/v1/queues/q/get?{query}");
        let server = &server;
        async move { server.post(&path).await }
    };
    get("wait=61s").await.problem(400, "wait-too-long");
    let problem = get("wait=61s&max=0&lease=13h&id=66&mxa=1&max=2").await;
    let problem = problem.problem(400, "invalid-parameter");
    let paths: Vec<&str> = problem["faults"]
        .as_array()
        .expect("faults")
        .iter()
        .filter_map(|fault| fault["path"].as_str())
        .collect();
    assert_eq!(paths, ["mxa", "max", "wait", "max", "lease", "id"]);
    get("wait=5").await.problem(400, "invalid-parameter");
    server
        .post("/v1/queues/nowhere/get")
        .await
        .problem(404, "unknown-queue");
    server
        .json("PATCH", "/v1/queues/q", json!({ "get": "disabled" }))
        .await
        .is(200);
    get("").await.problem(403, "get-disabled");
}

#[tokio::test]
async fn a_nack_charges_an_attempt() {
    let server = Server::start().await;
    server.queue("q").await;
    let id = server.put("q", &[], "a").await;
    let lease = server
        .post("/v1/queues/q/get")
        .await
        .is(200)
        .header("oncue-lease")
        .to_owned();
    let path = format!("/v1/leases/{lease}/nack");
    let twice = json!({ "delay": "1h" });
    server
        .json("POST", &format!("{path}?delay=1h"), twice)
        .await
        .problem(400, "invalid-json");
    server
        .json("POST", &path, json!({ "delay": "1h", "reason": "busy" }))
        .await
        .is(204);
    let shown = server
        .get(&format!("/v1/queues/q/messages/{id}"))
        .await
        .is(200);
    assert_eq!(shown.header("oncue-state"), "retrying");
    assert_eq!(
        shown.header("oncue-state-until"),
        (START.0 + 3_600_000).to_string()
    );
    assert_eq!(shown.header("oncue-backout-count"), "1");
}
