//! Numbers for a monitoring system: the whole host, or some queues one by one.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use oncue_core::definition::{Pattern, Raw, nearest};
use oncue_manager::metrics::view::{MAX_QUEUES, QueuesWanted};
use prometheus_client::collector::Collector;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::app::App;
use crate::content::{self, accepts};
use crate::error::Problem;
use crate::exposition::machine::Machine;
use crate::exposition::{Family, Format, HostPage, QueuesPage};
use crate::extract::Query;
use crate::openapi::Common;
use crate::wire::fields::{boolean, integer, shown, text};

/// Queues of one page when nothing else is asked for.
const DEFAULT_QUEUES: usize = 1000;

/// Patterns of one request.
const MAX_PATTERNS: usize = 100;

/// The media type of OpenMetrics, which a scraper names when it knows it.
const OPEN_METRICS: &str = "application/openmetrics-text";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(metrics))
        .routes(routes!(metrics_detailed))
}

/// The host in numbers, for Prometheus: sums over all queues. As large with ten thousand queues as
/// with one. OpenMetrics where the `accept` header names it.
#[utoipa::path(
    get, path = "/metrics", tag = "host",
    responses(
        (status = 200, description = "Metrics", content(
            (String = "text/plain; version=0.0.4; charset=utf-8"),
            (String = "application/openmetrics-text; version=1.0.0; charset=utf-8")
        )),
        Common
    )
)]
async fn metrics(State(app): State<App>, query: Query, headers: HeaderMap) -> Answer<Response> {
    query.nothing()?;
    let mut view = app.handle.metrics().await?;
    let alarms = app.handle.alarm_counts();
    let handle = app.handle.clone();
    let page = content::off_the_loop(move || {
        handle.oldest_ages(&mut view);
        let machine = Machine::read();
        HostPage {
            view,
            alarms,
            machine,
        }
    })
    .await?;
    write(&headers, page)
}

/// Queues in numbers, one by one. `queue` names them by patterns between commas, `family` the parts
/// that are wanted.
#[utoipa::path(
    get, path = "/metrics/detailed", tag = "host",
    params(
        ("queue" = Option<String>, Query,
            description = "Patterns of queues between commas, such as `orders,audit.*`; all if \
                           left out"),
        ("family" = Option<String>, Query,
            description = "`info`, `messages`, `age`, `trigger`, between commas; all if left out"),
        ("busy" = Option<bool>, Query,
            description = "Only queues with a message, a task or a waiting get"),
        ("max" = Option<u32>, Query,
            description = "At most so many queues, 1 to 10 000; 1000 if left out. \
                           `oncue_detailed_truncated` is 1 when there are more")
    ),
    responses(
        (status = 200, description = "Metrics", content(
            (String = "text/plain; version=0.0.4; charset=utf-8"),
            (String = "application/openmetrics-text; version=1.0.0; charset=utf-8")
        )),
        Common
    )
)]
async fn metrics_detailed(
    State(app): State<App>,
    query: Query,
    headers: HeaderMap,
) -> Answer<Response> {
    let mut wanted = QueuesWanted {
        max: DEFAULT_QUEUES,
        ..QueuesWanted::default()
    };
    let mut families: Vec<Family> = Family::ALL.map(|(family, _)| family).to_vec();
    query.read(&["queue", "family", "busy", "max"], |name, value| {
        match name {
            "queue" => wanted.patterns = patterns(value)?,
            "family" => families = read_families(value)?,
            "busy" => wanted.busy = boolean(value)?,
            _ => wanted.max = integer(value, 1, MAX_QUEUES as u64)?,
        }
        Ok(())
    })?;
    let mut view = app.handle.queue_metrics(wanted).await?;
    let handle = app.handle.clone();
    let page = content::off_the_loop(move || {
        if families.contains(&Family::Age) {
            handle.ages_of(&mut view);
        }
        QueuesPage { view, families }
    })
    .await?;
    write(&headers, page)
}

fn patterns(raw: &Raw) -> Result<Vec<Pattern>, String> {
    let parts: Vec<&str> = text(raw)?.split(',').collect();
    if parts.len() > MAX_PATTERNS {
        return Err(format!("has {} patterns of {MAX_PATTERNS}", parts.len()));
    }
    parts.into_iter().map(Pattern::new).collect()
}

fn read_families(raw: &Raw) -> Result<Vec<Family>, String> {
    let mut families = Vec::new();
    for word in text(raw)?.split(',') {
        let known = Family::ALL.into_iter().find(|(_, name)| *name == word);
        let Some((family, _)) = known else {
            let names = Family::ALL.map(|(_, name)| name);
            let meant = nearest(word, names);
            let meant = meant.map(|meant| format!("; did you mean \"{meant}\"?"));
            let cure = meant.unwrap_or_else(|| format!("; use {}", names.join(", ")));
            return Err(format!("is {}{cure}", shown(raw)));
        };
        if !families.contains(&family) {
            families.push(family);
        }
    }
    Ok(families)
}

fn write(headers: &HeaderMap, page: impl Collector) -> Answer<Response> {
    let format = if accepts(headers, OPEN_METRICS) {
        Format::OpenMetrics
    } else {
        Format::Prometheus
    };
    let written = format.write(page).map_err(|_unwritten| {
        tracing::error!("a page of metrics could not be written");
        Problem::internal()
    })?;
    Ok(([(header::CONTENT_TYPE, format.content_type())], written).into_response())
}
