//! A message in a queue: where it stands, who has it in hand, and as what it counts.

use super::State;
use super::group::{Hand, Stand};
use super::order::{Key, key, priority};
use crate::message::{Message, Sequence};
use crate::queue::Counts;
use crate::time::Timestamp;
use crate::unit_of_work::{LeaseToken, OwnerId, Wait};

/// A message, where it stands, and who has it in hand.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) message: Message,
    /// Where it stands, and where a release leaves it.
    pub(super) home: Home,
    /// The owner who took it.
    pub(super) holder: Option<OwnerId>,
}

/// Where a message stands when no owner has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    Free,
    Waiting(Wait, Timestamp),
    Leased {
        until: Timestamp,
        token: LeaseToken,
        selective: bool,
    },
    Parked,
}

impl Entry {
    pub(super) fn sequence(&self) -> Sequence {
        self.message.header.id.sequence
    }

    pub(super) fn key(&self) -> Key {
        key(self.message.header.priority, self.sequence())
    }

    pub(super) fn is_suspect(&self) -> bool {
        self.message.attempts.interrupted_count > 0
    }

    pub(super) fn is_suspect_in_hand(&self) -> bool {
        self.is_suspect() && self.holder.is_some()
    }

    pub(super) fn has_expired(&self, now: Timestamp) -> bool {
        self.message.header.expires.is_some_and(|time| time <= now)
    }

    /// When it is to be claimed.
    pub(super) fn due(&self) -> Option<Timestamp> {
        let expires = self.message.header.expires;
        match (self.holder, self.home) {
            (Some(_), _) => None,
            (None, Home::Free | Home::Parked) => expires,
            (None, Home::Waiting(_, until)) => Some(expires.map_or(until, |time| time.min(until))),
            (None, Home::Leased { until, .. }) => Some(until),
        }
    }

    pub(super) fn stand(&self) -> Stand {
        match (self.holder, self.home) {
            (Some(owner), _) => Stand::InHand(Hand::Owner(owner)),
            (None, Home::Leased { .. }) => Stand::InHand(Hand::Lease),
            (None, Home::Waiting(..) | Home::Parked) => Stand::SetBack,
            (None, Home::Free) => Stand::Free,
        }
    }

    /// The state, except that a free message may be held by its group.
    pub(super) fn own_state(&self) -> State {
        match (self.holder, self.home) {
            (Some(_), _) => State::InUnit,
            (None, Home::Free) => State::Ready,
            (None, Home::Waiting(wait, until)) => State::Waiting(wait, until),
            (None, Home::Leased { until, .. }) => State::Leased(until),
            (None, Home::Parked) => State::Parked,
        }
    }

    pub(super) fn bytes(&self) -> i64 {
        i64::try_from(self.message.body.len()).expect("a body fits into memory")
    }

    /// Adds it to counts in that state, without its bytes; with -1 takes it from them.
    pub(super) fn count(&self, counts: &mut Counts, state: State, sign: i64) {
        let field = match state {
            State::Ready => &mut counts.ready[priority(self.key())],
            State::InUnit => &mut counts.in_unit,
            State::Leased(_) => &mut counts.leased,
            State::Waiting(Wait::Delay, _) => &mut counts.delayed,
            State::Waiting(Wait::Retry, _) => &mut counts.retrying,
            State::Waiting(Wait::Defer, _) => &mut counts.deferred,
            State::GroupHeld => &mut counts.group_held,
            State::Parked => &mut counts.parked,
        };
        *field += sign;
        let open = matches!(
            self.home,
            Home::Leased {
                selective: false,
                ..
            }
        );
        if open && self.holder.is_none() {
            counts.leased_open += sign;
        }
    }

    /// What a change of who has it in hand may alter beside its queue's own indexes.
    pub(super) fn outside(&self) -> Outside {
        Outside {
            due: self.due(),
            is_suspect_in_hand: self.is_suspect_in_hand(),
        }
    }
}

/// What the model knows of a message beside its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outside {
    pub(super) due: Option<Timestamp>,
    pub(super) is_suspect_in_hand: bool,
}
