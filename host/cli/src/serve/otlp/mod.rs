//! Spans to a collector: OTLP in protobuf over HTTP, or HTTPS.
//!
//! The queue manager hands finished spans over and never waits. Here they are gathered in batches
//! and sent, one batch at a time, each within a bound of time. A collector that does not answer
//! costs its spans, which are counted, and one line in the log; nothing else waits for it.

mod data;
mod tls;

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
use ureq::http::{HeaderName, HeaderValue};

use crate::config::Config;
use crate::exit::Failure;
use tls::TlsClient;

/// The word for no endpoint.
const OFF: &str = "off";

/// Where a collector takes traces, under its address.
const PATH: &str = "/v1/traces";

/// How the address of a collector with TLS begins.
const HTTPS: &str = "https://";

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

/// The same for a file of certificates that vouch for a collector.
const CA_VARIABLES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
];

/// The same for headers of each request, such as a collector's key. The exporter reads them itself,
/// and passes over what it does not understand.
const HEADER_VARIABLES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
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
    /// Usage: an endpoint that is none, certificates that cannot be read, headers that are none.
    pub(crate) fn make(config: &Config) -> Result<Option<Self>, Failure> {
        let variable = |name: &str| std::env::var(name).ok();
        let Some(endpoint) = endpoint(config.text("otlp-endpoint"), variable)? else {
            return Ok(None);
        };
        let ratio = config.text("otlp-ratio").parse().unwrap_or(1.0);
        check_headers(variable)?;
        let ca_file = config.optional("otlp-ca-file").map(ToOwned::to_owned);
        let ca_file = ca_file.or_else(|| first(&CA_VARIABLES, variable).map(|(_, file)| file));
        let exporter = exporter(&endpoint, config.text("name"), ca_file.as_deref())?;
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

/// The first variable of a list that says something, with what it says.
fn first(
    names: &[&'static str],
    variable: impl Fn(&str) -> Option<String>,
) -> Option<(&'static str, String)> {
    let mut said = names
        .iter()
        .filter_map(|name| Some((*name, variable(name).filter(|value| !value.is_empty())?)));
    said.next()
}

/// Headers that would be passed over in silence: a collector would refuse every span for want of
/// them. Their values are secrets, and are not shown.
fn check_headers(variable: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
    let Some((name, text)) = first(&HEADER_VARIABLES, variable) else {
        return Ok(());
    };
    let is_header = |part: &str| {
        let (name, value) = part.split_once('=')?;
        HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        let value = HeaderValue::from_str(value.trim()).ok()?;
        (!value.is_empty()).then_some(())
    };
    for (number, part) in text.split_terminator(',').enumerate() {
        if is_header(part.trim()).is_none() {
            let message = format!(
                "variable {name}: part {} is no header; use NAME=VALUE between commas, with %2C \
                 for a comma",
                number + 1
            );
            return Err(Failure::coded(Code::InvalidConfiguration, message));
        }
    }
    Ok(())
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
        let message =
            format!("{origin} is {address:?}, {why}; use http://HOST:PORT or https://HOST:PORT");
        Failure::coded(Code::InvalidConfiguration, message)
    };
    let host = address
        .strip_prefix("http://")
        .or_else(|| address.strip_prefix(HTTPS));
    let authority = host.and_then(|host| host.split(['/', '?', '#']).next());
    if authority.is_some_and(|authority| authority.contains('@')) {
        // Not told with its address, which has a password in it.
        let message = format!(
            "{origin} has a name or a password in it, which would stand in logs; put it into a \
             header, by the variable OTEL_EXPORTER_OTLP_HEADERS"
        );
        return Err(Failure::coded(Code::InvalidConfiguration, message));
    }
    if host.is_none_or(|host| host.is_empty() || host.starts_with(['/', ':'])) {
        return Err(refused("which is no address of a collector"));
    }
    let address = address.trim_end_matches('/');
    let path = if add_path { PATH } else { "" };
    Ok(Some(format!("{address}{path}")))
}

fn exporter(endpoint: &str, name: &str, ca_file: Option<&str>) -> Result<SpanExporter, Failure> {
    let agent = concat!("oncue/", env!("CARGO_PKG_VERSION")).to_owned();
    let mut builder = SpanExporter::builder().with_http();
    if endpoint.starts_with(HTTPS) {
        builder = builder.with_http_client(TlsClient::new(ca_file)?);
    }
    let mut exporter = builder
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
        check("https://c", &[], Some("https://c/v1/traces"));
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
            ("https://", "no address of a collector"),
            ("https://me:secret@c:4318", "OTEL_EXPORTER_OTLP_HEADERS"),
            ("c:4318", "no address of a collector"),
            ("http://", "no address of a collector"),
            ("http:///v1", "no address of a collector"),
            (
                "http://me:hunter22@c:4318",
                "has a name or a password in it",
            ),
            (
                "http://hunter22@c:4318/v1/traces",
                "has a name or a password",
            ),
        ] {
            let failure = endpoint(address, |_| None).expect_err(address);
            assert!(failure.message.contains(wanted), "{}", failure.message);
            assert!(!failure.message.contains("hunter22"), "{}", failure.message);
            assert!(!failure.message.contains("secret"), "{}", failure.message);
        }
    }

    #[test]
    fn headers_that_would_be_passed_over_are_refused_without_their_value() {
        let of = |text: &'static str| {
            check_headers(move |name: &str| {
                (name == "OTEL_EXPORTER_OTLP_HEADERS").then(|| text.to_owned())
            })
        };
        for text in ["", "x-key=secret", "a=1, authorization=Bearer%20secret,"] {
            assert!(of(text).is_ok(), "{text}");
        }
        for (text, part) in [
            ("secret", "part 1 "),
            ("a=1,sec ret=x", "part 2 "),
            ("a=", "part 1 "),
            ("a=1,,b=secret", "part 2 "),
        ] {
            let failure = of(text).expect_err(text);
            assert!(failure.message.contains(part), "{}", failure.message);
            assert!(!failure.message.contains("secret"), "{}", failure.message);
        }
    }
}
