//! When a guest is ended, and the future that ends it: also one that waits in a host call, where no
//! epoch reaches.
//!
//! The nearer of two points bites: the end of the message or unit, and the end of the task. Time is
//! the machine's own, not the manager's clock: it bounds real work. A guest that runs is looked at
//! each time that it gives way; only one that waits in a host call needs a timer.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::worker::Meter;

/// The point at which a guest is ended. Shared between the guest, whose gets may move it, and who
/// waits for it.
#[derive(Debug)]
pub(crate) struct Deadline {
    task: Instant,
    each: Duration,
    unit: Mutex<Instant>,
    meter: Arc<Meter>,
    /// The guest has just given way, and goes on when it is polled again.
    gave_way: AtomicBool,
}

impl Deadline {
    /// A deadline for a task that begins now: so long for each message or unit, so long for all.
    pub(crate) fn new(each: Duration, task: Duration) -> Self {
        Self::metered(each, task, Arc::default())
    }

    /// The same, with the meter that is told when a message or unit begins.
    pub(crate) fn metered(each: Duration, task: Duration, meter: Arc<Meter>) -> Self {
        let now = Instant::now();
        Self {
            task: now + task,
            each,
            unit: Mutex::new(now + each),
            meter,
            gave_way: AtomicBool::new(false),
        }
    }

    /// A new message or unit begins.
    pub(crate) fn renew(&self) {
        self.meter.begin_message();
        *self.unit.lock() = Instant::now() + self.each;
    }

    /// The guest gives way and wants to go on at once.
    pub(crate) fn give_way(&self) {
        self.gave_way.store(true, Ordering::Relaxed);
    }

    /// When the guest is ended.
    pub(crate) fn ends(&self) -> Instant {
        (*self.unit.lock()).min(self.task)
    }

    /// How long that is from now.
    pub(crate) fn left(&self) -> Duration {
        self.ends().saturating_duration_since(Instant::now())
    }

    /// True when the task's own end is the one that bites.
    pub(crate) fn is_task(&self) -> bool {
        self.task <= *self.unit.lock()
    }
}

/// How a call ended that was bounded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended<T> {
    /// It returned.
    Done(T),
    /// Its time was over; it was dropped.
    PastDeadline,
    /// The host is stopping; it was dropped.
    Stopped,
}

/// Runs `call` until it returns, the deadline is over or `stopped` resolves.
pub(crate) async fn within<T>(
    call: impl Future<Output = T>,
    deadline: &Deadline,
    stopped: impl Future<Output = ()>,
) -> Ended<T> {
    let (mut call, mut stopped) = (pin!(call), pin!(stopped));
    // Most calls return without ever having waited, and have no timer.
    let mut sleep = pin!(None);
    std::future::poll_fn(|context| {
        if let Poll::Ready(value) = call.as_mut().poll(context) {
            return Poll::Ready(Ended::Done(value));
        }
        let over = if deadline.gave_way.swap(false, Ordering::Relaxed) {
            deadline.ends() <= Instant::now()
        } else {
            is_over(sleep.as_mut(), deadline, context)
        };
        if over {
            return Poll::Ready(Ended::PastDeadline);
        }
        if stopped.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ended::Stopped);
        }
        Poll::Pending
    })
    .await
}

/// Whether the deadline is over; if it is not, has the task woken when it is.
fn is_over(
    mut sleep: Pin<&mut Option<Sleep>>,
    deadline: &Deadline,
    context: &mut Context<'_>,
) -> bool {
    if sleep.is_none() {
        sleep.set(Some(sleep_until(deadline.ends())));
    }
    let Some(mut sleep) = sleep.as_pin_mut() else {
        return false;
    };
    // At most twice: a deadline that was moved is in the future, unless its whole time is over
    // already.
    while sleep.as_mut().poll(context).is_ready() {
        let ends = deadline.ends();
        if ends <= sleep.deadline() {
            return true;
        }
        sleep.as_mut().reset(ends);
    }
    false
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.expect("builds").block_on(future)
    }

    #[test]
    fn a58_a_call_that_waits_for_ever_is_ended() {
        let deadline = Deadline::new(Duration::from_millis(1), LONG);
        let ended = run(within(pending::<()>(), &deadline, pending()));
        assert_eq!(ended, Ended::PastDeadline);
        assert!(!deadline.is_task());
    }

    #[test]
    fn a58_a_call_that_never_gives_way_for_long_is_ended() {
        let deadline = Deadline::new(LONG, Duration::from_millis(1));
        // What a guest in a loop looks like: it asks to be polled again at once, every time.
        let spins = std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert_eq!(
            run(within(spins, &deadline, pending())),
            Ended::PastDeadline
        );
        assert!(deadline.is_task());
    }

    #[test]
    fn a58_a_guest_that_gives_way_again_and_again_is_ended_without_a_timer() {
        let deadline = Deadline::new(Duration::from_millis(1), LONG);
        let spins = std::future::poll_fn(|context| {
            deadline.give_way();
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        // No runtime around it: a timer could not be made.
        let mut call = pin!(within(spins, &deadline, pending()));
        let mut context = Context::from_waker(std::task::Waker::noop());
        let begun = Instant::now();
        loop {
            if let Poll::Ready(ended) = call.as_mut().poll(&mut context) {
                assert_eq!(ended, Ended::PastDeadline);
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "it is not ended");
        }
    }

    #[test]
    fn a_call_that_returns_is_not_ended() {
        let deadline = Deadline::new(Duration::ZERO, Duration::ZERO);
        assert_eq!(run(within(ready(7), &deadline, ready(()))), Ended::Done(7));
    }

    #[test]
    fn a_stop_ends_a_call() {
        let deadline = Deadline::new(LONG, LONG);
        assert_eq!(
            run(within(pending::<()>(), &deadline, ready(()))),
            Ended::Stopped
        );
    }

    #[test]
    fn a_renewed_deadline_is_waited_for_anew() {
        let deadline = Deadline::new(Duration::from_millis(20), LONG);
        let first = deadline.ends();
        let renews = std::future::poll_fn(|_| {
            // Moves the end at the first poll, before the timer has fired.
            if deadline.ends() == first {
                deadline.renew();
            }
            Poll::<()>::Pending
        });
        assert_eq!(
            run(within(renews, &deadline, pending())),
            Ended::PastDeadline
        );
        assert!(Instant::now() >= deadline.ends() && deadline.ends() >= first);
    }
}
