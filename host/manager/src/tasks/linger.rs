//! A task that has emptied its queue waits a moment for the next message, before it ends.
//!
//! Under a load that leaves the queue empty now and then, each message would else cost a turn of
//! the loop, a start and an end, and two threads would have to wake for it one after the other. The
//! rules stand in decision record 0023: only what the trigger rule would start at once is waited
//! for, one task a queue waits, and nobody else's start is held up by it.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use oncue_core::definition::TriggerType;
use oncue_core::queue::Counts;

use super::session::TaskSession;
use crate::shared::QueueCell;

/// A queue has a task that waits for its next message, until this is dropped.
struct Lingers<'a>(&'a AtomicBool);

impl<'a> Lingers<'a> {
    /// `None` while another task waits there.
    fn begin(cell: &'a QueueCell) -> Option<Self> {
        let taken = cell.lingers.swap(true, Ordering::SeqCst);
        (!taken).then(|| Self(&cell.lingers))
    }
}

impl Drop for Lingers<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// A task waits beside the one that lingers, until this is dropped.
struct Beside<'a>(&'a AtomicU32);

impl<'a> Beside<'a> {
    /// `None` when so many wait that all could not be on a worker at the same time.
    fn begin(session: &'a TaskSession) -> Option<Self> {
        let before = session.cell.beside.fetch_add(1, Ordering::SeqCst);
        let beside = Self(&session.cell.beside);
        (before as usize + 1 < session.shared.workers).then_some(beside)
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How a task has waited since the last message that it was given.
#[derive(Debug, Default)]
pub(crate) struct Waited {
    /// It has looked once more.
    pub(super) looked_again: bool,
    /// It has waited beside another.
    beside: bool,
}

/// A task that may begin on messages before they are durable waits for one, until this is dropped:
/// it is told of puts.
struct EarlyWait<'a>(Option<&'a QueueCell>);

impl<'a> EarlyWait<'a> {
    fn begin(session: &'a TaskSession) -> Self {
        let cell = session.may_begin_early().then_some(&*session.cell);
        if let Some(cell) = cell {
            cell.early_waits.fetch_add(1, Ordering::SeqCst);
        }
        Self(cell)
    }
}

impl Drop for EarlyWait<'_> {
    fn drop(&mut self) {
        if let Some(cell) = self.0 {
            cell.early_waits.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Messages were put that are not yet durable: tasks that wait and may begin on them are told.
pub(crate) fn tell_of_put(cell: &QueueCell) {
    if cell.early_waits.load(Ordering::SeqCst) > 0 {
        cell.arrivals.notify_waiters();
    }
}

/// True when a change is one message that a waiting task takes: it need not wake the loop. The
/// caller then wakes the task. More than one are for more than one task.
pub(crate) fn is_met(cell: &QueueCell, delta: &Counts) -> bool {
    let more: i64 = delta.ready.iter().sum();
    more == 1 && cell.lingers.swap(false, Ordering::SeqCst)
}

impl TaskSession {
    /// Waits until a message is put or becomes ready, since the last look for one.
    pub(crate) async fn put_comes(&self, waited: &mut Waited) {
        let mut arrival = pin!(self.cell.arrivals.notified());
        arrival.as_mut().enable();
        let _early = EarlyWait::begin(self);
        if !self.looks_again(&mut waited.looked_again) {
            arrival.await;
        }
    }

    /// Waits until another message may be there, at most until `patience` is over. False when the
    /// task is to end.
    pub(crate) async fn another_comes(
        &self,
        patience: impl Future<Output = ()>,
        waited: &mut Waited,
    ) -> bool {
        // One that waited beside another and was given nothing then is not needed.
        if !self.may_linger() || waited.beside {
            return false;
        }
        let commands = self.shared.inbox.commands_heard();
        let mut arrival = pin!(self.cell.arrivals.notified());
        let mut boundary = pin!(self.boundary().notified());
        let mut stop = pin!(self.shared.stop.notified());
        // Registered before it is told, so that what comes from then on is not missed.
        arrival.as_mut().enable();
        boundary.as_mut().enable();
        stop.as_mut().enable();
        let first = Lingers::begin(&self.cell);
        let beside = first.is_none().then(|| Beside::begin(self)).flatten();
        if first.is_none() && beside.is_none() {
            return false;
        }
        waited.beside = beside.is_some();
        let _early = EarlyWait::begin(self);
        let comes = async {
            tokio::select! {
                biased;
                () = arrival => true,
                () = boundary => true,
                () = stop => false,
                () = patience => false,
            }
        };
        // What came since the last look was left to this task, perhaps.
        let comes = self.looks_again(&mut waited.looked_again) || self.stand_by(pin!(comes)).await;
        drop((first, beside));
        // What an operator has said meanwhile may forbid what was to be waited for.
        comes && commands == self.shared.inbox.commands_heard() && self.may_linger()
    }

    /// Whether the next message would start a task at once, as far as is known without the loop:
    /// of type `first` at any priority, with no consumer outside and nobody in want of this task's
    /// slot. A task that has done nothing yet has nothing to wait for.
    fn may_linger(&self) -> bool {
        let attributes = self.cell.attributes.load();
        attributes.trigger == TriggerType::First
            && self.spec.queue_attributes.trigger == TriggerType::First
            && attributes.trigger_priority == 0
            && attributes.get
            && self.served.load(Ordering::Relaxed) > 0
            && !self.shared.starved.load(Ordering::Relaxed)
            && self.cell.waiting_inputs.load(Ordering::SeqCst) == 0
            && self.cell.last_input_closed.load(Ordering::SeqCst) == 0
            && !self.should_end()
    }
}
