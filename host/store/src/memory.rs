//! The volatile store: the reference model behind a lock, and the sink it tells.
//!
//! Keeps nothing over the end of the process, refuses puts beyond a bound of bytes, never waits.
//! Messages of any persistence are treated alike. Neighbours: `oncue_core::queue::model` has every
//! rule; [`crate::faulty`] makes it fail on request.
//!
//! More than one sink may be attached, and a restart can be played: managers are tested with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use bytes::Bytes;
use oncue_core::cursor;
use oncue_core::message::{Body, Message, MessageId, Sequence};
use oncue_core::names::QueueName;
use oncue_core::queue::model::{self, LaidOut, Model, Over, Refused, Selection, State, Want};
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{LeaseToken, OwnerId, Revision, Unit};

use crate::adaptive::AdaptiveMutex;
use crate::count::Apart;
use crate::{
    Browse, Browsed, ChangeSink, Commit, CommitError, Due, DueWhat, KnownKey, MessageState, Page,
    Recovered, Select, StopReason, Store, StoreError, StoreStatus, Take,
};

/// Bytes of all bodies in a memory store, unless its maker says otherwise.
pub const MEMORY_STORE_MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Queues that one call changes, mostly: so much room is made before the lock is taken.
const QUEUES_A_CALL: usize = 2;

/// Messages for which a take makes room before it takes the lock, at most. Tasks take fewer at
/// once.
const MESSAGES_A_TAKE: usize = 32;

/// A store that keeps everything in memory.
pub struct MemoryStore {
    recovered: Recovered,
    max_bytes: u64,
    /// The sequence of the next id. Beside the lock, because every put asks for one first.
    next: Apart<AtomicU64>,
    /// Beside the lock, so that who tells them holds up nobody.
    sinks: ArcSwap<Vec<Arc<dyn ChangeSink>>>,
    inner: AdaptiveMutex<Inner>,
}

struct Inner {
    model: Model,
    closed: bool,
}

impl MemoryStore {
    /// An empty store. `origin` goes into every message id; puts that would make all bodies
    /// together longer than `max_bytes` are answered [`CommitError::Full`].
    #[must_use]
    pub fn new(origin: u32, max_bytes: u64) -> Self {
        let recovered = Recovered {
            origin,
            ..Recovered::default()
        };
        Self::over(Model::new(origin, max_bytes), recovered, max_bytes, 1)
    }

    /// Plays the end of a host and a new start: moves everything into a new store, as a durable
    /// store would find it again. `unclean` says that the end was not by [`Store::close`]. What is
    /// left here is closed and empty.
    #[must_use]
    pub fn restarted(&self, unclean: bool) -> Self {
        let origin = self.recovered.origin;
        let mut inner = self.inner.lock();
        inner.closed = true;
        let mut model = std::mem::replace(&mut inner.model, Model::new(origin, self.max_bytes));
        model.restart();
        let counts = |queue: &QueueName| Some((queue.clone(), model.counts(queue)?));
        let recovered = Recovered {
            origin,
            records: model
                .records()
                .map(|(kind, name, row)| (kind, name.to_owned(), row.clone()))
                .collect(),
            counts: model.queues().filter_map(counts).collect(),
            unclean,
        };
        let next = self.next.0.load(Ordering::SeqCst);
        Self::over(model, recovered, self.max_bytes, next)
    }

    fn over(model: Model, recovered: Recovered, max_bytes: u64, next: u64) -> Self {
        let inner = Inner {
            model,
            closed: false,
        };
        Self {
            recovered,
            max_bytes,
            next: Apart(AtomicU64::new(next)),
            sinks: ArcSwap::default(),
            inner: AdaptiveMutex::new(inner),
        }
    }

    /// Runs one call against the model and tells the sinks what it changed.
    fn run<T>(&self, call: impl FnOnce(&mut Model) -> T) -> T {
        self.run_open(|inner| call(&mut inner.model))
    }

    /// The same with a call that asks whether the store is open. The lock is given up before the
    /// sinks are told: whom a sink wakes comes for it at once, and differences may be told in any
    /// order.
    fn run_open<T>(&self, call: impl FnOnce(&mut Inner) -> T) -> T {
        let mut changes = Vec::with_capacity(QUEUES_A_CALL);
        let mut inner = self.inner.lock();
        let answer = call(&mut inner);
        inner.model.drain_changes_into(&mut changes);
        drop(inner);
        if !changes.is_empty() {
            let sinks = self.sinks.load();
            for (queue, change) in &changes {
                for sink in sinks.iter() {
                    sink.changed(queue, change);
                }
            }
        }
        answer
    }

    /// Runs one call that changes nothing.
    fn look<T>(&self, call: impl FnOnce(&Model) -> T) -> T {
        call(&self.inner.lock().model)
    }
}

impl Store for MemoryStore {
    fn attach(&self, sink: Arc<dyn ChangeSink>) {
        self.sinks.rcu(|sinks| {
            let mut sinks = Vec::clone(sinks);
            sinks.push(Arc::clone(&sink));
            sinks
        });
    }

    fn recovered(&self) -> Recovered {
        self.recovered.clone()
    }

    fn next_id(&self) -> MessageId {
        MessageId {
            origin: self.recovered.origin,
            sequence: Sequence(self.next.0.fetch_add(1, Ordering::Relaxed)),
        }
    }

    fn take(&self, take: &Take) -> Result<Vec<Message>, StoreError> {
        let selection = match &take.select {
            Select::Next => Selection::Next,
            Select::Id(id) => Selection::Id(*id),
            Select::Correlation(id) => Selection::Correlation(id),
        };
        let want = Want {
            queue: &take.queue,
            owner: take.owner,
            selection,
            max: take.max,
            fifo: take.fifo,
            skip_suspects: take.skip_suspects,
            now: take.now,
        };
        let mut taken = Vec::with_capacity(take.max.min(MESSAGES_A_TAKE));
        if self.run(|model| model.take_into(&want, &mut taken)) {
            Ok(taken)
        } else {
            Err(StoreError::UnknownQueue(take.queue.clone()))
        }
    }

    fn release(&self, owner: OwnerId, messages: &[(QueueName, Sequence)]) {
        self.run(|model| {
            for (queue, sequence) in messages {
                model.release(owner, queue, *sequence);
            }
        });
    }

    fn commit(&self, unit: Unit) -> Commit {
        let mut laid = LaidOut::from(unit);
        let done =
            self.run_open(|inner| (!inner.closed).then(|| inner.model.commit_laid_out(&mut laid)));
        match done {
            Some(done) => Commit::done(done.map_err(CommitError::from)),
            None => Commit::refused(
                laid.unit(),
                CommitError::Stopped("it was closed".to_owned()),
            ),
        }
    }

    /// Its commits are answered at once; but messages that are fetched together are taken under
    /// one lock.
    fn pipelines(&self) -> bool {
        true
    }

    fn claim_due(
        &self,
        owner: OwnerId,
        now: Timestamp,
        max: usize,
    ) -> Result<Vec<Due>, StoreError> {
        let claimed = self.run(|model| model.claim_due(owner, now, max));
        let due = claimed.into_iter().map(|(queue, message, over)| Due {
            queue,
            message,
            what: over.into(),
        });
        Ok(due.collect())
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.look(Model::next_due)
    }

    fn take_leased(
        &self,
        owner: OwnerId,
        token: LeaseToken,
    ) -> Result<(QueueName, Message), StoreError> {
        self.run(|model| model.take_leased(owner, token))
            .ok_or(StoreError::UnknownLease)
    }

    fn take_any(
        &self,
        owner: OwnerId,
        queue: &QueueName,
        id: MessageId,
    ) -> Result<Option<Message>, StoreError> {
        Ok(self.run(|model| model.take_any(owner, queue, id)))
    }

    fn browse(&self, browse: &Browse) -> Result<Page, StoreError> {
        let list = [browse.queue.as_str()];
        let read = |text: &str| cursor::open(&list, text)?.parse::<model::Place>().ok();
        let after = match browse.cursor.as_deref() {
            Some(text) => Some(read(text).ok_or(StoreError::BadCursor)?),
            None => None,
        };
        self.run(|model| {
            let page = model.browse(
                &browse.queue,
                after,
                browse.max,
                browse.now,
                browse.ready_only,
            );
            let (messages, next) =
                page.ok_or_else(|| StoreError::UnknownQueue(browse.queue.clone()))?;
            let messages = messages.into_iter().map(browsed).collect();
            Ok(Page {
                messages,
                next: next.map(|place| cursor::seal(&list, &place.to_string())),
            })
        })
    }

    fn find(&self, queue: &QueueName, id: MessageId) -> Result<Option<Browsed>, StoreError> {
        Ok(self.look(|model| model.find(queue, id).map(browsed)))
    }

    fn read_body(&self, body: &Body, offset: u64, length: u64) -> Result<Bytes, StoreError> {
        let whole = match body {
            Body::Whole(bytes) => Some(bytes.clone()),
            Body::Stored { sequence, .. } => self.look(|model| model.body(*sequence).cloned()),
        };
        let whole = whole.ok_or(StoreError::Gone)?;
        let size = whole.len() as u64;
        let (start, end) = (offset.min(size), offset.saturating_add(length).min(size));
        let index =
            |at: u64| usize::try_from(at).expect("bounded by the length of bytes in memory");
        Ok(whole.slice(index(start)..index(end)))
    }

    fn oldest(&self, queue: &QueueName, priority: u8) -> Option<Timestamp> {
        self.look(|model| model.oldest(queue, priority))
    }

    fn key(
        &self,
        queue: &QueueName,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<KnownKey>, StoreError> {
        let known = self.look(|model| model.key(queue, key, now));
        Ok(known.map(|(id, body_digest)| KnownKey { id, body_digest }))
    }

    fn state(&self, namespace: &str, key: &str) -> Result<Option<(Bytes, Revision)>, StoreError> {
        Ok(self.look(|model| model.state(namespace, key).cloned()))
    }

    fn state_keys(
        &self,
        namespace: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, StoreError> {
        Ok(self.look(|model| {
            model
                .state_keys(namespace, after, max)
                .map(str::to_owned)
                .collect()
        }))
    }

    fn tasks(&self, before: Option<u64>, max: usize) -> Result<Vec<(u64, Bytes)>, StoreError> {
        Ok(self.look(|model| {
            model
                .tasks(before, max)
                .map(|(id, row)| (id, row.clone()))
                .collect()
        }))
    }

    fn status(&self) -> StoreStatus {
        let inner = self.inner.lock();
        StoreStatus {
            stopped: inner.closed.then_some(StopReason::Closed),
            commits: inner.model.commits(),
            volatile_bytes: inner.model.bytes(),
            ..StoreStatus::default()
        }
    }

    fn close(&self) {
        if !std::mem::replace(&mut self.inner.lock().closed, true) {
            // Let go of: they know the store, and neither would ever be dropped.
            for sink in self.sinks.swap(Arc::default()).iter() {
                sink.stopped(Some(StopReason::Closed));
            }
        }
    }
}

fn browsed((message, state): (&Message, State)) -> Browsed {
    Browsed {
        message: message.clone(),
        state: state.into(),
    }
}

impl From<State> for MessageState {
    fn from(state: State) -> Self {
        match state {
            State::Ready => Self::Ready,
            State::InUnit => Self::InUnit,
            State::Leased(until) => Self::Leased(until),
            State::Waiting(wait, until) => Self::Waiting(wait, until),
            State::GroupHeld => Self::GroupHeld,
            State::Parked => Self::Parked,
        }
    }
}

impl From<Over> for DueWhat {
    fn from(over: Over) -> Self {
        match over {
            Over::Wait(wait) => Self::Wait(wait),
            Over::Lease => Self::Lease,
            Over::Expiry => Self::Expiry,
        }
    }
}

impl From<Refused> for CommitError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Fenced => Self::Fenced,
            Refused::Conflict(key) => Self::Conflict(key),
            Refused::UnknownQueue(queue) => Self::UnknownQueue(queue),
            Refused::QueueNotEmpty(queue) => Self::QueueNotEmpty(queue),
            Refused::KeyReused { queue, key } => Self::KeyReused { queue, key },
            Refused::QueueFull { queue, depth, max } => Self::QueueFull { queue, depth, max },
            Refused::Full => Self::Full,
            Refused::Undone => Self::Undone,
        }
    }
}
