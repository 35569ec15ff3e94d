//! The host's look at its own process and machine.

use axum::Json;
use axum::extract::State;
use oncue_core::code::Code;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::app::App;
use crate::content;
use crate::doctor::{Finding, Standing};
use crate::error::Problem;
use crate::extract::Query;
use crate::openapi::{Absent, Common};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default().routes(routes!(ask_doctor))
}

/// What the host found.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Findings {
    /// The worst state of all checks.
    worst: Standing,
    /// Each thing that was looked at.
    checks: Vec<Finding>,
}

/// Looks at the host's own process, its machine and its directories: limits, memory mappings, the
/// pool of instances, how long syncs took, the clock, whether changes of the plugins directory are
/// reported; each with what to do. One look at a time.
#[utoipa::path(
    get, path = "/v1/doctor", tag = "host",
    responses((status = 200, description = "What was found", body = Findings), Common, Absent)
)]
async fn ask_doctor(State(app): State<App>, query: Query) -> Answer<Json<Findings>> {
    query.nothing()?;
    let Some(doctor) = app.options.doctor.clone() else {
        let detail = "this host does not look at its own machine";
        return Err(Problem::new(Code::NotFound, detail));
    };
    let _turn = doctor.turn().await;
    let looks = doctor.clone();
    let checks = content::off_the_loop(move || looks.look()).await?;
    let worst = checks.iter().map(|check| check.state).max();
    Ok(Json(Findings {
        worst: worst.unwrap_or(Standing::Ok),
        checks,
    }))
}
