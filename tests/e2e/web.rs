//! A small web server on loopback that answers as the path asks it to, also badly.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// Bytes of one piece of an answer without end.
const PIECE: usize = 64 << 10;

/// What the server has seen.
#[derive(Default)]
pub struct Seen {
    /// Lines such as `GET /hello`, and the body.
    requests: Mutex<Vec<(String, String)>>,
    /// Requests to `/hold` that are not answered yet, and whether they may be.
    held: Mutex<(usize, bool)>,
    released: Condvar,
    /// The most of them at a time.
    most_held: AtomicUsize,
    /// Connections that the other side has closed before it had an answer.
    pub given_up: AtomicUsize,
}

/// A server that runs until the test's process ends.
pub struct Web {
    pub port: u16,
    pub seen: Arc<Seen>,
}

impl Web {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                // An answer that cannot be written is what some tests are about.
                std::thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Self { port, seen }
    }

    pub fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests so far, each `METHOD PATH` with its body.
    pub fn requests(&self) -> Vec<(String, String)> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// The most requests to `/hold` that were open at a time.
    pub fn most_held(&self) -> usize {
        self.seen.most_held.load(Ordering::SeqCst)
    }

    pub fn held(&self) -> usize {
        self.seen.held.lock().unwrap().0
    }

    /// Lets the requests to `/hold` be answered, those to come too.
    pub fn release(&self) {
        self.seen.held.lock().unwrap().1 = true;
        self.seen.released.notify_all();
    }
}

fn serve(stream: TcpStream, seen: &Seen) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let request = line.rsplit_once(' ').map_or("", |(request, _)| request);
    let body = read_body(&mut reader)?;
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let text = String::from_utf8_lossy(&body).into_owned();
    let noted = (request.to_owned(), text.clone());
    seen.requests.lock().unwrap().push(noted);
    let whole = |status: &str, headers: &str, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n\
             {body}"
        )
    };
    match path.as_str() {
        "/slow" => wait_for_end(&mut reader, seen),
        "/drip" => {
            out.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx")?;
            wait_for_end(&mut reader, seen)
        }
        "/large" => {
            out.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1099511627776\r\n\r\nx")?;
            wait_for_end(&mut reader, seen)
        }
        "/endless" => {
            out.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
            let piece = format!("{PIECE:x}\r\n{}\r\n", "x".repeat(PIECE));
            loop {
                out.write_all(piece.as_bytes())?;
            }
        }
        "/headers" => {
            let long = format!("x-long: {}\r\n", "x".repeat(70 << 10));
            out.write_all(whole("200 OK", &long, "").as_bytes())
        }
        "/redirect" => {
            out.write_all(whole("302 Found", "location: /hello\r\n", "elsewhere").as_bytes())
        }
        "/hold" => {
            hold(seen);
            out.write_all(whole("200 OK", "", "held").as_bytes())
        }
        "/echo" => out.write_all(whole("200 OK", "", &text).as_bytes()),
        _ => out.write_all(whole("200 OK", "", "hello").as_bytes()),
    }
}

/// Keeps a request open until all of them are released.
fn hold(seen: &Seen) {
    let mut held = seen.held.lock().unwrap();
    held.0 += 1;
    seen.most_held.fetch_max(held.0, Ordering::SeqCst);
    while !held.1 {
        held = seen.released.wait(held).unwrap();
    }
    // Before the answer is out: nobody can have its place yet.
    held.0 -= 1;
}

/// Waits until the other side closes the connection.
fn wait_for_end(reader: &mut impl Read, seen: &Seen) -> std::io::Result<()> {
    let ended = reader.read(&mut [0]);
    seen.given_up.fetch_add(1, Ordering::SeqCst);
    ended.map(drop)
}

/// A request's body, by its length or in chunks.
fn read_body(reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let (mut length, mut chunked) = (0, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        chunked |= line.starts_with("transfer-encoding:") && line.contains("chunked");
    }
    let mut body = Vec::new();
    if !chunked {
        reader.take(length).read_to_end(&mut body)?;
        return Ok(body);
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = u64::from_str_radix(line.trim(), 16).unwrap_or(0);
        reader.by_ref().take(size).read_to_end(&mut body)?;
        reader.read_line(&mut line)?;
        if size == 0 {
            return Ok(body);
        }
    }
}
