//! What stands before and behind every route: who may ask, how many, request ids, panics, problems.
//!
//! The listener is on loopback and has no authentication, so any program of this machine is
//! trusted; but a web page that is open in a browser here is not. A browser names the page's origin
//! and the host it believes to talk to, and a foreign one is refused.

use std::any::Any;
use std::net::IpAddr;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Response, header};
use axum::middleware::Next;
use axum::response::IntoResponse;
use oncue_core::code::Code;
use tracing::Instrument;

use crate::app::App;
use crate::error::Problem;
use crate::wire::header::REQUEST_ID;

/// Longest request id that is taken from a client, in bytes.
const MAX_REQUEST_ID: usize = 128;

/// Routes that answer whatever the load.
const ALWAYS: [&str; 2] = ["/livez", "/readyz"];

/// Routes that wait, and count themselves among those who do.
const WAITING: [&str; 2] = ["/v1/queues/{queue}/get", "/v1/events"];

/// The outermost layer: names the request, and writes the problem that comes back from within.
pub(crate) async fn answer(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> axum::response::Response {
    let id = request_id(request.headers()).unwrap_or_else(|| app.new_request_id());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let span = tracing::info_span!("request", %id, %method, path);
    let mut response = match check_origin(&app, request.headers()) {
        Ok(()) => next.run(request).instrument(span.clone()).await,
        Err(problem) => problem.into_response(),
    };
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
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
    let id = HeaderValue::try_from(id).expect("request ids are visible ASCII");
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// The id that the client gave, if it can stand in a header and a log line.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    let fits = !id.is_empty() && id.len() <= MAX_REQUEST_ID && id.bytes().all(plain);
    fits.then(|| id.to_owned())
}

/// Refuses what a page of another origin sends through a browser of this machine.
fn check_origin(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
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

/// Whether `HOST[:PORT]` is a name of this machine or an allowed one.
fn is_known_host(host: &str, allowed: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let name = name.to_ascii_lowercase();
    name == "localhost"
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
        || allowed
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(&name))
}

/// Bounds the requests that are worked on at a time.
pub(crate) async fn limit(
    State(app): State<App>,
    path: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> axum::response::Response {
    let path = path.as_ref().map_or("", MatchedPath::as_str);
    if ALWAYS.contains(&path) || WAITING.contains(&path) {
        return next.run(request).await;
    }
    match app.admit() {
        Ok(_place) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// The answer after a panic. The panic's message goes to the log only.
pub(crate) fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response<Body> {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!("a route panicked: {}", text.unwrap_or("no message"));
    Problem::internal().into_response()
}

/// No such path.
pub(crate) async fn not_found(request: Request) -> Problem {
    let path: String = request.uri().path().chars().take(200).collect();
    let detail = format!(
        "path \"{}\" does not exist; see /openapi.json",
        path.escape_debug()
    );
    Problem::new(Code::NotFound, detail)
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
