//! Messages that come while a task of their queue is about to look for the next one anyway.
//!
//! To wake the loop for each of them costs more than a short handler: a thread wakes, asks the rule
//! and finds the message taken. So a message is left to a task that is *at hand*; the task wakes
//! the loop when more is left than it works off soon, and when it is at hand no longer. Soon is
//! before another task, started for it, would begin ([`super::TaskHost::begins_in`]). The rules
//! stand in decision record 0041.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use oncue_core::definition::TriggerType;
use oncue_core::message::Message;

use super::session::TaskSession;
use crate::shared::{QueueCell, Shared};

/// What a session knows of it. Changed by the one task only.
#[derive(Debug, Default)]
pub(crate) struct AtHand {
    /// It is one of its queue's tasks at hand.
    is: AtomicBool,
    /// It waits for its turn, or for a message: it looks for one as soon as it goes on.
    stands_by: AtomicBool,
    /// When its last call began, by [`crate::metrics::Metrics::micros`].
    call_began: AtomicU64,
    /// What its last call took, in nanoseconds.
    call_nanos: AtomicU64,
}

/// Leaves messages that became ready to the tasks at hand. False when there is none, when a task
/// waits for one message and more came, and while other tasks may keep workers and processors from
/// those at hand: the loop must be woken.
pub(crate) fn is_left(shared: &Shared, cell: &QueueCell) -> bool {
    let are_all = || {
        let at_hand = shared.at_hand.load(Ordering::SeqCst);
        at_hand >= shared.running.load(Ordering::SeqCst)
    };
    !cell.lingers.load(Ordering::SeqCst)
        && cell.at_hand.load(Ordering::SeqCst) > 0
        && are_all()
        && leave(cell, |at_hand| at_hand > 0)
}

/// Notes that something is left, and looks again whether it may be: a task that was at hand either
/// sees the note, or has been seen to go.
fn leave(cell: &QueueCell, may_be: impl Fn(u32) -> bool) -> bool {
    cell.left.store(true, Ordering::SeqCst);
    may_be(cell.at_hand.load(Ordering::SeqCst)) || !cell.left.swap(false, Ordering::SeqCst)
}

impl TaskSession {
    /// Runs `drain`, which stays where it is, so that the task's future has it once. The task is at
    /// hand only while it is on a worker, or stands by.
    pub(crate) async fn at_hand_in<T>(&self, mut drain: Pin<&mut impl Future<Output = T>>) -> T {
        /// The drain is over, or was dropped.
        struct Over<'a>(&'a TaskSession);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.leaves();
            }
        }
        let _over = Over(self);
        poll_fn(|context| {
            let polled = drain.as_mut().poll(context);
            if polled.is_pending() && !self.at_hand.stands_by.swap(false, Ordering::Relaxed) {
                self.leaves();
            }
            polled
        })
        .await
    }

    /// Awaits what ends with the task's turn, or when messages became ready: it stays at hand.
    pub(crate) async fn stand_by<T>(&self, mut wait: Pin<&mut impl Future<Output = T>>) -> T {
        poll_fn(|context| {
            let polled = wait.as_mut().poll(context);
            let stands_by = polled.is_pending();
            self.at_hand.stands_by.store(stands_by, Ordering::Relaxed);
            polled
        })
        .await
    }

    /// A call begins now.
    pub(crate) fn call_begins(&self, now: Instant) {
        let micros = self.shared.metrics.micros_at(now);
        self.at_hand.call_began.store(micros, Ordering::Relaxed);
    }

    /// The guest gives way to others, and goes on with the task's next turn: a tick has come. The
    /// task stays at hand unless the call has lasted longer than another task would need to begin;
    /// most calls that a tick meets have just begun.
    pub fn gives_way(&self) {
        let began = self.at_hand.call_began.load(Ordering::Relaxed);
        let lasts = self.shared.metrics.micros().saturating_sub(began);
        if u128::from(lasts) < self.shared.begins_in.as_micros() {
            self.at_hand.stands_by.store(true, Ordering::Relaxed);
        }
    }

    /// A call took so long, and the next one is thought to be like it. Only a task that would be
    /// started for one message is left any.
    pub(crate) fn call_took(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.at_hand.call_nanos.store(nanos, Ordering::Relaxed);
        if time >= self.shared.begins_in || self.spec.queue_attributes.trigger != TriggerType::First
        {
            self.leaves();
        } else if !self.at_hand.is.swap(true, Ordering::Relaxed) {
            self.shared.at_hand.fetch_add(1, Ordering::SeqCst);
            self.cell.at_hand.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The task is at hand no longer; the loop is woken for what was left to it.
    fn leaves(&self) {
        if self.at_hand.is.swap(false, Ordering::Relaxed) {
            self.shared.at_hand.fetch_sub(1, Ordering::SeqCst);
            self.cell.at_hand.fetch_sub(1, Ordering::SeqCst);
            if self.cell.left.swap(false, Ordering::SeqCst) {
                self.shared.mark(&self.cell);
            }
        }
    }

    /// Whether a task that is about to wait for a message, and will be told of those that come, is
    /// to look for one again instead: what came since its last look was perhaps left to it. Once
    /// after each message that it was given; where what is ready cannot be taken it waits, and the
    /// loop is woken for what was left.
    pub(crate) fn looks_again(&self, looked_again: &mut bool) -> bool {
        if self.cell.ready() <= 0 {
            return false;
        }
        let again = !std::mem::replace(looked_again, true);
        if !again && self.cell.left.swap(false, Ordering::SeqCst) {
            self.shared.mark(&self.cell);
        }
        again
    }

    /// Takes messages by `take`, and wakes the loop when too much of what was left to tasks at hand
    /// is still there.
    pub(crate) fn take_of_what_is_left<E>(
        &self,
        take: impl FnOnce() -> Result<Vec<Message>, E>,
    ) -> Result<Vec<Message>, E> {
        let was_left = self.takes_note();
        let taken = take();
        self.leave_the_rest(was_left, taken.as_ref().map_or(0, Vec::len));
        taken
    }

    /// The same before the next of so many messages that it has taken.
    pub(crate) fn look_at_what_is_left(&self, taken: usize) {
        self.leave_the_rest(self.takes_note(), taken);
    }

    /// Whether something was left. The note falls first: what comes from now on sets it again. One
    /// that is not at hand leaves it to those that are.
    fn takes_note(&self) -> bool {
        self.at_hand.is.load(Ordering::Relaxed)
            && self.cell.left.load(Ordering::SeqCst)
            && self.cell.left.swap(false, Ordering::SeqCst)
    }

    fn leave_the_rest(&self, was_left: bool, taken: usize) {
        let stays = |at_hand| self.is_worked_off_soon(at_hand, taken);
        if was_left && self.cell.ready() > 0 && !leave(&self.cell, stays) {
            self.shared.mark(&self.cell);
        }
    }

    /// Whether another task would come too late for what is there: so many tasks at hand work it
    /// off soon, this one after what it has `taken`, or they keep all workers busy. The message
    /// whose turn it is does not count: another task would not call its handler before.
    fn is_worked_off_soon(&self, at_hand: u32, taken: usize) -> bool {
        let ready = u128::try_from(self.cell.ready()).unwrap_or(0);
        let before = taken.saturating_sub(1) as u128;
        let nanos = (ready + before) * u128::from(self.at_hand.call_nanos.load(Ordering::Relaxed));
        at_hand > 0
            && (nanos <= self.shared.begins_in.as_nanos() * u128::from(at_hand)
                || usize::try_from(at_hand).is_ok_and(|tasks| tasks >= self.shared.workers))
    }
}

/// Lets whoever else waits for this thread go first, once.
pub(crate) async fn give_way() {
    let mut gave = false;
    poll_fn(|context| {
        if std::mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
