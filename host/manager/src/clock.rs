//! The seam to time: the system's clock, and one that a test moves by hand.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use oncue_core::time::{Millis, Timestamp};

/// What time it is. Every decision of the manager asks here, once per turn.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the Unix epoch.
    fn now(&self) -> Timestamp;

    /// How long this clock has been running, milliseconds, at least 1. Nobody sets it, so it is
    /// what lengths of time go by; it stands still while the machine sleeps.
    fn ran(&self) -> Millis;
}

/// When the process first asked how long it has been running.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The system's clock.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that looks at the system's clock"
        )]
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // A clock before 1970 is a broken machine; time zero keeps the manager running on it.
        Timestamp(since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)))
    }

    fn ran(&self) -> Millis {
        let ran = BEGUN.elapsed().as_millis();
        u64::try_from(ran).unwrap_or(u64::MAX).saturating_add(1)
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock {
    time: AtomicU64,
    ran: AtomicU64,
}

impl ManualClock {
    /// A clock that shows `start`.
    #[must_use]
    pub fn new(start: Timestamp) -> Self {
        Self {
            time: AtomicU64::new(start.0),
            ran: AtomicU64::new(1),
        }
    }

    /// Shows another time, also an earlier one, as when a person sets a clock: none has gone by.
    pub fn set(&self, time: Timestamp) {
        self.time.store(time.0, Ordering::SeqCst);
    }

    /// Moves time forward.
    pub fn advance(&self, millis: Millis) {
        self.time.fetch_add(millis, Ordering::SeqCst);
        self.ran.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.time.load(Ordering::SeqCst))
    }

    fn ran(&self) -> Millis {
        self.ran.load(Ordering::SeqCst)
    }
}
