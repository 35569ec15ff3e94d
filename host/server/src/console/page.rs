//! A page as an answer, and the page of what went wrong.

use askama::Template;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use oncue_core::code::Code;
use oncue_manager::error::ApiError;

use super::frame::Frame;
use crate::error::Problem;

/// What a page answers with.
pub(super) type Page = Result<Response, PageError>;

/// Writes a page.
pub(super) fn page(template: &impl Template) -> Page {
    match template.render() {
        Ok(text) => Ok(Html(text).into_response()),
        Err(error) => {
            tracing::error!("a page could not be written: {error}");
            Err(PageError(Problem::internal()))
        }
    }
}

/// Why there is no page, or why an action was not done.
#[derive(Debug)]
pub(crate) struct PageError(Problem);

impl PageError {
    /// The sentence.
    pub(super) fn text(&self) -> &str {
        self.0.detail()
    }
}

impl From<Problem> for PageError {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<ApiError> for PageError {
    fn from(error: ApiError) -> Self {
        Self(error.into())
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    frame: Frame,
    status: u16,
    title: String,
    detail: String,
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        if self.0.is_ours() {
            tracing::error!(code = %self.0.code(), "{}", self.0.detail());
        }
        let status = self.0.status();
        let written = ErrorPage {
            frame: Frame::bare("error"),
            status: status.as_u16(),
            title: self.0.code().meaning().trim().to_owned(),
            detail: self.0.detail().to_owned(),
        }
        .render();
        // The page of errors failed: then the plain sentence.
        let written = written.unwrap_or_else(|_| String::from("the page could not be written"));
        (status, Html(written)).into_response()
    }
}

/// Whether a browser asks for a page.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT);
    accepted
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/html"))
}

/// The page of an address that does not exist, for a browser that asks for a page.
pub(crate) fn not_found(request: &Request) -> Option<Response> {
    if request.uri().path().starts_with("/v1/") || !wants_page(request.headers()) {
        return None;
    }
    let path: String = request.uri().path().chars().take(200).collect();
    let detail = format!("there is no page \"{}\"", path.escape_debug());
    let page = PageError(Problem::new(Code::NotFound, detail)).into_response();
    debug_assert_eq!(page.status(), StatusCode::NOT_FOUND);
    Some(super::secured(page))
}
