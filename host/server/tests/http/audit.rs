//! What is written down of changes and refusals, and what is not.

use oncue_server::auth::identity::Role;
use serde_json::{Value, json};

use crate::guarded::{Guarded, grants};

#[tokio::test]
async fn changes_and_refusals_are_written_down_and_messages_are_not() {
    let shop = ("shop", Role::Application, grants(&["a"], &[], &[]));
    let (guarded, admin, made) = Guarded::with(&[shop]).await;
    let secret = "the body of a message";
    let bearer = format!("Bearer {}", made[0]);
    let headers = [("authorization", bearer.as_str())];
    let put = guarded
        .server
        .call("POST", "/v1/queues/a/messages", &headers, secret)
        .await;
    put.is(201);
    guarded
        .call(&made[0], "DELETE", "/v1/queues/a")
        .await
        .is(403);
    guarded
        .call("oncue_wrong", "GET", "/v1/status")
        .await
        .is(401);
    guarded
        .call(&made[0], "GET", "/v1/queues/b/explain?all=1")
        .await
        .is(403);
    let ack = "/v1/leases/the-token-of-a-lease/ack";
    guarded.call("oncue_wrong", "POST", ack).await.is(401);
    guarded
        .call(&admin, "POST", "/v1/queues/a/pause")
        .await
        .is(200);
    let alter = json!({"max-tasks": 0});
    guarded
        .json(&admin, "PATCH", "/v1/queues/a", alter)
        .await
        .is(422);
    let entries = guarded.audited(&admin).await;
    let told: Vec<String> = entries
        .iter()
        .map(|it| {
            let text = |name: &str| it[name].as_str().unwrap_or("-").to_owned();
            let (who, what) = (text("identity"), text("action"));
            format!("{who} {what} {} {}", text("object"), text("result"))
        })
        .collect();
    assert_eq!(
        told,
        [
            "admin queue-define a done",
            "admin queue-define b done",
            "shop queue-delete a not-permitted",
            "- GET /v1/status - not-authorized",
            "shop GET /v1/queues/b/explain - not-permitted",
            "- POST /v1/leases/{token}/ack - not-authorized",
            "admin queue-pause a done",
            "admin queue-alter a invalid-definition",
        ]
    );
    for entry in &entries {
        assert!(
            entry["time"].is_u64() && entry["request-id"].is_string(),
            "{entry}"
        );
        assert!(entry["status"].is_u64(), "{entry}");
    }
    let files = std::fs::read_to_string(guarded.folder.path().join("audit/audit.jsonl"));
    let files = files.expect("the log");
    for hidden in [
        secret,
        &admin,
        &made[0],
        "oncue_wrong",
        "the-token-of-a-lease",
    ] {
        assert!(!files.contains(hidden), "{hidden} is in the log");
    }
    let page = guarded
        .call(&admin, "GET", "/v1/audit?max=2")
        .await
        .is(200)
        .json();
    assert_eq!(page["entries"].as_array().map(Vec::len), Some(2));
    let next = page["next"].as_str().expect("a cursor");
    let path = format!("/v1/audit?cursor={next}");
    let after = guarded.call(&admin, "GET", &path).await.is(200).json();
    assert_eq!(after["entries"], json!([]));
    let previous = page["previous"].as_str().expect("a cursor");
    let path = format!("/v1/audit?refused=true&before={previous}");
    let earlier = guarded.call(&admin, "GET", &path).await.is(200).json();
    let results = earlier["entries"].as_array().expect("entries").iter();
    let results: Vec<&Value> = results.map(|entry| &entry["result"]).collect();
    assert_eq!(
        results,
        [
            "not-permitted",
            "not-authorized",
            "not-permitted",
            "not-authorized"
        ]
    );
    assert_eq!(earlier["previous"], Value::Null);
    let mangled = next.replace('-', "-1");
    for (wrong, code) in [
        ("cursor=x", "invalid-cursor"),
        ("before=x", "invalid-cursor"),
        ("cursor=1-2&before=1-2", "invalid-parameter"),
        ("refused=maybe", "invalid-parameter"),
        (&format!("cursor={mangled}"), "invalid-cursor"),
    ] {
        guarded
            .call(&admin, "GET", &format!("/v1/audit?{wrong}"))
            .await
            .problem(400, code);
    }
}

/// Identity, action, object, message, number of messages and result of each entry.
fn told(entries: &[Value]) -> Vec<String> {
    let one = |entry: &Value| {
        let text = |name: &str| match &entry[name] {
            Value::String(text) => text.clone(),
            Value::Null => "-".to_owned(),
            other => other.to_string(),
        };
        let names = ["action", "object", "message", "messages", "result"];
        names.map(text).join(" ")
    };
    entries.iter().map(one).collect()
}

#[tokio::test]
async fn it_says_which_message_or_how_many() {
    let (guarded, admin) = Guarded::start().await;
    let put = async || {
        let put = guarded.call(&admin, "POST", "/v1/queues/a/messages").await;
        put.is(201).json()["id"].as_str().expect("an id").to_owned()
    };
    let id = put().await;
    let message = format!("/v1/queues/a/messages/{id}");
    guarded.call(&admin, "DELETE", &message).await.is(204);
    guarded.call(&admin, "DELETE", &message).await.is(404);
    let release = format!("/v1/queues/a/messages/{id}/release");
    guarded.call(&admin, "POST", &release).await.is(404);
    for _ in 0..3 {
        put().await;
    }
    let path = "/v1/queues/a/clear";
    guarded.call(&admin, "POST", path).await.is(200);
    let path = "/v1/queues/oncue.dead-letter/redrive";
    guarded.call(&admin, "POST", path).await.is(200);
    let path = "/v1/queues/oncue.dead-letter/discard";
    guarded.call(&admin, "POST", path).await.is(200);
    for _ in 0..2 {
        put().await;
    }
    let path = "/v1/queues/a?force=true";
    guarded.call(&admin, "DELETE", path).await.is(204);
    let entries = guarded.audited(&admin).await;
    assert_eq!(
        told(&entries[2..]),
        [
            format!("message-remove a {id} - done"),
            format!("message-remove a {id} - unknown-message"),
            format!("message-release a {id} - unknown-message"),
            "queue-clear a - 3 done".to_owned(),
            "queue-redrive oncue.dead-letter - 0 done".to_owned(),
            "queue-discard oncue.dead-letter - 0 done".to_owned(),
            "queue-delete a - 2 done".to_owned(),
        ]
    );
}

#[tokio::test]
async fn forms_are_written_down_like_the_api_and_refused_ones_as_refused() {
    let (guarded, admin) = Guarded::start().await;
    let form = ("content-type", "application/x-www-form-urlencoded");
    let login = format!("token={admin}");
    let entered = guarded.server.call("POST", "/login", &[form], login).await;
    let cookie = entered.is(303).header("set-cookie").to_owned();
    let cookie = ("cookie", cookie.split(';').next().expect("a pair"));
    let page = guarded.server.call("GET", "/", &[cookie], "").await.is(200);
    let page = String::from_utf8_lossy(&page.body).into_owned();
    let (_, csrf) = page.split_once("name=\"csrf\" value=\"").expect("a form");
    let csrf = csrf.split('"').next().expect("its end");
    let send = async |path: &str, body: &str, status: u16| {
        let headers = [form, cookie];
        let sent = guarded.server.call("POST", path, &headers, body.to_owned());
        sent.await.is(status);
    };
    guarded
        .call(&admin, "POST", "/v1/queues/a/messages")
        .await
        .is(201);
    send("/queues/a/pause", "paused=true", 403).await;
    let clear = format!("csrf={csrf}&confirm=b");
    send("/queues/a/clear", &clear, 303).await;
    let clear = format!("csrf={csrf}&confirm=a");
    send("/queues/a/clear", &clear, 303).await;
    let redrive = format!("csrf={csrf}&queue=b");
    send("/dead-letters/redrive", &redrive, 303).await;
    let discard = format!("csrf={csrf}&confirm=discard");
    send("/dead-letters/discard", &discard, 303).await;
    let nowhere = format!("csrf={csrf}&paused=true");
    send("/queues/nowhere/pause", &nowhere, 303).await;
    let entries = guarded.audited(&admin).await;
    assert_eq!(
        told(&entries[3..]),
        [
            "queue-pause a - - foreign-origin",
            "queue-clear a - - invalid-parameter",
            "queue-clear a - 1 done",
            "queue-redrive b - 0 done",
            "queue-discard oncue.dead-letter - 0 done",
            "queue-pause nowhere - - unknown-queue",
        ]
    );
    assert!(!entries.iter().any(|entry| entry.to_string().contains(csrf)));
}

/// Refusals of one who does not stop.
const MANY: usize = 500;

#[tokio::test]
async fn whoever_is_refused_again_and_again_does_not_push_the_past_out() {
    let shop = ("shop", Role::Application, grants(&["a"], &[], &[]));
    let (guarded, admin, made) = Guarded::with(&[shop]).await;
    for _ in 0..MANY {
        let refused = guarded.call(&made[0], "DELETE", "/v1/queues/b").await;
        refused.problem(403, "not-permitted");
    }
    let foreign = [("origin", "https://evil.example"), ("host", "localhost")];
    let foreign = guarded.server.call("POST", "/v1/pause", &foreign, "").await;
    foreign.problem(403, "foreign-origin");
    let entries = guarded.audited(&admin).await;
    let refusals = entries
        .iter()
        .filter(|entry| entry["result"] == "not-permitted")
        .count();
    // Twenty at once, and two a second since.
    assert!((20..MANY / 2).contains(&refusals), "{refusals}");
    let last = entries.last().expect("an entry");
    assert_eq!(last["result"], "foreign-origin");
    let unwritten: u64 = entries
        .iter()
        .filter_map(|entry| entry["unwritten"].as_u64())
        .sum();
    assert_eq!(unwritten + refusals as u64, MANY as u64);
}

/// Each kind of change has its entry, and each of them names who, from where and with what end.
#[tokio::test]
async fn every_kind_of_change_has_its_entry() {
    let (guarded, admin) = Guarded::start().await;
    let changes = crate::document::ROUTES.iter().filter(|route| {
        let is_traffic = ["/messages", "/get", "/v1/units", "/definitions/changes"]
            .iter()
            .any(|end| route.ends_with(end));
        !route.starts_with("GET") && !is_traffic && !route.contains("/leases/")
    });
    let mut asked = 0;
    for route in changes {
        let (method, template) = route.split_once(' ').expect("a method and a path");
        let path = crate::document::filled(template);
        guarded.call(&admin, method, &path).await;
        asked += 1;
        let entries = guarded.audited(&admin).await;
        assert_eq!(entries.len(), 2 + asked, "{route} is not written down");
        let last = entries.last().expect("an entry");
        assert_eq!(last["identity"], "admin", "{route}");
        let action = last["action"].as_str().expect("an action");
        assert!(!action.contains('/'), "{route} has no name: {action}");
        let is_on_object = template.contains('{');
        assert_eq!(last["object"] == "nowhere", is_on_object, "{route}");
    }
    assert!(asked > 15, "{asked} changes");
}
