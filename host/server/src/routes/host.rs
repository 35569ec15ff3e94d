//! The host: pause and resume, status, ledger, health, the OpenAPI document.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use bytes::Bytes;
use oncue_core::code::Code;
use oncue_manager::status::store_word;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Answer, json};
use crate::app::App;
use crate::error::Problem;
use crate::extract::Query;
use crate::openapi::Common;
use crate::wire::fields::{boolean, text};
use crate::wire::schema::{AlarmsSchema, LedgerSchema, StatusSchema};

/// The document's path, which the document names too.
const DOCUMENT_PATH: &str = "/openapi.json";

pub(super) fn routes() -> OpenApiRouter<App> {
    let mut routes = OpenApiRouter::default()
        .routes(routes!(pause_host))
        .routes(routes!(resume_host))
        .routes(routes!(show_status))
        .routes(routes!(show_ledger))
        .routes(routes!(show_alarms))
        .routes(routes!(livez))
        .routes(routes!(readyz));
    // Only described here: the route needs the finished document.
    routes.get_openapi_mut().paths.add_path_operation(
        DOCUMENT_PATH,
        <__path_openapi_json as utoipa::Path>::methods(),
        <__path_openapi_json as utoipa::Path>::operation(),
    );
    routes
}

/// The route of the document itself.
pub(super) fn document_route(document: &OpenApi) -> Router<App> {
    let written = serde_json::to_vec(document).expect("the document has text keys only");
    let written = Written(written.into());
    Router::new().route(
        DOCUMENT_PATH,
        get(move |query| openapi_json(query, written.clone())),
    )
}

/// The document as it is sent.
#[derive(Clone)]
struct Written(Bytes);

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "host",
    responses((status = 200, description = "OpenAPI 3.1", body = Object), Common)
)]
async fn openapi_json(query: Query, Written(written): Written) -> Answer<Response> {
    query.nothing()?;
    Ok(([(header::CONTENT_TYPE, "application/json")], written).into_response())
}

/// Pauses the host: no task starts; running ones end at their next boundary. Puts and gets go on.
#[utoipa::path(
    post, path = "/v1/pause", tag = "host",
    responses((status = 200, description = "Paused", body = StatusSchema), Common)
)]
async fn pause_host(State(app): State<App>, query: Query) -> Answer<Json<Value>> {
    query.nothing()?;
    app.handle.pause_host(true).await?;
    json(&app.handle.status().await?)
}

/// Lets the host start tasks again.
#[utoipa::path(
    post, path = "/v1/resume", tag = "host",
    responses((status = 200, description = "Resumed", body = StatusSchema), Common)
)]
async fn resume_host(State(app): State<App>, query: Query) -> Answer<Json<Value>> {
    query.nothing()?;
    app.handle.pause_host(false).await?;
    json(&app.handle.status().await?)
}

/// The host in numbers.
#[utoipa::path(
    get, path = "/v1/status", tag = "host",
    responses((status = 200, description = "The host in numbers", body = StatusSchema), Common)
)]
async fn show_status(State(app): State<App>, query: Query) -> Answer<Json<Value>> {
    query.nothing()?;
    json(&app.handle.status().await?)
}

/// What the host may run, and what it runs.
#[utoipa::path(
    get, path = "/v1/ledger", tag = "host",
    responses((status = 200, description = "The ledger", body = LedgerSchema), Common)
)]
async fn show_ledger(State(app): State<App>, query: Query) -> Answer<Json<Value>> {
    query.nothing()?;
    json(&app.handle.ledger().await?)
}

/// What a person should know of, the newest first.
#[utoipa::path(
    get, path = "/v1/alarms", tag = "host",
    responses((status = 200, description = "Alarms raised now", body = AlarmsSchema), Common)
)]
async fn show_alarms(State(app): State<App>, query: Query) -> Answer<Json<Value>> {
    query.nothing()?;
    json(&app.handle.alarms().await?)
}

/// How the host is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Health {
    /// `ok`.
    pub(super) status: &'static str,
    /// Each check, when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) checks: Option<Vec<Check>>,
}

/// One check of the host's health.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Check {
    /// What was checked.
    name: &'static str,
    /// What it is.
    value: String,
}

/// Whether the process answers. It says nothing of the store, so that a full disk restarts nothing.
#[utoipa::path(
    get, path = "/livez", tag = "host",
    responses((status = 200, description = "Alive", body = Health), Common)
)]
async fn livez() -> Json<Health> {
    Json(Health {
        status: "ok",
        checks: None,
    })
}

/// Whether the host takes work: recovered, writing, not stopping.
#[utoipa::path(
    get, path = "/readyz", tag = "host",
    params(("verbose" = Option<bool>, Query, 
            description = "List the checks; `?verbose` alone means true")),
    responses((status = 200, description = "Ready", body = Health), Common)
)]
async fn readyz(State(app): State<App>, query: Query) -> Answer<(StatusCode, Json<Health>)> {
    let mut verbose = false;
    query.read(&["verbose"], |_, value| {
        // `?verbose` alone means yes.
        verbose = text(value).is_ok_and(str::is_empty) || boolean(value)?;
        Ok(())
    })?;
    app.handle
        .is_ready()
        .map_err(|why| Problem::new(not_ready(&app), why))?;
    let checks = if verbose {
        Some(checks(&app).await?)
    } else {
        None
    };
    Ok((
        StatusCode::OK,
        Json(Health {
            status: "ok",
            checks,
        }),
    ))
}

/// The code of a host that is not ready.
fn not_ready(app: &App) -> Code {
    match store_word(app.handle.store_status().stopped) {
        "ok" => Code::Draining,
        "full" => Code::StoreFull,
        _ => Code::StoreStopped,
    }
}

async fn checks(app: &App) -> Answer<Vec<Check>> {
    // Asking the manager shows that its loop answers.
    let status = app.handle.status().await?;
    let store = app.handle.store_status();
    let free = store.disk_free.map(oncue_core::quantity::format_bytes);
    Ok(vec![
        Check {
            name: "manager",
            value: status.phase.to_owned(),
        },
        Check {
            name: "store",
            value: status.store.to_owned(),
        },
        Check {
            name: "disk-free",
            value: free.unwrap_or_else(|| "no disk".to_owned()),
        },
    ])
}
