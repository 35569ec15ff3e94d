//! The millisecond by which busy guests give way: an OS thread that advances the engine's epoch
//! while some guest runs.
//!
//! It measures no deadline ([`crate::task::deadline`]). It only makes sure that a guest in a loop
//! returns to its worker often enough for its deadline to be looked at. Parked while no guest runs,
//! so an idle host has none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

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
}

/// A guest runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Running<'a>(&'a State);

impl Ticker {
    /// Starts the thread. It holds the engine weakly, so that it never outlives it.
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Self> {
        let state = Arc::new(State::default());
        let (shared, engine) = (Arc::clone(&state), engine.weak());
        let thread = std::thread::Builder::new()
            .name("oncue-ticker".to_owned())
            .spawn(move || run(&shared, &engine))?;
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

fn run(state: &State, engine: &EngineWeak) {
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
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => return,
        }
        idle = if state.active.load(Ordering::SeqCst) == 0 {
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
    fn a_ticker_stops_when_it_is_dropped() {
        let engine = Engine::default();
        let ticker = Ticker::start(&engine).expect("starts");
        let running = ticker.running();
        assert_eq!(ticker.state.active.load(Ordering::SeqCst), 1);
        drop(running);
        assert_eq!(ticker.state.active.load(Ordering::SeqCst), 0);
        // The join inside is the assertion: a thread that does not stop hangs the test.
        drop(ticker);
    }
}
