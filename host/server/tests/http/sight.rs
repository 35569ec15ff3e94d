//! What somebody sees of what handlers said, and of queues that a grant of all does not reach.

use oncue_manager::status::HostEvent;
use oncue_server::auth::identity::{Grants, Role};
use serde_json::json;

use crate::guarded::{Guarded, grants, patterns};

/// What the handler says when it fails.
const WORDS: &str = "unreachable executed";

/// A host on which a handler has failed on a message, which is a dead letter now.
async fn with_dead_letter(
    tokens: &[(&str, Role, Grants)],
) -> (Guarded, String, Vec<String>, String) {
    let (guarded, admin, made) = Guarded::with(tokens).await;
    crate::tasks::plugin(&guarded.server).await;
    let mut events = guarded.server.handle.events();
    let bearer = format!("Bearer {admin}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "test/trap"),
    ];
    let put = guarded
        .server
        .call("POST", "/v1/queues/work/messages", &headers, "the body")
        .await;
    put.is(201);
    while !matches!(
        events.recv().await.expect("an event"),
        HostEvent::TaskEnded { .. }
    ) {}
    let tasks = guarded
        .call(&admin, "GET", "/v1/tasks")
        .await
        .is(200)
        .json();
    let task = tasks[0]["id"].to_string();
    (guarded, admin, made, task)
}

#[tokio::test]
async fn words_of_handlers_are_for_those_who_may_browse_on_every_page_and_route() {
    let tokens = [
        ("observer", Role::Observer, Grants::default()),
        ("operator", Role::Operator, Grants::default()),
    ];
    let (guarded, _, made, task) = with_dead_letter(&tokens).await;
    let says = async |token: &str, path: &str| {
        let answered = guarded.call(token, "GET", path).await;
        String::from_utf8_lossy(&answered.is(200).body).contains(WORDS)
    };
    for path in [
        "/",
        "/queues/work",
        "/plugins/p",
        "/tasks",
        &format!("/tasks/{task}"),
        "/v1/tasks",
        &format!("/v1/tasks/{task}"),
        "/v1/dead-letters",
    ] {
        assert!(!says(&made[0], path).await, "an observer reads {path}");
        assert!(says(&made[1], path).await, "an operator does not: {path}");
    }
    for path in [
        "/queues",
        "/plugins",
        "/ledger",
        "/v1/queues",
        "/v1/queues/work/explain",
        "/v1/alarms",
        "/v1/status",
        "/metrics",
        "/metrics/detailed",
    ] {
        assert!(!says(&made[0], path).await, "an observer reads {path}");
    }
    for path in ["/dead-letters", "/dead-letters/export"] {
        guarded.call(&made[0], "GET", path).await.is(403);
    }
}

#[tokio::test]
async fn a_grant_of_all_queues_opens_no_page_on_the_managers_own() {
    let all = Grants {
        put: patterns(&["*"]),
        get: patterns(&["*"]),
        browse: patterns(&["*"]),
        operate: patterns(&["*"]),
        ..Grants::default()
    };
    let tokens = [
        ("wide", Role::Application, all),
        ("operator", Role::Operator, Grants::default()),
    ];
    let (guarded, _, made, _) = with_dead_letter(&tokens).await;
    let dead = "oncue.dead-letter";
    for path in [
        "/dead-letters".to_owned(),
        "/dead-letters/export".to_owned(),
        format!("/queues/{dead}/messages"),
        format!("/v1/queues/{dead}/messages"),
    ] {
        guarded.call(&made[0], "GET", &path).await.is(403);
        guarded.call(&made[1], "GET", &path).await.is(200);
    }
    // Nor by a form.
    let form = ("content-type", "application/x-www-form-urlencoded");
    let login = format!("token={}", made[0]);
    let entered = guarded.server.call("POST", "/login", &[form], login).await;
    let cookie = entered.is(303).header("set-cookie").to_owned();
    let cookie = ("cookie", cookie.split(';').next().expect("a pair"));
    let page = guarded
        .server
        .call("GET", "/queues/work/messages", &[cookie], "")
        .await
        .is(200);
    let csrf = crate::sessions::csrf_of(&page);
    for (path, more) in [
        ("/dead-letters/redrive", ""),
        ("/dead-letters/discard", "&confirm=discard"),
    ] {
        let body = format!("csrf={csrf}{more}");
        let headers = [form, cookie];
        let sent = guarded.server.call("POST", path, &headers, body);
        sent.await.is(303);
        let messages = format!("/v1/queues/{dead}/messages");
        let left = guarded.call(&made[1], "GET", &messages).await.is(200);
        let left = left.json()["messages"].as_array().map(Vec::len);
        assert_eq!(left, Some(1), "{path} has reached it");
    }
}

#[tokio::test]
async fn a_schedule_is_a_put() {
    let define = Grants {
        define: patterns(&["a"]),
        ..Grants::default()
    };
    let both = Grants {
        define: patterns(&["a"]),
        ..grants(&["a"], &[], &[])
    };
    let tokens = [
        ("operator", Role::Operator, Grants::default()),
        ("definer", Role::Application, define),
        ("both", Role::Application, both),
    ];
    let (guarded, _, made) = Guarded::with(&tokens).await;
    let schedule = json!({"schedule": {"cron": "* * * * *", "body": "pay it"}});
    for token in &made[..2] {
        for method in ["PUT", "PATCH"] {
            let answered = guarded
                .json(token, method, "/v1/queues/a", schedule.clone())
                .await;
            let problem = answered.problem(403, "not-permitted");
            let detail = problem["detail"].as_str().expect("a detail");
            assert!(
                detail.contains("lacks the right \"put\" on queue \"a\""),
                "{detail}"
            );
        }
        // Taking one away puts nothing.
        let none = json!({"schedule": null});
        guarded
            .json(token, "PATCH", "/v1/queues/a", none)
            .await
            .is(200);
    }
    guarded
        .json(&made[2], "PATCH", "/v1/queues/a", schedule)
        .await
        .is(200);
}

#[tokio::test]
async fn events_are_of_the_queues_that_are_seen() {
    let tokens = [
        ("shop", Role::Application, grants(&["a"], &[], &[])),
        ("observer", Role::Observer, Grants::default()),
    ];
    let (guarded, admin, made) = Guarded::with(&tokens).await;
    let watch = async |token: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        crate::sessions::stream(&guarded.server, "/v1/events", &headers).await
    };
    let (mut shop, mut observer) = (watch(&made[0]).await, watch(&made[1]).await);
    for queue in ["b", "a"] {
        let path = format!("/v1/queues/{queue}");
        let body = json!({"max-tasks": 3});
        guarded.json(&admin, "PATCH", &path, body).await.is(200);
    }
    let told = crate::events::event(&mut shop, "defined").await;
    assert_eq!(told["name"], "a", "the first that it hears of");
    let told = crate::events::event(&mut observer, "defined").await;
    assert_eq!(told["name"], "b");
}

#[tokio::test]
async fn a_grant_on_a_queue_is_no_right_on_the_host() {
    let some = Grants {
        browse: patterns(&["a"]),
        operate: patterns(&["a"]),
        bind: patterns(&["a"]),
        ..Grants::default()
    };
    let (guarded, _, made) = Guarded::with(&[("some", Role::Application, some)]).await;
    for (method, path) in [
        ("POST", "/v1/pause"),
        ("POST", "/v1/processes/p/pause"),
        ("POST", "/v1/plugins/p/rollback"),
        ("PUT", "/v1/processes/p"),
        ("DELETE", "/v1/processes/p"),
        ("GET", "/dead-letters"),
    ] {
        guarded.call(&made[0], method, path).await.is(403);
    }
    guarded
        .call(&made[0], "POST", "/v1/queues/a/pause")
        .await
        .is(200);
}
