//! The audit log.

use axum::Json;
use axum::extract::State;
use oncue_core::code::Code;
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
use crate::wire::fields::{boolean, integer, text};

/// Entries of one answer when nothing else is asked for.
const DEFAULT_MAX: usize = 100;

/// The parameters.
const PARAMETERS: [&str; 8] = [
    "cursor", "before", "since", "identity", "action", "object", "refused", "max",
];

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
    /// The cursor, for `before`, of what comes before them; left out where there is nothing, and
    /// where the log was read forwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    /// Whether there are more already.
    more: bool,
}

/// Who changed what, and who was refused: the last entries, or with `since` the first ones since a
/// time, with `cursor` those that follow an earlier answer, with `before` those that precede one.
/// One answer looks at 16 MiB of the log, so there may be more where it has few. Old entries are
/// dropped when the log has taken 100 MiB.
#[utoipa::path(
    get, path = "/v1/audit", tag = "host",
    params(
        ("cursor" = Option<String>, Query, description = "`next` of an earlier answer"),
        ("before" = Option<String>, Query,
            description = "`previous` of an earlier answer; not with `cursor`"),
        ("since" = Option<u64>, Query,
            description = "Only what is not older, in milliseconds since the Unix epoch"),
        ("identity" = Option<String>, Query,
            description = "Only where the identity's name contains this text"),
        ("action" = Option<String>, Query, description = "Only where the action contains this"),
        ("object" = Option<String>, Query, description = "Only where the object contains this"),
        ("refused" = Option<bool>, Query, description = "Only what was refused, or failed"),
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
    let (mut after, mut before) = (None, None);
    query.read(&PARAMETERS, |name, value| {
        let which = &mut wanted.wanted;
        match name {
            "cursor" => after = Some(text(value)?.to_owned()),
            "before" => before = Some(text(value)?.to_owned()),
            "since" => wanted.since = Some(integer(value, 0, u64::MAX)?),
            "identity" => text(value)?.clone_into(&mut which.identity),
            "action" => text(value)?.clone_into(&mut which.action),
            "object" => text(value)?.clone_into(&mut which.object),
            "refused" => which.refused = boolean(value)?,
            _ => wanted.max = integer(value, 1, MAX_ENTRIES as u64)?,
        }
        Ok(())
    })?;
    if after.is_some() && before.is_some() {
        let detail = "\"cursor\" and \"before\" are both given; give one";
        return Err(Problem::new(Code::InvalidParameter, detail));
    }
    wanted.cursor = after.as_deref().map(cursor).transpose()?;
    wanted.before = before.as_deref().map(cursor).transpose()?;
    let page = look(&app, wanted).await?;
    Ok(Json(AuditPage {
        entries: page.entries,
        next: page.next.to_string(),
        previous: page.previous.map(|point| point.to_string()),
        more: page.more,
    }))
}

/// Reads the log where that may block.
///
/// # Errors
/// There is no log, or it cannot be read.
pub(crate) async fn look(app: &App, query: AuditQuery) -> Answer<audit::Page> {
    let Some(log) = app.options.security.audit.clone() else {
        let detail = "this host keeps no audit log";
        return Err(Problem::new(Code::NotFound, detail));
    };
    let read = content::off_the_loop(move || audit::read(log.directory(), &query)).await?;
    read.map_err(|error| {
        tracing::error!("the audit log cannot be read: {error}");
        Problem::internal()
    })
}

fn cursor(text: &str) -> Answer<audit::Cursor> {
    text.parse()
        .map_err(|fact: &str| Problem::new(Code::InvalidCursor, fact))
}
