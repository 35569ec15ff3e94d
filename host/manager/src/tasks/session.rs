//! A running task as its host sees it: the open unit of work, gets and puts on the guest's behalf,
//! and the end.
//!
//! Everything a handler does goes through here and into one unit of work, which [`super::settle`]
//! commits or undoes. Grants are checked here: a sandbox that translates calls faithfully cannot
//! give a guest more.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use oncue_core::message::Message;
use oncue_core::names::QueueName;
use oncue_core::outcome::Outcome;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::OwnerId;
use oncue_store::{Browse, Page, Select, Take};
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedRwLockWriteGuard};

use super::at_hand::AtHand;
use super::open_unit::OpenUnit;
use super::pipeline::{Pipeline, may_pipeline};
use super::port::{GetOptions, Got, MAX_WAIT, PortError};
use super::probe::SessionCall;
use super::record::{Progress, TaskEnd};
use super::{Delivered, Refusal, TaskCost, TaskSpec};
use crate::event::Event;
use crate::shared::{Moment, Phase, QueueCell, Shared};
use crate::traces::call::TriggerTrace;

/// Messages of one browse page for a guest.
pub const MAX_BROWSE: u32 = 100;

/// Different refusals kept in one task record.
const MAX_REFUSALS: usize = 32;

/// A running task. Shared between its host and the manager; the unit of work inside belongs to the
/// one task.
pub struct TaskSession {
    pub(crate) shared: Arc<Shared>,
    pub(crate) spec: TaskSpec,
    pub(crate) cell: Arc<QueueCell>,
    pub(crate) unit: Mutex<OpenUnit>,
    /// Units under way and messages fetched ahead. Locked after `unit`, never before it.
    pub(crate) pipeline: Mutex<Pipeline>,
    /// Units may be submitted before the last one is durable.
    pub(crate) pipelines: bool,
    pub(crate) progress: Mutex<Progress>,
    pub(crate) started: Timestamp,
    /// When the change came that triggered, by [`Metrics::micros`](crate::metrics::Metrics); 0 once
    /// the guest was entered, or for none.
    event_micros: AtomicU64,
    /// The same, kept for its trace.
    pub(crate) event_began: AtomicU64,
    /// The trigger in the trace of the task's first recorded message.
    pub(crate) traced: Mutex<Option<TriggerTrace>>,
    /// Set by the manager: end at the next unit boundary.
    boundary_stop: AtomicBool,
    boundary: Notify,
    first_answered: AtomicBool,
    /// It has looked for a message at least once.
    tried: AtomicBool,
    /// Messages settled by units that this task has submitted, for the quantum.
    pub(crate) served: AtomicU32,
    /// Fuel burnt so far, for fairness.
    pub(crate) fuel: AtomicU64,
    /// Held while this task's unit runs alone in its namespace.
    pub(crate) alone: Mutex<Option<OwnedRwLockWriteGuard<()>>>,
    /// Requests made with no message in hand: their ordinals, over all units of the task.
    pub(crate) requests: AtomicU32,
    /// Set by the manager: the queue that a request waits for cannot start beside this task.
    giving_way: AtomicBool,
    refusals: Mutex<BTreeMap<String, u64>>,
    /// Texts that must not stand in the record, by their names.
    hidden: OnceLock<Vec<(String, String)>>,
    finished: AtomicBool,
    pub(crate) at_hand: AtHand,
}

impl std::fmt::Debug for TaskSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskSession")
            .field("task", &self.spec.id)
            .finish_non_exhaustive()
    }
}

/// Shortest text that is hidden, in bytes: a shorter one would be found everywhere.
const MIN_HIDDEN: usize = 8;

/// Messages after which a task gives way to queues that are held for want of resources.
pub const QUANTUM_MESSAGES: u32 = 256;

/// Milliseconds after which it does.
pub const QUANTUM_MILLIS: u64 = 100;

impl TaskSession {
    /// A session for a task that is about to start.
    #[must_use]
    pub fn new(shared: Arc<Shared>, cell: Arc<QueueCell>, mut spec: TaskSpec) -> Arc<Self> {
        // Each message that it has bears the name.
        spec.queue = spec.queue.apart();
        let owner = shared.new_owner();
        let started = shared.now();
        shared.running.fetch_add(1, Ordering::SeqCst);
        Arc::new(Self {
            unit: Mutex::new(OpenUnit::new(owner)),
            pipeline: Mutex::new(Pipeline::new(owner)),
            pipelines: may_pipeline(&shared, &spec),
            progress: Mutex::new(Progress::default()),
            shared,
            spec,
            cell,
            started,
            event_micros: AtomicU64::new(0),
            event_began: AtomicU64::new(0),
            traced: Mutex::new(None),
            boundary_stop: AtomicBool::new(false),
            boundary: Notify::new(),
            first_answered: AtomicBool::new(false),
            tried: AtomicBool::new(false),
            served: AtomicU32::new(0),
            fuel: AtomicU64::new(0),
            alone: Mutex::new(None),
            requests: AtomicU32::new(0),
            giving_way: AtomicBool::new(false),
            refusals: Mutex::new(BTreeMap::new()),
            hidden: OnceLock::new(),
            finished: AtomicBool::new(false),
            at_hand: AtHand::default(),
        })
    }

    /// What is run.
    #[must_use]
    pub fn spec(&self) -> &TaskSpec {
        &self.spec
    }

    /// The change that triggered came then.
    pub(crate) fn begun_by(&self, event: Moment) {
        self.event_micros.store(event.micros, Ordering::Relaxed);
        self.event_began.store(event.micros, Ordering::Relaxed);
    }

    /// The guest is about to be entered: its instance is made, its handler not yet called.
    pub fn guest_begins(&self) {
        // Only the task itself asks, so it sees its own change.
        let event = self.event_micros.load(Ordering::Relaxed);
        if event > 0 {
            self.event_micros.store(0, Ordering::Relaxed);
            let metrics = &self.shared.metrics;
            let waited = metrics.micros().saturating_sub(event);
            metrics.start_times.record_micros(waited);
        }
    }

    /// Whose state the task reads and writes.
    #[must_use]
    pub(crate) fn namespace(&self) -> &str {
        self.spec.component.plugin.as_str()
    }

    /// Asks the task to end at its next unit boundary, and wakes a get that waits to begin one.
    pub fn stop_at_boundary(&self) {
        self.boundary_stop.store(true, Ordering::SeqCst);
        self.boundary.notify_waiters();
    }

    /// Has a get that waits look again whether the task should end: the quantum may be spent.
    pub(crate) fn look_again(&self) {
        self.boundary.notify_waiters();
    }

    /// Ends a request that waits: what it waits for cannot start beside this task.
    pub(crate) fn give_way(&self) {
        self.giving_way.store(true, Ordering::SeqCst);
        self.boundary.notify_waiters();
    }

    /// True when a request of this task was ended so.
    pub(crate) fn is_giving_way(&self) -> bool {
        self.giving_way.load(Ordering::SeqCst)
    }

    /// Woken by [`Self::stop_at_boundary`], [`Self::look_again`] and [`Self::give_way`].
    pub(crate) fn boundary(&self) -> &Notify {
        &self.boundary
    }

    /// True when no further unit should begin: the manager asked, the host is stopping, the task
    /// deadline is over, or the quantum is spent while another queue is held for want of resources.
    #[must_use]
    pub fn should_end(&self) -> bool {
        if self.boundary_stop.load(Ordering::SeqCst) || self.shared.phase() != Phase::Running {
            return true;
        }
        let ran = self.shared.now().since(self.started);
        if ran >= self.spec.attributes.task_deadline {
            return true;
        }
        let served = self.served.load(Ordering::Relaxed);
        // The first look for a message is never cut off: on a busy host a task may wait longer for
        // its worker than its quantum lasts, and would else end with nothing done, again and again.
        let tried = self.tried.load(Ordering::Relaxed);
        let spent = served >= QUANTUM_MESSAGES || (tried && ran >= QUANTUM_MILLIS);
        spent && self.shared.starved.load(Ordering::Relaxed)
    }

    /// True when the host cuts running tasks off now.
    #[must_use]
    pub fn stop_requested(&self) -> bool {
        self.shared.phase() == Phase::Cancelling
    }

    /// Resolves when the host cuts running tasks off: the guest is ended, nothing is charged.
    pub async fn stopped(&self) {
        self.shared.reached(Phase::Cancelling).await;
    }

    /// Texts, by their names, that must not stand in the record: secrets of the task.
    pub fn hide(&self, texts: Vec<(String, String)>) {
        if !texts.is_empty() {
            // A task is given its secrets once, when it starts.
            let _ = self.hidden.set(texts);
        }
    }

    /// Notes that something was asked for without a grant.
    pub fn refused(&self, what: &str) {
        let mut plain = std::borrow::Cow::Borrowed(what);
        for (name, text) in self.hidden.get().into_iter().flatten() {
            if text.len() >= MIN_HIDDEN && plain.contains(text.as_str()) {
                plain = plain
                    .replace(text.as_str(), &format!("[secret {name}]"))
                    .into();
            }
        }
        let what = &*plain;
        let mut refusals = self.refusals.lock();
        if refusals.len() < MAX_REFUSALS || refusals.contains_key(what) {
            *refusals.entry(what.to_owned()).or_default() += 1;
        }
    }

    /// The cell of a queue that the task may use so; a refusal is recorded.
    pub(crate) fn granted(
        &self,
        verb: &str,
        granted: bool,
        queue: &QueueName,
    ) -> Result<Arc<QueueCell>, PortError> {
        if !granted {
            self.refused(&format!("{verb} {queue}"));
            return Err(PortError::NotGranted(format!(
                "process \"{}\" has no grant to {verb} queue \"{queue}\"; add it to grants.{verb} \
                 [not-granted]",
                self.spec.process
            )));
        }
        let cell = self.shared.look_up(queue, Arc::clone);
        cell.ok_or_else(|| {
            PortError::UnknownQueue(format!(
                "queue \"{queue}\" is not defined; define it first [unknown-queue]"
            ))
        })
    }

    fn may_browse(&self, queue: &QueueName) -> bool {
        *queue == self.spec.queue || self.spec.attributes.grants.may_browse(queue)
    }

    /// Gets a message under syncpoint.
    ///
    /// # Errors
    /// See [`PortError`].
    pub async fn get(&self, options: GetOptions) -> Result<Got, PortError> {
        let queue = options
            .queue
            .clone()
            .unwrap_or_else(|| self.spec.queue.clone());
        self.probe(SessionCall::Get(&queue))?;
        let granted = queue == self.spec.queue || self.spec.attributes.grants.may_get(&queue);
        let cell = self.granted("get", granted, &queue)?;
        self.guest_catches_up().await?;
        if self.spec.component.style.works_the_queue() && self.unit.lock().taken.is_empty() {
            let conflicts = self.cell.conflicts.load(Ordering::Relaxed);
            self.run_alone_after(conflicts).await;
        }
        let wait = options.wait.unwrap_or(0).min(MAX_WAIT);
        let limit = std::time::Duration::from_millis(wait);
        let answer = if wait == 0 {
            self.try_get(&cell, &options)
        } else {
            tokio::time::timeout(limit, self.get_waiting(&cell, &options))
                .await
                .unwrap_or(Ok(Got::Empty))
        };
        self.first_get_answered();
        answer
    }

    async fn get_waiting(
        &self,
        cell: &Arc<QueueCell>,
        options: &GetOptions,
    ) -> Result<Got, PortError> {
        loop {
            let mut arrival = std::pin::pin!(cell.arrivals.notified());
            let mut boundary = std::pin::pin!(self.boundary.notified());
            let mut stop = std::pin::pin!(self.shared.stop.notified());
            arrival.as_mut().enable();
            boundary.as_mut().enable();
            stop.as_mut().enable();
            match self.try_get(cell, options)? {
                Got::Empty => {}
                answer => return Ok(answer),
            }
            tokio::select! {
                () = arrival => {}
                () = boundary => {}
                () = stop => {}
            }
        }
    }

    fn try_get(&self, cell: &Arc<QueueCell>, options: &GetOptions) -> Result<Got, PortError> {
        if self.stop_requested() {
            return Err(PortError::Stopping);
        }
        let mut unit = self.unit.lock();
        if unit.taken.is_empty() && self.should_end() {
            return Ok(Got::Stop);
        }
        let bound = if self.cell.is_limited() {
            1
        } else {
            self.spec.attributes.max_unit
        };
        if unit.taken.len() >= bound as usize {
            return Ok(Got::Stop);
        }
        if !cell.attributes.load().get {
            return Err(PortError::Other(format!(
                "get is disabled for queue \"{}\" [get-disabled]",
                cell.name
            )));
        }
        let select = match (&options.id, &options.correlation_id) {
            (Some(id), _) => Select::Id(*id),
            (None, Some(correlation)) => Select::Correlation(correlation.clone()),
            (None, None) => Select::Next,
        };
        let mut taken = self.take(unit.owner, cell, select, 1)?;
        let Some(message) = taken.pop() else {
            return Ok(Got::Empty);
        };
        let delivered = self.deliver(cell, message);
        self.shared.metrics.handlers.got.add(1);
        let slot = self
            .shared
            .in_hand
            .mark(&cell.name, delivered.message.header.id);
        unit.got(Arc::clone(&delivered), slot);
        if self.spec.component.style.works_the_queue() {
            match &mut unit.trace {
                Some(trace) => trace.also(&delivered.message.header),
                None => unit.trace = self.trace_of(&delivered),
            }
            unit.input = Some(delivered.message.header.id);
            unit.requests = 0;
        }
        Ok(Got::Message(delivered))
    }

    pub(crate) fn take(
        &self,
        owner: OwnerId,
        cell: &QueueCell,
        select: Select,
        max: usize,
    ) -> Result<Vec<Message>, PortError> {
        let take = self.what_to_take(owner, cell, select, max);
        self.shared
            .store
            .take(&take)
            .map_err(|error| PortError::Other(error.to_string()))
    }

    /// As [`Self::take`] of the next messages of its own queue, those among them that are not yet
    /// durable.
    pub(crate) fn take_early(&self, max: usize) -> Result<Vec<Message>, PortError> {
        let (owner, chain) = self.owner_and_chain();
        let take = self.what_to_take(owner, &self.cell, Select::Next, max);
        self.shared
            .store
            .take_early(&take, &chain)
            .map_err(|error| PortError::Other(error.to_string()))
    }

    fn what_to_take(&self, owner: OwnerId, cell: &QueueCell, select: Select, max: usize) -> Take {
        self.tried.store(true, Ordering::Relaxed);
        Take {
            queue: cell.name.clone(),
            owner,
            select,
            max,
            fifo: cell.attributes.load().delivery == oncue_core::definition::Delivery::Fifo,
            skip_suspects: false,
            now: self.shared.now(),
        }
    }

    pub(crate) fn deliver(&self, cell: &QueueCell, message: Message) -> Arc<Delivered> {
        let threshold = cell.attributes.load().backout_threshold;
        let mut progress = self.progress.lock();
        let fresh = progress.seen(message.header.id);
        Arc::new(Delivered {
            queue: cell.name.clone(),
            attempts_left: threshold
                .saturating_sub(message.attempts.backout_count)
                .max(1),
            message,
            fresh,
        })
    }

    pub(crate) fn first_get_answered(&self) {
        if !self.first_answered.swap(true, Ordering::SeqCst) {
            let begun = Event::FirstGet(self.spec.id);
            // Where no second task may run beside this one, nothing can follow from it.
            if self.spec.queue_attributes.max_tasks == 1 {
                self.shared.inbox.push_quietly(begun);
            } else {
                self.shared.inbox.push(begun);
            }
        }
    }

    /// Looks at committed messages.
    ///
    /// # Errors
    /// See [`PortError`].
    pub async fn browse(
        &self,
        queue: &QueueName,
        cursor: Option<String>,
        max: u32,
    ) -> Result<Page, PortError> {
        self.probe(SessionCall::Browse(queue))?;
        self.granted("browse", self.may_browse(queue), queue)?;
        self.guest_catches_up().await?;
        self.unit.lock().seen.browsed = true;
        let browse = Browse {
            queue: queue.clone(),
            cursor,
            max: max.min(MAX_BROWSE) as usize,
            now: self.shared.now(),
            ready_only: true,
        };
        self.shared
            .store
            .browse(&browse)
            .map_err(|error| PortError::Other(error.to_string()))
    }

    /// Committed messages on a queue.
    ///
    /// # Errors
    /// See [`PortError`].
    pub async fn depth(&self, queue: &QueueName) -> Result<u64, PortError> {
        self.probe(SessionCall::Depth(queue))?;
        let grants = &self.spec.attributes.grants;
        let named = self.may_browse(queue) || grants.may_get(queue) || grants.may_put(queue);
        let cell = self.granted("browse", named, queue)?;
        self.guest_catches_up().await?;
        self.unit.lock().seen.browsed = true;
        Ok(cell.depth())
    }

    /// Reads a part of a body; less at its end.
    ///
    /// # Errors
    /// See [`PortError`].
    pub fn read_body(
        &self,
        message: &Delivered,
        offset: u64,
        length: u64,
    ) -> Result<Bytes, PortError> {
        self.shared
            .store
            .read_body(&message.message.body, offset, length)
            .map_err(|error| PortError::Other(error.to_string()))
    }

    /// The task has ended. Called once, last; what is still open is undone, uncharged.
    pub fn finish(&self, mut cost: TaskCost) {
        if self.is_over() {
            return;
        }
        self.hand_over();
        self.release_all();
        cost.refused = self
            .refusals
            .lock()
            .iter()
            .map(|(what, times)| Refusal {
                what: what.clone(),
                times: *times,
            })
            .collect();
        let progress = std::mem::take(&mut *self.progress.lock());
        let (now, tried) = (self.shared.now(), self.tried.load(Ordering::Relaxed));
        let mut end = TaskEnd::new(&self.spec, self.started, now, progress, tried, cost);
        end.trigger = self.traced.lock().take();
        self.shared.inbox.push(Event::TaskEnded(Box::new(end)));
    }

    /// The host could not start the task: there is no end to tell of.
    pub(crate) fn abandon(&self) {
        self.is_over();
    }

    /// Notes that the task is in process no longer; true when it was so before.
    fn is_over(&self) -> bool {
        let was_over = self.finished.swap(true, Ordering::SeqCst);
        if !was_over {
            self.shared.running.fetch_sub(1, Ordering::SeqCst);
        }
        was_over
    }
}

impl Drop for TaskSession {
    fn drop(&mut self) {
        if !self.finished.load(Ordering::SeqCst) {
            // The host lost the task (a panic, a worker's end): its unit is undone and the manager
            // is told.
            self.progress.lock().fail(
                None,
                Outcome::StartFailed,
                "the host lost the task".to_owned(),
                None,
            );
            self.finish(TaskCost::default());
        }
    }
}
