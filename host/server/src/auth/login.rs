//! How a person at a browser comes in and goes: a token is exchanged for a cookie. The form itself
//! is a page of the console.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use oncue_core::code::Code;

use super::Who;
use crate::app::App;
use crate::audit;
use crate::console::Form;
use crate::error::Problem;
use crate::extract::Payload;
use crate::security::Peer;

/// Where a person comes in.
const LOGIN: &str = "/login";

/// Longest path that is gone back to, in bytes.
const MAX_NEXT: usize = 1_000;

/// The two routes. They are no part of the API: a program sends its token with each request.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route(LOGIN, post(come_in))
        .route("/logout", post(go))
}

/// A text as a part of a query.
pub(crate) fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes().take(MAX_NEXT) {
        if plain(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02x}"));
        }
    }
    encoded
}

async fn come_in(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let address = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
    let payload = Payload::read(&app, &parts, body).await?;
    let form = String::from_utf8_lossy(&payload.bytes);
    // The fields stand as in a query.
    let query = format!("{LOGIN}?{form}").parse::<axum::http::Uri>();
    let fields = query
        .ok()
        .and_then(|uri| axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&uri).ok());
    let fields = fields.map(|query| query.0).unwrap_or_default();
    let field = |name: &str| {
        let found = fields.iter().find(|(its, _)| its == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    };
    let next = own_path(field("next"));
    let security = &app.options.security;
    if !security.access.is_enforced() {
        return Ok(Redirect::to(next).into_response());
    }
    let login = security
        .access
        .login(field("token"), address, security.is_secure());
    match login {
        Ok((cookie, identity)) => {
            app.note("login", &identity.name, audit::DONE, address);
            Ok(([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response())
        }
        Err(problem) => {
            let code = problem.code();
            if code == Code::NotAuthorized {
                app.note("login", "", code.as_str(), address);
            }
            let back = format!("{LOGIN}?failed={code}&next={}", encode(next));
            Ok(Redirect::to(&back).into_response())
        }
    }
}

/// The form bears the token of its session, as every form does: another page cannot end it.
async fn go(State(app): State<App>, who: Who, parts: Parts, _form: Form) -> Response {
    let security = &app.options.security;
    let address = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
    app.note("logout", &who.0.name, audit::DONE, address);
    let cookie = security.access.logout(&parts.headers, security.is_secure());
    ([(header::SET_COOKIE, cookie)], Redirect::to(LOGIN)).into_response()
}

/// A path of this host, or its first page: never another host.
fn own_path(next: &str) -> &str {
    let own = next.starts_with('/')
        && !next.starts_with("//")
        && next.len() <= MAX_NEXT
        && next
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if own { next } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_to_another_host() {
        let check = |next: &str, wanted: &str| assert_eq!(own_path(next), wanted, "{next}");
        check("/queues/a?x=1", "/queues/a?x=1");
        check("//evil.example", "/");
        check("/\\evil.example", "/");
        check("https://evil.example", "/");
        check("", "/");
        check("/a\nb", "/");
        assert_eq!(encode("/queues/a b?c"), "/queues/a%20b%3fc");
    }
}
