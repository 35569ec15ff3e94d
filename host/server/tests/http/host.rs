//! The host, triggering, plugins, and what stands before every route.

use oncue_server::{Doctor, Finding, ServerOptions, Standing};
use serde_json::json;

use crate::harness::Server;

#[tokio::test]
async fn the_host_shows_its_numbers_and_pauses() {
    let server = Server::start().await;
    server.queue("q").await;
    server.put("q", &[], "a").await;
    let status = server.get("/v1/status").await.is(200).json();
    assert_eq!(status["phase"], "running");
    assert_eq!(status["store"], "ok");
    assert_eq!(
        server.post("/v1/pause").await.is(200).json()["paused"],
        true
    );
    assert_eq!(
        server.post("/v1/resume").await.is(200).json()["paused"],
        false
    );
    let ledger = server.get("/v1/ledger").await.is(200).json();
    assert!(ledger["capacity"]["slots"].as_u64() > Some(0), "{ledger:#}");
}

#[tokio::test]
async fn health_is_answered() {
    let server = Server::start().await;
    assert_eq!(
        server.get("/livez").await.is(200).json(),
        json!({ "status": "ok" })
    );
    assert_eq!(
        server.get("/readyz").await.is(200).json(),
        json!({ "status": "ok" })
    );
    let verbose = server.get("/readyz?verbose").await.is(200).json();
    assert_eq!(
        verbose["checks"][1],
        json!({ "name": "store", "value": "ok" })
    );
    server
        .get("/readyz?verbos")
        .await
        .problem(400, "invalid-parameter");
}

#[tokio::test]
async fn a_queue_explains_itself() {
    let server = Server::start().await;
    server.queue("q").await;
    let explained = server.get("/v1/queues/q/explain").await.is(200).json();
    assert_eq!(explained["verdict"], "hold");
    assert_eq!(explained["reason"], "trigger-type-none");
    let paused = server.post("/v1/queues/q/pause").await.is(200).json();
    assert_eq!(paused["paused"], true);
    let resumed = server.post("/v1/queues/q/resume").await.is(200).json();
    assert_eq!(resumed["paused"], false);
    let off = server
        .json("POST", "/v1/queues/q/trigger", json!({ "on": false }))
        .await
        .is(200);
    assert_eq!(off.json()["control"], "off by operator");
    let on = server.post("/v1/queues/q/trigger?on=true").await.is(200);
    assert_eq!(on.json()["control"], "on");
    server
        .post("/v1/queues/q/trigger")
        .await
        .problem(400, "invalid-json");
    let wrong = json!({ "on": "yes" });
    server
        .json("POST", "/v1/queues/q/trigger", wrong)
        .await
        .problem(400, "invalid-json");
    server
        .get("/v1/queues/nowhere/explain")
        .await
        .problem(404, "unknown-queue");
    server
        .post("/v1/queues/nowhere/pause")
        .await
        .problem(404, "unknown-queue");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let server = Server::start().await;
    server.get("/v1/queue").await.problem(404, "not-found");
    server.get("/nowhere").await.problem(404, "not-found");
    let answered = server.delete("/v1/queues").await.is(405);
    assert!(answered.header("allow").contains("GET"), "{answered:?}");
    answered.problem(405, "method-not-allowed");
    server
        .post("/v1/queues/q")
        .await
        .problem(405, "method-not-allowed");
}

#[tokio::test]
async fn pages_of_other_origins_are_refused() {
    let server = Server::start().await;
    let pause = |headers: [(&'static str, &'static str); 1]| {
        let server = &server;
        async move { server.call("POST", "/v1/pause", &headers, "").await }
    };
    pause([("origin", "https://evil.example.com")])
        .await
        .problem(403, "foreign-origin");
    pause([("origin", "null")])
        .await
        .problem(403, "foreign-origin");
    pause([("host", "evil.example.com:7373")])
        .await
        .problem(403, "foreign-origin");
    assert_eq!(server.get("/v1/status").await.json()["paused"], false);
    pause([("origin", "http://localhost:7373")]).await.is(200);
    pause([("host", "127.0.0.1:7373")]).await.is(200);
}

#[tokio::test]
async fn every_answer_has_a_request_id() {
    let server = Server::start().await;
    let first = server
        .get("/livez")
        .await
        .header("oncue-request-id")
        .to_owned();
    let second = server
        .get("/v1/nothing")
        .await
        .header("oncue-request-id")
        .to_owned();
    assert_ne!(first, second);
    let mine = [("oncue-request-id", "mine-1")];
    let answered = server.call("GET", "/livez", &mine, "").await;
    assert_eq!(answered.header("oncue-request-id"), "mine-1");
    let odd = [("oncue-request-id", "a b")];
    let answered = server.call("GET", "/livez", &odd, "").await;
    assert_ne!(answered.header("oncue-request-id"), "a b");
}

#[tokio::test]
async fn plugins_are_listed() {
    let server = Server::start().await;
    let none = server.get("/v1/plugins").await.is(200).json();
    assert_eq!(none, json!({ "plugins": [] }));
    server
        .get("/v1/plugins/p")
        .await
        .problem(404, "unknown-plugin");
    server
        .post("/v1/plugins/p/rollback")
        .await
        .problem(404, "unknown-plugin");
}

#[tokio::test]
async fn a_host_looks_at_its_own_machine_when_it_is_asked() {
    let find = |state, cure: Option<&str>| Finding {
        name: "sync".to_owned(),
        state,
        fact: "21ms".to_owned(),
        cure: cure.map(str::to_owned),
    };
    let doctor = Doctor::new(move || {
        vec![
            find(Standing::Ok, None),
            find(Standing::Warn, Some("a quicker disk")),
        ]
    });
    let options = ServerOptions {
        doctor: Some(doctor),
        ..ServerOptions::default()
    };
    let server = Server::with(options).await;
    let told = server.get("/v1/doctor").await.is(200).json();
    let wanted = json!({ "worst": "warn", "checks": [
        { "name": "sync", "state": "ok", "fact": "21ms" },
        { "name": "sync", "state": "warn", "fact": "21ms", "cure": "a quicker disk" },
    ] });
    assert_eq!(told, wanted);
    let none = Server::start().await.get("/v1/doctor").await;
    none.problem(404, "not-found");
}

#[tokio::test]
async fn answers_are_neither_guessed_at_nor_kept_by_browsers() {
    let server = Server::start().await;
    server.queue("q").await;
    let id = server.put("q", &[], "<script>").await;
    let message = format!("/v1/queues/q/messages/{id}");
    for path in [
        "/livez",
        "/v1/status",
        "/v1/queues/q",
        "/v1/queues/unknown",
        "/v1/nowhere",
        "/openapi.json",
        "/metrics",
        &message,
    ] {
        let answered = server.get(path).await;
        assert_eq!(
            answered.header("x-content-type-options"),
            "nosniff",
            "{path}"
        );
        assert_eq!(answered.header("cache-control"), "no-store", "{path}");
    }
}
