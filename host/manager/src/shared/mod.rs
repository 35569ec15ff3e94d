//! What the manager's loop, its tasks and its applications share: the store, the clock, and one
//! cell per queue (`cell`).
//!
//! Nothing here decides. Gates, indicators, counts and the ledger belong to the loop alone
//! ([`crate::main_loop`]); a cell only carries changes towards it.

mod cell;
mod recent;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use oncue_core::code::Code;
use oncue_core::definition::nearest;
use oncue_core::message::{MessageId, Sequence};
use oncue_core::names::QueueName;
use oncue_core::queue::Counts;
use oncue_core::quick_hash::QuickMap;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::OwnerId;
use oncue_store::{ChangeSink, CommitError, StopReason, Store};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, broadcast};

use crate::alarms::AlarmCounts;
use crate::clock::Clock;
use crate::error::ApiError;
use crate::event::{Event, Inbox};
use crate::in_hand::InHand;
use crate::metrics::Metrics;
use crate::status::HostEvent;
use crate::tasks::failures::Failures;
use crate::tasks::probe::Probe;
use crate::tasks::record::Records;
use crate::tasks::{at_hand, linger};
use crate::traces::Tracer;
use cell::{CLEAN, WAITS, WANTED};

pub(crate) use cell::Moment;
pub use cell::QueueCell;

/// Events that a slow reader of `/v1/events` may lag behind before it skips some.
const EVENT_BACKLOG: usize = 1024;

/// Queue names that a wrong one is compared with, to say which was meant.
const MAX_COMPARED_NAMES: usize = 10_000;

/// Shared by the loop, tasks and applications.
pub struct Shared {
    /// Where messages are.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The queue manager's name, in trigger messages.
    pub name: String,
    /// Where the loop waits.
    pub inbox: Arc<Inbox>,
    /// Task records, newest in memory.
    pub records: Records,
    /// What the last failed units had in hand.
    pub failures: Failures,
    /// Messages that handlers work on.
    pub in_hand: InHand,
    /// What is counted for monitoring.
    pub metrics: Metrics,
    /// Alarms in numbers.
    pub alarm_counts: AlarmCounts,
    /// What happens, for whoever watches.
    pub events: broadcast::Sender<HostEvent>,
    /// True while some queue is held at step 52 for want of slots, memory or fuel: ends quanta.
    pub starved: AtomicBool,
    /// Tasks that are on a processor at the same time, at most.
    pub(crate) workers: usize,
    /// How soon a task that is started calls its handler.
    pub(crate) begins_in: Duration,
    /// Tasks in process, of all queues.
    pub(crate) running: AtomicUsize,
    /// Those of them that are at hand ([`crate::tasks::at_hand`]).
    pub(crate) at_hand: AtomicUsize,
    /// Woken when the host begins to stop, so that waiting gets answer.
    pub stop: Notify,
    stopping: AtomicU8,
    /// Tells it from others in this process.
    number: u64,
    queues: RwLock<QuickMap<QueueName, Arc<QueueCell>>>,
    owners: AtomicU64,
    /// Held by a unit that met three state conflicts, so that it runs alone in its namespace.
    alone: Mutex<HashMap<String, Arc<tokio::sync::RwLock<()>>>>,
    /// Records traces, if anybody does.
    pub(crate) tracer: Option<Tracer>,
    /// A bench's look at guests' calls.
    pub(crate) probe: Option<Arc<dyn Probe>>,
}

/// Whether a change alone, without messages that became ready, may matter to the rule or to timers.
fn moves_time(delta: &Counts) -> bool {
    // Destructured so that a new field cannot be forgotten here.
    let Counts {
        ready: _,
        in_unit: _,
        bytes: _,
        leased,
        leased_open,
        delayed,
        retrying,
        deferred,
        group_held,
        parked,
    } = *delta;
    leased | leased_open | delayed | retrying | deferred | group_held | parked != 0
}

/// What the host is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its work.
    Running,
    /// Ending: no new task, running ones end at their next boundary.
    Draining,
    /// The deadline is over: running tasks are cut off.
    Cancelling,
}

impl Shared {
    /// Everything, around a store. The caller attaches it as the store's sink.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        name: String,
        in_hand: InHand,
        record_bytes: usize,
        (tracer, probe): (Option<Tracer>, Option<Arc<dyn Probe>>),
        (workers, begins_in): (usize, Duration),
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            name,
            inbox: Arc::new(Inbox::default()),
            records: Records::new(record_bytes),
            failures: Failures::default(),
            in_hand,
            metrics: Metrics::default(),
            alarm_counts: AlarmCounts::default(),
            events: broadcast::channel(EVENT_BACKLOG).0,
            starved: AtomicBool::new(false),
            workers,
            begins_in,
            running: AtomicUsize::new(0),
            at_hand: AtomicUsize::new(0),
            stop: Notify::new(),
            stopping: AtomicU8::new(0),
            number: recent::number(),
            queues: RwLock::default(),
            // Two managers over one store must never name the same owner.
            owners: AtomicU64::new(u64::from(fastrand::u32(..)) << 32 | 1),
            alone: Mutex::new(HashMap::new()),
            tracer,
            probe,
        })
    }

    /// A new owner of messages.
    pub fn new_owner(&self) -> OwnerId {
        OwnerId(self.owners.fetch_add(1, Ordering::Relaxed))
    }

    /// The cell of a queue, if it is defined.
    #[must_use]
    pub fn cell(&self, queue: &QueueName) -> Option<Arc<QueueCell>> {
        self.queues.read().get(queue).cloned()
    }

    /// Looks at the cell of a queue, if it is defined: one that this thread has just looked at,
    /// without a lock that all threads share.
    pub(crate) fn look_up<T>(
        &self,
        queue: &QueueName,
        look: impl FnOnce(&Arc<QueueCell>) -> T,
    ) -> Option<T> {
        recent::look_up(self.number, queue, look, || self.cell(queue))
    }

    /// Calls `look` for each queue's cell. Holds up those who define queues, and nobody else.
    pub fn each_cell(&self, mut look: impl FnMut(&QueueCell)) {
        for cell in self.queues.read().values() {
            look(cell);
        }
    }

    /// Adds a cell; before the queue's first message can be committed.
    pub fn add_cell(&self, cell: Arc<QueueCell>) {
        self.queues.write().insert(cell.name.clone(), cell);
    }

    /// Removes the cell of a deleted queue. Gets that wait on it learn that it is gone.
    pub fn remove_cell(&self, queue: &QueueName) {
        let removed = self.queues.write().remove(queue);
        if let Some(cell) = removed {
            cell.gone.store(true, Ordering::SeqCst);
            cell.arrivals.notify_waiters();
        }
    }

    /// True while this is its queue's cell: a queue that was deleted and defined again has another
    /// one.
    #[must_use]
    pub fn is_current(&self, cell: &Arc<QueueCell>) -> bool {
        !cell.is_gone()
    }

    /// The error for a queue that is not defined, with the name that was meant, if one is near.
    #[must_use]
    pub fn unknown_queue(&self, queue: &QueueName) -> ApiError {
        let queues = self.queues.read();
        let names = queues
            .keys()
            .take(MAX_COMPARED_NAMES)
            .map(QueueName::as_str);
        match nearest(queue.as_str(), names) {
            Some(meant) => ApiError::new(
                Code::UnknownQueue,
                format!(
                    "queue \"{queue}\" is not defined; did you mean \"{meant}\"? else \
                     define it first"
                ),
            ),
            None => ApiError::unknown_queue(queue),
        }
    }

    /// Names of all defined queues.
    #[must_use]
    pub fn queue_names(&self) -> Vec<QueueName> {
        self.queues.read().keys().cloned().collect()
    }

    /// Puts a queue on the ready ring, once, and asks for a turn.
    pub fn mark(&self, cell: &Arc<QueueCell>) {
        self.put_on_ring(cell, WANTED);
    }

    fn put_on_ring(&self, cell: &Arc<QueueCell>, dirty: u8) {
        if dirty == WANTED && cell.moving.marked.load(Ordering::Relaxed) == 0 {
            // First the one that is read first: a mark that is seen is whole.
            let micros = self.metrics.micros();
            cell.moving.marked_micros.store(micros, Ordering::Relaxed);
            cell.moving.marked.store(self.now().0, Ordering::Relaxed);
        }
        let before = cell.moving.dirty.fetch_max(dirty, Ordering::SeqCst);
        if before == CLEAN {
            self.inbox.ready(Arc::clone(cell), dirty == WANTED);
        } else if before < dirty {
            self.inbox.nudge();
        }
    }

    /// Takes a change over; answers the cell when messages became ready and waiting gets must know.
    fn cell_changed(&self, cell: &Arc<QueueCell>, delta: &Counts) -> Option<Arc<QueueCell>> {
        let depth = delta.depth();
        if depth != 0 {
            cell.moving.depth.fetch_add(depth, Ordering::Relaxed);
        }
        if depth < 0 {
            cell.moving.removals.fetch_add(1, Ordering::Relaxed);
        }
        *cell.moving.delta.lock() += delta;
        let ready = delta.ready.iter().sum::<i64>();
        if ready != 0 {
            cell.moving.ready.fetch_add(ready, Ordering::SeqCst);
        }
        let came = delta.ready.iter().any(|n| *n > 0);
        let heeded = || came && cell.heeds_messages.load(Ordering::SeqCst);
        if moves_time(delta) {
            self.put_on_ring(cell, WANTED);
        } else if came && linger::is_met(cell, delta) {
            self.put_on_ring(cell, WAITS);
        } else if heeded() {
            let dirty = if at_hand::is_left(self, cell) {
                WAITS
            } else {
                WANTED
            };
            self.put_on_ring(cell, dirty);
        } else {
            self.put_on_ring(cell, WAITS);
            // Looked at again with the cell on the ring: either the loop, which begins to heed
            // messages, sees it there, or this sees that the loop does.
            if heeded() {
                self.put_on_ring(cell, WANTED);
            }
        }
        came.then(|| Arc::clone(cell))
    }

    /// The rule was asked for a queue: whether messages that become ready there can change its
    /// answer. While they cannot, they do not wake the loop.
    pub(crate) fn heed_messages(&self, cell: &QueueCell, heed: bool) {
        if cell.heeds_messages.load(Ordering::Relaxed) == heed {
            return;
        }
        cell.heeds_messages.store(heed, Ordering::SeqCst);
        // Messages that came in between went by the old answer: they are looked at again.
        if heed && cell.moving.dirty.load(Ordering::SeqCst) != CLEAN {
            self.inbox.nudge();
        }
    }

    /// A unit of work was refused: where that was for want of room, as
    /// [`Self::refused_for_room`].
    pub(crate) fn note_refusal(&self, error: &CommitError) {
        if let CommitError::QueueFull { queue, .. } = error {
            self.refused_for_room(queue);
        }
    }

    /// A put was refused because the queue is full: its alarm is asked in the next turn.
    pub fn refused_for_room(&self, queue: &QueueName) {
        if let Some(cell) = self.cell(queue)
            && !cell.refused.swap(true, Ordering::Relaxed)
        {
            self.put_on_ring(&cell, WAITS);
        }
    }

    /// Tells whoever watches; nothing is made when nobody does.
    pub fn tell(&self, event: impl FnOnce() -> HostEvent) {
        if self.events.receiver_count() > 0 {
            // The last one may just have gone.
            let _ = self.events.send(event());
        }
    }

    /// A message is set aside because nothing can take it: a person must act.
    pub fn alarm_parked(&self, queue: &QueueName, message: MessageId) {
        tracing::error!(
            %queue, %message,
            "message parked: neither its backout queue nor the dead-letter queue can take it"
        );
        self.tell(|| HostEvent::Parked {
            queue: queue.clone(),
            message,
            time: self.now(),
        });
    }

    /// What the host is doing.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.stopping.load(Ordering::SeqCst) {
            0 => Phase::Running,
            1 => Phase::Draining,
            _ => Phase::Cancelling,
        }
    }

    /// Moves the host towards its end; never back.
    pub fn enter(&self, phase: Phase) {
        let value = match phase {
            Phase::Running => 0,
            Phase::Draining => 1,
            Phase::Cancelling => 2,
        };
        self.stopping.fetch_max(value, Ordering::SeqCst);
        self.stop.notify_waiters();
    }

    /// Resolves once the host is at `phase` or past it.
    pub async fn reached(&self, phase: Phase) {
        loop {
            let woken = self.stop.notified();
            let mut woken = std::pin::pin!(woken);
            // Registered before the look, so a change in between is not missed.
            woken.as_mut().enable();
            let now = self.phase();
            if now == phase || now == Phase::Cancelling {
                return;
            }
            woken.await;
        }
    }

    /// Messages of a queue were settled by someone else than a task: what their failed units
    /// limited is over.
    pub fn settled(&self, queue: &QueueName, messages: impl IntoIterator<Item = Sequence>) {
        if let Some(cell) = self.cell(queue) {
            cell.settled(messages);
        }
    }

    /// The lock by which a unit runs alone in a namespace: it holds it for writing from before its
    /// first read, and other units hold it for reading while they commit. One per namespace that
    /// ever met three conflicts.
    pub fn alone(&self, namespace: &str) -> Arc<tokio::sync::RwLock<()>> {
        Arc::clone(self.alone.lock().entry(namespace.to_owned()).or_default())
    }

    /// That lock, when a unit of the namespace ever had to run alone.
    #[must_use]
    pub fn known_alone(&self, namespace: &str) -> Option<Arc<tokio::sync::RwLock<()>>> {
        self.alone.lock().get(namespace).cloned()
    }

    /// Now by the clock of spans, in microseconds since the Unix epoch; 0 when nobody traces.
    pub(crate) fn trace_time(&self) -> u64 {
        let time = |tracer: &Tracer| tracer.time(self.metrics.micros(), self.now());
        self.tracer.as_ref().map_or(0, time)
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl ChangeSink for Shared {
    fn changed(&self, queue: &QueueName, delta: &Counts) {
        let changed = self.look_up(queue, |cell| self.cell_changed(cell, delta));
        match changed {
            Some(None) => {}
            // Out of the look: whom it wakes may look up queues, too.
            Some(Some(cell)) => cell.arrivals.notify_waiters(),
            None => tracing::error!(queue = %queue, "a queue that is not defined changed"),
        }
    }

    fn stopped(&self, why: Option<StopReason>) {
        self.inbox.push(Event::StoreStopped(why));
    }
}
