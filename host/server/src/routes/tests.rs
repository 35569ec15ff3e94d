//! What stands before every route, tried with a route that no client has.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use axum::routing::get;
use oncue_core::time::Timestamp;
use oncue_manager::tasks::{StartError, TaskHost, TaskSession};
use oncue_manager::{ManagerConfig, ManualClock, QueueManager};
use oncue_store::memory::MemoryStore;
use tower::ServiceExt as _;

use super::*;

/// A host that starts nothing.
struct NoTasks;

impl TaskHost for NoTasks {
    fn start(&self, _session: Arc<TaskSession>) -> Result<(), StartError> {
        Err(StartError("this host starts nothing".to_owned()))
    }
}

pub(crate) fn app(options: ServerOptions) -> (App, QueueManager) {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000)));
    let store = Arc::new(MemoryStore::new(1, 1 << 20));
    let config = ManagerConfig::default();
    let manager = QueueManager::start(config, store, clock, Arc::new(NoTasks)).expect("a manager");
    (App::new(manager.handle(), options), manager)
}

async fn panics() -> &'static str {
    panic!("planted, with a secret")
}

fn planted(app: &App) -> Api {
    layered(Router::new().route("/panic", get(panics)), app.clone())
}

async fn problem(response: Response<Body>) -> serde_json::Value {
    let body = to_bytes(response.into_body(), usize::MAX)
        .await
        .expect("a body");
    serde_json::from_slice(&body).expect("JSON")
}

fn request(path: &str) -> Request<Body> {
    Request::builder()
        .uri(path)
        .body(Body::empty())
        .expect("a request")
}

#[tokio::test]
async fn a_panic_is_a_problem_with_a_request_id() {
    let (app, _manager) = app(ServerOptions::default());
    let response = planted(&app)
        .oneshot(request("/panic"))
        .await
        .expect("infallible");
    assert_eq!(response.status(), 500);
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    let id = response.headers()["oncue-request-id"]
        .to_str()
        .expect("ASCII")
        .to_owned();
    let problem = problem(response).await;
    assert_eq!(problem["code"], "internal");
    assert_eq!(problem["request-id"], id);
    assert!(!problem.to_string().contains("secret"), "{problem}");
}

#[tokio::test]
async fn requests_past_the_bound_are_refused_but_health_answers() {
    let (app, _manager) = app(ServerOptions {
        max_requests: 1,
        ..ServerOptions::default()
    });
    let router = api_of(app.clone());
    let place = app.admit().expect("the first place");
    let response = router
        .clone()
        .oneshot(request("/v1/queues"))
        .await
        .expect("infallible");
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(problem(response).await["code"], "too-many-requests");
    let live = router
        .clone()
        .oneshot(request("/livez"))
        .await
        .expect("infallible");
    assert_eq!(live.status(), 200);
    drop(place);
    let response = router
        .oneshot(request("/v1/queues"))
        .await
        .expect("infallible");
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn bodies_past_their_memory_are_refused() {
    let options = ServerOptions {
        body_memory: 4 << 10,
        body_wait: std::time::Duration::ZERO,
        body_limit: 1 << 20,
        ..ServerOptions::default()
    };
    let (app, _manager) = app(options);
    let share = app.reserve_body(3).await.expect("three of four KiB");
    let put = |length: usize| {
        let request = Request::builder()
            .method("POST")
            .uri("/v1/queues/q/messages")
            .header("content-length", length)
            .body(Body::from(vec![b'x'; length]));
        request.expect("a request")
    };
    let router = api_of(app);
    let response = router
        .clone()
        .oneshot(put(2 << 10))
        .await
        .expect("infallible");
    assert_eq!(problem(response).await["code"], "too-many-requests");
    drop(share);
    // Past the memory, but within the limit: alone it passes.
    let response = router.oneshot(put(16 << 10)).await.expect("infallible");
    assert_eq!(problem(response).await["code"], "unknown-queue");
}

#[tokio::test]
async fn what_waits_ends_when_the_server_stops() {
    let (app, manager) = app(ServerOptions::default());
    let queue = oncue_core::names::QueueName::new("q").expect("a name");
    let patch = oncue_core::definition::QueuePatch::default();
    manager
        .handle()
        .define_queue(queue, patch)
        .await
        .expect("a queue");
    let router = api_of(app.clone());
    let waits = Request::builder()
        .method("POST")
        .uri("/v1/queues/q/get?wait=60s");
    let waits = router
        .clone()
        .oneshot(waits.body(Body::empty()).expect("a request"));
    let events = router
        .oneshot(request("/v1/events"))
        .await
        .expect("infallible");
    let stops = async { app.stop() };
    let (got, ()) = tokio::join!(waits, stops);
    assert_eq!(got.expect("infallible").status(), 204);
    let rest = to_bytes(events.into_body(), usize::MAX)
        .await
        .expect("an end");
    assert!(rest.is_empty(), "{rest:?}");
}

#[tokio::test]
async fn each_check_of_the_health_answers_for_itself() {
    let (app, _manager) = app(ServerOptions::default());
    let router = api_of(app.clone());
    let ask = async |path: &str| {
        router
            .clone()
            .oneshot(request(path))
            .await
            .expect("infallible")
    };
    assert_eq!(ask("/startupz").await.status(), 200);
    for (_, check) in health::Check::ALL {
        let response = ask(&format!("/v1/health/checks/{check}")).await;
        assert_eq!(response.status(), 200, "{check}");
        assert_eq!(problem(response).await["status"], "ok", "{check}");
    }
    app.handle.pause_host(true).await.expect("it is paused");
    let response = ask("/v1/health/checks/triggers").await;
    assert_eq!(response.status(), 503);
    assert_eq!(problem(response).await["code"], "unhealthy");
    assert_eq!(ask("/v1/health/checks/store").await.status(), 200);
    let name = oncue_core::names::QueueName::dead_letter();
    let closed = [("put".to_owned(), "disabled".to_owned())];
    let patch = oncue_core::definition::QueuePatch::parse_flags(&closed).expect("a patch");
    app.handle
        .alter_queue(name, patch)
        .await
        .expect("it is altered");
    let response = ask("/v1/health/checks/dlq").await;
    assert_eq!(response.status(), 503);
    let told = problem(response).await["detail"].to_string();
    assert!(told.contains("put is disabled"), "{told}");
    assert_eq!(ask("/v1/health/checks/disc").await.status(), 404);
}
