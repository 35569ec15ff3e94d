//! Actions: a form that a page sends, and the way back to a page.

use axum::extract::{FromRequest, Request};
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use oncue_core::code::Code;

use super::csrf;
use super::frame::NOTE;
use super::multipart;
use super::notes::Note;
use super::page::{PageError, not_done};
use super::params::Params;
use crate::app::App;
use crate::auth::Csrf;
use crate::error::Problem;
use crate::extract::Payload;
use crate::wire::cloud_event::essence;

/// What browsers send forms as.
const FORM: &str = "application/x-www-form-urlencoded";

/// What they send forms as that may have files.
const MULTIPART: &str = "multipart/form-data";

/// A file that was chosen in a form.
#[derive(Debug)]
pub(super) struct File {
    /// What the browser takes it for; nothing where it does not know.
    pub(super) content_type: Option<String>,
    /// The file.
    pub(super) bytes: Bytes,
}

/// The fields of a form that carries the token. There is no other way to get at a form's fields, so
/// no action can forget to ask for it.
#[derive(Debug, Default)]
pub(crate) struct Form {
    fields: Params,
    /// The file, where one was chosen. Forms have one field for files at most.
    pub(super) file: Option<File>,
}

impl std::ops::Deref for Form {
    type Target = Params;

    fn deref(&self) -> &Params {
        &self.fields
    }
}

impl FromRequest<App> for Form {
    type Rejection = PageError;

    async fn from_request(request: Request, app: &App) -> Result<Self, PageError> {
        let content_type = request.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let kind = essence(&content_type);
        if kind != FORM && kind != MULTIPART {
            let detail = format!("content-type is not {FORM}; send the form of the page");
            return Err(Problem::new(Code::UnsupportedMediaType, detail).into());
        }
        let session = request.extensions().get::<Csrf>().cloned();
        let payload = Payload::from_request(request, app).await?;
        let form = if kind == FORM {
            let fields = Params::parse(&payload.bytes);
            Self { fields, file: None }
        } else {
            Self::with_files(&payload.bytes, &content_type)?
        };
        let carried = form.text(csrf::FIELD);
        let is_ours = match session {
            Some(session) => *session.0 == *carried,
            None => app.console.csrf.is(carried),
        };
        if !is_ours {
            let detail = "the form does not carry the token of this host, perhaps because the host \
                          was restarted since; go back, load the page again and repeat it";
            return Err(Problem::new(Code::ForeignOrigin, detail).into());
        }
        Ok(form)
    }
}

impl Form {
    /// Takes a form apart that may have a file.
    fn with_files(bytes: &Bytes, content_type: &str) -> Result<Self, PageError> {
        let parts = multipart::boundary_of(content_type)
            .ok_or("it names no boundary")
            .and_then(|boundary| multipart::parse(bytes, boundary));
        let parts = parts.map_err(|fault| {
            let detail = format!("the form cannot be read: {fault}; send the form of the page");
            Problem::new(Code::InvalidParameter, detail)
        })?;
        let (mut fields, mut file) = (Vec::new(), None);
        for part in parts {
            match part.file {
                None => {
                    let text = String::from_utf8_lossy(&part.bytes).into_owned();
                    fields.push((part.name, text));
                }
                // None was chosen: browsers send an empty one without a name.
                Some(name) if name.is_empty() && part.bytes.is_empty() => {}
                Some(_name) => {
                    let unknown = |kind: &String| kind != "application/octet-stream";
                    file = Some(File {
                        content_type: part.content_type.filter(unknown),
                        bytes: part.bytes,
                    });
                }
            }
        }
        let fields = Params::of(fields);
        Ok(Self { fields, file })
    }
}

/// Goes back to a page, with what the action has to say on top of it.
pub(super) fn back(app: &App, path: &str, done: Result<String, PageError>) -> Response {
    let (note, fault) = match done {
        Ok(text) => (Note { done: true, text }, None),
        Err(error) => {
            let text = error.text().to_owned();
            (Note { done: false, text }, Some(error))
        }
    };
    let number = app.console.notes.keep(note).to_string();
    let mark = if path.contains('?') { '&' } else { '?' };
    let response = Redirect::to(&format!("{path}{mark}{NOTE}={number}")).into_response();
    match fault {
        Some(fault) => not_done(response, &fault),
        None => response,
    }
}

/// Holds the words that a person typed to those that were asked for.
///
/// # Errors
/// What to type.
pub(super) fn confirmed(form: &Form, wanted: &str) -> Result<(), PageError> {
    if form.text("confirm").trim() == wanted {
        return Ok(());
    }
    let detail = format!("nothing was done: type \"{wanted}\" to confirm");
    Err(Problem::new(Code::InvalidParameter, detail).into())
}

/// The page to go back to: the one that the form names, if it is one of ours.
pub(super) fn return_path<'a>(form: &'a Form, otherwise: &'a str) -> &'a str {
    let named = form.get("back");
    // One slash, then none: the address stays on this host.
    let is_ours = |path: &&str| {
        path.starts_with('/')
            && !path.starts_with("//")
            && path
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    };
    named.filter(is_ours).unwrap_or(otherwise)
}

/// Fields of a form, for tests.
#[cfg(test)]
impl Form {
    pub(super) fn of(text: &str) -> Self {
        let fields = Params::parse(text.as_bytes());
        Self { fields, file: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_stays_on_this_host() {
        for (named, path) in [
            ("/queues/a?x=1", "/queues/a?x=1"),
            ("//evil.example", "/"),
            ("https://evil.example", "/"),
            ("/\\evil.example", "/"),
            ("/a\r\nset-cookie: x", "/"),
            ("", "/"),
        ] {
            let mut encoded = String::new();
            for byte in named.bytes() {
                encoded.push_str(&format!("%{byte:02x}"));
            }
            let form = Form::of(&format!("back={encoded}"));
            assert_eq!(return_path(&form, "/"), path, "{named}");
        }
    }

    #[test]
    fn a_confirmation_is_typed_whole() {
        assert!(confirmed(&Form::of("confirm=orders+"), "orders").is_ok());
        assert!(confirmed(&Form::of("confirm=order"), "orders").is_err());
        assert!(confirmed(&Form::of(""), "orders").is_err());
    }
}
