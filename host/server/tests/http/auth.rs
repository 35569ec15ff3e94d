//! A host with tokens: who is refused what.

use axum::http::StatusCode;
use oncue_manager::status::HostEvent;
use oncue_server::auth::identity::{Grants, Role};
use oncue_server::auth::tokens::{self, Tokens};
use oncue_server::auth::{Access, Mode};
use oncue_server::{Security, ServerOptions};
use serde_json::{Value, json};

use crate::document::{ROUTES, filled};
use crate::guarded::{Guarded, grants, make, patterns};
use crate::harness::{Answered, Server};

/// Routes that need no token.
const OPEN: [&str; 4] = ["/livez", "/readyz", "/startupz", "/openapi.json"];

#[tokio::test]
async fn without_a_token_every_route_but_health_is_refused() {
    let (guarded, _) = Guarded::start().await;
    for route in ROUTES {
        let (method, template) = route.split_once(' ').expect("a method and a path");
        let answered = guarded
            .server
            .call(method, &filled(template), &[], "")
            .await;
        if OPEN.contains(&template) {
            answered.is(200);
            continue;
        }
        assert_eq!(
            answered.header("www-authenticate"),
            "Bearer realm=\"oncue\"",
            "{route}"
        );
        answered.problem(401, "not-authorized");
    }
    // What is no route is not told either.
    guarded
        .server
        .get("/v1/nothing")
        .await
        .problem(401, "not-authorized");
}

#[tokio::test]
async fn expired_revoked_malformed_and_unknown_tokens_are_refused() {
    let folder = tempfile::tempdir().expect("a directory");
    let old = make(&folder, "old", Role::Admin, Grants::default(), Some(1));
    let access = Access::load(folder.path(), Mode::Auto, None).expect("tokens");
    let security = Security {
        access,
        ..Security::default()
    };
    let server = Server::with(ServerOptions {
        security,
        ..ServerOptions::default()
    })
    .await;
    for (authorization, told) in [
        (format!("Bearer {old}"), "token \"old\" has expired"),
        ("Bearer oncue_unknown".to_owned(), "is not one of this host"),
        ("Basic b25jdWU6b25jdWU=".to_owned(), "is not \"Bearer\""),
        ("Bearer".to_owned(), "is not \"Bearer\""),
        (format!("Bearer {}", "x".repeat(5_000)), "is not \"Bearer\""),
    ] {
        let headers = [("authorization", authorization.as_str())];
        let answered = server.call("GET", "/v1/status", &headers, "").await;
        let problem = answered.problem(401, "not-authorized");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.contains(told), "{detail}");
        assert!(
            !detail.contains(&old) && !detail.contains("oncue_"),
            "{detail}"
        );
    }
}

/// What an identity may not do, route by route.
#[tokio::test]
async fn each_role_is_refused_what_it_has_no_right_to() {
    let roles = [
        ("operator", Role::Operator, Grants::default()),
        ("observer", Role::Observer, Grants::default()),
        ("application", Role::Application, Grants::default()),
    ];
    let (guarded, admin, made) = Guarded::with(&roles).await;
    let mut refused = std::collections::BTreeMap::new();
    for (who, token) in [("admin", &admin)].into_iter().chain(
        ["operator", "observer", "application"]
            .into_iter()
            .zip(&made),
    ) {
        let mut count = 0;
        for route in ROUTES {
            let (method, template) = route.split_once(' ').expect("a method and a path");
            if template == "/v1/events" {
                continue;
            }
            let answered = guarded.call(token, method, &filled(template)).await;
            assert_ne!(answered.status, StatusCode::UNAUTHORIZED, "{who} {route}");
            if answered.status == StatusCode::FORBIDDEN {
                let problem = answered.problem(403, "not-permitted");
                let detail = problem["detail"].as_str().expect("a detail").to_owned();
                assert!(detail.starts_with(&format!("token \"{who}\"")), "{detail}");
                assert!(detail.contains("lacks the right \""), "{detail}");
                count += 1;
            }
        }
        refused.insert(who, count);
    }
    assert_eq!(refused["admin"], 0);
    // Puts, gets and leases, units; binding; the audit log.
    assert_eq!(refused["operator"], 2 + 3 + 1 + 3 + 1);
    // What is left are looks: at the host, at queues, tasks, processes and plugins.
    let looks = ROUTES
        .iter()
        .filter(|route| route.starts_with("GET "))
        .count();
    let messages_and_audit = 3;
    assert_eq!(
        refused["observer"],
        ROUTES.len() - looks + messages_and_audit
    );
    // Its own lists are empty, and a task that is not there is not there.
    let own_lists = [
        "/v1/queues",
        "/v1/tasks",
        "/v1/tasks/{task}",
        "/v1/tasks/{task}/case",
    ];
    let open = OPEN.len() + own_lists.len() + 1;
    assert_eq!(refused["application"], ROUTES.len() - open);
}

#[tokio::test]
async fn an_application_does_what_it_is_granted_and_sees_nothing_else() {
    let shop = ("shop", Role::Application, grants(&["a"], &["a"], &["a"]));
    let (guarded, admin, made) = Guarded::with(&[shop]).await;
    let shop = &made[0];
    let id = guarded
        .call(shop, "POST", "/v1/queues/a/messages")
        .await
        .is(201);
    let id = id.json()["id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/queues/a/messages/{id}");
    let message = guarded.call(shop, "GET", &path).await.is(200);
    assert_eq!(message.header("oncue-put-by"), "shop");
    let put = guarded.call(shop, "POST", "/v1/queues/b/messages").await;
    let problem = put.problem(403, "not-permitted");
    assert_eq!(
        problem["detail"],
        "token \"shop\" (application) lacks the right \"put\" on queue \"b\"; an administrator can \
         make one that has it [not-permitted]"
    );
    // A queue that is not there and one that is not granted look the same.
    guarded
        .call(shop, "GET", "/v1/queues/nowhere")
        .await
        .problem(403, "not-permitted");
    let unit = |queue: &str| json!({"puts": [{"queue": "a"}, {"queue": queue}]});
    let both = guarded.json(shop, "POST", "/v1/units", unit("b")).await;
    both.problem(403, "not-permitted");
    guarded
        .json(shop, "POST", "/v1/units", unit("a"))
        .await
        .is(201);
    let got = guarded.call(shop, "POST", "/v1/queues/a/get").await.is(200);
    let ack = format!("/v1/leases/{}/ack", got.header("oncue-lease"));
    guarded.call(shop, "POST", &ack).await.is(204);
    let names = |answered: Answered| -> Vec<String> {
        let list = answered.is(200).json();
        let names = list["queues"].as_array().expect("a list").iter();
        assert_eq!(
            (&list["matching"], &list["defined"]),
            (&json!(names.len()), &json!(names.len()))
        );
        names
            .map(|it| it["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    assert_eq!(names(guarded.call(shop, "GET", "/v1/queues").await), ["a"]);
    let all = names(guarded.call(&admin, "GET", "/v1/queues").await);
    assert!(all.contains(&"b".to_owned()) && all.contains(&"oncue.dead-letter".to_owned()));
}

#[tokio::test]
async fn tasks_are_told_to_those_who_see_their_queue_and_words_to_those_who_browse() {
    let tokens = [
        ("putter", Role::Application, grants(&["work"], &[], &[])),
        ("reader", Role::Application, grants(&[], &[], &["work"])),
        ("other", Role::Application, grants(&["a"], &[], &[])),
        ("observer", Role::Observer, Grants::default()),
    ];
    let (guarded, admin, made) = Guarded::with(&tokens).await;
    crate::tasks::plugin(&guarded.server).await;
    let mut events = guarded.server.handle.events();
    let bearer = format!("Bearer {admin}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "test/trap"),
    ];
    let put = guarded
        .server
        .call("POST", "/v1/queues/work/messages", &headers, "boom")
        .await;
    put.is(201);
    while !matches!(
        events.recv().await.expect("an event"),
        HostEvent::TaskEnded { .. }
    ) {}
    let told = async |token: &str| -> Vec<bool> {
        let tasks = guarded.call(token, "GET", "/v1/tasks").await.is(200).json();
        let tasks = tasks.as_array().expect("tasks").clone();
        for task in &tasks {
            let path = format!("/v1/tasks/{}", task["id"]);
            let one = guarded.call(token, "GET", &path).await.is(200).json();
            assert_eq!(one["backtrace"], task["backtrace"]);
        }
        tasks
            .iter()
            .map(|task| task["backtrace"].is_string())
            .collect()
    };
    let [putter, reader, other, observer] = &made[..] else {
        panic!("four tokens");
    };
    assert_eq!(told(reader).await, [true]);
    assert_eq!(told(putter).await, [false]);
    assert_eq!(told(observer).await, [false]);
    assert_eq!(told(other).await, Vec::<bool>::new());
    let all = guarded.call(reader, "GET", "/v1/tasks").await.json();
    let path = format!("/v1/tasks/{}", all[0]["id"]);
    guarded
        .call(other, "GET", &path)
        .await
        .problem(404, "unknown-task");
    let case = format!("{path}/case");
    guarded.call(reader, "GET", &case).await.is(200);
    guarded
        .call(putter, "GET", &case)
        .await
        .problem(403, "not-permitted");
    guarded
        .call(other, "GET", &case)
        .await
        .problem(404, "unknown-task");
}

#[tokio::test]
async fn binding_is_a_right_of_its_own() {
    let define = |bind: &[&str]| Grants {
        define: patterns(&["a", "a.*"]),
        bind: patterns(bind),
        ..Grants::default()
    };
    let tokens = [
        ("definer", Role::Application, define(&[])),
        ("binder", Role::Application, define(&["a"])),
        ("operator", Role::Operator, Grants::default()),
    ];
    let (guarded, _, made) = Guarded::with(&tokens).await;
    let bind = json!({"process": "p"});
    let patch = async |token: &str, body: &Value| {
        guarded
            .json(token, "PATCH", "/v1/queues/a", body.clone())
            .await
    };
    for token in [&made[0], &made[2]] {
        let problem = patch(token, &bind).await.problem(403, "not-permitted");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(
            detail.contains("lacks the right \"bind\" on queue \"a\""),
            "{detail}"
        );
        patch(token, &json!({"process": null}))
            .await
            .problem(403, "not-permitted");
        patch(token, &json!({"max-tasks": 2})).await.is(200);
    }
    patch(&made[1], &bind).await.is(200);
    // Messages that fail go nowhere that the definer could not reach.
    let elsewhere = json!({"backout-queue": "b"});
    patch(&made[0], &elsewhere)
        .await
        .problem(403, "not-permitted");
    patch(&made[0], &json!({"backout-queue": "a.failed"}))
        .await
        .is(200);
    let process = guarded
        .json(&made[2], "PUT", "/v1/processes/p", json!({}))
        .await;
    process.problem(403, "not-permitted");
}

#[tokio::test]
async fn with_tokens_any_name_of_the_host_will_do_and_no_page_of_another() {
    let (guarded, admin) = Guarded::start().await;
    let bearer = format!("Bearer {admin}");
    let ask = async |host: &str, origin: Option<&str>| {
        let mut headers = vec![("authorization", bearer.as_str()), ("host", host)];
        headers.extend(origin.map(|origin| ("origin", origin)));
        guarded.server.call("GET", "/v1/status", &headers, "").await
    };
    ask("queues.example:7373", None).await.is(200);
    let own = Some("https://queues.example:7373");
    ask("queues.example:7373", own).await.is(200);
    let foreign = Some("https://evil.example");
    ask("queues.example:7373", foreign)
        .await
        .problem(403, "foreign-origin");
    ask("queues.example:7373", Some("null"))
        .await
        .problem(403, "foreign-origin");
}

#[tokio::test]
async fn a_revoked_token_is_refused_from_the_next_request_on() {
    let shop = ("shop", Role::Application, grants(&["a"], &[], &[]));
    let (guarded, admin, made) = Guarded::with(&[shop]).await;
    let put = async |token: &str| {
        let path = "/v1/queues/a/messages";
        guarded.call(token, "POST", path).await
    };
    put(&made[0]).await.is(201);
    tokens::revoke(&Tokens::path(guarded.folder.path()), "shop").expect("revoked");
    put(&made[0]).await.problem(401, "not-authorized");
    let rights = grants(&["a"], &[], &[]);
    let next = make(&guarded.folder, "next", Role::Application, rights, None);
    put(&next).await.is(201);
    let entries = guarded.audited(&admin).await;
    let read = entries
        .iter()
        .filter(|entry| entry["action"] == "tokens-read");
    assert_eq!(read.count(), 2);
}
