//! Standard input and output of a program: the body of its message, in pieces as it is read, and
//! what it wrote until it is put.
//!
//! A large body is never in memory as a whole for this. Output past what its queue takes ends the
//! program: half of an output is not one.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use oncue_core::outcome::Outcome;
use oncue_core::quantity::format_bytes;
use oncue_manager::tasks::puts::OutputRoom;
use oncue_manager::tasks::{Delivered, TaskSession};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdinStream, StdoutStream};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::classify::Stop;
use crate::sink::Log;

/// Bytes of a body that are read ahead.
const PIECE: u64 = 256 << 10;

/// Bytes that a program may write in one call.
const PERMIT: usize = 64 << 10;

/// The end of an output that was not put which the log shows, in bytes.
const SHOWN: usize = 4 << 10;

/// A message's body as a stream. All streams that a program opens on it are one.
#[derive(Clone)]
pub(super) struct Body(Arc<Mutex<Reader>>);

struct Reader {
    session: Arc<TaskSession>,
    message: Arc<Delivered>,
    /// Where the next piece begins.
    offset: u64,
    /// What was read and not yet asked for.
    ahead: Bytes,
}

impl Body {
    pub(super) fn new(session: &Arc<TaskSession>, message: &Arc<Delivered>) -> Self {
        Self(Arc::new(Mutex::new(Reader {
            session: Arc::clone(session),
            message: Arc::clone(message),
            offset: 0,
            ahead: Bytes::new(),
        })))
    }

    /// The next bytes, at most `most` of them; `None` at the end.
    fn next(&self, most: usize) -> Result<Option<Bytes>, Stop> {
        let mut reader = self.0.lock();
        if reader.ahead.is_empty() {
            let size = reader.message.message.body.len();
            if reader.offset >= size {
                return Ok(None);
            }
            let read = reader
                .session
                .read_body(&reader.message, reader.offset, PIECE);
            let lost =
                |why: String| Stop::Host(format!("the body of a message cannot be read: {why}"));
            let piece = read.map_err(|error| lost(error.to_string()))?;
            if piece.is_empty() {
                return Err(lost("it is shorter than it was".to_owned()));
            }
            reader.offset += piece.len() as u64;
            reader.ahead = piece;
        }
        let most = most.min(reader.ahead.len());
        Ok(Some(reader.ahead.split_to(most)))
    }
}

impl IsTerminal for Body {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdinStream for Body {
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Body {
    async fn ready(&mut self) {}
}

#[async_trait]
impl InputStream for Body {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        match self.next(size) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(StreamError::Closed),
            Err(stop) => Err(StreamError::Trap(stop.into())),
        }
    }
}

impl AsyncRead for Body {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.next(buffer.remaining());
        Poll::Ready(match read {
            Ok(bytes) => {
                buffer.put_slice(&bytes.unwrap_or_default());
                Ok(())
            }
            Err(stop) => Err(io::Error::other(stop)),
        })
    }
}

/// What a program writes to standard output, kept until it has ended.
#[derive(Clone)]
pub(super) struct Capture {
    room: Arc<OutputRoom>,
    bytes: Arc<Mutex<BytesMut>>,
}

impl Capture {
    /// An empty one with that much room.
    pub(super) fn new(room: OutputRoom) -> Self {
        Self {
            room: Arc::new(room),
            bytes: Arc::default(),
        }
    }

    /// All of it; it is empty then.
    pub(super) fn take(&self) -> Bytes {
        self.bytes.lock().split().freeze()
    }

    /// Writes the end of what is in it to a log.
    pub(super) fn tell(&self, log: &Log) {
        let bytes = self.bytes.lock();
        if bytes.is_empty() {
            return;
        }
        let shown = &bytes[bytes.len().saturating_sub(SHOWN)..];
        let OutputRoom { queue, .. } = &*self.room;
        log.line(&format!(
            "[standard output, {} bytes, was not put to \"{queue}\"; its end:]\n{}",
            bytes.len(),
            String::from_utf8_lossy(shown)
        ));
    }

    fn keep(&self, bytes: &[u8]) -> Result<(), Stop> {
        let mut kept = self.bytes.lock();
        let OutputRoom { queue, most } = &*self.room;
        let size = (kept.len() + bytes.len()) as u64;
        if size > *most {
            let most = format_bytes(*most);
            return Err(Stop::limit(
                Outcome::OutputLimit,
                format!(
                    "wrote more than {most} to standard output, and queue \"{queue}\" takes \
                     {most}; write less or raise its max-message-length"
                ),
            ));
        }
        kept.extend_from_slice(bytes);
        Ok(())
    }
}

impl IsTerminal for Capture {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Capture {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Capture {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for Capture {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.keep(&bytes)
            .map_err(|stop| StreamError::Trap(stop.into()))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

impl AsyncWrite for Capture {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let kept = self.keep(bytes).map_err(io::Error::other);
        Poll::Ready(kept.map(|()| bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
