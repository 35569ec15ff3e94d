//! The millisecond by which busy guests give way: an OS thread that advances the engines'
//! epochs while some guest runs.
//!
//! It measures no deadline ([`crate::task::deadline`]). It only makes sure that a guest in a loop
//! returns to its worker often enough for its deadline to be looked at. Parked while no guest runs,
//! so an idle host has none.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use parking_lot::Mutex;
use wasmtime::{Engine, EngineWeak};

/// How long a guest runs before it gives way.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// Ticks without a guest before the thread parks: short pauses between messages cost no wake-up.
const IDLE_TICKS: u32 = 20;

/// Stops the thread when dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    /// Guests that run now.
    active: AtomicUsize,
    parked: AtomicBool,
    stop: AtomicBool,
    /// Ticks so far.
    ticks: AtomicU64,
    /// Who may wait for ticks: at most as many as there are tasks.
    waiting: Mutex<Vec<Weak<Waiting>>>,
}

/// The tick that someone waits for, and whom to wake then.
type Waiting = Mutex<Option<(u64, Waker)>>;

/// Waits for ticks, again and again: without a timer, which would cost a system call each time.
#[derive(Debug)]
pub(crate) struct Patience {
    state: Arc<State>,
    waiting: Arc<Waiting>,
}

impl Patience {
    /// Resolves after so many ticks, the present one included. To be polled by a task on a worker
    /// the first time: while its guest is said to run, ticks come.
    pub(crate) fn wait(&mut self, ticks: u64) -> impl Future<Output = ()> + Send + '_ {
        let until = self.state.ticks.load(Ordering::SeqCst) + ticks;
        poll_fn(move |context| {
            if self.state.ticks.load(Ordering::SeqCst) >= until {
                return Poll::Ready(());
            }
            // Left behind when the wait is given up: then it wakes its task once for nothing.
            *self.waiting.lock() = Some((until, context.waker().clone()));
            Poll::Pending
        })
    }
}

impl State {
    /// Wakes whose tick has come; answers whether others wait on.
    fn tick(&self) -> bool {
        let ticks = self.ticks.fetch_add(1, Ordering::SeqCst) + 1;
        let (mut due, mut others) = (Vec::new(), false);
        self.waiting.lock().retain(|waiting| {
            let Some(waiting) = waiting.upgrade() else {
                return false;
            };
            let mut waiting = waiting.lock();
            if waiting.as_ref().is_some_and(|(until, _)| *until <= ticks) {
                due.extend(waiting.take().map(|(_, waker)| waker));
            }
            others |= waiting.is_some();
            true
        });
        due.into_iter().for_each(Waker::wake);
        others
    }
}

/// A guest runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Running<'a>(&'a State);

impl Ticker {
    /// Starts the thread. It holds the engines weakly, so that it never outlives them.
    pub(crate) fn start<'a>(engines: impl Iterator<Item = &'a Engine>) -> std::io::Result<Self> {
        let state = Arc::new(State::default());
        let (shared, engines) = (Arc::clone(&state), engines.map(Engine::weak).collect());
        let thread = std::thread::Builder::new()
            .name("oncue-ticker".to_owned())
            .spawn(move || run(&shared, engines))?;
        Ok(Self {
            state,
            thread: Some(thread),
        })
    }

    /// Says that a guest runs: ticks come until the answer is dropped.
    pub(crate) fn running(&self) -> Running<'_> {
        let before = self.state.active.fetch_add(1, Ordering::SeqCst);
        if before == 0 && self.state.parked.load(Ordering::SeqCst) {
            self.thread().unpark();
        }
        Running(&self.state)
    }

    /// For one who will wait for ticks.
    pub(crate) fn patience(&self) -> Patience {
        let waiting = Arc::default();
        self.state.waiting.lock().push(Arc::downgrade(&waiting));
        let state = Arc::clone(&self.state);
        Patience { state, waiting }
    }

    fn thread(&self) -> &Thread {
        self.thread
            .as_ref()
            .expect("the thread is taken in drop only")
            .thread()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::SeqCst);
        self.thread().unpark();
        if let Some(thread) = self.thread.take() {
            // It cannot panic: it sleeps and adds one.
            let _ = thread.join();
        }
    }
}

fn run(state: &State, engines: Vec<EngineWeak>) {
    let mut idle = 0;
    while !state.stop.load(Ordering::SeqCst) {
        if state.active.load(Ordering::SeqCst) == 0 && idle >= IDLE_TICKS {
            state.parked.store(true, Ordering::SeqCst);
            // Looked at again after `parked` is set: a guest that began in between saw it and
            // unparks us.
            if state.active.load(Ordering::SeqCst) == 0 && !state.stop.load(Ordering::SeqCst) {
                std::thread::park();
            }
            state.parked.store(false, Ordering::SeqCst);
            idle = 0;
            continue;
        }
        std::thread::sleep(TICK);
        for engine in &engines {
            match engine.upgrade() {
                Some(engine) => engine.increment_epoch(),
                None => return,
            }
        }
        let awaited = state.tick();
        idle = if !awaited && state.active.load(Ordering::SeqCst) == 0 {
            idle + 1
        } else {
            0
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_ticks_is_woken_and_keeps_them_coming() {
        let engine = Engine::default();
        let ticker = Ticker::start([&engine].into_iter()).expect("starts");
        let mut patience = ticker.patience();
        let running = ticker.running();
        let mut running = Some(running);
        // More ticks than pass without a guest before the thread parks.
        for ticks in [1, 2 * u64::from(IDLE_TICKS)] {
            let before = ticker.state.ticks.load(Ordering::SeqCst);
            let mut wait = std::pin::pin!(patience.wait(ticks));
            crate::measure::finish(poll_fn(|context| {
                let polled = wait.as_mut().poll(context);
                running.take();
                polled
            }));
            let after = ticker.state.ticks.load(Ordering::SeqCst);
            assert!(after >= before + ticks, "{before} {after}");
        }
        drop(patience);
        ticker.state.tick();
        assert!(ticker.state.waiting.lock().is_empty(), "it is forgotten");
    }

    #[test]
    fn a_ticker_stops_when_it_is_dropped() {
        let engine = Engine::default();
        let ticker = Ticker::start([&engine].into_iter()).expect("starts");
        let running = ticker.running();
        assert_eq!(ticker.state.active.load(Ordering::SeqCst), 1);
        drop(running);
        assert_eq!(ticker.state.active.load(Ordering::SeqCst), 0);
        // The join inside is the assertion: a thread that does not stop hangs the test.
        drop(ticker);
    }
}
