//! Units of work that were submitted and are not yet known to be durable, and messages that were
//! fetched ahead of their calls. The rules stand in decision record 0017.
//!
//! All units of a task that wait for their sync form one chain and one owner holds all their
//! messages: the store applies them in order, and a refused one undoes every later one. Here they
//! are kept, awaited and taken note of; which unit may be submitted without waiting is decided by
//! [`super::drain`]. A session that is lost hands what is pending to the loop.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::Poll;

use oncue_core::definition::TriggerType;
use oncue_core::message::{DeadLetterReason, Message};
use oncue_core::outcome::Outcome;
use oncue_core::unit_of_work::{Chain, OwnerId, Receipt, Unit};
use oncue_store::{Commit, CommitError};
use tokio::sync::OwnedRwLockReadGuard;

use super::TaskSpec;
use super::open_unit::{OpenUnit, TakenMessage};
use super::port::PortError;
use super::record::{PutCount, count_puts};
use super::session::TaskSession;
use crate::commits::Pending;
use crate::event::Event;
use crate::metrics::By;
use crate::shared::Shared;
use crate::traces::call::CallTrace;

/// Units of one task that may wait for their sync. It must cover what a fast handler does during a
/// sync; it bounds how much is run again after a refusal, and how many suspects a crash makes.
pub const PIPELINE_UNITS: usize = 256;

/// Bytes of puts in those units.
pub const PIPELINE_BYTES: u64 = 4 << 20;

/// A unit that was submitted.
#[derive(Debug)]
struct Submitted {
    commit: Commit,
    owner: OwnerId,
    /// Its messages; those without a decision go back once it is durable.
    taken: Vec<TakenMessage>,
    puts: Vec<PutCount>,
    /// How many they are, those to further queues among them.
    put: u64,
    /// Those of them that are dead letters, past the hop limit.
    dead: u64,
    bytes: u64,
    /// The trace of the unit as a whole (trigger style).
    trace: Option<Box<CallTrace>>,
    /// Kept until it is answered: no unit of the namespace runs alone meanwhile.
    _turn: Option<OwnedRwLockReadGuard<()>>,
}

/// What a session has under way.
#[derive(Debug)]
pub(crate) struct Pipeline {
    owner: OwnerId,
    chain: Chain,
    submitted: VecDeque<Submitted>,
    bytes: u64,
    ahead: VecDeque<Message>,
    /// Why the first unit of the chain was refused that was.
    refusal: Option<CommitError>,
}

impl Pipeline {
    pub(crate) fn new(owner: OwnerId) -> Self {
        Self {
            owner,
            chain: Chain::default(),
            submitted: VecDeque::new(),
            bytes: 0,
            ahead: VecDeque::new(),
            refusal: None,
        }
    }

    fn pop(&mut self) -> Option<Submitted> {
        let oldest = self.submitted.pop_front()?;
        self.bytes -= oldest.bytes;
        Some(oldest)
    }
}

/// Whether a task may submit a unit before the last one is durable. Never with a network grant:
/// what has left the host cannot be undone. One start of `every` is one message.
pub(crate) fn may_pipeline(shared: &Shared, spec: &TaskSpec) -> bool {
    !spec.component.style.works_the_queue()
        && spec.queue_attributes.trigger != TriggerType::Every
        && spec.attributes.grants.http.is_empty()
        && shared.store.pipelines()
}

impl TaskSession {
    /// Who holds the messages of the open unit and of those under way.
    pub(crate) fn owner(&self) -> OwnerId {
        self.pipeline.lock().owner
    }

    /// The same, and the chain of those units.
    pub(crate) fn owner_and_chain(&self) -> (OwnerId, Chain) {
        let pipeline = self.pipeline.lock();
        (pipeline.owner, pipeline.chain.clone())
    }

    /// Whether the task may begin on messages that are not yet durable: what it does follows them
    /// in its chain. Of type `first` only: the others count messages, or start for each.
    pub(crate) fn may_begin_early(&self) -> bool {
        self.pipelines
            && self.spec.queue_attributes.trigger == TriggerType::First
            && !self.cell.is_limited()
    }

    /// Submits the open unit; the session then has a new, empty one. Waits only while another unit
    /// of the namespace runs alone, and only for a unit that uses state.
    pub(crate) async fn submit_unit(&self) {
        let turn = self.turn_to_commit().await;
        let (owner, chain) = self.owner_and_chain();
        let mut done = std::mem::replace(&mut *self.unit.lock(), OpenUnit::new(owner));
        let puts = count_puts(&done.puts);
        let put = done.puts.len() as u64;
        let dead = done.puts.iter().filter(|put| put.dead_letter.is_some());
        let dead = dead.count() as u64;
        let bytes = done.put_bytes;
        let mut unit = done.to_commit(self.namespace());
        unit.task = self.failure_row();
        unit.chain = self.pipelines.then_some(chain);
        let settled = u32::try_from(unit.settles.len()).unwrap_or(u32::MAX);
        self.served.fetch_add(settled, Ordering::Relaxed);
        let is_nothing = unit.settles.is_empty() && unit.puts.is_empty() && unit.writes.is_empty();
        let commit = if is_nothing {
            Commit::done(Ok(Receipt {
                commit: 0,
                puts: Vec::new(),
            }))
        } else {
            self.shared.store.commit(unit)
        };
        let mut pipeline = self.pipeline.lock();
        pipeline.bytes += bytes;
        pipeline.submitted.push_back(Submitted {
            commit,
            owner: done.owner,
            taken: done.taken,
            puts,
            put,
            dead,
            bytes,
            trace: done.trace.take(),
            _turn: turn,
        });
    }

    /// Takes the answers that are there, without waiting.
    pub(crate) fn take_answers(&self) {
        loop {
            let mut pipeline = self.pipeline.lock();
            let oldest = pipeline.submitted.front_mut();
            let Some(answer) = oldest.and_then(|oldest| oldest.commit.try_answer()) else {
                return;
            };
            let answered = pipeline.pop();
            drop(pipeline);
            if let Some(submitted) = answered {
                self.answered(submitted, answer);
            }
        }
    }

    /// Waits until the oldest unit under way is answered; false when there is none.
    pub(crate) async fn oldest_answered(&self) -> bool {
        let answered = poll_fn(|context| {
            let mut pipeline = self.pipeline.lock();
            let Some(oldest) = pipeline.submitted.front_mut() else {
                return Poll::Ready(None);
            };
            match Pin::new(&mut oldest.commit).poll(context) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(answer) => Poll::Ready(pipeline.pop().map(|unit| (unit, answer))),
            }
        })
        .await;
        match answered {
            None => false,
            Some((submitted, answer)) => {
                self.answered(submitted, answer);
                true
            }
        }
    }

    /// Waits until every unit under way is answered.
    ///
    /// # Errors
    /// Why the first of them was refused that was. Then nothing is in hand any more: it, what
    /// followed it, the open unit and what was fetched are back, uncharged.
    pub(crate) async fn caught_up(&self) -> Result<(), CommitError> {
        while self.oldest_answered().await {}
        let refusal = self.pipeline.lock().refusal.take();
        match refusal {
            None => Ok(()),
            Some(error) => {
                self.release_all();
                Err(error)
            }
        }
    }

    /// Before a guest sees more than the message it was called for, or does what is seen before its
    /// unit is committed: nothing of its task is under way any more, what was fetched ahead is
    /// back, and the message is durable.
    ///
    /// # Errors
    /// [`PortError::Cancelled`] when a unit under way was refused: this one is undone with it.
    pub(crate) async fn guest_catches_up(&self) -> Result<(), PortError> {
        if !self.pipelines {
            return Ok(());
        }
        self.give_back_fetched();
        while self.oldest_answered().await {}
        if self.hand_is_durable().await.is_err() || self.was_refused() {
            return Err(PortError::Cancelled(CommitError::Undone.to_string()));
        }
        Ok(())
    }

    /// Waits until every message in hand is durable.
    ///
    /// # Errors
    /// When one does not come to be: what was done with it is undone.
    pub(crate) async fn hand_is_durable(&self) -> Result<(), CommitError> {
        let (owner, chain) = self.owner_and_chain();
        if self.shared.store.has_early(owner) {
            // A unit of the chain is answered after what the chain follows, and as that was.
            let unit = Unit {
                chain: Some(chain.clone()),
                ..Unit::default()
            };
            self.shared.store.commit(unit).await?;
        }
        match chain.is_cut() {
            true => Err(CommitError::Undone),
            false => Ok(()),
        }
    }

    /// True when a unit under way was refused, until [`Self::caught_up`] has told it.
    pub(crate) fn was_refused(&self) -> bool {
        self.pipeline.lock().refusal.is_some()
    }

    /// True when no other unit may be submitted before one is answered.
    pub(crate) fn is_pipeline_full(&self) -> bool {
        let pipeline = self.pipeline.lock();
        pipeline.submitted.len() >= PIPELINE_UNITS || pipeline.bytes >= PIPELINE_BYTES
    }

    /// What the store has said of a unit.
    fn answered(&self, submitted: Submitted, answer: Result<Receipt, CommitError>) {
        for taken in &submitted.taken {
            self.shared.in_hand.clear(taken.in_hand);
        }
        match answer {
            Ok(_) => self.is_durable(submitted),
            Err(error) => {
                self.shared.note_refusal(&error);
                let places: Vec<_> = submitted.taken.iter().map(TakenMessage::place).collect();
                self.shared.store.release(submitted.owner, &places);
                self.pipeline.lock().refusal.get_or_insert(error);
            }
        }
    }

    fn is_durable(&self, mut submitted: Submitted) {
        self.tell_traces(&mut submitted);
        *self.alone.lock() = None;
        let mut released = Vec::new();
        let mut progress = self.progress.lock();
        progress.conflicts = 0;
        progress.put(&submitted.puts);
        for put in &submitted.puts {
            self.shared
                .look_up(&put.queue, |cell| cell.came(put.messages));
        }
        let metrics = &self.shared.metrics;
        metrics.handlers.put.add(submitted.put);
        metrics.dead_letters(DeadLetterReason::HopLimit, submitted.dead);
        for taken in &submitted.taken {
            let id = taken.delivered.message.header.id;
            let Some(disposition) = &taken.disposition else {
                released.push(taken.place());
                continue;
            };
            if !taken.is_reply {
                metrics.settled(By::Handler, disposition);
            }
            progress.moved_on = true;
            self.cell.settled([id.sequence]);
            if taken.is_done {
                progress.note(id, Outcome::Committed, None);
            }
        }
        drop(progress);
        if !released.is_empty() {
            self.shared.store.release(submitted.owner, &released);
        }
    }

    /// Tells of what the unit did, in the traces of its messages.
    fn tell_traces(&self, submitted: &mut Submitted) {
        let calls = submitted.taken.iter_mut();
        let calls = calls.filter_map(|taken| taken.trace.take());
        for trace in submitted.trace.take().into_iter().chain(calls) {
            self.tell_trace(*trace);
        }
    }

    /// The session ends with units under way: its host has lost it. They may still become durable,
    /// or be refused, and then their messages are given back; the loop sees to that.
    pub(crate) fn hand_over(&self) {
        let mut pipeline = self.pipeline.lock();
        let submitted = std::mem::take(&mut pipeline.submitted);
        pipeline.bytes = 0;
        drop(pipeline);
        let mut orphans = Vec::with_capacity(submitted.len());
        for unit in submitted {
            let mut places = Vec::new();
            let mut not_tried = Vec::new();
            for taken in &unit.taken {
                self.shared.in_hand.clear(taken.in_hand);
                match taken.disposition {
                    Some(_) => places.push(taken.place()),
                    None => not_tried.push(taken.place()),
                }
            }
            self.shared.store.release(unit.owner, &not_tried);
            orphans.push(Pending {
                commit: unit.commit,
                held: Some((unit.owner, places)),
                told: Vec::new(),
            });
        }
        if !orphans.is_empty() {
            self.shared.inbox.push(Event::Orphaned(orphans));
        }
    }

    /// Messages that are fetched and not yet called.
    pub(crate) fn count_fetched(&self) -> usize {
        self.pipeline.lock().ahead.len()
    }

    /// Keeps what was taken for the open unit's owner until its turn comes.
    pub(crate) fn fetched(&self, messages: Vec<Message>) {
        self.pipeline.lock().ahead.extend(messages);
    }

    /// The next fetched message. One whose life ended while it waited for its turn goes back, so
    /// that its expiry is seen to.
    pub(crate) fn next_fetched(&self) -> Option<Message> {
        loop {
            let message = self.pipeline.lock().ahead.pop_front()?;
            let expires = message.header.expires;
            if expires.is_none_or(|time| time > self.shared.now()) {
                return Some(message);
            }
            let place = (self.cell.name.clone(), message.header.id.sequence);
            self.shared.store.release(self.owner(), &[place]);
        }
    }

    /// Gives back what was fetched and not called.
    pub(crate) fn give_back_fetched(&self) {
        let mut pipeline = self.pipeline.lock();
        if pipeline.ahead.is_empty() {
            return;
        }
        let (owner, ahead) = (pipeline.owner, std::mem::take(&mut pipeline.ahead));
        drop(pipeline);
        let place = |message: &Message| (self.cell.name.clone(), message.header.id.sequence);
        let places: Vec<_> = ahead.iter().map(place).collect();
        self.shared.store.release(owner, &places);
    }

    /// Gives everything back that is still in hand, uncharged, and begins a new chain with an empty
    /// unit. Nothing is under way any more, or it was handed over.
    pub(crate) fn release_all(&self) {
        self.give_back_fetched();
        let next = Pipeline::new(self.shared.new_owner());
        let open = OpenUnit::new(next.owner);
        *self.pipeline.lock() = next;
        let unit = std::mem::replace(&mut *self.unit.lock(), open);
        *self.alone.lock() = None;
        for taken in &unit.taken {
            self.shared.in_hand.clear(taken.in_hand);
        }
        let places: Vec<_> = unit.taken.iter().map(TakenMessage::place).collect();
        if !places.is_empty() {
            self.shared.store.release(unit.owner, &places);
        }
    }
}
