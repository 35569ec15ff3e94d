//! The ledger: slots, memory and fuel; what is reserved, what is in use, what was refused, by
//! process.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use oncue_manager::handle::TaskFilter;
use oncue_manager::status::{LedgerView, ResourcesView};
use oncue_manager::tasks::record::TaskRecord;

use super::format;
use super::frame::Frame;
use super::page::{Page, page};
use super::params::Params;
use super::viewer::Viewer;
use crate::app::App;

/// Tasks whose use is summed up.
const TASKS: usize = 1_000;

/// Queues that wait which are named.
const MAX_WAITING: usize = 50;

/// A resource.
#[derive(Debug)]
struct Resource {
    name: &'static str,
    reserved: String,
    capacity: String,
    /// In per cent.
    share: u64,
    refused: String,
    was_refused: bool,
}

/// A process definition: what it holds, and what its tasks took.
#[derive(Debug)]
struct Process {
    name: String,
    slots: u64,
    memory: String,
    fuel: String,
    tasks: u64,
    /// Fuel of a task, on average.
    burnt: String,
    /// The most memory of any.
    peak: String,
    /// What a task of it may take.
    limit: Option<String>,
}

#[derive(Template)]
#[template(path = "ledger.html")]
struct LedgerPage {
    frame: Frame,
    resources: Vec<Resource>,
    refused: u64,
    headroom: u64,
    processes: Vec<Process>,
    looked_at: usize,
    waiting: Vec<String>,
    more_waiting: usize,
}

/// The ledger.
pub(super) async fn show(State(app): State<App>, viewer: Viewer, params: Params) -> Page {
    let ledger = app.handle.ledger().await?;
    let filter = TaskFilter {
        max: TASKS,
        ..TaskFilter::default()
    };
    let records = app.handle.tasks(filter).await?;
    let definitions = app.handle.processes().await?;
    let limits: BTreeMap<String, u64> = definitions
        .iter()
        .map(|process| (process.name.to_string(), process.attributes.memory))
        .collect();
    let waiting = ledger.waiting.iter().take(MAX_WAITING);
    page(&LedgerPage {
        frame: Frame::new(&app, "/ledger", &params, &viewer).await?,
        resources: resources(&ledger),
        refused: ledger.refused,
        headroom: ledger.refusals.headroom,
        processes: processes(&ledger, &records, &limits),
        looked_at: records.len(),
        waiting: waiting.map(ToString::to_string).collect(),
        more_waiting: ledger.waiting.len().saturating_sub(MAX_WAITING),
    })
}

fn resources(ledger: &LedgerView) -> Vec<Resource> {
    type Pick = fn(&ResourcesView) -> u64;
    type Row = (&'static str, Pick, fn(u64) -> String, u64);
    let rows: [Row; 3] = [
        (
            "Task slots",
            |r| r.slots,
            format::number,
            ledger.refusals.slots,
        ),
        (
            "Memory",
            |r| r.memory,
            format::bytes,
            ledger.refusals.memory,
        ),
        ("Fuel", |r| r.fuel, format::count, ledger.refusals.fuel),
    ];
    let row = |(name, pick, write, refused): Row| Resource {
        name,
        reserved: write(pick(&ledger.reserved)),
        capacity: write(pick(&ledger.capacity)),
        share: format::percent(pick(&ledger.reserved), pick(&ledger.capacity)),
        refused: format::number(refused),
        was_refused: refused > 0,
    };
    rows.into_iter().map(row).collect()
}

/// What the ended tasks of a process took.
#[derive(Default)]
struct Taken {
    tasks: u64,
    fuel: u64,
    peak: u64,
}

fn processes(
    ledger: &LedgerView,
    records: &[TaskRecord],
    limits: &BTreeMap<String, u64>,
) -> Vec<Process> {
    let mut taken: BTreeMap<String, Taken> = BTreeMap::new();
    for record in records.iter().filter(|record| record.ended.is_some()) {
        let sum = taken.entry(record.process.to_string()).or_default();
        sum.tasks += 1;
        sum.fuel = sum.fuel.saturating_add(record.cost.fuel);
        sum.peak = sum.peak.max(record.cost.peak_memory);
    }
    for name in ledger.by_process.keys() {
        taken.entry(name.clone()).or_default();
    }
    let mut rows: Vec<(u64, Process)> = taken
        .into_iter()
        .map(|(name, taken)| {
            let held = ledger.by_process.get(&name).copied().unwrap_or_default();
            let row = Process {
                slots: held.slots,
                memory: format::bytes(held.memory),
                fuel: format::count(held.fuel),
                tasks: taken.tasks,
                burnt: format::count(taken.fuel.checked_div(taken.tasks).unwrap_or(0)),
                peak: format::bytes(taken.peak),
                limit: limits.get(&name).map(|limit| format::bytes(*limit)),
                name,
            };
            (held.slots, row)
        })
        .collect();
    rows.sort_by_key(|(slots, _)| std::cmp::Reverse(*slots));
    rows.into_iter().map(|(_, row)| row).collect()
}
