//! Counts that several threads add to at once, each in a place of its own: adding is never a wait
//! for another core's cache.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Places of one count. Threads beyond so many share them.
pub(crate) const PLACES: usize = 8;

/// The next thread's place.
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread's place; [`PLACES`] until it has one.
    static PLACE: Cell<usize> = const { Cell::new(PLACES) };
}

/// Where this thread adds: below [`PLACES`].
pub(crate) fn place() -> usize {
    PLACE.with(|place| {
        if place.get() == PLACES {
            place.set(NEXT.fetch_add(1, Ordering::Relaxed) % PLACES);
        }
        place.get()
    })
}

/// What belongs to one place: two lines of a cache, since processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

/// One count. Takes a KiB.
#[derive(Debug, Default)]
pub struct Count([Apart<AtomicU64>; PLACES]);

impl Count {
    /// Adds.
    pub fn add(&self, more: u64) {
        if more > 0
            && let Some(Apart(mine)) = self.0.get(place())
        {
            mine.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// What was counted so far.
    #[must_use]
    pub fn read(&self) -> u64 {
        let places = self.0.iter();
        places.map(|Apart(one)| one.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_threads_add_is_read() {
        let count = Count::default();
        std::thread::scope(|scope| {
            for more in 0..2 * PLACES as u64 {
                let count = &count;
                scope.spawn(move || count.add(more));
            }
        });
        count.add(5);
        assert_eq!(count.read(), 120 + 5);
        assert!(place() < PLACES);
    }
}
