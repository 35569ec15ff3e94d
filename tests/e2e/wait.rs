//! Waiting for a condition, with a bound: the one place where an end-to-end test may pause.

use std::time::{Duration, Instant};

/// Far beyond what any condition takes on a busy machine: reaching it means it will not come.
const BOUND: Duration = Duration::from_secs(120);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until `condition` holds.
pub fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(
        holds_within(BOUND, condition),
        "waited {BOUND:?} in vain for {what}"
    );
}

/// True when `condition` held within `bound`.
pub fn holds_within(bound: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if start.elapsed() > bound {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}
