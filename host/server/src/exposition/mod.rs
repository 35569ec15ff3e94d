//! Metrics as monitoring systems read them: the Prometheus text format and OpenMetrics.
//!
//! A page is made from one look at the queue manager, at the time of a scrape; nothing is kept
//! between two. Every name stands in `METRICS.md` beside this crate's manifest, which a test holds
//! to. No label's value comes from outside: names of queues and process definitions have no
//! character that would have to be escaped.

use std::fmt;

use oncue_manager::metrics::{BOUNDS, Distribution};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet,
    prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

mod host;
pub(crate) mod machine;
#[cfg(test)]
pub(crate) mod parser;
mod queues;
#[cfg(test)]
mod tests;

pub(crate) use host::HostPage;
pub(crate) use queues::{Family, QueuesPage};

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// The Prometheus text format 0.0.4, for whoever asks for nothing else.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The media type.
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Writes a page.
    ///
    /// # Errors
    /// None that a page of ours can meet.
    pub(crate) fn write(self, page: impl Collector) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(page));
        let mut written = String::new();
        match self {
            Self::Prometheus => prometheus_text::encode(&mut written, &registry)?,
            Self::OpenMetrics => text::encode(&mut written, &registry)?,
        }
        Ok(written)
    }
}

/// Labels of one series: names and values.
pub(crate) type Labels<'a> = &'a [(&'static str, &'a str)];

/// A page while it is written: families one after the other, each with all its series.
pub(crate) struct Page<'a>(pub(crate) DescriptorEncoder<'a>);

impl Page<'_> {
    /// Begins a family; its series must follow before the next one begins.
    fn family(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        write: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, kind)?;
        write(&mut encoder)
    }

    /// A gauge without labels.
    pub(crate) fn gauge(
        &mut self,
        name: &str,
        help: &str,
        value: impl EncodeGaugeValue,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Gauge, |family| {
            family.encode_gauge(&value)
        })
    }

    /// A gauge with one label.
    pub(crate) fn gauges<'v, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: impl IntoIterator<Item = (&'v str, V)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Gauge, |family| {
            for (word, value) in values {
                let labels: Labels<'_> = &[(label, word)];
                family.encode_family(&labels)?.encode_gauge(&value)?;
            }
            Ok(())
        })
    }

    /// A counter without labels. The format adds `_total` to its name.
    pub(crate) fn counter(
        &mut self,
        name: &str,
        help: &str,
        value: impl EncodeCounterValue,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Counter, |family| {
            family.encode_counter::<NoLabelSet, _, u64>(&value, None)
        })
    }

    /// A counter with one label.
    pub(crate) fn counters<'v, V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: impl IntoIterator<Item = (&'v str, V)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Counter, |family| {
            for (word, value) in values {
                let labels: Labels<'_> = &[(label, word)];
                family
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, _, u64>(&value, None)?;
            }
            Ok(())
        })
    }

    /// A counter with any labels.
    pub(crate) fn labelled_counters<'v>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<'v>, u64)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Counter, |family| {
            for (labels, value) in values {
                family
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, _, u64>(&value, None)?;
            }
            Ok(())
        })
    }

    /// A histogram of times, in seconds.
    pub(crate) fn times(&mut self, name: &str, help: &str, times: &Distribution) -> fmt::Result {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a bound is exact, a sum need not be"
        )]
        let seconds = |micros: u64| micros as f64 / 1e6;
        let bounds = BOUNDS.iter().map(|bound| seconds(*bound));
        let bounds = bounds.chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(times.classes).collect();
        self.family(name, help, MetricType::Histogram, |family| {
            let (sum, count) = (seconds(times.micros), times.count());
            family.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
        })
    }

    /// Facts that are no numbers. The format adds `_info` to the name.
    pub(crate) fn info(&mut self, name: &str, help: &str, facts: Labels<'_>) -> fmt::Result {
        self.family(name, help, MetricType::Info, |family| {
            family.encode_info(&facts)
        })
    }
}

/// Milliseconds as seconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "an age of 285 000 years is exact"
)]
pub(crate) fn seconds(millis: u64) -> f64 {
    millis as f64 / 1e3
}

/// A count that is never below zero; while changes are on their way a part of one may be.
pub(crate) fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
