//! A message as an answer: its body around its fields as headers, or all of it as JSON.

use std::io;

use axum::Json;
use axum::body::Body as AnswerBody;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use oncue_core::message::{Body, Message};
use oncue_manager::error::ApiError;
use oncue_manager::handle::Handle;
use tokio::sync::mpsc;

use crate::app::App;
use crate::error::Problem;
use crate::routes::Answer;
use crate::stream::Parts;
use crate::wire::cloud_event::essence;
use crate::wire::message::{MessageJson, Place, headers as message_headers};

/// Bytes of a large body that are read from the store at a time.
const PART: u64 = 256 << 10;

/// Parts that wait for one slow client.
const WAITING_PARTS: usize = 2;

/// Bytes of bodies in one JSON answer, before base64 and escapes. What does not fit is left out and
/// marked.
pub(crate) const MAX_JSON_BODIES: u64 = 16 << 20;

/// Runs a read of the store where it may block.
///
/// # Errors
/// A fault of ours, when the read panicked.
pub(crate) async fn off_the_loop<T: Send + 'static>(
    read: impl FnOnce() -> T + Send + 'static,
) -> Answer<T> {
    tokio::task::spawn_blocking(read).await.map_err(|error| {
        tracing::error!("a read of the store ended: {error}");
        Problem::internal()
    })
}

/// Whether the client asks for JSON by name.
pub(crate) fn wants_json(headers: &HeaderMap) -> bool {
    accepts(headers, "application/json")
}

/// Whether the client asks for a media type by name.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let accepted = headers.get_all(header::ACCEPT);
    accepted
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| {
            value.split(',').any(|range| {
                let is_refused = range.split(';').skip(1).any(|parameter| {
                    matches!(parameter.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
                });
                essence(range) == media_type && !is_refused
            })
        })
}

/// One message, as the client wants it.
pub(crate) async fn one(
    app: &App,
    message: &Message,
    place: Place<'_>,
    asked: &HeaderMap,
) -> Answer<Response> {
    if wants_json(asked) {
        let mut left = MAX_JSON_BODIES;
        return Ok(Json(as_json(app, message, place, &mut left).await?).into_response());
    }
    let mut headers = message_headers(message, place);
    // A body is whatever was put: a browser must neither guess at it nor run it.
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("sandbox"),
    );
    let body = match &message.body {
        Body::Whole(bytes) => AnswerBody::from(bytes.clone()),
        stored @ Body::Stored { size, .. } => {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(*size));
            in_parts(app.handle.clone(), stored.clone())
        }
    };
    Ok((headers, body).into_response())
}

/// One message as JSON. Its body is in it if there are so many bytes left.
pub(crate) async fn as_json(
    app: &App,
    message: &Message,
    place: Place<'_>,
    left: &mut u64,
) -> Answer<MessageJson> {
    let json = MessageJson::new(message, place);
    let Some(rest) = left.checked_sub(message.body.len()) else {
        return Ok(json.without_body());
    };
    *left = rest;
    Ok(json.with_body(&whole(&app.handle, &message.body).await?))
}

/// The whole body in memory.
async fn whole(handle: &Handle, body: &Body) -> Answer<Bytes> {
    match body {
        Body::Whole(bytes) => Ok(bytes.clone()),
        stored @ Body::Stored { .. } => {
            let (handle, stored) = (handle.clone(), stored.clone());
            Ok(off_the_loop(move || handle.body(&stored)).await??)
        }
    }
}

/// A large body, read as the client takes it. If the message is settled meanwhile, the answer
/// breaks off short of its length, which clients notice.
fn in_parts(handle: Handle, body: Body) -> AnswerBody {
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(WAITING_PARTS);
    tokio::spawn(async move {
        let mut offset = 0;
        while offset < body.len() {
            let part = part(&handle, &body, offset).await;
            let end = part.is_err();
            offset += part.as_ref().map_or(0, |bytes| bytes.len() as u64);
            if sender.send(part).await.is_err() || end {
                return;
            }
        }
    });
    AnswerBody::from_stream(Parts(receiver))
}

async fn part(handle: &Handle, body: &Body, offset: u64) -> io::Result<Bytes> {
    let (handle, body) = (handle.clone(), body.clone());
    let read: Result<Result<Bytes, ApiError>, Problem> =
        off_the_loop(move || handle.read_body(&body, offset, PART)).await;
    match read {
        Ok(Ok(bytes)) if !bytes.is_empty() => Ok(bytes),
        Ok(Ok(_)) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(Err(error)) => Err(io::Error::other(error.message)),
        Err(problem) => Err(io::Error::other(problem.detail().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: &str, json: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().expect("a value"));
        assert_eq!(wants_json(&headers), json, "{accept}");
    }

    #[test]
    fn json_is_answered_when_it_is_named() {
        check("application/json", true);
        check("text/plain, Application/JSON;q=0.5", true);
        check("application/json; charset=utf-8", true);
        check("*/*", false);
        check("application/json;q=0", false);
        check("application/jsonp", false);
    }
}
