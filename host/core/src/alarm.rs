//! Alarms: what a person should know of without asking. Each is raised once and cleared once; a
//! level has hysteresis, so that one that wavers does not ring at every change.
//!
//! [`Watch::judge`] is the rule for a queue: state, facts and now in, news out. Alarms of plugins
//! and of the host need no rule: they are states that somebody else has decided.

use crate::definition::{QueueAttributes, TriggerType};
use crate::names::QueueName;
use crate::quantity::{format_millis, number_of};
use crate::queue::Counts;
use crate::time::{Millis, Timestamp};
use crate::trigger::gate::Control;
use crate::trigger::hold::HoldReason;
use crate::trigger::rule::{Facts, open_for_input, unsigned};

/// How long a start may be held for a reason that is an error before it is an alarm, milliseconds:
/// what comes and goes while plugins are replaced is none.
pub const ERROR_GRACE: Millis = 10_000;

/// The percent of max-depth to which a queue that was full must fall when nothing says another.
const FULL_AGAIN: u64 = 80;

macro_rules! alarms {
    ($($(#[$doc:meta])* $alarm:ident = $name:literal, $cure:literal;)+) => {
        /// Every alarm.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Alarm {
            $($(#[$doc])* $alarm,)+
        }

        impl Alarm {
            /// All of them, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$alarm),+];

            /// The permanent name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$alarm => $name,)+
                }
            }

            const fn cure_of_any(self) -> &'static str {
                match self {
                    $(Self::$alarm => $cure,)+
                }
            }
        }
    };
}

alarms! {
    /// The oldest message that counts is old, and nothing serves the queue.
    OldestWaiting = "oldest-waiting",
        "ask oncue explain {name} what holds it; alarm-oldest sets the age";
    /// Messages wait, and none was got for the service interval.
    ServiceInterval = "service-interval",
        "see what its tasks do (oncue tasks --queue {name}), or whether its consumers are gone";
    /// The queue is nearly full.
    DepthHigh = "depth-high",
        "drain it faster (max-tasks), or raise max-depth; alarm-depth-high sets the level";
    /// It was nearly full and is no longer. News that nobody need act on.
    DepthLow = "depth-low",
        "nothing: puts have room again";
    /// A put was refused because the queue is full.
    QueueFull = "queue-full",
        "drain it or raise max-depth; its putters are being refused";
    /// A start is held for a reason that does not go away by itself.
    HeldByError = "held-by-error",
        "ask oncue explain {name}; bind a process, or bring its component in order";
    /// Messages are set aside because nothing could take them.
    ParkedMessage = "parked-message",
        "make room in the dead-letter queue, or name a backout queue";
    /// Dead letters wait to be looked at.
    DeadLetter = "dead-letter",
        "look at them (oncue dlq list, oncue dlq show), then redrive or discard them";
    /// A scheduled put was refused.
    ScheduleRefused = "schedule-refused",
        "enable put, or make room in the queue; it is tried again until the next time is due";
    /// A plugin was refused.
    Quarantined = "quarantined",
        "see oncue plugin show {name} for the reason, and drop a version that is in order";
    /// The store does not write.
    StoreStopped = "store-stopped",
        "free disk space; after a failed sync look at the disk and restart the host";
}

/// In the text of a cure, the queue or the plugin that the alarm is about.
const NAME: &str = "{name}";

impl Alarm {
    /// What to do about it, when it is about the queue or the plugin of that name. An alarm of the
    /// host names nothing.
    #[must_use]
    pub fn cure(self, name: &str) -> String {
        self.cure_of_any().replace(NAME, name)
    }

    /// A person must act: nothing else ends it.
    #[must_use]
    pub const fn needs_a_person(self) -> bool {
        matches!(
            self,
            Self::HeldByError | Self::ParkedMessage | Self::Quarantined | Self::StoreStopped
        )
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

const _: () = assert!(Alarm::ALL.len() <= u16::BITS as usize);

/// What became of an alarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It is raised; the text says what is.
    Raised(String),
    /// It is over.
    Cleared,
    /// It was told and is over at once.
    Told(String),
}

/// One alarm's news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which alarm.
    pub alarm: Alarm,
    /// What became of it.
    pub news: News,
}

/// The two clocks that alarms go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The time of day, which people set.
    pub time: Timestamp,
    /// How long the host has been running, milliseconds, at least 1: nobody sets it, and it stands
    /// still while the machine sleeps. How long nothing happened goes by it.
    pub ran: Millis,
}

/// What a queue remembers for its alarms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    raised: u16,
    /// When a message was last got, or the queue last held none that counts, as [`Now::ran`]; zero
    /// before the first look.
    got: Millis,
    /// The caller's count of commits that took messages off, at the last look.
    removals: u64,
}

/// What the rule looks at, beside the watch.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The queue.
    pub queue: &'a QueueName,
    /// What the trigger rule sees of it.
    pub facts: Facts<'a>,
    /// When the oldest message that counts was put; looked at where [`Watch::wants_oldest`].
    pub oldest: Option<Timestamp>,
    /// A put was refused for want of room since the last look.
    pub refused: bool,
}

impl Watch {
    /// Notes a change of the queue's counts, before it is added to `counts`. `removals` is a number
    /// that grows whenever messages leave the queue for good; `ran` is [`Now::ran`].
    pub fn notice(&mut self, counts: &Counts, change: &Counts, removals: u64, ran: Millis) {
        let taken = change.in_unit > 0 || change.leased > 0 || self.removals != removals;
        self.removals = removals;
        if taken || counts.counted(0) <= 0 {
            self.got = ran;
        }
    }

    /// True when a change of the counts may raise or clear an alarm. Cheap: asked at each change.
    #[must_use]
    pub fn heeds(&self, queue: &QueueName, attributes: &QueueAttributes, counts: &Counts) -> bool {
        let depth = unsigned(counts.depth());
        let high = attributes.alarm_depth_high;
        self.raised != 0
            || counts.parked > 0
            || high.is_some_and(|high| reaches(depth, high, attributes.max_depth))
            || (depth > 0 && queue.is_dead_letter())
    }

    /// True when an alarm of the queue is raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.raised != 0
    }

    /// Takes all raised alarms back, for a queue that is no more.
    pub fn take_raised(&mut self) -> Vec<Alarm> {
        let raised = std::mem::take(&mut self.raised);
        let all = Alarm::ALL.iter().copied();
        all.filter(|alarm| raised & alarm.bit() != 0).collect()
    }

    /// Notes that an alarm of another rule is raised or not; true when that is news.
    pub fn set(&mut self, alarm: Alarm, raised: bool) -> bool {
        let was = self.raised & alarm.bit() != 0;
        if raised {
            self.raised |= alarm.bit();
        } else {
            self.raised &= !alarm.bit();
        }
        was != raised
    }

    /// True when [`Seen::oldest`] matters. A healthy queue's is never looked for.
    #[must_use]
    pub fn wants_oldest(&self, facts: &Facts<'_>, now: Now) -> bool {
        let Some(limit) = facts.attributes.alarm_oldest else {
            return false;
        };
        self.got > 0 && self.idle(now) > limit && nothing_serves(facts, now.time)
    }

    /// How long no message was got.
    fn idle(&self, now: Now) -> Millis {
        now.ran.saturating_sub(self.got)
    }

    /// The rule. Costs the same whatever the queue holds; answers with nothing when nothing is new.
    pub fn judge(&mut self, seen: &Seen<'_>, now: Now) -> Vec<Change> {
        // A queue that is full when the host starts was so before: who puts there is refused.
        let mut refused = seen.refused;
        if self.got == 0 {
            self.got = now.ran;
            let depth = unsigned(seen.facts.counts.depth());
            refused |= depth >= seen.facts.attributes.max_depth;
        }
        let was_high = self.raised & Alarm::DepthHigh.bit() != 0;
        let was_full = self.raised & Alarm::QueueFull.bit() != 0;
        let now_raised = [
            (Alarm::OldestWaiting, self.oldest_waiting(seen, now)),
            (Alarm::ServiceInterval, self.unserved(seen, now)),
            (Alarm::DepthHigh, depth_high(seen, was_high)),
            (Alarm::QueueFull, queue_full(seen, refused, was_full)),
            (Alarm::HeldByError, held_by_error(seen, now.time)),
            (Alarm::ParkedMessage, parked(seen)),
            (Alarm::DeadLetter, dead_letter(seen)),
        ];
        let mut changes = Vec::new();
        for (alarm, raised) in now_raised {
            if self.set(alarm, raised.is_some()) {
                let news = raised.map_or(News::Cleared, News::Raised);
                changes.push(Change { alarm, news });
            }
        }
        let is_high = self.raised & Alarm::DepthHigh.bit() != 0;
        if was_high && !is_high {
            changes.extend(depth_low(seen).map(|text| Change {
                alarm: Alarm::DepthLow,
                news: News::Told(text),
            }));
        }
        changes
    }

    fn oldest_waiting(&self, seen: &Seen<'_>, now: Now) -> Option<String> {
        let limit = seen.facts.attributes.alarm_oldest?;
        if !self.wants_oldest(&seen.facts, now) {
            return None;
        }
        let put = seen.oldest?;
        let age = if put > now.time {
            // The clock was set back since: it has waited at least as long as nothing was got.
            self.idle(now)
        } else {
            now.time.since(put)
        };
        let counted = seen.facts.counted();
        (age > limit).then(|| {
            format!(
                "queue \"{}\": the oldest of {counted} waiting messages is {} old and nothing is \
                 started for it",
                seen.queue,
                coarse(age)
            )
        })
    }

    fn unserved(&self, seen: &Seen<'_>, now: Now) -> Option<String> {
        let interval = seen.facts.attributes.service_interval;
        let counted = seen.facts.counted();
        let idle = self.idle(now);
        (interval > 0 && counted > 0 && idle >= interval).then(|| {
            format!(
                "queue \"{}\": {} and none was got for {}",
                seen.queue,
                waiting(counted),
                coarse(idle)
            )
        })
    }
}

fn waiting(counted: u64) -> String {
    match counted {
        1 => "1 message waits".to_owned(),
        _ => format!("{counted} messages wait"),
    }
}

/// Whether messages count, a start is to be thought of, and neither a task nor a consumer is there.
fn nothing_serves(facts: &Facts<'_>, now: Timestamp) -> bool {
    let attributes = facts.attributes;
    // A depth trigger that has not reached its depth waits as it was told to.
    let gathers = attributes.trigger == TriggerType::Depth
        && facts.control == Control::On
        && facts.counted() < attributes.trigger_depth;
    facts.counted() > 0
        && facts.running == 0
        && attributes.trigger != TriggerType::None
        && !gathers
        && open_for_input(facts, now).is_none()
}

/// Whether `depth` is at least `percent` of `max`.
fn reaches(depth: u64, percent: u8, max: u64) -> bool {
    depth.saturating_mul(100) >= max.saturating_mul(u64::from(percent))
}

/// Whether `depth` is at most `percent` of `max`.
fn is_down_to(depth: u64, percent: u8, max: u64) -> bool {
    depth.saturating_mul(100) <= max.saturating_mul(u64::from(percent))
}

fn filled(seen: &Seen<'_>) -> String {
    let depth = unsigned(seen.facts.counts.depth());
    format!("depth {depth} of {}", seen.facts.attributes.max_depth)
}

fn depth_high(seen: &Seen<'_>, was: bool) -> Option<String> {
    let attributes = seen.facts.attributes;
    let high = attributes.alarm_depth_high?;
    let depth = unsigned(seen.facts.counts.depth());
    let max = attributes.max_depth;
    let low = attributes.alarm_depth_low.unwrap_or(high - high / 10);
    let above = depth > 0 && reaches(depth, high, max);
    // Once raised it stays until the low level is reached.
    let stays = was && !is_down_to(depth, low, max);
    (above || stays).then(|| {
        let text = filled(seen);
        format!(
            "queue \"{}\" has reached {high} % of its max-depth ({text}); over at {low} %",
            seen.queue
        )
    })
}

/// The pair of [`depth_high`], asked when that is over. It may be over because its level is another
/// now, and then the queue has not run low.
fn depth_low(seen: &Seen<'_>) -> Option<String> {
    let attributes = seen.facts.attributes;
    let low = attributes.alarm_depth_low?;
    let depth = unsigned(seen.facts.counts.depth());
    is_down_to(depth, low, attributes.max_depth).then(|| {
        let text = filled(seen);
        format!(
            "queue \"{}\" is down to {low} % of its max-depth ({text})",
            seen.queue
        )
    })
}

fn queue_full(seen: &Seen<'_>, refused: bool, was: bool) -> Option<String> {
    let attributes = seen.facts.attributes;
    let depth = unsigned(seen.facts.counts.depth());
    let max = attributes.max_depth;
    let room = attributes.alarm_depth_high.map_or(FULL_AGAIN, u64::from);
    let has_room = depth < max && depth.saturating_mul(100) <= max.saturating_mul(room);
    (refused || (was && !has_room)).then(|| {
        let text = filled(seen);
        format!("queue \"{}\" is full ({text}) and refuses puts", seen.queue)
    })
}

fn held_by_error(seen: &Seen<'_>, now: Timestamp) -> Option<String> {
    let held = seen.facts.held?;
    let is_error = matches!(
        held.reason,
        HoldReason::NoProcess(_)
            | HoldReason::ComponentMissing(_)
            | HoldReason::ComponentQuarantined(_)
            | HoldReason::StartFailed(_)
    );
    let counted = seen.facts.counted();
    // Where the clock was set back since, nobody knows for how long.
    let long = held.since > now || now.since(held.since) >= ERROR_GRACE;
    (is_error && long && counted > 0).then(|| {
        format!(
            "queue \"{}\": {} and no task can be started: {} [{}]",
            seen.queue,
            waiting(counted),
            held.reason,
            held.reason.as_str()
        )
    })
}

fn parked(seen: &Seen<'_>) -> Option<String> {
    let parked = unsigned(seen.facts.counts.parked);
    (parked > 0).then(|| {
        format!(
            "queue \"{}\": {} parked: neither a backout queue nor the dead-letter queue can take \
             {}",
            seen.queue,
            if parked == 1 {
                "1 message is".to_owned()
            } else {
                format!("{parked} messages are")
            },
            if parked == 1 { "it" } else { "them" },
        )
    })
}

fn dead_letter(seen: &Seen<'_>) -> Option<String> {
    let depth = unsigned(seen.facts.counts.depth());
    (depth > 0 && seen.queue.is_dead_letter()).then(|| {
        let letters = number_of(depth, "dead letter");
        format!("queue \"{}\" holds {letters}", seen.queue)
    })
}

/// A time of which nobody wants the last digits.
fn coarse(millis: Millis) -> String {
    const UNITS: [Millis; 3] = [3_600_000, 60_000, 1_000];
    let unit = UNITS.into_iter().find(|unit| millis >= 10 * unit);
    let unit = unit.unwrap_or(1);
    format_millis(millis - millis % unit)
}

#[cfg(test)]
mod tests;
