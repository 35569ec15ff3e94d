//! How a task, or a message in it, ended. Guest failure, host failure and refusal are told apart
//! here, because only the first is an attempt.

use serde::{Deserialize, Serialize};

use crate::time::Millis;

/// How a task ended, and how a message in it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The unit of work is durable.
    Committed,
    /// The handler undid its unit itself.
    BackedOut,
    /// The task ended well and took nothing.
    NoProgress,
    /// The handler asked for another attempt.
    Retry,
    /// The handler refused the message for good.
    Rejected,
    /// The handler asked for the message later; not an attempt.
    Deferred,
    /// Back on the queue, uncharged, for no fault of the message.
    Released,
    /// The guest trapped: panic, unreachable, out of bounds, exit.
    Trapped,
    /// The guest burnt its fuel.
    OutOfFuel,
    /// The guest trapped after memory or table growth was denied.
    OverMemory,
    /// The guest ran past its deadline.
    PastDeadline,
    /// Too many puts, or too large a one, trapped the guest.
    OutputLimit,
    /// A call into the host was refused for its size or number.
    HostCallLimit,
    /// The guest held too many resource handles.
    HandleLimit,
    /// A state key that the unit read was changed by another before the commit.
    StateConflict,
    /// The host ended uncleanly with the task running.
    Interrupted,
    /// The task could not be started.
    StartFailed,
    /// The host is stopping, or the requester gave way.
    Cancelled,
}

impl Outcome {
    /// Every outcome, in the order of the documentation.
    pub const ALL: [Self; 18] = [
        Self::Committed,
        Self::BackedOut,
        Self::NoProgress,
        Self::Retry,
        Self::Rejected,
        Self::Deferred,
        Self::Released,
        Self::Trapped,
        Self::OutOfFuel,
        Self::OverMemory,
        Self::PastDeadline,
        Self::OutputLimit,
        Self::HostCallLimit,
        Self::HandleLimit,
        Self::StateConflict,
        Self::Interrupted,
        Self::StartFailed,
        Self::Cancelled,
    ];

    /// The permanent name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::BackedOut => "backed-out",
            Self::NoProgress => "no-progress",
            Self::Retry => "retry",
            Self::Rejected => "rejected",
            Self::Deferred => "deferred",
            Self::Released => "released",
            Self::Trapped => "trapped",
            Self::OutOfFuel => "out-of-fuel",
            Self::OverMemory => "over-memory",
            Self::PastDeadline => "past-deadline",
            Self::OutputLimit => "output-limit",
            Self::HostCallLimit => "host-call-limit",
            Self::HandleLimit => "handle-limit",
            Self::StateConflict => "state-conflict",
            Self::Interrupted => "interrupted",
            Self::StartFailed => "start-failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// True when the guest is to blame, so the message in hand is charged an attempt.
    #[must_use]
    pub const fn is_charged(self) -> bool {
        matches!(
            self,
            Self::BackedOut
                | Self::Retry
                | Self::Trapped
                | Self::OutOfFuel
                | Self::OverMemory
                | Self::PastDeadline
                | Self::OutputLimit
                | Self::HostCallLimit
                | Self::HandleLimit
        )
    }

    /// True when an operator looking for trouble wants to see it.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        self.is_charged() || matches!(self, Self::Rejected | Self::Interrupted | Self::StartFailed)
    }
}

/// What a handler may answer instead of ok (the `failure` variant of the WIT world).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Another attempt, charged; after `after` milliseconds, else after the queue's own delay.
    Retry {
        /// The guest's words.
        reason: String,
        /// Milliseconds, or the queue's retry delay.
        after: Option<Millis>,
    },
    /// To the backout queue at once.
    Reject(String),
    /// Again after so many milliseconds, uncharged.
    Defer(Millis),
}

/// How one call into a handler ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// The handler returned ok.
    Ok,
    /// The handler returned a failure.
    Failed(Failure),
    /// The sandbox ended the guest.
    Stopped {
        /// Which limit or trap.
        outcome: Outcome,
        /// The trap in one sentence.
        detail: String,
        /// WebAssembly backtrace, innermost frame first.
        backtrace: Option<String>,
    },
    /// The host could not run it. Never charges a message.
    HostFailed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_section_in_the_authors_page() {
        let page = include_str!("../../../wit/why-was-my-handler-stopped.md");
        let sections: Vec<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`'))
            .collect();
        let all = Outcome::ALL.map(Outcome::as_str);
        assert_eq!(sections, all);
        for word in all {
            assert!(
                page.contains(&format!("[`{word}`](#{word})")),
                "{word} is not in the table"
            );
        }
    }
}
