//! A message as a request: `POST /QUEUE` to the authority `oncue`, its fields as the headers that
//! `/v1` has for them, its body read from the store as the guest reads it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request};
use hyper::body::{Body, Frame, SizeHint};
use oncue_core::escape::{encode, encode_name};
use oncue_core::message::Message;
use oncue_core::trace;
use oncue_manager::tasks::{Delivered, TaskSession};
use parking_lot::Mutex;
use wasmtime_wasi_http::Error;

/// Bytes of a body that are read from the store at a time.
const PIECE: u64 = 64 << 10;

/// What stands before a property's name.
pub(super) const PROPERTY_PREFIX: &str = "oncue-property-";

/// Why a body could not be read, if that happened. Cloning shares it.
#[derive(Clone, Default)]
pub(super) struct Unread(Arc<Mutex<Option<String>>>);

impl Unread {
    pub(super) fn take(&self) -> Option<String> {
        self.0.lock().take()
    }
}

/// The request that stands for a message.
pub(super) fn new(
    session: &Arc<TaskSession>,
    message: &Arc<Delivered>,
) -> wasmtime::Result<(Request<MessageBody>, Unread)> {
    let unread = Unread::default();
    let body = MessageBody {
        session: Arc::clone(session),
        message: Arc::clone(message),
        at: 0,
        unread: unread.clone(),
    };
    // A queue's name has no character that a path has not.
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(format!("http://oncue/{}", message.queue))
        .body(body)?;
    *request.headers_mut() = headers(message);
    Ok((request, unread))
}

fn headers(delivered: &Delivered) -> HeaderMap {
    let Message {
        header,
        attempts,
        body,
        ..
    } = &delivered.message;
    let mut map = HeaderMap::new();
    let mut add = |name: HeaderName, text: &str| {
        // Escaped, any text is a value.
        if let Ok(value) = HeaderValue::try_from(encode(text)) {
            map.append(name, value);
        }
    };
    let named = HeaderName::from_static;
    add(CONTENT_LENGTH, &body.len().to_string());
    add(named("oncue-id"), &header.id.to_string());
    add(named("oncue-queue"), delivered.queue.as_str());
    let persistence = if header.persistent {
        "persistent"
    } else {
        "non-persistent"
    };
    add(named("oncue-persistence"), persistence);
    let reply_to = header.reply_to.as_ref().map(|queue| queue.as_str());
    for (name, value) in [
        (CONTENT_TYPE, header.content_type.as_deref()),
        (
            named("oncue-correlation-id"),
            header.correlation_id.as_deref(),
        ),
        (named("oncue-reply-to"), reply_to),
        (named("oncue-group"), header.group.as_deref()),
        (named("oncue-put-by"), header.put_by.as_deref()),
    ] {
        if let Some(value) = value {
            add(name, value);
        }
    }
    for (name, value) in [
        ("oncue-group-sequence", header.group_sequence.map(u64::from)),
        ("oncue-priority", Some(header.priority.into())),
        ("oncue-hop-count", Some(header.hop_count.into())),
        ("oncue-put-time", Some(header.put_time.0)),
        ("oncue-backout-count", Some(attempts.backout_count.into())),
        ("oncue-attempts-left", Some(delivered.attempts_left.into())),
    ] {
        if let Some(value) = value {
            add(named(name), &value.to_string());
        }
    }
    for (name, value) in &header.properties {
        let known = [trace::PARENT, trace::STATE].into_iter();
        if let Some(known) = known.into_iter().find(|known| known == name) {
            // Where a program that traces looks for it.
            add(named(known), value);
        }
        let name = format!("{PROPERTY_PREFIX}{}", encode_name(name));
        if let Ok(name) = HeaderName::try_from(name) {
            add(name, value);
        }
    }
    map
}

/// A message's body, read when the guest asks for it.
pub(super) struct MessageBody {
    session: Arc<TaskSession>,
    message: Arc<Delivered>,
    at: u64,
    unread: Unread,
}

impl MessageBody {
    fn left(&self) -> u64 {
        self.message.message.body.len().saturating_sub(self.at)
    }
}

impl Body for MessageBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        let length = this.left().min(PIECE);
        if length == 0 {
            return Poll::Ready(None);
        }
        let read = this.session.read_body(&this.message, this.at, length);
        let why = match read {
            Ok(bytes) if bytes.is_empty() => "the store has less of it than its size".to_owned(),
            Ok(bytes) => {
                this.at += bytes.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            Err(error) => error.to_string(),
        };
        let why = format!("the body of a message cannot be read: {why}");
        *this.unread.0.lock() = Some(why.clone());
        // Asked again, it has ended.
        this.at = u64::MAX;
        Poll::Ready(Some(Err(Error::InternalError(Some(why)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}
