//! A bounded part of an index in memory: the rows at its front, in order, ready to be taken.
//!
//! The index itself is on disk and may be of any length. A window knows three things of it: the
//! rows it has read (*loaded*), those that somebody has taken (still on disk, not to be given
//! again), and from where on it has read nothing (*unread*). Everything below `unread` that is on
//! disk is loaded or taken; so the first loaded row is the first of the index. Reads nothing
//! itself: see [`super::index::Index`] for who fills it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The front of an index.
#[derive(Debug)]
pub(super) struct Window<K, V> {
    loaded: BTreeMap<K, V>,
    taken: BTreeSet<K>,
    unread: Option<K>,
}

impl<K, V> Default for Window<K, V> {
    fn default() -> Self {
        Self {
            loaded: BTreeMap::new(),
            taken: BTreeSet::new(),
            unread: None,
        }
    }
}

impl<K: Ord + Copy, V> Window<K, V> {
    /// A window that has read nothing of an index with no row below `low`; `None` when there is no
    /// row at all.
    pub(super) fn unread_from(low: Option<K>) -> Self {
        Self {
            unread: low,
            ..Self::default()
        }
    }

    /// From where on rows must be read from disk; `None` when all are known.
    pub(super) fn unread(&self) -> Option<K> {
        self.unread
    }

    /// Rows in memory.
    pub(super) fn loaded(&self) -> usize {
        self.loaded.len()
    }

    /// No row on disk is below it; `None` when there is none.
    pub(super) fn low(&self) -> Option<K> {
        let loaded = self.loaded.first_key_value().map(|(key, _)| *key);
        [loaded, self.taken.first().copied(), self.unread]
            .into_iter()
            .flatten()
            .min()
    }

    /// A row was written that nobody has in hand. Keeps at most `limit` loaded: what comes behind
    /// stays on disk only.
    pub(super) fn insert(&mut self, key: K, value: V, limit: usize) {
        self.taken.remove(&key);
        if self.unread.is_some_and(|unread| key >= unread) {
            return;
        }
        self.loaded.insert(key, value);
        if self.loaded.len() > limit
            && let Some((last, _)) = self.loaded.pop_last()
        {
            self.unread = Some(last);
        }
    }

    /// A row was written that somebody already has in hand.
    pub(super) fn insert_taken(&mut self, key: K) {
        self.loaded.remove(&key);
        self.taken.insert(key);
    }

    /// A row was deleted.
    pub(super) fn remove(&mut self, key: &K) {
        self.loaded.remove(key);
        self.taken.remove(key);
    }

    /// Somebody takes a row, loaded or not.
    pub(super) fn take(&mut self, key: K) {
        self.insert_taken(key);
    }

    /// A taken row is given back. Does nothing when it is not (or no longer) in this index.
    pub(super) fn give_back(&mut self, key: K, value: V, limit: usize) {
        if self.taken.remove(&key) {
            self.insert(key, value, limit);
        }
    }

    /// The first loaded row after `position`.
    pub(super) fn after(&self, position: Option<K>) -> Option<(K, &V)> {
        let start = position.map_or(Bound::Unbounded, Bound::Excluded);
        self.loaded
            .range((start, Bound::Unbounded))
            .next()
            .map(|(key, value)| (*key, value))
    }

    /// Takes in rows read from `unread` on, in order. `next` is the first row that was not read;
    /// `None` at the end.
    pub(super) fn fill(&mut self, rows: impl IntoIterator<Item = (K, V)>, next: Option<K>) {
        for (key, value) in rows {
            if !self.taken.contains(&key) {
                self.loaded.insert(key, value);
            }
        }
        self.unread = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_stays_unread_and_the_front_stays_right() {
        let mut window = Window::default();
        for key in [5, 7, 9] {
            window.insert(key, (), 2);
        }
        assert_eq!(window.unread(), Some(9));
        window.insert(8, (), 2);
        assert_eq!(
            (window.unread(), window.after(Some(5)).map(|(key, ())| key)),
            (Some(8), Some(7))
        );
        window.insert(3, (), 2);
        assert_eq!(
            (window.unread(), window.after(None).map(|(key, ())| key)),
            (Some(7), Some(3))
        );
    }

    #[test]
    fn a_taken_row_keeps_the_low_end_until_it_is_gone() {
        let mut window = Window::default();
        window.insert(1, (), 8);
        window.insert(2, (), 8);
        window.take(1);
        assert_eq!(
            (window.low(), window.after(None).map(|(key, ())| key)),
            (Some(1), Some(2))
        );
        window.give_back(1, (), 8);
        assert_eq!(window.after(None).map(|(key, ())| key), Some(1));
        window.take(1);
        window.remove(&1);
        assert_eq!(window.low(), Some(2));
        window.give_back(1, (), 8);
        assert_eq!(
            window.after(None).map(|(key, ())| key),
            Some(2),
            "a deleted row does not come back"
        );
    }

    #[test]
    fn a_fill_passes_over_what_is_taken() {
        let mut window = Window::unread_from(Some(3));
        window.take(4);
        window.fill([(3, ()), (4, ()), (5, ())], Some(6));
        assert_eq!(window.after(Some(3)).map(|(key, ())| key), Some(5));
        assert_eq!(window.unread(), Some(6));
        window.fill([], None);
        window.remove(&3);
        window.remove(&4);
        window.remove(&5);
        assert_eq!(window.low(), None);
    }
}
