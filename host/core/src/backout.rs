//! What becomes of a message after its attempt failed: again, later, elsewhere, or set aside.
//!
//! The one place where a message is charged. Nothing is ever deleted because a limit was reached:
//! the last resort is to park. Refuses to do: move anything, or find out whether a queue has room.
//! Neighbours: [`crate::unit_of_work`] carries the decision, [`crate::outcome`] says how it ended.

use std::collections::BTreeSet;

use crate::definition::{QueueAttributes, Retry, Style, TriggerType};
use crate::message::{Attempts, DeadLetter, DeadLetterReason, Sequence};
use crate::names::{ProcessName, QueueName};
use crate::outcome::{CallEnd, Failure, Outcome};
use crate::time::{Millis, Timestamp};
use crate::trigger::TaskId;
use crate::trigger::gate::doubled;
use crate::unit_of_work::{Disposition, Wait};

/// What happened to a message in hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A charged failure: error, trap or limit.
    Failed {
        /// How it ended.
        outcome: Outcome,
        /// The wait the handler asked for, milliseconds.
        after: Option<Millis>,
        /// The handler's words, or the trap's.
        detail: String,
        /// WebAssembly backtrace.
        backtrace: Option<String>,
    },
    /// The handler refused it for good.
    Rejected(String),
    /// The handler wants it again after so many milliseconds.
    Deferred(Millis),
    /// An outside consumer gave it back.
    Nack(String),
    /// An outside consumer's lease ended.
    LeaseExpired,
    /// The host ended uncleanly. Charged only when [`charged_by_interruption`] says so.
    Interrupted {
        /// It was the only suspect in hand.
        charged: bool,
    },
    /// Back for no fault of its own: the host failed, or others in its unit did.
    Released,
}

impl Trouble {
    /// What a call's end means for the message that was delivered; `None` when it went well.
    #[must_use]
    pub fn of(end: &CallEnd) -> Option<Self> {
        match end {
            CallEnd::Ok => None,
            CallEnd::Failed(Failure::Retry { reason, after }) => Some(Self::Failed {
                outcome: Outcome::Retry,
                after: *after,
                detail: reason.clone(),
                backtrace: None,
            }),
            CallEnd::Failed(Failure::Reject(reason)) => Some(Self::Rejected(reason.clone())),
            CallEnd::Failed(Failure::Defer(after)) => Some(Self::Deferred(*after)),
            // A limit of ours that charges nobody (a state conflict) is no attempt.
            CallEnd::Stopped { outcome, .. } if !outcome.is_charged() => Some(Self::Released),
            CallEnd::Stopped {
                outcome,
                detail,
                backtrace,
            } => Some(Self::Failed {
                outcome: *outcome,
                after: None,
                detail: detail.clone(),
                backtrace: backtrace.clone(),
            }),
            CallEnd::HostFailed(_) => Some(Self::Released),
        }
    }
}

/// Who failed on the message, for its dead-letter record.
#[derive(Clone, Debug, Default)]
pub struct Culprit {
    /// The process definition; none for an outside consumer.
    pub process: Option<ProcessName>,
    /// Digest of the component version.
    pub digest: Option<String>,
    /// The task.
    pub task: Option<TaskId>,
    /// The end of the task's standard error.
    pub log_tail: Option<String>,
}

/// Which destinations exist and have room for the message now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The queue's backout queue.
    pub backout_queue: bool,
    /// The dead-letter queue.
    pub dead_letter_queue: bool,
}

/// One message to decide on.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The queue it was taken from.
    pub queue: &'a QueueName,
    /// That queue's attributes.
    pub attributes: &'a QueueAttributes,
    /// Its attempts as they were when it was taken.
    pub attempts: Attempts,
    /// Who failed on it.
    pub culprit: &'a Culprit,
    /// Where it could go.
    pub room: Room,
    /// The present time.
    pub now: Timestamp,
    /// Random bits for the jitter. One number for all messages of a unit that stay together.
    pub random: u64,
}

/// What becomes of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Given back as it was; nothing is written.
    Release,
    /// Settled in the failure's own commit.
    Settle(Disposition),
}

impl Decision {
    /// True when a person must be told: the message is parked.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        matches!(self, Self::Settle(Disposition::Park(_)))
    }

    /// True when the message has left the counted set durably, which is progress for its queue.
    #[must_use]
    pub fn is_progress(&self) -> bool {
        match self {
            Self::Release => false,
            Self::Settle(disposition) => !matches!(disposition, Disposition::Requeue(_)),
        }
    }
}

/// Decides what becomes of one message after its attempt failed.
#[must_use]
pub fn after_failure(case: &Case<'_>, trouble: &Trouble) -> Decision {
    let attempts = case.attempts;
    match trouble {
        Trouble::Released => Decision::Release,
        Trouble::Failed {
            outcome,
            after,
            detail,
            backtrace,
        } => {
            let reason = DeadLetterReason::Backout(*outcome);
            charge(
                case,
                attempts,
                reason,
                (detail, backtrace.as_deref()),
                Delay::Retry(*after),
            )
        }
        Trouble::Rejected(reason) => {
            let charged = charged(attempts);
            leave(case, charged, DeadLetterReason::Rejected, (reason, None))
        }
        Trouble::Deferred(after) => defer(case, *after),
        Trouble::Nack(reason) => {
            let delay = Delay::Retry(None);
            charge(
                case,
                attempts,
                DeadLetterReason::Consumer,
                (reason, None),
                delay,
            )
        }
        Trouble::LeaseExpired => {
            // It has waited its lease already.
            let detail = "the consumer's lease ended before it settled the message";
            charge(
                case,
                attempts,
                DeadLetterReason::Consumer,
                (detail, None),
                Delay::AtOnce,
            )
        }
        Trouble::Interrupted { charged } => {
            let interrupted_count = attempts.interrupted_count.saturating_add(1);
            let attempts = Attempts {
                interrupted_count,
                ..attempts
            };
            if !*charged {
                return Decision::Settle(Disposition::Requeue(attempts));
            }
            let reason = DeadLetterReason::Backout(Outcome::Interrupted);
            let detail = "the host ended uncleanly again while this message was in hand";
            charge(case, attempts, reason, (detail, None), Delay::Retry(None))
        }
    }
}

/// Where a parked message goes, now that there may be room: it was charged and decided before.
/// `None` when still nothing can take it.
#[must_use]
pub fn from_parked(case: &Case<'_>) -> Option<Disposition> {
    let reason = DeadLetterReason::Backout(Outcome::BackedOut);
    let detail = "it was parked until a backout or dead-letter queue could take it";
    match leave(case, case.attempts, reason, (detail, None)) {
        Decision::Settle(moved @ Disposition::Move { .. }) => Some(moved),
        _ => None,
    }
}

/// What a dead-letter record tells of the last attempt: the words, and the backtrace.
type Story<'a> = (&'a str, Option<&'a str>);

enum Delay {
    AtOnce,
    Retry(Option<Millis>),
}

fn charged(attempts: Attempts) -> Attempts {
    let backout_count = attempts.backout_count.saturating_add(1);
    Attempts {
        backout_count,
        deferred_since: None,
        ..attempts
    }
}

fn charge(
    case: &Case<'_>,
    attempts: Attempts,
    reason: DeadLetterReason,
    story: Story<'_>,
    delay: Delay,
) -> Decision {
    let attempts = charged(attempts);
    if is_at_threshold(attempts, case.attributes.backout_threshold) {
        return leave(case, attempts, reason, story);
    }
    let wait = match delay {
        Delay::AtOnce => return Decision::Settle(Disposition::Requeue(attempts)),
        // A handler may not put a message off for longer than it may defer one.
        Delay::Retry(Some(after)) => after.min(case.attributes.defer_max_age),
        Delay::Retry(None) => {
            retry_delay(case.attributes.retry, attempts.backout_count, case.random)
        }
    };
    let until = case.now.after(wait);
    Decision::Settle(Disposition::Later {
        until,
        wait: Wait::Retry,
        attempts,
    })
}

/// Whether so many charged attempts are the last. A threshold of 0 sets no limit.
#[must_use]
pub fn is_at_threshold(attempts: Attempts, threshold: u32) -> bool {
    threshold > 0 && attempts.backout_count >= threshold
}

/// The delay before the attempt that follows the given number of charged ones: the initial delay,
/// doubled with each, at most the maximum, varied by the jitter.
#[must_use]
pub fn retry_delay(retry: Retry, backout_count: u32, random: u64) -> Millis {
    let plain = doubled(retry.initial, backout_count.saturating_sub(1), retry.max);
    let spread = plain.saturating_mul(u64::from(retry.jitter)) / 100;
    let range = spread.saturating_mul(2).saturating_add(1);
    (plain - spread.min(plain)).saturating_add(random % range)
}

fn defer(case: &Case<'_>, after: Millis) -> Decision {
    let since = case.attempts.deferred_since.unwrap_or(case.now);
    let attempts = Attempts {
        deferred_since: Some(since),
        ..case.attempts
    };
    let last = since.after(case.attributes.defer_max_age);
    if case.attempts.deferred_since.is_some() && case.now >= last {
        let detail = "deferred for longer than defer-max-age";
        return leave(case, attempts, DeadLetterReason::Deferred, (detail, None));
    }
    // A handler that defers by nothing would have the message back at once, for ever.
    let wait = after.max(case.attributes.backoff.initial);
    let until = case.now.after(wait).min(last);
    Decision::Settle(Disposition::Later {
        until,
        wait: Wait::Defer,
        attempts,
    })
}

/// To the backout queue, else to the dead-letter queue, else set aside. Never onto its own queue.
fn leave(
    case: &Case<'_>,
    attempts: Attempts,
    reason: DeadLetterReason,
    (detail, backtrace): Story<'_>,
) -> Decision {
    let backout = case
        .attributes
        .backout_queue
        .clone()
        .filter(|_| case.room.backout_queue);
    let dead_letter = case.room.dead_letter_queue.then(QueueName::dead_letter);
    let to = backout
        .into_iter()
        .chain(dead_letter)
        .find(|to| to != case.queue);
    let Some(to) = to else {
        return Decision::Settle(Disposition::Park(attempts));
    };
    let culprit = case.culprit;
    let record = DeadLetter {
        reason,
        queue: case.queue.clone(),
        process: culprit.process.as_ref().map(ToString::to_string),
        digest: culprit.digest.clone(),
        attempts: attempts.backout_count,
        detail: detail.to_owned(),
        backtrace: backtrace.map(ToOwned::to_owned),
        log_tail: culprit.log_tail.clone(),
        task: culprit.task.map(|task| task.to_string()),
        time: case.now,
    };
    Decision::Settle(Disposition::Move {
        to,
        record: Some(Box::new(record)),
        attempts,
    })
}

/// Who is charged for a failed unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The message that was delivered to the call; all others go back uncharged.
    Delivered,
    /// Every message of the unit, and they stay together: the same delay, the same destination.
    Whole,
    /// Nobody: it is not known which one is to blame. The next units are limited to one message
    /// until all of these are settled.
    Nobody,
}

/// Who is charged for a failed unit of `messages` got messages.
#[must_use]
pub fn blame(messages: usize, style: Style, trigger: TriggerType) -> Blame {
    if style != Style::Trigger {
        // The host delivers the messages one by one, so it knows.
        Blame::Delivered
    } else if messages == 1 || trigger == TriggerType::Depth {
        Blame::Whole
    } else {
        Blame::Nobody
    }
}

/// Decides for a unit that is charged as a whole: the member with most attempts sets delay and
/// destination for all, so they never part.
#[must_use]
pub fn after_failed_unit(
    case: &Case<'_>,
    members: &[Attempts],
    trouble: &Trouble,
) -> Vec<Decision> {
    let most = members
        .iter()
        .map(|attempts| attempts.backout_count)
        .max()
        .unwrap_or(0);
    let since = members
        .iter()
        .filter_map(|attempts| attempts.deferred_since)
        .min();
    let alike = |attempts: &Attempts| Attempts {
        backout_count: most,
        deferred_since: since,
        ..*attempts
    };
    members
        .iter()
        .map(|attempts| {
            after_failure(
                &Case {
                    attempts: alike(attempts),
                    ..*case
                },
                trouble,
            )
        })
        .collect()
}

/// Which of the messages in hand at an unclean end of the host are charged: the only suspect, if
/// there is just one. The others become suspects.
#[must_use]
pub fn charged_by_interruption(in_hand: &[Attempts]) -> Vec<bool> {
    let is_suspect = |attempts: &Attempts| attempts.interrupted_count > 0;
    let only = in_hand
        .iter()
        .filter(|attempts| is_suspect(attempts))
        .count()
        == 1;
    in_hand
        .iter()
        .map(|attempts| only && is_suspect(attempts))
        .collect()
}

/// How many messages a queue's next unit may get (trigger style). In memory only: after a restart
/// the messages of an unknown culprit are got together again, and fail again at worst.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitLimit {
    /// Members of failed units that charged nobody; bounded by max-unit times max-tasks.
    unsettled: BTreeSet<Sequence>,
}

impl UnitLimit {
    /// A unit of several messages failed, and nobody was charged.
    pub fn failed(&mut self, members: impl IntoIterator<Item = Sequence>) {
        self.unsettled.extend(members);
    }

    /// A message was settled: committed, charged, moved, parked or removed.
    pub fn settled(&mut self, message: Sequence) {
        self.unsettled.remove(&message);
    }

    /// The queue was cleared.
    pub fn clear(&mut self) {
        self.unsettled.clear();
    }

    /// Most messages in the next unit, where `max_unit` is the most at other times.
    #[must_use]
    pub fn messages(&self, max_unit: u32) -> u32 {
        if self.unsettled.is_empty() {
            max_unit
        } else {
            1
        }
    }
}

#[cfg(test)]
mod tests;
