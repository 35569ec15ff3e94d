//! What becomes ready while a quick task drains its queue is left to that task. The host says how
//! soon a task begins, so that what counts as quick is so however slow the machine.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use oncue_core::outcome::CallEnd;
use oncue_core::unit_of_work::OwnerId;
use oncue_manager::Handle;
use oncue_manager::tasks::TaskSession;
use oncue_manager::tasks::port::PutOptions;
use oncue_store::Store;
use oncue_store::faulty::Faulty;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::gated::{self, Ending, Run};
use crate::rig::{Rig, ScriptedHost};
use crate::values::{Pairs, at_once, name, plain, request};

/// Every call is quicker.
const LONG: Duration = Duration::from_secs(60);

/// What a call takes where its time matters: much longer than one that does nothing, and much
/// shorter than what it is compared with.
const CALL: Duration = Duration::from_millis(200);

/// Workers of a host that has plenty.
const MANY: usize = 100;

/// A queue `in`, if nothing else is said for two tasks at once, with the message `a` and its
/// task about to begin.
struct Case {
    rig: Rig,
    store: Arc<Faulty>,
    /// Ends the patience of a task that waits for its next message.
    over: Arc<Notify>,
}

impl Case {
    fn new(workers: usize, begins_in: Duration, queue: Pairs<'_>) -> Self {
        Self::of(workers, begins_in, &[], queue)
    }

    fn of(workers: usize, begins_in: Duration, process: Pairs<'_>, queue: Pairs<'_>) -> Self {
        let (mut rig, store) = Rig::hosted(ScriptedHost::of(workers, begins_in));
        store.set_pipelines(true);
        let mut attributes = queue.to_vec();
        if !queue.iter().any(|(name, _)| *name == "max-tasks") {
            attributes.push(("max-tasks", "2"));
        }
        rig.plugin("pipe", process, &[("in", &attributes)]);
        rig.put("in", "a");
        let over = Arc::new(Notify::new());
        Self { rig, store, over }
    }

    /// On a host of many workers where every call is quick.
    fn quick() -> Self {
        Self::new(MANY, LONG, &[])
    }

    fn begin(
        &mut self,
        handler: impl FnMut(Arc<TaskSession>, String) -> Ending + Send + 'static,
    ) -> Run {
        Run::patient(&mut self.rig, handler, self.over.clone())
    }

    /// The task that has handled `a` and waits for its next message.
    fn waits(
        &mut self,
        handler: impl FnMut(Arc<TaskSession>, String) -> Ending + Send + 'static,
    ) -> Run {
        let mut run = self.begin(handler);
        assert!(!run.go(&mut self.rig), "it waits");
        run
    }

    /// Puts a message without a turn; answers whether one is wanted for it.
    fn put(&mut self, body: &str) -> bool {
        put(&self.rig.handle, body);
        self.rig.manager.wants_turn()
    }

    /// Runs the task until it waits again; answers whether a turn is wanted.
    fn wakes(&mut self, run: &mut Run) -> bool {
        assert!(!run.go_alone(&self.rig), "it waits");
        self.rig.manager.wants_turn()
    }
}

fn put(handle: &Handle, body: &str) {
    at_once(handle.put(vec![plain("in", body)], None)).expect("the put is taken");
}

/// A handler that does nothing: it wakes the loop for nothing of its own.
fn quietly(_: Arc<TaskSession>, _: String) -> Ending {
    gated::at_once(CallEnd::Ok)
}

/// A handler with something that happens in the call for `body`.
fn with(
    body: &'static str,
    mut act: impl FnMut() + Send + 'static,
) -> impl FnMut(Arc<TaskSession>, String) -> Ending + Send + 'static {
    move |_, called| {
        if called == body {
            act();
        }
        gated::at_once(CallEnd::Ok)
    }
}

/// Uses the processor for so long.
fn busy(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[test]
fn what_comes_while_a_quick_task_is_there_is_left_to_it_and_the_loop_sleeps_on() {
    let mut case = Case::quick();
    let mut run = case.waits(quietly);
    // The first is that of the task that waits (0023); more come before it goes on.
    for body in ["b", "c", "d"] {
        assert!(!case.put(body), "{body}: no turn is wanted");
    }
    assert!(!case.wakes(&mut run), "it has woken nobody");
    assert_eq!(run.calls(), ["a", "b", "c", "d"]);
    assert_eq!((case.rig.depth("in"), case.rig.waiting()), (0, 0));
}

#[test]
fn nothing_is_left_beside_a_task_that_may_keep_the_workers() {
    let mut case = Case::quick();
    case.rig.plugin("slow", &[], &[("other", &[])]);
    let mut run = case.waits(quietly);
    case.rig.put("other", "x");
    case.rig.settle();
    assert_eq!(case.rig.waiting(), 1, "its task has begun with nothing yet");
    assert!(!case.put("b"), "the task that waits is met");
    assert!(case.put("c"), "a turn is wanted");
    let mut other = Run::patient(&mut case.rig, quietly, Arc::clone(&case.over));
    assert!(!other.go(&mut case.rig), "it waits, at hand as well");
    assert!(!case.wakes(&mut run));
    for body in ["d", "e"] {
        assert!(!case.put(body), "{body}: no turn is wanted");
    }
}

#[test]
fn what_comes_during_a_quick_call_is_left_to_its_task() {
    let mut case = Case::quick();
    let handle = case.rig.handle.clone();
    let mut run = case.waits(with("b", move || put(&handle, "c")));
    assert!(!case.put("b"));
    assert!(!case.wakes(&mut run), "it has woken nobody");
    assert_eq!(run.calls(), ["a", "b", "c"]);
}

#[test]
fn a_task_that_stands_in_line_for_its_worker_is_left_messages() {
    let mut case = Case::quick();
    let mut run = case.begin(quietly);
    while run.calls().is_empty() {
        assert_eq!(run.go_on(&case.rig), None, "it gives way");
    }
    case.rig.settle();
    assert!(!case.put("b"), "no turn is wanted");
    assert!(!case.wakes(&mut run));
    assert_eq!(run.calls(), ["a", "b"]);
}

#[test]
fn a_wait_in_a_call_wakes_the_loop_for_what_was_left() {
    let mut case = Case::quick();
    let gate = Arc::new(Notify::new());
    let opens = gate.clone();
    let mut run = case.waits(move |_, body| {
        let gate = gate.clone();
        Box::pin(async move {
            if body == "b" {
                gate.notified().await;
            }
            CallEnd::Ok
        })
    });
    assert!(!case.put("b"));
    assert!(!case.put("c"), "it is left to the task");
    assert!(case.wakes(&mut run), "it waits in its call for b");
    case.rig.settle();
    assert_eq!(case.rig.run(|_| CallEnd::Ok), ["c"], "another task runs");
    assert!(case.put("d"), "it is left to nobody");
    case.rig.settle();
    assert_eq!(case.rig.run(|_| CallEnd::Ok), ["d"]);
    opens.notify_one();
    run.go(&mut case.rig);
    assert_eq!(run.calls(), ["a", "b"]);
    assert!(!case.put("e") && !case.put("f"), "it is at hand again");
}

#[test]
fn a_call_that_took_longer_wakes_the_loop_for_what_was_left() {
    let mut case = Case::new(MANY, CALL, &[]);
    let handle = case.rig.handle.clone();
    let mut run = case.waits(with("b", move || {
        put(&handle, "c");
        busy(CALL);
    }));
    assert!(!case.put("b"));
    assert!(case.wakes(&mut run));
    assert_eq!(run.calls(), ["a", "b", "c"]);
}

#[test]
fn a_task_whose_calls_take_longer_is_left_nothing() {
    let mut case = Case::new(MANY, Duration::ZERO, &[]);
    let _run = case.waits(quietly);
    assert!(!case.put("b"), "it waits for one (0023)");
    assert!(case.put("c"), "a turn is wanted");
}

/// A tick comes in a call that has lasted so long; answers whether a message that is put before the
/// task goes on wakes the loop.
fn wakes_in_a_call_that_gives_way_after(time: Duration, begins_in: Duration) -> bool {
    let mut case = Case::new(MANY, begins_in, &[]);
    let mut run = case.waits(move |session, body| {
        if body == "a" {
            return gated::at_once(CallEnd::Ok);
        }
        let mut gave_way = false;
        Box::pin(poll_fn(move |context| {
            if std::mem::replace(&mut gave_way, true) {
                return Poll::Ready(CallEnd::Ok);
            }
            busy(time);
            session.gives_way();
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    });
    assert!(!case.put("b"), "it is that of the task that waits");
    // It may give way before it looks for messages, too.
    while run.calls().len() < 2 {
        assert_eq!(run.go_on(&case.rig), None, "it gives way");
    }
    let wakes = case.put("c");
    assert!(!run.go_alone(&case.rig), "it waits");
    assert_eq!(run.calls(), ["a", "b", "c"]);
    wakes
}

#[test]
fn a_task_whose_call_has_just_begun_stays_at_hand_when_a_tick_comes() {
    assert!(!wakes_in_a_call_that_gives_way_after(Duration::ZERO, LONG));
}

#[test]
fn a_task_whose_call_lasts_longer_is_at_hand_no_more_when_a_tick_comes() {
    assert!(wakes_in_a_call_that_gives_way_after(2 * CALL, CALL));
}

/// Six messages are left to a task whose last call took a third of what is soon: answers whether
/// it wakes the loop before it has worked them off.
fn wakes_for_six(workers: usize) -> bool {
    let mut case = Case::new(workers, 3 * CALL, &[]);
    let mut run = case.waits(with("a", || busy(CALL)));
    for body in ["b", "c", "d", "e", "f", "g"] {
        assert!(!case.put(body), "{body}: no turn is wanted");
    }
    let wakes = case.wakes(&mut run);
    assert_eq!(run.calls(), ["a", "b", "c", "d", "e", "f", "g"]);
    wakes
}

#[test]
fn more_than_the_task_works_off_soon_wakes_the_loop() {
    assert!(wakes_for_six(2));
}

#[test]
fn no_more_is_done_by_waking_the_loop_while_all_workers_have_such_tasks() {
    assert!(!wakes_for_six(1));
}

#[test]
fn what_the_task_has_in_hand_before_what_is_left_counts() {
    let mut case = Case::of(MANY, 3 * CALL, &[("batch", "6")], &[]);
    let handle = case.rig.handle.clone();
    let mut run = case.waits(with("c", move || {
        busy(CALL);
        put(&handle, "h");
    }));
    for body in ["b", "c", "d", "e", "f", "g"] {
        assert!(!case.put(body), "{body}: no turn is wanted");
    }
    assert!(case.wakes(&mut run), "four of the unit come before h");
    assert_eq!(run.calls(), ["a", "b", "c", "d", "e", "f", "g", "h"]);
}

#[test]
fn a_handler_that_turns_slow_gets_as_many_tasks_as_its_queue_may_have() {
    let mut case = Case::new(MANY, LONG, &[("max-tasks", "3")]);
    let slow = |body: String| -> Ending {
        match body.as_str() {
            "a" => gated::at_once(CallEnd::Ok),
            _ => Box::pin(std::future::pending()),
        }
    };
    let mut runs = vec![case.waits(move |_, body| slow(body))];
    for body in ["b", "c", "d", "e"] {
        assert!(!case.put(body), "{body}: no turn is wanted");
    }
    assert!(case.wakes(&mut runs[0]));
    for _ in 0..2 {
        case.rig.settle();
        assert_eq!(case.rig.waiting(), 1, "one start after the other");
        let mut run = case.begin(move |_, body| slow(body));
        assert!(!run.go(&mut case.rig));
        runs.push(run);
    }
    assert_eq!(case.rig.waiting(), 0, "as many as it may have");
    let calls: Vec<_> = runs.iter().flat_map(Run::calls).collect();
    assert_eq!(calls, ["a", "b", "c", "d"]);
    case.rig.in_runtime(|| drop(runs));
}

#[test]
fn an_operators_word_holds_for_a_task_at_hand_too() {
    let mut case = Case::quick();
    let mut run = case.waits(quietly);
    case.rig.trigger("in", false);
    case.put("b");
    case.put("c");
    assert!(run.go(&mut case.rig), "it ends");
    assert_eq!(run.calls(), ["a"]);
    assert_eq!((case.rig.depth("in"), case.rig.waiting()), (2, 0));
    case.rig.trigger("in", true);
    assert_eq!(case.rig.waiting(), 1);
}

#[test]
fn more_messages_at_once_than_the_one_waited_for_wake_the_loop() {
    let mut case = Case::quick();
    let mut run = case.waits(quietly);
    let puts = vec![plain("in", "b"), plain("in", "c")];
    at_once(case.rig.handle.put(puts, None)).expect("the put is taken");
    assert!(case.rig.manager.wants_turn());
    case.rig.settle();
    assert_eq!(case.rig.waiting(), 1, "another task is started (0023)");
    assert!(!run.go(&mut case.rig));
}

#[test]
fn tasks_of_other_types_are_left_nothing() {
    let depth: Pairs<'_> = &[("trigger", "depth"), ("trigger-depth", "1")];
    for (queue, is_left) in [(&[] as Pairs<'_>, true), (depth, false)] {
        let mut case = Case::new(MANY, LONG, queue);
        let mut run = case.begin(quietly);
        while run.calls().is_empty() {
            assert_eq!(run.go_on(&case.rig), None, "it gives way");
        }
        case.rig.settle();
        assert_eq!(!case.put("b"), is_left, "{queue:?}");
    }
    // One start of `every` ends before anything could be left to it.
    let mut case = Case::new(MANY, LONG, &[("trigger", "every")]);
    let handle = case.rig.handle.clone();
    let mut run = case.begin(with("a", move || put(&handle, "b")));
    assert!(run.go(&mut case.rig));
    assert_eq!((run.calls().len(), case.rig.waiting()), (1, 1));
}

#[test]
fn what_is_left_when_the_task_ends_is_another_ones_and_so_is_what_comes_then() {
    let mut case = Case::quick();
    let mut run = case.waits(quietly);
    case.rig.process("pipe", &[("fuel", "7 M")]);
    assert!(!case.put("b") && !case.put("c"), "the task waits still");
    assert!(
        run.go_alone(&case.rig),
        "it ends, for its process is another"
    );
    case.rig.settle();
    let mut next = Run::patient(&mut case.rig, quietly, case.over.clone());
    assert!(!next.go(&mut case.rig));
    assert_eq!(run.calls(), ["a"]);
    assert_eq!(next.calls(), ["b", "c"]);
    case.over.notify_one();
    assert!(next.go(&mut case.rig), "its patience is over");
    assert!(case.put("d"), "nobody is at hand: a turn is wanted");
}

#[test]
fn a_task_that_is_dropped_wakes_the_loop_for_what_was_left() {
    let mut case = Case::quick();
    let kept = Arc::new(Mutex::new(None));
    let keeps = kept.clone();
    let mut run = case.begin(move |session, _| {
        // Its end must not be what wakes the loop.
        *keeps.lock() = Some(session.clone());
        gated::at_once(CallEnd::Ok)
    });
    assert!(!run.go(&mut case.rig), "it waits");
    assert!(!case.put("b") && !case.put("c"), "they are left to it");
    case.rig.in_runtime(|| drop(run));
    assert!(case.rig.manager.wants_turn());
    case.rig.settle();
    assert_eq!(case.rig.run(|_| CallEnd::Ok), ["b", "c"]);
    drop(kept.lock().take());
    case.rig.settle();
    assert!(case.put("d"), "nobody is at hand: a turn is wanted");
}

#[test]
fn a_panic_in_the_host_counts_the_task_off() {
    let mut case = Case::quick();
    let mut run = case.waits(with("b", || panic!("of the test")));
    assert!(!case.put("b") && !case.put("c"), "they are left to it");
    let rig = &case.rig;
    let went = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.go_alone(rig)));
    assert!(went.is_err());
    case.rig.in_runtime(|| drop(run));
    // The task is lost, and the next start waits as after one that failed.
    case.rig.settle();
    case.rig.advance(60_000);
    assert_eq!(case.rig.run(|_| CallEnd::Ok), ["b", "c"]);
    assert!(case.put("d"), "nobody is at hand: a turn is wanted");
}

#[test]
fn what_comes_between_a_look_that_found_nothing_and_the_wait_is_handled_at_once() {
    let mut case = Case::quick();
    let handle = case.rig.handle.clone();
    case.store.after_empty_take(move || put(&handle, "b"));
    let run = case.waits(quietly);
    assert_eq!(run.calls(), ["a", "b"]);
}

#[test]
fn what_comes_as_the_task_begins_to_wait_for_a_sync_is_handled_at_once() {
    let mut case = Case::quick();
    case.rig.put("in", "b");
    // Somebody else has b in hand, and gives it back at that moment.
    let memory = case.rig.memory.clone();
    let (other, id) = (OwnerId(7), case.rig.browse("in")[1].message.header.id);
    let taken = memory.take_any(other, &name("in"), id);
    assert!(taken.expect("it can be read").is_some());
    let place = (name("in"), id.sequence);
    case.store
        .after_empty_take(move || memory.release(other, &[place]));
    case.store.stall();
    let mut run = case.begin(quietly);
    assert!(!run.go(&mut case.rig), "its units wait");
    assert_eq!(run.calls(), ["a", "b"]);
    assert_eq!(case.store.stalled(), 2);
    case.store.resume();
}

#[test]
fn where_what_is_ready_cannot_be_taken_the_task_waits_and_the_loop_is_woken_for_what_was_left() {
    let mut case = Case::quick();
    let mut run = case.waits(quietly);
    // It is over before the task looks, and nobody has seen to that yet.
    let options = PutOptions {
        expiry: Some(1),
        ..PutOptions::default()
    };
    let put_b = case.rig.handle.put(vec![request("in", "b", options)], None);
    at_once(put_b).expect("the put is taken");
    case.rig.clock.advance(1);
    let (handle, store) = (case.rig.handle.clone(), case.store.clone());
    case.store.after_empty_take(move || {
        let second = move || put(&handle, "c");
        store.after_empty_take(second);
    });
    assert!(!case.rig.manager.wants_turn());
    assert!(case.wakes(&mut run));
    assert_eq!(run.calls(), ["a"]);
    case.rig.settle();
    assert_eq!(case.rig.run(|_| CallEnd::Ok), ["c"], "another task runs");
}
