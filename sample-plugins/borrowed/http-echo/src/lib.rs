//! HTTP echo: a program for any server of `wasi:http`, answering each request with its own body.
//!
//! It knows nothing of queues; a host that gives it messages as requests gets a handler. A body
//! that begins with `!` asks for another answer than the usual one, see [`answer`].

use wasi::exports::http::incoming_handler::Guest;
use wasi::http::proxy;
use wasi::http::types::{
    ErrorCode, Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam,
};
use wasi::io::streams::{OutputStream, StreamError};

/// Bytes that one call may write.
const MAX_WRITE: usize = 4096;
/// Bytes of an answer that is too large for any host that counts them.
const HUGE: usize = 65 << 20;

struct Echo;

impl Guest for Echo {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        let mut headers = request.headers().entries();
        let body = read(&request);
        let text = String::from_utf8_lossy(&body).into_owned();
        match text.strip_prefix('!') {
            None => {
                headers.retain(|(name, _)| name == "content-type");
                whole(out, 200, headers, &body);
            }
            Some(asked) => {
                let (word, rest) = asked.split_once(' ').unwrap_or((asked, ""));
                answer(out, word, rest, &path, headers);
            }
        }
    }
}

/// Answers as it is asked to.
fn answer(out: ResponseOutparam, word: &str, rest: &str, path: &str, headers: Headers) {
    let plain = || vec![("content-type".to_owned(), b"text/plain".to_vec())];
    match word {
        // What the host made of the message.
        "shows" => {
            let mut lines = vec![format!("path: {path}")];
            let line = |(name, value): &(String, Vec<u8>)| {
                format!("{name}: {}", String::from_utf8_lossy(value))
            };
            lines.extend(headers.iter().map(line));
            whole(out, 200, plain(), lines.join("\n").as_bytes());
        }
        // `!status 503 words`
        "status" => {
            let (status, words) = rest.split_once(' ').unwrap_or((rest, ""));
            whole(
                out,
                status.parse().unwrap_or(500),
                plain(),
                words.as_bytes(),
            );
        }
        // `!header 503 name value`
        "header" => {
            let mut parts = rest.splitn(3, ' ');
            let mut next = || parts.next().unwrap_or_default();
            let (status, name, value) = (next(), next(), next());
            let header = (name.to_owned(), value.as_bytes().to_vec());
            whole(out, status.parse().unwrap_or(500), vec![header], b"words");
        }
        "error" => {
            let error = ErrorCode::InternalError(Some(rest.to_owned()));
            ResponseOutparam::set(out, Err(error));
        }
        "nothing" => {}
        "drops-out" => drop(out),
        "panics-first" => panic!("before the answer"),
        "panics-later" => {
            whole(out, 200, plain(), b"answered");
            panic!("after the answer");
        }
        _ => partly(begin(out, 200, plain()), word),
    }
}

/// Begins an answer and does not end it well.
fn partly(body: OutgoingBody, word: &str) {
    let stream = body.write().expect("taken once");
    write(&stream, b"half of it");
    match word {
        "panics-within" => panic!("within the answer"),
        // Both live on after the return, in a host that does not end the program with it.
        "leaves-open" => std::mem::forget((stream, body)),
        "gives-up" => {}
        "endless" => {
            let piece = [b'x'; MAX_WRITE];
            (0..HUGE / MAX_WRITE).for_each(|_| write(&stream, &piece));
        }
        other => panic!("asked for {other:?}"),
    }
}

type Headers = Vec<(String, Vec<u8>)>;

/// The whole body of a request.
fn read(request: &IncomingRequest) -> Vec<u8> {
    let body = request.consume().expect("taken once");
    let stream = body.stream().expect("taken once");
    let mut all = Vec::new();
    loop {
        match stream.blocking_read(1 << 16) {
            Ok(bytes) => all.extend(bytes),
            Err(StreamError::Closed) => return all,
            Err(error) => panic!("the body is cut off: {error:?}"),
        }
    }
}

/// Sends status and headers, and opens the body.
fn begin(out: ResponseOutparam, status: u16, headers: Headers) -> OutgoingBody {
    let fields = Fields::from_list(&headers).expect("headers");
    let response = OutgoingResponse::new(fields);
    response.set_status_code(status).expect("a status");
    let body = response.body().expect("taken once");
    ResponseOutparam::set(out, Ok(response));
    body
}

fn write(stream: &OutputStream, bytes: &[u8]) {
    for piece in bytes.chunks(MAX_WRITE) {
        let written = stream.blocking_write_and_flush(piece);
        written.expect("the host reads");
    }
}

/// Answers all at once.
fn whole(out: ResponseOutparam, status: u16, headers: Headers, bytes: &[u8]) {
    let body = begin(out, status, headers);
    {
        let stream = body.write().expect("taken once");
        write(&stream, bytes);
    }
    OutgoingBody::finish(body, None).expect("finished");
}

proxy::export!(Echo);
