//! The workshop's own ledger: a store that notes what was committed, so that what a handler did is
//! judged by what became durable and not by what the handler or the manager says of it.
//!
//! Everything is done by the memory store behind it. It can refuse one commit as a state conflict:
//! the manager then undoes the unit and the handler has the same message again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use oncue_core::message::{Body, Message, MessageId, Sequence};
use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{Disposition, LeaseToken, OwnerId, Put, Revision, Unit};
use oncue_core::unit_of_work::{Settle, StateWrite};
use oncue_store::memory::MemoryStore;
use oncue_store::{
    Browse, Browsed, ChangeSink, Commit, CommitError, Due, KnownKey, Page, Recovered, Store,
    StoreError, StoreStatus, Take,
};
use parking_lot::Mutex;

use super::probe::Order;

/// What one commit made durable, as far as handlers have to do with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Committed {
    /// It is a handler's unit of work.
    pub(super) by_handler: bool,
    /// Messages put, by handlers, applications and the manager.
    pub(super) puts: Vec<Put>,
    /// What became of messages.
    pub(super) settles: Vec<Settle>,
    /// State written.
    pub(super) writes: Vec<StateWrite>,
}

/// A memory store that notes what it commits.
pub(super) struct LedgerStore {
    behind: MemoryStore,
    committed: Mutex<Vec<Committed>>,
    order: Order,
    /// Commits of a handler that ended well.
    done: AtomicUsize,
    struck: AtomicBool,
}

impl LedgerStore {
    /// An empty store that refuses what `order` says.
    pub(super) fn new(behind: MemoryStore, order: Order) -> Self {
        Self {
            behind,
            committed: Mutex::default(),
            order,
            done: AtomicUsize::new(0),
            struck: AtomicBool::new(false),
        }
    }

    /// What was committed so far, in order.
    pub(super) fn committed(&self) -> Vec<Committed> {
        self.committed.lock().clone()
    }

    /// True when the commit was refused that was to be.
    pub(super) fn has_struck(&self) -> bool {
        self.struck.load(Ordering::SeqCst)
    }

    /// Commits of a handler that ended well, the refused one too.
    pub(super) fn done(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }
}

/// A handler's unit that takes messages off their queues.
fn ends_well(unit: &Unit) -> bool {
    let done = |settle: &Settle| settle.disposition == Disposition::Remove;
    is_handlers(unit) && unit.settles.iter().any(done)
}

fn is_handlers(unit: &Unit) -> bool {
    unit.owner.is_some() && unit.key_taken_is_conflict
}

impl Store for LedgerStore {
    fn attach(&self, sink: Arc<dyn ChangeSink>) {
        self.behind.attach(sink);
    }

    fn recovered(&self) -> Recovered {
        self.behind.recovered()
    }

    fn take_recovered(&self) -> Recovered {
        self.behind.take_recovered()
    }

    fn next_id(&self) -> MessageId {
        self.behind.next_id()
    }

    fn take(&self, take: &Take) -> Result<Vec<Message>, StoreError> {
        self.behind.take(take)
    }

    fn release(&self, owner: OwnerId, messages: &[(QueueName, Sequence)]) {
        self.behind.release(owner, messages);
    }

    fn commit(&self, unit: Unit) -> Commit {
        let number = match ends_well(&unit) {
            true => self.done.fetch_add(1, Ordering::SeqCst) + 1,
            false => 0,
        };
        if number > 0 && self.order == Order::Redeliver(number) {
            self.struck.store(true, Ordering::SeqCst);
            let what = "the workshop's redelivery".to_owned();
            return Commit::refused(&unit, CommitError::Conflict(what));
        }
        let mut noted = Committed {
            by_handler: is_handlers(&unit),
            puts: unit.puts.clone(),
            settles: unit.settles.clone(),
            writes: unit.writes.clone(),
        };
        // The lock is held so that the order of the notes is that of the commits; a memory store
        // answers at once.
        let mut committed = self.committed.lock();
        let answer = self.behind.commit(unit).wait();
        if let Ok(receipt) = &answer {
            // A repeat under its key is no new message.
            let mut repeated = receipt.puts.iter().map(|put| put.repeated);
            noted.puts.retain(|_| repeated.next() != Some(true));
            committed.push(noted);
        }
        Commit::done(answer)
    }

    fn claim_due(
        &self,
        owner: OwnerId,
        now: Timestamp,
        max: usize,
    ) -> Result<Vec<Due>, StoreError> {
        self.behind.claim_due(owner, now, max)
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.behind.next_due()
    }

    fn take_leased(
        &self,
        owner: OwnerId,
        token: LeaseToken,
    ) -> Result<(QueueName, Message), StoreError> {
        self.behind.take_leased(owner, token)
    }

    fn take_any(
        &self,
        owner: OwnerId,
        queue: &QueueName,
        id: MessageId,
    ) -> Result<Option<Message>, StoreError> {
        self.behind.take_any(owner, queue, id)
    }

    fn browse(&self, browse: &Browse) -> Result<Page, StoreError> {
        self.behind.browse(browse)
    }

    fn find(&self, queue: &QueueName, id: MessageId) -> Result<Option<Browsed>, StoreError> {
        self.behind.find(queue, id)
    }

    fn read_body(&self, body: &Body, offset: u64, length: u64) -> Result<Bytes, StoreError> {
        self.behind.read_body(body, offset, length)
    }

    fn oldest(&self, queue: &QueueName, priority: u8) -> Option<Timestamp> {
        self.behind.oldest(queue, priority)
    }

    fn key(
        &self,
        queue: &QueueName,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<KnownKey>, StoreError> {
        self.behind.key(queue, key, now)
    }

    fn state(&self, namespace: &str, key: &str) -> Result<Option<(Bytes, Revision)>, StoreError> {
        self.behind.state(namespace, key)
    }

    fn state_keys(
        &self,
        namespace: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.behind.state_keys(namespace, after, max)
    }

    fn tasks(&self, before: Option<u64>, max: usize) -> Result<Vec<(u64, Bytes)>, StoreError> {
        self.behind.tasks(before, max)
    }

    fn status(&self) -> StoreStatus {
        self.behind.status()
    }

    fn close(&self) {
        self.behind.close();
    }
}
