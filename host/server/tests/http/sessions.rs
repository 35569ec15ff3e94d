//! A person at a browser: in, forms, out; and what ends with a token.

use std::pin::Pin;

use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use futures_core::Stream as _;
use oncue_manager::{Clock as _, SystemClock};
use oncue_server::auth::identity::{Grants, Role};
use oncue_server::auth::tokens::{Tokens, revoke};
use oncue_server::auth::{Access, Mode};
use oncue_server::{Security, ServerOptions};
use tower::ServiceExt as _;

use crate::guarded::{Guarded, grants, make};
use crate::harness::{Answered, Server};

#[tokio::test]
async fn a_person_comes_in_with_a_token_and_goes() {
    let (guarded, admin) = Guarded::start().await;
    // A page leads to where one comes in, and back.
    let page = guarded.server.get("/queues/a").await.is(303);
    assert_eq!(page.header("location"), "/login?next=/queues/a");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let wrong = "token=oncue_wrong&next=/queues/a";
    let wrong = guarded
        .server
        .call("POST", "/login", &form, wrong)
        .await
        .is(303);
    assert_eq!(
        wrong.header("location"),
        "/login?failed=not-authorized&next=/queues/a"
    );
    assert!(!wrong.headers.contains_key("set-cookie"));
    let right = format!("token={admin}&next=//evil.example");
    let right = guarded
        .server
        .call("POST", "/login", &form, right)
        .await
        .is(303);
    assert_eq!(right.header("location"), "/");
    let cookie = right.header("set-cookie").to_owned();
    let cookie = cookie.split(';').next().expect("a pair");
    let with = [("cookie", cookie)];
    guarded
        .server
        .call("GET", "/v1/status", &with, "")
        .await
        .is(200);
    let forged = guarded.server.call("POST", "/v1/pause", &with, "").await;
    forged.problem(403, "foreign-origin");
    // Another page can make the browser send a form, and has no token to put into it.
    for body in ["", "csrf=", "csrf=guess"] {
        let headers = [form[0], with[0]];
        let forged = guarded.server.call("POST", "/logout", &headers, body).await;
        forged.is(403);
    }
    let page = guarded.server.call("GET", "/", &with, "").await.is(200);
    let leave = format!("csrf={}", csrf_of(&page));
    let headers = [form[0], with[0]];
    let gone = guarded
        .server
        .call("POST", "/logout", &headers, leave)
        .await
        .is(303);
    assert_eq!(gone.header("location"), "/login");
    guarded
        .server
        .call("GET", "/v1/status", &with, "")
        .await
        .is(401);
    let entries = guarded.audited(&admin).await;
    let logins: Vec<_> = entries
        .iter()
        .filter(|it| it["action"] == "login")
        .collect();
    assert_eq!(logins.len(), 2, "{entries:#?}");
    assert_eq!(logins[1]["identity"], "admin");
    let last = entries.iter().rfind(|it| it["result"] == "done");
    assert_eq!(last.expect("an entry")["action"], "logout");
    // A form of a session that is over does nothing, and says so as a page.
    let headers = [form[0], with[0]];
    let late = guarded
        .server
        .call("POST", "/host/pause", &headers, "paused=true")
        .await;
    late.is(401);
}

/// The token of a page's forms.
pub(crate) fn csrf_of(page: &Answered) -> String {
    let page = String::from_utf8_lossy(&page.body);
    let (_, rest) = page
        .split_once("name=\"csrf\" value=\"")
        .expect("a form with a token");
    rest.split('"').next().expect("its end").to_owned()
}

#[tokio::test]
async fn a_form_of_a_session_carries_the_token_of_that_session() {
    let (guarded, admin) = Guarded::start().await;
    let form = ("content-type", "application/x-www-form-urlencoded");
    let enter = async || {
        let login = format!("token={admin}");
        let entered = guarded.server.call("POST", "/login", &[form], login).await;
        let cookie = entered.is(303).header("set-cookie").to_owned();
        let cookie = cookie.split(';').next().expect("a pair").to_owned();
        let page = guarded
            .server
            .call("GET", "/", &[("cookie", &cookie)], "")
            .await;
        (cookie, csrf_of(&page.is(200)))
    };
    let ((cookie, own), (_, foreign)) = (enter().await, enter().await);
    assert_ne!(own, foreign);
    let pause = async |csrf: &str| {
        let body = format!("csrf={csrf}&paused=true");
        let headers = [form, ("cookie", cookie.as_str())];
        guarded
            .server
            .call("POST", "/host/pause", &headers, body)
            .await
    };
    for csrf in ["", "0", &foreign] {
        pause(csrf).await.is(403);
    }
    let status = guarded.server.handle.status().await.expect("a status");
    assert!(!status.paused, "nothing was done");
    pause(&own).await.is(303);
    let status = guarded.server.handle.status().await.expect("a status");
    assert!(status.paused);
}

/// Opens a stream of events.
pub(crate) async fn stream(
    server: &Server,
    path: &str,
    headers: &[(&str, &str)],
) -> BodyDataStream {
    let mut request = Request::builder().uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).expect("a request");
    let response = server.router.clone().oneshot(request).await;
    let response = response.expect("infallible");
    assert_eq!(response.status(), 200, "{path}");
    response.into_body().into_data_stream()
}

/// Reads a stream to its end.
async fn end(mut stream: BodyDataStream) {
    while std::future::poll_fn(|context| Pin::new(&mut stream).poll_next(context))
        .await
        .is_some()
    {}
}

#[tokio::test]
async fn what_waits_ends_with_its_token() {
    let shop = ("shop", Role::Observer, grants(&[], &["a"], &[]));
    let (guarded, admin, made) = Guarded::with(&[shop]).await;
    let bearer = format!("Bearer {}", made[0]);
    let with = [("authorization", bearer.as_str())];
    let events = stream(&guarded.server, "/v1/events", &with).await;
    let live = stream(&guarded.server, "/live", &with).await;
    let get = guarded
        .server
        .call("POST", "/v1/queues/a/get?wait=60s", &with, "");
    let kept = format!("Bearer {admin}");
    let kept = [("authorization", kept.as_str())];
    let mut kept = stream(&guarded.server, "/v1/events", &kept).await;
    let path = Tokens::path(guarded.folder.path());
    let revoked = async {
        // The get waits by now: all others of this thread have had their turn.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        revoke(&path, "shop").expect("revoked");
        assert!(guarded.security.access.reload(true));
    };
    let (got, ()) = tokio::join!(get, revoked);
    got.problem(401, "not-authorized");
    end(events).await;
    end(live).await;
    // That of another token goes on.
    let first = std::future::poll_fn(|context| Pin::new(&mut kept).poll_next(context));
    let pause = guarded.call(&admin, "POST", "/v1/queues/a/pause");
    let define = guarded.json(&admin, "PUT", "/v1/queues/c", serde_json::json!({}));
    let (first, _, _) = tokio::join!(first, pause, define);
    first.expect("the stream goes on").expect("a part");
}

#[tokio::test]
async fn a_stream_ends_when_its_token_expires() {
    // A machine under load may be slower than the first of them.
    for seconds in [1, 10, 60] {
        let folder = tempfile::tempdir().expect("a directory");
        let end_of_it = SystemClock.now().0 + seconds * 1_000;
        let expires = Some(end_of_it);
        let token = make(&folder, "soon", Role::Observer, Grants::default(), expires);
        let security = Security {
            access: Access::load(folder.path(), Mode::Auto, None).expect("tokens"),
            ..Security::default()
        };
        let options = ServerOptions {
            security,
            ..ServerOptions::default()
        };
        let server = Server::with(options).await;
        let bearer = format!("Bearer {token}");
        let with = [("authorization", bearer.as_str())];
        if server.call("GET", "/v1/queues", &with, "").await.status == 401 {
            continue;
        }
        let stream = stream(&server, "/v1/events", &with).await;
        return end(stream).await;
    }
    panic!("a token of a minute had expired before it was used");
}

#[tokio::test]
async fn a_stream_of_a_host_that_asked_nobody_ends_with_its_first_token() {
    let folder = tempfile::tempdir().expect("a directory");
    let access = Access::load(folder.path(), Mode::Auto, None).expect("no tokens");
    let security = Security {
        access: access.clone(),
        ..Security::default()
    };
    let options = ServerOptions {
        security,
        ..ServerOptions::default()
    };
    let server = Server::with(options).await;
    let open = stream(&server, "/v1/events", &[]).await;
    make(&folder, "first", Role::Admin, Grants::default(), None);
    assert!(access.reload(true));
    end(open).await;
}

#[tokio::test]
async fn a_page_that_is_left_is_told_nothing_more() {
    let (guarded, admin) = Guarded::start().await;
    let form = ("content-type", "application/x-www-form-urlencoded");
    let login = format!("token={admin}");
    let entered = guarded.server.call("POST", "/login", &[form], login).await;
    let cookie = entered.is(303).header("set-cookie").to_owned();
    let cookie = ("cookie", cookie.split(';').next().expect("a pair"));
    let live = stream(&guarded.server, "/live", &[cookie]).await;
    let page = guarded.server.call("GET", "/", &[cookie], "").await.is(200);
    let leave = format!("csrf={}", csrf_of(&page));
    let headers = [form, cookie];
    let left = guarded.server.call("POST", "/logout", &headers, leave);
    left.await.is(303);
    end(live).await;
}
