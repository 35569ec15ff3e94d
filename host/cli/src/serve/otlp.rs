//! Spans to a collector: OTLP in protobuf over HTTP.
//!
//! The queue manager hands finished spans over and never waits. Here they are gathered in batches
//! and sent, one batch at a time, each within a bound of time. A collector that does not answer
//! costs its spans, which are counted, and one line in the log; nothing else waits for it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use oncue_core::code::Code;
use oncue_core::outcome::Outcome;
use oncue_core::trace::{SpanId, TraceContext};
use oncue_manager::traces::{Fired, Span, TraceConfig, TraceCounts, WAITING_SPANS, What, Work};
use opentelemetry::trace::{Event, Link, SpanContext, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::exit::Failure;

/// The word for no endpoint.
const OFF: &str = "off";

/// Where a collector takes traces, under its address.
const PATH: &str = "/v1/traces";

/// Spans of one request.
const BATCH: usize = 512;

/// How long a span waits for others.
const DELAY: Duration = Duration::from_secs(1);

/// How long one request may take, tries and waits between them included.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long the end of the host waits for the last spans to be sent.
const LAST: Duration = Duration::from_secs(3);

/// Variables that OpenTelemetry gives the same meaning everywhere; the first wins, and needs no
/// path to be added.
const VARIABLES: [(&str, bool); 2] = [
    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", false),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", true),
];

/// What a host records, and who sends it.
pub(crate) struct Otlp {
    config: TraceConfig,
    sender: Sender,
}

impl Otlp {
    /// As the settings say; `None` when they name no collector.
    ///
    /// # Errors
    /// An endpoint that is none.
    pub(crate) fn make(config: &Config) -> Result<Option<Self>, Failure> {
        let variable = |name: &str| std::env::var(name).ok();
        let Some(endpoint) = endpoint(config.text("otlp-endpoint"), variable)? else {
            return Ok(None);
        };
        let ratio = config.text("otlp-ratio").parse().unwrap_or(1.0);
        let exporter = exporter(&endpoint, config.text("name"))?;
        let (spans, taken) = mpsc::channel(WAITING_SPANS);
        let counts = Arc::new(TraceCounts::default());
        tracing::info!(endpoint, ratio, "traces are recorded");
        Ok(Some(Self {
            config: TraceConfig {
                spans,
                ratio,
                counts: Arc::clone(&counts),
            },
            sender: Sender {
                taken,
                exporter,
                counts,
                endpoint,
                is_lost: false,
            },
        }))
    }

    /// For the queue manager.
    pub(crate) fn config(&self) -> TraceConfig {
        self.config.clone()
    }

    /// Begins to send. Called within the runtime.
    pub(crate) fn start(self) -> Sending {
        let (stop, stopping) = oneshot::channel();
        let sender = self.sender;
        Sending {
            stop,
            task: tokio::spawn(sender.run(stopping)),
        }
    }
}

/// Spans are being sent.
pub(crate) struct Sending {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Sending {
    /// Sends what is there and ends; not longer than a bound.
    pub(crate) async fn finish(self) {
        // One that has ended already needs no word.
        let _ = self.stop.send(());
        if tokio::time::timeout(LAST, self.task).await.is_err() {
            tracing::warn!("the last spans could not be sent in time");
        }
    }
}

/// The address to send to, with its path.
fn endpoint(
    setting: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, Failure> {
    let named = |name: &str| variable(name).filter(|value| !value.is_empty());
    let (origin, address, add_path) = if setting == OFF {
        let found = VARIABLES.into_iter().find_map(|(name, add_path)| {
            let value = named(name)?;
            Some((format!("variable {name}"), value, add_path))
        });
        match found {
            None => return Ok(None),
            Some(found) => found,
        }
    } else {
        let is_whole = setting.ends_with(PATH);
        let origin = "setting \"otlp-endpoint\"".to_owned();
        (origin, setting.to_owned(), !is_whole)
    };
    let refused = |why: &str| {
        let message = format!("{origin} is {address:?}, {why}; use http://HOST:PORT");
        Failure::coded(Code::InvalidConfiguration, message)
    };
    if address.starts_with("https://") {
        let why = "and spans are sent without TLS: send them to a collector on this machine";
        return Err(refused(why));
    }
    let host = address.strip_prefix("http://");
    if host.is_none_or(|host| host.is_empty() || host.starts_with(['/', ':'])) {
        return Err(refused("which is no address of a collector"));
    }
    let address = address.trim_end_matches('/');
    let path = if add_path { PATH } else { "" };
    Ok(Some(format!("{address}{path}")))
}

fn exporter(endpoint: &str, name: &str) -> Result<SpanExporter, Failure> {
    let agent = concat!("oncue/", env!("CARGO_PKG_VERSION")).to_owned();
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(endpoint)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(TIMEOUT)
        .with_headers(HashMap::from([("user-agent".to_owned(), agent)]))
        .build()
        .context("make the exporter of traces")?;
    let resource = Resource::builder_empty()
        .with_service_name("oncue")
        .with_attributes([
            KeyValue::new("service.instance.id", name.to_owned()),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        ])
        .build();
    exporter.set_resource(&resource);
    Ok(exporter)
}

/// Takes spans and sends them.
struct Sender {
    taken: mpsc::Receiver<Span>,
    exporter: SpanExporter,
    counts: Arc<TraceCounts>,
    endpoint: String,
    /// The last batch could not be sent.
    is_lost: bool,
}

impl Sender {
    async fn run(mut self, mut stopping: oneshot::Receiver<()>) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                count = self.taken.recv_many(&mut batch, BATCH) => {
                    if count == 0 {
                        return;
                    }
                }
                _ = &mut stopping => break,
            }
            let stops = self.gather(&mut batch, &mut stopping).await;
            self.send(&mut batch).await;
            if stops {
                break;
            }
        }
        self.taken.close();
        while self.taken.recv_many(&mut batch, BATCH).await > 0 {
            self.send(&mut batch).await;
        }
    }

    /// Lets a batch grow for a while; true when the end has come.
    async fn gather(&mut self, batch: &mut Vec<Span>, stop: &mut oneshot::Receiver<()>) -> bool {
        let mut over = std::pin::pin!(tokio::time::sleep(DELAY));
        while batch.len() < BATCH {
            let room = BATCH - batch.len();
            tokio::select! {
                count = self.taken.recv_many(batch, room) => {
                    if count == 0 {
                        return true;
                    }
                }
                () = &mut over => return false,
                _ = &mut *stop => return true,
            }
        }
        false
    }

    async fn send(&mut self, batch: &mut Vec<Span>) {
        let count = batch.len() as u64;
        let spans = batch.drain(..).map(span_data).collect();
        let sent = tokio::time::timeout(TIMEOUT, self.exporter.export(spans)).await;
        let why = match sent {
            Ok(Ok(())) => {
                self.counts.exported.add(count);
                if std::mem::take(&mut self.is_lost) {
                    tracing::info!(endpoint = self.endpoint, "the collector takes spans again");
                }
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_late) => format!("no answer within {} s", TIMEOUT.as_secs()),
        };
        self.counts.lost.add(count);
        if !std::mem::replace(&mut self.is_lost, true) {
            tracing::warn!(
                endpoint = self.endpoint,
                why,
                "spans cannot be sent; they are dropped and counted until it takes them again"
            );
        }
    }
}

/// A span as the exporter takes it. Names and attributes follow OpenTelemetry's conventions for
/// messaging and for functions where there is one.
fn span_data(span: Span) -> SpanData {
    let context = span_context(span.context, span.state.as_deref(), false);
    let mut data = SpanData {
        span_context: context,
        parent_span_id: parent_id(span.parent),
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: Cow::Borrowed(""),
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
    }
    data
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

fn messaging(operation: &'static str, queue: &str) -> Vec<KeyValue> {
    vec![
        KeyValue::new("messaging.system", "oncue"),
        KeyValue::new("messaging.operation.name", operation),
        KeyValue::new("messaging.operation.type", operation),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(setting: &str, variables: &[(&str, &str)], wanted: Option<&str>) {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let got = endpoint(setting, variable).unwrap_or_else(|failure| panic!("{failure:?}"));
        assert_eq!(got.as_deref(), wanted, "{setting} {variables:?}");
    }

    #[test]
    fn a_collector_is_named_by_the_setting_or_by_the_usual_variables() {
        let whole = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        let base = "OTEL_EXPORTER_OTLP_ENDPOINT";
        check(OFF, &[], None);
        check(OFF, &[(base, "")], None);
        check(
            "http://c:4318",
            &[(base, "http://x:1")],
            Some("http://c:4318/v1/traces"),
        );
        check("http://c:4318/", &[], Some("http://c:4318/v1/traces"));
        check(
            "http://c:4318/v1/traces",
            &[],
            Some("http://c:4318/v1/traces"),
        );
        check(
            OFF,
            &[(base, "http://x:1/otlp")],
            Some("http://x:1/otlp/v1/traces"),
        );
        check(
            OFF,
            &[(base, "http://x:1"), (whole, "http://y:2/t")],
            Some("http://y:2/t"),
        );
    }

    #[test]
    fn an_address_that_cannot_be_sent_to_is_refused() {
        for (address, wanted) in [
            ("https://c:4318", "without TLS"),
            ("c:4318", "no address of a collector"),
            ("http://", "no address of a collector"),
            ("http:///v1", "no address of a collector"),
        ] {
            let failure = endpoint(address, |_| None).expect_err(address);
            assert!(failure.message.contains(wanted), "{}", failure.message);
        }
    }
}
