//! The routes, one file for each resource.

use axum::{Json, Router};
use oncue_manager::handle::Handle;
use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::app::{App, ServerOptions};
use crate::auth::login;
use crate::error::Problem;
use crate::guard::{self, Api};

pub(crate) mod audit;
mod dead_letters;
mod definitions;
mod doctor;
pub(crate) mod events;
pub(crate) mod health;
mod host;
mod leases;
mod messages;
mod metrics;
mod plugins;
mod processes;
mod queues;
pub(crate) mod tasks;
mod triggering;
mod units;

/// What a route answers with when all is well.
pub(crate) type Answer<T> = Result<T, Problem>;

/// Every route with its description. A new resource is a new file and a line here.
fn all() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(crate::openapi::base())
        .merge(queues::routes())
        .merge(definitions::routes())
        .merge(messages::routes())
        .merge(dead_letters::routes())
        .merge(units::routes())
        .merge(leases::routes())
        .merge(processes::routes())
        .merge(plugins::routes())
        .merge(triggering::routes())
        .merge(tasks::routes())
        .merge(host::routes())
        .merge(metrics::routes())
        .merge(health::routes())
        .merge(doctor::routes())
        .merge(events::routes())
        .merge(audit::routes())
}

/// The OpenAPI document.
#[must_use]
pub fn openapi() -> OpenApi {
    crate::openapi::finish(all().into_openapi())
}

/// Everything under `/v1` and the host's own paths, over a queue manager, with all bounds.
pub fn api(handle: Handle, options: ServerOptions) -> Api {
    api_of(App::new(handle, options))
}

/// The same over what the listener shares with it.
pub(crate) fn api_of(app: App) -> Api {
    let (router, document) = all().split_for_parts();
    let document = crate::openapi::finish(document);
    let own = host::document_route(&document)
        .merge(login::routes())
        .merge(crate::console::routes());
    layered(router.merge(own), app)
}

/// Puts what stands before every route around them.
fn layered(router: Router<App>, app: App) -> Api {
    let routes = router
        .method_not_allowed_fallback(guard::method_not_allowed)
        .fallback(guard::not_found)
        .with_state(app.clone());
    Api::new(app, routes)
}

/// A view as JSON. A view that cannot be serialised is a fault of ours.
pub(crate) fn json<T: Serialize>(view: &T) -> Answer<Json<Value>> {
    serde_json::to_value(view).map(Json).map_err(|error| {
        tracing::error!("a view could not be written as JSON: {error}");
        Problem::internal()
    })
}

#[cfg(test)]
pub(crate) mod tests;
