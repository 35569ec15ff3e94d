//! The listener over real connections.

use std::net::SocketAddr;
use std::time::Duration;

use oncue_server::{ServerOptions, Stopped, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::harness::Server;

/// A time that is over soon, for what must be cut off.
pub(crate) const SOON: Duration = Duration::from_millis(50);

pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<Stopped>>,
    server: Server,
}

pub(crate) async fn listen(options: ServerOptions) -> Listening {
    let server = Server::start().await;
    server.queue("q").await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async move {
        let _ = stopped.await;
    };
    let served = tokio::spawn(serve(listener, server.handle.clone(), options, shutdown));
    Listening {
        address,
        stop,
        served,
        server,
    }
}

pub(crate) async fn send(address: SocketAddr, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("sent");
    stream
}

pub(crate) async fn rest(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    // A reset is an end too: the other side closed with bytes of ours unread.
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8_lossy(&text).into_owned()
}

pub(crate) const CLOSE: &str = "host: localhost\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn requests_are_served_and_the_stop_is_clean() {
    let listening = listen(ServerOptions::default()).await;
    let answer = rest(
        send(
            listening.address,
            &format!("GET /livez HTTP/1.1\r\n{CLOSE}"),
        )
        .await,
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.ends_with(r#"{"status":"ok"}"#), "{answer}");
    let waits = send(
        listening.address,
        &format!("POST /v1/queues/q/get?wait=60s HTTP/1.1\r\n{CLOSE}"),
    )
    .await;
    // The get waits at the queue before the stop comes.
    let mut view = listening.server.get("/v1/queues/q").await.json();
    while view["waiting-inputs"] != 1 {
        tokio::task::yield_now().await;
        view = listening.server.get("/v1/queues/q").await.json();
    }
    listening.stop.send(()).expect("served until now");
    let answer = rest(waits).await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    let stopped = listening.served.await.expect("no panic").expect("served");
    assert_eq!(stopped, Stopped::Clean);
    assert!(TcpStream::connect(listening.address).await.is_err());
}

#[tokio::test]
async fn a_head_that_does_not_come_is_cut_off() {
    let options = ServerOptions {
        idle_time: SOON,
        ..ServerOptions::default()
    };
    let listening = listen(options).await;
    let slow = send(listening.address, "GET /livez HTTP/1.1\r\nhost: local").await;
    assert_eq!(rest(slow).await, "");
    // The same holds after an answer, for a connection that is kept alive.
    let kept = send(
        listening.address,
        "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n",
    )
    .await;
    assert!(rest(kept).await.ends_with(r#"{"status":"ok"}"#));
    // And it does not hold for a get that waits longer.
    let path = "POST /v1/queues/q/get?wait=200ms HTTP/1.1\r\n";
    let waited = rest(send(listening.address, &format!("{path}{CLOSE}")).await).await;
    assert!(waited.starts_with("HTTP/1.1 204"), "{waited}");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_a_problem() {
    let options = ServerOptions {
        body_time: SOON,
        ..ServerOptions::default()
    };
    let listening = listen(options).await;
    let put = format!("POST /v1/queues/q/messages HTTP/1.1\r\ncontent-length: 5\r\n{CLOSE}ab");
    let answer = rest(send(listening.address, &put).await).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("[timed-out]"), "{answer}");
}

#[tokio::test]
async fn what_does_not_end_at_a_stop_is_cut_off() {
    let options = ServerOptions {
        stop_time: SOON,
        ..ServerOptions::default()
    };
    let listening = listen(options).await;
    let put = "POST /v1/queues/q/messages HTTP/1.1\r\nhost: localhost\r\n\
               expect: 100-continue\r\ncontent-length: 5\r\n\r\n";
    let mut slow = send(listening.address, put).await;
    let mut interim = [0_u8; 12];
    slow.read_exact(&mut interim)
        .await
        .expect("the body is asked for");
    assert_eq!(&interim, b"HTTP/1.1 100");
    listening.stop.send(()).expect("served until now");
    let stopped = listening.served.await.expect("no panic").expect("served");
    assert_eq!(stopped, Stopped::CutOff);
    assert!(!rest(slow).await.contains("201"));
    assert_eq!(listening.server.ids("q").await, Vec::<String>::new());
}

#[tokio::test]
async fn connections_past_the_bound_wait() {
    let options = ServerOptions {
        max_connections: 1,
        ..ServerOptions::default()
    };
    let listening = listen(options).await;
    let first = send(listening.address, "GET /livez HTTP/1.1\r\n").await;
    let second = send(
        listening.address,
        &format!("GET /livez HTTP/1.1\r\n{CLOSE}"),
    )
    .await;
    // While others are served, this one is not.
    for _ in 0..100 {
        listening.server.get("/v1/status").await.is(200);
        tokio::task::yield_now().await;
    }
    let unanswered = second.try_read(&mut [0]).expect_err("no answer");
    assert_eq!(unanswered.kind(), std::io::ErrorKind::WouldBlock);
    drop(first);
    assert!(rest(second).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn connections_past_an_addresss_own_bound_are_closed_at_once() {
    let options = ServerOptions {
        max_connections_per_address: Some(1),
        ..ServerOptions::default()
    };
    let listening = listen(options).await;
    let live = format!("GET /livez HTTP/1.1\r\n{CLOSE}");
    let held = send(listening.address, "GET /livez HTTP/1.1\r\n").await;
    assert_eq!(rest(send(listening.address, &live).await).await, "");
    drop(held);
    // Its place is free as soon as the server has seen that it is gone.
    for _ in 0..10_000 {
        let answer = rest(send(listening.address, &live).await).await;
        if answer.starts_with("HTTP/1.1 200") {
            return;
        }
        assert_eq!(answer, "");
    }
    panic!("its place is never free again");
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_cut_off() {
    let options = ServerOptions {
        idle_time: SOON,
        max_connections: 1,
        ..ServerOptions::default()
    };
    let listening = listen(options).await;
    // More than the system keeps for a connection.
    let id = listening.server.put("q", &[], &"x".repeat(15 << 20)).await;
    let get = format!("GET /v1/queues/q/messages/{id} HTTP/1.1\r\n{CLOSE}");
    let stuck = send(listening.address, &get).await;
    // There is one place, so this one is served when the other is gone.
    let live = send(
        listening.address,
        &format!("GET /livez HTTP/1.1\r\n{CLOSE}"),
    )
    .await;
    assert!(rest(live).await.starts_with("HTTP/1.1 200"));
    assert!(rest(stuck).await.len() < 15 << 20);
}

#[tokio::test]
async fn another_machines_reach_is_refused() {
    let server = Server::start().await;
    let listener = std::net::TcpListener::bind("0.0.0.0:0").expect("a port");
    let refused = serve(
        listener,
        server.handle.clone(),
        ServerOptions::default(),
        std::future::pending(),
    );
    let error = refused.await.expect_err("refused").to_string();
    assert!(error.contains("no token is asked for"), "{error}");
}

#[tokio::test]
async fn an_answer_before_the_body_was_read_says_that_the_connection_ends() {
    let listening = listen(ServerOptions::default()).await;
    let closes = async |path: &str, body: &str| {
        let head = format!("{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n");
        let mut stream = send(listening.address, &format!("{head}{body}")).await;
        let mut answer = [0; 4096];
        let length = stream.read(&mut answer).await.expect("an answer");
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
        answer.contains("connection: close")
    };
    assert!(closes("PUT /v1/queues/no%20name", "").await);
    assert!(closes("POST /v1/nothing", "").await);
    assert!(!closes("POST /v1/queues/q/messages", "ab").await);
    assert!(!closes("POST /v1/queues/unknown/messages", "ab").await);
}
