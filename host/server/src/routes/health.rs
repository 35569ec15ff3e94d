//! The host's health in parts: each check answers for one thing that a person can act on.
//!
//! `/livez` and `/readyz` are for whoever starts and stops the process; these are for whoever
//! watches it. None of them writes.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use oncue_core::code::Code;
use oncue_core::names::QueueName;
use oncue_core::quantity::format_bytes;
use oncue_manager::status::store_word;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use super::host::Health;
use crate::app::App;
use crate::error::Problem;
use crate::extract::{CheckPath, Query};
use crate::openapi::{Absent, Common};

/// How long the loop may take to answer a check.
const ANSWER_TIME: Duration = Duration::from_secs(2);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(startupz))
        .routes(routes!(health_check))
}

/// One thing that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// There is room for puts.
    Disk,
    /// The store writes.
    Store,
    /// The listener answers.
    Listeners,
    /// The loop answers, and nobody has paused it.
    Triggers,
    /// The dead-letter queue takes messages, and none is parked.
    Dlq,
}

impl Check {
    /// All of them with their names.
    pub(crate) const ALL: [(Self, &str); 5] = [
        (Self::Disk, "disk"),
        (Self::Store, "store"),
        (Self::Listeners, "listeners"),
        (Self::Triggers, "triggers"),
        (Self::Dlq, "dlq"),
    ];

    /// What is wrong, if anything is.
    async fn fault(self, app: &App) -> Answer<Option<String>> {
        let store = app.handle.store_status();
        Ok(match self {
            Self::Listeners => None,
            Self::Disk => (store_word(store.stopped) == "full").then(|| {
                let free = store.disk_free.map(format_bytes);
                let free = free.unwrap_or_else(|| "too little".to_owned());
                format!("the disk has {free} left, and puts are refused; make room")
            }),
            Self::Store => store.stopped.map(|why| {
                let word = store_word(Some(why));
                format!("the store does not write ({word}); see the log")
            }),
            Self::Triggers => triggers(app).await,
            Self::Dlq => dead_letters(app).await?,
        })
    }
}

async fn triggers(app: &App) -> Option<String> {
    match tokio::time::timeout(ANSWER_TIME, app.handle.status()).await {
        Err(_late) => Some("the queue manager does not answer; see the log".to_owned()),
        Ok(Err(error)) => Some(error.message),
        Ok(Ok(status)) if status.paused => {
            Some("an operator has paused the host; resume it".to_owned())
        }
        Ok(Ok(_)) => None,
    }
}

async fn dead_letters(app: &App) -> Answer<Option<String>> {
    let parked = app.handle.metrics().await?.state.counts.parked;
    if parked > 0 {
        return Ok(Some(format!(
            "{} parked, because nothing could take them; make room in their backout queue or in \
             the dead-letter queue",
            if parked == 1 {
                "1 message is".to_owned()
            } else {
                format!("{parked} messages are")
            }
        )));
    }
    let name = QueueName::dead_letter();
    let queue = app.handle.queue(name.clone()).await?;
    let max = queue.attributes.max_depth;
    Ok(if !queue.attributes.put {
        Some(format!("put is disabled for queue \"{name}\"; enable it"))
    } else if queue.depth >= max {
        let depth = queue.depth;
        Some(format!(
            "queue \"{name}\" is full (depth {depth} of {max}); redrive or remove messages"
        ))
    } else {
        None
    })
}

const OK: Health = Health {
    status: "ok",
    checks: None,
};

/// Whether the host has started: it listens only once everything is recovered.
#[utoipa::path(
    get, path = "/startupz", tag = "host",
    responses((status = 200, description = "Started", body = Health), Common)
)]
async fn startupz() -> Json<Health> {
    Json(OK)
}

/// One check of the host's health: `disk`, `store`, `listeners`, `triggers`, `dlq`. What is wrong
/// is a problem with the code `unhealthy`.
#[utoipa::path(
    get, path = "/v1/health/checks/{check}", tag = "host",
    params(("check" = String, Path, description = "disk, store, listeners, triggers or dlq")),
    responses((status = 200, description = "Nothing is wrong", body = Health), Common, Absent)
)]
async fn health_check(
    State(app): State<App>,
    CheckPath(check): CheckPath,
    query: Query,
) -> Answer<Json<Health>> {
    query.nothing()?;
    match check.fault(&app).await? {
        None => Ok(Json(OK)),
        Some(fault) => Err(Problem::new(Code::Unhealthy, fault)),
    }
}
