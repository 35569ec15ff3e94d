//! The trigger rule: should something more be running for this queue, given its state now?
//!
//! One pure function, asked at every event that can matter; it looks at levels, never at edges, so
//! a lost event costs time and never a message. It knows everything but max-tasks, which is for
//! step 12. The order of its checks is the order in which a person would have to act.

use crate::definition::{QueueAttributes, TriggerType};
use crate::queue::Counts;
use crate::time::Timestamp;
use crate::trigger::gate::{BackOffState, Control, Held};
use crate::trigger::hold::{HoldReason, PausedBy};

/// What the rule looks at. All expiries, delays and retries due at `now` have been applied.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The queue's resolved attributes.
    pub attributes: &'a QueueAttributes,
    /// Whether the trigger is on.
    pub control: Control,
    /// A depth trigger fired and no task is serving it: [`crate::trigger::Gate::start_owed`].
    pub start_owed: bool,
    /// What the queue holds.
    pub counts: &'a Counts,
    /// Tasks in process, those starting included.
    pub running: u32,
    /// Starts under way: from step 58 until the task's first get is answered, or it ends.
    pub starting: u32,
    /// Another host that shares the queue is in its trigger process. Steps 54 and 56 look at it,
    /// not the rule.
    pub elsewhere: bool,
    /// What an operator paused, if anything.
    pub paused: Option<PausedBy>,
    /// The host is stopping.
    pub draining: bool,
    /// The store stopped writing.
    pub store_stopped: bool,
    /// Unselective gets of outside consumers that wait now.
    pub waiting_inputs: u32,
    /// When the last outside consumer closed the queue for input.
    pub last_input_closed: Option<Timestamp>,
    /// Present after a task without progress or a failed start.
    pub backoff: Option<&'a BackOffState>,
    /// Where the last start was held.
    pub held: Option<&'a Held>,
    /// Put time of the oldest message that counts. Only looked at for depth with a max-wait.
    pub oldest_counted: Option<Timestamp>,
    /// When the next of the queue's waiting messages falls due, or the next lease ends.
    pub next_due: Option<Timestamp>,
}

/// Why the rule fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Messages count, and no start is under way.
    First,
    /// More messages count than starts are under way.
    Every,
    /// As many messages count as the trigger depth asks for.
    DepthReached,
    /// The oldest message that counts is older than the trigger's max-wait.
    MaxWait,
    /// The depth trigger fired before, and no task has served it.
    StartOwed,
}

impl Cause {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Every => "every",
            Self::DepthReached => "depth-reached",
            Self::MaxWait => "max-wait",
            Self::StartOwed => "start-owed",
        }
    }
}

/// The rule's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Something more should be running.
    Fire(Cause),
    /// Nothing more.
    Hold {
        /// Why.
        reason: HoldReason,
        /// When time alone can change the answer; `None` when only an event can.
        until: Option<Timestamp>,
    },
}

impl Verdict {
    /// A hold that only an event ends.
    #[must_use]
    pub fn hold(reason: HoldReason) -> Self {
        Self::Hold {
            reason,
            until: None,
        }
    }

    fn until(reason: HoldReason, until: Option<Timestamp>) -> Self {
        Self::Hold { reason, until }
    }

    /// The reason of a hold.
    #[must_use]
    pub fn reason(&self) -> Option<&HoldReason> {
        match self {
            Self::Fire(_) => None,
            Self::Hold { reason, .. } => Some(reason),
        }
    }
}

/// Answers the rule. Costs the same whatever the queue holds.
#[must_use]
pub fn evaluate(facts: &Facts<'_>, now: Timestamp) -> Verdict {
    let verdict = forbidden(facts)
        .map(Verdict::hold)
        .or_else(|| nothing_counts(facts, now))
        .or_else(|| paced(facts, now));
    verdict.unwrap_or_else(|| match facts.attributes.trigger {
        TriggerType::First => first(facts, now),
        TriggerType::Every => every(facts),
        TriggerType::Depth => depth(facts, now),
        TriggerType::None => Verdict::hold(HoldReason::TriggerTypeNone),
    })
}

impl Facts<'_> {
    /// Messages that count.
    #[must_use]
    pub fn counted(&self) -> u64 {
        unsigned(self.counts.counted(self.attributes.trigger_priority))
    }

    /// Until when an outside consumer that left still has the queue open for input.
    #[must_use]
    pub fn linger_end(&self) -> Option<Timestamp> {
        Some(self.last_input_closed?.after(self.attributes.input_linger))
    }
}

/// A count for people and for comparison: a passing negative total is nothing.
pub(crate) fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// What someone decided: nothing starts, whatever the queue holds.
fn forbidden(facts: &Facts<'_>) -> Option<HoldReason> {
    if facts.store_stopped {
        return Some(HoldReason::StoreStopped);
    }
    if facts.draining {
        return Some(HoldReason::Draining);
    }
    if facts.attributes.trigger == TriggerType::None {
        return Some(HoldReason::TriggerTypeNone);
    }
    if facts.control == Control::OffByOperator {
        return Some(HoldReason::TriggerOffByOperator);
    }
    let by_depth =
        facts.attributes.trigger == TriggerType::Depth && facts.control == Control::OffByDepth;
    if by_depth && !facts.start_owed {
        return Some(HoldReason::TriggerOffByDepth);
    }
    if let Some(by) = facts.paused {
        return Some(HoldReason::Paused(by));
    }
    if !facts.attributes.get {
        return Some(HoldReason::GetDisabled);
    }
    None
}

/// Why no message counts: first what a person must cure, then what time cures, then what a task or
/// a consumer will end.
fn nothing_counts(facts: &Facts<'_>, now: Timestamp) -> Option<Verdict> {
    if facts.counted() > 0 {
        return None;
    }
    let counts = facts.counts;
    let ready: i64 = counts.ready.iter().sum();
    let reason = if counts.parked > 0 {
        HoldReason::ParkedMessage(unsigned(counts.parked))
    } else if ready > 0 {
        HoldReason::BelowTriggerPriority {
            waiting: unsigned(ready),
            priority: facts.attributes.trigger_priority,
        }
    } else if counts.retrying > 0 {
        HoldReason::RetryDelay(unsigned(counts.retrying))
    } else if counts.delayed > 0 || counts.deferred > 0 {
        HoldReason::Delayed {
            delayed: unsigned(counts.delayed),
            deferred: unsigned(counts.deferred),
        }
    } else if counts.group_held > 0 {
        HoldReason::GroupBusy(unsigned(counts.group_held))
    } else if counts.leased > 0 {
        HoldReason::Leased(unsigned(counts.leased))
    } else if counts.in_unit > 0 {
        HoldReason::InOpenUnit(unsigned(counts.in_unit))
    } else {
        HoldReason::Empty
    };
    let waits = counts.retrying > 0 || counts.delayed > 0 || counts.deferred > 0;
    let until = facts
        .next_due
        .filter(|due| (waits || counts.leased > 0) && *due > now);
    Some(Verdict::until(reason, until))
}

/// A start was held or failed, or tasks made no progress: repeats are paced.
fn paced(facts: &Facts<'_>, now: Timestamp) -> Option<Verdict> {
    if let Some(held) = facts.held
        // Resources are asked for anew each time: they may have come back.
        && !held.reason.is_resources()
        && now < held.retry_at
    {
        return Some(Verdict::until(held.reason.clone(), Some(held.retry_at)));
    }
    let backoff = facts.backoff?;
    let reason = HoldReason::BackingOff {
        failures: backoff.failures,
    };
    (now < backoff.until).then_some(Verdict::until(reason, Some(backoff.until)))
}

fn first(facts: &Facts<'_>, now: Timestamp) -> Verdict {
    if facts.starting > 0 {
        return Verdict::hold(HoldReason::AlreadyInProcess);
    }
    match open_for_input(facts, now) {
        Some((reason, until)) => Verdict::until(reason, until),
        None => Verdict::Fire(Cause::First),
    }
}

/// Whether an outside consumer has the queue open for input, and when that ends by itself.
pub(crate) fn open_for_input(
    facts: &Facts<'_>,
    now: Timestamp,
) -> Option<(HoldReason, Option<Timestamp>)> {
    let waiting = facts.waiting_inputs;
    let leases = unsigned(facts.counts.leased_open);
    let reason = HoldReason::ConsumerOpen { waiting, leases };
    if waiting > 0 || leases > 0 {
        return Some((reason, None));
    }
    let end = facts.linger_end()?;
    (now < end).then_some((reason, Some(end)))
}

fn every(facts: &Facts<'_>) -> Verdict {
    // What is owed is computed, never stored, so it survives everything.
    if facts.counted() > u64::from(facts.starting) {
        Verdict::Fire(Cause::Every)
    } else {
        Verdict::hold(HoldReason::AlreadyInProcess)
    }
}

fn depth(facts: &Facts<'_>, now: Timestamp) -> Verdict {
    // `forbidden` has let pass: on, or off by depth with a start owed that nothing serves.
    if facts.control == Control::OffByDepth {
        return Verdict::Fire(Cause::StartOwed);
    }
    let counted = facts.counted();
    let depth = facts.attributes.trigger_depth;
    if counted >= depth {
        return Verdict::Fire(Cause::DepthReached);
    }
    let ripe = ripe_at(facts);
    if ripe.is_some_and(|ripe| ripe <= now) {
        return Verdict::Fire(Cause::MaxWait);
    }
    Verdict::until(HoldReason::WaitingForDepth { counted, depth }, ripe)
}

/// When the oldest message that counts will be older than max-wait.
pub(crate) fn ripe_at(facts: &Facts<'_>) -> Option<Timestamp> {
    let age = facts.attributes.trigger_max_wait?;
    Some(facts.oldest_counted?.after(age.saturating_add(1)))
}

#[cfg(test)]
mod tests;
