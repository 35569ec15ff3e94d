//! Answers that come in parts: a bounded channel as a stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc;

/// The reading end of a bounded channel, as the stream that an answer is made of. It ends when the
/// writing end is dropped.
#[derive(Debug)]
pub(crate) struct Parts<T>(pub(crate) mpsc::Receiver<T>);

impl<T> Stream for Parts<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_recv(context)
    }
}
