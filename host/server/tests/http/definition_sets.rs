//! Many definitions in one request: all of them or none, and a look tells what would be done.

use oncue_server::auth::identity::{Grants, Role};
use serde_json::{Value, json};

use crate::guarded::{Guarded, grants, patterns};
use crate::harness::Server;

const APPLY: &str = "/v1/definitions";
const LOOK: &str = "/v1/definitions/changes";

async fn all_of(server: &Server) -> Value {
    let queues = server.get("/v1/queues").await.is(200).json();
    let processes = server.get("/v1/processes").await.is(200).json();
    json!([queues, processes])
}

#[tokio::test]
async fn a_look_tells_what_would_be_done_and_the_order_does_that() {
    let server = Server::start().await;
    let old = json!({ "max-tasks": 4, "retry": { "max": "1m" }, "description": "old" });
    server.json("PUT", "/v1/queues/old", old).await.is(201);
    server.queue("other").await;
    let set = json!({
        "queue": {
            "old": { "max-tasks": 8, "description": "old" },
            "new": { "process": "work", "backout-queue": "other" },
        },
        "process": { "work": { "fuel": "2 G" } },
    });
    let before = all_of(&server).await;
    let looked = server.json("POST", LOOK, set.clone()).await.is(200).json();
    let wanted = json!([
        { "change": "+", "what": "process", "name": "work" },
        { "change": "+", "what": "process", "name": "work", "attribute": "fuel", "to": "2 G" },
        { "change": "~", "what": "queue", "name": "old", "attribute": "max-tasks",
          "from": 4, "to": 8 },
        { "change": "-", "what": "queue", "name": "old", "attribute": "retry.max", "from": "1m" },
        { "change": "+", "what": "queue", "name": "new" },
        { "change": "+", "what": "queue", "name": "new", "attribute": "process", "to": "work" },
        { "change": "+", "what": "queue", "name": "new", "attribute": "backout-queue",
          "to": "other" },
    ]);
    let sorted = |changes: &Value| {
        let mut texts: Vec<String> = changes
            .as_array()
            .expect("changes")
            .iter()
            .map(ToString::to_string)
            .collect();
        texts.sort();
        texts
    };
    assert_eq!(sorted(&looked["changes"]), sorted(&wanted));
    assert_eq!(all_of(&server).await, before, "a look changes nothing");

    let done = server.json("POST", APPLY, set.clone()).await.is(200).json();
    assert_eq!(done, looked);
    let old = server.get("/v1/queues/old").await.is(200).json();
    assert_eq!(old["attributes"]["max-tasks"], 8);
    assert_eq!(old["attributes"]["retry"]["max"], "5m");
    let new = server.get("/v1/queues/new").await.is(200).json();
    assert_eq!(new["attributes"]["process"], "work");
    assert_eq!(server.put("new", &[], "x").await.len(), 24);
    let again = server.json("POST", APPLY, set).await.is(200).json();
    assert_eq!(again, json!({ "changes": [] }));
}

#[tokio::test]
async fn one_that_is_refused_keeps_all_from_being_done() {
    let server = Server::start().await;
    server.queue("there").await;
    let before = all_of(&server).await;
    let check = async |bad: Value, told: &[&str]| {
        let mut set = json!({
            "queue": { "good": {}, "there": { "max-tasks": 3 } },
            "process": { "good": {} },
        });
        for (kind, definitions) in bad.as_object().expect("kinds") {
            for (name, attributes) in definitions.as_object().expect("names") {
                set[kind][name] = attributes.clone();
            }
        }
        for path in [LOOK, APPLY] {
            let answered = server.json("POST", path, set.clone()).await;
            let problem = answered.problem(422, "invalid-definition");
            let faults = problem["faults"].to_string();
            for part in told {
                assert!(faults.contains(part), "{part} in {problem:#}");
            }
        }
        assert_eq!(all_of(&server).await, before, "{bad}");
    };
    // A circle that only these together make.
    let circle = json!({ "queue": {
        "a": { "backout-queue": "b" }, "b": { "backout-queue": "a" },
    } });
    check(circle, &["leads back", "\"queue.a.backout-queue\""]).await;
    let own = json!({ "queue": { "a": { "backout-queue": "a" } } });
    check(own, &["the queue itself"]).await;
    let reserved = json!({ "queue": { "oncue.mine": {} } });
    check(reserved, &["the queue manager's own"]).await;
    let greedy = json!({ "process": { "greedy": { "memory": "900 GiB" } } });
    check(greedy, &["process.greedy"]).await;
    let both = json!({
        "queue": { "a": { "max-tasks": 0 }, "b": { "trigger": "often" }, "b c": {} },
        "process": { "p": { "fule": 1 } },
    });
    check(
        both,
        &[
            "queue.a.max-tasks",
            "queue.b.trigger",
            "queue.b c",
            "process.p.fule",
        ],
    )
    .await;
    check(
        json!({ "queue": { "a": { "alarm-depth-high": 5 } } }),
        &["alarm-depth-low"],
    )
    .await;
}

#[tokio::test]
async fn a_circle_that_the_order_itself_undoes_is_none() {
    let server = Server::start().await;
    server.queue("b").await;
    let to = |queue: &str| json!({ "backout-queue": queue });
    server.json("PUT", "/v1/queues/a", to("b")).await.is(201);
    // b shall point to a, and a no longer to b: alone b would be refused.
    server.json("PATCH", "/v1/queues/b", to("a")).await.is(422);
    let set = json!({ "queue": { "a": {}, "b": to("a") } });
    server.json("POST", APPLY, set).await.is(200);
}

#[tokio::test]
async fn what_is_no_set_is_refused_as_a_whole() {
    let server = Server::start().await;
    let list = server.json("POST", APPLY, json!([])).await;
    list.problem(422, "invalid-definition");
    let kind = server.json("POST", APPLY, json!({ "queues": {} })).await;
    let problem = kind.problem(422, "invalid-definition");
    assert!(
        problem
            .to_string()
            .contains("\\\"process\\\" or \\\"queue\\\""),
        "{problem:#}"
    );
    let none = server.json("POST", APPLY, json!({})).await.is(200).json();
    assert_eq!(none, json!({ "changes": [] }));
    let json = [("content-type", "application/json")];
    let twice = r#"{ "queue": { "a": {}, "a": {} } }"#;
    let twice = server.call("POST", APPLY, &json, twice).await;
    twice.problem(422, "invalid-definition");
}

#[tokio::test]
async fn rights_are_asked_for_each_definition_and_what_is_done_is_audited() {
    let definer = Grants {
        define: patterns(&["a", "c"]),
        ..grants(&[], &[], &[])
    };
    let tokens = [("definer", Role::Application, definer)];
    let (guarded, admin, made) = Guarded::with(&tokens).await;
    let apply = async |token: &str, set: Value| guarded.json(token, "POST", APPLY, set).await;
    let refused = async |set: Value| {
        for path in [LOOK, APPLY] {
            let answered = guarded.json(&made[0], "POST", path, set.clone()).await;
            answered.problem(403, "not-permitted");
        }
    };
    refused(json!({ "queue": { "a": {}, "b": {} } })).await;
    refused(json!({ "queue": { "a": { "process": "p" } } })).await;
    refused(json!({ "queue": { "a": { "backout-queue": "b" } } })).await;
    refused(json!({ "process": { "p": {} } })).await;
    apply(&made[0], json!({ "queue": { "c": { "max-tasks": 2 } } }))
        .await
        .is(200);
    // What somebody else bound is not unbound by leaving it out.
    let bound = json!({ "queue": { "a": { "process": "p" } }, "process": { "p": {} } });
    apply(&admin, bound).await.is(200);
    refused(json!({ "queue": { "a": {} } })).await;
    let audited = guarded.audited(&admin).await;
    let has = |identity: &str, action: &str, object: &str, result: &str| {
        audited.iter().any(|entry| {
            entry["identity"] == identity
                && entry["action"] == action
                && entry["result"] == result
                && entry
                    .get("object")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    == object
        })
    };
    assert!(has("definer", "queue-define", "c", "done"), "{audited:#?}");
    assert!(has("admin", "process-define", "p", "done"), "{audited:#?}");
    assert!(
        has("definer", "definitions-apply", "", "not-permitted"),
        "{audited:#?}"
    );
    assert!(!has("definer", "queue-define", "a", "done"), "{audited:#?}");
}
