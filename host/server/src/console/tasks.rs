//! Tasks: what handlers did, and one of them in full.

use askama::Template;
use axum::extract::State;
use oncue_core::definition::ProcessAttributes;
use oncue_core::names::QueueName;
use oncue_core::outcome::Outcome;
use oncue_core::time::Timestamp;
use oncue_manager::handle::TaskFilter;
use oncue_manager::tasks::TaskId;
use oncue_manager::tasks::record::TaskRecord;

use super::body::Body;
use super::flow::{Flow, flow};
use super::format;
use super::frame::Frame;
use super::message::plain_pairs;
use super::page::{Page, page};
use super::params::{Params, address};
use super::queues::ago;
use super::viewer::Viewer;
use crate::app::App;
use crate::auth::identity::Right;
use crate::error::Problem;
use crate::extract::TaskPath;
use crate::routes::tasks::unknown;

/// Tasks of one page.
const ROWS: usize = 100;

/// Characters of a sentence in a list.
const BRIEF: usize = 140;

/// A task in a list.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) queue: String,
    pub(super) process: String,
    /// `running` when it has not ended.
    pub(super) outcome: &'static str,
    pub(super) tone: &'static str,
    pub(super) started: String,
    pub(super) started_at: String,
    pub(super) time: String,
    pub(super) committed: u64,
    pub(super) failed: u64,
    pub(super) fuel: String,
    pub(super) memory: String,
    pub(super) detail: String,
}

impl Row {
    /// A task's row.
    pub(super) fn of(record: &TaskRecord, now: Timestamp) -> Self {
        let end = record.ended.unwrap_or(now);
        Self {
            id: record.id.to_string(),
            queue: record.queue.to_string(),
            process: record.process.to_string(),
            outcome: record.outcome.map_or("running", Outcome::as_str),
            tone: tone_of(record.outcome),
            started: ago(record.started, now),
            started_at: format::moment(record.started),
            time: format::duration(end.since(record.started)),
            committed: record.committed,
            failed: record.failed,
            fuel: format::count(record.cost.fuel),
            memory: format::bytes(record.cost.peak_memory),
            detail: format::brief(record.detail.as_deref().unwrap_or_default(), BRIEF),
        }
    }
}

/// How much an outcome matters to a person.
pub(super) fn tone_of(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        None => "live",
        Some(Outcome::Committed) => "good",
        Some(outcome) if outcome.is_failure() => "bad",
        Some(Outcome::NoProgress) => "calm",
        Some(_) => "warn",
    }
}

#[derive(Template)]
#[template(path = "tasks.html")]
struct TasksPage {
    frame: Frame,
    rows: Vec<Row>,
    queue: String,
    outcome: String,
    outcomes: [&'static str; 18],
    only_failed: bool,
    is_filtered: bool,
    older: Option<String>,
    newest: Option<String>,
}

/// The list of tasks, newest first.
pub(super) async fn list(State(app): State<App>, viewer: Viewer, params: Params) -> Page {
    let word = params.text("outcome");
    let outcome = Outcome::ALL
        .into_iter()
        .find(|outcome| outcome.as_str() == word);
    let queue = match params.get("queue") {
        Some(text) => Some(QueueName::new(text).map_err(Problem::from)?),
        None => None,
    };
    let failed = params.is_on("failed");
    let before = params.number("before").map(TaskId);
    let filter = TaskFilter {
        seen: viewer.seen(),
        queue: queue.clone(),
        outcome,
        failed,
        before,
        max: ROWS,
    };
    let records = viewer.tasks(app.handle.tasks(filter).await?);
    let now = app.handle.now();
    let to = |before: &str| {
        let fields = [
            ("queue", params.text("queue")),
            ("outcome", word),
            ("failed", params.text("failed")),
            ("before", before),
        ];
        address("/tasks", &fields)
    };
    let last = records.last().filter(|_| records.len() >= ROWS);
    let older = last.map(|record| to(&record.id.to_string()));
    page(&TasksPage {
        rows: records.iter().map(|record| Row::of(record, now)).collect(),
        queue: queue.map(|queue| queue.to_string()).unwrap_or_default(),
        outcome: outcome.map_or("", Outcome::as_str).to_owned(),
        outcomes: Outcome::ALL.map(Outcome::as_str),
        only_failed: failed,
        is_filtered: failed || outcome.is_some() || params.get("queue").is_some(),
        older,
        newest: before.map(|_| to("")),
        frame: Frame::new(&app, "/tasks", &params, &viewer).await?,
    })
}

/// Something that was used, of what might have been.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) what: &'static str,
    pub(super) used: String,
    /// Of how much.
    pub(super) limit: Option<String>,
    /// In per cent of the limit.
    pub(super) share: u64,
}

/// A message that the task worked on.
#[derive(Debug)]
struct Worked {
    id: String,
    outcome: &'static str,
    tone: &'static str,
    detail: String,
}

/// A message that a failed unit had in hand.
#[derive(Debug)]
struct InHand {
    id: String,
    queue: String,
    content_type: Option<String>,
    attempts: u32,
    properties: Vec<(String, String)>,
    body: Body,
}

#[derive(Template)]
#[template(path = "task.html")]
struct TaskPage {
    frame: Frame,
    row: Row,
    ended_at: Option<String>,
    plugin: String,
    digest: String,
    latency: String,
    detail: Option<String>,
    backtrace: Option<String>,
    log: String,
    log_cut: u64,
    uses: Vec<Use>,
    messages: Vec<Worked>,
    more_messages: u64,
    in_hand: Vec<InHand>,
    has_case: bool,
    /// Whoever looks may see messages of the queue, and what its handler said of them.
    browses: bool,
    /// The same for the host's plugins.
    sees_host: bool,
    puts: Vec<(String, u64)>,
    refused: Vec<(String, u64)>,
    flow: Flow,
}

/// One task.
pub(super) async fn show(
    State(app): State<App>,
    task: Result<TaskPath, Problem>,
    viewer: Viewer,
    params: Params,
) -> Page {
    let TaskPath(task) = task?;
    let record = viewer.task(app.handle.task(task).await?);
    let record = record.ok_or_else(|| unknown(task))?;
    let now = app.handle.now();
    // The definition as it is now: the task may have run under another, or it may be gone.
    let sees_host = viewer.may(Right::Observe);
    let process = if sees_host {
        app.handle.process(record.process.clone()).await.ok()
    } else {
        None
    };
    let limits = process.as_ref().map(|process| &process.attributes);
    let browses = viewer.may_on(Right::Browse, &record.queue);
    let case = if browses {
        app.handle.failed_unit(task, None).await.ok()
    } else {
        None
    };
    let in_hand = case.as_ref().map_or(&[][..], |case| &case.unit.messages);
    let as_is = params.text("as");
    let in_hand = in_hand.iter().map(|kept| InHand {
        id: kept.header.id.to_string(),
        queue: kept.queue.to_string(),
        content_type: kept.header.content_type.as_deref().map(format::plain),
        attempts: kept.attempts.backout_count,
        properties: plain_pairs(&kept.header.properties),
        body: Body::read(&kept.body.bytes, kept.body.size, as_is),
    });
    let told = record.messages.len() as u64;
    page(&TaskPage {
        row: Row::of(&record, now),
        ended_at: record.ended.map(format::moment),
        uses: uses(&record, limits, now),
        messages: worked(&record),
        more_messages: (record.committed + record.failed).saturating_sub(told),
        in_hand: in_hand.collect(),
        has_case: case.is_some(),
        browses,
        sees_host,
        puts: record
            .puts
            .iter()
            .map(|put| (put.queue.to_string(), put.messages))
            .collect(),
        refused: record
            .cost
            .refused
            .iter()
            .map(|r| (format::plain(&r.what), r.times))
            .collect(),
        flow: flow(&record.steps),
        plugin: record.plugin,
        digest: format::digest(&record.digest),
        latency: format::duration(record.start_latency),
        detail: record.detail.as_deref().map(format::plain),
        backtrace: record.backtrace.as_deref().map(format::plain),
        log: format::plain(&record.cost.log_tail),
        log_cut: record.cost.log_cut,
        frame: Frame::new(&app, "/tasks", &params, &viewer).await?,
    })
}

fn worked(record: &TaskRecord) -> Vec<Worked> {
    let messages = record.messages.iter();
    messages
        .map(|message| Worked {
            id: message.id.to_string(),
            outcome: message.outcome.as_str(),
            tone: tone_of(Some(message.outcome)),
            detail: format::plain(message.detail.as_deref().unwrap_or_default()),
        })
        .collect()
}

/// What it used, beside its limits. Fuel and deadline are for one message: a task's sum may be
/// more.
fn uses(record: &TaskRecord, limits: Option<&ProcessAttributes>, now: Timestamp) -> Vec<Use> {
    let cost = &record.cost;
    let time = record.ended.unwrap_or(now).since(record.started);
    let guest = cost.guest_micros / 1_000;
    let calls = (record.committed + record.failed).max(1);
    let share = |used, limit: Option<u64>| limit.map_or(0, |limit| format::percent(used, limit));
    let each = |limit: u64, write: fn(u64) -> String| {
        if calls > 1 {
            format!("{} for each of {calls} messages", write(limit))
        } else {
            write(limit)
        }
    };
    let fuel = limits.map(|limits| limits.fuel);
    let memory = limits.map(|limits| limits.memory);
    let deadline = limits.map(|limits| limits.deadline);
    let whole = limits.map(|limits| limits.task_deadline);
    vec![
        Use {
            what: "Fuel",
            used: format::count(cost.fuel),
            limit: fuel.map(|fuel| each(fuel, format::count)),
            share: share(cost.fuel, fuel.map(|fuel| fuel.saturating_mul(calls))),
        },
        Use {
            what: "Memory, highest",
            used: format::bytes(cost.peak_memory),
            limit: memory.map(format::bytes),
            share: share(cost.peak_memory, memory),
        },
        Use {
            what: "Time in the handler",
            used: format::micros(cost.guest_micros),
            limit: deadline.map(|deadline| each(deadline, format::duration)),
            share: share(guest, deadline.map(|time| time.saturating_mul(calls))),
        },
        Use {
            what: "Time of the task",
            used: format::duration(time),
            limit: whole.map(format::duration),
            share: share(time, whole),
        },
    ]
}
