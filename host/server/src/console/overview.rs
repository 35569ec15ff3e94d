//! The first page: what runs, what waits and why, what failed.

use askama::Template;
use axum::extract::State;
use oncue_core::time::Timestamp;
use oncue_manager::error::ApiError;
use oncue_manager::handle::{MAX_TASKS, TaskFilter};
use oncue_manager::status::{AlarmView, QueueFilter, QueueSort, StatusView};
use oncue_manager::tasks::record::TaskRecord;

use super::format;
use super::frame::Frame;
use super::page::{Page, PageError, page};
use super::params::Params;
use super::queues::Row as QueueRow;
use super::spark::Chart;
use super::tasks::Row as TaskRow;
use super::viewer::Viewer;
use crate::app::App;
use crate::auth::identity::Right;

/// Rows of each part of the page.
const ROWS: usize = 10;

/// A plugin that is not as it was meant.
#[derive(Debug)]
struct BadPlugin {
    name: String,
    state: &'static str,
    reason: String,
}

/// A raised alarm.
#[derive(Debug)]
struct Alarm {
    word: &'static str,
    /// The page of what it is about.
    address: Option<String>,
    about: String,
    since: String,
    detail: String,
    cure: String,
    /// A person must act.
    bad: bool,
}

impl Alarm {
    fn of(view: AlarmView, now: Timestamp) -> Self {
        let place = match (&view.queue, &view.plugin) {
            (Some(queue), _) => Some((format!("/queues/{queue}"), queue.to_string())),
            (None, Some(plugin)) => Some((format!("/plugins/{plugin}"), plugin.clone())),
            (None, None) => None,
        };
        let (address, about) = place.unzip();
        Self {
            word: view.alarm,
            address,
            about: about.unwrap_or_else(|| "the host".to_owned()),
            since: format::duration(now.since(view.since)),
            detail: view.detail,
            cure: view.cure,
            bad: view.needs_a_person,
        }
    }
}

/// What is of the whole host, and for those who may see it.
#[derive(Debug)]
struct OfHost {
    triggers: String,
    failures: u64,
    dead_letters: u64,
    slots: u64,
    disk_used: String,
    disk_free: Option<String>,
    paused: bool,
    /// Whoever looks may pause it.
    operates: bool,
    bad_plugins: Vec<BadPlugin>,
    alarms: Vec<Alarm>,
    more_alarms: u64,
}

impl OfHost {
    async fn of(app: &App, viewer: &Viewer, status: &StatusView) -> Result<Self, PageError> {
        let ledger = app.handle.ledger().await?;
        let plugins = app.handle.plugins().await?;
        let bad = plugins.into_iter().filter(|plugin| plugin.state != "ready");
        let raised = app.handle.alarms().await?;
        let failures = status.outcomes.iter().filter(|(word, _)| is_failure(word));
        Ok(Self {
            triggers: format::number(status.triggers),
            failures: failures.map(|(_, count)| count).sum(),
            dead_letters: status.dead_letters,
            slots: ledger.capacity.slots,
            disk_used: format::bytes(status.disk_used),
            disk_free: status.disk_free.map(format::bytes),
            paused: status.paused,
            operates: viewer.may(Right::Operate),
            bad_plugins: bad
                .map(|plugin| BadPlugin {
                    name: plugin.name.to_string(),
                    state: plugin.state,
                    reason: plugin.reason.unwrap_or_default(),
                })
                .collect(),
            more_alarms: raised.active.saturating_sub(ROWS as u64),
            alarms: raised
                .alarms
                .into_iter()
                .take(ROWS)
                .map(|alarm| Alarm::of(alarm, status.now))
                .collect(),
        })
    }
}

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    depth: String,
    queues: String,
    running: u64,
    host: Option<OfHost>,
    chart: Option<Chart>,
    waiting: Vec<QueueRow>,
    more_waiting: u64,
    tasks: Vec<TaskRow>,
    more_tasks: u64,
    failed: Vec<TaskRow>,
}

/// Messages and queues that whoever looks may know of, without those that the queue manager keeps
/// for itself.
fn seen(app: &App, viewer: &Viewer) -> (u64, u64) {
    let flows = app.handle.flows().into_iter();
    let seen = flows.filter(|flow| viewer.sees(&flow.queue) && !flow.queue.is_reserved());
    seen.fold((0, 0), |(depth, queues), flow| {
        (depth + flow.depth, queues + 1)
    })
}

/// Tasks that run now, and those that failed last, as whoever looks may see them.
async fn tasks(app: &App, viewer: &Viewer) -> Result<(Vec<TaskRecord>, Vec<TaskRecord>), ApiError> {
    let running = app.handle.tasks(TaskFilter {
        seen: viewer.seen(),
        max: MAX_TASKS,
        ..TaskFilter::default()
    });
    let mut running = viewer.tasks(running.await?);
    running.retain(|record| record.outcome.is_none());
    let failed = app.handle.tasks(TaskFilter {
        seen: viewer.seen(),
        failed: true,
        max: ROWS,
        ..TaskFilter::default()
    });
    Ok((running, viewer.tasks(failed.await?)))
}

/// The first page.
pub(super) async fn show(State(app): State<App>, viewer: Viewer, params: Params) -> Page {
    let (mut status, mut host) = (None, None);
    if viewer.may(Right::Observe) {
        let known = app.handle.status().await?;
        host = Some(OfHost::of(&app, &viewer, &known).await?);
        status = Some(known);
    }
    let waiting = app.handle.queue_page(QueueFilter {
        seen: viewer.seen(),
        non_empty: true,
        no_reserved: true,
        sort: QueueSort::OldestAge,
        descending: true,
        max: Some(ROWS),
        ..QueueFilter::default()
    });
    let waiting = waiting.await?;
    let (running, failed) = tasks(&app, &viewer).await?;
    let now = app.handle.now();
    let rows = |records: &[TaskRecord]| -> Vec<TaskRow> {
        let rows = records.iter().take(ROWS);
        rows.map(|record| TaskRow::of(record, now)).collect()
    };
    let (depth, queues) = seen(&app, &viewer);
    let running_now = running.len() as u64;
    let rates = &app.console.rates;
    let chart = status.as_ref().and_then(|_| Chart::of(&rates.of_all()));
    let queue_rows = waiting.queues.iter().map(|view| QueueRow::of(view, rates));
    page(&OverviewPage {
        depth: format::number(depth),
        queues: format::of(queues, "queue"),
        running: status.as_ref().map_or(running_now, |status| status.running),
        more_waiting: waiting.matching.saturating_sub(waiting.queues.len() as u64),
        chart,
        waiting: queue_rows.collect(),
        more_tasks: (running.len().saturating_sub(ROWS)) as u64,
        tasks: rows(&running),
        failed: rows(&failed),
        host,
        frame: Frame::with(&app, "/", &params, &viewer, status.as_ref()),
    })
}

fn is_failure(word: &str) -> bool {
    let outcomes = oncue_core::outcome::Outcome::ALL;
    outcomes
        .iter()
        .any(|outcome| outcome.as_str() == word && outcome.is_failure())
}
