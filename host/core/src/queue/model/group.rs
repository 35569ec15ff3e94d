//! One group of one queue: which of its members may be taken, and by whom. The rule stands at the
//! head of the model.

use std::collections::{BTreeMap, BTreeSet};

use super::order::{Key, key, priority};
use crate::message::{PRIORITIES, Sequence};
use crate::unit_of_work::OwnerId;

/// How a message stands towards its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// Neither in hand nor set back.
    Free,
    /// Taken, claimed or leased.
    InHand(Hand),
    /// Waiting or parked: holds the members behind it.
    SetBack,
}

/// Whose hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hand {
    Owner(OwnerId),
    /// Any outside consumer: no owner follows a lease.
    Lease,
}

/// A group.
#[derive(Debug, Default)]
pub(super) struct Group {
    free: [BTreeSet<Sequence>; PRIORITIES],
    set_back: BTreeSet<Sequence>,
    in_hand: BTreeMap<Hand, usize>,
    /// What the queue's indexes and counts now say of this group.
    pub(super) listed: Listing,
}

/// What a group adds to its queue's indexes and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) ready: [i64; PRIORITIES],
    pub(super) held: i64,
    /// Whom anyone may take.
    pub(super) open: Option<Key>,
    /// Whom only that owner may take.
    pub(super) own: Option<(OwnerId, Key)>,
    /// Of each priority the first that is ready.
    pub(super) firsts: Vec<Key>,
}

impl Group {
    pub(super) fn insert(&mut self, key: Key, stand: Stand) {
        match stand {
            Stand::Free => drop(self.free[priority(key)].insert(key.1)),
            Stand::SetBack => drop(self.set_back.insert(key.1)),
            Stand::InHand(hand) => *self.in_hand.entry(hand).or_default() += 1,
        }
    }

    pub(super) fn remove(&mut self, key: Key, stand: Stand) {
        match stand {
            Stand::Free => drop(self.free[priority(key)].remove(&key.1)),
            Stand::SetBack => drop(self.set_back.remove(&key.1)),
            Stand::InHand(hand) => {
                let count = self
                    .in_hand
                    .get_mut(&hand)
                    .expect("the member was inserted so");
                *count -= 1;
                if *count == 0 {
                    self.in_hand.remove(&hand);
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.set_back.is_empty()
            && self.in_hand.is_empty()
            && self.free.iter().all(BTreeSet::is_empty)
    }

    /// Whether a free member is ready; else it is held.
    pub(super) fn is_ready(&self, sequence: Sequence) -> bool {
        self.in_hand.is_empty() && sequence < self.barrier()
    }

    /// The first member that holds those behind it.
    fn barrier(&self) -> Sequence {
        self.set_back.first().copied().unwrap_or(Sequence(u64::MAX))
    }

    /// What the group adds now.
    pub(super) fn list(&self) -> Listing {
        let barrier = self.barrier();
        let mut listing = Listing::default();
        let first = self.first_free(barrier);
        if !self.in_hand.is_empty() {
            listing.held = self.free.iter().map(|set| length(set.len())).sum();
            let mut hands = self.in_hand.keys();
            if let (Some(Hand::Owner(owner)), None) = (hands.next(), hands.next()) {
                listing.own = first.map(|key| (*owner, key));
            }
            return listing;
        }
        listing.open = first;
        for (priority, set) in self.free.iter().enumerate() {
            let before = count_before(set, barrier);
            listing.ready[priority] = length(before);
            listing.held += length(set.len() - before);
            if before > 0 {
                listing.firsts.extend(first_of(priority, set));
            }
        }
        listing
    }

    fn first_free(&self, barrier: Sequence) -> Option<Key> {
        let firsts = self
            .free
            .iter()
            .enumerate()
            .filter_map(|(p, set)| first_of(p, set));
        firsts.min_by_key(|key| key.1).filter(|key| key.1 < barrier)
    }
}

fn first_of(priority: usize, set: &BTreeSet<Sequence>) -> Option<Key> {
    let priority = u8::try_from(priority).expect("there are ten priorities");
    set.first().map(|sequence| key(priority, *sequence))
}

fn length(count: usize) -> i64 {
    i64::try_from(count).expect("memory ends before an i64 does")
}

/// How many stand before `barrier`. Walks the shorter side, which is empty in the usual cases:
/// nothing is set back, or the first member is.
fn count_before(set: &BTreeSet<Sequence>, barrier: Sequence) -> usize {
    let (mut before, mut behind) = (set.range(..barrier), set.range(barrier..));
    let mut walked = 0;
    loop {
        match (before.next(), behind.next()) {
            (None, _) => return walked,
            (_, None) => return set.len() - walked,
            _ => walked += 1,
        }
    }
}
