//! One queue: why it does or does not trigger, the flow of its last trigger, its attributes, what
//! it holds, and its latest tasks.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use oncue_core::definition::{Origin, QUEUE_ATTRIBUTES};
use oncue_core::trigger::Step;
use oncue_manager::handle::TaskFilter;
use oncue_manager::status::{ConditionView, Explanation, QueueView};
use serde_json::Value;

use super::flow::{Flow, flow};
use super::format;
use super::frame::Frame;
use super::page::{Page, page};
use super::params::Params;
use super::queues::{Standing, ago, tone_of};
use super::spark::Chart;
use super::tasks::Row as TaskRow;
use super::viewer::{Offers, Viewer};
use crate::app::App;
use crate::error::Problem;
use crate::extract::QueuePath;

/// Latest tasks on the page.
const TASKS: usize = 8;

/// A condition of the trigger rule.
#[derive(Debug, PartialEq, Eq)]
struct Condition {
    /// The permanent name.
    name: String,
    /// What is asked, as a person would say it.
    said: String,
    is_met: bool,
    decides: bool,
    /// How much it matters to a person.
    tone: &'static str,
    value: String,
    source: String,
}

impl Condition {
    /// A condition of a queue that is held for that reason. Those that are not met and do not
    /// decide are not asked: nothing is known to be wrong with them.
    fn of(view: ConditionView, reason: Option<&str>) -> Self {
        let decides = view.decides && !view.holds;
        Self {
            said: said(&view.name),
            tone: match reason {
                _ if view.holds => "good",
                Some(reason) if decides => tone_of(reason),
                _ => "calm",
            },
            is_met: view.holds,
            decides,
            name: view.name,
            value: view.value,
            source: view.source,
        }
    }
}

/// What a condition asks.
fn said(name: &str) -> String {
    let said = match name {
        "store-writes" => "The store writes",
        "host-runs" => "The host runs",
        "trigger-type" => "The queue has a trigger",
        "trigger-control" => "The trigger is on",
        "not-paused" => "Nothing is paused",
        "get-enabled" => "Get is enabled",
        "messages-count" => "A message counts",
        "start-not-held" => "The last start was not held",
        "not-backing-off" => "No pause after failures",
        "no-start-under-way" => "No start is under way",
        "no-consumer-open" => "No consumer has it open",
        "starts-owed" => "A start is owed",
        "depth-reached" => "The depth is reached",
        "below-max-tasks" => "One more task is allowed",
        "resources" => "The resources are there",
        "not-in-process-elsewhere" => "No other host starts it",
        other => return other.replace('-', " "),
    };
    said.to_owned()
}

/// The verdict, for a person. A queue that has nothing to do is not held up.
fn sentence_of(explained: &Explanation) -> String {
    match explained.reason {
        Some("empty") => format!("queue \"{}\" is idle: no message is on it", explained.queue),
        _ => explained.sentence.clone(),
    }
}

/// An attribute and where its value comes from.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) origin: &'static str,
    pub(super) meaning: &'static str,
}

/// The attributes of an object.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    /// Those that somebody set.
    pub(super) set: Vec<Attribute>,
    pub(super) defaults: Vec<Attribute>,
}

/// Messages in one state.
#[derive(Debug)]
struct Count {
    what: &'static str,
    count: String,
}

#[derive(Template)]
#[template(path = "queue.html")]
struct QueuePage {
    frame: Frame,
    offers: Offers,
    queue: String,
    depth: String,
    bytes: String,
    oldest: Option<String>,
    running: u32,
    max_tasks: u32,
    process: Option<String>,
    standing: Standing,
    control: &'static str,
    is_on: bool,
    paused: bool,
    get: bool,
    put: bool,
    sentence: String,
    conditions: Vec<Condition>,
    chart: Option<Chart>,
    flow: Flow,
    last_fired: Option<String>,
    next_check: Option<String>,
    counts: Vec<Count>,
    attributes: Attributes,
    tasks: Vec<TaskRow>,
}

/// One queue.
pub(super) async fn show(
    State(app): State<App>,
    queue: Result<QueuePath, Problem>,
    viewer: Viewer,
    params: Params,
) -> Page {
    let QueuePath(queue) = queue?;
    let explanation = app.handle.explain(queue.clone()).await?;
    let view = app.handle.queue(queue.clone()).await?;
    let tasks = app.handle.tasks(TaskFilter {
        queue: Some(queue.clone()),
        max: TASKS,
        ..TaskFilter::default()
    });
    let tasks = viewer.tasks(tasks.await?);
    let now = explanation.now;
    let frame = Frame::new(&app, "/queues", &params, &viewer).await?;
    let mut page_of = about(frame, viewer.offers(&queue), &view, explanation);
    page_of.chart = Chart::of(&app.console.rates.of(&queue));
    page_of.tasks = tasks.iter().map(|task| TaskRow::of(task, now)).collect();
    page(&page_of)
}

fn about(frame: Frame, offers: Offers, view: &QueueView, explained: Explanation) -> QueuePage {
    let bytes = u64::try_from(view.counts.bytes).unwrap_or(0);
    let (now, reason, sentence) = (explained.now, explained.reason, sentence_of(&explained));
    let conditions = explained.conditions.into_iter();
    QueuePage {
        frame,
        offers,
        queue: view.name.to_string(),
        depth: format::number(view.depth),
        bytes: format::bytes(bytes),
        oldest: view.oldest_age.map(format::age),
        running: view.running,
        max_tasks: view.attributes.max_tasks,
        process: view.attributes.process.as_ref().map(ToString::to_string),
        standing: Standing::of(view),
        control: view.control,
        is_on: view.control == "on",
        paused: view.paused,
        get: view.attributes.get,
        put: view.attributes.put,
        sentence,
        conditions: conditions
            .map(|condition| Condition::of(condition, reason))
            .collect(),
        chart: None,
        flow: flow(&ended(explained.last_trace, view.running)),
        last_fired: explained.last_fired.map(|fired| ago(fired, now)),
        next_check: explained
            .next_check
            .map(|next| format::duration(next.since(now))),
        counts: counts(view),
        attributes: attributes(&view.attributes, QUEUE_ATTRIBUTES, &view.origins),
        tasks: Vec::new(),
    }
}

/// The last trigger's steps, with the one that its task's end passes: none of the queue runs.
fn ended(mut trace: Vec<u8>, running: u32) -> Vec<u8> {
    if trace.last() == Some(&Step::S66.number()) && running == 0 {
        trace.push(Step::S68.number());
    }
    trace
}

/// The states that messages are in; those without any are left out.
fn counts(view: &QueueView) -> Vec<Count> {
    let counts = &view.counts;
    let ready: i64 = counts.ready.iter().sum();
    let states = [
        ("ready", ready),
        ("in open units", counts.in_unit),
        ("leased", counts.leased),
        ("delayed", counts.delayed),
        ("waiting to be retried", counts.retrying),
        ("deferred", counts.deferred),
        ("in busy groups", counts.group_held),
        ("parked", counts.parked),
    ];
    let there = states.into_iter().filter(|(_, count)| *count > 0);
    there
        .map(|(what, count)| Count {
            what,
            count: format::number(u64::try_from(count).unwrap_or(0)),
        })
        .collect()
}

/// The attributes as two tables.
pub(super) fn attributes(
    attributes: &impl serde::Serialize,
    infos: &'static [oncue_core::definition::AttributeInfo],
    origins: &BTreeMap<String, Origin>,
) -> Attributes {
    let values = serde_json::to_value(attributes).unwrap_or_default();
    let attribute = |info: &'static oncue_core::definition::AttributeInfo| Attribute {
        name: info.name,
        value: value_of(&values, info.name),
        origin: match origins.get(info.name) {
            Some(Origin::Operator) => "operator",
            Some(Origin::Manifest) => "manifest",
            _ => "default",
        },
        meaning: info.meaning,
    };
    let attributes = infos.iter().map(attribute);
    let (defaults, set) = attributes.partition(|attribute| attribute.origin == "default");
    Attributes { set, defaults }
}

/// The value of an attribute whose name may have a dot for a table inside.
fn value_of(values: &Value, name: &str) -> String {
    let found = name
        .split('.')
        .try_fold(values, |value, part| value.get(part));
    match found {
        None | Some(Value::Null) => "–".to_owned(),
        Some(Value::String(text)) if text.is_empty() => "–".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(list)) if list.is_empty() => "none".to_owned(),
        Some(Value::Array(list)) => {
            let texts = list.iter().map(|item| match item {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            texts.collect::<Vec<_>>().join(", ")
        }
        Some(Value::Object(table)) if table.is_empty() => "none".to_owned(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(name: &str, holds: bool, decides: bool) -> ConditionView {
        ConditionView {
            name: name.to_owned(),
            holds,
            decides,
            value: String::new(),
            source: String::new(),
        }
    }

    #[test]
    fn what_is_idle_or_not_asked_is_not_bad() {
        let tone = |name, holds, decides, reason| {
            Condition::of(condition(name, holds, decides), reason).tone
        };
        assert_eq!(tone("messages-count", false, true, Some("empty")), "calm");
        assert_eq!(
            tone("messages-count", false, true, Some("parked-message")),
            "bad"
        );
        assert_eq!(
            tone("messages-count", false, true, Some("retry-delay")),
            "warn"
        );
        assert_eq!(tone("starts-owed", false, false, Some("paused")), "calm");
        assert_eq!(tone("get-enabled", true, false, Some("paused")), "good");
        // At the verdict "fire" one may decide by being met.
        assert_eq!(tone("depth-reached", true, true, None), "good");
    }

    #[test]
    fn a_condition_is_said_for_a_person() {
        assert_eq!(said("not-paused"), "Nothing is paused");
        assert_eq!(said("some-other"), "some other");
    }
}
