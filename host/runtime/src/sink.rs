//! What a guest writes: standard output, standard error and log calls of one task, of which the
//! tail is kept.
//!
//! A sink never says that it is full: a guest that finds its output closed panics, and the task
//! would die of its own logging. What goes past the limit is swallowed and counted, and the cut is
//! marked. Nothing is written to the host's own log here.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use oncue_core::outcome::{CallEnd, Failure};
use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::secrets::Given;

/// Bytes that a guest may write in one call.
const PERMIT: usize = 64 << 10;

/// The end of standard error that is kept apart: a panic's text must survive a flood of other
/// output.
const ERROR_TAIL: usize = 2 << 10;

/// Bytes of standard error that go into the sentence about a trap.
const MAX_LAST_WORDS: usize = 300;

/// A line of Rust's panic message that helps nobody who reads a task record.
const BACKTRACE_HINT: &str = "note: run with `RUST_BACKTRACE";

/// How Python begins to say what was raised.
const TRACEBACK: &str = "Traceback (most recent call last):";

/// How Rust begins to say why it panics, behind the thread's name.
const PANIC: &str = " panicked at ";

/// The tail of what one task wrote. Cloning shares it.
#[derive(Clone, Debug)]
pub(crate) struct Log(Arc<Mutex<Kept>>, Arc<Given>);

#[derive(Debug)]
struct Kept {
    tail: Tail,
    errors: Tail,
}

/// The last bytes of a stream.
#[derive(Debug)]
struct Tail {
    limit: usize,
    bytes: VecDeque<u8>,
    cut: u64,
}

impl Tail {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            bytes: VecDeque::new(),
            cut: 0,
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(self.limit)..];
        let spare = self.limit - self.bytes.len();
        let gone = kept.len().saturating_sub(spare);
        self.bytes.drain(..gone);
        self.cut += (gone + bytes.len() - kept.len()) as u64;
        self.bytes.extend(kept);
    }

    /// The text; a character that was cut in half is left out.
    fn text(&self) -> String {
        let (first, second) = self.bytes.as_slices();
        let bytes = [first, second].concat();
        let half = if self.cut == 0 { 0 } else { halved(&bytes) };
        String::from_utf8_lossy(&bytes[half..]).into_owned()
    }
}

/// The line that names the exception, below the last traceback as Python writes it: the first that
/// is not indented. What stands below it is its interpreter's own panic, the same every time; a
/// second panic there is another message's, and the traceback is not the last word.
fn exception(text: &str) -> Option<&str> {
    let (_, traceback) = text.rsplit_once(TRACEBACK)?;
    if traceback.matches(PANIC).count() > 1 {
        return None;
    }
    let mut lines = traceback.lines().skip(1);
    let named = lines.find(|line| !line.starts_with(' ') && !line.is_empty())?;
    let is_named = named.contains("Error") || named.contains("Exception");
    is_named.then_some(named)
}

/// How many bytes at the beginning continue a UTF-8 character.
fn halved(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(3)
        .take_while(|byte| (0x80..0xC0).contains(*byte))
        .count()
}

impl Log {
    /// A log that keeps the last `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let (tail, errors) = (Tail::new(limit), Tail::new(ERROR_TAIL));
        Self(Arc::new(Mutex::new(Kept { tail, errors })), Arc::default())
    }

    /// The same log, which tells nothing of these secrets.
    pub(crate) fn without(self, secrets: Arc<Given>) -> Self {
        Self(self.0, secrets)
    }

    /// The secrets of the task that writes here.
    pub(crate) fn secrets(&self) -> &Given {
        &self.1
    }

    /// The end of a call without secrets in what the guest says of it.
    pub(crate) fn redact_end(&self, end: CallEnd) -> CallEnd {
        let plain = |text| self.1.redact(text);
        match end {
            CallEnd::Failed(Failure::Retry { reason, after }) => {
                let reason = plain(reason);
                CallEnd::Failed(Failure::Retry { reason, after })
            }
            CallEnd::Failed(Failure::Reject(reason)) => {
                CallEnd::Failed(Failure::Reject(plain(reason)))
            }
            CallEnd::Stopped {
                outcome,
                detail,
                backtrace,
            } => CallEnd::Stopped {
                outcome,
                detail: plain(detail),
                backtrace: backtrace.map(plain),
            },
            end => end,
        }
    }

    /// Adds a line of a log call.
    pub(crate) fn line(&self, line: &str) {
        let mut kept = self.0.lock();
        kept.tail.write(line.as_bytes());
        kept.tail.write(b"\n");
    }

    /// The tail with a mark where something was cut, and how many bytes were.
    pub(crate) fn tail(&self) -> (String, u64) {
        let kept = self.0.lock();
        let (text, cut) = (kept.tail.text(), kept.tail.cut);
        if cut == 0 {
            (self.1.redact(text), 0)
        } else {
            let text = self.1.redact_tail(text);
            (format!("[{cut} bytes cut]\n{text}"), cut)
        }
    }

    /// Forgets what was written to standard error before: what is told of a call's end is its own.
    /// The log as a whole is kept.
    pub(crate) fn begin_call(&self) {
        self.0.lock().errors = Tail::new(ERROR_TAIL);
    }

    /// The end of standard error since the call began; bytes that are no UTF-8 are replaced.
    pub(crate) fn error_tail(&self) -> String {
        let text = self.0.lock().errors.text();
        self.1.redact_tail(text)
    }

    /// The exception of a last traceback, else the last two lines of standard error as one, for the
    /// sentence about a trap. Empty when there are none.
    pub(crate) fn last_words(&self) -> String {
        let text = self.error_tail();
        if let Some(exception) = exception(&text) {
            return cut(exception, MAX_LAST_WORDS);
        }
        let mut lines: Vec<&str> = text
            .lines()
            .rev()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with(BACKTRACE_HINT))
            .take(2)
            .collect();
        lines.reverse();
        cut(&lines.join(" "), MAX_LAST_WORDS)
    }

    /// Standard output of a guest.
    pub(crate) fn output(&self) -> Sink {
        Sink {
            log: self.clone(),
            error: false,
        }
    }

    /// Standard error of a guest.
    pub(crate) fn error(&self) -> Sink {
        Sink {
            log: self.clone(),
            error: true,
        }
    }
}

/// The first bytes of a text up to `limit`, whole characters, with `...` when something is missing.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit);
    format!("{}...", &text[..end])
}

/// One of the guest's output streams.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    log: Log,
    error: bool,
}

impl Sink {
    fn take(&self, bytes: &[u8]) {
        let mut kept = self.log.0.lock();
        kept.tail.write(bytes);
        if self.error {
            kept.errors.write(bytes);
        }
    }
}

impl IsTerminal for Sink {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Sink {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Sink {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for Sink {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

impl AsyncWrite for Sink {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limit: u64, writes: &[&str], wanted: &str, cut: u64) {
        let log = Log::new(limit);
        for text in writes {
            log.output()
                .write(Bytes::copy_from_slice(text.as_bytes()))
                .expect("never fails");
        }
        assert_eq!(
            log.tail(),
            (wanted.to_owned(), cut),
            "{writes:?} within {limit}"
        );
    }

    #[test]
    fn a51_output_past_the_limit_is_cut_marked_and_counted() {
        check(10, &[], "", 0);
        check(10, &["hello"], "hello", 0);
        check(10, &["hello", "world"], "helloworld", 0);
        check(10, &["hello", "world", "!"], "[1 bytes cut]\nelloworld!", 1);
        check(3, &["hello", "worlds"], "[8 bytes cut]\nlds", 8);
        check(0, &["hello"], "[5 bytes cut]\n", 5);
        // The two bytes of the first character are cut in half: the rest of it is not shown.
        check(4, &["éabc"], "[1 bytes cut]\nabc", 1);
    }

    #[test]
    fn a51_a_gibibyte_costs_no_memory_and_is_counted() {
        let log = Log::new(64 << 10);
        let mut sink = log.error();
        let chunk = Bytes::from(vec![b'x'; PERMIT]);
        let chunks = (1_u64 << 30) / PERMIT as u64;
        for _ in 0..chunks {
            sink.write(chunk.clone()).expect("never fails");
        }
        let (text, cut) = log.tail();
        assert_eq!(cut, (1 << 30) - (64 << 10));
        assert!(text.len() < (65 << 10), "{}", text.len());
        assert_eq!(log.0.lock().tail.bytes.len(), 64 << 10);
    }

    #[test]
    fn the_last_words_survive_a_flood_of_other_output() {
        let log = Log::new(16);
        let panic = "\nthread 'x' panicked at src/lib.rs:7:37:\nboom\nnote: run with \
                     `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        log.error()
            .write(Bytes::from_static(panic.as_bytes()))
            .expect("never fails");
        log.output()
            .write(Bytes::from(vec![b'x'; 1 << 20]))
            .expect("never fails");
        assert_eq!(
            log.last_words(),
            "thread 'x' panicked at src/lib.rs:7:37: boom"
        );
        assert_eq!(Log::new(16).last_words(), "");
    }

    #[test]
    fn the_exception_of_the_last_traceback_is_the_last_word() {
        let check = |text: &str, wanted: &str| {
            let log = Log::new(1 << 10);
            let sent = log.error().write(Bytes::from(text.to_owned()));
            sent.expect("never fails");
            assert_eq!(log.last_words(), wanted);
        };
        let traceback = "Traceback (most recent call last):\n  File \"/0/app.py\", line 7, in f\n";
        let panic = "thread 'x' panicked at lib.rs:1:2:\nPython function threw\n";
        check(
            &format!("{traceback}KeyError: 1\n{traceback}ValueError: boom\n\n{panic}"),
            "ValueError: boom",
        );
        // The second panic is that of another message.
        let second = "thread 'x' panicked at lib.rs:3:4:\nunwrap\n";
        check(
            &format!("{traceback}ValueError: boom\n\n{panic}{second}"),
            "thread 'x' panicked at lib.rs:3:4: unwrap",
        );
        // Without memory the exception is not named in its place.
        check(
            &format!("{traceback}object address  : 0x482aa8\n\n{panic}"),
            "thread 'x' panicked at lib.rs:1:2: Python function threw",
        );
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc...");
        assert_eq!(cut("aéb", 2), "a...");
    }
}
