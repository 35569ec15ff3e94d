//! Tests of the workers: nothing is asserted about time, waits have a bound.

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use super::*;
use crate::engine::SandboxConfig;

/// Longer than any machine takes; a test that waits so long has failed.
const BOUND: Duration = Duration::from_secs(60);

/// More answers than any test waits for, so that no task waits for the test.
const MAX_ANSWERS: usize = 1000;

fn workers(count: usize) -> Workers {
    let sandbox = Sandbox::new(SandboxConfig {
        slots: Some(16),
        ..SandboxConfig::default()
    })
    .expect("a sandbox");
    Workers::start(sandbox, count).expect("workers")
}

/// Gives way so many times.
async fn give_way(times: usize) {
    let mut left = times;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Starts tasks made by `task`, which get a sender to answer with; the receiver gets all
/// answers.
fn start<F>(workers: &Workers, count: usize, task: impl Fn() -> F) -> Receiver<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, receiver) = sync_channel(MAX_ANSWERS);
    for _ in 0..count {
        let (sender, task) = (sender.clone(), task());
        workers.spawn(|_| async move {
            task.await;
            sender.send(()).expect("the test waits");
        });
    }
    receiver
}

fn wait(receiver: &Receiver<()>, count: usize) {
    for _ in 0..count {
        receiver.recv_timeout(BOUND).expect("a task ends");
    }
}

/// Waits until so many tasks are left: one that has answered is a moment from its end.
fn settle(workers: &Workers, left: usize) {
    let begun = Instant::now();
    while workers.live() != left {
        assert!(
            begun.elapsed() < BOUND,
            "{} tasks are left, not {left}",
            workers.live()
        );
        std::thread::yield_now();
    }
}

#[test]
fn tasks_give_way_and_end() {
    for count in [1, 2, 4] {
        let workers = workers(count);
        wait(&start(&workers, 100, || give_way(100)), 100);
        settle(&workers, 0);
    }
}

#[test]
fn tasks_wait_for_timers_and_for_other_threads() {
    let workers = workers(2);
    let sleep = || async { tokio::time::sleep(Duration::from_millis(2)).await };
    wait(&start(&workers, 10, sleep), 10);
    let (ask, asked) = tokio::sync::oneshot::channel::<()>();
    let asked = Mutex::new(Some(asked));
    let receiver = start(&workers, 1, || {
        let asked = asked.lock().take();
        async move {
            asked.expect("one task").await.expect("the sender lives");
        }
    });
    ask.send(()).expect("the task lives");
    wait(&receiver, 1);
}

#[test]
fn a_panic_ends_the_task_and_not_the_worker() {
    let workers = workers(1);
    workers.spawn(|_| async { panic!("in host code") });
    wait(&start(&workers, 1, || give_way(1)), 1);
    settle(&workers, 0);
}

#[test]
fn a50_busy_tasks_do_not_keep_others_from_running() {
    for count in [1, 2] {
        let workers = workers(count);
        let stop = Arc::new(AtomicBool::new(false));
        let busy = start(&workers, 4, || {
            let stop = Arc::clone(&stop);
            async move {
                while !stop.load(Ordering::SeqCst) {
                    let begun = Instant::now();
                    while begun.elapsed() < crate::ticker::TICK {
                        std::hint::spin_loop();
                    }
                    give_way(1).await;
                }
            }
        });
        wait(&start(&workers, 20, || give_way(3)), 20);
        settle(&workers, 4);
        stop.store(true, Ordering::SeqCst);
        wait(&busy, 4);
    }
}

#[test]
fn a_task_that_waits_is_dropped_with_the_workers() {
    struct Told(std::sync::mpsc::SyncSender<()>);
    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let workers = workers(2);
    let notify = Arc::new(tokio::sync::Notify::new());
    let (sender, receiver) = sync_channel(MAX_ANSWERS);
    let (begun, has_begun) = sync_channel(MAX_ANSWERS);
    let (told, waits) = (Told(sender), Arc::clone(&notify));
    workers.spawn(|_| async move {
        let _told = told;
        begun.send(()).expect("the test waits");
        waits.notified().await;
    });
    has_begun.recv_timeout(BOUND).expect("it begins");
    drop(workers);
    receiver.recv_timeout(BOUND).expect("it is dropped");
}

/// A meter of a task that has spent so many microseconds.
fn spent(micros: u64) -> Meter {
    Meter {
        micros: AtomicU64::new(micros),
        ..Meter::default()
    }
}

/// Puts works in the lanes by their meters and answers the order in which a worker takes them.
fn order(micros: &[u64], high_only: bool) -> Vec<u64> {
    let pool = workers(1).pool.clone();
    let mut lanes = Lanes::default();
    for micros in micros {
        let meter = spent(*micros);
        let is_high = meter.is_high();
        let work = Arc::new(Work {
            pool: Arc::clone(&pool),
            meter: Arc::new(meter),
            state: AtomicU8::new(QUEUED),
            future: Mutex::new(None),
        });
        lanes.add(work, is_high);
    }
    std::iter::from_fn(|| lanes.take(high_only))
        .map(|work| work.meter.micros())
        .collect()
}

#[test]
fn a_task_past_its_time_goes_to_the_low_lane() {
    assert_eq!(order(&[1, 5000, 5001, 9000], true), [1, 5000]);
    assert_eq!(order(&[9000, 8000, 1, 2], false), [1, 9000, 2, 8000]);
    assert_eq!(order(&[9000, 8000, 7000], false), [9000, 8000, 7000]);
}

#[test]
fn a50_a_task_of_many_short_messages_stays_in_the_high_lane() {
    let check = |micros: u64, messages: u64, in_hand: u64, is_high: bool| {
        let meter = spent(micros);
        for _ in 0..messages {
            meter.begin_message();
        }
        meter.message.store(in_hand, Ordering::Relaxed);
        assert_eq!(meter.is_high(), is_high, "{micros} us, {messages} messages");
    };
    check(90_000, 900, 0, true);
    check(90_000, 900, 5_001, false);
    check(90_000, 80, 0, false);
    check(90_000, 0, 0, false);
    check(5_000, 1, 5_000, true);
}

#[test]
fn a_meter_counts_what_a_message_takes_from_where_it_gave_way() {
    let meter = Meter::default();
    let turn = || {
        meter.begin();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(50) {
            std::hint::spin_loop();
        }
        meter.end();
        meter.message.load(Ordering::Relaxed)
    };
    meter.begin_message();
    assert_eq!(turn(), 0);
    let once = turn();
    assert!(once >= 50, "{once}");
    assert!(turn() >= once + 50);
    meter.begin_message();
    assert_eq!(turn(), 0);
}
