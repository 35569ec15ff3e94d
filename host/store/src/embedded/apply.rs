//! What a batch changes in memory, once it is durable.

use oncue_core::message::{MAX_PRIORITY, MessageId};
use oncue_core::quick_hash::QuickMap;
use oncue_core::unit_of_work::{IdempotencyKey, OwnerId};

use super::codec::{Cursors, QueueRow};
use super::engine::Engine;
use super::facts::{Facts, Held, Standing, own_counts};
use super::index::{Index, Kind, LooseMessage, Queue};
use super::layout::{self, Key, QueueNo, Space};
use super::plan::{Batch, Effect, Planned};
use crate::KnownKey;

impl Index {
    /// Applies a batch and tells the sink. The engine holds it already, when it is durable at all.
    /// `held` are messages it puts that somebody has taken before. What is applied is taken out.
    pub(super) fn apply(
        &mut self,
        engine: &Engine,
        batch: &mut Batch,
        held: &QuickMap<u64, OwnerId>,
    ) {
        if batch.is_durable() {
            self.view = engine.view();
        }
        let mut touched: Vec<Key> = batch.groups.keys().cloned().collect();
        for effect in batch.effects.drain(..) {
            self.apply_effect(effect, &mut touched, held);
        }
        for (number, delta) in std::mem::take(&mut batch.queues) {
            if let Some(queue) = self.queues.get_mut(&number) {
                queue.durable += &delta;
                queue.stale = true;
            }
        }
        for (key, work) in std::mem::take(&mut batch.groups) {
            if let Some(group) = self.groups.get_mut(&key) {
                group.tally = work.tally;
            }
        }
        for (space, key, row) in batch.own.drain(..) {
            self.mirror(space, &key, row);
        }
        for ((space, key), row) in std::mem::take(&mut batch.rows) {
            self.mirror(space, &key, row);
        }
        for key in touched {
            self.relist_group(engine, &key);
        }
        self.forget_idle_groups();
        self.tell();
    }

    fn apply_effect(
        &mut self,
        effect: Effect,
        touched: &mut Vec<Key>,
        held: &QuickMap<u64, OwnerId>,
    ) {
        match effect {
            Effect::MakeQueue(number, name) => {
                self.numbers.insert(name.clone(), number);
                self.queues.insert(number, Box::new(Queue::new(name)));
            }
            Effect::DeleteQueue(name) => {
                if let Some(number) = self.numbers.remove(&name) {
                    // Its last change was told when its last message went.
                    self.queues.remove(&number);
                    self.loose.keys.retain(|(queue, _), _| *queue != number);
                }
            }
            Effect::Settled {
                sequence,
                to,
                dead_letter,
            } => {
                self.apply_settled(sequence, to, dead_letter, touched);
            }
            Effect::Put {
                facts,
                standing,
                warm,
            } => {
                self.notes_put(facts.sequence);
                if let Some(owner) = held.get(&facts.sequence) {
                    self.apply_in_hand(*owner, facts, standing);
                    return;
                }
                if let Some(message) = warm {
                    self.warm.insert(facts.sequence, message);
                }
                self.count(facts.queue, &own_counts(&facts, Some(standing.home)));
            }
            Effect::PutLoose {
                facts,
                standing,
                header,
                body,
                dead_letter,
            } => {
                self.notes_put(facts.sequence);
                self.count(facts.queue, &own_counts(&facts, Some(standing.home)));
                self.loose.bytes += facts.size;
                let message = LooseMessage {
                    facts: facts.clone(),
                    standing,
                    header: *header,
                    body,
                    dead_letter,
                };
                self.set_loose(message);
                touch(&facts, touched);
            }
            Effect::LooseKey { queue, key, id } => self.apply_loose_key(queue, key, id),
        }
    }

    fn apply_loose_key(&mut self, queue: QueueNo, key: IdempotencyKey, id: MessageId) {
        let known = KnownKey {
            id,
            body_digest: key.body_digest,
        };
        self.loose
            .key_ends
            .insert((key.until, queue, key.key.clone()));
        self.loose.keys.insert((queue, key.key), (known, key.until));
    }

    fn notes_put(&mut self, sequence: u64) {
        self.highest_put = self.highest_put.max(sequence);
        self.recent.insert(sequence);
    }

    /// A message was put that `owner` has taken before.
    fn apply_in_hand(&mut self, owner: OwnerId, facts: Facts, standing: Standing) {
        self.count(facts.queue, &own_counts(&facts, None));
        let held = Held {
            owner,
            committing: false,
            facts,
            standing,
        };
        self.held.insert(held.facts.sequence, held);
    }

    fn apply_settled(
        &mut self,
        sequence: u64,
        to: Option<(QueueNo, Standing)>,
        dead_letter: Option<Option<Box<oncue_core::message::DeadLetter>>>,
        touched: &mut Vec<Key>,
    ) {
        let Some(Held { facts, .. }) = self.end_hold(sequence) else {
            return;
        };
        self.damaged.remove(&sequence);
        self.count(facts.queue, &-own_counts(&facts, None));
        touch(&facts, touched);
        let moved = to.map(|(queue, standing)| {
            (
                Facts {
                    queue,
                    ..facts.clone()
                },
                standing,
            )
        });
        if let Some((facts, standing)) = &moved {
            self.count(facts.queue, &own_counts(facts, Some(standing.home)));
            touch(facts, touched);
        }
        if facts.persistent {
            return;
        }
        let Some(mut message) = self.loose.messages.remove(&sequence) else {
            return;
        };
        self.queue(facts.queue)
            .loose
            .remove(&(MAX_PRIORITY - facts.priority, sequence));
        if let super::codec::Home::Leased { token, .. } = message.standing.home {
            self.loose.tokens.remove(&token.0);
        }
        let Some((facts, standing)) = moved else {
            self.loose.bytes -= facts.size;
            return;
        };
        message.facts = facts;
        message.standing = standing;
        if let Some(dead_letter) = dead_letter {
            message.dead_letter = dead_letter;
        }
        self.set_loose(message);
    }

    fn set_loose(&mut self, message: LooseMessage) {
        let (facts, standing) = (message.facts.clone(), message.standing);
        let sequence = facts.sequence;
        if let super::codec::Home::Leased { token, .. } = standing.home {
            self.loose.tokens.insert(token.0, sequence);
        }
        self.loose.messages.insert(sequence, message);
        self.queue(facts.queue)
            .loose
            .insert((MAX_PRIORITY - facts.priority, sequence));
        self.set_down_loose(&facts, &standing);
    }

    /// Keeps the windows in step with a row that was written.
    fn mirror(&mut self, space: Space, key: &[u8], row: Planned) {
        match space {
            Space::Ready | Space::Straggler => {
                self.mirror_lane(space, layout::split_ordered(key), row)
            }
            Space::Group => match layout::split_member(key) {
                Some(spot) => self.mirror_lane(space, Some(spot), row),
                None => self.mirror_member(key, row),
            },
            Space::Due | Space::Expiry => {
                let time = layout::first_number(key).zip(layout::last_number(key));
                let Some(time) = time.filter(|_| key != layout::MARK_KEY) else {
                    return;
                };
                let limit = self.window_rows();
                let held = self.held.contains_key(&time.1);
                let window = if space == Space::Due {
                    &mut self.due
                } else {
                    &mut self.expiry
                };
                match row {
                    Planned::Timed(_) if held => window.insert_taken(time),
                    Planned::Timed(address) => window.insert(time, address, limit),
                    _ => window.remove(&time),
                }
            }
            _ => {}
        }
    }

    fn mirror_lane(&mut self, space: Space, spot: Option<(QueueNo, u8, u64)>, row: Planned) {
        let Some((number, priority, sequence)) = spot else {
            return;
        };
        let limit = self.window_rows();
        let held = self.held.contains_key(&sequence);
        let Some(queue) = self.queues.get_mut(&number) else {
            return;
        };
        if matches!(row, Planned::Delete) && !queue.has_lane(priority) {
            return;
        }
        let kind = match space {
            Space::Ready => Kind::Ready,
            Space::Straggler => Kind::Straggler,
            _ => Kind::Member,
        };
        self.change_window((number, priority, kind), |window| match row {
            Planned::Index(_) if held => window.insert_taken(sequence),
            Planned::Index(row) => window.insert(sequence, row, limit),
            _ => window.remove(&sequence),
        });
    }

    fn mirror_member(&mut self, key: &[u8], row: Planned) {
        let Some((stand, tally, sequence)) = layout::split_in_group(key) else {
            return;
        };
        let limit = self.window_rows();
        let held = self.held.contains_key(&sequence);
        let Some(group) = self.groups.get_mut(&tally) else {
            return;
        };
        match (stand, row) {
            (layout::Stand::Free, Planned::Index(_)) if held => group.free.insert_taken(sequence),
            (layout::Stand::Free, Planned::Index(row)) => group.free.insert(sequence, row, limit),
            (layout::Stand::Free, _) => group.free.remove(&sequence),
            (layout::Stand::SetBack, Planned::Bare) if held => {
                group.set_back.insert_taken(sequence)
            }
            (layout::Stand::SetBack, Planned::Bare) => group.set_back.insert(sequence, (), limit),
            (layout::Stand::SetBack, _) => group.set_back.remove(&sequence),
        }
    }
}

fn touch(facts: &Facts, touched: &mut Vec<Key>) {
    if let Some(name) = &facts.group {
        touched.push(layout::tally(facts.queue, name));
    }
}

impl Queue {
    /// What a restart must know of the queue now.
    pub(super) fn row(&self) -> QueueRow {
        let lanes = self.lanes.iter().enumerate();
        let cursors = lanes.filter_map(|(priority, lane)| {
            let lane = lane.as_deref()?;
            let cursors = Cursors {
                priority: u8::try_from(priority).ok()?,
                ready: lane.ready.low(),
                straggler: lane.straggler.low(),
                member: lane.member.low(),
            };
            let any = cursors.ready.or(cursors.straggler).or(cursors.member);
            any.map(|_| cursors)
        });
        QueueRow {
            name: self.name.as_str().to_owned(),
            counts: *self.durable,
            cursors: cursors.collect(),
        }
    }
}
