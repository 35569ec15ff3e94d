//! Traces: what happened to a message, as spans of a trace that its putter may have begun.
//!
//! A span is made from facts once they are finished, as a plain value, and handed over without
//! waiting; whoever exports spans takes them from a bounded channel, and what does not fit is
//! counted and lost. With no [`Tracer`] nothing is made: a context that a message carries is passed
//! on to what its handler puts, and that is all. Rules: decision record 0033.
//!
//! | span | is made when | its parent |
//! |---|---|---|
//! | `send` | a put is durable, or refused | the putter's context, or none |
//! | `trigger` | the task that it led to has ended | the first recorded message of the task |
//! | `process` | a handler's work is durable, or undone | the message; of the first: the trigger |
//! | `receive`, `ack`, `nack`, ... | a consumer's lease is durable, or its end | the message |

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use oncue_core::message::MessageId;
use oncue_core::names::{ProcessName, QueueName};
use oncue_core::outcome::Outcome;
use oncue_core::time::Timestamp;
use oncue_core::trace::{PARENT, STATE, SpanId, TraceContext, TraceId, is_state, state_of};
use tokio::sync::mpsc;

use crate::metrics::Count;
use crate::tasks::TaskId;

pub mod call;
pub mod consumer;

use consumer::Consumed;

/// Spans that may wait for their exporter, unless the host says otherwise.
pub const WAITING_SPANS: usize = 8192;

/// Links of one span; further ones are only counted.
pub const MAX_LINKS: usize = 128;

/// How far the clock that spans are timed by may be from the system's before it is set, in
/// microseconds.
const CLOCK_APART: u64 = 50_000;

/// Where spans go and which are made.
#[derive(Clone, Debug)]
pub struct TraceConfig {
    /// Takes spans; what does not fit is dropped.
    pub spans: mpsc::Sender<Span>,
    /// Which part of the traces that begin here is recorded, 0 to 1. A trace that began elsewhere
    /// is recorded if its putter did.
    pub ratio: f64,
    /// Told what becomes of them.
    pub counts: Arc<TraceCounts>,
}

/// What becomes of spans.
#[derive(Debug, Default)]
pub struct TraceCounts {
    /// Made.
    pub made: Count,
    /// Lost because too many waited for the exporter.
    pub full: Count,
    /// Taken by the collector.
    pub exported: Count,
    /// Lost because the collector did not take them.
    pub lost: Count,
}

/// Something that happened, in its trace.
#[derive(Clone, Debug)]
pub struct Span {
    /// Its trace and its own id.
    pub context: TraceContext,
    /// The span that it comes from; `None` where the trace begins.
    pub parent: Option<SpanId>,
    /// What other tracing systems add to the context.
    pub state: Option<Arc<str>>,
    /// When it began, in microseconds since the Unix epoch.
    pub began: u64,
    /// When it ended.
    pub ended: u64,
    /// What it was.
    pub what: What,
    /// Other places in traces that it comes from.
    pub links: Vec<TraceContext>,
    /// Further ones that are not told.
    pub more_links: u32,
}

/// What a span is about.
#[derive(Clone, Debug)]
pub enum What {
    /// A put.
    Send {
        /// To which queue.
        queue: QueueName,
        /// The message that it made, or that an earlier put had made.
        message: Option<MessageId>,
        /// Bytes of the body.
        size: u64,
        /// The process definition whose handler made it.
        by: Option<ProcessName>,
        /// The code of its refusal.
        error: Option<&'static str>,
    },
    /// A trigger, from the change that it answers until its handler was entered.
    Trigger(Box<Fired>),
    /// A handler at work on a message, or on several as one unit of work.
    Process(Box<Work>),
    /// A step of a consumer outside of the host.
    Consumer(Box<Consumed>),
}

/// A trigger that led to a task.
#[derive(Clone, Debug)]
pub struct Fired {
    /// For which queue.
    pub queue: QueueName,
    /// What was started.
    pub process: ProcessName,
    /// The task.
    pub task: TaskId,
    /// `first`, `every`, `depth`.
    pub kind: &'static str,
    /// The steps passed, to the task's end.
    pub steps: Vec<u8>,
    /// Reasons that held it before, with their times in microseconds since the Unix epoch.
    pub held: Vec<(&'static str, u64)>,
}

/// What a handler did.
#[derive(Clone, Debug)]
pub struct Work {
    /// The triggered queue.
    pub queue: QueueName,
    /// The process definition.
    pub process: ProcessName,
    /// The plugin.
    pub plugin: String,
    /// Digest of the component.
    pub digest: String,
    /// The task.
    pub task: TaskId,
    /// The message, or the first of them.
    pub message: MessageId,
    /// How many messages.
    pub messages: u64,
    /// Failed attempts before this one.
    pub backout_count: u32,
    /// The instance was made for it.
    pub cold: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// Why, when it failed.
    pub detail: Option<String>,
    /// Fuel burnt by the call.
    pub fuel: u64,
    /// Messages put.
    pub puts: u64,
}

/// Makes spans and contexts.
#[derive(Debug)]
pub struct Tracer {
    spans: mpsc::Sender<Span>,
    ratio: f64,
    counts: Arc<TraceCounts>,
    /// What to add to a running clock to have the Unix time, in microseconds.
    offset: AtomicU64,
}

impl Tracer {
    /// A tracer of that kind.
    #[must_use]
    pub fn new(config: TraceConfig) -> Self {
        Self {
            spans: config.spans,
            ratio: config.ratio,
            counts: config.counts,
            offset: AtomicU64::new(0),
        }
    }

    /// What became of spans so far.
    #[must_use]
    pub fn counts(&self) -> &TraceCounts {
        &self.counts
    }

    /// The time in microseconds since the Unix epoch: the running clock's, brought near the
    /// system's when that was set.
    pub(crate) fn time(&self, micros: u64, now: Timestamp) -> u64 {
        let wall = now.0.saturating_mul(1000);
        let time = self.offset.load(Ordering::Relaxed).wrapping_add(micros);
        if time.abs_diff(wall) <= CLOCK_APART {
            return time;
        }
        let offset = wall.wrapping_sub(micros);
        self.offset.store(offset, Ordering::Relaxed);
        wall
    }

    /// A time of the running clock that is past.
    pub(crate) fn past(&self, micros: u64) -> u64 {
        self.offset.load(Ordering::Relaxed).wrapping_add(micros)
    }

    /// Hands a span over, or drops it.
    pub(crate) fn emit(&self, span: Span) {
        self.counts.made.add(1);
        if self.spans.try_send(span).is_err() {
            self.counts.full.add(1);
        }
    }

    /// A new trace, if this one is to be recorded.
    fn begin(&self) -> Option<TraceContext> {
        // Not zero, which is no trace.
        let trace = fastrand::u128(1..);
        let recorded = self.ratio >= 1.0 || fastrand::f64() < self.ratio;
        recorded.then(|| TraceContext {
            trace: TraceId(trace),
            span: new_span(),
            sampled: true,
        })
    }

    /// The context of an application's put, if it is recorded; the properties then carry it.
    pub(crate) fn sending(&self, properties: &mut Vec<(String, String)>) -> Option<Sending> {
        let parent = TraceContext::of(properties);
        let context = match parent {
            Some(parent) => parent.sampled.then(|| parent.at(new_span()))?,
            None => self.begin()?,
        };
        set(properties, &context);
        Some(Sending {
            context,
            parent: parent.map(|parent| parent.span),
            state: state_of(properties).map(Arc::from),
        })
    }
}

/// A put that is recorded, until it is known what became of it.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) context: TraceContext,
    pub(crate) parent: Option<SpanId>,
    pub(crate) state: Option<Arc<str>>,
}

/// A new step; never zero, which is none.
pub(crate) fn new_span() -> SpanId {
    SpanId(fastrand::u64(1..))
}

/// Has properties carry a context.
pub(crate) fn set(properties: &mut Vec<(String, String)>, context: &TraceContext) {
    let written = context.to_string();
    match properties.iter_mut().find(|(name, _)| name == PARENT) {
        Some((_, value)) => *value = written,
        None => properties.push((PARENT.to_owned(), written)),
    }
}

/// Whether a property is part of a trace context.
pub(crate) fn is_ours(name: &str) -> bool {
    name == PARENT || name == STATE
}

/// Drops a trace context that cannot be understood, as the W3C wants it: state goes with its
/// parent, and one that is given twice is none.
pub(crate) fn clean(properties: &mut Vec<(String, String)>) {
    if !properties.iter().any(|(name, _)| is_ours(name)) {
        return;
    }
    let count = |wanted: &str| properties.iter().filter(|(name, _)| name == wanted).count();
    let parent = count(PARENT) == 1 && TraceContext::of(properties).is_some();
    let state = parent && count(STATE) == 1 && state_of(properties).is_some_and(is_state);
    properties.retain(|(name, _)| match name.as_str() {
        PARENT => parent,
        STATE => state,
        _ => true,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn tracer(ratio: f64, room: usize) -> (Tracer, mpsc::Receiver<Span>) {
        let (spans, taken) = mpsc::channel(room);
        let counts = Arc::default();
        let config = TraceConfig {
            spans,
            ratio,
            counts,
        };
        (Tracer::new(config), taken)
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(pair).collect()
    }

    fn check(before: &[(&str, &str)], after: &[(&str, &str)]) {
        let mut properties = pairs(before);
        clean(&mut properties);
        assert_eq!(properties, pairs(after), "{before:?}");
    }

    #[test]
    fn a_context_that_cannot_be_understood_is_dropped_with_its_state() {
        let good = [("a", "1"), (PARENT, WRITTEN), (STATE, "v=1")];
        check(&good, &good);
        check(&[(PARENT, "x"), (STATE, "v=1"), ("a", "1")], &[("a", "1")]);
        check(&[(STATE, "v=1")], &[]);
        check(&[(PARENT, WRITTEN), (STATE, "?")], &[(PARENT, WRITTEN)]);
        check(&[(PARENT, WRITTEN), (PARENT, WRITTEN)], &[]);
    }

    #[test]
    fn a_put_continues_its_putters_trace_as_its_putter_recorded_it() {
        let (tracer, _taken) = tracer(0.0, 1);
        let mut properties = pairs(&[(PARENT, WRITTEN), (STATE, "v=1")]);
        let sending = tracer.sending(&mut properties).expect("it is recorded");
        let parent = TraceContext::parse(WRITTEN).expect("a context");
        assert_eq!(sending.parent, Some(parent.span));
        assert_eq!(sending.context.trace, parent.trace);
        assert_ne!(sending.context.span, parent.span);
        assert_eq!(sending.state.as_deref(), Some("v=1"));
        assert_eq!(TraceContext::of(&properties), Some(sending.context));
        let plain = WRITTEN.replace("-01", "-00");
        let mut properties = pairs(&[(PARENT, &plain)]);
        assert!(tracer.sending(&mut properties).is_none());
        assert_eq!(properties, pairs(&[(PARENT, &plain)]));
    }

    #[test]
    fn the_ratio_is_that_of_traces_which_begin_here() {
        let begun = |ratio: f64| {
            let (tracer, _taken) = tracer(ratio, 1);
            (0..1000)
                .filter(|_| tracer.sending(&mut Vec::new()).is_some())
                .count()
        };
        assert_eq!(begun(0.0), 0);
        assert_eq!(begun(1.0), 1000);
        let half = begun(0.5);
        assert!((350..650).contains(&half), "{half}");
    }

    #[test]
    fn what_nobody_takes_is_dropped_and_counted() {
        let (tracer, mut taken) = tracer(1.0, 1);
        let span = || Span {
            context: TraceContext::parse(WRITTEN).expect("a context"),
            parent: None,
            state: None,
            began: 1,
            ended: 2,
            what: What::Send {
                queue: QueueName::new("q").expect("a name"),
                message: None,
                size: 0,
                by: None,
                error: None,
            },
            links: Vec::new(),
            more_links: 0,
        };
        tracer.emit(span());
        tracer.emit(span());
        let counts = |tracer: &Tracer| (tracer.counts().made.read(), tracer.counts().full.read());
        assert_eq!(counts(&tracer), (2, 1));
        assert!(taken.try_recv().is_ok());
        tracer.emit(span());
        drop(taken);
        tracer.emit(span());
        assert_eq!(counts(&tracer), (4, 2));
    }

    #[test]
    fn times_follow_the_running_clock_until_the_system_was_set() {
        let (tracer, _taken) = tracer(1.0, 1);
        assert_eq!(tracer.time(5_000, Timestamp(1_000)), 1_000_000);
        assert_eq!(tracer.time(5_300, Timestamp(1_000)), 1_000_300);
        assert_eq!(tracer.past(5_100), 1_000_100);
        // An hour later by the system's clock, at once by the running one.
        assert_eq!(tracer.time(5_400, Timestamp(3_601_000)), 3_601_000_000);
        assert_eq!(tracer.time(5_500, Timestamp(3_601_000)), 3_601_000_100);
    }
}
