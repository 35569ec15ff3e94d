//! A store that tells how many messages have arrived in a queue, without anybody asking it: the
//! load learns of effects the moment they are committed and costs the system nothing for it.
//!
//! Everything goes to the store behind. Whoever adds a method to the `Store` trait adds it here, or
//! the benches measure its default.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use oncue_core::message::{Body, Message, MessageId, Sequence};
use oncue_core::names::QueueName;
use oncue_core::queue::Counts;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{Chain, LeaseToken, OwnerId, Revision, Unit};
use oncue_store::{
    Browse, Browsed, ChangeSink, Commit, Due, KnownKey, Page, Recovered, StopReason, Store,
    StoreError, StoreStatus, Take,
};
use tokio::sync::Notify;

/// Messages that have arrived in a queue.
#[derive(Debug)]
pub(crate) struct Arrived {
    queue: QueueName,
    count: AtomicU64,
    /// The count at which who waits is woken.
    wanted: AtomicU64,
    woken: Notify,
}

impl Arrived {
    pub(crate) fn new(queue: QueueName) -> Arc<Self> {
        Arc::new(Self {
            queue,
            count: AtomicU64::new(0),
            wanted: AtomicU64::new(u64::MAX),
            woken: Notify::new(),
        })
    }

    /// How many so far.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until there are so many. One waiter at a time.
    pub(crate) async fn reached(&self, count: u64) {
        self.wanted.store(count, Ordering::SeqCst);
        while self.count() < count {
            self.woken.notified().await;
        }
        self.wanted.store(u64::MAX, Ordering::SeqCst);
    }

    fn changed(&self, queue: &QueueName, delta: &Counts) {
        if *queue != self.queue {
            return;
        }
        let more: i64 = delta.ready.iter().sum();
        let Ok(more) = u64::try_from(more) else {
            return;
        };
        let count = self.count.fetch_add(more, Ordering::SeqCst) + more;
        if more > 0 && count >= self.wanted.load(Ordering::SeqCst) {
            self.woken.notify_one();
        }
    }
}

/// A store whose changes are watched.
struct Watched {
    behind: Arc<dyn Store>,
    arrived: Arc<Arrived>,
}

/// `behind`, watched.
pub(crate) fn watch(behind: Arc<dyn Store>, arrived: &Arc<Arrived>) -> Arc<dyn Store> {
    let arrived = Arc::clone(arrived);
    Arc::new(Watched { behind, arrived })
}

/// Tells the manager first, then counts.
struct Sink {
    behind: Arc<dyn ChangeSink>,
    arrived: Arc<Arrived>,
}

impl ChangeSink for Sink {
    fn changed(&self, queue: &QueueName, delta: &Counts) {
        self.behind.changed(queue, delta);
        self.arrived.changed(queue, delta);
    }

    fn stopped(&self, why: Option<StopReason>) {
        self.behind.stopped(why);
    }
}

impl Store for Watched {
    fn attach(&self, sink: Arc<dyn ChangeSink>) {
        let arrived = Arc::clone(&self.arrived);
        self.behind.attach(Arc::new(Sink {
            behind: sink,
            arrived,
        }));
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

    fn take_early(&self, take: &Take, chain: &Chain) -> Result<Vec<Message>, StoreError> {
        self.behind.take_early(take, chain)
    }

    fn has_early(&self, owner: OwnerId) -> bool {
        self.behind.has_early(owner)
    }

    fn release(&self, owner: OwnerId, messages: &[(QueueName, Sequence)]) {
        self.behind.release(owner, messages);
    }

    fn commit(&self, unit: Unit) -> Commit {
        self.behind.commit(unit)
    }

    fn pipelines(&self) -> bool {
        self.behind.pipelines()
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
