//! A page as an answer, and the page of what went wrong.

use askama::Template;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use oncue_core::code::Code;
use oncue_manager::error::ApiError;

use super::frame::Frame;
use super::viewer::Viewer;
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

/// Why there is no page, or why an action was not done. It becomes a page in [`dressed`], which
/// knows who looks.
#[derive(Clone, Debug)]
pub(crate) struct PageError(Problem);

/// Goes with an answer whose action was not done: why. The audit log has it.
#[derive(Clone, Copy, Debug)]
struct NotDone(Code);

impl PageError {
    /// The status of the answer.
    pub(super) fn status(&self) -> StatusCode {
        self.0.status()
    }

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
        let mut response = not_done(self.0.status().into_response(), &self);
        response.extensions_mut().insert(self);
        response
    }
}

/// Marks an answer as that of an action that was not done.
pub(super) fn not_done(mut response: Response, why: &PageError) -> Response {
    response.extensions_mut().insert(NotDone(why.0.code()));
    response
}

/// Why the action of an answer was not done, where it was not.
pub(crate) fn failure_of(response: &Response) -> Option<Code> {
    let not_done = response.extensions().get::<NotDone>();
    not_done.map(|not_done| not_done.0)
}

/// Makes a page of an answer that is an error.
pub(crate) fn dressed(viewer: &Viewer, mut response: Response) -> Response {
    let Some(PageError(problem)) = response.extensions_mut().remove() else {
        return response;
    };
    if problem.is_ours() {
        tracing::error!(code = %problem.code(), "{}", problem.detail());
    }
    let written = ErrorPage {
        frame: Frame::bare("error", viewer),
        status: problem.status().as_u16(),
        title: problem.code().meaning().trim().to_owned(),
        detail: problem.detail().to_owned(),
    }
    .render();
    // The page of errors failed: then the plain sentence.
    let written = written.unwrap_or_else(|_| String::from("the page could not be written"));
    super::secured((problem.status(), Html(written)).into_response())
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
    Some(PageError(Problem::new(Code::NotFound, detail)).into_response())
}
