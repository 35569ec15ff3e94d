//! Locking a file for one process at a time.

use std::fs::{File, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a lock that another has is tried for.
const PATIENCE: Duration = Duration::from_millis(200);

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// Locks a file; the lock is held until the file is closed. A process that starts a child gives it
/// all that it has open, for a moment: until the child runs its program, a lock that was given up
/// meanwhile is still held. So it is tried for 200 ms.
///
/// # Errors
/// [`TryLockError::WouldBlock`] when another has the lock, else the system's.
pub fn lock(file: &File) -> Result<(), TryLockError> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => sleep(PAUSE),
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_given_up_soon_is_waited_for_and_another_is_not() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let open = || File::open(file.path()).expect("it is there");
        let held = open();
        held.try_lock().expect("it is free");
        let refused = lock(&open());
        assert!(matches!(refused, Err(TryLockError::WouldBlock)));
        std::thread::scope(|scope| {
            let wanted = scope.spawn(|| lock(&open()));
            drop(held);
            wanted
                .join()
                .expect("no panic")
                .expect("it is free at last");
        });
    }
}
