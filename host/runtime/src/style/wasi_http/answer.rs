//! The handler's answer: read under its bounds, then told apart.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU16, Ordering};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use oncue_core::escape::decode;
use oncue_core::outcome::{Failure, Outcome};
use oncue_core::quantity::format_bytes;
use oncue_core::time::Millis;
use oncue_manager::tasks::Delivered;
use oncue_manager::tasks::port::PutOptions;
use tokio::sync::oneshot::Receiver;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::p2::body::HyperOutgoingBody;

use super::super::{Answer, output};
use super::request::PROPERTY_PREFIX;
use crate::classify::Stop;
use crate::interfaces::Guest;
use crate::interfaces::types::MAX_REASON;
use crate::sink::cut;

/// Body of one answer, in bytes. The queue that it is put to may take less.
const MAX_BODY: u64 = 64 << 20;

/// The beginning of a body that becomes a reason, in bytes.
const MAX_SHOWN: usize = 512;

/// The longest wait that `retry-after` may ask for, in milliseconds: seven days.
const MAX_RETRY_AFTER: Millis = 7 * 24 * 3_600_000;

/// The header by which a handler rejects its message.
const REJECT: &str = "oncue-reject";

/// What came of a call.
pub(super) enum Answered {
    /// A whole answer: status, headers, and of the body what is wanted of it.
    Whole(StatusCode, HeaderMap, Bytes),
    /// None that can be used: why, as the rest of a sentence about the handler.
    Not(String),
}

/// How far an answer has come, for the sentence about one that stays as it is.
#[derive(Default)]
pub(super) struct Progress(AtomicU16);

impl Progress {
    /// What a handler that has returned left undone.
    pub(super) fn left_open(&self) -> Answered {
        match self.0.load(Ordering::Relaxed) {
            0 => never(),
            status => Answered::Not(format!(
                "answered {status} and returned before its body was finished; call \
                 outgoing-body.finish"
            )),
        }
    }
}

fn never() -> Answered {
    let why = "returned without an answer; call response-outparam.set";
    Answered::Not(why.to_owned())
}

/// Whether a status says that the message was handled.
fn is_handled(status: StatusCode, headers: &HeaderMap) -> bool {
    status.is_success() && !headers.contains_key(REJECT)
}

/// Reads an answer to its end.
///
/// # Errors
/// The end of a guest that answers without end.
pub(super) async fn gather(
    receiver: Receiver<Result<Response<HyperOutgoingBody>, ErrorCode>>,
    progress: &Progress,
) -> wasmtime::Result<Answered> {
    let (parts, mut body) = match receiver.await {
        Ok(Ok(response)) => response.into_parts(),
        Ok(Err(error)) => return Ok(Answered::Not(format!("answered the error {error:?}"))),
        Err(_never) => return Ok(never()),
    };
    let (status, headers) = (parts.status, parts.headers);
    progress.0.store(status.as_u16(), Ordering::Relaxed);
    let most = if is_handled(status, &headers) {
        usize::MAX
    } else {
        MAX_SHOWN
    };
    let (mut kept, mut size) = (Vec::new(), 0_u64);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Ok(Answered::Not(format!(
                "answered {} and gave its body up",
                status.as_u16()
            )));
        };
        // Trailers say nothing here.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        size += data.len() as u64;
        if size > MAX_BODY {
            let most = format_bytes(MAX_BODY);
            let detail = format!("answered with a body of more than {most}; answer with less");
            return Err(Stop::limit(Outcome::OutputLimit, detail).into());
        }
        let room = most.saturating_sub(kept.len());
        kept.extend_from_slice(&data[..data.len().min(room)]);
    }
    Ok(Answered::Whole(status, headers, kept.into()))
}

/// What becomes of the message.
pub(super) fn settle(guest: &Guest, message: &Delivered, answered: Answered) -> Answer {
    let (status, headers, body) = match answered {
        Answered::Whole(status, headers, body) => (status, headers, body),
        Answered::Not(reason) => {
            let (reason, after) = (format!("the handler {}", cut(&reason, MAX_REASON)), None);
            return Ok(Err(Failure::Retry { reason, after }));
        }
    };
    if let Some(reason) = headers.get(REJECT) {
        let reason = text(reason.as_bytes());
        let reason = if reason.is_empty() {
            said(status, &body)
        } else {
            cut(&reason, MAX_REASON)
        };
        return Ok(Err(Failure::Reject(reason)));
    }
    if !status.is_success() {
        let (reason, after) = (said(status, &body), retry_after(&headers));
        return Ok(Err(Failure::Retry { reason, after }));
    }
    if status == StatusCode::NO_CONTENT {
        return Ok(Ok(()));
    }
    let put = guest
        .session()?
        .put_output(message, body.clone(), options(&headers));
    match put {
        Ok(Some(_)) => {}
        Ok(None) if body.is_empty() => {}
        Ok(None) => guest.log.line(&String::from_utf8_lossy(&body)),
        Err(error) => return output::refused(guest, error),
    }
    Ok(Ok(()))
}

/// A header's value as text.
fn text(value: &[u8]) -> String {
    decode(value).unwrap_or_else(|_| String::from_utf8_lossy(value).into_owned())
}

/// `answered 503: first bytes of the body`.
fn said(status: StatusCode, body: &[u8]) -> String {
    let mut said = format!("answered {}", status.as_u16());
    let body = String::from_utf8_lossy(&body[..body.len().min(MAX_SHOWN)]);
    let body = body.trim();
    if !body.is_empty() {
        // Cannot fail: it is a String.
        let _ = write!(said, ": {body}");
    }
    said
}

/// Seconds to wait, if they are given as a number. A date is not looked at.
fn retry_after(headers: &HeaderMap) -> Option<Millis> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(seconds.saturating_mul(1000).min(MAX_RETRY_AFTER))
}

/// What the answer says of the message that it becomes.
fn options(headers: &HeaderMap) -> PutOptions {
    let properties = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(PROPERTY_PREFIX)?;
        Some((text(name.as_bytes()), text(value.as_bytes())))
    });
    PutOptions {
        content_type: headers.get(CONTENT_TYPE).map(|it| text(it.as_bytes())),
        properties: properties.collect(),
        ..PutOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            let value = value.parse().expect("a value");
            (http::HeaderName::from_static(name), value)
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn retry_after_is_a_number_of_seconds_and_has_a_bound() {
        let check = |value: &str, wanted: Option<Millis>| {
            assert_eq!(retry_after(&headers(&[("retry-after", value)])), wanted);
        };
        check("7", Some(7_000));
        check("0", Some(0));
        check("18446744073709551615", Some(MAX_RETRY_AFTER));
        check("Fri, 31 Dec 1999 23:59:59 GMT", None);
        check("-1", None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn a_reason_is_the_status_and_how_the_body_begins() {
        let long = "x".repeat(2 * MAX_SHOWN);
        assert_eq!(
            said(StatusCode::SERVICE_UNAVAILABLE, b" busy\n"),
            "answered 503: busy"
        );
        assert_eq!(said(StatusCode::NOT_FOUND, b""), "answered 404");
        let shown = said(StatusCode::FOUND, long.as_bytes());
        assert_eq!(shown.len(), "answered 302: ".len() + MAX_SHOWN);
    }

    #[test]
    fn an_answer_carries_its_type_and_properties() {
        let options = options(&headers(&[
            ("content-type", "application/json"),
            ("oncue-property-region", "e%75"),
            ("oncue-property-%52egion", "us"),
            ("x-other", "y"),
        ]));
        assert_eq!(options.content_type.as_deref(), Some("application/json"));
        let mut properties = options.properties;
        properties.sort();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(properties, [pair("Region", "us"), pair("region", "eu")]);
    }
}
