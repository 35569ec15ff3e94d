//! The backstop: every queue is asked once a period, in a random order, whatever was or was not
//! heard of it.
//!
//! A host may have very many queues, most of them idle. So the period is gone through in slices,
//! each a bounded piece of one turn, and a queue that was found idle is passed over at the cost of
//! a look at its cell: with nothing on it the rule cannot fire, whatever else has changed, and its
//! cell shows every change, also one whose event was lost.

use std::sync::Arc;

use oncue_core::backout::{self, Case, Culprit};
use oncue_core::message::MessageId;
use oncue_core::names::QueueName;
use oncue_core::time::{Millis, Timestamp};
use oncue_core::unit_of_work::{Settle, Unit};
use oncue_store::{Browse, MessageState};

use crate::main_loop::Manager;
use crate::shared::QueueCell;

/// Messages looked at for parked ones, per queue and sweep.
const PARKED_LOOK: usize = 1000;

/// Queues of one slice, unless slices would come too fast.
const SLICE_QUEUES: usize = 1000;

/// Least time between two slices, in milliseconds.
const SLICE_GAP: Millis = 10;

/// Where the sweep is.
pub(crate) struct Sweep {
    /// How long it takes to look at every queue, milliseconds.
    pub(crate) period: Millis,
    /// When the next slice is due.
    pub(crate) next: Timestamp,
    /// Those before `at` have had their turn in this period.
    cells: Vec<Arc<QueueCell>>,
    at: usize,
}

impl Sweep {
    pub(crate) fn new(period: Millis, now: Timestamp) -> Self {
        let period = period.max(1);
        Self {
            period,
            next: now.after(period),
            cells: Vec::new(),
            at: 0,
        }
    }

    /// Takes in a queue. One that is deleted is left out by itself.
    pub(crate) fn add(&mut self, cell: Arc<QueueCell>) {
        self.cells.push(cell);
    }

    /// How many slices a period has, and the time between two of them.
    fn slices(&self) -> (usize, Millis) {
        let most = usize::try_from(self.period / SLICE_GAP).unwrap_or(usize::MAX);
        let slices = self
            .cells
            .len()
            .div_ceil(SLICE_QUEUES)
            .clamp(1, most.max(1));
        (slices, self.period / slices as u64)
    }

    /// How many queues are due now; none before the next slice is. A late one takes over what those
    /// that it has delayed would have done.
    fn due(&mut self, now: Timestamp) -> Option<usize> {
        // Further off than a period: the clock was set back, and would be waited for.
        let set_back = self.next > now.after(self.period);
        if now < self.next && !set_back {
            return None;
        }
        let (slices, gap) = self.slices();
        let late = usize::try_from(now.since(self.next) / gap.max(1)).unwrap_or(usize::MAX);
        self.next = now.after(gap);
        let slice = self.cells.len().div_ceil(slices);
        Some(
            slice
                .saturating_mul(late.saturating_add(1))
                .min(self.cells.len()),
        )
    }

    /// The next queue, drawn from those that have not had their turn.
    fn draw(&mut self, random: &mut fastrand::Rng) -> Option<Arc<QueueCell>> {
        while self.at < self.cells.len() {
            let drawn = random.usize(self.at..self.cells.len());
            if self.cells.get(drawn).is_some_and(|cell| cell.is_gone()) {
                self.cells.swap_remove(drawn);
                continue;
            }
            self.cells.swap(self.at, drawn);
            self.at += 1;
            return self.cells.get(self.at - 1).cloned();
        }
        None
    }
}

impl Manager {
    /// Takes the gathered change of the queues whose turn it is and has them asked; tries parked
    /// messages again. True when every queue has had its turn.
    pub(crate) fn sweep(&mut self, now: Timestamp) -> bool {
        let Some(due) = self.sweep.due(now) else {
            return false;
        };
        for _ in 0..due {
            let Some(cell) = self.sweep.draw(&mut self.random) else {
                break;
            };
            if !cell.is_quiet() {
                self.sweep_one(&cell, now);
            }
        }
        let all = self.sweep.at >= self.sweep.cells.len();
        if all {
            self.sweep.at = 0;
        }
        all
    }

    fn sweep_one(&mut self, cell: &Arc<QueueCell>, now: Timestamp) {
        self.absorb(cell, now);
        if !self.host.draining {
            self.judge(&cell.name, now);
        }
        self.ready.push(&cell.name);
        let Some(entry) = self.queues.get_mut(&cell.name) else {
            return;
        };
        if entry.is_idle() {
            entry.counts.trim();
            cell.rest();
        } else if entry.counts.parked > 0 {
            self.retry_parked(&cell.name, now);
        }
    }

    /// Parked messages among the next [`PARKED_LOOK`] of a queue. They stand behind all others, so
    /// each sweep goes on where the one before stopped.
    fn some_parked(&mut self, queue: &QueueName, now: Timestamp) -> Vec<MessageId> {
        let note = self.notes.entry(queue.clone()).or_default();
        let browse = Browse {
            queue: queue.clone(),
            cursor: note.parked_from.take(),
            max: PARKED_LOOK,
            now,
            ready_only: false,
        };
        let Ok(page) = self.shared.store.browse(&browse) else {
            return Vec::new();
        };
        note.parked_from = page.next;
        let messages = page.messages.iter();
        messages
            .filter(|browsed| browsed.state == MessageState::Parked)
            .map(|browsed| browsed.message.header.id)
            .collect()
    }

    /// Moves parked messages to where they belong, if something can take them now.
    fn retry_parked(&mut self, queue: &QueueName, now: Timestamp) {
        let Some(cell) = self.shared.cell(queue) else {
            return;
        };
        let room = crate::dead_letters::room(&self.shared, &cell.attributes.load());
        if self.host.store_stopped || !(room.backout_queue || room.dead_letter_queue) {
            return;
        }
        let owner = self.shared.new_owner();
        let mut settles = Vec::new();
        for id in self.some_parked(queue, now) {
            let taken = self.shared.store.take_any(owner, queue, id);
            let Ok(Some(message)) = taken else { continue };
            let attributes = cell.attributes.load();
            let case = Case {
                queue,
                attributes: &attributes,
                attempts: message.attempts,
                culprit: &Culprit::default(),
                room,
                now,
                random: 0,
            };
            let sequence = id.sequence;
            match backout::from_parked(&case) {
                Some(disposition) => {
                    self.shared.metrics.moved(&disposition);
                    settles.push(Settle {
                        queue: queue.clone(),
                        sequence,
                        disposition,
                    });
                }
                None => self
                    .shared
                    .store
                    .release(owner, &[(queue.clone(), sequence)]),
            }
        }
        if settles.is_empty() {
            return;
        }
        let places = settles
            .iter()
            .map(|s| (s.queue.clone(), s.sequence))
            .collect();
        let unit = Unit {
            owner: Some(owner),
            settles,
            ..Unit::default()
        };
        self.submit(unit, Some((owner, places)));
    }
}
