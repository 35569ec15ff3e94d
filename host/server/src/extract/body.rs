//! Bodies: bounded in bytes and in time, and JSON as [`Raw`].

use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use futures_core::Stream as _;
use oncue_core::code::Code;
use oncue_core::definition::Raw;
use oncue_core::quantity::{format_bytes, format_millis};
use tokio::sync::OwnedSemaphorePermit;

use super::Query;
use crate::app::App;
use crate::error::Problem;
use crate::guard::BodyRead;
use crate::wire::cloud_event::essence;
use crate::wire::fields::{Faults, known_fields};

/// What one permit of the memory for bodies stands for, in bytes.
const PERMIT_BYTES: usize = 1 << 10;

/// A whole body, and its share of the memory for bodies until it is dropped.
#[derive(Debug)]
pub(crate) struct Payload {
    /// The bytes.
    pub(crate) bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

/// The length that the request names, if it names one.
fn named_length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

impl FromRequest<App> for Payload {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        Self::read(app, &parts, body).await
    }
}

impl Payload {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// `body-too-large`, `too-many-requests`, `timed-out`, or one that ends before its length.
    pub(crate) async fn read(app: &App, parts: &Parts, body: Body) -> Result<Self, Problem> {
        let limit = app.options.body_limit;
        let is_chunked = parts.headers.contains_key(header::TRANSFER_ENCODING);
        let length = named_length(&parts.headers);
        if length.is_some_and(|length| length > limit as u64) {
            return Err(too_large(length, limit));
        }
        // A body that does not say its length may be as long as the limit.
        let unnamed = if is_chunked { limit as u64 } else { 0 };
        let share = app.reserve_body(permits(length.unwrap_or(unnamed))).await?;
        let length = usize::try_from(length.unwrap_or(0)).unwrap_or(limit);
        let bytes = gather(body, length, app).await?;
        if let Some(read) = parts.extensions.get::<BodyRead>() {
            read.0.store(true, Ordering::SeqCst);
        }
        Ok(Self {
            bytes,
            _share: share,
        })
    }
}

fn too_large(length: Option<u64>, limit: usize) -> Problem {
    let length = length.map_or_else(|| "more".to_owned(), |n| format!("{n} bytes"));
    let limit = format_bytes(limit as u64);
    let detail = format!("the body has {length} of {limit}; send less, or raise the limit");
    Problem::new(Code::BodyTooLarge, detail)
}

/// Copies a body, as it comes, to one place of its length: what the connection read it into is as
/// long as the connection likes, and would live as long as the message.
async fn gather(body: Body, length: usize, app: &App) -> Result<Bytes, Problem> {
    let (limit, time) = (app.options.body_limit, app.options.body_time);
    let mut stream = std::pin::pin!(body.into_data_stream());
    let mut whole = Vec::new();
    // A body that came with its head needs no timer.
    let mut late = None;
    std::future::poll_fn(|context| {
        loop {
            match stream.as_mut().poll_next(context) {
                Poll::Ready(None) => {
                    return Poll::Ready(Ok(Bytes::from(std::mem::take(&mut whole))));
                }
                Poll::Ready(Some(Err(_ended))) => {
                    let detail = "the body ended before its length";
                    return Poll::Ready(Err(Problem::new(Code::InvalidParameter, detail)));
                }
                Poll::Ready(Some(Ok(part))) if whole.len() + part.len() > limit => {
                    return Poll::Ready(Err(too_large(None, limit)));
                }
                Poll::Ready(Some(Ok(part))) => {
                    if whole.is_empty() {
                        whole.reserve_exact(length.max(part.len()));
                    }
                    whole.extend_from_slice(&part);
                }
                Poll::Pending => {
                    let late = late.get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
                    return late.as_mut().poll(context).map(|()| Err(timed_out(time)));
                }
            }
        }
    })
    .await
}

fn timed_out(time: Duration) -> Problem {
    let time = format_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let detail = format!("the body did not arrive within {time}");
    Problem::new(Code::TimedOut, detail)
}

fn permits(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PERMIT_BYTES as u64)).unwrap_or(u32::MAX)
}

/// Permits for so many bytes of bodies in memory.
pub(crate) fn permits_of(bytes: usize) -> usize {
    (bytes / PERMIT_BYTES).max(1)
}

/// A JSON body, parsed and not yet understood. An empty body is an empty object.
#[derive(Debug)]
pub(crate) struct Fields(pub(crate) Raw);

impl FromRequest<App> for Fields {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let content_type = request.headers().get(header::CONTENT_TYPE).cloned();
        let body = Payload::from_request(request, app).await?;
        if body.bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self(Raw::Table(Vec::new())));
        }
        check_json(content_type.as_ref().map(axum::http::HeaderValue::as_bytes))?;
        let parsed = serde_json::from_slice(&body.bytes);
        parsed.map(Self).map_err(|error| {
            Problem::new(Code::InvalidJson, format!("the body is not JSON: {error}"))
        })
    }
}

/// Refuses what does not say that it is JSON. A form's content type is among it, so a page of
/// another origin cannot send a definition without the browser's leave.
fn check_json(content_type: Option<&[u8]>) -> Result<(), Problem> {
    let given = content_type.map(|value| String::from_utf8_lossy(value).into_owned());
    let named = given.as_deref().map(essence).unwrap_or_default();
    if named == "application/json" || named.ends_with("+json") {
        return Ok(());
    }
    let given = given.map_or_else(|| "missing".to_owned(), |given| format!("\"{given}\""));
    let detail = format!("content-type is {given}; use application/json");
    Err(Problem::new(Code::UnsupportedMediaType, detail))
}

impl Fields {
    /// The fields of the body and those of the query together: a small setting may stand in
    /// either, and one that stands in both is refused.
    pub(crate) fn or_query(self, query: Query) -> Self {
        match (self.0, query.0) {
            (Raw::Table(mut fields), Raw::Table(parameters)) => {
                fields.extend(parameters);
                Self(Raw::Table(fields))
            }
            // Not an object: the reader says so.
            (body, _) => Self(body),
        }
    }

    /// Reads the fields of those names. `read` is called for each one given and says what is wrong
    /// with it.
    ///
    /// # Errors
    /// All faults, code `invalid-json`.
    pub(crate) fn read(
        &self,
        known: &[&'static str],
        mut read: impl FnMut(&str, &Raw) -> Result<(), String>,
    ) -> Result<(), Problem> {
        let mut faults = Faults::default();
        for (name, value) in known_fields(&self.0, known, "", &mut faults) {
            let done = read(name, value);
            faults.keep(name, done);
        }
        faults
            .finish(())
            .map_err(|faults| Problem::with_faults(Code::InvalidJson, faults))
    }
}
