//! Process definitions: list, define, show, alter, delete, pause, resume.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use oncue_core::code::Code;
use oncue_core::definition::ProcessPatch;
use oncue_core::names::ProcessName;
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::queues::defined;
use super::{Answer, json};
use crate::app::App;
use crate::error::Problem;
use crate::extract::{Fields, ProcessPath, Query};
use crate::openapi::{Absent, Common, Conflict, Unprocessable, WithBody};
use crate::wire::page::{Paging, ProcessesPage, cut};
use crate::wire::schema::{ProcessAttributesSchema, ProcessSchema};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(list_processes))
        .routes(routes!(
            define_process,
            show_process,
            alter_process,
            delete_process
        ))
        .routes(routes!(pause_process))
        .routes(routes!(resume_process))
}

fn patch(fields: &Fields) -> Answer<ProcessPatch> {
    ProcessPatch::parse(&fields.0)
        .map_err(|faults| Problem::with_faults(Code::InvalidDefinition, faults))
}

/// What a cursor of the list belongs to.
const LIST: [&str; 1] = ["processes"];

/// Process definitions, by name, page by page.
#[utoipa::path(
    get, path = "/v1/processes", tag = "processes",
    params(
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
        ("max" = Option<u32>, Query, description = "At most so many, 1 to 1000; 100 if left out")
    ),
    responses((status = 200, description = "A page", body = ProcessesPage), Common)
)]
async fn list_processes(State(app): State<App>, query: Query) -> Answer<Json<Value>> {
    let mut page = Paging::default();
    query.read(&["cursor", "max"], |name, value| page.read(name, value))?;
    let after = page.after(&LIST, |name| ProcessName::new(name).ok())?;
    let mut processes = app.handle.processes_after(after, page.max + 1).await?;
    let next = cut(&mut processes, page.max, &LIST, |last| {
        last.name.to_string()
    });
    json(&ProcessesPage { processes, next })
}

/// Makes a process definition, or lays the attributes over those of one that is there. Repeating it
/// changes nothing.
#[utoipa::path(
    put, path = "/v1/processes/{process}", tag = "processes",
    params(("process" = String, Path, description = "The process definition")),
    request_body(content = Option<ProcessAttributesSchema>, description = "May be empty"),
    responses(
        (status = 200, description = "The definition was there", body = ProcessSchema),
        (status = 201, description = "The definition was made", body = ProcessSchema,
            headers(("location" = String, description = "The definition's path"))),
        Common, WithBody, Conflict, Unprocessable
    )
)]
async fn define_process(
    State(app): State<App>,
    ProcessPath(process): ProcessPath,
    query: Query,
    fields: Fields,
) -> Answer<Response> {
    query.nothing()?;
    let location = format!("/v1/processes/{process}");
    let (view, made) = app.handle.define_process(process, patch(&fields)?).await?;
    defined(json(&view)?, made, &location)
}

/// One process definition.
#[utoipa::path(
    get, path = "/v1/processes/{process}", tag = "processes",
    params(("process" = String, Path, description = "The process definition")),
    responses((status = 200, description = "The definition", body = ProcessSchema), Common, Absent)
)]
async fn show_process(
    State(app): State<App>,
    ProcessPath(process): ProcessPath,
    query: Query,
) -> Answer<Json<Value>> {
    query.nothing()?;
    json(&app.handle.process(process).await?)
}

/// Alters a process definition: attributes that are given replace an operator's earlier values,
/// null takes one away so that the manifest's value or the default shows again.
#[utoipa::path(
    patch, path = "/v1/processes/{process}", tag = "processes",
    params(("process" = String, Path, description = "The process definition")),
    request_body(
        content = Option<ProcessAttributesSchema>, description = "Empty changes nothing"
    ),
    responses(
        (status = 200, description = "The definition as it is now", body = ProcessSchema),
        Common, Absent, WithBody, Conflict, Unprocessable
    )
)]
async fn alter_process(
    State(app): State<App>,
    ProcessPath(process): ProcessPath,
    query: Query,
    fields: Fields,
) -> Answer<Json<Value>> {
    query.nothing()?;
    json(&app.handle.alter_process(process, patch(&fields)?).await?)
}

/// Deletes a process definition.
#[utoipa::path(
    delete, path = "/v1/processes/{process}", tag = "processes",
    params(("process" = String, Path, description = "The process definition")),
    responses((status = 204, description = "Deleted"), Common, Absent, Conflict)
)]
async fn delete_process(
    State(app): State<App>,
    ProcessPath(process): ProcessPath,
    query: Query,
) -> Answer<StatusCode> {
    query.nothing()?;
    app.handle.delete_process(process).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Pauses a process: no task starts for the queues bound to it; running ones end at their next
/// boundary.
#[utoipa::path(
    post, path = "/v1/processes/{process}/pause", tag = "processes",
    params(("process" = String, Path, description = "The process definition")),
    responses((status = 200, description = "Paused", body = ProcessSchema), Common, Absent)
)]
async fn pause_process(
    State(app): State<App>,
    ProcessPath(process): ProcessPath,
    query: Query,
) -> Answer<Json<Value>> {
    query.nothing()?;
    app.handle.pause_process(process.clone(), true).await?;
    json(&app.handle.process(process).await?)
}

/// Lets a paused process start tasks again.
#[utoipa::path(
    post, path = "/v1/processes/{process}/resume", tag = "processes",
    params(("process" = String, Path, description = "The process definition")),
    responses((status = 200, description = "Resumed", body = ProcessSchema), Common, Absent)
)]
async fn resume_process(
    State(app): State<App>,
    ProcessPath(process): ProcessPath,
    query: Query,
) -> Answer<Json<Value>> {
    query.nothing()?;
    app.handle.pause_process(process.clone(), false).await?;
    json(&app.handle.process(process).await?)
}
