//! What a case works with: a store, a sink that adds up what it is told, and short words for units
//! of work.
//!
//! The rig judges by its own ledger (browse and answers), never by a count that the store keeps
//! about itself.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use oncue_core::message::{Attempts, Message, MessageId};
use oncue_core::names::QueueName;
use oncue_core::queue::Counts;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{
    Disposition, LeaseToken, OwnerId, Receipt, RecordChange, RecordKind, Settle, Unit, Wait,
};
use oncue_store::{
    Browse, Browsed, ChangeSink, CommitError, Due, MessageState, Page, Select, StopReason, Store,
    StoreError, Take,
};
use parking_lot::Mutex;

use crate::draft::Draft;

/// The present, in every case that does not move it.
pub const NOW: Timestamp = Timestamp(1_000_000);

/// Later than anything that a case waits for.
pub const END: Timestamp = Timestamp(9_000_000);

/// Messages in one page of the rig's own browsing: small, so that cursors are used.
const PAGE: usize = 7;

/// A kind of store, and how to get one.
pub trait Harness {
    /// A new, empty store in a home of its own.
    fn open(&self) -> Arc<dyn Store>;

    /// Ends `store` in that way and opens what it left. Only for stores that keep something.
    fn reopen(&self, store: Arc<dyn Store>, ending: Ending) -> Arc<dyn Store> {
        drop(store);
        panic!("this store keeps nothing, so it cannot end by {ending:?}");
    }
}

/// How a store ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By `Store::close`.
    Close,
    /// As the death of the process leaves it: nothing is closed, nothing more is written.
    Kill,
}

/// Both ways.
pub const ENDINGS: [Ending; 2] = [Ending::Close, Ending::Kill];

/// The sink: the sum of all changes, and every fault of the telling.
#[derive(Default)]
pub struct Told {
    inner: Mutex<Telling>,
}

#[derive(Default)]
struct Telling {
    sums: BTreeMap<QueueName, Counts>,
    faults: Vec<String>,
    changes: usize,
    stopped: Vec<Option<StopReason>>,
}

impl ChangeSink for Told {
    fn changed(&self, queue: &QueueName, delta: &Counts) {
        let mut inner = self.inner.lock();
        inner.changes += 1;
        if delta.is_zero() {
            inner
                .faults
                .push(format!("{queue}: told that nothing changed"));
        }
        let sum = inner.sums.entry(queue.clone()).or_default();
        *sum += delta;
        let sum = *sum;
        if has_negative(&sum) {
            inner
                .faults
                .push(format!("{queue}: below zero after {delta:?}: {sum:?}"));
        }
    }

    fn stopped(&self, why: Option<StopReason>) {
        self.inner.lock().stopped.push(why);
    }
}

fn has_negative(counts: &Counts) -> bool {
    let Counts {
        ready,
        in_unit,
        leased,
        leased_open,
        delayed,
        retrying,
        deferred,
        group_held,
        parked,
        bytes,
    } = *counts;
    let others = [
        in_unit,
        leased,
        leased_open,
        delayed,
        retrying,
        deferred,
        group_held,
        parked,
        bytes,
    ];
    ready.iter().chain(&others).any(|n| *n < 0)
}

/// A store under test.
pub struct Rig {
    harness: Rc<dyn Harness>,
    /// `None` only while it is being opened again.
    store: Option<Arc<dyn Store>>,
    told: Arc<Told>,
    queues: Vec<QueueName>,
    next_owner: AtomicU64,
}

impl Rig {
    pub fn new(harness: impl Harness + 'static) -> Self {
        Self::of(Rc::new(harness))
    }

    /// A new store of the same kind.
    pub fn fresh(&self) -> Self {
        Self::of(self.harness.clone())
    }

    fn of(harness: Rc<dyn Harness>) -> Self {
        let store = harness.open();
        let told = Arc::new(Told::default());
        store.attach(told.clone());
        Self {
            harness,
            store: Some(store),
            told,
            queues: Vec::new(),
            next_owner: AtomicU64::new(1),
        }
    }

    /// Ends the store, opens what it left, starts the ledger anew from what that says of itself,
    /// and checks it.
    pub fn reopen(&mut self, ending: Ending) {
        // The rig keeps no handle: a store may lock its home until the last one is gone.
        let store = self.store.take().expect("the rig has a store");
        let store = self.harness.reopen(store, ending);
        self.told = Arc::new(Told::default());
        self.told.inner.lock().sums = store.recovered().counts.into_iter().collect();
        store.attach(self.told.clone());
        self.store = Some(store);
        self.check();
    }

    /// The store.
    pub fn store(&self) -> &dyn Store {
        self.store.as_deref().expect("the rig has a store")
    }

    /// Defines a queue.
    pub fn define(&mut self, name: &str) -> QueueName {
        let queue = queue(name);
        self.commit(Unit {
            records: vec![record(&queue, Some("definition"))],
            ..Unit::default()
        })
        .expect("a queue can be defined");
        if !self.queues.contains(&queue) {
            self.queues.push(queue.clone());
        }
        queue
    }

    /// Somebody new to hold messages.
    pub fn owner(&self) -> OwnerId {
        OwnerId(self.next_owner.fetch_add(1, Ordering::Relaxed))
    }

    /// Commits and waits for the answer.
    pub fn commit(&self, unit: Unit) -> Result<Receipt, CommitError> {
        self.store().commit(unit).wait()
    }

    /// A put to be committed alone or in a unit.
    pub fn draft(&self, queue: &QueueName) -> Draft<'_> {
        Draft::new(self, queue)
    }

    /// Commits one plain put.
    pub fn put(&self, queue: &QueueName) -> MessageId {
        self.draft(queue).send()
    }

    /// Takes up to `max` of the next messages.
    pub fn take(&self, queue: &QueueName, owner: OwnerId, max: usize) -> Vec<Message> {
        self.store()
            .take(&Take {
                max,
                ..next(queue, owner)
            })
            .expect("a take works")
    }

    /// The ids of what a take takes.
    pub fn take_ids(&self, queue: &QueueName, owner: OwnerId, max: usize) -> Vec<MessageId> {
        ids(&self.take(queue, owner, max))
    }

    /// Takes one message for a new owner, who is answered with it.
    pub fn take_one(&self, queue: &QueueName) -> (OwnerId, Message) {
        let owner = self.owner();
        let mut taken = self.take(queue, owner, 1);
        (owner, taken.pop().expect("there is a message to take"))
    }

    /// Takes one message by its id.
    pub fn take_id(&self, queue: &QueueName, owner: OwnerId, id: MessageId) -> Option<Message> {
        let take = Take {
            select: Select::Id(id),
            ..next(queue, owner)
        };
        self.store().take(&take).expect("a take works").pop()
    }

    /// Settles one message in a unit of its own.
    pub fn settle(
        &self,
        owner: OwnerId,
        queue: &QueueName,
        id: MessageId,
        disposition: Disposition,
    ) -> Result<Receipt, CommitError> {
        self.commit(Unit {
            owner: Some(owner),
            settles: vec![settle(queue, id, disposition)],
            ..Unit::default()
        })
    }

    /// Gives one message back.
    pub fn release(&self, owner: OwnerId, queue: &QueueName, id: MessageId) {
        self.store().release(owner, &[(queue.clone(), id.sequence)]);
    }

    /// Takes the next message and settles it.
    pub fn take_and(&self, queue: &QueueName, disposition: Disposition) -> MessageId {
        let (owner, message) = self.take_one(queue);
        let id = message.header.id;
        self.settle(owner, queue, id, disposition)
            .expect("what is held can be settled");
        id
    }

    /// Claims everything that is due at `now`, in the order of ids.
    pub fn claim(&self, owner: OwnerId, now: Timestamp) -> Vec<Due> {
        let mut due = self
            .store()
            .claim_due(owner, now, usize::MAX)
            .expect("a claim works");
        due.sort_by_key(|due| due.message.header.id);
        due
    }

    /// The state of one message.
    pub fn state(&self, queue: &QueueName, id: MessageId) -> Option<MessageState> {
        self.store()
            .find(queue, id)
            .expect("a find works")
            .map(|found| found.state)
    }

    /// Everything in a queue, by pages, at a time when nothing has expired.
    pub fn everything(&self, queue: &QueueName) -> Vec<Browsed> {
        self.browse_all(queue, Timestamp(0), false)
    }

    /// Everything a browse shows.
    pub fn browse_all(&self, queue: &QueueName, now: Timestamp, ready_only: bool) -> Vec<Browsed> {
        let mut all = Vec::new();
        let mut cursor = None;
        loop {
            let page = self
                .browse(queue, cursor, PAGE, now, ready_only)
                .expect("a browse works");
            assert!(
                page.messages.len() <= PAGE,
                "a page is longer than was asked"
            );
            all.extend(page.messages);
            if page.next.is_none() {
                return all;
            }
            cursor = page.next;
        }
    }

    /// One page.
    pub fn browse(
        &self,
        queue: &QueueName,
        cursor: Option<String>,
        max: usize,
        now: Timestamp,
        ready_only: bool,
    ) -> Result<Page, StoreError> {
        self.store().browse(&Browse {
            queue: queue.clone(),
            cursor,
            max,
            now,
            ready_only,
        })
    }

    /// The counts of a queue as the manager would know them: the sum of all changes.
    pub fn counts(&self, queue: &QueueName) -> Counts {
        self.told
            .inner
            .lock()
            .sums
            .get(queue)
            .copied()
            .unwrap_or_default()
    }

    /// How many changes were told so far.
    pub fn changes(&self) -> usize {
        self.told.inner.lock().changes
    }

    /// What was told about stopping.
    pub fn stops(&self) -> Vec<Option<StopReason>> {
        self.told.inner.lock().stopped.clone()
    }

    /// Fails unless what was told is what a browse finds, in every defined queue.
    pub fn check(&self) {
        let faults = self.told.inner.lock().faults.clone();
        assert!(faults.is_empty(), "the sink was told wrongly: {faults:#?}");
        if self.store().status().stopped == Some(StopReason::Closed) {
            // Its files are closed: nothing can be looked at any more.
            return;
        }
        for queue in &self.queues {
            match self.browse(queue, None, 1, NOW, false) {
                Err(StoreError::UnknownQueue(_)) => {
                    assert!(
                        self.counts(queue).is_zero(),
                        "{queue} is deleted but counts"
                    );
                }
                _ => self.check_queue(queue),
            }
        }
    }

    fn check_queue(&self, queue: &QueueName) {
        let told = self.counts(queue);
        let mut found = tally(&self.everything(queue));
        // A browse does not say which leases are open ones; cases about leases do.
        assert!(
            (0..=found.leased).contains(&told.leased_open),
            "{queue}: {told:?}"
        );
        found.leased_open = told.leased_open;
        assert_eq!(
            told, found,
            "queue {queue}: told (left) is not what a browse finds (right)"
        );
    }
}

/// Fails unless a closed store has let go of its sink: who hears of it usually keeps it, and
/// neither would ever be dropped.
pub fn check_sink_is_let_go(harness: &impl Harness) {
    let (store, told) = (harness.open(), Arc::new(Told::default()));
    store.attach(told.clone());
    store.close();
    assert_eq!(told.inner.lock().stopped, [Some(StopReason::Closed)]);
    assert_eq!(Arc::strong_count(&told), 1);
}

/// Counts from scratch.
fn tally(messages: &[Browsed]) -> Counts {
    let mut counts = Counts::default();
    for Browsed { message, state } in messages {
        counts.bytes += i64::try_from(message.body.len()).expect("a body is not that long");
        *match state {
            MessageState::Ready => &mut counts.ready[usize::from(message.header.priority)],
            MessageState::InUnit => &mut counts.in_unit,
            MessageState::Leased(_) => &mut counts.leased,
            MessageState::Waiting(Wait::Delay, _) => &mut counts.delayed,
            MessageState::Waiting(Wait::Retry, _) => &mut counts.retrying,
            MessageState::Waiting(Wait::Defer, _) => &mut counts.deferred,
            MessageState::GroupHeld => &mut counts.group_held,
            MessageState::Parked => &mut counts.parked,
        } += 1;
    }
    counts
}

/// A take of one next message.
pub fn next(queue: &QueueName, owner: OwnerId) -> Take {
    Take {
        queue: queue.clone(),
        owner,
        select: Select::Next,
        max: 1,
        fifo: false,
        skip_suspects: false,
        now: NOW,
    }
}

/// A valid name.
pub fn queue(name: &str) -> QueueName {
    name.parse().expect("a valid queue name")
}

/// A queue's definition row.
pub fn record(queue: &QueueName, value: Option<&'static str>) -> RecordChange {
    RecordChange {
        kind: RecordKind::Queue,
        name: queue.to_string(),
        value: value.map(Bytes::from),
    }
}

/// What becomes of one message.
pub fn settle(queue: &QueueName, id: MessageId, disposition: Disposition) -> Settle {
    Settle {
        queue: queue.clone(),
        sequence: id.sequence,
        disposition,
    }
}

/// Back at `until`, uncharged.
pub fn later(wait: Wait, until: Timestamp) -> Disposition {
    Disposition::Later {
        until,
        wait,
        attempts: Attempts::default(),
    }
}

/// Leased until then by an unselective get.
pub fn lease(token: u128, until: Timestamp) -> Disposition {
    Disposition::Lease {
        until,
        token: LeaseToken(token),
        selective: false,
        attempts: Attempts::default(),
    }
}

/// Gone.
pub fn remove() -> Disposition {
    Disposition::Remove
}

/// Back at once, uncharged.
pub fn requeue() -> Disposition {
    Disposition::Requeue(Attempts::default())
}

/// Their ids.
pub fn ids(messages: &[Message]) -> Vec<MessageId> {
    messages.iter().map(|message| message.header.id).collect()
}
