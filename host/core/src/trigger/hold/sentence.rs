//! The sentence of each reason: the fact with its numbers, then what to do where someone can.

use std::fmt;

use super::HoldReason;
use crate::quantity::{format_bytes, format_count, number_of};

/// "1 message is", "3 messages are": every sentence about messages starts so.
fn messages(count: u64) -> String {
    if count == 1 {
        "1 message is".to_owned()
    } else {
        format!("{count} messages are")
    }
}

/// Bytes for a sentence: exact where a unit divides them, else rounded down to whole units.
fn shown_bytes(bytes: u64) -> String {
    const UNITS: [u64; 3] = [1 << 30, 1 << 20, 1 << 10];
    // Below 16 units the error would be large; the next smaller unit is used.
    let unit = UNITS
        .into_iter()
        .find(|unit| bytes / unit >= 16)
        .unwrap_or(1);
    format_bytes(bytes / unit * unit)
}

fn shown_fuel(fuel: u64) -> String {
    const UNITS: [u64; 3] = [1_000_000_000, 1_000_000, 1_000];
    let unit = UNITS
        .into_iter()
        .find(|unit| fuel / unit >= 16)
        .unwrap_or(1);
    format_count(fuel / unit * unit)
}

impl HoldReason {
    /// The reasons that say why no message counts.
    fn fmt_messages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BelowTriggerPriority { waiting, priority } => {
                write!(
                    f,
                    "{} ready, none of trigger-priority {priority}",
                    messages(*waiting)
                )
            }
            Self::Delayed {
                delayed,
                deferred: 0,
            } => {
                write!(f, "{} delayed and not due yet", messages(*delayed))
            }
            Self::Delayed {
                delayed: 0,
                deferred,
            } => {
                write!(
                    f,
                    "{} deferred by the handler and not due yet",
                    messages(*deferred)
                )
            }
            Self::Delayed { delayed, deferred } => {
                write!(
                    f,
                    "{} delayed and {deferred} deferred, not due yet",
                    messages(*delayed)
                )
            }
            Self::Leased(count) => {
                write!(f, "{} leased to outside consumers", messages(*count))
            }
            Self::InOpenUnit(count) => write!(f, "{} in an open unit of work", messages(*count)),
            Self::GroupBusy(count) => {
                write!(
                    f,
                    "{} held back: another of the group is in hand",
                    messages(*count)
                )
            }
            Self::RetryDelay(count) => {
                write!(
                    f,
                    "{} waiting to be tried again after a failure",
                    messages(*count)
                )
            }
            Self::ParkedMessage(count) => write!(
                f,
                "{} parked, because no backout or dead-letter queue could take it; make room, \
                 then release",
                messages(*count)
            ),
            _ => f.write_str("no message is on the queue"),
        }
    }

    /// The reasons found at steps 50 to 64.
    fn fmt_start(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InsufficientMemory { wanted, free } => write!(
                f,
                "insufficient resources: memory {} wanted, {} free",
                shown_bytes(*wanted),
                shown_bytes(*free)
            ),
            Self::InsufficientHostMemory { wanted, free } => write!(
                f,
                "insufficient resources: memory {} wanted, {} free on the machine",
                shown_bytes(*wanted),
                shown_bytes(*free)
            ),
            Self::InsufficientFuel { wanted, free } => write!(
                f,
                "insufficient resources: fuel {} wanted, {} free",
                shown_fuel(*wanted),
                shown_fuel(*free)
            ),
            Self::NoTaskSlot { slots } => {
                write!(
                    f,
                    "insufficient resources: all {slots} task slots are taken"
                )
            }
            Self::NoProcess(None) => {
                f.write_str("the queue names no process; set its process attribute")
            }
            Self::NoProcess(Some(process)) => {
                write!(
                    f,
                    "the process \"{process}\" is not defined; define it or install its plugin"
                )
            }
            Self::ComponentMissing(name) => write!(
                f,
                "the component \"{name}\" is missing; put it into the plugins directory"
            ),
            Self::ComponentCompiling(name) => {
                write!(
                    f,
                    "the component \"{name}\" is being read and compiled; its queues start when it \
                     is ready"
                )
            }
            Self::ComponentQuarantined(why) => {
                write!(f, "the component is quarantined: {why}")
            }
            Self::StartFailed(why) => write!(f, "the last start failed: {why}"),
            _ => f.write_str("another trigger process or enough starts serve the queue"),
        }
    }
}

impl fmt::Display for HoldReason {
    /// A whole sentence for a person, without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty
            | Self::BelowTriggerPriority { .. }
            | Self::Delayed { .. }
            | Self::Leased(_)
            | Self::InOpenUnit(_)
            | Self::GroupBusy(_)
            | Self::RetryDelay(_)
            | Self::ParkedMessage(_) => self.fmt_messages(f),
            Self::AlreadyInProcess
            | Self::InsufficientMemory { .. }
            | Self::InsufficientHostMemory { .. }
            | Self::InsufficientFuel { .. }
            | Self::NoTaskSlot { .. }
            | Self::NoProcess(_)
            | Self::ComponentMissing(_)
            | Self::ComponentCompiling(_)
            | Self::ComponentQuarantined(_)
            | Self::StartFailed(_) => self.fmt_start(f),
            Self::TriggerPending => f.write_str("a trigger of the queue is already pending"),
            Self::TriggerOffByOperator => f.write_str("the trigger is off by operator; turn it on"),
            Self::TriggerOffByDepth => f.write_str(
                "the trigger is off by depth: it fired, and is re-armed after its task or by an \
                 operator",
            ),
            Self::TriggerTypeNone => f.write_str("the trigger type is none, which never starts"),
            Self::Paused(by) => write!(f, "the {} is paused; resume it", by.as_str()),
            Self::GetDisabled => f.write_str("get is disabled; enable it"),
            Self::ConsumerOpen {
                waiting: 0,
                leases: 0,
            } => f.write_str("an outside consumer had the queue open for input a moment ago"),
            Self::ConsumerOpen { waiting, leases } => write!(
                f,
                "an outside consumer has the queue open for input: {}, {}",
                number_of(u64::from(*waiting), "waiting get"),
                number_of(*leases, "unsettled lease")
            ),
            Self::AtMaxTasks { running, max } => {
                let are = if *running == 1 { "is" } else { "are" };
                let tasks = number_of(u64::from(*running), "task");
                write!(f, "{tasks} {are} in process, max-tasks is {max}")
            }
            Self::BackingOff { failures: 1 } => {
                f.write_str("backing off after a task without progress or a failed start")
            }
            Self::BackingOff { failures } => write!(
                f,
                "backing off after {failures} tasks without progress or failed starts in a row"
            ),
            Self::WaitingForDepth { counted, depth } => {
                write!(
                    f,
                    "{} counted, trigger-depth is {depth}",
                    messages(*counted)
                )
            }
            Self::StoreStopped => {
                // Which of the two is no matter of the rule: `status` says it.
                f.write_str(
                    "the store does not write: its disk is full (free space, and it goes on) or \
                     a sync failed (restart the host); the status says which",
                )
            }
            Self::Draining => f.write_str("the host is stopping and starts nothing new"),
        }
    }
}
