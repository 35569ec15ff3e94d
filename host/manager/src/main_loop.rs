//! The loop: one turn takes all that has happened, asks the rule for every queue that it may
//! concern, and says when it wants the next turn.
//!
//! A turn never waits for the disk, save for a change of definitions. A test calls
//! [`Manager::turn`] by hand with a manual clock; [`crate::queue_manager`] calls it on a thread of
//! its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use oncue_core::admission::{Grant, Ledger};
use oncue_core::fairness::Fairness;
use oncue_core::names::{PluginName, ProcessName, QueueName};
use oncue_core::process_table::ProcessTable;
use oncue_core::queue_table::QueueTable;
use oncue_core::time::{Millis, Timestamp};
use oncue_core::trigger::process::HostState;
use oncue_core::trigger::{TaskId, Trace};

use crate::alarms::Alarms;
use crate::command::Answer;
use crate::commits::Pending;
use crate::definitions::Definition;
use crate::event::{Event, Timer};
use crate::metrics::LoopCounts;
use crate::reload::PluginUpdate;
use crate::retention::Retention;
use crate::schedules::Schedules;
use crate::shared::{Moment, Phase, QueueCell, Shared};
use crate::status::HostEvent;
use crate::sweep::Sweep;
use crate::tasks::{TaskHost, TaskSession};

/// Longest time between two turns, in milliseconds.
pub const MAX_SLEEP: Millis = 1000;

/// A task in process.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) queue: QueueName,
    pub(crate) process: ProcessName,
    pub(crate) grant: Grant,
    /// Not the owner: a session that its host has lost must be seen to end.
    pub(crate) session: Weak<TaskSession>,
    /// Steps that led to its start.
    pub(crate) trace: Trace,
    /// Milliseconds from the event that fired the trigger to the start.
    pub(crate) start_latency: Millis,
    /// [`QueueCell::removals`] at its start.
    pub(crate) removals: u64,
    /// The trigger's type.
    pub(crate) kind: &'static str,
    /// What held it before, as [`Note::held`].
    pub(crate) held: Vec<(&'static str, u64)>,
}

/// What the loop remembers of a queue beside its entry in the queue table, for people. There is
/// none for a queue of which nothing was ever heard.
#[derive(Debug, Default, Clone)]
pub(crate) struct Note {
    /// Steps of the last trigger that got past step 14.
    pub(crate) trace: Trace,
    /// When the change came for which the rule is asked next.
    pub(crate) changed: Option<Moment>,
    /// Reasons that have held it since it fired last, with their times; kept only for traces.
    pub(crate) held: Vec<(&'static str, u64)>,
    /// When it is looked at again by itself.
    pub(crate) next_check: Option<Timestamp>,
    /// Where the last sweep stopped looking for parked messages.
    pub(crate) parked_from: Option<String>,
}

/// The queue manager's state. Owned by one thread.
pub struct Manager {
    pub(crate) shared: Arc<Shared>,
    pub(crate) task_host: Arc<dyn TaskHost>,
    pub(crate) queues: QueueTable,
    pub(crate) processes: ProcessTable,
    pub(crate) plugins: BTreeMap<PluginName, PluginUpdate>,
    /// The plugins directory has not been read since the start: whatever is missing may be there.
    pub(crate) plugins_awaited: bool,
    pub(crate) ledger: Ledger,
    pub(crate) host: HostState,
    pub(crate) running: BTreeMap<TaskId, Running>,
    /// Tasks that wait for a reply, and the queue that it must come from.
    pub(crate) waits: BTreeMap<TaskId, QueueName>,
    /// Tasks whose reply is there and that want their slot back, in order.
    pub(crate) resuming: VecDeque<(TaskId, Option<Answer<()>>)>,
    pub(crate) ready: Fairness,
    pub(crate) notes: HashMap<QueueName, Note>,
    pub(crate) timers: BinaryHeap<Reverse<Timer>>,
    pub(crate) pending: Vec<Pending>,
    pub(crate) next_task: TaskId,
    pub(crate) sweep: Sweep,
    pub(crate) alarms: Alarms,
    pub(crate) schedules: Schedules,
    pub(crate) retention: Retention,
    /// When old task records are looked for.
    pub(crate) records_looked: Timestamp,
    /// Queues to be made together, in one durable write.
    pub(crate) gathered: Vec<Definition>,
    pub(crate) random: fastrand::Rng,
    /// What the program was built from.
    pub(crate) build: crate::status::BuildView,
    pub(crate) started: Timestamp,
    /// [`crate::Clock::ran`], as at the beginning of this turn.
    pub(crate) ran: Millis,
    pub(crate) triggers: u64,
    pub(crate) asked: u64,
    pub(crate) outcomes: BTreeMap<&'static str, u64>,
    pub(crate) counts: LoopCounts,
    pub(crate) quiet: Vec<Answer<()>>,
    /// How real memory headroom is measured, if it is.
    pub(crate) headroom: Option<Box<dyn Fn() -> Option<u64> + Send>>,
}

impl Drop for Manager {
    /// What still runs has outlived its manager: its grants end with the ledger.
    fn drop(&mut self) {
        while let Some((_, running)) = self.running.pop_first() {
            self.ledger.give_back(running.grant);
        }
    }
}

impl Manager {
    /// One turn. Answers with the time at which the next one is wanted, events aside.
    pub fn turn(&mut self) -> Timestamp {
        let now = self.shared.now();
        self.ran = self.shared.clock.ran();
        self.host.draining = self.shared.phase() != Phase::Running;
        self.poll_commits();
        // First what time alone has changed, so that the rule sees the state as it is now.
        let due = self.apply_due(now);
        let (mut events, mut ring) = self.shared.inbox.take();
        for cell in &ring {
            self.absorb(cell, now);
        }
        let mut begun = Vec::new();
        for event in events.drain(..) {
            match event {
                Event::FirstGet(task) => begun.extend(self.first_get(task)),
                event => self.handle(event, now),
            }
        }
        self.make_gathered(now);
        // After the events: queues that wait for capacity which a task's end has freed stand in
        // line before a queue that has just been served.
        for cell in ring.drain(..) {
            self.ready.push(&cell.name);
        }
        for queue in &begun {
            self.ready.push(queue);
        }
        self.shared.inbox.give_back(events, ring);
        self.ring_timers(now);
        self.put_scheduled(now);
        let swept = self.sweep(now);
        if swept {
            self.retain_records(now);
        }
        while let Some(queue) = self.ready.next() {
            self.ask(&queue, now);
        }
        self.end_quanta(swept);
        if self.host.draining {
            self.end_requests();
        }
        if self.running.is_empty() {
            for answer in self.quiet.drain(..) {
                // Whoever asked may have gone.
                let _ = answer.send(());
            }
        }
        self.next_turn(now, due)
    }

    fn next_turn(&self, now: Timestamp, due: Option<Timestamp>) -> Timestamp {
        let mut next = now.after(MAX_SLEEP).min(self.sweep.next);
        if let Some(Reverse(timer)) = self.timers.peek() {
            next = next.min(timer.at);
        }
        if let Some(look) = self.schedules.next_look() {
            next = next.min(look);
        }
        match due {
            Some(due) if !self.host.store_stopped => next.min(due),
            _ => next,
        }
    }

    /// Takes the change that has gathered in a queue's cell. The caller has the queue asked.
    pub(crate) fn absorb(&mut self, cell: &Arc<QueueCell>, now: Timestamp) {
        let delta = cell.take_delta();
        // What happened to a queue that was deleted since is nothing to another one of its name.
        if !self.shared.is_current(cell) {
            return;
        }
        let Some(entry) = self.queues.get_mut(&cell.name) else {
            return;
        };
        let removals = cell.removals();
        entry
            .watch
            .notice(&entry.counts, &delta, removals, self.ran);
        entry.apply(&delta, now);
        if let Some(marked) = cell.take_marked() {
            let note = self.notes.entry(cell.name.clone()).or_default();
            note.changed.get_or_insert(marked);
        }
        entry.waiting_inputs = cell.waiting_inputs.load(Ordering::SeqCst);
        let closed = Timestamp(cell.last_input_closed.load(Ordering::SeqCst));
        if closed.0 > 0 {
            entry.last_input_closed = entry.last_input_closed.max(Some(closed));
        }
        if entry.counts.depth() <= 0 {
            cell.lift_limit();
        }
        let (watch, counts) = (&entry.watch, &entry.counts);
        if watch.heeds(&cell.name, &entry.attributes, counts) || cell.is_refused() {
            self.judge(&cell.name, now);
        }
    }

    fn handle(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::FirstGet(task) => {
                if let Some(queue) = self.first_get(task) {
                    self.ready.push(&queue);
                }
            }
            Event::TaskWaits(task, target) => self.task_waits(task, target),
            Event::TaskResumes(task, answer) => self.task_resumes(task, answer),
            Event::Orphaned(units) => {
                self.pending.extend(units);
                self.poll_commits();
            }
            Event::TaskEnded(end) => self.task_ended(*end, now),
            Event::Command(command) => self.command(*command, now),
            Event::StoreStopped(why) => {
                self.host.store_stopped = why.is_some();
                let state = crate::status::store_word(why);
                if why.is_some() {
                    tracing::error!(state, "the store does not write");
                } else {
                    tracing::info!("the store writes again");
                }
                self.shared.tell(|| HostEvent::Store { state, time: now });
                self.judge_store(why.is_some().then_some(state), now);
                self.ask_all();
            }
        }
    }

    /// Has every queue asked for which the answer can be another one.
    pub(crate) fn ask_all(&mut self) {
        for entry in self.queues.iter().filter(|entry| !entry.is_idle()) {
            self.ready.push(&entry.name);
        }
    }

    /// The start of a task is over; answers the queue that is to be asked.
    fn first_get(&mut self, task: TaskId) -> Option<QueueName> {
        let running = self.running.get(&task)?;
        let entry = self.queues.get_mut(&running.queue)?;
        let news = entry.gate.first_get_answered(task);
        news.then(|| running.queue.clone())
    }

    fn ring_timers(&mut self, now: Timestamp) {
        while let Some(Reverse(timer)) = self.timers.peek() {
            if timer.at > now {
                break;
            }
            if let Some(Reverse(timer)) = self.timers.pop()
                && let Some(note) = self.notes.get_mut(&timer.queue)
                && note.next_check == Some(timer.at)
            {
                note.next_check = None;
                self.ready.push(&timer.queue);
            }
        }
    }

    /// Has a queue asked at `at`; an earlier wish stands.
    pub(crate) fn set_timer(&mut self, queue: &QueueName, at: Timestamp) {
        let note = self.notes.entry(queue.clone()).or_default();
        if note.next_check.is_none_or(|earlier| at < earlier) {
            note.next_check = Some(at);
            self.timers.push(Reverse(Timer {
                at,
                queue: queue.clone(),
            }));
        }
    }

    /// Asks tasks to end at their next boundary.
    pub(crate) fn stop_tasks(&self, which: impl Fn(&Running) -> bool) {
        for running in self.running.values().filter(|running| which(running)) {
            if let Some(session) = running.session.upgrade() {
                session.stop_at_boundary();
            }
        }
    }

    /// How often the rule was asked since the start.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// Queues on the ready ring: for tests, which step it by hand.
    #[must_use]
    pub fn on_ring(&self) -> usize {
        self.shared.inbox.on_ring()
    }

    /// Loses what waits on the ready ring, as a fault would: for tests of the sweep.
    pub fn lose_ring(&self) {
        self.shared.inbox.lose_ring();
    }

    /// Another manager of the same store entered (58) or left (66) its trigger process for the
    /// queue. Called by a shared store's leased indicator when there is one; until then by tests of
    /// two managers.
    pub fn set_elsewhere(&mut self, queue: &QueueName, running: bool) {
        if let Some(entry) = self.queues.get_mut(queue) {
            entry.gate.set_elsewhere(running);
            self.ready.push(queue);
        }
    }

    /// Begins to stop, as [`crate::QueueManager::shutdown`] does: for tests, which step it by hand.
    pub fn drain(&self) {
        self.shared.enter(Phase::Draining);
        self.shared.inbox.nudge();
    }

    /// True when something asks for a turn: for tests, which step it by hand. What waits quietly
    /// does not.
    #[must_use]
    pub fn wants_turn(&self) -> bool {
        self.shared.inbox.is_wanted()
    }

    /// True when nothing of the manager's own is under way: for tests, which step it by hand.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.running.is_empty()
    }
}
