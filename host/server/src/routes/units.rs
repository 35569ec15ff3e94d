//! Units of work: puts to many queues, all or none.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use oncue_core::code::Code;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::app::App;
use crate::auth::Who;
use crate::auth::identity::Right;
use crate::error::Problem;
use crate::extract::{Fields, Query};
use crate::openapi::{Absent, Common, Conflict, Full, WithBody};
use crate::wire::unit::{self, PutAnswerJson, UnitAnswerJson, UnitSchema};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default().routes(routes!(put_unit))
}

/// Puts messages to many queues, all or none. Answered when they are durable. A put under an
/// idempotency key that was used before is not made again: it answers with the first one's id.
#[utoipa::path(
    post, path = "/v1/units", tag = "messages",
    request_body = UnitSchema,
    responses(
        (status = 201, description = "Every message is durable", body = UnitAnswerJson),
        Common, Absent, Conflict, Full, WithBody
    )
)]
async fn put_unit(
    State(app): State<App>,
    who: Who,
    query: Query,
    fields: Fields,
) -> Answer<(StatusCode, Json<UnitAnswerJson>)> {
    query.nothing()?;
    let puts = unit::read(&fields.0)
        .map_err(|faults| Problem::with_faults(Code::InvalidMessage, faults))?;
    for put in &puts {
        who.must(Right::Put, &put.queue)?;
    }
    let answers = app.handle.put(puts, who.putter()).await?;
    let puts = answers
        .into_iter()
        .map(|put| PutAnswerJson {
            id: put.id.to_string(),
            repeated: put.repeated,
        })
        .collect();
    Ok((StatusCode::CREATED, Json(UnitAnswerJson { puts })))
}
