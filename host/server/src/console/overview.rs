//! The first page: what runs, what waits and why, what failed.

use askama::Template;
use axum::extract::State;
use oncue_core::time::Timestamp;
use oncue_manager::handle::TaskFilter;
use oncue_manager::status::{AlarmView, QueueFilter, QueueSort};

use super::format;
use super::frame::Frame;
use super::page::{Page, page};
use super::params::Params;
use super::queues::Row as QueueRow;
use super::spark::Chart;
use super::tasks::Row as TaskRow;
use super::viewer::Viewer;
use crate::app::App;
use crate::auth::{Who, sight};

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
    cure: &'static str,
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

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    depth: String,
    queues: String,
    running: u64,
    slots: u64,
    triggers: String,
    failures: u64,
    dead_letters: u64,
    disk_used: String,
    disk_free: Option<String>,
    chart: Option<Chart>,
    waiting: Vec<QueueRow>,
    more_waiting: u64,
    tasks: Vec<TaskRow>,
    more_tasks: u64,
    failed: Vec<TaskRow>,
    bad_plugins: Vec<BadPlugin>,
    alarms: Vec<Alarm>,
    more_alarms: u64,
}

/// The first page.
pub(super) async fn show(
    State(app): State<App>,
    Who(identity): Who,
    viewer: Viewer,
    params: Params,
) -> Page {
    let status = app.handle.status().await?;
    let waiting = app.handle.queue_page(QueueFilter {
        non_empty: true,
        no_reserved: true,
        sort: QueueSort::OldestAge,
        descending: true,
        max: Some(ROWS),
        ..QueueFilter::default()
    });
    let waiting = waiting.await?;
    let ledger = app.handle.ledger().await?;
    let running = app.handle.tasks(TaskFilter {
        max: 1_000,
        ..TaskFilter::default()
    });
    let mut running = sight::tasks(&identity, running.await?);
    running.retain(|record| record.outcome.is_none());
    let failed = app.handle.tasks(TaskFilter {
        failed: true,
        max: ROWS,
        ..TaskFilter::default()
    });
    let failed = sight::tasks(&identity, failed.await?);
    let plugins = app.handle.plugins().await?;
    let bad = plugins.into_iter().filter(|plugin| plugin.state != "ready");
    let raised = app.handle.alarms().await?;
    let failures = status.outcomes.iter().filter(|(word, _)| is_failure(word));
    let rows = |records: &[oncue_manager::tasks::record::TaskRecord]| {
        let rows = records.iter().take(ROWS);
        rows.map(|record| TaskRow::of(record, status.now))
            .collect::<Vec<_>>()
    };
    page(&OverviewPage {
        depth: format::number(status.depth.saturating_sub(status.dead_letters)),
        queues: format::of(status.queues, "queue"),
        running: status.running,
        slots: ledger.capacity.slots,
        triggers: format::number(status.triggers),
        failures: failures.map(|(_, count)| count).sum(),
        dead_letters: status.dead_letters,
        disk_used: format::bytes(status.disk_used),
        disk_free: status.disk_free.map(format::bytes),
        more_waiting: waiting.matching.saturating_sub(waiting.queues.len() as u64),
        chart: Chart::of(&app.console.rates.of_all()),
        waiting: waiting
            .queues
            .iter()
            .map(|view| QueueRow::of(view, &app.console.rates))
            .collect(),
        more_tasks: (running.len().saturating_sub(ROWS)) as u64,
        tasks: rows(&running),
        failed: rows(&failed),
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
        frame: Frame::with(&app, "/", &params, &viewer, Some(&status)),
    })
}

fn is_failure(word: &str) -> bool {
    let outcomes = oncue_core::outcome::Outcome::ALL;
    outcomes
        .iter()
        .any(|outcome| outcome.as_str() == word && outcome.is_failure())
}
