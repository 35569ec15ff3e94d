//! A server in memory, and requests to it.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use bytes::Bytes;
use oncue_core::outcome::{CallEnd, Outcome};
use oncue_core::time::Timestamp;
use oncue_manager::tasks::drain::drain;
use oncue_manager::tasks::{
    CallReport, Delivered, Handler, StartError, TaskCost, TaskHost, TaskSession,
};
use oncue_manager::{Handle, ManagerConfig, ManualClock, QueueManager};
use oncue_server::{Api, ServerOptions, api};
use oncue_store::Store;
use oncue_store::memory::MemoryStore;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::schema::Document;

/// Bytes of messages that the test's store holds.
const STORE_BYTES: u64 = 64 << 20;

/// The time at which every test begins.
pub(crate) const START: Timestamp = Timestamp(1_800_000_000_000);

/// Runs handlers that do what the message says: `trap` traps, anything else succeeds.
struct ScriptedHost(tokio::runtime::Handle);

struct ScriptedHandler;

impl Handler for ScriptedHandler {
    async fn call(&mut self, message: &Arc<Delivered>) -> CallReport {
        let trap = message.message.header.content_type.as_deref() == Some("test/trap");
        let end = if trap {
            CallEnd::Stopped {
                outcome: Outcome::Trapped,
                detail: "unreachable executed".to_owned(),
                backtrace: Some("0: handle".to_owned()),
            }
        } else {
            CallEnd::Ok
        };
        CallReport {
            end,
            fuel: 66,
            log_tail: String::new(),
        }
    }
}

impl TaskHost for ScriptedHost {
    fn start(&self, session: Arc<TaskSession>) -> Result<(), StartError> {
        self.0.spawn(async move {
            drain(&session, &mut ScriptedHandler).await;
            session.finish(TaskCost {
                fuel: 66,
                ..TaskCost::default()
            });
        });
        Ok(())
    }
}

/// A server in memory.
pub(crate) struct Server {
    pub(crate) handle: Handle,
    pub(crate) router: Api,
    pub(crate) clock: Arc<ManualClock>,
    document: Document,
    _manager: QueueManager,
}

/// What a request was answered.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answered {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {} {text}", self.status))
    }

    /// Holds the status to what is wanted.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status.as_u16(), status, "{text}");
        self
    }

    /// Holds the problem to a status and a code; answers with it.
    #[track_caller]
    pub(crate) fn problem(self, status: u16, code: &str) -> Value {
        let answered = self.is(status);
        assert_eq!(answered.header("content-type"), "application/problem+json");
        let problem = answered.json();
        assert_eq!(problem["code"], code, "{problem:#}");
        assert_eq!(problem["status"], status, "{problem:#}");
        assert_eq!(
            problem["request-id"],
            answered.header("oncue-request-id"),
            "{problem:#}"
        );
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.ends_with(&format!("[{code}]")), "{detail}");
        problem
    }

    /// One header as text.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self
            .headers
            .get(name)
            .unwrap_or_else(|| panic!("no {name}"));
        value.to_str().expect("visible ASCII")
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(ServerOptions::default()).await
    }

    pub(crate) async fn with(options: ServerOptions) -> Self {
        Self::over(Arc::new(MemoryStore::new(1, STORE_BYTES)), options).await
    }

    /// A server over another store.
    pub(crate) async fn over(store: Arc<dyn Store>, options: ServerOptions) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let host = Arc::new(ScriptedHost(tokio::runtime::Handle::current()));
        let config = ManagerConfig {
            seed: Some(66),
            ..ManagerConfig::default()
        };
        let mut manager =
            QueueManager::start(config, store, clock.clone(), host).expect("a queue manager");
        // There is no plugins directory, and who asks it is told so.
        drop(manager.take_plugin_commands());
        let handle = manager.handle();
        Self {
            router: api(handle.clone(), options),
            handle,
            clock,
            document: Document::new(),
            _manager: manager,
        }
    }

    /// Sends a request and checks that the answer is one that the document names.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answered {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self
            .router
            .clone()
            .oneshot(request)
            .await
            .expect("infallible");
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.expect("a body");
        let answered = Answered {
            status: parts.status,
            headers: parts.headers,
            body,
        };
        self.document.check(&method, &path, &answered);
        answered
    }

    /// A request with headers and a body.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answered {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.into()).expect("a request"))
            .await
    }

    pub(crate) async fn get(&self, path: &str) -> Answered {
        self.call("GET", path, &[], Body::empty()).await
    }

    pub(crate) async fn post(&self, path: &str) -> Answered {
        self.call("POST", path, &[], Body::empty()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answered {
        self.call("DELETE", path, &[], Body::empty()).await
    }

    pub(crate) async fn json(&self, method: &str, path: &str, body: Value) -> Answered {
        let headers = [("content-type", "application/json")];
        self.call(method, path, &headers, body.to_string()).await
    }

    /// Defines a queue that starts no task.
    pub(crate) async fn queue(&self, name: &str) {
        self.json(
            "PUT",
            &format!("/v1/queues/{name}"),
            serde_json::json!({"trigger": "none"}),
        )
        .await
        .is(201);
    }

    /// Puts a text and answers with its id.
    pub(crate) async fn put(&self, queue: &str, headers: &[(&str, &str)], body: &str) -> String {
        let path = format!("/v1/queues/{queue}/messages");
        let answered = self
            .call("POST", &path, headers, body.to_owned())
            .await
            .is(201);
        answered.json()["id"].as_str().expect("an id").to_owned()
    }

    /// The ids on a queue, from browsing it.
    pub(crate) async fn ids(&self, queue: &str) -> Vec<String> {
        let page = self
            .get(&format!("/v1/queues/{queue}/messages"))
            .await
            .is(200)
            .json();
        let messages = page["messages"].as_array().expect("messages").clone();
        messages
            .iter()
            .map(|m| m["id"].as_str().expect("an id").to_owned())
            .collect()
    }
}
