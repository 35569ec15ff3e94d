//! A store that does not keep up: putters are told to come again, and those who look are answered.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use oncue_server::ServerOptions;
use oncue_store::CommitError;
use oncue_store::faulty::Faulty;
use oncue_store::memory::MemoryStore;
use tokio::task::JoinHandle;

use crate::harness::{Answered, Server};

/// Puts of a test: as many as one host works on at a time, if nobody says otherwise.
const PUTS: usize = 768;

/// A server whose store is held back.
async fn stalled(options: ServerOptions) -> (Arc<Server>, Arc<Faulty>) {
    let memory = Arc::new(MemoryStore::new(1, 64 << 20));
    let faulty = Arc::new(Faulty::new(memory));
    let server = Server::over(faulty.clone(), options).await;
    server.queue("q").await;
    faulty.stall();
    (Arc::new(server), faulty)
}

fn put(server: &Arc<Server>, length: usize) -> JoinHandle<Answered> {
    let request = Request::post("/v1/queues/q/messages")
        .header("content-length", length)
        .body(Body::from(vec![b'x'; length]))
        .expect("a request");
    let server = Arc::clone(server);
    tokio::spawn(async move { server.send(request).await })
}

/// Lets everything run that can.
async fn until_stalled(faulty: &Faulty, commits: usize) {
    for _ in 0..1_000_000 {
        if faulty.stalled() >= commits {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{} of {commits} commits came", faulty.stalled());
}

#[tokio::test]
async fn while_every_put_waits_for_the_disk_looks_are_answered() {
    let (server, faulty) = stalled(ServerOptions::default()).await;
    let puts: Vec<_> = (0..PUTS).map(|_| put(&server, 10)).collect();
    until_stalled(&faulty, PUTS).await;
    // The next has no place: it is told so, and when to come again.
    let refused = put(&server, 10).await.expect("no panic");
    assert_eq!(refused.header("retry-after"), "1");
    refused.problem(503, "too-many-requests");
    for path in [
        "/v1/status",
        "/v1/queues/q",
        "/v1/queues/q/messages",
        "/readyz",
    ] {
        server.get(path).await.is(200);
    }
    server.post("/v1/queues/q/get").await.is(204);
    faulty.resume();
    for put in puts {
        put.await.expect("no panic").is(201);
    }
}

#[tokio::test]
async fn bodies_wait_for_their_share_of_the_memory_and_are_then_refused() {
    let options = ServerOptions {
        body_memory: 100 << 10,
        body_wait: std::time::Duration::from_millis(50),
        ..ServerOptions::default()
    };
    let (server, faulty) = stalled(options).await;
    let puts: Vec<_> = (0..4).map(|_| put(&server, 25 << 10)).collect();
    until_stalled(&faulty, puts.len()).await;
    let refused = put(&server, 1).await.expect("no panic");
    assert_eq!(refused.header("retry-after"), "1");
    refused.problem(503, "too-many-requests");
    let waiting = put(&server, 1);
    tokio::task::yield_now().await;
    faulty.resume();
    for put in puts {
        put.await.expect("no panic").is(201);
    }
    waiting.await.expect("no panic").is(201);
}

#[tokio::test]
async fn a_put_past_what_may_wait_for_the_disk_is_429_and_says_when_to_come_again() {
    let memory = Arc::new(MemoryStore::new(1, 64 << 20));
    let faulty = Arc::new(Faulty::new(memory));
    let server = Server::over(faulty.clone(), ServerOptions::default()).await;
    server.queue("q").await;
    faulty.refuse_commit(CommitError::Busy {
        units: 7,
        units_max: 8,
        bytes: 99,
        bytes_max: 100,
    });
    let refused = server.call("POST", "/v1/queues/q/messages", &[], "x").await;
    assert_eq!(refused.header("retry-after"), "1");
    let problem = refused.problem(429, "store-busy");
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(
        detail.starts_with("7 units of work with 99 bytes"),
        "{detail}"
    );
}
