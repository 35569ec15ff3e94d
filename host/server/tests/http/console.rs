//! The console's pages, as a browser without script gets them.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use tower::ServiceExt as _;

use crate::harness::Server;

/// A page as it came.
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Page {
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self
    }

    /// Demands a text in the page.
    #[track_caller]
    pub(crate) fn has(self, text: &str) -> Self {
        assert!(self.text.contains(text), "no {text} in\n{}", self.text);
        self
    }

    #[track_caller]
    pub(crate) fn has_not(self, text: &str) -> Self {
        assert!(!self.text.contains(text), "{text} in\n{}", self.text);
        self
    }

    /// Where the browser is sent.
    #[track_caller]
    pub(crate) fn location(&self) -> &str {
        assert_eq!(self.status, 303, "{}", self.text);
        self.headers["location"].to_str().expect("ASCII")
    }
}

pub(crate) async fn send(server: &Server, request: Request<Body>) -> Page {
    let answer = server.router.clone().oneshot(request).await;
    let (parts, body) = answer.expect("infallible").into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a body");
    Page {
        status: parts.status,
        headers: parts.headers,
        text: String::from_utf8_lossy(&body).into_owned(),
    }
}

async fn get(server: &Server, path: &str) -> Page {
    let request = Request::builder().uri(path).header("accept", "text/html");
    send(server, request.body(Body::empty()).expect("a request")).await
}

/// Sends a form as it stands.
async fn post(server: &Server, path: &str, form: &str) -> Page {
    let request = Request::post(path).header("content-type", "application/x-www-form-urlencoded");
    let body = Body::from(form.to_owned());
    send(server, request.body(body).expect("a request")).await
}

/// The token in a page's forms.
async fn token(server: &Server) -> String {
    server
        .json(
            "PUT",
            "/v1/queues/token",
            serde_json::json!({"trigger": "none"}),
        )
        .await;
    let page = get(server, "/queues/token").await.is(200);
    let rest = page.text.split("name=\"csrf\" value=\"").nth(1);
    let token = rest
        .and_then(|rest| rest.split('"').next())
        .expect("a token");
    token.to_owned()
}

/// Sends a form with the token, and opens the page that it leads to.
async fn act(server: &Server, path: &str, form: &str) -> Page {
    let token = token(server).await;
    let sent = post(server, path, &format!("{form}&csrf={token}")).await;
    let location = sent.location().to_owned();
    get(server, &location).await.is(200)
}

/// Every page that needs no object.
const PAGES: [&str; 7] = [
    "/audit",
    "/dead-letters",
    "/",
    "/queues",
    "/tasks",
    "/plugins",
    "/ledger",
];

/// Every action.
const ACTIONS: [&str; 12] = [
    "/queues/q/trigger",
    "/queues/q/pause",
    "/queues/q/enable",
    "/queues/q/clear",
    "/queues/q/put",
    "/queues/q/messages/000000010000000000000001/release",
    "/queues/q/messages/000000010000000000000001/remove",
    "/host/pause",
    "/dead-letters/redrive",
    "/dead-letters/discard",
    "/plugins/p/rollback",
    "/processes/p/pause",
];

#[tokio::test]
async fn every_page_opens_with_nothing_to_show() {
    let server = Server::start().await;
    for path in PAGES {
        let page = get(&server, path).await.is(200);
        assert_eq!(
            page.headers["content-type"], "text/html; charset=utf-8",
            "{path}"
        );
        page.has("aria-current=\"page\"")
            .has("<main")
            .has("</html>");
    }
}

#[tokio::test]
async fn every_page_is_guarded_against_other_pages() {
    let server = Server::start().await;
    for path in PAGES.into_iter().chain(["/queues/unknown", "/nowhere"]) {
        let page = get(&server, path).await;
        let policy = page.headers["content-security-policy"]
            .to_str()
            .expect("ASCII");
        assert!(policy.contains("default-src 'self'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(page.headers["x-frame-options"], "DENY");
        assert_eq!(page.headers["x-content-type-options"], "nosniff");
        assert_eq!(page.headers["referrer-policy"], "same-origin");
        assert_eq!(page.headers["cache-control"], "no-store");
        // Nothing inline, nothing from elsewhere: the policy would refuse it.
        page.has_not("<style")
            .has_not(" style=")
            .has_not(" onclick=")
            .has_not("://");
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_on_a_page() {
    let server = Server::start().await;
    get(&server, "/queues/unknown")
        .await
        .is(404)
        .has("queue &#34;unknown&#34; is not defined");
    get(&server, "/queues/a%20b").await.is(400).has("<main");
    get(&server, "/tasks/7")
        .await
        .is(404)
        .has("task 7 is not known");
    get(&server, "/tasks/x").await.is(400).has("<main");
    get(&server, "/nowhere")
        .await
        .is(404)
        .has("there is no page");
    server.get("/v1/nowhere").await.problem(404, "not-found");
    server.queue("q").await;
    let path = "/queues/q/messages/000000010000000000000001";
    get(&server, path).await.is(404).has("is not on queue");
}

#[tokio::test]
async fn files_of_the_console_are_sent_under_their_hash() {
    let server = Server::start().await;
    let page = get(&server, "/").await.is(200);
    let mut seen = 0;
    for part in page.text.split("\"/assets/").skip(1) {
        let path = format!("/assets/{}", part.split('"').next().expect("an address"));
        let file = get(&server, &path).await.is(200);
        let cache = file.headers["cache-control"].to_str().expect("ASCII");
        assert!(cache.contains("immutable"), "{cache}");
        assert_eq!(file.headers["x-content-type-options"], "nosniff");
        assert_eq!(file.headers["referrer-policy"], "same-origin");
        let kind = file.headers["content-type"]
            .to_str()
            .expect("ASCII")
            .to_owned();
        let wanted = match path.rsplit('.').next() {
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            _ => "image/svg+xml",
        };
        assert_eq!(kind, wanted, "{path}");
        seen += 1;
    }
    assert!(seen >= 4, "{seen} files");
    get(&server, "/assets/0000000000000000/console.css")
        .await
        .is(404);
}

#[tokio::test]
async fn no_form_is_taken_without_its_token() {
    let server = Server::start().await;
    server.queue("q").await;
    for path in ACTIONS {
        let refused = post(&server, path, "on=false&paused=true").await.is(403);
        refused.has("token");
        post(&server, path, "csrf=0&on=false&paused=true")
            .await
            .is(403);
        let request = Request::post(path).header("content-type", "text/plain");
        let body = Body::from("csrf=0");
        send(&server, request.body(body).expect("a request"))
            .await
            .is(415);
    }
    let status = server.handle.status().await.expect("a status");
    assert!(!status.paused, "nothing was done");
}

#[tokio::test]
async fn hostile_texts_are_shown_and_not_obeyed() {
    let server = Server::start().await;
    server.queue("q").await;
    let hostile = "<script>alert(1)</script>\"'&";
    let encoded = "%3Cscript%3Ealert(1)%3C/script%3E\"'&";
    let headers = [
        ("oncue-correlation-id", encoded),
        ("oncue-group", encoded),
        ("content-type", "text/html"),
        ("oncue-property-x", encoded),
    ];
    let id = server.put("q", &headers, hostile).await;
    for path in [
        "/queues/q/messages".to_owned(),
        format!("/queues/q/messages/{id}"),
        format!("/queues/q/messages/{id}?as=text"),
        "/queues/q/messages?find=%3Cscript%3E".to_owned(),
    ] {
        let page = get(&server, &path).await.is(200);
        page.has("&#60;script&#62;alert(1)").has_not("<script>");
    }
    // What a browser would drop, or write from right to left, is shown.
    let turned = [("oncue-correlation-id", "%E2%80%AEgnp.exe")];
    let id = server.put("q", &turned, "a\0b\u{202e}c").await;
    get(&server, &format!("/queues/q/messages/{id}"))
        .await
        .is(200)
        .has("⟨U+202E⟩gnp.exe")
        .has("a⟨U+0000⟩b⟨U+202E⟩c")
        .has_not("\u{202e}");
    let search = "/queues?search=%22%3E%3Cscript%3E";
    get(&server, search)
        .await
        .is(200)
        .has_not("\"><script>")
        .has("No queue matches");
}

#[tokio::test]
async fn the_list_of_queues_is_searched_sorted_and_paged() {
    let server = Server::start().await;
    for number in 0..120 {
        server.queue(&format!("q-{number:03}")).await;
    }
    server.put("q-050", &[], "a").await;
    let page = get(&server, "/queues").await.is(200);
    page.has("1–100 of 122").has("q-000").has_not("q-110");
    let page = get(&server, "/queues?page=2").await.is(200);
    page.has("101–122 of 122").has("q-110").has_not("q-000");
    let page = get(&server, "/queues?search=Q-05&sort=depth").await.is(200);
    page.has("1–10 of 10, 122 are defined")
        .has("q-050")
        .has_not("q-060");
    let page = get(&server, "/queues?hide-empty=1").await.is(200);
    page.has("1–1 of 1").has("q-050").has_not("q-051");
    let page = get(&server, "/queues?sort=depth").await.is(200);
    let first = page.text.find("q-050").expect("the deepest");
    assert!(first < page.text.find("q-000").expect("an empty one"));
}

#[tokio::test]
async fn actions_are_done_and_said() {
    let server = Server::start().await;
    server.queue("q").await;
    let form = "body=hello&content-type=text%2Fplain&priority=3";
    act(&server, "/queues/q/put", form)
        .await
        .has("class=\"note good\"");
    assert_eq!(server.ids("q").await.len(), 1);
    act(&server, "/queues/q/pause", "paused=true")
        .await
        .has("Resume");
    act(&server, "/queues/q/pause", "paused=false")
        .await
        .has("is resumed");
    act(&server, "/queues/q/trigger", "on=false")
        .await
        .has("trigger off by operator");
    act(&server, "/queues/q/enable", "put=false")
        .await
        .has("put disabled");
    let token = token(&server).await;
    let put = post(&server, "/queues/q/put", &format!("csrf={token}&body=kept")).await;
    put.is(403).has("put is disabled").has("kept</textarea>");
    act(&server, "/queues/q/clear", "confirm=Q")
        .await
        .has("note bad")
        .has("nothing was done");
    assert_eq!(server.ids("q").await.len(), 1);
    act(&server, "/queues/q/clear", "confirm=q")
        .await
        .has("1 message removed");
    assert_eq!(server.ids("q").await.len(), 0);
    act(&server, "/host/pause", "paused=true")
        .await
        .has("The host is paused");
}

#[tokio::test]
async fn the_form_of_a_put_comes_back_with_what_was_typed() {
    let server = Server::start().await;
    server.queue("q").await;
    let token = token(&server).await;
    let form = get(&server, "/queues/q/put").await.is(200);
    form.has("enctype=\"multipart/form-data\"")
        .has_not("data-live");
    get(&server, "/queues/nowhere/put").await.is(404);
    let form = format!(
        "csrf={token}&kind=json&body=%0D%0A%7B%22a%22%3A%3Cb%3E&priority=x&delay=5s&\
         persistence=persistent&properties=%3Ci%3E"
    );
    let again = post(&server, "/queues/q/put", &form).await.is(400);
    // The line after the tag is the page's own, the next one was typed.
    again
        .has("role=\"alert\">Nothing was put: ")
        .has("aria-describedby=\"put-body-fault\">\n\n{&#34;a&#34;:&#60;b&#62;</textarea>")
        .has("is not JSON: expected value at line 2 column 6")
        .has("<option value=\"json\" selected>")
        .has("<option value=\"persistent\" selected>")
        .has("name=\"priority\" value=\"x\"")
        .has("id=\"put-priority-fault\">is &#34;x&#34;; use a whole number")
        .has("name=\"delay\" value=\"5s\"")
        .has("&#60;i&#62;</textarea>")
        .has_not("<i>");
    assert_eq!(server.ids("q").await.len(), 0);
    let large = format!("csrf={token}&priority=x&body={}", "y".repeat(2 << 20));
    let again = post(&server, "/queues/q/put", &large).await.is(400);
    assert!(again.text.len() < 100_000, "{}", again.text.len());
    again.has("too long to be shown again");
}

#[tokio::test]
async fn a_file_is_put_as_it_is() {
    let server = Server::start().await;
    server.queue("q").await;
    let token = token(&server).await;
    let mut form = format!(
        "--x\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\n{token}\r\n\
         --x\r\nContent-Disposition: form-data; name=\"expiry\"\r\n\r\n10m\r\n\
         --x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\
         Content-Type: image/png\r\n\r\n"
    )
    .into_bytes();
    let file: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
    form.extend_from_slice(&file);
    form.extend_from_slice(b"\r\n--x--\r\n");
    let request = |form: Vec<u8>| {
        let request = Request::post("/queues/q/put");
        let request = request.header("content-type", "multipart/form-data; boundary=x");
        request.body(Body::from(form)).expect("a request")
    };
    send(&server, request(form.clone())).await.is(303);
    let id = server.ids("q").await[0].clone();
    let message = server
        .get(&format!("/v1/queues/q/messages/{id}"))
        .await
        .is(200);
    assert_eq!(message.header("content-type"), "image/png");
    assert!(
        message.headers.contains_key("oncue-expiry"),
        "{:?}",
        message.headers
    );
    assert_eq!(&message.body[..], &file[..]);
    // One that was cut off, and one without the token.
    form.truncate(form.len() - 8);
    send(&server, request(form))
        .await
        .is(400)
        .has("cannot be read");
    send(&server, request(b"--x--".to_vec())).await.is(403);
    assert_eq!(server.ids("q").await.len(), 1);
}

#[tokio::test]
async fn a_notice_is_shown_once() {
    let server = Server::start().await;
    let token = token(&server).await;
    let sent = post(
        &server,
        "/queues/token/pause",
        &format!("paused=true&csrf={token}"),
    )
    .await;
    let location = sent.location().to_owned();
    get(&server, &location)
        .await
        .is(200)
        .has("class=\"note good\"");
    get(&server, &location)
        .await
        .is(200)
        .has_not("class=\"note good\"");
}

#[tokio::test]
async fn a_message_is_removed_once_it_is_confirmed() {
    let server = Server::start().await;
    server.queue("q").await;
    let id = server.put("q", &[], "a").await;
    let path = format!("/queues/q/messages/{id}");
    act(&server, &format!("{path}/remove"), "confirm=no")
        .await
        .has("note bad");
    assert_eq!(server.ids("q").await.len(), 1);
    act(&server, &format!("{path}/remove"), "confirm=remove")
        .await
        .has("is removed");
    assert_eq!(server.ids("q").await.len(), 0);
}

/// A queue whose messages trap, with so many dead letters that came from it.
async fn dead_letters(server: &Server, queue: &str, count: usize) {
    let set = serde_json::json!({"trigger": "none", "backout-threshold": 1});
    server
        .json("PUT", &format!("/v1/queues/{queue}"), set)
        .await
        .is(201);
    for _ in 0..count {
        server
            .put(queue, &[("oncue-property-lane", "<b>7")], "poison")
            .await;
    }
    // Given back by a consumer as often as the threshold allows.
    for _ in 0..count {
        let got = server
            .post(&format!("/v1/queues/{queue}/get"))
            .await
            .is(200);
        let token = got.header("oncue-lease").to_owned();
        server.post(&format!("/v1/leases/{token}/nack")).await;
    }
    assert_eq!(server.ids(queue).await.len(), 0);
}

#[tokio::test]
async fn dead_letters_are_grouped_redriven_and_discarded() {
    let server = Server::start().await;
    dead_letters(&server, "a", 3).await;
    dead_letters(&server, "b", 2).await;
    let page = get(&server, "/dead-letters").await.is(200);
    page.has("<span class=\"badge bad\">consumer</span>")
        .has("All of them");
    let only = get(&server, "/dead-letters?from=b&reason=consumer")
        .await
        .is(200);
    assert_eq!(only.text.matches("data-pick ").count(), 2, "{}", only.text);

    let none = act(&server, "/dead-letters/redrive", "scope=picked").await;
    none.has("note bad").has("no dead letter is ticked");
    let picked = server.ids("oncue.dead-letter").await[0].clone();
    let form = format!("scope=picked&id={picked}");
    act(&server, "/dead-letters/redrive", &form)
        .await
        .has("1 dead letter went back");
    assert_eq!(server.ids("a").await.len(), 1);
    act(&server, "/dead-letters/redrive", "scope=all&from=a")
        .await
        .has("2 dead letters went");
    assert_eq!(server.ids("a").await.len(), 3);

    let form = "scope=all&from=b&confirm=no";
    act(&server, "/dead-letters/discard", form)
        .await
        .has("nothing was done");
    assert_eq!(server.ids("oncue.dead-letter").await.len(), 2);
    let form = "scope=all&from=b&confirm=discard";
    act(&server, "/dead-letters/discard", form)
        .await
        .has("2 dead letters are discarded");
    get(&server, "/dead-letters")
        .await
        .is(200)
        .has("No message has failed for good");
}

#[tokio::test]
async fn dead_letters_are_exported_a_line_each() {
    let server = Server::start().await;
    dead_letters(&server, "a", 2).await;
    dead_letters(&server, "b", 1).await;
    let file = get(&server, "/dead-letters/export?from=a").await.is(200);
    assert_eq!(file.headers["content-type"], "application/jsonl");
    let name = file.headers["content-disposition"].to_str().expect("ASCII");
    assert_eq!(name, "attachment; filename=\"oncue.dead-letter.jsonl\"");
    let lines: Vec<serde_json::Value> = file
        .text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert_eq!(line["body"], "poison");
        assert_eq!(line["properties"]["lane"], "<b>7");
        assert_eq!(line["dead-letter"]["queue"], "a");
    }
    get(&server, "/dead-letters/export?queue=none")
        .await
        .is(404);
}
