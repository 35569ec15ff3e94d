//! A task's work in its messages' traces. Nothing here does anything for a message that carries no
//! context, which is every message while nobody traces.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use oncue_core::message::MessageId;
use oncue_core::trace::{TraceContext, state_of};
use oncue_core::unit_of_work::Put;

use super::Delivered;
use super::session::TaskSession;
use crate::traces::call::{Begin, CallTrace, TriggerTrace};
use crate::traces::{Sending, Span, Tracer, What, new_span};

impl TaskSession {
    /// The trace of the work on a message, if it carries one.
    pub(crate) fn trace_of(&self, delivered: &Delivered) -> Option<Box<CallTrace>> {
        let header = &delivered.message.header;
        let input = TraceContext::of(&header.properties)?;
        let trace = match &self.shared.tracer {
            Some(tracer) if input.sampled => {
                let begin = self.begin_trace(tracer, delivered, input);
                CallTrace::record(header, &delivered.message.attempts, input, &begin)
            }
            _ => CallTrace::pass_on(header, input),
        };
        Some(Box::new(trace))
    }

    fn begin_trace(&self, tracer: &Tracer, delivered: &Delivered, input: TraceContext) -> Begin {
        let micros = self.shared.metrics.micros();
        let now = tracer.time(micros, self.shared.now());
        let mut first = false;
        let mut traced = self.traced.lock();
        let trigger = traced.get_or_insert_with(|| {
            first = true;
            let event = self.event_began.load(Ordering::Relaxed);
            TriggerTrace {
                context: input.at(new_span()),
                parent: input.span,
                state: state_of(&delivered.message.header.properties).map(Arc::from),
                began: if event == 0 { now } else { tracer.past(event) },
                entered: now,
            }
        });
        Begin {
            now,
            cold: first || self.spec.attributes.reuse <= 1,
            trigger: trigger.context,
            first,
        }
    }

    /// Now, in microseconds since the Unix epoch; 0 when nobody traces.
    pub(crate) fn trace_time(&self) -> u64 {
        self.shared.trace_time()
    }

    /// Tells of work, now that what became of it is durable.
    pub(crate) fn tell_trace(&self, trace: CallTrace) {
        if let Some(tracer) = &self.shared.tracer {
            let spans = trace.spans(&self.spec);
            spans.into_iter().for_each(|span| tracer.emit(span));
        }
    }

    /// A request that is about to be put: at once, outside of the unit of work.
    pub(crate) fn asking(&self, sending: Sending, put: &Put) -> Span {
        let now = self.trace_time();
        Span {
            context: sending.context,
            parent: sending.parent,
            state: sending.state,
            began: now,
            ended: now,
            what: What::Send {
                queue: put.queue.clone(),
                message: None,
                size: put.header.size,
                by: Some(self.spec.process.clone()),
                error: None,
            },
            links: Vec::new(),
            more_links: 0,
        }
    }

    /// Tells of that request, now that it is put.
    pub(crate) fn tell_request(&self, asked: Option<Span>, id: MessageId) {
        if let (Some(tracer), Some(mut span)) = (&self.shared.tracer, asked) {
            span.ended = self.trace_time();
            if let What::Send { message, .. } = &mut span.what {
                *message = Some(id);
            }
            tracer.emit(span);
        }
    }
}
