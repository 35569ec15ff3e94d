//! Real threads put single messages while others run tasks, and nothing but what wakes the loop
//! gives it a turn: the clock stands still, so neither a sweep nor the longest sleep helps. A task
//! that has emptied its queue waits for ever. A wake-up that is lost leaves a message lying.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use oncue_core::outcome::CallEnd;
use oncue_core::time::Timestamp;
use oncue_manager::tasks::{CallReport, Delivered, Handler, TaskCost, TaskSession, drain};
use oncue_manager::{Handle, ManagerConfig, ManualClock};
use oncue_store::Store;
use oncue_store::embedded::{EmbeddedOptions, EmbeddedStore};
use oncue_store::memory::MemoryStore;
use parking_lot::Mutex;

use crate::rig::{Rig, ScriptedHost};
use crate::values::{plain, report};

/// Nothing here takes nearly as long.
const BOUND: Duration = Duration::from_secs(60);

/// Threads that put.
const PUTTERS: usize = 3;

/// Threads that run tasks, one each.
const WORKERS: usize = 4;

/// Handles most messages quickly; some calls take long, some wait.
struct Mixed(Arc<AtomicUsize>);

impl Handler for Mixed {
    async fn call(&mut self, _: &Arc<Delivered>) -> CallReport {
        match fastrand::u8(..) {
            0..8 => busy(Duration::from_micros(400)),
            8..16 => tokio::task::yield_now().await,
            _ => {}
        }
        self.0.fetch_add(1, Ordering::SeqCst);
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
fn work(tasks: &Mutex<Receiver<Arc<TaskSession>>>, handled: &Arc<AtomicUsize>) {
    let runtime = runtime();
    loop {
        let task = tasks.lock().recv();
        let Ok(session) = task else { return };
        let mut handler = Mixed(handled.clone());
        runtime.block_on(drain::drain(&session, &mut handler));
        session.finish(TaskCost::default());
    }
}

/// Puts so many messages, one by one, with pauses that empty the queue now and then.
fn put_singly(handle: &Handle, count: usize) {
    let runtime = runtime();
    for _ in 0..count {
        busy(Duration::from_micros(fastrand::u64(0..100)));
        let put = handle.put(vec![plain("in", "m")], None);
        runtime.block_on(put).expect("the put is taken");
    }
}

/// Turns whenever a turn is wanted, and only then, until `done`.
fn turn_until(rig: &mut Rig, what: &str, done: impl Fn(&Rig) -> bool) {
    let begun = Instant::now();
    while !done(rig) {
        if begun.elapsed() > BOUND {
            // Else their threads would be waited for.
            rig.manager.drain();
            panic!("{what}: a wake-up was lost");
        }
        if rig.manager.wants_turn() {
            rig.manager.turn();
        } else {
            thread::yield_now();
        }
    }
}

/// Everything that is put is handled, for so many tasks at once on a host that says this of itself.
fn all_is_handled(store: Arc<dyn Store>, count: usize, max_tasks: usize, begins_in: Duration) {
    let (starts, tasks) = channel();
    let host = ScriptedHost::of(WORKERS, begins_in).on(starts);
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let unused = Arc::new(MemoryStore::new(1, 1 << 30));
    let mut rig = Rig::of_host(host, ManagerConfig::default(), store, unused, clock);
    let max = max_tasks.to_string();
    rig.plugin("work", &[], &[("in", &[("max-tasks", &max)])]);
    let (tasks, handled) = (Mutex::new(tasks), Arc::new(AtomicUsize::new(0)));
    let what = format!("{max_tasks} tasks, {begins_in:?}");
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| work(&tasks, &handled));
        }
        for _ in 0..PUTTERS {
            let handle = rig.handle.clone();
            scope.spawn(move || put_singly(&handle, count));
        }
        turn_until(&mut rig, &what, |_| {
            handled.load(Ordering::SeqCst) >= PUTTERS * count
        });
        rig.manager.drain();
        turn_until(&mut rig, &what, |rig| rig.manager.is_idle());
        assert_eq!(handled.load(Ordering::SeqCst), PUTTERS * count, "{what}");
        assert_eq!(rig.depth("in"), 0, "{what}");
        drop(rig);
    });
}

#[test]
fn no_message_is_left_lying_whoever_it_was_left_to() {
    for max_tasks in [1, 2, WORKERS] {
        for begins_in in [Duration::from_micros(200), BOUND] {
            let store = Arc::new(MemoryStore::new(1, 1 << 30));
            all_is_handled(store, 2_000, max_tasks, begins_in);
        }
    }
}

#[test]
fn no_message_is_left_lying_over_a_store_that_answers_later() {
    let home = tempfile::tempdir().expect("a directory");
    let options = EmbeddedOptions {
        ballast_bytes: 0,
        reserve_bytes: 0,
        ..EmbeddedOptions::default()
    };
    let store = Arc::new(EmbeddedStore::open(home.path(), options).expect("a store"));
    all_is_handled(store, 300, 2, Duration::from_micros(200));
}
