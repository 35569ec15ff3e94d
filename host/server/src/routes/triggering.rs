//! Triggering: explain, turn on and off, pause and resume a queue.

use axum::Json;
use axum::extract::State;
use oncue_core::code::Code;
use oncue_core::definition::Fault;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Answer, json};
use crate::app::App;
use crate::error::Problem;
use crate::extract::{Fields, Query, QueuePath};
use crate::openapi::{Absent, Common, Conflict, WithBody};
use crate::wire::fields::boolean;
use crate::wire::schema::{ExplanationSchema, QueueSchema};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(explain_queue))
        .routes(routes!(trigger_queue))
        .routes(routes!(pause_queue))
        .routes(routes!(resume_queue))
}

/// Whether the trigger is on.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TriggerControl)]
#[expect(dead_code, reason = "only describes; the reader works on Raw")]
pub(super) struct TriggerSchema {
    /// True turns it on, false off.
    on: bool,
}

/// Why a queue does or does not start a task now.
#[utoipa::path(
    get, path = "/v1/queues/{queue}/explain", tag = "triggering",
    params(("queue" = String, Path, description = "The queue")),
    responses(
        (status = 200, description = "Every condition and the verdict", body = ExplanationSchema),
        Common, Absent
    )
)]
async fn explain_queue(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    query: Query,
) -> Answer<Json<Value>> {
    query.nothing()?;
    json(&app.handle.explain(queue).await?)
}

/// Turns a queue's trigger on or off. On also re-arms a trigger that is off by depth.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/trigger", tag = "triggering",
    params(("queue" = String, Path, description = "The queue")),
    request_body = TriggerSchema,
    responses(
        (status = 200, description = "The queue as it is now", body = QueueSchema),
        Common, Absent, Conflict, WithBody
    )
)]
async fn trigger_queue(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    query: Query,
    fields: Fields,
) -> Answer<Json<Value>> {
    let mut on = None;
    fields.or_query(query).read(&["on"], |_, value| {
        on = Some(boolean(value)?);
        Ok(())
    })?;
    let on = on.ok_or_else(|| {
        let fault = Fault::new("on", "is missing; use true or false");
        Problem::with_faults(Code::InvalidJson, vec![fault])
    })?;
    json(&app.handle.trigger(queue, on).await?)
}

/// Pauses a queue: no task starts for it; running ones end at their next boundary.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/pause", tag = "triggering",
    params(("queue" = String, Path, description = "The queue")),
    responses((status = 200, description = "Paused", body = QueueSchema), Common, Absent)
)]
async fn pause_queue(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    query: Query,
) -> Answer<Json<Value>> {
    query.nothing()?;
    app.handle.pause_queue(queue.clone(), true).await?;
    json(&app.handle.queue(queue).await?)
}

/// Lets a paused queue start tasks again.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/resume", tag = "triggering",
    params(("queue" = String, Path, description = "The queue")),
    responses((status = 200, description = "Resumed", body = QueueSchema), Common, Absent)
)]
async fn resume_queue(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    query: Query,
) -> Answer<Json<Value>> {
    query.nothing()?;
    app.handle.pause_queue(queue.clone(), false).await?;
    json(&app.handle.queue(queue).await?)
}
