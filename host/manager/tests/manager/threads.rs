//! Real threads put single messages while others run tasks, and nothing but what wakes the loop
//! gives it a turn: the clock stands still, save for a time that the loop has set itself, so
//! neither a sweep nor the longest sleep helps. A task that has emptied its queue waits for ever.
//! In each round all messages are handled before the next one begins, so a wake-up that is lost
//! leaves a message lying.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use oncue_core::outcome::CallEnd;
use oncue_core::time::Timestamp;
use oncue_manager::main_loop::MAX_SLEEP;
use oncue_manager::tasks::{CallReport, Delivered, Handler, TaskCost, TaskSession, drain};
use oncue_manager::{Clock, Handle, ManagerConfig, ManualClock};
use oncue_store::Store;
use oncue_store::memory::MemoryStore;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::rig::{Rig, ScriptedHost};
use crate::values::{Pairs, on_disk, plain, report};

/// Nothing here takes nearly as long.
const BOUND: Duration = Duration::from_secs(60);

/// Threads that put.
const PUTTERS: usize = 2;

/// Threads that run tasks, one each.
const WORKERS: usize = 4;

/// Messages of one putter and round, at most.
const BURST: usize = 3;

/// What the threads share.
struct Bench {
    tasks: Mutex<Receiver<Arc<TaskSession>>>,
    /// Messages that were put, or are about to be.
    put: AtomicUsize,
    handled: AtomicUsize,
    /// Told with each of them.
    progress: Notify,
    /// A call may wait for others, and none does now.
    may_wait: AtomicBool,
    /// Putters meet here.
    meet: Barrier,
    failed: AtomicBool,
}

impl Bench {
    /// Waits, as a call, until every other message is handled.
    async fn others(&self) {
        loop {
            let mut progress = std::pin::pin!(self.progress.notified());
            progress.as_mut().enable();
            if self.is_over(1) {
                return;
            }
            progress.await;
        }
    }

    /// All are handled but so many.
    fn is_over(&self, but: usize) -> bool {
        let handled = self.handled.load(Ordering::SeqCst);
        handled + but >= self.put.load(Ordering::SeqCst) || self.failed.load(Ordering::SeqCst)
    }
}

/// Handles most messages quickly; some calls take long, some wait, one at a time waits for all
/// others.
struct Mixed<'a>(&'a Bench);

impl Handler for Mixed<'_> {
    async fn call(&mut self, _: &Arc<Delivered>) -> CallReport {
        let bench = self.0;
        match fastrand::u8(..) {
            0..16 => busy(Duration::from_micros(400)),
            16..32 => tokio::task::yield_now().await,
            32..96 if bench.may_wait.swap(false, Ordering::SeqCst) => {
                bench.others().await;
                bench.may_wait.store(true, Ordering::SeqCst);
            }
            _ => {}
        }
        bench.handled.fetch_add(1, Ordering::SeqCst);
        bench.progress.notify_waiters();
        report(CallEnd::Ok)
    }

    fn patience(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// Uses the processor for so long.
fn busy(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().expect("a runtime")
}

/// A worker's life: it ends when nobody starts tasks any more.
fn work(bench: &Bench) {
    let runtime = runtime();
    loop {
        let task = bench.tasks.lock().recv();
        let Ok(session) = task else { return };
        runtime.block_on(drain::drain(&session, &mut Mixed(bench)));
        session.finish(TaskCost::default());
    }
}

/// Puts messages one by one, some in each round.
fn put_singly(bench: &Bench, handle: &Handle, rounds: usize) {
    let runtime = runtime();
    for _ in 0..rounds {
        for _ in 0..fastrand::usize(1..=BURST) {
            busy(Duration::from_micros(fastrand::u64(0..60)));
            bench.put.fetch_add(1, Ordering::SeqCst);
            let put = handle.put(vec![plain("in", "m")], None);
            runtime.block_on(put).expect("the put is taken");
        }
        bench.meet.wait();
        while !bench.is_over(0) {
            thread::yield_now();
        }
        bench.meet.wait();
    }
}

/// A turn; answers in how many milliseconds the loop wants another one, if it set itself a time: a
/// task that found nothing, for another one had taken it, makes the next start wait.
fn turn(rig: &mut Rig) -> Option<u64> {
    let next = rig.manager.turn();
    let millis = next.since(rig.clock.now());
    (millis < MAX_SLEEP).then_some(millis)
}

/// Turns whenever a turn is wanted, and only then, until `done`.
fn turn_until(rig: &mut Rig, bench: &Bench, what: &str, done: impl Fn(&Rig) -> bool) {
    let begun = Instant::now();
    let mut wakes_in = None;
    while !done(rig) {
        if begun.elapsed() > BOUND {
            // Else their threads would be waited for.
            bench.failed.store(true, Ordering::SeqCst);
            bench.progress.notify_waiters();
            let why = rig.explain("in");
            rig.manager.drain();
            panic!("{what}: a wake-up was lost: {why:?}");
        }
        if rig.manager.wants_turn() {
            wakes_in = turn(rig);
        } else if let Some(millis) = wakes_in.take() {
            rig.clock.advance(millis);
            wakes_in = turn(rig);
        } else {
            thread::yield_now();
        }
    }
}

/// Everything that is put is handled, for tasks of such a process and queue on a host that says of
/// itself how soon a task begins.
fn all_is_handled(
    store: Arc<dyn Store>,
    rounds: usize,
    begins_in: Duration,
    (process, queue): (Pairs<'_>, Pairs<'_>),
) {
    let (starts, tasks) = sync_channel(WORKERS);
    let host = ScriptedHost::of(WORKERS, begins_in).on(starts);
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let unused = Arc::new(MemoryStore::new(1, 1 << 30));
    let config = ManagerConfig {
        sweep_period: 1 << 40,
        ..ManagerConfig::default()
    };
    let mut rig = Rig::of_host(host, config, store, unused, clock);
    // Several tasks that find nothing, one after the other, must not make the loop set itself a
    // time that cannot be told from its longest sleep.
    let mut attributes = vec![("backoff.max", "500ms")];
    attributes.extend_from_slice(queue);
    rig.plugin("work", process, &[("in", &attributes)]);
    // What is fetched ahead waits with its task: there no call may wait for others.
    let may_wait = !process.is_empty();
    let bench = Bench {
        tasks: Mutex::new(tasks),
        put: AtomicUsize::new(0),
        handled: AtomicUsize::new(0),
        progress: Notify::new(),
        may_wait: AtomicBool::new(may_wait),
        meet: Barrier::new(PUTTERS),
        failed: AtomicBool::new(false),
    };
    let (bench, what) = (&bench, format!("{process:?} {queue:?} {begins_in:?}"));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| work(bench));
        }
        let putter = |handle: Handle| scope.spawn(move || put_singly(bench, &handle, rounds));
        let putters: Vec<_> = (0..PUTTERS).map(|_| putter(rig.handle.clone())).collect();
        turn_until(&mut rig, bench, &what, |_| {
            putters.iter().all(|putter| putter.is_finished())
        });
        rig.manager.drain();
        turn_until(&mut rig, bench, &what, |rig| rig.manager.is_idle());
        assert_eq!(rig.depth("in"), 0, "{what}");
        drop(rig);
    });
}

/// Tasks with a network grant fetch nothing ahead.
const NETWORK: Pairs<'_> = &[("grants.http", "https://example.org")];

#[test]
fn no_message_is_left_lying_whoever_it_was_left_to() {
    for begins_in in [Duration::from_micros(200), BOUND] {
        for max_tasks in ["1", "2", "4"] {
            let store = Arc::new(MemoryStore::new(1, 1 << 30));
            all_is_handled(store, 800, begins_in, (&[], &[("max-tasks", max_tasks)]));
        }
    }
}

#[test]
fn no_message_is_left_lying_while_a_call_waits_for_those_of_other_tasks() {
    for begins_in in [Duration::from_micros(200), BOUND] {
        for max_tasks in ["2", "4"] {
            let store = Arc::new(MemoryStore::new(1, 1 << 30));
            all_is_handled(
                store,
                800,
                begins_in,
                (NETWORK, &[("max-tasks", max_tasks)]),
            );
        }
    }
}

#[test]
fn no_message_is_left_lying_over_a_store_that_answers_later() {
    let (_home, store) = on_disk();
    let begins_in = Duration::from_micros(200);
    all_is_handled(store, 200, begins_in, (&[], &[("max-tasks", "2")]));
}
