//! A handler's work in its trace, while it lasts: what its puts carry, and what will be told of it.

use std::sync::Arc;

use oncue_core::message::{Attempts, Header, MessageId};
use oncue_core::names::QueueName;
use oncue_core::outcome::Outcome;
use oncue_core::trace::{PARENT, STATE, SpanId, TraceContext, state_of};
use oncue_core::unit_of_work::Put;

use super::{MAX_LINKS, Sending, Span, What, Work, new_span, set};
use crate::tasks::TaskSpec;

/// Puts of one call that have spans of their own; further ones are only counted.
const MAX_SENDS: usize = 128;

/// The trace of one call, or of one unit of work in trigger style.
#[derive(Clone, Debug)]
pub struct CallTrace {
    /// What the message carries.
    input: TraceContext,
    /// What puts carry: the work's own span where it is recorded, else what the message carries.
    context: TraceContext,
    state: Option<Arc<str>>,
    recorded: Option<Box<Recorded>>,
}

/// What will be told.
#[derive(Clone, Debug)]
struct Recorded {
    parent: SpanId,
    began: u64,
    ended: u64,
    message: MessageId,
    messages: u64,
    backout_count: u32,
    cold: bool,
    outcome: Outcome,
    detail: Option<String>,
    fuel: u64,
    puts: u64,
    sends: Vec<Sent>,
    links: Vec<TraceContext>,
    more_links: u32,
}

/// A put whose unit of work is not yet durable.
#[derive(Clone, Debug)]
struct Sent {
    context: TraceContext,
    parent: SpanId,
    queue: QueueName,
    message: MessageId,
    size: u64,
    time: u64,
}

/// The trigger that the first recorded message of a task belongs to.
#[derive(Clone, Debug)]
pub struct TriggerTrace {
    /// Its own place.
    pub(crate) context: TraceContext,
    /// That message's.
    pub(crate) parent: SpanId,
    pub(crate) state: Option<Arc<str>>,
    /// The change that it answers, in microseconds since the Unix epoch.
    pub(crate) began: u64,
    /// The handler was entered.
    pub(crate) entered: u64,
}

/// How a call is to be recorded.
pub(crate) struct Begin {
    /// Now, in microseconds since the Unix epoch.
    pub(crate) now: u64,
    /// The instance is made for it.
    pub(crate) cold: bool,
    /// The task's trigger: the parent of its first work, a link of the others.
    pub(crate) trigger: TraceContext,
    /// It is the first.
    pub(crate) first: bool,
}

impl CallTrace {
    /// Passes on what a message carries.
    pub(crate) fn pass_on(header: &Header, input: TraceContext) -> Self {
        Self {
            input,
            context: input,
            state: state_of(&header.properties).map(Arc::from),
            recorded: None,
        }
    }

    /// Records the work on a message.
    pub(crate) fn record(
        header: &Header,
        attempts: &Attempts,
        input: TraceContext,
        begin: &Begin,
    ) -> Self {
        let (parent, links) = if begin.first {
            (begin.trigger.span, Vec::new())
        } else {
            (input.span, vec![begin.trigger])
        };
        let recorded = Recorded {
            parent,
            began: begin.now,
            ended: begin.now,
            message: header.id,
            messages: 1,
            backout_count: attempts.backout_count,
            cold: begin.cold,
            outcome: Outcome::Released,
            detail: None,
            fuel: 0,
            puts: 0,
            sends: Vec::new(),
            links,
            more_links: 0,
        };
        Self {
            context: input.at(new_span()),
            recorded: Some(Box::new(recorded)),
            ..Self::pass_on(header, input)
        }
    }

    /// The unit of work has one more message.
    pub(crate) fn also(&mut self, header: &Header) {
        let Some(recorded) = &mut self.recorded else {
            return;
        };
        recorded.messages += 1;
        if let Some(other) = TraceContext::of(&header.properties) {
            if recorded.links.len() < MAX_LINKS {
                recorded.links.push(other);
            } else {
                recorded.more_links += 1;
            }
        }
    }

    /// Has a put carry its place in the trace. One that the handler has given of its own stands;
    /// the message's, which many handlers copy, does not.
    pub(crate) fn mark(&self, properties: &mut Vec<(String, String)>) -> Option<Sending> {
        let given = TraceContext::of(properties).filter(|given| *given != self.input);
        let base = given.unwrap_or(self.context);
        let is_recorded = self.recorded.is_some() && base.sampled;
        let context = if is_recorded {
            base.at(new_span())
        } else {
            base
        };
        if given.is_none() {
            properties.retain(|(name, _)| name != PARENT && name != STATE);
            if let Some(state) = &self.state {
                properties.push((STATE.to_owned(), state.to_string()));
            }
        }
        set(properties, &context);
        is_recorded.then(|| Sending {
            context,
            parent: Some(base.span),
            state: self.state.clone(),
        })
    }

    /// The handler has put a message that [`Self::mark`] has marked.
    pub(crate) fn sent(&mut self, sending: Option<Sending>, put: &Put, time: u64) {
        let Some(recorded) = &mut self.recorded else {
            return;
        };
        recorded.puts += 1;
        if let Some(Sending {
            context,
            parent: Some(parent),
            ..
        }) = sending
            && recorded.sends.len() < MAX_SENDS
        {
            recorded.sends.push(Sent {
                context,
                parent,
                queue: put.queue.clone(),
                message: put.header.id,
                size: put.header.size,
                time,
            });
        }
    }

    /// The work has ended so. What it put is undone with it when it failed.
    pub(crate) fn end(&mut self, now: u64, outcome: Outcome, detail: Option<String>, fuel: u64) {
        let Some(recorded) = &mut self.recorded else {
            return;
        };
        recorded.ended = now;
        recorded.outcome = outcome;
        recorded.detail = detail;
        recorded.fuel = fuel;
        if outcome != Outcome::Committed {
            recorded.sends.clear();
            recorded.puts = 0;
        }
    }

    /// What is to be told, now that it is durable: the work, and its puts.
    pub(crate) fn spans(self, spec: &TaskSpec) -> Vec<Span> {
        let Some(recorded) = self.recorded else {
            return Vec::new();
        };
        let state = self.state;
        let sends = recorded.sends.iter().map(|sent| Span {
            context: sent.context,
            parent: Some(sent.parent),
            state: state.clone(),
            began: sent.time,
            ended: sent.time,
            what: What::Send {
                queue: sent.queue.clone(),
                message: Some(sent.message),
                size: sent.size,
                by: Some(spec.process.clone()),
                error: None,
            },
            links: Vec::new(),
            more_links: 0,
        });
        let mut spans: Vec<Span> = sends.collect();
        let work = Work {
            queue: spec.queue.clone(),
            process: spec.process.clone(),
            plugin: spec.component.plugin.to_string(),
            digest: spec.component.digest.clone(),
            task: spec.id,
            message: recorded.message,
            messages: recorded.messages,
            backout_count: recorded.backout_count,
            cold: recorded.cold,
            outcome: recorded.outcome,
            detail: recorded.detail,
            fuel: recorded.fuel,
            puts: recorded.puts,
        };
        spans.push(Span {
            context: self.context,
            parent: Some(recorded.parent),
            state,
            began: recorded.began,
            ended: recorded.ended.max(recorded.began),
            what: What::Process(Box::new(work)),
            links: recorded.links,
            more_links: recorded.more_links,
        });
        spans
    }
}

#[cfg(test)]
mod tests {
    use oncue_core::message::Sequence;
    use oncue_core::time::Timestamp;

    use super::*;

    const WRITTEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const OTHER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01";

    fn header(properties: &[(&str, &str)]) -> Header {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Header {
            id: MessageId {
                origin: 1,
                sequence: Sequence(2),
            },
            correlation_id: None,
            reply_to: None,
            group: None,
            group_sequence: None,
            priority: 0,
            persistent: true,
            content_type: None,
            properties: properties.iter().map(pair).collect(),
            put_time: Timestamp(1),
            expires: None,
            hop_count: 0,
            put_by: None,
            size: 0,
        }
    }

    fn context(text: &str) -> TraceContext {
        TraceContext::parse(text).expect("a context")
    }

    fn recorded(first: bool) -> CallTrace {
        let begin = Begin {
            now: 10,
            cold: true,
            trigger: context(WRITTEN).at(SpanId(7)),
            first,
        };
        let header = header(&[(PARENT, WRITTEN), (STATE, "v=1")]);
        CallTrace::record(&header, &Attempts::default(), context(WRITTEN), &begin)
    }

    #[test]
    fn what_is_not_recorded_is_passed_on_as_it_is() {
        let header = header(&[(PARENT, WRITTEN), (STATE, "v=1")]);
        let trace = CallTrace::pass_on(&header, context(WRITTEN));
        let mut properties = Vec::new();
        assert!(trace.mark(&mut properties).is_none());
        assert_eq!(TraceContext::of(&properties), Some(context(WRITTEN)));
        assert_eq!(state_of(&properties), Some("v=1"));
    }

    #[test]
    fn puts_come_from_the_work_even_when_properties_are_copied() {
        let trace = recorded(true);
        let mut copied = header(&[("a", "b"), (PARENT, WRITTEN), (STATE, "v=1")]).properties;
        let sending = trace.mark(&mut copied).expect("it is recorded");
        assert_eq!(sending.parent, Some(trace.context.span));
        assert_eq!(TraceContext::of(&copied), Some(sending.context));
        assert_eq!(copied.len(), 3, "{copied:?}");
        // A place that the handler has made itself is between the two.
        let mut own = header(&[(PARENT, OTHER)]).properties;
        let sending = trace.mark(&mut own).expect("it is recorded");
        assert_eq!(sending.parent, Some(context(OTHER).span));
        assert_eq!(sending.context.trace, context(OTHER).trace);
    }

    #[test]
    fn the_first_work_of_a_task_comes_from_its_trigger_and_the_others_link_to_it() {
        let trigger = context(WRITTEN).at(SpanId(7));
        let first = recorded(true).recorded.expect("recorded");
        assert_eq!((first.parent, first.links.len()), (trigger.span, 0));
        let mut later = recorded(false);
        later.also(&header(&[(PARENT, OTHER)]));
        let later = later.recorded.expect("recorded");
        assert_eq!(later.parent, context(WRITTEN).span);
        assert_eq!(later.links, [trigger, context(OTHER)]);
        assert_eq!(later.messages, 2);
    }

    #[test]
    fn what_failed_has_put_nothing() {
        let mut trace = recorded(true);
        let mut properties = Vec::new();
        let sending = trace.mark(&mut properties);
        let put = Put {
            queue: QueueName::new("q").expect("a name"),
            header: header(&[]),
            body: bytes::Bytes::new(),
            due: None,
            dead_letter: None,
            key: None,
            max_depth: None,
        };
        trace.sent(sending, &put, 11);
        assert_eq!(trace.recorded.as_ref().map(|r| r.sends.len()), Some(1));
        trace.end(12, Outcome::Trapped, Some("no".to_owned()), 5);
        let recorded = trace.recorded.expect("recorded");
        assert_eq!((recorded.sends.len(), recorded.puts), (0, 0));
    }
}
