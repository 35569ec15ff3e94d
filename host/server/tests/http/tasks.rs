//! Tasks as they are shown, and plugins that serve.

use oncue_core::definition::Style;
use oncue_core::definition::{ProcessPatch, QueuePatch, Raw};
use oncue_core::names::{PluginName, QueueName};
use oncue_manager::reload::{PluginDefinitions, PluginState, PluginUpdate};
use oncue_manager::status::HostEvent;
use oncue_manager::tasks::ComponentVersion;

use crate::harness::Server;

/// Drops a plugin `p` that serves the queue `work`, and gives messages one attempt.
pub(crate) async fn plugin(server: &Server) {
    let name = PluginName::new("p").expect("a name");
    let queue = Raw::Table(vec![("backout-threshold".to_owned(), Raw::Integer(1))]);
    let queue = QueuePatch::parse(&queue).expect("a definition");
    let version = ComponentVersion {
        plugin: name.clone(),
        digest: "d".repeat(64),
        style: Style::Message,
    };
    let update = PluginUpdate {
        name,
        file: "p.wasm".to_owned(),
        state: PluginState::Ready(version),
        definitions: Some(PluginDefinitions {
            process: ProcessPatch::default(),
            queues: vec![(QueueName::new("work").expect("a name"), queue)],
        }),
        previous: vec!["e".repeat(64)],
        facts: vec![("size".to_owned(), "1 KiB".to_owned())],
    };
    server.handle.plugin_changed(update).await.expect("applied");
}

#[tokio::test]
async fn a_task_is_shown_with_its_outcome() {
    let server = Server::start().await;
    plugin(&server).await;
    let shown = server.get("/v1/plugins/p").await.is(200).json();
    assert_eq!(shown["state"], "ready");
    let process = server.get("/v1/processes/p").await.is(200).json();
    assert_eq!(process["component"], "ready");

    let mut events = server.handle.events();
    let id = server
        .put("work", &[("content-type", "test/trap")], "boom")
        .await;
    let task = loop {
        if let HostEvent::TaskEnded { task, .. } = events.recv().await.expect("an event") {
            break task;
        }
    };
    let tasks = server
        .get("/v1/tasks?queue=work&outcome=trapped")
        .await
        .is(200)
        .json();
    assert_eq!(tasks[0]["id"], task.0);
    assert_eq!(tasks[0]["messages"][0]["id"], id.as_str());
    assert_eq!(
        server
            .get("/v1/tasks?outcome=committed")
            .await
            .is(200)
            .json()[0]["id"]
            .as_u64(),
        None
    );
    let one = server
        .get(&format!("/v1/tasks/{task}"))
        .await
        .is(200)
        .json();
    assert_eq!(one, tasks[0]);
    assert_eq!(one["outcome"], "trapped");
    assert_eq!(one["cost"]["fuel"], 66);
    let case = server
        .get(&format!("/v1/tasks/{task}/case"))
        .await
        .is(200)
        .json();
    assert_eq!(case["message"], id.as_str());
    assert_eq!(case["input"]["messages"][0]["text"], "boom");
    assert_eq!(case["expected"]["messages"][0]["outcome"], "trapped");
    let other = format!("/v1/tasks/{task}/case?message={}", "0".repeat(24));
    server.get(&other).await.problem(409, "no-case");
    let dead = format!("/v1/queues/oncue.dead-letter/messages/{id}");
    let shown = server.get(&dead).await.is(200);
    assert_eq!(shown.header("oncue-dead-letter-reason"), "trapped");
}

#[tokio::test]
async fn filters_of_tasks_are_checked() {
    let server = Server::start().await;
    let problem = server
        .get("/v1/tasks?outcome=traped&max=0&queue=a%20b&failed=1")
        .await;
    let problem = problem.problem(400, "invalid-parameter");
    assert_eq!(
        problem["faults"].as_array().map(Vec::len),
        Some(4),
        "{problem:#}"
    );
    assert!(
        problem
            .to_string()
            .contains("did you mean \\\"trapped\\\"?"),
        "{problem:#}"
    );
    server
        .get("/v1/tasks/66")
        .await
        .problem(404, "unknown-task");
    server
        .get("/v1/tasks/66/case")
        .await
        .problem(404, "unknown-task");
    server
        .get("/v1/tasks/66/case?message=x")
        .await
        .problem(400, "invalid-parameter");
    server
        .get("/v1/tasks/x")
        .await
        .problem(400, "invalid-parameter");
    assert_eq!(
        server.get("/v1/tasks?failed=true").await.is(200).json(),
        serde_json::json!([])
    );
}
