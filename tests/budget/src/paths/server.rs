//! A put through the routes of HTTP: from a request's head and body to the answer's. The socket,
//! and the reading of the head from it, are not counted.

use axum::body::Body;
use axum::extract::Request;
use oncue_server::{ServerOptions, api};
use tower::Service as _;

use super::Path;
use crate::rig::Rig;

pub(super) const PUT: Path = Path {
    name: "server-put",
    unit: "instructions a put of 1 KiB, the manager's share among them",
    count: 1_000,
    run: puts,
};

fn puts(count: u32) {
    let rig = Rig::new(0);
    let mut api = api(rig.handle.clone(), ServerOptions::default());
    for _ in 0..count {
        let request = Request::post("/v1/queues/done/messages")
            .header("host", "127.0.0.1:7373")
            .header("user-agent", "budget")
            .header("content-type", "application/octet-stream")
            .header("content-length", rig.body.len())
            .body(Body::from(rig.body.clone()))
            .expect("a request");
        let Ok(response) = rig.runtime.block_on(api.call(request));
        assert_eq!(response.status(), 201, "the put is taken");
    }
}
