//! Counts of a queue that holds nothing at most times: a pointer's worth of memory until then.

use std::ops::{AddAssign, Deref, DerefMut};

use super::Counts;

/// What a queue that never held anything is said to hold.
static NOTHING: Counts = Counts::NOTHING;

/// [`Counts`] that take memory of their own from the first difference on.
#[derive(Clone, Debug, Default)]
pub struct SparseCounts(Option<Box<Counts>>);

impl SparseCounts {
    /// Gives the memory back if nothing is held. Not done by itself: a queue that is in use goes
    /// from nothing to something and back all the time.
    pub fn trim(&mut self) {
        if self.is_zero() {
            self.0 = None;
        }
    }

    /// Takes all that is held: nothing is left, in the memory that is there.
    pub fn take(&mut self) -> Counts {
        self.0
            .as_deref_mut()
            .map_or_else(Counts::default, std::mem::take)
    }

    /// Whether memory of its own is taken.
    #[must_use]
    pub fn is_spread(&self) -> bool {
        self.0.is_some()
    }
}

impl From<Counts> for SparseCounts {
    fn from(counts: Counts) -> Self {
        Self((!counts.is_zero()).then(|| Box::new(counts)))
    }
}

impl Deref for SparseCounts {
    type Target = Counts;

    fn deref(&self) -> &Counts {
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for SparseCounts {
    fn deref_mut(&mut self) -> &mut Counts {
        self.0.get_or_insert_default()
    }
}

impl AddAssign<&Counts> for SparseCounts {
    fn add_assign(&mut self, difference: &Counts) {
        if self.0.is_some() || !difference.is_zero() {
            **self += difference;
        }
    }
}

impl PartialEq for SparseCounts {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_taken_for_something_and_given_back_for_nothing() {
        let one = Counts {
            delayed: 1,
            ..Counts::default()
        };
        let mut counts = SparseCounts::default();
        counts += &Counts::default();
        assert!(!counts.is_spread());
        counts += &one;
        assert_eq!((counts.delayed, counts.is_spread()), (1, true));
        counts.trim();
        assert!(counts.is_spread(), "what is held stays");
        counts += &-one;
        assert!(counts.is_spread() && counts.is_zero());
        counts.trim();
        assert!(!counts.is_spread());
        assert_eq!(SparseCounts::from(one).take(), one);
        assert_eq!(counts, SparseCounts::from(Counts::default()));
    }
}
