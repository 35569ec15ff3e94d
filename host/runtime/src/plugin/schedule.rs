//! When to look at the directory: on hints, when a file can settle, and on a period whatever
//! happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::bounds::{DEBOUNCE, RESCAN_WITHOUT_HINTS};
use super::directory::{Event, PluginDirectoryConfig};
use super::settle::Moment;
use super::watch::{Hint, Watch};

/// When to look next.
pub(crate) struct Schedule {
    start: Instant,
    rescan: Duration,
    /// When nothing hints at anything.
    next_rescan: Instant,
    /// After a hint.
    hinted: Option<Instant>,
    watch: Option<Watch>,
    /// Set by the watcher, so that a flood of events is one hint.
    pending: Arc<AtomicBool>,
    /// Whether a look has begun since the start.
    pub(crate) has_looked: bool,
}

impl Schedule {
    pub(crate) fn new(config: &PluginDirectoryConfig, inbox: mpsc::Sender<Event>) -> Self {
        let pending = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&pending);
        let hint: Hint = Arc::new(move || {
            if !heard.swap(true, Ordering::AcqRel) && inbox.try_send(Event::Hint).is_err() {
                heard.store(false, Ordering::Release);
            }
        });
        let start = Instant::now();
        Self {
            start,
            rescan: config.rescan,
            next_rescan: start,
            hinted: None,
            watch: config
                .watch
                .then(|| Watch::new(config.directory.clone(), hint)),
            pending,
            has_looked: false,
        }
    }

    /// The time on the thread's own clock.
    pub(crate) fn now(&self) -> Moment {
        self.start.elapsed()
    }

    /// When to look: when a file can settle, when a hint has aged a little, or on the period.
    pub(crate) fn due(&self, settles: Option<Moment>) -> Instant {
        let settles = settles.map(|moment| self.start + moment);
        let others = [settles, self.hinted].into_iter().flatten();
        others.fold(self.next_rescan, Instant::min)
    }

    pub(crate) fn hint(&mut self) {
        self.pending.store(false, Ordering::Release);
        self.hinted.get_or_insert_with(|| Instant::now() + DEBOUNCE);
    }

    /// A look begins. Answers whether it is one on the period.
    pub(crate) fn begin_look(&mut self) -> bool {
        self.has_looked = true;
        self.hinted = None;
        let now = Instant::now();
        if now < self.next_rescan {
            return false;
        }
        if let Some(watch) = &mut self.watch {
            watch.refresh();
        }
        let watching = self.watch.as_ref().is_some_and(Watch::is_watching);
        let period = if watching {
            self.rescan
        } else {
            self.rescan.min(RESCAN_WITHOUT_HINTS)
        };
        self.next_rescan = now + period;
        true
    }
}
