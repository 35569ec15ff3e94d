//! More than a host takes: many connections at once, each with a long body. What it holds in memory
//! is bounded, and whoever is refused is told when to come again.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::host::Home;
use crate::wait::until;

/// More connections than a host takes at a time.
const CONNECTIONS: usize = 800;

/// Bytes of each body, and the largest that the host takes: it has memory for sixteen.
const LENGTH: usize = 256 << 10;
const BODY_LIMIT: &str = "256 KiB";

/// Puts one after the other that come first.
const WARM_UP: usize = 600;

/// Puts of each connection's thread, one after the other.
const PUTS: usize = 4;

/// Bytes that the host may grow by: far below all the bodies, which are 800 MiB. What was taken is
/// in the engine's memory until it is written to a table, 64 MiB at a time and up to three times as
/// much while that is under way.
const GROWTH_MAX: u64 = 320 << 20;

/// How long one answer may take.
const BOUND: Duration = Duration::from_secs(60);

/// Stack of a thread that has one connection.
const STACK: usize = 128 << 10;

/// Puts once; answers the head of the answer.
fn put(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(BOUND)).expect("a bound");
    stream.set_write_timeout(Some(BOUND)).expect("a bound");
    let head = format!(
        "POST /v1/queues/q/messages HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-length: {LENGTH}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the head is sent");
    // Who is refused before the body was read may not be able to send all of it.
    let _ = stream.write_all(&vec![b'x'; LENGTH]);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn memory_is_bounded_under_many_puts_at_once() {
    let home = Home::new();
    let host = home.start_with(&["--body-limit", BODY_LIMIT], &[]);
    host.define("q", serde_json::json!({"trigger": "none"}));
    // What the store keeps in memory of so many bytes is there before.
    let body = vec![b'x'; LENGTH];
    for _ in 0..WARM_UP {
        host.put("q", &body);
    }
    let before = host.resident();
    let address = host.url.trim_start_matches("http://").to_owned();
    let (taken, refused, done) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let mut most = before;
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            let builder = std::thread::Builder::new().stack_size(STACK);
            let one = || {
                for _ in 0..PUTS {
                    let answer = put(&address);
                    if answer.starts_with("HTTP/1.1 201 ") {
                        taken.fetch_add(1, Ordering::SeqCst);
                    } else if answer.contains("retry-after: 1") {
                        refused.fetch_add(1, Ordering::SeqCst);
                    } else {
                        eprintln!("answered: {answer:?}");
                    }
                }
                done.fetch_add(1, Ordering::SeqCst);
            };
            builder.spawn_scoped(scope, one).expect("a thread");
        }
        until("every answer", || {
            most = most.max(host.resident());
            host.get("/v1/status").expect(200);
            done.load(Ordering::SeqCst) == CONNECTIONS
        });
    });
    let (taken, refused) = (taken.into_inner(), refused.into_inner());
    eprintln!(
        "{taken} taken, {refused} refused, grew by {} KiB",
        (most - before) >> 10
    );
    let depth = (taken + WARM_UP) as u64;
    assert_eq!(host.depth("q"), depth, "what was acknowledged is there");
    assert!(
        most - before < GROWTH_MAX,
        "it grew by {} bytes",
        most - before
    );
    // A fast disk may take them all; a refusal may be lost with its connection.
    assert!(taken > 0, "some are taken");
}
