//! The audit log.

use axum::Json;
use axum::extract::State;
use oncue_core::code::Code;
use oncue_core::definition::Raw;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::app::App;
use crate::audit::{self, AuditQuery, Entry, MAX_ENTRIES};
use crate::content;
use crate::error::Problem;
use crate::extract::Query;
use crate::openapi::{Absent, Common};
use crate::wire::fields::{integer, text};

/// Entries of one answer when nothing else is asked for.
const DEFAULT_MAX: usize = 100;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default().routes(routes!(read_audit))
}

/// Entries of the audit log, the oldest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct AuditPage {
    /// They.
    #[schema(value_type = Vec<Entry>)]
    entries: Vec<Value>,
    /// The cursor of what comes after them.
    next: String,
    /// Whether there are more already.
    more: bool,
}

/// Who changed what, and who was refused: the last entries, or with `since` the first ones since a
/// time, or with `cursor` those that follow an earlier answer. Old entries are dropped when the log
/// has taken 100 MiB.
#[utoipa::path(
    get, path = "/v1/audit", tag = "host",
    params(
        ("cursor" = Option<String>, Query, description = "`next` of an earlier answer"),
        ("since" = Option<u64>, Query,
            description = "Only what is not older, in milliseconds since the Unix epoch"),
        ("max" = Option<u32>, Query, description = "At most so many, 1 to 1000; 100 if left out")
    ),
    responses(
        (status = 200, description = "Entries, the oldest first", body = AuditPage),
        Common, Absent
    )
)]
async fn read_audit(State(app): State<App>, query: Query) -> Answer<Json<AuditPage>> {
    let mut wanted = AuditQuery {
        max: DEFAULT_MAX,
        ..AuditQuery::default()
    };
    query.read(&["cursor", "since", "max"], |name, value| {
        match name {
            "cursor" => wanted.cursor = Some(cursor(value)?),
            "since" => wanted.since = Some(integer(value, 0, u64::MAX)?),
            _ => wanted.max = integer(value, 1, MAX_ENTRIES as u64)?,
        }
        Ok(())
    })?;
    let Some(audit) = app.options.security.audit.clone() else {
        let detail = "this host keeps no audit log";
        return Err(Problem::new(Code::NotFound, detail));
    };
    let read = content::off_the_loop(move || audit::read(audit.directory(), &wanted)).await?;
    let page = read.map_err(|error| {
        tracing::error!("the audit log cannot be read: {error}");
        Problem::internal()
    })?;
    Ok(Json(AuditPage {
        entries: page.entries,
        next: page.next.to_string(),
        more: page.more,
    }))
}

fn cursor(raw: &Raw) -> Result<audit::Cursor, String> {
    text(raw)?.parse().map_err(str::to_owned)
}
