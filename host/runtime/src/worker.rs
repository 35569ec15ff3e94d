//! The threads that guests run on: their own, so that a busy guest never delays the API or the
//! manager.
//!
//! A small executor: tasks are futures in two lanes, and a guest gives way every millisecond
//! ([`crate::ticker`]). One that has used more than a few milliseconds goes to the low lane; with
//! two workers or more, one of them takes from the high lane only, so a short task never waits for
//! long ones. What is measured is the message: a task that works off many short ones stays in the
//! high lane, else all workers but one would leave a busy queue alone. Timers and locks are
//! tokio's, on a runtime that is kept for them and runs no guest.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::runtime::{Handle, Runtime};

use crate::engine::Sandbox;

/// Guest time after which a task goes to the low lane, in microseconds.
const HIGH_LANE: u64 = 5_000;

/// A task past that time stays in the high lane while its messages take less than this on average,
/// in microseconds, and the one in hand less than [`HIGH_LANE`].
const SHORT_MESSAGE: u64 = 1_000;

/// How often a worker without a task lets others run and looks again before it sleeps. On a machine
/// with nothing to spare whoever brings the next message is waiting for this core: a worker asleep
/// is woken by the first one, pushes the bringer aside and finds just that one. Where nothing else
/// wants to run a look takes less than a microsecond.
const LOOKS: u32 = 4;

/// The time that a task has spent on a worker, waits excluded.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    micros: AtomicU64,
    /// Those of the message in hand, from the first time that it gave way.
    message: AtomicU64,
    /// Messages that were begun.
    messages: AtomicU64,
    /// A message was begun since the task was last given way to.
    fresh: AtomicBool,
    since: Mutex<Option<Instant>>,
}

impl Meter {
    fn begin(&self) {
        *self.since.lock() = Some(Instant::now());
    }

    fn end(&self) {
        let Some(since) = self.since.lock().take() else {
            return;
        };
        let spent = micros(since);
        self.micros.fetch_add(spent, Ordering::Relaxed);
        // A message that began in between took a part of it, which is not worth a look at the clock
        // for every message: less than a tick.
        if self.fresh.swap(false, Ordering::Relaxed) {
            self.message.store(0, Ordering::Relaxed);
        } else {
            self.message.fetch_add(spent, Ordering::Relaxed);
        }
    }

    /// The task begins with its next message.
    pub(crate) fn begin_message(&self) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.fresh.store(true, Ordering::Relaxed);
    }

    /// Whether the task still belongs to the high lane.
    fn is_high(&self) -> bool {
        let spent = self.micros();
        let short = || {
            self.message.load(Ordering::Relaxed) <= HIGH_LANE
                && spent / self.messages.load(Ordering::Relaxed).max(1) <= SHORT_MESSAGE
        };
        spent <= HIGH_LANE || short()
    }

    /// Microseconds up to now.
    pub(crate) fn micros(&self) -> u64 {
        let now = self.since.lock().map_or(0, micros);
        self.micros.load(Ordering::Relaxed) + now
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

type Future_ = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Waits for a wake-up.
const IDLE: u8 = 0;
/// In a lane.
const QUEUED: u8 = 1;
/// Being polled.
const RUNNING: u8 = 2;
/// Being polled, and woken meanwhile.
const WOKEN: u8 = 3;

/// A task that is under way.
struct Work {
    pool: Arc<Pool>,
    meter: Arc<Meter>,
    state: AtomicU8,
    /// Taken by the worker that polls it; none after its end.
    future: Mutex<Option<Future_>>,
}

impl Wake for Work {
    fn wake(self: Arc<Self>) {
        let next = |state| match state {
            IDLE => Some(QUEUED),
            RUNNING => Some(WOKEN),
            _ => None,
        };
        let before = self
            .state
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        if before == Ok(IDLE) {
            let pool = Arc::clone(&self.pool);
            pool.push(self);
        }
    }
}

/// Takes a task off the list when its future is gone, however that came.
struct Listed {
    pool: Arc<Pool>,
    number: u64,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.pool.tasks.lock().remove(&self.number);
    }
}

/// What waits for a worker.
#[derive(Default)]
struct Lanes {
    high: VecDeque<Arc<Work>>,
    low: VecDeque<Arc<Work>>,
    /// Workers asleep that take from both lanes.
    idle: usize,
    /// Workers asleep that take from the high lane only.
    high_idle: usize,
    /// Whether the next one of a worker for both is from the low lane, when both have some.
    low_turn: bool,
    closed: bool,
}

impl Lanes {
    fn add(&mut self, work: Arc<Work>, is_high: bool) {
        let lane = if is_high {
            &mut self.high
        } else {
            &mut self.low
        };
        lane.push_back(work);
    }

    fn is_empty(&self) -> bool {
        self.high.is_empty() && self.low.is_empty()
    }

    fn take(&mut self, high_only: bool) -> Option<Arc<Work>> {
        if high_only {
            return self.high.pop_front();
        }
        // In turns, so that neither lane starves the other.
        self.low_turn = !self.low_turn;
        let (first, second) = if self.low_turn {
            (&mut self.high, &mut self.low)
        } else {
            (&mut self.low, &mut self.high)
        };
        first.pop_front().or_else(|| second.pop_front())
    }
}

struct Pool {
    lanes: Mutex<Lanes>,
    /// Wakes workers that take from both lanes.
    both: Condvar,
    /// Wakes the worker that takes from the high lane only.
    high: Condvar,
    sandbox: Sandbox,
    /// Tasks that have not ended, by number: those that wait are held by their wakers only.
    tasks: Mutex<HashMap<u64, Weak<Work>>>,
    started: AtomicU64,
}

impl Pool {
    fn push(&self, work: Arc<Work>) {
        let is_high = work.meter.is_high();
        let mut lanes = self.lanes.lock();
        if lanes.closed {
            // Dropped after the lock: the end of a task may wake another.
            drop(lanes);
            drop(work);
            return;
        }
        lanes.add(work, is_high);
        self.wake_for_one(lanes);
    }

    /// Wakes a worker for what was just added, if one is asleep that may take it.
    fn wake_for_one(&self, lanes: MutexGuard<'_, Lanes>) {
        let waiting = lanes.high.len() + lanes.low.len();
        let (both, high) = (lanes.idle > 0, lanes.high_idle > 0);
        let short_of_hands = waiting > lanes.idle && !lanes.high.is_empty();
        drop(lanes);
        if both {
            self.both.notify_one();
        }
        if high && short_of_hands {
            self.high.notify_one();
        }
    }

    /// The next task for a worker, which may hand one in that has given way; none when the pool is
    /// closed.
    fn next(&self, high_only: bool, gave_way: Option<Arc<Work>>) -> Option<Arc<Work>> {
        let gave_way = gave_way.map(|work| (work.meter.is_high(), work));
        let mut lanes = self.lanes.lock();
        if let Some((is_high, work)) = gave_way {
            if lanes.closed {
                drop(lanes);
                drop(work);
                return None;
            }
            lanes.add(work, is_high);
            // Whoever hands one in takes one: another worker is woken only for what is left.
            let next = lanes.take(high_only);
            if !lanes.is_empty() {
                self.wake_for_one(lanes);
                lanes = self.lanes.lock();
            }
            if next.is_some() {
                return next;
            }
        }
        let mut looks = LOOKS;
        loop {
            if lanes.closed {
                return None;
            }
            if let Some(work) = lanes.take(high_only) {
                return Some(work);
            }
            if looks > 0 {
                looks -= 1;
                MutexGuard::unlocked(&mut lanes, std::thread::yield_now);
                continue;
            }
            if high_only {
                lanes.high_idle += 1;
                self.high.wait(&mut lanes);
                lanes.high_idle -= 1;
            } else {
                lanes.idle += 1;
                self.both.wait(&mut lanes);
                lanes.idle -= 1;
            }
        }
    }
}

/// The workers. Dropping them drops every task that has not ended.
pub(crate) struct Workers {
    pool: Arc<Pool>,
    threads: Vec<JoinHandle<()>>,
    timers: Option<Runtime>,
}

impl Workers {
    /// Starts `count` threads, at least one.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub(crate) fn start(sandbox: Sandbox, count: usize) -> std::io::Result<Self> {
        let timers = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("oncue-timers")
            .enable_all()
            .build()?;
        let pool = Arc::new(Pool {
            lanes: Mutex::default(),
            both: Condvar::new(),
            high: Condvar::new(),
            sandbox,
            tasks: Mutex::default(),
            started: AtomicU64::new(0),
        });
        let mut workers = Self {
            pool,
            threads: Vec::new(),
            timers: None,
        };
        for number in 0..count.max(1) {
            let (pool, handle) = (Arc::clone(&workers.pool), timers.handle().clone());
            let high_only = number == 0 && count > 1;
            let thread = std::thread::Builder::new().name(format!("oncue-worker-{number}"));
            workers
                .threads
                .push(thread.spawn(move || work(&pool, &handle, number, high_only))?);
        }
        workers.timers = Some(timers);
        Ok(workers)
    }

    /// Runs a task. It is given its meter, and ends when its future does.
    pub(crate) fn spawn<F>(&self, task: impl FnOnce(Arc<Meter>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let meter = Arc::new(Meter::default());
        let number = self.pool.started.fetch_add(1, Ordering::Relaxed);
        let listed = Listed {
            pool: Arc::clone(&self.pool),
            number,
        };
        let task = task(Arc::clone(&meter));
        let future: Future_ = Box::pin(async move {
            // Moved in whole: it goes when the future does, even one that was never polled.
            let _listed = listed;
            task.await;
        });
        let work = Arc::new(Work {
            pool: Arc::clone(&self.pool),
            meter,
            state: AtomicU8::new(QUEUED),
            future: Mutex::new(Some(future)),
        });
        self.pool.tasks.lock().insert(number, Arc::downgrade(&work));
        self.pool.push(work);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.threads.len()
    }

    /// Tasks that have not ended.
    pub(crate) fn live(&self) -> usize {
        self.pool.tasks.lock().len()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let (high, low) = {
            let mut lanes = self.pool.lanes.lock();
            lanes.closed = true;
            (
                std::mem::take(&mut lanes.high),
                std::mem::take(&mut lanes.low),
            )
        };
        drop((high, low));
        self.pool.both.notify_all();
        self.pool.high.notify_all();
        for thread in self.threads.drain(..) {
            // A worker contains the panics of its tasks; there is nobody left to tell of its own.
            let _ = thread.join();
        }
        let waiting: Vec<_> = self
            .pool
            .tasks
            .lock()
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        for work in waiting {
            let future = work.future.lock().take();
            drop(future);
        }
        if let Some(timers) = self.timers.take() {
            // Not waited for: this may be called from within another runtime.
            timers.shutdown_background();
        }
    }
}

thread_local! {
    /// The number of the worker whose thread this is; 0 on other threads.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// The number of the worker whose thread this is; 0 on other threads.
pub(crate) fn number() -> usize {
    NUMBER.get()
}

/// A worker's life.
fn work(pool: &Arc<Pool>, timers: &Handle, number: usize, high_only: bool) {
    NUMBER.set(number);
    let _entered = timers.enter();
    let mut gave_way = None;
    while let Some(work) = pool.next(high_only, gave_way.take()) {
        let running = pool.sandbox.ticker().running();
        gave_way = poll(work);
        drop(running);
    }
}

/// Polls a task once, and answers with it when it only gave way. A panic in host code ends the task
/// and not the worker.
fn poll(work: Arc<Work>) -> Option<Arc<Work>> {
    work.state.store(RUNNING, Ordering::SeqCst);
    let mut future = work.future.lock().take()?;
    let waker = Waker::from(Arc::clone(&work));
    let mut context = Context::from_waker(&waker);
    work.meter.begin();
    let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)));
    work.meter.end();
    match polled {
        Ok(Poll::Pending) => {
            *work.future.lock() = Some(future);
            let idle =
                work.state
                    .compare_exchange(RUNNING, IDLE, Ordering::SeqCst, Ordering::SeqCst);
            if idle.is_err() {
                work.state.store(QUEUED, Ordering::SeqCst);
                return Some(work);
            }
        }
        Ok(Poll::Ready(())) => drop(future),
        Err(panic) => {
            let what = panic.downcast_ref::<&str>().copied();
            let what = what.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            tracing::error!(
                panic = what.unwrap_or("unknown"),
                "a task panicked in the host; it is undone, report this"
            );
            if catch_unwind(AssertUnwindSafe(|| drop(future))).is_err() {
                tracing::error!("undoing the task that panicked panicked again");
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;
