//! Tells a client when its connection ends with the answer, because the request's body was not read
//! to its end: what is left of it stands where the next request would.
//!
//! Refuses to read such a body: it may be long, or never come.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, BodyDataStream, HttpBody as _};
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use futures_core::Stream;

/// A layer around everything that may answer before it has read.
pub(crate) async fn close_if_unread(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let read = Arc::new(AtomicBool::new(false));
    let request = request.map(|body| {
        Body::from_stream(Watched {
            body: body.into_data_stream(),
            read: Arc::clone(&read),
        })
    });
    let mut response = next.run(request).await;
    if !read.load(Ordering::SeqCst) {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    response
}

/// A body that notes its end.
struct Watched {
    body: BodyDataStream,
    read: Arc<AtomicBool>,
}

impl Stream for Watched {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = Pin::new(&mut self.body).poll_next(context);
        if matches!(polled, Poll::Ready(None)) {
            self.read.store(true, Ordering::SeqCst);
        }
        polled
    }
}
