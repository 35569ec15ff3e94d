//! Equal values kept once. Most queues of a host are defined alike, so what they are defined by is
//! one value in memory, however many there are.
//!
//! Refuses to do: decide anything. Neighbour: [`crate::queue_table`], which has every entry's
//! definition and attributes shared.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// Values before the first look for those that nobody uses any more.
const FIRST_LOOK: usize = 64;

/// Values in use, each once. It holds at most twice as many as are in use, and a few.
#[derive(Clone, Debug)]
pub struct Pool<T> {
    values: HashSet<Arc<T>>,
    /// When it holds so many, those that nobody else has are dropped.
    look_at: usize,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self {
            values: HashSet::new(),
            look_at: FIRST_LOOK,
        }
    }
}

impl<T: Eq + Hash> Pool<T> {
    /// The value that equals this one, if there is one; else this one, from now on.
    pub fn share(&mut self, value: &mut Arc<T>) {
        if let Some(known) = self.values.get(value) {
            *value = Arc::clone(known);
            return;
        }
        if self.values.len() >= self.look_at {
            self.values.retain(|known| Arc::strong_count(known) > 1);
            self.look_at = FIRST_LOOK.max(2 * self.values.len());
        }
        self.values.insert(Arc::clone(value));
    }

    /// Values held, those that nobody uses any more included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True when it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_and_unused_ones_go() {
        let mut pool = Pool::default();
        let (mut first, mut second) = (Arc::new("a".to_owned()), Arc::new("a".to_owned()));
        pool.share(&mut first);
        pool.share(&mut second);
        assert!(Arc::ptr_eq(&first, &second));
        for number in 0..10 * FIRST_LOOK {
            pool.share(&mut Arc::new(number.to_string()));
            assert!(pool.len() <= FIRST_LOOK, "{} values", pool.len());
        }
        let mut third = Arc::new("a".to_owned());
        pool.share(&mut third);
        assert!(Arc::ptr_eq(&first, &third), "what is in use stays");
    }
}
