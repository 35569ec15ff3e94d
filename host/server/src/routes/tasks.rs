//! Task records.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use oncue_core::code::Code;
use oncue_core::message::MessageId;
use oncue_core::outcome::Outcome;
use oncue_manager::handle::{MAX_TASKS, TaskFilter};
use oncue_manager::status::Seen;
use oncue_manager::tasks::TaskId;
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Answer, json};
use crate::app::App;
use crate::auth::identity::Right;
use crate::auth::{Who, sight};
use crate::error::Problem;
use crate::extract::{Query, TaskPath};
use crate::openapi::{Absent, Common, Conflict};
use crate::wire::case::CaseJson;
use crate::wire::fields::{boolean, integer, text, word};
use crate::wire::put::queue_name;
use crate::wire::schema::TaskSchema;

/// Records of one answer when nothing else is asked for.
const DEFAULT_MAX: usize = 100;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(list_tasks))
        .routes(routes!(show_task))
        .routes(routes!(show_case))
}

/// Tasks of the queues that the identity may see, newest first: those that run, recent ones, and
/// failed ones of earlier times. Fewer than `max` are all; what follows a page is `before` its last
/// one.
#[utoipa::path(
    get, path = "/v1/tasks", tag = "tasks",
    params(
        ("queue" = Option<String>, Query, description = "Only of this queue"),
        ("outcome" = Option<String>, Query, description = "Only with this outcome"),
        ("failed" = Option<bool>, Query, description = "Only failures"),
        ("before" = Option<u64>, Query, description = "Only older than this task"),
        ("max" = Option<u32>, Query, description = "At most so many, 1 to 1000; 100 if left out")
    ),
    responses((status = 200, description = "Tasks, newest first", body = [TaskSchema]), Common)
)]
async fn list_tasks(
    State(app): State<App>,
    Who(identity): Who,
    query: Query,
) -> Answer<Json<Value>> {
    let seeing = Arc::clone(&identity);
    let mut filter = TaskFilter {
        seen: Seen::by(move |queue| seeing.sees(queue)),
        max: DEFAULT_MAX,
        ..TaskFilter::default()
    };
    query.read(
        &["queue", "outcome", "failed", "before", "max"],
        |name, value| {
            match name {
                "queue" => filter.queue = Some(queue_name(value)?),
                "outcome" => filter.outcome = Some(word(value, Outcome::ALL, Outcome::as_str)?),
                "failed" => filter.failed = boolean(value)?,
                "before" => filter.before = Some(TaskId(integer(value, 0, u64::MAX)?)),
                _ => filter.max = integer(value, 1, MAX_TASKS as u64)?,
            }
            Ok(())
        },
    )?;
    let asks = Arc::clone(&identity);
    filter.seen = Seen::by(move |queue| asks.sees(queue));
    json(&sight::tasks(&identity, app.handle.tasks(filter).await?))
}

/// The answer to whoever does not see the task's queue: as if there were no such task.
pub(crate) fn unknown(task: TaskId) -> Problem {
    let detail = format!("task {task} is not known, or of a queue that you do not see");
    Problem::new(Code::UnknownTask, detail)
}

/// One task.
#[utoipa::path(
    get, path = "/v1/tasks/{task}", tag = "tasks",
    params(("task" = u64, Path, description = "The task")),
    responses((status = 200, description = "The task", body = TaskSchema), Common, Absent)
)]
async fn show_task(
    State(app): State<App>,
    TaskPath(task): TaskPath,
    Who(identity): Who,
    query: Query,
) -> Answer<Json<Value>> {
    query.nothing()?;
    let record = app.handle.task(task).await?;
    json(&sight::task(&identity, record).ok_or_else(|| unknown(task))?)
}

/// A golden case of a failed task: what its handler had in hand, read and put. The last failures
/// are kept in memory.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/case", tag = "tasks",
    params(
        ("task" = u64, Path, description = "The task"),
        ("message" = Option<String>, Query,
            description = "Its failure on this message; the last one if left out")
    ),
    responses(
        (status = 200, description = "The case", body = CaseJson), Common, Absent, Conflict
    )
)]
async fn show_case(
    State(app): State<App>,
    TaskPath(task): TaskPath,
    who: Who,
    query: Query,
) -> Answer<Json<Value>> {
    let mut message = None;
    query.read(&["message"], |_, value| {
        let id = text(value)?.parse::<MessageId>();
        message = Some(id.map_err(|error| error.to_string())?);
        Ok(())
    })?;
    let record = app.handle.task(task).await?;
    if !who.0.sees(&record.queue) {
        return Err(unknown(task));
    }
    who.must(Right::Browse, &record.queue)?;
    let failure = app.handle.failed_unit(task, message).await?;
    json(&CaseJson::from(&failure))
}
