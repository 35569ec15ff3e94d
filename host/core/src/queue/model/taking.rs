//! Taking messages into an owner's hand, and giving them back as they were.

use super::{Model, Selection, Want};
use crate::message::{Message, MessageId, Sequence};
use crate::names::QueueName;
use crate::unit_of_work::{LeaseToken, OwnerId};

impl Model {
    /// Takes messages in order. `None` when there is no such queue.
    pub fn take(&mut self, want: &Want<'_>) -> Option<Vec<Message>> {
        let mut taken = Vec::new();
        self.take_into(want, &mut taken).then_some(taken)
    }

    /// The same with a list of the caller's, who may have room in it. Answers whether there is such
    /// a queue.
    pub fn take_into(&mut self, want: &Want<'_>, taken: &mut Vec<Message>) -> bool {
        let Some(chosen) = self.choose(want) else {
            return false;
        };
        let chosen = chosen.into_iter();
        taken.extend(chosen.map(|one| self.hand_out(want.queue, one, want.owner)));
        true
    }

    /// What a take gives.
    fn choose(&mut self, want: &Want<'_>) -> Option<Vec<Sequence>> {
        if let Selection::Correlation(_) = want.selection {
            self.queues.get_mut(want.queue)?.correlate();
        }
        let contents = self.queues.get(want.queue)?;
        let mut suspects = self.suspects_in_hand;
        let mut chosen = Vec::new();
        for sequence in contents.candidates(want) {
            if chosen.len() >= want.max {
                break;
            }
            let entry = contents.entry(sequence);
            if entry.has_expired(want.now) {
                continue;
            }
            if entry.is_suspect() {
                if want.skip_suspects || suspects > 0 {
                    continue;
                }
                suspects += 1;
            }
            chosen.push(sequence);
        }
        Some(chosen)
    }

    /// Gives one message back as it was. Does nothing unless `owner` holds it.
    pub fn release(&mut self, owner: OwnerId, queue: &QueueName, sequence: Sequence) {
        if self.holds(owner, queue, sequence) {
            self.hold(queue, sequence, None);
        }
    }

    /// Takes a leased message by its token, unless an owner holds it.
    pub fn take_leased(
        &mut self,
        owner: OwnerId,
        token: LeaseToken,
    ) -> Option<(QueueName, Message)> {
        let (queue, sequence) = self.leases.get(&token)?.clone();
        let message = self.take_unheld(owner, &queue, sequence)?;
        Some((queue, message))
    }

    /// Takes a message whatever its state, unless an owner holds it.
    pub fn take_any(
        &mut self,
        owner: OwnerId,
        queue: &QueueName,
        id: MessageId,
    ) -> Option<Message> {
        self.queues.get(queue)?.find(id)?;
        self.take_unheld(owner, queue, id.sequence)
    }

    pub(super) fn holds(&self, owner: OwnerId, queue: &QueueName, sequence: Sequence) -> bool {
        let entry = self
            .queues
            .get(queue)
            .and_then(|contents| contents.get(sequence));
        entry.is_some_and(|entry| entry.holder == Some(owner))
    }

    fn take_unheld(
        &mut self,
        owner: OwnerId,
        queue: &QueueName,
        sequence: Sequence,
    ) -> Option<Message> {
        let entry = self.queues.get(queue)?.get(sequence)?;
        entry
            .holder
            .is_none()
            .then(|| self.hand_out(queue, sequence, owner))
    }

    pub(super) fn hand_out(
        &mut self,
        queue: &QueueName,
        sequence: Sequence,
        owner: OwnerId,
    ) -> Message {
        let contents = self.hold(queue, sequence, Some(owner));
        contents.entry(sequence).message.clone()
    }
}
