//! Dead letters: what there is, back to where it came from, away for good.

use axum::extract::State;
use axum::{Extension, Json};
use oncue_core::definition::{Raw, nearest};
use oncue_core::message::{DeadLetterReason, MessageId};
use oncue_core::names::{PluginName, QueueName};
use oncue_manager::handle::{DeadLetterFilter, MAX_REDRIVE};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Answer, json};
use crate::app::App;
use crate::audit::Told;
use crate::auth::{Who, sight};
use crate::content;
use crate::extract::{Fields, Query, QueuePath};
use crate::openapi::{Absent, Common, Conflict, Unprocessable, WithBody};
use crate::wire::fields::{integer, shown, text};
use crate::wire::put;
use crate::wire::schema::DeadLettersSchema;

/// Most messages of one filter's list.
const MAX_IDS: usize = 10_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(show_dead_letters))
        .routes(routes!(redrive_messages))
        .routes(routes!(discard_messages))
}

/// The dead letters by groups: where they came from, why, and who failed on them. At most 10 000
/// messages are looked at. What a handler said is empty for whoever may not browse the queue.
#[utoipa::path(
    get, path = "/v1/dead-letters", tag = "messages",
    params(("queue" = Option<String>, Query,
        description = "A dead-letter or backout queue; `oncue.dead-letter` if left out")),
    responses((status = 200, description = "The groups", body = DeadLettersSchema), Common, Absent)
)]
async fn show_dead_letters(
    State(app): State<App>,
    Who(identity): Who,
    query: Query,
) -> Answer<Json<Value>> {
    let mut queue = QueueName::dead_letter();
    query.read(&["queue"], |_, value| {
        queue = put::queue_name(value)?;
        Ok(())
    })?;
    let handle = app.handle.clone();
    let mut view = content::off_the_loop(move || handle.dead_letters(&queue)).await??;
    sight::dead_letters(&identity, &mut view);
    json(&view)
}

/// Which dead letters are meant; all of them without a condition.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schema(as = DeadLetterFilter)]
#[expect(dead_code, reason = "only describes; the reader works on Raw")]
pub(super) struct FilterSchema {
    /// Only these messages, up to 10 000.
    ids: Option<Vec<String>>,
    /// Only those that came from this queue.
    from: Option<String>,
    /// Only those with this reason, or whose last attempt ended so: `rejected`, `trapped`.
    reason: Option<String>,
    /// Only those whose detail contains this text.
    detail: Option<String>,
    /// At most so many, 1 to 100 000.
    #[schema(minimum = 1, maximum = 100_000)]
    max: Option<u32>,
}

/// How many messages went back.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Redriven {
    /// Messages that are back on the queue they came from.
    redriven: u64,
    /// Messages that were meant and are still there: their queue is gone, or somebody has them in
    /// hand.
    stayed: u64,
    /// Plugins whose next version is still being compiled: until it is ready, the version before it
    /// handles what went back.
    #[schema(value_type = Vec<String>)]
    compiling: Vec<PluginName>,
}

/// How many messages were removed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Discarded {
    /// Messages that are gone.
    discarded: u64,
    /// Messages that were meant and are still there: somebody has them in hand.
    stayed: u64,
}

/// Puts dead letters back on the queues they came from, with their attempts at zero.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/redrive", tag = "messages",
    params(("queue" = String, Path, description = "A dead-letter or backout queue")),
    request_body(content = Option<FilterSchema>, description = "May be empty"),
    responses(
        (status = 200, description = "Done", body = Redriven),
        Common, Absent, Conflict, Unprocessable, WithBody
    )
)]
async fn redrive_messages(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    query: Query,
    fields: Fields,
) -> Answer<(Extension<Told>, Json<Redriven>)> {
    let filter = filter(fields.or_query(query))?;
    let done = app.handle.redrive(&queue, &filter).await?;
    let redriven = Redriven {
        redriven: done.done,
        stayed: done.stayed,
        compiling: done.compiling,
    };
    Ok((Extension(Told::messages(done.done)), Json(redriven)))
}

/// Removes dead letters for good. Messages that have no dead-letter record are left alone.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/discard", tag = "messages",
    params(("queue" = String, Path, description = "A dead-letter or backout queue")),
    request_body(content = Option<FilterSchema>, description = "May be empty: all dead letters"),
    responses(
        (status = 200, description = "Done", body = Discarded),
        Common, Absent, Conflict, Unprocessable, WithBody
    )
)]
async fn discard_messages(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    query: Query,
    fields: Fields,
) -> Answer<(Extension<Told>, Json<Discarded>)> {
    let filter = filter(fields.or_query(query))?;
    let done = app.handle.discard(&queue, &filter).await?;
    let discarded = Discarded {
        discarded: done.done,
        stayed: done.stayed,
    };
    Ok((Extension(Told::messages(done.done)), Json(discarded)))
}

fn filter(fields: Fields) -> Answer<DeadLetterFilter> {
    let mut filter = DeadLetterFilter::default();
    fields.read(
        &["ids", "from", "reason", "detail", "max"],
        |name, value| {
            match name {
                "ids" => filter.ids = ids(value)?,
                "from" => filter.from = Some(put::queue_name(value)?),
                "reason" => filter.reason = Some(reason(value)?),
                "detail" => filter.detail = Some(text(value)?.to_owned()),
                _ => filter.max = integer(value, 1, MAX_REDRIVE as u64)?,
            }
            Ok(())
        },
    )?;
    Ok(filter)
}

fn ids(raw: &Raw) -> Result<Vec<MessageId>, String> {
    let list = match raw {
        Raw::List(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    if list.len() > MAX_IDS {
        return Err(format!("has {} ids of {MAX_IDS}; ask in parts", list.len()));
    }
    let read = |raw: &Raw| {
        let id = text(raw)?.parse();
        id.map_err(|_error| format!("has {}, which is no message's id", shown(raw)))
    };
    list.iter().map(read).collect()
}

fn reason(raw: &Raw) -> Result<String, String> {
    let word = text(raw)?;
    if DeadLetterReason::every_word().any(|known| known == word) {
        return Ok(word.to_owned());
    }
    let cure = match nearest(word, DeadLetterReason::every_word()) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => {
            let known: Vec<_> = DeadLetterReason::every_word().collect();
            format!("use {}", known.join(", "))
        }
    };
    Err(format!("is {}; {cure}", shown(raw)))
}
