//! Where a person comes in: a form that takes a token. It is sent to [`crate::auth::login`].

use askama::Template;

use super::frame::Frame;
use super::page::{Page, page};
use super::params::Params;
use super::viewer::Viewer;

#[derive(Template)]
#[template(path = "login.html")]
struct Login {
    frame: Frame,
    /// Where to go then.
    next: String,
    /// What was wrong the last time.
    fault: Option<&'static str>,
}

/// The page.
pub(super) async fn show(viewer: Viewer, params: Params) -> Page {
    let fault = match params.text("failed") {
        "" => None,
        "rate-limited" => Some("Too many tokens were tried from here. Wait a moment."),
        _ => Some("The token is not one of this host, was revoked, or has expired."),
    };
    page(&Login {
        frame: Frame::bare("login", &viewer),
        next: params.get("next").unwrap_or("/").to_owned(),
        fault,
    })
}
