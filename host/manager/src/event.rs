//! Everything that can happen to the manager, as one closed list, and the inbox that it waits at.
//!
//! Two ways in. *Events* carry facts and are few: a task ended, an operator's command. The *ready
//! ring* carries queues whose state changed: a queue is on it at most once, so it is bounded by the
//! number of queues and no change can be lost, however fast changes come.
//!
//! Not everything is worth waking the loop for. A change that cannot start a task waits *quietly*
//! for the next turn, which comes within [`crate::main_loop::MAX_SLEEP`] in any case.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Wake;

use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use oncue_store::StopReason;
use parking_lot::{Condvar, Mutex};

use crate::command::{Answer, Command};
use crate::commits::Pending;
use crate::shared::QueueCell;
use crate::tasks::TaskId;
use crate::tasks::record::TaskEnd;

/// Commands that may wait at once. One more is refused with `too-many-requests`. Events of tasks
/// are bounded by the number of task slots instead, and are never refused.
pub const MAX_WAITING_COMMANDS: usize = 4096;

/// Something the manager must know.
#[derive(Debug)]
pub enum Event {
    /// A task's first get was answered: its start is no longer under way.
    FirstGet(TaskId),
    /// A task waits for the reply of a handler of that queue: its slot is free meanwhile.
    TaskWaits(TaskId, QueueName),
    /// It goes on as soon as it has a slot again, and is told so; nobody wants to be told when the
    /// call was ended.
    TaskResumes(TaskId, Option<Answer<()>>),
    /// A task has ended, in any way.
    TaskEnded(Box<TaskEnd>),
    /// Units of a task that its host has lost, not yet answered.
    Orphaned(Vec<Pending>),
    /// An operator, an application or the plugins directory asks for something.
    Command(Box<Command>),
    /// The store stopped writing, or writes again.
    StoreStopped(Option<StopReason>),
}

/// Where the manager waits.
#[derive(Debug, Default)]
pub struct Inbox {
    state: Mutex<State>,
    wake: Condvar,
    /// Grows with each turn that has taken commands, before it has answered one.
    heard: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    commands: usize,
    ring: VecDeque<Arc<QueueCell>>,
    /// A turn is wanted. What waits quietly does not set it.
    wanted: bool,
    closed: bool,
    /// Empty buffers for what comes next.
    spare: (VecDeque<Event>, VecDeque<Arc<QueueCell>>),
}

/// The inbox takes no more commands now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Too many wait.
    Full,
    /// The manager has ended.
    Closed,
}

impl Inbox {
    /// Adds an event that is bounded elsewhere.
    pub fn push(&self, event: Event) {
        self.add(true, |state| state.events.push_back(event));
    }

    /// Adds an event that can start nothing: the next turn is early enough.
    pub fn push_quietly(&self, event: Event) {
        self.add(false, |state| state.events.push_back(event));
    }

    /// Adds a command.
    ///
    /// # Errors
    /// [`Refused`] when too many wait, or nobody reads any more.
    pub fn command(&self, command: Command) -> Result<(), Refused> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Refused::Closed);
        }
        if state.commands >= MAX_WAITING_COMMANDS {
            return Err(Refused::Full);
        }
        state.commands += 1;
        state.events.push_back(Event::Command(Box::new(command)));
        state.wanted = true;
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Puts a queue on the ready ring. The caller has just set its dirty bit. `wanted` asks for a
    /// turn; else the next one is early enough.
    pub fn ready(&self, cell: Arc<QueueCell>, wanted: bool) {
        self.add(wanted, |state| state.ring.push_back(cell));
    }

    /// Asks for a turn.
    pub fn nudge(&self) {
        self.add(true, |_| ());
    }

    fn add(&self, wanted: bool, add: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        add(&mut state);
        // The loop sleeps only while no turn is wanted, so the first wish alone has to wake it.
        let wakes = wanted && !state.wanted;
        state.wanted |= wanted;
        drop(state);
        if wakes {
            self.wake.notify_one();
        }
    }

    /// Takes all that waits.
    pub fn take(&self) -> (VecDeque<Event>, VecDeque<Arc<QueueCell>>) {
        let mut state = self.state.lock();
        state.wanted = false;
        if state.commands > 0 {
            self.heard.fetch_add(1, Ordering::SeqCst);
        }
        state.commands = 0;
        let (events, ring) = std::mem::take(&mut state.spare);
        (
            std::mem::replace(&mut state.events, events),
            std::mem::replace(&mut state.ring, ring),
        )
    }

    /// Differs from what it was when the loop has heard a command since.
    pub fn commands_heard(&self) -> u64 {
        self.heard.load(Ordering::SeqCst)
    }

    /// Gives back what [`Self::take`] answered, emptied: a turn allocates nothing for it.
    pub fn give_back(&self, events: VecDeque<Event>, ring: VecDeque<Arc<QueueCell>>) {
        debug_assert!(events.is_empty() && ring.is_empty(), "something is lost");
        self.state.lock().spare = (events, ring);
    }

    /// Waits until a turn is wanted, or for `millis`.
    pub fn wait(&self, millis: u64) {
        let mut state = self.state.lock();
        if !state.wanted {
            let limit = std::time::Duration::from_millis(millis);
            self.wake
                .wait_while_for(&mut state, |state| !state.wanted, limit);
        }
    }

    /// Queues on the ready ring.
    pub fn on_ring(&self) -> usize {
        self.state.lock().ring.len()
    }

    /// Loses what is on the ready ring: fault injection. The queues' dirty bits stay set, so that
    /// only a sweep finds them.
    pub fn lose_ring(&self) {
        self.state.lock().ring.clear();
    }

    /// True when a turn is wanted.
    pub fn is_wanted(&self) -> bool {
        self.state.lock().wanted
    }

    /// True when the loop should end.
    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Refuses commands from now on; drops those that wait, which answers their senders.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.events.clear();
    }
}

/// Wakes the manager when a commit that it waits for is answered.
#[derive(Debug)]
pub struct Nudge(pub Arc<Inbox>);

impl Wake for Nudge {
    fn wake(self: Arc<Self>) {
        self.0.nudge();
    }
}

/// A queue to look at again at a point in time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer {
    /// When.
    pub at: Timestamp,
    /// Which queue.
    pub queue: QueueName,
}
