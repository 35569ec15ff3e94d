//! What a queue holds, as counts. The one place that says which messages *count* for the trigger
//! rule.
//!
//! Stores report changes as differences of [`Counts`]; differences commute, so the manager may add
//! them in any order and still ends at the truth. [`model`] is the reference of how messages move
//! between the states.

pub mod model;
mod sparse;

pub use sparse::SparseCounts;

use std::ops::{AddAssign, Neg, SubAssign};

use serde::{Deserialize, Serialize};

use crate::message::PRIORITIES;

/// Messages of one queue by state. As a total no field is negative; as a difference any may be.
///
/// Every committed message is in exactly one of these states, so [`Counts::depth`] is their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counts {
    /// Committed, due, unexpired, free to take, by priority. Members of a free group are here, all
    /// of them.
    pub ready: [i64; PRIORITIES],
    /// Taken by a task's open unit of work, or claimed by the manager itself.
    pub in_unit: i64,
    /// Under an outside consumer's lease.
    pub leased: i64,
    /// Those of `leased` that an unselective get took: they hold the queue *open for input*.
    pub leased_open: i64,
    /// Put with a delay that has not passed.
    pub delayed: i64,
    /// Failed, waiting to be retried.
    pub retrying: i64,
    /// Deferred by a handler.
    pub deferred: i64,
    /// Waiting because another member of the group is taken, leased, retrying, deferred, delayed
    /// or parked.
    pub group_held: i64,
    /// Set aside because nothing could take them; an operator must act.
    pub parked: i64,
    /// Bytes of all bodies.
    pub bytes: i64,
}

impl Counts {
    /// No message at all.
    pub const NOTHING: Self = Self {
        ready: [0; PRIORITIES],
        in_unit: 0,
        leased: 0,
        leased_open: 0,
        delayed: 0,
        retrying: 0,
        deferred: 0,
        group_held: 0,
        parked: 0,
        bytes: 0,
    };

    /// All committed messages, whatever their state: what a person calls the depth.
    #[must_use]
    pub fn depth(&self) -> i64 {
        self.ready.iter().sum::<i64>()
            + self.in_unit
            + self.leased
            + self.delayed
            + self.retrying
            + self.deferred
            + self.group_held
            + self.parked
    }

    /// Messages that count for the trigger rule: ready, at or above the trigger priority.
    #[must_use]
    pub fn counted(&self, trigger_priority: u8) -> i64 {
        self.ready.iter().skip(usize::from(trigger_priority)).sum()
    }

    /// True when nothing differs from zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::NOTHING
    }

    fn each(&mut self, other: &Self, mut f: impl FnMut(&mut i64, i64)) {
        for (mine, theirs) in self.ready.iter_mut().zip(other.ready) {
            f(mine, theirs);
        }
        // Destructured so that a new field cannot be forgotten here.
        let Self {
            ready: _,
            in_unit,
            leased,
            leased_open,
            delayed,
            retrying,
            deferred,
            group_held,
            parked,
            bytes,
        } = other;
        f(&mut self.in_unit, *in_unit);
        f(&mut self.leased, *leased);
        f(&mut self.leased_open, *leased_open);
        f(&mut self.delayed, *delayed);
        f(&mut self.retrying, *retrying);
        f(&mut self.deferred, *deferred);
        f(&mut self.group_held, *group_held);
        f(&mut self.parked, *parked);
        f(&mut self.bytes, *bytes);
    }
}

impl AddAssign<&Self> for Counts {
    fn add_assign(&mut self, other: &Self) {
        self.each(other, |mine, theirs| *mine += theirs);
    }
}

impl SubAssign<&Self> for Counts {
    fn sub_assign(&mut self, other: &Self) {
        self.each(other, |mine, theirs| *mine -= theirs);
    }
}

impl Neg for Counts {
    type Output = Self;

    fn neg(mut self) -> Self {
        let copy = self;
        self.each(&copy, |mine, theirs| *mine = -theirs);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_the_sum_of_the_states_and_counted_is_the_ready_part() {
        let mut counts = Counts {
            in_unit: 1,
            leased: 2,
            leased_open: 1,
            parked: 1,
            ..Counts::default()
        };
        counts.ready[3] = 10;
        counts.ready[5] = 1;
        assert_eq!(counts.depth(), 15);
        assert_eq!(counts.counted(0), 11);
        assert_eq!(counts.counted(4), 1);
    }

    #[test]
    fn a_difference_taken_back_leaves_nothing() {
        let mut counts = Counts {
            delayed: 3,
            bytes: 9,
            ..Counts::default()
        };
        counts.ready[9] = 4;
        let back = -counts;
        counts += &back;
        assert!(counts.is_zero());
    }
}
