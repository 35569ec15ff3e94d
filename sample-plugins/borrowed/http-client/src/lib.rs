//! HTTP client: each message names a request, and what came of it is put to `http-client.out`.
//!
//! A message is a line of words: the URL, then `post=TEXT`, `times=N` requests that are all open
//! before the first is read, `connect=MILLIS`, `first-byte=MILLIS`, `between=MILLIS`,
//! `sends=BYTES` of body. The result is a line for each request: `200 SIZE BEGINNING`, or
//! `error NAME`.

use message_handler::{Content, Failure, Guest, Message, PutOptions, queues, retry};
use wasi::http::outgoing_handler::handle;
use wasi::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingResponse, Method, OutgoingBody,
    OutgoingRequest, RequestOptions, Scheme,
};
use wasi::io::streams::{OutputStream, StreamError};

/// Bytes of an answer that are told.
const SHOWN: usize = 80;
/// Bytes that one call may write.
const MAX_WRITE: usize = 4096;

struct Client;

impl Guest for Client {
    fn handle(message: &Message) -> Result<(), Failure> {
        let text = message.text()?;
        let asked = Asked::read(&text).ok_or_else(|| retry("the message is no request"))?;
        let sent: Vec<_> = (0..asked.times).map(|_| asked.send()).collect();
        let lines: Vec<String> = sent.into_iter().map(answer).map(line).collect();
        let content = Content::Text(lines.join("\n"));
        queues::put("http-client.out", &content, &PutOptions::default())?;
        Ok(())
    }
}

/// One message, read.
struct Asked<'a> {
    scheme: Scheme,
    authority: &'a str,
    path: String,
    body: Option<Vec<u8>>,
    times: usize,
    options: [Option<u64>; 3],
}

impl<'a> Asked<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let (scheme, rest) = words.next()?.split_once("://")?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let mut asked = Self {
            scheme: match scheme {
                "http" => Scheme::Http,
                "https" => Scheme::Https,
                other => Scheme::Other(other.to_owned()),
            },
            authority,
            path: format!("/{path}"),
            body: None,
            times: 1,
            options: [None; 3],
        };
        for word in words {
            let (name, value) = word.split_once('=')?;
            match name {
                "post" => asked.body = Some(value.as_bytes().to_vec()),
                "sends" => asked.body = Some(vec![b'x'; value.parse().ok()?]),
                "times" => asked.times = value.parse().ok()?,
                "connect" => asked.options[0] = Some(value.parse().ok()?),
                "first-byte" => asked.options[1] = Some(value.parse().ok()?),
                "between" => asked.options[2] = Some(value.parse().ok()?),
                _ => return None,
            }
        }
        Some(asked)
    }

    fn options(&self) -> RequestOptions {
        let options = RequestOptions::new();
        let [connect, first, between] = self.options.map(|it| it.map(|millis| millis * 1_000_000));
        options.set_connect_timeout(connect).expect("it is known");
        options.set_first_byte_timeout(first).expect("it is known");
        options
            .set_between_bytes_timeout(between)
            .expect("it is known");
        options
    }

    /// Sends the request and does not wait for its answer.
    fn send(&self) -> Result<FutureIncomingResponse, ErrorCode> {
        let request = OutgoingRequest::new(Fields::new());
        let invalid = |()| ErrorCode::HttpRequestUriInvalid;
        request.set_scheme(Some(&self.scheme)).map_err(invalid)?;
        request
            .set_authority(Some(self.authority))
            .map_err(invalid)?;
        request
            .set_path_with_query(Some(&self.path))
            .map_err(invalid)?;
        let Some(bytes) = &self.body else {
            return handle(request, Some(self.options()));
        };
        request.set_method(&Method::Post).expect("a method");
        let body = request.body().expect("taken once");
        let answer = handle(request, Some(self.options()))?;
        {
            // A host that has refused the request does not read its body.
            let stream = body.write().expect("taken once");
            let _ = bytes
                .chunks(MAX_WRITE)
                .try_for_each(|piece| write(&stream, piece));
        }
        let _ = OutgoingBody::finish(body, None);
        Ok(answer)
    }
}

fn write(stream: &OutputStream, piece: &[u8]) -> Result<(), StreamError> {
    stream.blocking_write_and_flush(piece)
}

/// An answer: status, size and beginning.
type Told = (u16, usize, String);

fn answer(sent: Result<FutureIncomingResponse, ErrorCode>) -> Result<Told, ErrorCode> {
    let future = sent?;
    future.subscribe().block();
    let response = future.get().expect("it is ready").expect("taken once")?;
    let status = response.status();
    let (size, shown) = read(&response)?;
    Ok((status, size, shown))
}

/// Reads a body and keeps its beginning.
fn read(response: &IncomingResponse) -> Result<(usize, String), ErrorCode> {
    let body = response.consume().expect("taken once");
    let stream = body.stream().expect("taken once");
    let (mut size, mut shown) = (0, Vec::new());
    loop {
        match stream.blocking_read(1 << 16) {
            Ok(bytes) => {
                size += bytes.len();
                let room = SHOWN - shown.len();
                shown.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Err(StreamError::Closed) => {
                return Ok((size, String::from_utf8_lossy(&shown).into_owned()));
            }
            Err(StreamError::LastOperationFailed(error)) => {
                let code = wasi::http::types::http_error_code(&error);
                return Err(code.unwrap_or(ErrorCode::InternalError(None)));
            }
        }
    }
}

fn line(answer: Result<Told, ErrorCode>) -> String {
    match answer {
        Ok((status, size, shown)) => format!("{status} {size} {shown}"),
        Err(error) => format!("error {error:?}"),
    }
}

message_handler::export!(Client);
