//! What consumers outside of the host do with a message, in its trace.
//!
//! A consumer's steps are moments, each a child of what the message carries, so that they are right
//! after a restart, too, when nobody remembers the get. Where the consumer says which place of its
//! own trace it asks from, the step has a link to it.

use oncue_core::message::{Message, MessageId};
use oncue_core::names::QueueName;
use oncue_core::trace::{TraceContext, state_of};
use oncue_core::unit_of_work::Disposition;

use super::{Span, What, new_span};
use crate::shared::Shared;

/// What a consumer, or the end of a time, does with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It was got, under a lease.
    Receive,
    /// It was settled for good.
    Ack,
    /// It was given back as a failed attempt.
    Nack,
    /// It was given back untouched: its consumer was gone before it knew of it.
    Release,
    /// Its lease ended without a word.
    LeaseEnd,
    /// Its life ended unread.
    Expire,
}

impl Step {
    /// The operation's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Ack => "ack",
            Self::Nack => "nack",
            Self::Release => "release",
            Self::LeaseEnd => "lease-end",
            Self::Expire => "expire",
        }
    }

    /// The kind of operation, in OpenTelemetry's word.
    #[must_use]
    pub const fn operation(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            _ => "settle",
        }
    }

    /// The consumer failed on the message.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Nack | Self::LeaseEnd)
    }
}

/// A consumer's step.
#[derive(Clone, Debug)]
pub struct Consumed {
    /// From which queue.
    pub queue: QueueName,
    /// Which message.
    pub message: MessageId,
    /// Bytes of the body.
    pub size: u64,
    /// Failed attempts before this one.
    pub backout_count: u32,
    /// What was done.
    pub step: Step,
    /// Where the message was moved to.
    pub moved_to: Option<QueueName>,
}

/// A step that is not yet durable.
pub(crate) struct Stepping<'a> {
    pub(crate) queue: &'a QueueName,
    pub(crate) message: &'a Message,
    pub(crate) step: Step,
    /// What becomes of the message.
    pub(crate) disposition: Option<&'a Disposition>,
    /// When it began, by [`Shared::trace_time`].
    pub(crate) began: u64,
    /// The place in the consumer's own trace.
    pub(crate) caller: Option<TraceContext>,
}

impl Stepping<'_> {
    /// What is to be told once it is durable; nothing where the message's trace is not recorded.
    pub(crate) fn span(&self, shared: &Shared) -> Option<Span> {
        shared.tracer.as_ref()?;
        let header = &self.message.header;
        let context = TraceContext::of(&header.properties).filter(|context| context.sampled)?;
        let moved_to = match self.disposition {
            Some(Disposition::Move { to, .. }) => Some(to.clone()),
            _ => None,
        };
        Some(Span {
            context: context.at(new_span()),
            parent: Some(context.span),
            state: state_of(&header.properties).map(Into::into),
            began: self.began,
            ended: shared.trace_time().max(self.began),
            what: What::Consumer(Box::new(Consumed {
                queue: self.queue.clone(),
                message: header.id,
                size: header.size,
                backout_count: self.message.attempts.backout_count,
                step: self.step,
                moved_to,
            })),
            links: self.caller.into_iter().collect(),
            more_links: 0,
        })
    }

    /// Tells of it.
    pub(crate) fn tell(&self, shared: &Shared) {
        shared.tell_spans(self.span(shared));
    }
}

impl Shared {
    /// Hands spans over, if anybody takes them.
    pub(crate) fn tell_spans(&self, spans: impl IntoIterator<Item = Span>) {
        if let Some(tracer) = &self.tracer {
            spans.into_iter().for_each(|span| tracer.emit(span));
        }
    }
}
