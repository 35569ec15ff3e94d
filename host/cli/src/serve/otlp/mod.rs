//! Spans to a collector: OTLP in protobuf over HTTP.
//!
//! The queue manager hands finished spans over and never waits. Here they are gathered in batches
//! and sent, one batch at a time, each within a bound of time. A collector that does not answer
//! costs its spans, which are counted, and one line in the log; nothing else waits for it.

mod data;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use oncue_core::code::Code;
use oncue_manager::traces::{Span, TraceConfig, TraceCounts, WAITING_SPANS};
use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
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
        let spans = batch.drain(..).map(data::span_data).collect();
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
