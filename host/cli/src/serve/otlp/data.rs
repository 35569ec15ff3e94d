//! Spans as the exporter takes them. Names and attributes follow OpenTelemetry's conventions for
//! messaging and for functions where there is one.

use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use oncue_core::outcome::Outcome;
use oncue_core::trace::{SpanId, TraceContext};
use oncue_manager::traces::consumer::Consumed;
use oncue_manager::traces::{Fired, Span, What, Work};
use opentelemetry::trace::{Event, Link, SpanContext, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

/// A span for the exporter.
pub(super) fn span_data(span: Span) -> SpanData {
    let context = span_context(span.context, span.state.as_deref(), false);
    let mut data = SpanData {
        span_context: context,
        parent_span_id: parent_id(span.parent),
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: "".into(),
        start_time: time(span.began),
        end_time: time(span.ended),
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::builder("oncue")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    };
    let links = span.links.iter();
    data.links.links = links
        .map(|link| Link::new(span_context(*link, None, false), Vec::new(), 0))
        .collect();
    data.links.dropped_count = span.more_links;
    match span.what {
        What::Send {
            queue,
            message,
            size,
            by,
            error,
        } => {
            data.span_kind = SpanKind::Producer;
            data.name = format!("send {queue}").into();
            data.attributes = messaging("send", queue.as_str());
            let mut add = |name: &'static str, value: Value| {
                data.attributes.push(KeyValue::new(name, value));
            };
            if let Some(message) = message {
                add("messaging.message.id", message.to_string().into());
            }
            add("messaging.message.body.size", number(size));
            if let Some(process) = by {
                add("oncue.process", process.to_string().into());
            }
            if let Some(code) = error {
                add("error.type", code.into());
                data.status = Status::error(code);
            }
        }
        What::Trigger(fired) => trigger(&mut data, *fired),
        What::Process(work) => process(&mut data, *work),
        What::Consumer(consumed) => consumer(&mut data, *consumed),
    }
    data
}

/// A step of a consumer outside of the host.
fn consumer(data: &mut SpanData, consumed: Consumed) {
    let step = consumed.step;
    data.span_kind = SpanKind::Client;
    data.name = format!("{} {}", step.as_str(), consumed.queue).into();
    data.attributes = operation(step.as_str(), step.operation(), consumed.queue.as_str());
    data.attributes.extend([
        KeyValue::new("messaging.message.id", consumed.message.to_string()),
        KeyValue::new("messaging.message.body.size", number(consumed.size)),
        KeyValue::new("oncue.backout_count", i64::from(consumed.backout_count)),
    ]);
    if let Some(queue) = consumed.moved_to {
        let moved = KeyValue::new("oncue.moved_to", queue.to_string());
        data.attributes.push(moved);
    }
    if step.is_failure() {
        let error = KeyValue::new("error.type", step.as_str());
        data.attributes.push(error);
        data.status = Status::error(step.as_str());
    }
}

fn trigger(data: &mut SpanData, fired: Fired) {
    data.name = format!("trigger {}", fired.queue).into();
    let steps: Vec<i64> = fired.steps.into_iter().map(i64::from).collect();
    data.attributes = vec![
        KeyValue::new("messaging.system", "oncue"),
        KeyValue::new("messaging.destination.name", fired.queue.to_string()),
        KeyValue::new("oncue.process", fired.process.to_string()),
        KeyValue::new("oncue.task", fired.task.to_string()),
        KeyValue::new("oncue.trigger.type", fired.kind),
        KeyValue::new("oncue.trigger.steps", Value::Array(steps.into())),
    ];
    let held = fired.held.into_iter().map(|(reason, at)| {
        let reason = vec![KeyValue::new("oncue.hold.reason", reason)];
        Event::new("held", time(at), reason, 0)
    });
    data.events.events = held.collect();
}

fn process(data: &mut SpanData, work: Work) {
    data.span_kind = SpanKind::Consumer;
    data.name = format!("process {}", work.queue).into();
    data.attributes = messaging("process", work.queue.as_str());
    let message = if work.messages == 1 {
        KeyValue::new("messaging.message.id", work.message.to_string())
    } else {
        KeyValue::new("messaging.batch.message_count", number(work.messages))
    };
    data.attributes.extend([
        message,
        KeyValue::new("faas.name", work.process.to_string()),
        KeyValue::new("faas.version", work.digest),
        KeyValue::new("faas.invocation_id", work.task.to_string()),
        KeyValue::new("faas.trigger", "pubsub"),
        KeyValue::new("faas.coldstart", work.cold),
        KeyValue::new("oncue.plugin", work.plugin),
        KeyValue::new("oncue.task", work.task.to_string()),
        KeyValue::new("oncue.outcome", work.outcome.as_str()),
        KeyValue::new("oncue.backout_count", i64::from(work.backout_count)),
        KeyValue::new("oncue.puts", number(work.puts)),
    ]);
    if work.fuel > 0 {
        let fuel = KeyValue::new("oncue.fuel", number(work.fuel));
        data.attributes.push(fuel);
    }
    if work.outcome != Outcome::Committed {
        let error = KeyValue::new("error.type", work.outcome.as_str());
        data.attributes.push(error);
        data.status = Status::error(work.detail.unwrap_or_default());
    }
}

fn messaging(name: &'static str, queue: &str) -> Vec<KeyValue> {
    operation(name, name, queue)
}

fn operation(name: &'static str, kind: &'static str, queue: &str) -> Vec<KeyValue> {
    vec![
        KeyValue::new("messaging.system", "oncue"),
        KeyValue::new("messaging.operation.name", name),
        KeyValue::new("messaging.operation.type", kind),
        KeyValue::new("messaging.destination.name", queue.to_owned()),
    ]
}

fn number(value: u64) -> Value {
    Value::I64(i64::try_from(value).unwrap_or(i64::MAX))
}

fn time(micros: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(micros)
}

fn parent_id(parent: Option<SpanId>) -> opentelemetry::SpanId {
    parent.map_or(opentelemetry::SpanId::INVALID, |parent| parent.0.into())
}

fn span_context(context: TraceContext, state: Option<&str>, is_remote: bool) -> SpanContext {
    let flags = if context.sampled {
        TraceFlags::SAMPLED
    } else {
        TraceFlags::NOT_SAMPLED
    };
    // What a later version of the standard allows in a state may be unknown here.
    let state = state.and_then(|state| TraceState::from_str(state).ok());
    SpanContext::new(
        context.trace.0.into(),
        context.span.0.into(),
        flags,
        is_remote,
        state.unwrap_or_default(),
    )
}
