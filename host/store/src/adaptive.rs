//! A lock for what is held for a microsecond or two: who finds it taken tries for a while before it
//! gives up its processor.
//!
//! `parking_lot` has a waiting thread give way after less than a microsecond. While more threads
//! want to run than there are cores, it gets its processor back milliseconds later, when whoever
//! held the lock has long been done (decision record 0044).

use parking_lot::{Mutex, MutexGuard};

/// Tries before the lock is waited for: some five microseconds.
const TRIES: u32 = 100;

/// An adaptive mutex. On two lines of a cache of its own, so that who tries hinders only who holds
/// the lock.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct AdaptiveMutex<T>(Mutex<T>);

impl<T> AdaptiveMutex<T> {
    /// An open lock.
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Takes the lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        for _ in 0..TRIES {
            if let Some(guard) = self.0.try_lock() {
                return guard;
            }
            std::hint::spin_loop();
        }
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_it_and_who_must_wait_long_gets_it_too() {
        let lock = AdaptiveMutex::new(0_u64);
        std::thread::scope(|scope| {
            let held = lock.lock();
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let mut count = lock.lock();
                        let before = *count;
                        std::hint::black_box(&mut count);
                        *count = before + 1;
                    }
                });
            }
            // Longer than anybody tries.
            std::thread::sleep(std::time::Duration::from_millis(20));
            drop(held);
        });
        assert_eq!(*lock.lock(), 4000);
    }
}
