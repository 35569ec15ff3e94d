//! The seam between the queue manager and the disk: units of work in, messages and counts out.
//!
//! A store knows no policy: not when to trigger, not how often to retry. It applies a [`Unit`]
//! atomically or not at all, keeps who has taken what, and tells a [`ChangeSink`] how each queue's
//! [`Counts`] changed. Two stores stand behind the trait today: [`memory`] (the model, and the
//! volatile store) and [`embedded`] (fjall). The contract that both must meet is the test suite in
//! `tests/contract`.
//!
//! Refuses to do: answer the console's questions. Listing and paging of queues go through the
//! manager's snapshots.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod adaptive;
pub mod count;
pub mod embedded;
mod fail_point;
pub mod faulty;
pub mod histogram;
pub mod lock_file;
pub mod memory;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use oncue_core::message::{Body, Message, MessageId, Sequence};
use oncue_core::names::QueueName;
use oncue_core::queue::Counts;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{
    Chain, LeaseToken, OwnerId, Receipt, RecordKind, Revision, Unit, Wait,
};

use histogram::Distribution;

/// A durable (or volatile) home of messages, state, definitions and task records.
///
/// Calls may come from any thread. `take`, `release` and `claim_due` act at once in memory and
/// never wait for the disk beyond reading; `commit` answers when the unit is durable. Commits are
/// applied in the order of submission. After a change to a queue's counts has been made visible,
/// and before the call or commit that made it answers, the sink has been told.
pub trait Store: Send + Sync + 'static {
    /// Names whom to tell about changes. Called once, before anything else but `recovered`.
    fn attach(&self, sink: Arc<dyn ChangeSink>);

    /// What stood in the store when it was opened.
    fn recovered(&self) -> Recovered;

    /// The same, for whoever takes it over: the store may keep nothing of it but its own number and
    /// how the last end was. There may be very many queues.
    fn take_recovered(&self) -> Recovered {
        self.recovered()
    }

    /// The id of the next message. Never the same twice, over restarts too.
    fn next_id(&self) -> MessageId;

    /// Takes up to `max` messages for `take.owner`, in order: by priority, then arrival (or arrival
    /// alone), at most one member of a group. They leave `ready` for `in_unit`, and their
    /// groups' other members become `group_held`. Expired messages and, where asked, suspects
    /// are passed over. Also a store that has stopped writing answers.
    ///
    /// # Errors
    /// [`StoreError::UnknownQueue`], or a failed read.
    fn take(&self, take: &Take) -> Result<Vec<Message>, StoreError>;

    /// As [`Store::take`], and behind what can be taken also messages that were put and are not yet
    /// durable, for a task whose units follow them: it commits what it does as units of `chain`,
    /// which are durable only after those messages, or together with them. When the put of one is
    /// refused the chain is cut. Only messages without a key, group, delay, end of life or
    /// correlation id are taken early, and none that stands behind one of the others.
    ///
    /// # Errors
    /// As [`Store::take`].
    fn take_early(&self, take: &Take, _chain: &Chain) -> Result<Vec<Message>, StoreError> {
        self.take(take)
    }

    /// Whether `owner` holds a message that is not yet durable. Once a unit of its chain is
    /// answered that was submitted afterwards and settles nothing, it is, or the chain is cut.
    fn has_early(&self, _owner: OwnerId) -> bool {
        false
    }

    /// Gives taken messages back as they were, where they were. Nothing is written. Those that
    /// `owner` does not hold are passed over, so a second release is harmless.
    fn release(&self, owner: OwnerId, messages: &[(QueueName, Sequence)]);

    /// Applies a unit, all or nothing, durably. The messages of a refused unit stay with their
    /// owner. Once a unit of a chain was refused, so is every later one of that chain. Never waits:
    /// what is submitted faster than it is written waits in memory, and a unit that says so is
    /// refused with [`CommitError::Busy`] when that is too much.
    fn commit(&self, unit: Unit) -> Commit;

    /// True when it pays to fetch messages ahead of their calls, and to submit the next unit of a
    /// chain before this one is answered: commits are answered in order.
    fn pipelines(&self) -> bool {
        false
    }

    /// Finds up to `max` messages whose time has come at `now`, and takes them for `owner`: delays,
    /// retries and deferrals that are over, leases that ended, messages that expired (whatever
    /// their state, unless taken by another). They count as `in_unit` from now on; the caller
    /// settles them by a commit.
    ///
    /// # Errors
    /// A failed read.
    fn claim_due(&self, owner: OwnerId, now: Timestamp, max: usize)
    -> Result<Vec<Due>, StoreError>;

    /// When the next message will be due or expire; a time already past when some are now. `None`
    /// when none wait.
    fn next_due(&self) -> Option<Timestamp>;

    /// Takes one leased message for `owner` by its token, whether or not its time is over.
    ///
    /// # Errors
    /// [`StoreError::UnknownLease`] when it was settled, taken back or never given.
    fn take_leased(
        &self,
        owner: OwnerId,
        token: LeaseToken,
    ) -> Result<(QueueName, Message), StoreError>;

    /// Takes one message for `owner` by its id whatever its state (ready, waiting, leased, parked),
    /// unless another unit holds it. `None` when it is not in that queue or is held.
    ///
    /// # Errors
    /// A failed read.
    fn take_any(
        &self,
        owner: OwnerId,
        queue: &QueueName,
        id: MessageId,
    ) -> Result<Option<Message>, StoreError>;

    /// Looks at committed messages in the order they would be taken, ready ones first, then the
    /// others by state.
    ///
    /// # Errors
    /// [`StoreError::UnknownQueue`], [`StoreError::BadCursor`], or a failed read.
    fn browse(&self, browse: &Browse) -> Result<Page, StoreError>;

    /// Looks at one committed message.
    ///
    /// # Errors
    /// A failed read.
    fn find(&self, queue: &QueueName, id: MessageId) -> Result<Option<Browsed>, StoreError>;

    /// Reads `length` bytes of a body from `offset`; less at its end, none past it.
    ///
    /// # Errors
    /// [`StoreError::Gone`] when the message was settled meanwhile, or a failed read.
    fn read_body(&self, body: &Body, offset: u64, length: u64) -> Result<Bytes, StoreError>;

    /// When the oldest ready message of at least `priority` was put. What `trigger-max-wait`
    /// measures.
    fn oldest(&self, queue: &QueueName, priority: u8) -> Option<Timestamp>;

    /// What an idempotency key stands for in a queue, if it is still remembered at `now`.
    ///
    /// # Errors
    /// A failed read.
    fn key(
        &self,
        queue: &QueueName,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<KnownKey>, StoreError>;

    /// The present value of a state key.
    ///
    /// # Errors
    /// A failed read.
    fn state(&self, namespace: &str, key: &str) -> Result<Option<(Bytes, Revision)>, StoreError>;

    /// Up to `max` state keys of a namespace after `after`, in order.
    ///
    /// # Errors
    /// A failed read.
    fn state_keys(
        &self,
        namespace: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, StoreError>;

    /// Up to `max` kept task records, newest first, with ids below `before`.
    ///
    /// # Errors
    /// A failed read.
    fn tasks(&self, before: Option<u64>, max: usize) -> Result<Vec<(u64, Bytes)>, StoreError>;

    /// Health, in numbers.
    fn status(&self) -> StoreStatus;

    /// Ends the store: waits for submitted commits, writes cursors, closes files. Later commits are
    /// refused.
    fn close(&self);
}

/// Who is told how queues changed.
pub trait ChangeSink: Send + Sync + 'static {
    /// `queue`'s counts changed by `delta`. May be called with the store's lock held: must be quick
    /// and must not call the store. Of changes at the same time the later may be told first:
    /// differences commute.
    fn changed(&self, queue: &QueueName, delta: &Counts);

    /// The store can no longer write (`Some(why)`), or can again (`None`).
    fn stopped(&self, why: Option<StopReason>);
}

/// What to take.
#[derive(Clone, Debug)]
pub struct Take {
    /// From which queue.
    pub queue: QueueName,
    /// For whom.
    pub owner: OwnerId,
    /// Which.
    pub select: Select,
    /// At most so many.
    pub max: usize,
    /// Arrival order alone, whatever the priorities (`delivery = "fifo"`).
    pub fifo: bool,
    /// Pass over suspects: messages that were in hand at an unclean end of the host.
    pub skip_suspects: bool,
    /// What has expired by now is passed over.
    pub now: Timestamp,
}

/// Which messages a take wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// The next ones.
    Next,
    /// That one.
    Id(MessageId),
    /// The next ones with this correlation id.
    Correlation(String),
}

/// A message whose time has come, taken for the caller of `claim_due`.
#[derive(Clone, Debug)]
pub struct Due {
    /// Where it is.
    pub queue: QueueName,
    /// The message.
    pub message: Message,
    /// What is over.
    pub what: DueWhat,
}

/// What came due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueWhat {
    /// Its wait; it may be taken now.
    Wait(Wait),
    /// Its lease.
    Lease,
    /// Its life.
    Expiry,
}

/// What to browse.
#[derive(Clone, Debug)]
pub struct Browse {
    /// Which queue.
    pub queue: QueueName,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// At most so many.
    pub max: usize,
    /// What has expired by now is passed over.
    pub now: Timestamp,
    /// Only ready messages (what a handler may see), not those that wait.
    pub ready_only: bool,
}

/// One page of a browse.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The messages.
    pub messages: Vec<Browsed>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<String>,
}

/// A message looked at, not taken.
#[derive(Clone, Debug)]
pub struct Browsed {
    /// The message.
    pub message: Message,
    /// Why it can or cannot be taken now.
    pub state: MessageState,
}

/// The state of a committed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageState {
    /// May be taken.
    Ready,
    /// In a task's open unit.
    InUnit,
    /// Leased until then.
    Leased(Timestamp),
    /// Waiting until then.
    Waiting(Wait, Timestamp),
    /// Waiting for another member of its group.
    GroupHeld,
    /// Set aside.
    Parked,
}

/// What an idempotency key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownKey {
    /// The first put's id.
    pub id: MessageId,
    /// The first put's digest.
    pub body_digest: Option<[u8; 32]>,
}

/// What stood in the store when it was opened.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// The store's own number, in every message id it makes.
    pub origin: u32,
    /// Every definition row.
    pub records: Vec<(RecordKind, String, Bytes)>,
    /// Every queue's counts. Messages that were taken at the end are ready again.
    pub counts: Vec<(QueueName, Counts)>,
    /// True when the last end was not by [`Store::close`].
    pub unclean: bool,
}

/// Health, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Why it does not write, when it does not.
    pub stopped: Option<StopReason>,
    /// Bytes on disk.
    pub disk_used: u64,
    /// Bytes free on that disk; `None` when there is no disk.
    pub disk_free: Option<u64>,
    /// Commits so far.
    pub commits: u64,
    /// Syncs so far; less than commits under load, by group commit.
    pub syncs: u64,
    /// Bytes of non-persistent bodies in memory.
    pub volatile_bytes: u64,
    /// How long syncs took.
    pub sync_times: Distribution,
}

/// Why a store does not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The disk is full, or nearly: puts are refused, and it opens again by itself when there is
    /// room.
    Full,
    /// A sync failed: what is on disk is unknown until a restart has read it back.
    SyncFailed,
    /// The store was closed.
    Closed,
}

/// Why a read or a take failed.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// No such queue.
    #[error("queue \"{0}\" is not defined; define it first [unknown-queue]")]
    UnknownQueue(QueueName),
    /// No such lease.
    #[error(
        "the lease is not known: it was settled, taken back at its end, or never given \
         [unknown-lease]"
    )]
    UnknownLease,
    /// The message is no longer there.
    #[error("the message is gone: it was settled meanwhile [unknown-message]")]
    Gone,
    /// The cursor was not made by this store.
    #[error(
        "the cursor is not one that a browse of this queue gave; start without it [invalid-cursor]"
    )]
    BadCursor,
    /// A record on disk is not what was written.
    #[error(
        "the store is damaged: {0}; keep the directory, start with a copy or with \
         --accept-loss [store-corrupt]"
    )]
    Corrupt(String),
    /// The engine failed.
    #[error("the store cannot read: {0} [store-stopped]")]
    Unavailable(String),
}

/// Why a unit was not applied. Nothing of it is visible, except after [`CommitError::Unknown`].
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommitError {
    /// No such queue.
    #[error("queue \"{0}\" is not defined; define it first [unknown-queue]")]
    UnknownQueue(QueueName),
    /// A put met the queue's bound.
    #[error(
        "queue \"{queue}\" is full (depth {depth} of {max}); raise max-depth or drain it \
         [queue-full]"
    )]
    QueueFull {
        /// Which.
        queue: QueueName,
        /// Messages in it.
        depth: u64,
        /// Its `max-depth`.
        max: u64,
    },
    /// The key was used for another message.
    #[error(
        "idempotency key \"{key}\" was used in queue \"{queue}\" for another message; \
         use a new key [duplicate-key]"
    )]
    KeyReused {
        /// In which queue.
        queue: QueueName,
        /// The key.
        key: String,
    },
    /// A state key, or for a handler an idempotency key, was changed by an earlier commit.
    #[error("state \"{0}\" was changed by another unit of work; run again [state-conflict]")]
    Conflict(String),
    /// A message to settle is no longer held by the owner.
    #[error("the unit of work no longer holds its messages [state-conflict]")]
    Fenced,
    /// The queue cannot be deleted.
    #[error("queue \"{0}\" is not empty; clear it first [queue-not-empty]")]
    QueueNotEmpty(QueueName),
    /// An earlier unit of its chain was refused.
    #[error(
        "an earlier unit of work of the same task was refused, and this one is undone with it; \
         run again [state-conflict]"
    )]
    Undone,
    /// Too much waits for the disk already. Nothing of it was kept.
    #[error(
        "{units} units of work with {bytes} bytes wait to be written, and no put is taken on top \
         of {units_max} units or {bytes_max} bytes; put it again later [store-busy]"
    )]
    Busy {
        /// Units that wait.
        units: usize,
        /// The most that may.
        units_max: usize,
        /// Their bytes.
        bytes: u64,
        /// The most that may wait.
        bytes_max: u64,
    },
    /// The disk is full. Nothing was written.
    #[error("the store is full; free disk space [store-full]")]
    Full,
    /// The store does not write any more. Nothing was written.
    #[error("the store has stopped writing: {0} [store-stopped]")]
    Stopped(String),
    /// A sync failed: the unit may or may not be there after the restart.
    #[error("it is unknown whether the unit is durable: {0}; restart, then look [commit-unknown]")]
    Unknown(String),
}

/// A commit under way. Await it, or [`Commit::wait`] on a thread that may block.
#[must_use = "a commit that nobody waits for may have been refused"]
#[derive(Debug)]
pub struct Commit(CommitState);

#[derive(Debug)]
enum CommitState {
    Done(Option<Result<Receipt, CommitError>>),
    Waiting(tokio::sync::oneshot::Receiver<Result<Receipt, CommitError>>),
}

/// The other end of a [`Commit`]. Whatever is not answered well cuts the unit's chain, before the
/// answer can be seen.
#[derive(Debug)]
pub struct CommitAnswer {
    sender: Option<tokio::sync::oneshot::Sender<Result<Receipt, CommitError>>>,
    chain: Option<Chain>,
}

impl CommitAnswer {
    /// Answers. Whoever gave the commit up does not want the answer; that is its choice.
    pub fn send(mut self, result: Result<Receipt, CommitError>) {
        if let (Err(_), Some(chain)) = (&result, &self.chain) {
            chain.cut();
        }
        if let Some(sender) = self.sender.take() {
            let _ = sender.send(result);
        }
    }
}

impl Drop for CommitAnswer {
    fn drop(&mut self) {
        if let (Some(_), Some(chain)) = (&self.sender, &self.chain) {
            chain.cut();
        }
    }
}

impl Commit {
    /// A commit that is already answered.
    pub fn done(result: Result<Receipt, CommitError>) -> Self {
        Self(CommitState::Done(Some(result)))
    }

    /// A commit of a unit that is refused at once, which cuts its chain.
    pub fn refused(unit: &Unit, error: CommitError) -> Self {
        if let Some(chain) = &unit.chain {
            chain.cut();
        }
        Self::done(Err(error))
    }

    /// A commit of `unit` and the end by which it is answered. Dropping that end answers
    /// [`CommitError::Unknown`].
    pub fn pending(unit: &Unit) -> (CommitAnswer, Self) {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let answer = CommitAnswer {
            sender: Some(sender),
            chain: unit.chain.clone(),
        };
        (answer, Self(CommitState::Waiting(receiver)))
    }

    /// The answer, if it is there; afterwards the commit has been answered.
    pub fn try_answer(&mut self) -> Option<Result<Receipt, CommitError>> {
        match &mut self.0 {
            CommitState::Done(result) => Some(result.take().unwrap_or_else(|| Err(lost()))),
            CommitState::Waiting(receiver) => match receiver.try_recv() {
                Ok(answer) => Some(answer),
                Err(tokio::sync::oneshot::error::TryRecvError::Empty) => None,
                Err(tokio::sync::oneshot::error::TryRecvError::Closed) => Some(Err(lost())),
            },
        }
    }

    /// Blocks the thread until the commit is answered. Not for use inside an async runtime.
    ///
    /// # Errors
    /// As the commit.
    pub fn wait(self) -> Result<Receipt, CommitError> {
        match self.0 {
            CommitState::Done(result) => result.unwrap_or_else(|| Err(lost())),
            CommitState::Waiting(receiver) => {
                receiver.blocking_recv().unwrap_or_else(|_| Err(lost()))
            }
        }
    }
}

impl Future for Commit {
    type Output = Result<Receipt, CommitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            CommitState::Done(result) => Poll::Ready(result.take().unwrap_or_else(|| Err(lost()))),
            CommitState::Waiting(receiver) => Pin::new(receiver)
                .poll(context)
                .map(|answer| answer.unwrap_or_else(|_| Err(lost()))),
        }
    }
}

fn lost() -> CommitError {
    CommitError::Unknown("the store ended before it answered".to_owned())
}
