//! The console of a host with tokens: each one sees what it may see, and is offered what it may do.

use axum::body::Body;
use axum::http::Request;
use oncue_server::auth::identity::{Grants, Role};

use crate::console::{Page, send};
use crate::guarded::Guarded;

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
        .has("GET /v1/audit")
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
