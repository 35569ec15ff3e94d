//! Times counted into a fixed list of classes, while they are measured: what a histogram of a
//! monitoring system is made of.
//!
//! Recording is one look through the list and two additions without a lock, so it may stand on
//! paths that every message takes. What is read is not one moment's: a time may be in the sum and
//! not yet in its class, which no reader of a histogram minds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::count::{Apart, PLACES, place};

/// The longest time of each class, in microseconds; one more class holds what is longer.
pub const BOUNDS: [u64; 18] = [
    25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 10_000_000, 60_000_000,
];

/// How many classes there are.
pub const CLASSES: usize = BOUNDS.len() + 1;

/// Times so far. Shared by whoever measures, each thread in a place of its own.
#[derive(Debug, Default)]
pub struct Histogram([Apart<Times>; PLACES]);

#[derive(Debug, Default)]
struct Times {
    classes: [AtomicU64; CLASSES],
    micros: AtomicU64,
}

impl Histogram {
    /// Counts a time.
    pub fn record(&self, time: Duration) {
        self.record_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Counts a time in microseconds.
    pub fn record_micros(&self, micros: u64) {
        let Some(Apart(times)) = self.0.get(place()) else {
            return;
        };
        let class = BOUNDS.partition_point(|bound| *bound < micros);
        if let Some(class) = times.classes.get(class) {
            class.fetch_add(1, Ordering::Relaxed);
        }
        times.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// What was counted so far.
    #[must_use]
    pub fn read(&self) -> Distribution {
        let mut sum = Distribution::default();
        for Apart(times) in &self.0 {
            for (sum, class) in sum.classes.iter_mut().zip(&times.classes) {
                *sum += class.load(Ordering::Relaxed);
            }
            let micros = times.micros.load(Ordering::Relaxed);
            sum.micros = sum.micros.wrapping_add(micros);
        }
        sum
    }
}

/// A histogram as it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Times of each class of [`BOUNDS`], and last those above all bounds.
    pub classes: [u64; CLASSES],
    /// The sum of all times, in microseconds.
    pub micros: u64,
}

impl Distribution {
    /// How many times were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.classes.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_falls_into_the_first_class_that_holds_it() {
        let histogram = Histogram::default();
        for micros in [0, 25, 26, 60_000_000, 60_000_001] {
            histogram.record(Duration::from_micros(micros));
        }
        let read = histogram.read();
        let counted: Vec<(usize, u64)> = read
            .classes
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(counted, [(0, 2), (1, 1), (17, 1), (18, 1)]);
        assert_eq!(read.count(), 5);
        assert_eq!(read.micros, 120_000_052);
    }
}
