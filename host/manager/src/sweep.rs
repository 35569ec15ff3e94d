//! The backstop: every queue is asked once a period, in a random order, whatever was or was not
//! heard of it.

use oncue_core::backout::{self, Case, Culprit};
use oncue_core::message::MessageId;
use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{Settle, Unit};
use oncue_store::{Browse, MessageState};

use crate::main_loop::Manager;

/// Messages looked at for parked ones, per queue and sweep.
const PARKED_LOOK: usize = 1000;

impl Manager {
    /// Takes every queue's gathered change and has it asked; tries parked messages again.
    pub(crate) fn sweep(&mut self, now: Timestamp) {
        self.next_sweep = now.after(self.sweep_period);
        let mut names = self.queues.names();
        self.random.shuffle(&mut names);
        for name in names {
            let Some(cell) = self.shared.cell(&name) else {
                continue;
            };
            self.absorb(&cell, now);
            self.ready.push(&name);
            if self
                .queues
                .get(&name)
                .is_some_and(|entry| entry.counts.parked > 0)
            {
                self.retry_parked(&name, now);
            }
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
