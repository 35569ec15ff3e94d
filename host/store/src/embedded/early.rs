//! Messages that were put and are not yet durable, for tasks that may begin on them: what such a
//! task does is durable only after them, or together with them. The rules stand in decision
//! record 0040.
//!
//! A queue is followed from the first time a running task asks for such messages. Then every put
//! to it is noted here from its submission until its unit is applied or refused. Those that no
//! rule of their own concerns may be taken, in the order of their ids; one that may not be taken
//! holds up those behind it, so that nothing overtakes it. Bounded by the inbox and by one batch;
//! a body is shared with the unit that waits.
//!
//! Lock order: the index or the inbox first, then this.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use oncue_core::message::{Attempts, Body, Header, Message};
use oncue_core::names::QueueName;
use oncue_core::quick_hash::{QuickMap, QuickSet};
use oncue_core::unit_of_work::{Chain, OwnerId, Put, Unit};

use super::committer::Waiting;
use super::message_plan::parts_of;
use super::shared::Shared;

/// A put that is noted here: to which queue, under which sequence.
pub(super) type Noted = (QueueName, u64);

/// Stands before the messages of a queue whose earlier puts were not noted. No message has it: the
/// first opening of a store begins higher.
const NO_MESSAGE: u64 = 0;

/// A message as it was put.
#[derive(Debug)]
struct Young {
    header: Header,
    body: Bytes,
    max_depth: Option<u64>,
}

impl Young {
    fn message(&self) -> Message {
        Message {
            header: self.header.clone(),
            attempts: Attempts::default(),
            body: Body::Whole(self.body.clone()),
            dead_letter: None,
        }
    }
}

/// A queue that is followed.
#[derive(Debug, Default)]
struct Followed {
    /// Puts that nobody has taken. `None` may not be.
    waiting: BTreeMap<u64, Option<Young>>,
    /// How many are taken.
    taken: u64,
}

/// A message in the hand of a task.
#[derive(Debug)]
struct Taken {
    owner: OwnerId,
    /// Cut when the message does not come to be.
    chain: Chain,
    queue: QueueName,
    young: Young,
    /// The batch that puts it also removes it.
    removed: bool,
}

/// What is noted.
#[derive(Debug, Default)]
pub(super) struct Early {
    queues: QuickMap<QueueName, Followed>,
    taken: QuickMap<u64, Taken>,
    owners: QuickMap<OwnerId, usize>,
}

/// Whether a put of this unit may be taken before it is durable: an application's one message,
/// with no key, group, delay or end, whose body is in one piece. Who gets by correlation id sees
/// only what is durable, as everybody does.
pub(super) fn may_be_taken(unit: &Unit, put: &Put) -> bool {
    let Header {
        group,
        persistent,
        expires,
        ..
    } = &put.header;
    unit.puts.len() == 1
        && unit.owner.is_none()
        && unit.chain.is_none()
        && unit.records.is_empty()
        && unit.writes.is_empty()
        && *persistent
        && group.is_none()
        && expires.is_none()
        && put.key.is_none()
        && put.due.is_none()
        && put.dead_letter.is_none()
        && parts_of(put.body.len() as u64) == 0
}

impl Early {
    /// Whether puts to the queue are noted.
    pub(super) fn follows(&self, queue: &QueueName) -> bool {
        self.queues.contains_key(queue)
    }

    /// From now on puts to the queue are noted. With `others` there are such that were not: none is
    /// taken until the unit is applied or refused that notes what is given back.
    fn follow(&mut self, queue: &QueueName, others: bool) -> Option<Noted> {
        let followed = self.queues.entry(queue.clone()).or_default();
        others.then(|| {
            followed.waiting.insert(NO_MESSAGE, None);
            (queue.clone(), NO_MESSAGE)
        })
    }

    /// The queue is gone, and with it its messages.
    pub(super) fn forget(&mut self, queue: &QueueName) {
        self.queues.remove(queue);
    }

    /// Notes the puts of a unit that is about to wait. The caller gives them back by
    /// [`Early::applied`] or [`Early::refused`].
    pub(super) fn note(&mut self, unit: &Unit) -> Vec<Noted> {
        let mut noted = Vec::new();
        for put in &unit.puts {
            let Some(queue) = self.queues.get_mut(&put.queue) else {
                continue;
            };
            let young = may_be_taken(unit, put).then(|| {
                let mut header = put.header.clone();
                header.size = put.body.len() as u64;
                let (body, max_depth) = (put.body.clone(), put.max_depth);
                Young {
                    header,
                    body,
                    max_depth,
                }
            });
            let sequence = put.header.id.sequence.0;
            queue.waiting.insert(sequence, young);
            noted.push((put.queue.clone(), sequence));
        }
        noted
    }

    /// Takes up to `max` messages of a queue that holds `depth` durable ones. `chain` is cut when
    /// one of them does not come to be.
    pub(super) fn take(
        &mut self,
        queue: &QueueName,
        depth: u64,
        (owner, chain): (OwnerId, &Chain),
        max: usize,
    ) -> Vec<Message> {
        let Some(followed) = self.queues.get_mut(queue) else {
            return Vec::new();
        };
        let mut messages = Vec::new();
        while messages.len() < max
            && let Some(first) = followed.waiting.first_entry()
        {
            // One that the queue has no room for is going to be refused.
            let most = match first.get() {
                Some(young) => young.max_depth.unwrap_or(u64::MAX),
                None => break,
            };
            let sequence = *first.key();
            let all = followed.waiting.len() as u64 + followed.taken;
            if depth.saturating_add(all) > most {
                break;
            }
            let Some(Some(young)) = followed.waiting.remove(&sequence) else {
                break;
            };
            messages.push(young.message());
            followed.taken += 1;
            *self.owners.entry(owner).or_default() += 1;
            let taken = Taken {
                owner,
                chain: chain.clone(),
                queue: queue.clone(),
                young,
                removed: false,
            };
            self.taken.insert(sequence, taken);
        }
        messages
    }

    /// Whether `owner` has taken a message that is not yet durable.
    pub(super) fn has_taken(&self, owner: OwnerId) -> bool {
        self.owners.contains_key(&owner)
    }

    /// Who has taken a message that is not yet durable.
    pub(super) fn holder(&self, sequence: u64) -> Option<OwnerId> {
        self.taken.get(&sequence).map(|taken| taken.owner)
    }

    /// The batch that puts the message also removes it: it is not given back any more.
    pub(super) fn mark_removed(&mut self, sequence: u64) {
        if let Some(taken) = self.taken.get_mut(&sequence) {
            taken.removed = true;
        }
    }

    /// Its owner gives a message back.
    pub(super) fn release(&mut self, owner: OwnerId, sequence: u64) {
        let is_its = |taken: &Taken| taken.owner == owner && !taken.removed;
        if !self.taken.get(&sequence).is_some_and(is_its) {
            return;
        }
        if let Some(Taken { queue, young, .. }) = self.let_go(sequence)
            && let Some(followed) = self.queues.get_mut(&queue)
        {
            followed.waiting.insert(sequence, Some(young));
        }
    }

    /// These puts are durable, in a batch that is about to be applied. Gives those that somebody
    /// has taken, with their owners, less those that the batch has removed again.
    pub(super) fn applied(&mut self, noted: &[Noted]) -> QuickMap<u64, OwnerId> {
        let mut held = QuickMap::default();
        for (queue, sequence) in noted {
            if self.stops_waiting(queue, *sequence) {
                continue;
            }
            if let Some(taken) = self.let_go(*sequence)
                && !taken.removed
            {
                held.insert(*sequence, taken.owner);
            }
        }
        held
    }

    /// These puts were refused: who has taken one is undone.
    pub(super) fn refused(&mut self, noted: &[Noted]) {
        for (queue, sequence) in noted {
            if !self.stops_waiting(queue, *sequence)
                && let Some(taken) = self.let_go(*sequence)
            {
                taken.chain.cut();
            }
        }
    }

    fn stops_waiting(&mut self, queue: &QueueName, sequence: u64) -> bool {
        let followed = self.queues.get_mut(queue);
        followed.is_some_and(|followed| followed.waiting.remove(&sequence).is_some())
    }

    fn let_go(&mut self, sequence: u64) -> Option<Taken> {
        let taken = self.taken.remove(&sequence)?;
        if let Some(followed) = self.queues.get_mut(&taken.queue) {
            followed.taken = followed.taken.saturating_sub(1);
        }
        if let Some(count) = self.owners.get_mut(&taken.owner) {
            *count -= 1;
            if *count == 0 {
                self.owners.remove(&taken.owner);
            }
        }
        Some(taken)
    }
}

impl Shared {
    /// Has the puts to a queue noted from now on. The index is locked: what is applied, the caller
    /// has seen.
    pub(super) fn follow_early(&self, queue: &QueueName) {
        if self.early.lock().follows(queue) {
            return;
        }
        let mut inbox = self.inbox.lock();
        let mut puts = inbox.units.iter().flat_map(|waiting| &waiting.unit.puts);
        let others = inbox.under_way || puts.any(|put| put.queue == *queue);
        let noted = self.early.lock().follow(queue, others);
        self.follows.store(true, Ordering::Release);
        if let Some(noted) = noted {
            // Behind all that was not noted.
            inbox.push(Unit::default(), vec![noted]);
            drop(inbox);
            self.arrived.notify_one();
        }
    }

    /// Which units of a batch may let it go before them, each once: puts whose message is in hand
    /// and not settled beside them. None at all, when somebody asks whether his messages are
    /// durable by a unit of his chain that settles nothing; and no put that one behind it would
    /// overtake. Empty when there is none.
    pub(super) fn can_wait(&self, units: &[Waiting]) -> Vec<bool> {
        if units.iter().all(|waiting| waiting.noted.is_empty()) {
            return Vec::new();
        }
        let early = self.early.lock();
        if early.taken.is_empty() {
            return Vec::new();
        }
        let mut settled = QuickSet::default();
        for Waiting { unit, .. } in units {
            if unit.chain.is_some() && unit.settles.is_empty() {
                return Vec::new();
            }
            settled.extend(unit.settles.iter().map(|settle| settle.sequence.0));
        }
        let mut written: QuickSet<&QueueName> = QuickSet::default();
        let mut can_wait = vec![false; units.len()];
        for (waiting, can_wait) in units.iter().zip(&mut can_wait).rev() {
            if let [(queue, sequence)] = &*waiting.noted
                && early.holder(*sequence).is_some()
            {
                if settled.contains(sequence) {
                    continue;
                }
                *can_wait = !waiting.waited && !written.contains(queue);
            }
            if !*can_wait {
                written.extend(waiting.noted.iter().map(|(queue, _)| queue));
            }
        }
        can_wait
    }

    /// Who has taken the one put of a unit before it is durable.
    pub(super) fn early_holder(&self, noted: &[Noted]) -> Option<OwnerId> {
        match noted {
            [(_, sequence)] => self.early.lock().holder(*sequence),
            _ => None,
        }
    }

    /// From now on these cannot be given back.
    pub(super) fn mark_removed(&self, removed: Option<&[u64]>) {
        let Some(removed @ [_, ..]) = removed else {
            return;
        };
        let mut early = self.early.lock();
        for sequence in removed {
            early.mark_removed(*sequence);
        }
    }

    /// These puts were refused.
    pub(super) fn refuse_early(&self, noted: &[Noted]) {
        if !noted.is_empty() {
            self.early.lock().refused(noted);
        }
    }
}
