//! What stands before and behind every route: who may ask, how many, request ids, panics, problems.
//!
//! Without tokens the listener is on loopback, and any program of this machine is trusted; but a
//! web page that is open in a browser here is not. A browser names the page's origin and the host
//! it believes to talk to, and a foreign one is refused. With tokens, each request names who asks
//! ([`crate::auth`]), and is held to the rights that its route needs.

use std::any::Any;
use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use oncue_core::code::Code;
use tokio::sync::OwnedSemaphorePermit;
use tower::Service;
use tracing::Instrument;

use crate::app::App;
use crate::asked::{Asked, note};
use crate::audit::Told;
use crate::auth::rights::{self, Found};
use crate::auth::{Caller, login, not_permitted};
use crate::console::{self, LIVE_PATH, PageError, Viewer};
use crate::error::Problem;
use crate::listener::Work;
use crate::security::Peer;
use crate::wire::header::REQUEST_ID;

/// Longest request id that is taken from a client, in bytes.
const MAX_REQUEST_ID: usize = 128;

/// Routes that answer whatever the load.
const ALWAYS: [&str; 3] = ["/livez", "/readyz", "/startupz"];

/// The event stream.
const EVENTS: &str = "/v1/events";

/// Everything under `/v1` and the host's own paths, with all bounds: one service around the routes,
/// because each layer around a route is copied and boxed for each request.
#[derive(Clone)]
pub struct Api {
    app: App,
    routes: Router,
    work: Option<Work>,
    peer: Option<Peer>,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

impl Api {
    pub(crate) fn new(app: App, routes: Router) -> Self {
        Self {
            app,
            routes,
            work: None,
            peer: None,
        }
    }

    /// The same for one connection, whose requests are counted as work.
    pub(crate) fn on(&self, work: Work, peer: Peer) -> Self {
        Self {
            work: Some(work),
            peer: Some(peer),
            ..self.clone()
        }
    }
}

impl Service<Request> for Api {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let api = self.clone();
        Box::pin(async move {
            // Waiting for the answer is not idleness.
            let _counted = api.work.map(Work::count);
            Ok(answer(&api.app, api.routes, api.peer, request).await)
        })
    }
}

/// Noted by whoever reads a request's body to its end.
#[derive(Clone)]
pub(crate) struct BodyRead(pub(crate) Arc<AtomicBool>);

/// Names the request, asks the route, and writes the problem that comes back.
async fn answer(app: &App, routes: Router, peer: Option<Peer>, mut request: Request) -> Response {
    let id = request_id(request.headers()).unwrap_or_else(|| app.new_request_id());
    let span = tracing::info_span!(
        "request", %id, method = %request.method(), path = request.uri().path()
    );
    // What is left of a body that nobody read stands where the next request would; it may be long,
    // or never come. So the connection ends with the answer, and the answer says so.
    let read = (!request.body().is_end_stream()).then(|| Arc::new(AtomicBool::new(false)));
    if let Some(read) = &read {
        request.extensions_mut().insert(BodyRead(Arc::clone(read)));
    }
    let (asked, admitted) = admit(app, &mut request, peer);
    let viewer =
        (!rights::is_api(request.uri().path())).then(|| Viewer::of(app, request.extensions()));
    let mut response = match admitted {
        Ok(_place) => contained(routes, request).instrument(span.clone()).await,
        Err(problem) => refusal(&request, problem),
    };
    let problem = response.extensions_mut().remove::<Problem>();
    let told = response.extensions_mut().remove::<Told>();
    let code = problem.as_ref().map(Problem::code);
    let code = code.or_else(|| console::failure_of(&response));
    note(app, &asked, code, told, &response, &id);
    if let Some(viewer) = viewer {
        response = console::dressed(&viewer, response);
    }
    if let Some(problem) = problem {
        if problem.is_ours() {
            tracing::error!(parent: &span, code = %problem.code(), "{}", problem.detail());
        } else {
            tracing::debug!(parent: &span, code = %problem.code(), "{}", problem.detail());
        }
        let mut written = problem.write(&id);
        // Says which methods the path has, where the method was wrong.
        if let Some(allow) = response.headers().get(header::ALLOW) {
            written.headers_mut().insert(header::ALLOW, allow.clone());
        }
        response = written;
    }
    let status = response.status();
    let headers = response.headers_mut();
    if status == StatusCode::OK || status.is_client_error() {
        protect(headers);
    }
    let id = HeaderValue::try_from(id).expect("request ids are visible ASCII");
    headers.insert(REQUEST_ID, id);
    if read.is_some_and(|read| !read.load(Ordering::SeqCst)) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The answer to a request that was not admitted. A page that needs an identity leads to where one
/// is given, and one that needs more rights says so as a page.
fn refusal(request: &Request, problem: Problem) -> Response {
    let path = request.uri().path();
    let found = rights::find(request.method(), path);
    if !found.is_some_and(|found| found.is_page) {
        return problem.into_response();
    }
    if problem.code() != Code::NotAuthorized || *request.method() != Method::GET {
        return PageError::from(problem).into_response();
    }
    let login = format!("/login?next={}", login::encode(path));
    Redirect::to(&login).into_response()
}

/// Says that nobody keeps an answer or guesses what it is, where the route says nothing else.
fn protect(headers: &mut HeaderMap) {
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    let no_store = || HeaderValue::from_static("no-store");
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert_with(no_store);
}

/// Whether the request may go to its route, and a place among those that are worked on.
fn admit(
    app: &App,
    request: &mut Request,
    peer: Option<Peer>,
) -> (Asked, Result<Option<OwnedSemaphorePermit>, Problem>) {
    let found = rights::find(request.method(), request.uri().path());
    let is_logged = app.options.security.audit.is_some();
    let mut asked = Asked::of(found.as_ref(), request, peer, is_logged);
    let named = check_origin(app, request.headers())
        .and_then(|()| identify(app, request, &mut asked, found.as_ref()));
    if let (Some(peer), false) = (peer, rights::is_api(request.uri().path())) {
        request.extensions_mut().insert(peer);
    }
    // Also for one who is refused: the page that says so is for that one.
    if let Some(Caller {
        identity,
        csrf,
        proof,
    }) = asked.caller.take()
    {
        let waits = waits(request.uri().path());
        request.extensions_mut().insert(identity);
        if waits {
            request.extensions_mut().insert(proof);
        }
        if let Some(csrf) = csrf {
            request.extensions_mut().insert(csrf);
        }
    }
    let admitted = named.and_then(|()| place(app, request));
    (asked, admitted)
}

/// Finds out who asks, where somebody must, and whether that one may.
fn identify(
    app: &App,
    request: &Request,
    asked: &mut Asked,
    found: Option<&Found<'_>>,
) -> Result<(), Problem> {
    let security = &app.options.security;
    let access = &security.access;
    if !access.is_enforced() {
        if asked.rule.is_none_or(|rule| rule.action.is_some()) {
            asked.identity = Some(Arc::clone(access.local()));
        }
        return access.check_rate(access.local());
    }
    security.look_at_tokens(false);
    if found.is_some_and(|found| found.rule.need == rights::Need::Nothing) {
        return Ok(());
    }
    let address = asked.peer.map(|peer| peer.0.ip());
    let route = (request.method(), request.uri().path());
    let caller = access.caller(route, request.headers(), address, security.is_secure())?;
    let identity = Arc::clone(&caller.identity);
    asked.identity = Some(Arc::clone(&identity));
    asked.caller = Some(caller);
    access.check_rate(&identity)?;
    let held = match found {
        Some(found) => found.check(&identity),
        None => rights::unlisted(&identity),
    };
    held.map_err(|missing| not_permitted(&identity, &missing))
}

/// Runs a route; its panic is answered, and logged here only.
async fn contained(mut routes: Router, request: Request) -> Response {
    let mut running = std::pin::pin!(async move {
        let Ok(response) = routes.call(request).await;
        response
    });
    std::future::poll_fn(|context| {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(context)));
        polled.unwrap_or_else(|panic| Poll::Ready(panicked(&*panic)))
    })
    .await
}

/// The id that the client gave, if it can stand in a header and a log line.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    let fits = !id.is_empty() && id.len() <= MAX_REQUEST_ID && id.bytes().all(plain);
    fits.then(|| id.to_owned())
}

/// Refuses what a page of another origin sends through a browser.
fn check_origin(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    if app.options.security.access.is_enforced() {
        return check_same_origin(headers);
    }
    // Only browsers send an origin, and all of them send a host: without one there is no page.
    for (name, prefix) in [(header::HOST, ""), (header::ORIGIN, "://")] {
        let Some(value) = headers.get(&name) else {
            continue;
        };
        let value = String::from_utf8_lossy(value.as_bytes());
        let host = value.split_once(prefix).map_or("", |(_, host)| host);
        if !is_known_host(host, &app.options.allowed_hosts) {
            let detail = format!(
                "the {name} header names \"{}\", which is not this machine; only programs of this \
                 machine may use the queue manager",
                value.escape_debug()
            );
            return Err(Problem::new(Code::ForeignOrigin, detail));
        }
    }
    Ok(())
}

/// The same where every request bears a secret that only this host's own pages have: whatever its
/// name is, the page must be of it.
fn check_same_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    let its = origin.to_str().ok().and_then(|it| it.split_once("://"));
    if its.is_some_and(|(_, its)| Some(its.as_bytes()) == host) {
        return Ok(());
    }
    let origin = String::from_utf8_lossy(origin.as_bytes());
    let detail = format!(
        "the origin header names \"{}\", which is not this host; only its own pages may use it",
        origin.escape_debug()
    );
    Err(Problem::new(Code::ForeignOrigin, detail))
}

/// Whether `HOST[:PORT]` is a name of this machine or an allowed one.
fn is_known_host(host: &str, allowed: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
        || allowed
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(name))
}

/// A place among those that are worked on, for what needs one.
fn place(app: &App, request: &Request) -> Result<Option<OwnedSemaphorePermit>, Problem> {
    let path = request.uri().path();
    if ALWAYS.contains(&path) || waits(path) {
        return Ok(None);
    }
    let looks = matches!(*request.method(), Method::GET | Method::HEAD);
    if looks {
        app.admit()
    } else {
        app.admit_change()
    }
    .map(Some)
}

/// Whether an answer of the path may last long: such a route counts itself among those who wait,
/// and looks whether whoever waits still may.
fn waits(path: &str) -> bool {
    path == EVENTS || path == LIVE_PATH || is_get(path)
}

/// Whether the path is a queue's `get`.
fn is_get(path: &str) -> bool {
    let queue = path.strip_prefix("/v1/queues/");
    let queue = queue.and_then(|rest| rest.strip_suffix("/get"));
    queue.is_some_and(|queue| !queue.contains('/'))
}

/// The answer after a panic. The panic's message goes to the log only.
fn panicked(panic: &(dyn Any + Send)) -> Response {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!("a route panicked: {}", text.unwrap_or("no message"));
    Problem::internal().into_response()
}

/// No such path.
pub(crate) async fn not_found(request: Request) -> Response {
    if let Some(page) = console::not_found(&request) {
        return page;
    }
    let path: String = request.uri().path().chars().take(200).collect();
    let detail = format!(
        "path \"{}\" does not exist; see /openapi.json",
        path.escape_debug()
    );
    Problem::new(Code::NotFound, detail).into_response()
}

/// The path exists, the method does not.
pub(crate) async fn method_not_allowed(request: Request) -> Problem {
    let (method, path) = (request.method(), request.uri().path());
    let path: String = path.chars().take(200).collect();
    let detail = format!(
        "path \"{}\" has no method {method}; see the allow header or /openapi.json",
        path.escape_debug()
    );
    Problem::new(Code::MethodNotAllowed, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, known: bool) {
        let allowed = ["queues.example.com".to_owned()];
        assert_eq!(is_known_host(host, &allowed), known, "{host}");
    }

    #[test]
    fn hosts_of_this_machine_are_known() {
        check("127.0.0.1:7373", true);
        check("127.8.8.8", true);
        check("LocalHost:7373", true);
        check("[::1]:7373", true);
        check("queues.example.com", true);
        check("Queues.Example.com:443", true);
        check("", false);
        check("evil.example.com", false);
        check("localhost.evil.example.com", false);
        check("10.0.0.1:7373", false);
        check("[2001:db8::1]:7373", false);
    }

    #[test]
    fn only_a_queues_own_get_waits() {
        for (path, waits) in [
            ("/v1/queues/orders/get", true),
            ("/v1/queues/get", false),
            ("/v1/queues/get/messages", false),
            ("/v1/queues/a/messages/get", false),
        ] {
            assert_eq!(is_get(path), waits, "{path}");
        }
    }

    #[test]
    fn only_plain_request_ids_are_taken() {
        let id = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, value.parse().expect("a value"));
            request_id(&headers)
        };
        assert_eq!(id("trace-1.a_b:c").as_deref(), Some("trace-1.a_b:c"));
        assert_eq!(id("a b"), None);
        assert_eq!(id(""), None);
        assert_eq!(id(&"x".repeat(129)), None);
    }
}
