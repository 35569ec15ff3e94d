//! Server-sent events.

use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use futures_core::Stream as _;
use tower::ServiceExt as _;

use crate::harness::Server;

/// More events than the manager keeps for one that lags.
const MANY: usize = 1_200;

async fn watch(server: &Server) -> BodyDataStream {
    let request = Request::builder()
        .uri("/v1/events")
        .body(Body::empty())
        .expect("a request");
    let response = server
        .router
        .clone()
        .oneshot(request)
        .await
        .expect("infallible");
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    response.into_body().into_data_stream()
}

/// Reads until an event of that kind, and answers with its data.
pub(crate) async fn event(stream: &mut BodyDataStream, kind: &str) -> serde_json::Value {
    let head = format!("event: {kind}\n");
    loop {
        let part =
            std::future::poll_fn(|context| std::pin::Pin::new(&mut *stream).poll_next(context));
        let part = part.await.expect("the stream goes on").expect("a part");
        let text = String::from_utf8(part.to_vec()).expect("UTF-8");
        if text.starts_with(&head) {
            let data = text
                .lines()
                .find_map(|line| line.strip_prefix("data: "))
                .expect("data");
            return serde_json::from_str(data).expect("JSON");
        }
    }
}

#[tokio::test]
async fn what_happens_is_told() {
    let server = Server::start().await;
    let mut stream = watch(&server).await;
    server.queue("q").await;
    let told = event(&mut stream, "defined").await;
    assert_eq!(told["what"], "queue");
    assert_eq!(told["name"], "q");
    assert_eq!(told["kind"], "defined");
}

#[tokio::test]
async fn one_who_lags_is_told_how_many_events_were_missed() {
    let server = Server::start().await;
    let mut stream = watch(&server).await;
    for _ in 0..MANY {
        let path = "/v1/queues/q";
        let defined = server.call("PUT", path, &[], "").await;
        assert!(defined.status.is_success(), "{defined:?}");
    }
    let told = event(&mut stream, "lagged").await;
    assert!(told["missed"].as_u64() > Some(0), "{told}");
}

#[tokio::test]
async fn streams_past_the_bound_are_refused() {
    let options = oncue_server::ServerOptions {
        max_waiting: 1,
        ..Default::default()
    };
    let server = Server::with(options).await;
    server.queue("q").await;
    let stream = watch(&server).await;
    server
        .get("/v1/events")
        .await
        .problem(503, "too-many-requests");
    server
        .post("/v1/queues/q/get")
        .await
        .problem(503, "too-many-requests");
    server.get("/v1/status").await.is(200);
    drop(stream);
}
