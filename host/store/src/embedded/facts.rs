//! A message in memory, without its body: what it is, where it stands, who holds it.

use std::sync::Arc;

use oncue_core::message::{Attempts, Header, MAX_PRIORITY};
use oncue_core::queue::Counts;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{OwnerId, Wait};

use super::codec::{Address, Home, IndexRow};
use super::layout::{LAST_TIME, QueueNo, Space};

/// What never changes about a message, except the queue by a move.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) sequence: u64,
    pub(super) queue: QueueNo,
    pub(super) priority: u8,
    pub(super) group: Option<Arc<str>>,
    pub(super) correlation: Option<Arc<str>>,
    pub(super) size: u64,
    pub(super) put_time: Timestamp,
    pub(super) expires: Option<Timestamp>,
    pub(super) persistent: bool,
    /// Rows that hold the body beside its first.
    pub(super) parts: u32,
}

impl Facts {
    pub(super) fn new(queue: QueueNo, header: &Header, parts: u32) -> Self {
        Self {
            sequence: header.id.sequence.0,
            queue,
            priority: header.priority.min(MAX_PRIORITY),
            group: header.group.as_deref().map(Arc::from),
            correlation: header.correlation_id.as_deref().map(Arc::from),
            size: header.size,
            put_time: header.put_time,
            expires: header.expires,
            persistent: header.persistent,
            parts,
        }
    }

    pub(super) fn address(&self) -> Address {
        Address {
            queue: self.queue,
            priority: self.priority,
            sequence: self.sequence,
        }
    }
}

/// Where a message stands when nobody has taken it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) home: Home,
    pub(super) attempts: Attempts,
    /// A place row stands for it.
    pub(super) placed: bool,
    /// A dead-letter record stands beside its body.
    pub(super) dead: bool,
}

impl Standing {
    pub(super) fn is_suspect(&self) -> bool {
        self.attempts.interrupted_count > 0
    }

    /// What the indexes say of it.
    pub(super) fn index_row(&self, facts: &Facts) -> IndexRow {
        IndexRow {
            priority: facts.priority,
            put_time: facts.put_time,
            expires: facts.expires,
            attempts: self.attempts,
            placed: self.placed,
            dead: self.dead,
            group: facts.group.clone(),
        }
    }

    /// When it is to be claimed if nobody has taken it, and the index that says so. Never later
    /// than [`LAST_TIME`], so that it is the same here and in the index's keys.
    pub(super) fn due(&self, facts: &Facts) -> Option<(Space, (u64, u64))> {
        let (space, time) = match self.home {
            Home::Free | Home::Parked => (Space::Expiry, facts.expires?),
            Home::Waiting(_, until) => (
                Space::Due,
                facts.expires.map_or(until, |time| time.min(until)),
            ),
            Home::Leased { until, .. } => (Space::Due, until),
        };
        Some((space, (time.0.min(LAST_TIME), facts.sequence)))
    }
}

/// A message that somebody has taken.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) owner: OwnerId,
    /// A commit that settles it is under way: it can no longer be given back.
    pub(super) committing: bool,
    pub(super) facts: Facts,
    pub(super) standing: Standing,
}

/// What a message adds to its queue's counts by itself; `None` is in a unit. A free member of a
/// group is counted by its group, except for its bytes.
pub(super) fn own_counts(facts: &Facts, home: Option<Home>) -> Counts {
    let bytes = i64::try_from(facts.size).expect("a body is shorter than an i64 counts");
    let mut counts = Counts {
        bytes,
        ..Counts::default()
    };
    let field = match home {
        None => &mut counts.in_unit,
        Some(Home::Free) if facts.group.is_some() => return counts,
        Some(Home::Free) => counts
            .ready
            .get_mut(usize::from(facts.priority))
            .expect("priorities were bounded at the put"),
        Some(Home::Waiting(Wait::Delay, _)) => &mut counts.delayed,
        Some(Home::Waiting(Wait::Retry, _)) => &mut counts.retrying,
        Some(Home::Waiting(Wait::Defer, _)) => &mut counts.deferred,
        Some(Home::Leased { .. }) => &mut counts.leased,
        Some(Home::Parked) => &mut counts.parked,
    };
    *field = 1;
    counts.leased_open = i64::from(matches!(
        home,
        Some(Home::Leased {
            selective: false,
            ..
        })
    ));
    counts
}
