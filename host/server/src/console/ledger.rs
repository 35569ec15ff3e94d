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
    /// Fuel that running tasks have burnt so far, and messages that they have done.
    burning: String,
    done: String,
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
        looked_at: records.iter().filter(|it| it.ended.is_some()).count(),
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

/// What the tasks of a process took: the running ones so far, and those that have ended.
#[derive(Default)]
struct Taken {
    burning: u64,
    done: u64,
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
    for record in records {
        let sum = taken.entry(record.process.to_string()).or_default();
        if record.ended.is_none() {
            sum.burning = sum.burning.saturating_add(record.cost.fuel);
            sum.done += record.committed;
            continue;
        }
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
                burning: format::count(taken.burning),
                done: format::number(taken.done),
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

#[cfg(test)]
mod tests {
    use oncue_core::names::{ProcessName, QueueName};
    use oncue_core::outcome::Outcome;
    use oncue_manager::status::{RefusalsView, ResourcesView};
    use oncue_manager::tasks::{TaskCost, TaskId};

    use super::*;

    fn record(id: u64, process: &str, ended: bool, fuel: u64) -> TaskRecord {
        TaskRecord {
            id: TaskId(id),
            queue: QueueName::new("q").expect("a name"),
            process: ProcessName::new(process).expect("a name"),
            plugin: process.to_owned(),
            digest: String::new(),
            outcome: ended.then_some(Outcome::Committed),
            detail: None,
            backtrace: None,
            started: oncue_core::time::Timestamp(1),
            ended: ended.then_some(oncue_core::time::Timestamp(2)),
            committed: 3,
            failed: 0,
            messages: Vec::new(),
            puts: Vec::new(),
            steps: Vec::new(),
            start_latency: 0,
            trace: None,
            cost: TaskCost {
                fuel,
                peak_memory: if ended { 1 << 20 } else { 0 },
                ..TaskCost::default()
            },
        }
    }

    #[test]
    fn running_tasks_count_apart_from_those_that_ended() {
        let two = ResourcesView {
            slots: 2,
            memory: 64 << 20,
            fuel: 2_000_000,
        };
        let ledger = LedgerView {
            capacity: two,
            reserved: two,
            refused: 0,
            refusals: RefusalsView::default(),
            by_process: BTreeMap::from([("a".to_owned(), two)]),
            waiting: Vec::new(),
        };
        let records = [
            record(4, "a", false, 1_500),
            record(3, "a", false, 500),
            record(2, "a", true, 4_000),
            record(1, "b", true, 10),
        ];
        let rows = processes(&ledger, &records, &BTreeMap::new());
        let [a, b] = &rows[..] else {
            panic!("two processes")
        };
        assert_eq!(
            (a.slots, a.memory.as_str(), a.fuel.as_str()),
            (2, "64 MiB", "2 M")
        );
        assert_eq!((a.burning.as_str(), a.done.as_str()), ("2 k", "6"));
        assert_eq!(
            (a.tasks, a.burnt.as_str(), a.peak.as_str()),
            (1, "4 k", "1 MiB")
        );
        assert_eq!((b.slots, b.burning.as_str(), b.tasks), (0, "0", 1));
    }
}
