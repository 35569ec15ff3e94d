//! A message: header, attempts and body. Its identity and its place in the order of arrival are one
//! number.
//!
//! Neighbours: [`crate::queue`] counts messages, [`crate::unit_of_work`] moves them.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::names::QueueName;
use crate::outcome::Outcome;
use crate::time::Timestamp;

/// Highest priority; the lowest is 0.
pub const MAX_PRIORITY: u8 = 9;

/// Number of priorities.
pub const PRIORITIES: usize = MAX_PRIORITY as usize + 1;

/// Arrival order within one store: assigned at the put, never used twice, not even by a put that
/// was undone.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Sequence(pub u64);

/// The identity of a message: the store that first took it, and its sequence there.
///
/// Written as 24 lower-case hexadecimal digits: 8 of the origin, 16 of the sequence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId {
    /// Random number of the store, drawn when its data directory was made.
    pub origin: u32,
    /// Sequence within that store.
    pub sequence: Sequence,
}

/// Digits of a message id.
const ID_DIGITS: usize = 24;

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Written by hand: each put's answer has it twice, and `{:016x}` costs ten times as much.
        let mut digits = [0_u8; ID_DIGITS];
        let mut rest = u128::from(self.origin) << 64 | u128::from(self.sequence.0);
        for digit in digits.iter_mut().rev() {
            *digit = b"0123456789abcdef"[(rest & 0xf) as usize];
            rest >>= 4;
        }
        f.pad(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a message id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("message id \"{0}\" is not 24 hexadecimal digits; copy it from the put's answer")]
pub struct MessageIdError(pub String);

impl FromStr for MessageId {
    type Err = MessageIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || MessageIdError(text.chars().take(64).collect());
        let plain = text.len() == 24
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if !plain {
            return Err(wrong());
        }
        let (origin, sequence) = text.split_at(8);
        Ok(Self {
            origin: u32::from_str_radix(origin, 16).map_err(|_| wrong())?,
            sequence: Sequence(u64::from_str_radix(sequence, 16).map_err(|_| wrong())?),
        })
    }
}

impl Serialize for MessageId {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MessageId {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What the putter said of a message, and what the manager added at the put. Never changes
/// afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Identity, and place in the order of arrival.
    pub id: MessageId,
    /// Set by applications to tie a reply to its request.
    pub correlation_id: Option<String>,
    /// Where a reply is wanted.
    pub reply_to: Option<QueueName>,
    /// Messages of one group are never in two tasks at once, and keep their arrival order.
    pub group: Option<String>,
    /// The putter's own number within the group; carried, not interpreted.
    pub group_sequence: Option<u32>,
    /// 0 to [`MAX_PRIORITY`].
    pub priority: u8,
    /// Survives a restart when true; else it lives in memory only.
    pub persistent: bool,
    /// Media type of the body.
    pub content_type: Option<String>,
    /// Free name and value pairs, in the putter's order.
    pub properties: Vec<(String, String)>,
    /// When the put was made.
    pub put_time: Timestamp,
    /// After this the message no longer counts and is removed.
    pub expires: Option<Timestamp>,
    /// How many handlers stand between this message and an outside putter.
    pub hop_count: u8,
    /// Who put it: `process/NAME` for a handler, an identity or nothing for an application.
    pub put_by: Option<String>,
    /// Length of the body in bytes.
    pub size: u64,
}

/// What happened to a message since its put. Changes with each attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempts {
    /// Failed attempts charged to this message.
    pub backout_count: u32,
    /// Unclean ends of the host while this message was in hand. Above zero the message is a
    /// *suspect*.
    pub interrupted_count: u32,
    /// When it was first deferred, to bound the age of deferral. Cleared by a charged attempt.
    pub deferred_since: Option<Timestamp>,
}

/// The dead-letter record: stands beside the body of a message in a backout or dead-letter queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeadLetter {
    /// How the last attempt ended (`trapped`, `rejected`, ...) or `hop-limit`.
    pub reason: DeadLetterReason,
    /// The queue it was taken from: where a redrive puts it back.
    pub queue: QueueName,
    /// Name of the process definition that failed on it.
    pub process: Option<String>,
    /// Digest of the component version that failed on it.
    pub digest: Option<String>,
    /// Charged attempts.
    pub attempts: u32,
    /// The guest's own words, or the trap's.
    pub detail: String,
    /// WebAssembly backtrace of a trap.
    pub backtrace: Option<String>,
    /// The end of what the task wrote to standard error.
    pub log_tail: Option<String>,
    /// The task that failed last.
    pub task: Option<String>,
    /// When it was moved.
    pub time: Timestamp,
}

/// Why a message was moved to a backout or dead-letter queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeadLetterReason {
    /// Its backout count reached the threshold; the outcome is that of the last attempt.
    Backout(Outcome),
    /// A handler rejected it.
    Rejected,
    /// An outside consumer gave it back (nack or expired lease) as often as the threshold allows.
    Consumer,
    /// It was deferred for longer than the queue's `defer-max-age`.
    Deferred,
    /// It was put past the hop limit.
    HopLimit,
}

impl DeadLetterReason {
    /// The reason's word, and the outcome of the last attempt for a backout.
    #[must_use]
    pub fn words(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Backout(outcome) => ("backout", Some(outcome.as_str())),
            Self::Rejected => (Outcome::Rejected.as_str(), None),
            Self::Consumer => ("consumer", None),
            Self::Deferred => (Outcome::Deferred.as_str(), None),
            Self::HopLimit => ("hop-limit", None),
        }
    }

    /// Every word that [`words`](Self::words) may give: reasons, then outcomes of a backout.
    pub fn every_word() -> impl Iterator<Item = &'static str> {
        let reasons = [
            Self::Backout(Outcome::Trapped),
            Self::Rejected,
            Self::Consumer,
            Self::Deferred,
            Self::HopLimit,
        ];
        let failures = Outcome::ALL
            .into_iter()
            .filter(|outcome| outcome.is_failure());
        let outcomes = failures
            .map(Outcome::as_str)
            .filter(|word| *word != Outcome::Rejected.as_str());
        reasons
            .map(|reason| reason.words().0)
            .into_iter()
            .chain(outcomes)
    }
}

/// A body, whole in memory or left in the store because it is large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The bytes. Cloning shares them.
    Whole(Bytes),
    /// In the store, to be read by range.
    Stored {
        /// Whose body it is.
        sequence: Sequence,
        /// Bytes.
        size: u64,
    },
}

impl Body {
    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.len() as u64,
            Self::Stored { size, .. } => *size,
        }
    }

    /// True when there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(bytes)
    }
}

/// A message as a store hands it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What was said at the put.
    pub header: Header,
    /// What happened since.
    pub attempts: Attempts,
    /// The bytes, or where they are.
    pub body: Body,
    /// Present in a backout or dead-letter queue.
    pub dead_letter: Option<Box<DeadLetter>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_id_reads_back_what_it_writes() {
        let id = MessageId {
            origin: 0x00c0_ffee,
            sequence: Sequence(66),
        };
        assert_eq!(id.to_string(), "00c0ffee0000000000000042");
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn a_text_that_is_no_message_id_is_refused() {
        for text in [
            "",
            "42",
            "00C0FFEE0000000000000042",
            "+0c0ffee0000000000000042",
            "é0c0ffee000000000000004",
        ] {
            assert_eq!(
                text.parse::<MessageId>(),
                Err(MessageIdError(text.to_owned())),
                "{text}"
            );
        }
    }
}
