//! Queues and process definitions.

use serde_json::json;

use crate::harness::Server;

#[tokio::test]
async fn a_queue_is_defined_shown_altered_and_deleted() {
    let server = Server::start().await;
    let path = "/v1/queues/orders";
    let definition = json!({ "trigger": "depth", "trigger-depth": 3, "retry": { "jitter": 5 } });
    let made = server.json("PUT", path, definition.clone()).await.is(201);
    assert_eq!(made.header("location"), path);
    assert_eq!(made.json()["attributes"]["trigger-depth"], 3);
    let again = server.json("PUT", path, definition).await.is(200).json();
    assert_eq!(again, made.json());
    let altered = json!({ "trigger-depth": null, "max-depth": 1000 });
    let altered = server.json("PATCH", path, altered).await.is(200).json();
    assert_eq!(altered["attributes"]["trigger-depth"], 100);
    assert_eq!(altered["attributes"]["max-depth"], 1000);
    assert_eq!(altered["origins"]["max-depth"], "operator");
    assert_eq!(server.get(path).await.is(200).json(), altered);
    let list = server.get("/v1/queues").await.is(200).json();
    let names: Vec<_> = list["queues"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|queue| queue["name"].clone())
        .collect();
    assert!(names.contains(&json!("orders")), "{names:?}");
    assert!(names.contains(&json!("oncue.dead-letter")), "{names:?}");
    server.delete(path).await.is(204);
    server.get(path).await.problem(404, "unknown-queue");
    server.delete(path).await.problem(404, "unknown-queue");
}

#[tokio::test]
async fn a_definition_without_a_body_takes_the_defaults() {
    let server = Server::start().await;
    let made = server
        .call("PUT", "/v1/queues/plain", &[], "")
        .await
        .is(201)
        .json();
    assert_eq!(made["attributes"]["trigger"], "first");
    assert_eq!(made["origins"], json!({}));
}

#[tokio::test]
async fn all_faults_of_a_definition_are_named_at_once() {
    let server = Server::start().await;
    let path = "/v1/queues/orders";
    let wrong = json!({ "trigger-dept": 3, "trigger": "firs", "max-depth": -1 });
    let problem = server
        .json("PUT", path, wrong)
        .await
        .problem(422, "invalid-definition");
    assert_eq!(
        problem["faults"].as_array().map(Vec::len),
        Some(3),
        "{problem:#}"
    );
    let text = problem.to_string();
    assert!(
        text.contains("did you mean \\\"trigger-depth\\\"?"),
        "{problem:#}"
    );
    assert!(text.contains("did you mean \\\"first\\\"?"), "{problem:#}");
    server.get(path).await.problem(404, "unknown-queue");
    server
        .json("PATCH", path, json!({}))
        .await
        .problem(404, "unknown-queue");
    server
        .json("PUT", "/v1/queues/oncue.mine", json!({}))
        .await
        .problem(403, "reserved-name");
    server
        .json("PUT", path, json!([]))
        .await
        .problem(422, "invalid-definition");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    server
        .call("PUT", path, &form, "a=b")
        .await
        .problem(415, "unsupported-media-type");
}

#[tokio::test]
async fn a_queue_with_messages_is_deleted_by_force_only() {
    let server = Server::start().await;
    server.queue("q").await;
    server.put("q", &[], "a").await;
    server
        .delete("/v1/queues/q")
        .await
        .problem(409, "queue-not-empty");
    server
        .delete("/v1/queues/q?force=maybe")
        .await
        .problem(400, "invalid-parameter");
    server.delete("/v1/queues/q?force=true").await.is(204);
    server.queue("q").await;
    assert_eq!(server.ids("q").await, Vec::<String>::new());
    server.put("q", &[], "a").await;
    server.put("q", &[], "b").await;
    let cleared = server.post("/v1/queues/q/clear").await.is(200).json();
    assert_eq!(cleared, json!({ "cleared": 2 }));
}

#[tokio::test]
async fn a_process_is_defined_shown_altered_and_deleted() {
    let server = Server::start().await;
    let path = "/v1/processes/route";
    let made = server
        .json("PUT", path, json!({ "fuel": "5 G" }))
        .await
        .is(201);
    assert_eq!(made.header("location"), path);
    assert_eq!(made.json()["component"], "missing");
    server
        .json("PUT", path, json!({ "fuel": "5 G" }))
        .await
        .is(200);
    let grants = json!({ "grants": { "put": ["audit.*"] }, "fuel": null });
    let altered = server.json("PATCH", path, grants).await.is(200).json();
    assert_eq!(altered["attributes"]["grants"]["put"], json!(["audit.*"]));
    assert_eq!(altered["attributes"]["fuel"], "10 G");
    let list = server.get("/v1/processes").await.is(200).json();
    assert_eq!(list["processes"][0]["name"], "route");
    assert_eq!(list.get("next"), None);
    let paused = server.post(&format!("{path}/pause")).await.is(200).json();
    assert_eq!(paused["paused"], true);
    let resumed = server.post(&format!("{path}/resume")).await.is(200).json();
    assert_eq!(resumed["paused"], false);
    let wrong = json!({ "grants": { "putt": [] }, "fule": 1 });
    let problem = server
        .json("PATCH", path, wrong)
        .await
        .problem(422, "invalid-definition");
    assert_eq!(
        problem["faults"].as_array().map(Vec::len),
        Some(2),
        "{problem:#}"
    );
    server.delete(path).await.is(204);
    server.get(path).await.problem(404, "unknown-process");
}
