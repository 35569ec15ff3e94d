//! Plugins: list, show, roll back.

use axum::Json;
use axum::extract::State;
use oncue_core::names::PluginName;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Answer, json};
use crate::app::App;
use crate::extract::{PluginPath, Query};
use crate::openapi::{Absent, Common, Conflict, Unprocessable};
use crate::wire::page::{Paging, PluginsPage, cut};
use crate::wire::schema::PluginSchema;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(list_plugins))
        .routes(routes!(show_plugin))
        .routes(routes!(roll_back_plugin))
}

/// What serves after a rollback.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct RolledBack {
    /// Digest of the version that serves now, until the plugin's file changes.
    digest: String,
}

/// What a cursor of the list belongs to.
const LIST: [&str; 1] = ["plugins"];

/// Plugins, by name, page by page.
#[utoipa::path(
    get, path = "/v1/plugins", tag = "plugins",
    params(
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
        ("max" = Option<u32>, Query, description = "At most so many, 1 to 1000; 100 if left out")
    ),
    responses((status = 200, description = "A page", body = PluginsPage), Common)
)]
async fn list_plugins(State(app): State<App>, query: Query) -> Answer<Json<Value>> {
    let mut page = Paging::default();
    query.read(&["cursor", "max"], |name, value| page.read(name, value))?;
    let after = page.after(&LIST, |name| PluginName::new(name).ok())?;
    let mut plugins = app.handle.plugins_after(after, page.max + 1).await?;
    let next = cut(&mut plugins, page.max, &LIST, |last| last.name.to_string());
    json(&PluginsPage { plugins, next })
}

/// One plugin.
#[utoipa::path(
    get, path = "/v1/plugins/{plugin}", tag = "plugins",
    params(("plugin" = String, Path, description = "The plugin")),
    responses((status = 200, description = "The plugin", body = PluginSchema), Common, Absent)
)]
async fn show_plugin(
    State(app): State<App>,
    PluginPath(plugin): PluginPath,
    query: Query,
) -> Answer<Json<Value>> {
    query.nothing()?;
    json(&app.handle.plugin(plugin).await?)
}

/// Serves the version before the present one, until the plugin's file changes.
#[utoipa::path(
    post, path = "/v1/plugins/{plugin}/rollback", tag = "plugins",
    params(("plugin" = String, Path, description = "The plugin")),
    responses(
        (status = 200, description = "The earlier version serves", body = RolledBack),
        Common, Absent, Conflict, Unprocessable
    )
)]
async fn roll_back_plugin(
    State(app): State<App>,
    PluginPath(plugin): PluginPath,
    query: Query,
) -> Answer<Json<RolledBack>> {
    query.nothing()?;
    let digest = app.handle.rollback(plugin).await?;
    Ok(Json(RolledBack { digest }))
}
