//! Capacity between tasks: slots lent by tasks that wait for a reply, requesters that give way to
//! the queue they wait for, and quanta that end when another queue is held at step 52.
//!
//! Neighbours: [`crate::tasks::requests`] is the task's side, core's ledger does the arithmetic.

use std::sync::atomic::Ordering;

use oncue_core::names::QueueName;
use oncue_core::trigger::TaskId;

use crate::command::Answer;
use crate::main_loop::Manager;

/// Queues asked when capacity is freed, of those that wait for it, longest first.
const ASKED_ON_RETURN: usize = 64;

impl Manager {
    /// A task waits for a reply from `target`: its slot is free meanwhile.
    pub(crate) fn task_waits(&mut self, task: TaskId, target: QueueName) {
        let Some(running) = self.running.get(&task) else {
            return;
        };
        self.ledger.lend_slot(&running.grant);
        // If the target cannot start even so, the requester will have to give way.
        self.ready.push(&target);
        self.waits.insert(task, target);
        self.capacity_freed();
    }

    /// A task that waited goes on, as soon as it has a slot.
    pub(crate) fn task_resumes(&mut self, task: TaskId, answer: Option<Answer<()>>) {
        self.waits.remove(&task);
        self.resuming.push_back((task, answer));
        self.capacity_freed();
    }

    /// Slots, memory or fuel came back: tasks that go on come first, then queues that are held at
    /// 52 are asked.
    pub(crate) fn capacity_freed(&mut self) {
        while let Some((task, _)) = self.resuming.front() {
            if let Some(running) = self.running.get(task)
                && self.ledger.retake_slot(&running.grant).is_err()
            {
                return;
            }
            if let Some((_, Some(answer))) = self.resuming.pop_front() {
                // A call that has ended meanwhile does not care.
                let _ = answer.send(());
            }
        }
        let waiting: Vec<_> = self
            .ledger
            .waiting()
            .take(ASKED_ON_RETURN)
            .cloned()
            .collect();
        for queue in &waiting {
            self.ready.push(queue);
        }
    }

    /// A queue is held at 52 with no task in process: the youngest task that waits for a reply from
    /// it gives way.
    pub(crate) fn make_way(&self, target: &QueueName) {
        if self
            .queues
            .get(target)
            .is_some_and(|entry| entry.gate.running() > 0)
        {
            return;
        }
        let waiting = self.waits.iter().rev().filter(|(_, of)| *of == target);
        let mut sessions =
            waiting.filter_map(|(task, _)| self.running.get(task)?.session.upgrade());
        let Some(youngest) = sessions.next() else {
            return;
        };
        // One at a time: its end has the target asked again.
        if !youngest.is_giving_way() && !sessions.any(|session| session.is_giving_way()) {
            youngest.give_way();
        }
    }

    /// The host is stopping: what a task waits for will not start any more, unless it is in process
    /// already.
    pub(crate) fn end_requests(&self) {
        let targets: std::collections::BTreeSet<_> = self.waits.values().collect();
        for target in targets {
            self.make_way(target);
        }
    }

    /// Tells running tasks whether a spent quantum ends them now; those that wait in a get are
    /// woken to look.
    pub(crate) fn end_quanta(&self, swept: bool) {
        let starved = self.ledger.anyone_waits() || !self.resuming.is_empty();
        let before = self.shared.starved.swap(starved, Ordering::Relaxed);
        if starved && (swept || !before) {
            for running in self.running.values() {
                if let Some(session) = running.session.upgrade() {
                    session.look_again();
                }
            }
        }
    }
}
