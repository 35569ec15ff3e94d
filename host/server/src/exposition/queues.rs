//! The page about some queues, one by one.
//!
//! Its names begin with `oncue_detailed_`, so that a sum over what was scraped from both pages is
//! never a double one. `oncue_queue_info` says what a queue is, to be joined by the label `queue`.

use std::fmt;

use oncue_manager::metrics::view::{QueueNumbers, QueuesView};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::{Labels, Page, seconds, unsigned};

/// A part of the page that can be asked for alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// What a queue is bound to and held by.
    Info,
    /// Messages by state, bytes, the most that it takes.
    Messages,
    /// The age of the oldest message.
    Age,
    /// What the trigger sees.
    Trigger,
}

impl Family {
    /// All of them with their words.
    pub(crate) const ALL: [(Self, &str); 4] = [
        (Self::Info, "info"),
        (Self::Messages, "messages"),
        (Self::Age, "age"),
        (Self::Trigger, "trigger"),
    ];
}

/// A number of a queue: its name, what it tells, where it stands.
type Shown = (&'static str, &'static str, fn(&QueueNumbers) -> u64);

/// One look at some queues.
#[derive(Debug)]
pub(crate) struct QueuesPage {
    pub(crate) view: QueuesView,
    pub(crate) families: Vec<Family>,
}

impl Collector for QueuesPage {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        let shown = self.view.queues.len() as u64;
        let help = "1 when more queues were asked for than are shown: raise max, or ask for fewer";
        let truncated = u64::from(self.view.matched > shown);
        page.gauge("oncue_detailed_truncated", help, truncated)?;
        let help = "Queues that were asked for";
        page.gauge("oncue_detailed_queues_matched", help, self.view.matched)?;
        for family in &self.families {
            match family {
                Family::Info => self.info(&mut page)?,
                Family::Messages => self.messages(&mut page)?,
                Family::Age => self.age(&mut page)?,
                Family::Trigger => self.trigger(&mut page)?,
            }
        }
        Ok(())
    }
}

impl QueuesPage {
    fn info(&self, page: &mut Page<'_>) -> fmt::Result {
        let help = "What a queue is; joined to the others by its label queue";
        page.family("oncue_queue", help, MetricType::Info, |family| {
            for queue in &self.view.queues {
                let labels: Labels<'_> = &[
                    ("queue", queue.name.as_str()),
                    ("process", queue.process.as_deref().unwrap_or_default()),
                    ("trigger", queue.trigger),
                    ("control", queue.control),
                    ("reason", queue.reason.unwrap_or_default()),
                ];
                family.encode_info(&labels)?;
            }
            Ok(())
        })
    }

    fn each(
        &self,
        page: &mut Page<'_>,
        name: &str,
        help: &str,
        value: fn(&QueueNumbers) -> u64,
    ) -> fmt::Result {
        let queues = self.view.queues.iter();
        let values = queues.map(|queue| (queue.name.as_str(), value(queue)));
        page.gauges(name, help, "queue", values)
    }

    fn messages(&self, page: &mut Page<'_>) -> fmt::Result {
        let rows: [Shown; 8] = [
            (
                "ready",
                "Messages that may be taken now",
                QueueNumbers::ready,
            ),
            ("in_unit", "Messages in the hand of tasks", |q| {
                unsigned(q.counts.in_unit)
            }),
            ("leased", "Messages in the hand of consumers", |q| {
                unsigned(q.counts.leased)
            }),
            ("delayed", "Messages put with a delay", |q| {
                unsigned(q.counts.delayed)
            }),
            ("retrying", "Failed messages that wait", |q| {
                unsigned(q.counts.retrying)
            }),
            ("deferred", "Messages put off by their handler", |q| {
                unsigned(q.counts.deferred)
            }),
            ("group_held", "Messages whose group is busy", |q| {
                unsigned(q.counts.group_held)
            }),
            ("parked", "Messages that nothing could take", |q| {
                unsigned(q.counts.parked)
            }),
        ];
        for (state, help, value) in rows {
            let name = format!("oncue_detailed_queue_messages_{state}");
            self.each(page, &name, help, value)?;
        }
        let name = "oncue_detailed_queue_bytes";
        self.each(page, name, "Bytes of all bodies", |q| {
            unsigned(q.counts.bytes)
        })?;
        let name = "oncue_detailed_queue_max_depth";
        self.each(page, name, "The most messages that it takes", |q| {
            q.max_depth
        })
    }

    fn age(&self, page: &mut Page<'_>) -> fmt::Result {
        let name = "oncue_detailed_queue_oldest_message_age_seconds";
        let help = "Age of the oldest message that may be taken now; 0 when there is none";
        let queues = self.view.queues.iter();
        let ages = queues.map(|queue| {
            let age = queue.oldest_age.unwrap_or(0);
            (queue.name.as_str(), seconds(age))
        });
        page.gauges(name, help, "queue", ages)
    }

    fn trigger(&self, page: &mut Page<'_>) -> fmt::Result {
        let rows: [Shown; 5] = [
            (
                "messages_counted",
                "Messages that count for its trigger",
                |q| q.counted,
            ),
            (
                "triggers_owed",
                "Those for which no start is under way",
                |q| q.owed,
            ),
            ("trigger_pending", "1 between steps 10 and 66", |q| {
                u64::from(q.pending)
            }),
            ("tasks", "Tasks in process", |q| u64::from(q.running)),
            (
                "open_input_handles",
                "Unselective gets of applications that wait now",
                |q| u64::from(q.waiting_inputs),
            ),
        ];
        for (part, help, value) in rows {
            let name = format!("oncue_detailed_queue_{part}");
            self.each(page, &name, help, value)?;
        }
        Ok(())
    }
}
