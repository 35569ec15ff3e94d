//! The console of a host with tokens: each one sees what it may see, and is offered what it may do.

use axum::body::Body;
use axum::http::Request;
use oncue_manager::status::HostEvent;
use oncue_server::auth::identity::{Grants, Role};

use crate::console::{Page, send};
use crate::guarded::{Guarded, grants};

impl Guarded {
    /// A page, asked for with a token.
    async fn page(&self, token: &str, path: &str) -> Page {
        let request = Request::builder()
            .uri(path)
            .header("accept", "text/html")
            .header("authorization", format!("Bearer {token}"));
        let request = request.body(Body::empty()).expect("a request");
        send(&self.server, request).await
    }

    /// Sends a form, with the token that forms of a page carry.
    async fn form(&self, token: &str, page: &str, path: &str, form: &str) -> Page {
        let page = self.page(token, page).await;
        let carried = page.text.split("name=\"csrf\" value=\"").nth(1);
        let carried = carried.and_then(|rest| rest.split('"').next());
        let form = format!("{form}&csrf={}", carried.unwrap_or_default());
        let request = Request::post(path)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("authorization", format!("Bearer {token}"));
        send(
            &self.server,
            request.body(Body::from(form)).expect("a request"),
        )
        .await
    }
}

#[tokio::test]
async fn the_audit_log_is_a_page_for_administrators() {
    let operator = ("operator", Role::Operator, Grants::default());
    let (guarded, admin, made) = Guarded::with(&[operator]).await;
    guarded
        .page(&made[0], "/audit")
        .await
        .is(403)
        .has("lacks the right &#34;admin&#34;")
        .has("href=\"/ledger\"")
        .has_not("href=\"/audit\"");
    guarded.page(&made[0], "/").await.has_not("href=\"/audit\"");
    for _ in 0..60 {
        guarded
            .call(&made[0], "POST", "/v1/queues/a/pause")
            .await
            .is(200);
        guarded
            .call(&made[0], "POST", "/v1/queues/a/resume")
            .await
            .is(200);
    }
    let hostile = "/v1/queues/%3Cb%3E&%22/clear";
    guarded.call(&admin, "POST", hostile).await.is(400);
    let page = guarded.page(&admin, "/audit").await.is(200);
    let page = page
        .has("href=\"/audit\" aria-current=\"page\"")
        .has("&#60;b&#62;&#38;")
        .has_not("<b>")
        .has_not("data-live");
    assert_eq!(page.text.matches("<tr>\n").count(), 100);
    let first = page.text.find("queue-clear").expect("the newest");
    assert!(first < page.text.find("queue-resume").expect("one before"));
    let older = page.text.split("href=\"/audit?before=").nth(1);
    let older = older
        .and_then(|rest| rest.split('"').next())
        .expect("a link");
    let older = format!("/audit?before={older}");
    // What is left: of 120 pauses and the clear, and the definitions and refusals before them.
    let page = guarded.page(&admin, &older).await.is(200);
    let page = page
        .has("queue-define")
        .has("href=\"/queues/a\"")
        .has("<span class=\"badge warn\" title=\"request")
        .has(">Newest</a>")
        .has_not(">Older</a>");
    assert_eq!(page.text.matches("<tr>\n").count(), 24);
    let filtered = "/audit?identity=OPER&action=get&refused=1";
    let page = guarded.page(&admin, filtered).await.is(200);
    let page = page
        .has("GET /audit")
        .has("not-permitted")
        .has("value=\"OPER\"");
    assert_eq!(page.text.matches("<tr>\n").count(), 1);
    guarded
        .page(&admin, "/audit?object=nothing")
        .await
        .is(200)
        .has("No entry matches");
}

#[tokio::test]
async fn an_action_of_the_console_that_was_not_done_is_written_down_so() {
    let (guarded, admin, _) = Guarded::with(&[]).await;
    let unknown = guarded
        .form(&admin, "/queues/a", "/queues/nowhere/pause", "paused=true")
        .await;
    unknown.is(303);
    let unconfirmed = guarded
        .form(&admin, "/queues/a", "/queues/a/clear", "confirm=b")
        .await;
    unconfirmed.is(303);
    guarded
        .form(&admin, "/queues/a", "/queues/a/clear", "confirm=a")
        .await
        .is(303);
    guarded
        .form(&admin, "/audit", "/queues/a/clear", "confirm=a")
        .await
        .is(403);
    let entries = guarded.audited(&admin).await;
    let results: Vec<_> = entries
        .iter()
        .rev()
        .take(4)
        .map(|entry| (entry["object"].as_str(), entry["result"].as_str()))
        .collect();
    let wanted = [
        ("a", "foreign-origin"),
        ("a", "done"),
        ("a", "invalid-parameter"),
        ("nowhere", "unknown-queue"),
    ];
    assert_eq!(
        results,
        wanted.map(|(object, result)| (Some(object), Some(result)))
    );
}

/// Starts a task of queue `work` that traps, and waits for its end.
async fn fail(guarded: &Guarded, admin: &str) {
    crate::tasks::plugin(&guarded.server).await;
    let mut events = guarded.server.handle.events();
    let bearer = format!("Bearer {admin}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "test/trap"),
    ];
    let path = "/v1/queues/work/messages";
    guarded
        .server
        .call("POST", path, &headers, "boom")
        .await
        .is(201);
    while !matches!(
        events.recv().await.expect("an event"),
        HostEvent::TaskEnded { .. }
    ) {}
}

#[tokio::test]
async fn an_application_sees_its_queues_and_tasks_and_nothing_else() {
    let tokens = [
        ("putter", Role::Application, grants(&["work"], &[], &[])),
        ("reader", Role::Application, grants(&[], &[], &["work"])),
        ("other", Role::Application, grants(&["a"], &[], &[])),
        ("none", Role::Application, Grants::default()),
    ];
    let (guarded, admin, made) = Guarded::with(&tokens).await;
    let [putter, reader, other, none] = &made[..] else {
        panic!("four tokens");
    };
    fail(&guarded, &admin).await;
    // The first page: its own queues' numbers, none of the host's.
    let first = guarded.page(putter, "/").await.is(200);
    first
        .has("on 1 queue that you see")
        .has("href=\"/queues/work\"")
        .has("trapped")
        .has_not("unreachable executed")
        .has_not("href=\"/queues/b\"")
        .has_not("Dead letters")
        .has_not("Triggers fired")
        .has_not("Pause the host")
        .has_not("href=\"/plugins\"")
        .has_not("href=\"/ledger\"");
    guarded
        .page(reader, "/")
        .await
        .is(200)
        .has("unreachable executed");
    guarded
        .page(other, "/")
        .await
        .is(200)
        .has_not("trapped")
        .has_not("work");
    // The list of queues.
    let list = guarded.page(putter, "/queues").await.is(200);
    list.has("1–1 of 1")
        .has("href=\"/queues/work\"")
        .has_not("dead-letter");
    let list = guarded.page(none, "/queues").await.is(200);
    list.has("no right on any queue");
    let all = guarded.page(&admin, "/queues").await.is(200);
    all.has("href=\"/queues/b\"").has("oncue.dead-letter");
    // Tasks.
    let list = guarded.page(putter, "/tasks").await.is(200);
    let list = list.has("trapped").has_not("unreachable executed");
    let task = list.text.split("href=\"/tasks/").nth(1);
    let task = task
        .and_then(|rest| rest.split('"').next())
        .expect("a task");
    let task = format!("/tasks/{task}");
    guarded
        .page(other, "/tasks")
        .await
        .is(200)
        .has_not("badge bad\">trapped");
    guarded
        .page(putter, &task)
        .await
        .is(200)
        .has("who may browse its queue")
        .has_not("unreachable executed")
        .has_not("The message in hand")
        .has_not("href=\"/plugins/");
    guarded
        .page(reader, &task)
        .await
        .is(200)
        .has("unreachable executed")
        .has("The message in hand");
    guarded.page(other, &task).await.is(404).has("is not known");
    // What is of the host, or of another's queue, stays refused.
    for path in [
        "/queues/b",
        "/plugins",
        "/ledger",
        "/dead-letters",
        "/audit",
    ] {
        guarded
            .page(putter, path)
            .await
            .is(403)
            .has("href=\"/queues\"");
    }
    guarded.page(putter, "/queues/work/messages").await.is(403);
}

#[tokio::test]
async fn a_queues_page_offers_what_may_be_done() {
    let operates = Grants {
        operate: grants(&["a"], &[], &[]).put,
        ..Grants::default()
    };
    let tokens = [
        ("putter", Role::Application, grants(&["a"], &[], &[])),
        ("pauser", Role::Application, operates),
        ("observer", Role::Observer, Grants::default()),
    ];
    let (guarded, admin, made) = Guarded::with(&tokens).await;
    let (put, pause) = ("href=\"/queues/a/put\"", "action=\"/queues/a/pause\"");
    let (enable, browse) = ("action=\"/queues/a/enable\"", "href=\"/queues/a/messages\"");
    let check = async |token: &str, has: &[&str]| {
        let page = guarded.page(token, "/queues/a").await.is(200);
        for offer in [put, pause, enable, browse] {
            assert_eq!(page.text.contains(offer), has.contains(&offer), "{offer}");
        }
    };
    check(&made[0], &[put]).await;
    check(&made[1], &[pause]).await;
    check(&made[2], &[]).await;
    check(&admin, &[put, pause, enable, browse]).await;
    let done = guarded
        .form(&made[1], "/queues/a", "/queues/a/pause", "paused=true")
        .await;
    done.is(303);
    let put = guarded
        .form(&made[0], "/queues/a/put", "/queues/a/put", "body=x")
        .await;
    put.is(303);
    guarded
        .form(&made[0], "/queues/a/put", "/queues/a/pause", "paused=true")
        .await
        .is(403);
    // An observer sees the host, and not what handlers said of messages.
    fail(&guarded, &admin).await;
    let first = guarded.page(&made[2], "/").await.is(200);
    first
        .has("Triggers fired")
        .has("trapped")
        .has_not("unreachable executed");
    let page = guarded.page(&made[2], "/plugins/p").await;
    page.has_not("unreachable executed");
}
