//! A task that has emptied its queue waits for the next message, as long as its host has patience.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::gated::{Run, ended, plainly};
use crate::rig::{Rig, ScriptedHost};
use crate::values::{Pairs, plain};

/// A queue `in` of those attributes, whose handler puts to `out`, with one task that has handled
/// the message `a`. It waits until it is told that its patience is over.
fn after_one(queue: Pairs<'_>) -> (Rig, Run, Arc<Notify>) {
    after_one_in(Rig::new(), queue)
}

/// The same with more tasks at once, on a host of two workers.
fn after_one_of_two() -> (Rig, Run, Arc<Notify>) {
    let host = ScriptedHost::of(2, Duration::from_secs(60));
    after_one_in(Rig::hosted(host).0, &[("max-tasks", "4")])
}

fn after_one_in(mut rig: Rig, queue: Pairs<'_>) -> (Rig, Run, Arc<Notify>) {
    rig.define("out", &[]);
    let mut attributes = queue.to_vec();
    if queue.iter().all(|(name, _)| *name != "max-tasks") {
        attributes.push(("max-tasks", "2"));
    }
    rig.plugin("pipe", &[("grants.put", "out")], &[("in", &attributes)]);
    rig.put("in", "a");
    let over = Arc::new(Notify::new());
    let run = Run::patient(&mut rig, plainly, Arc::clone(&over));
    (rig, run, over)
}

/// Puts these as one unit, without a turn; answers whether one is wanted for them.
fn put_quietly(rig: &mut Rig, bodies: &[&str]) -> bool {
    let puts = bodies.iter().map(|body| plain("in", body)).collect();
    let handle = rig.handle.clone();
    let mut put = Box::pin(async move { handle.put(puts, None).await });
    let put = rig.poll(&mut put).expect("it is put at once");
    put.expect("it is taken");
    rig.manager.wants_turn()
}

#[test]
fn the_next_message_is_handled_by_the_task_that_waits_and_the_loop_sleeps_on() {
    let (mut rig, mut run, over) = after_one(&[]);
    assert!(!run.go(&mut rig), "it waits");
    for body in ["b", "c"] {
        assert!(!put_quietly(&mut rig, &[body]), "no turn is wanted");
        assert!(!run.go(&mut rig), "it waits again");
    }
    assert_eq!(run.calls(), ["a", "b", "c"]);
    over.notify_one();
    assert!(run.go(&mut rig), "its patience is over");
    assert_eq!(ended(&mut rig).committed, 3);
    assert_eq!((rig.depth("in"), rig.waiting()), (0, 0));
    rig.assert_ledger_empty();
    assert!(put_quietly(&mut rig, &["d"]), "the next is for the loop");
    rig.settle();
    assert_eq!(rig.waiting(), 1);
}

#[test]
fn a_message_that_comes_as_patience_ends_is_not_lost() {
    let (mut rig, mut run, over) = after_one(&[]);
    assert!(!run.go(&mut rig));
    assert!(!put_quietly(&mut rig, &["b"]));
    over.notify_one();
    while !run.go(&mut rig) {
        over.notify_one();
    }
    let handled = run.calls().len() - 1;
    assert_eq!(
        handled + rig.waiting(),
        1,
        "handled, or its task is started"
    );
}

#[test]
fn one_worker_has_one_task_that_waits_and_more_messages_are_for_more_tasks() {
    let host = ScriptedHost::of(1, Duration::ZERO);
    let (mut rig, mut run, over) = after_one_in(Rig::hosted(host).0, &[]);
    assert!(!run.go(&mut rig));
    assert!(put_quietly(&mut rig, &["b", "c"]), "a turn is wanted");
    rig.settle();
    assert_eq!(rig.waiting(), 1, "another task is started");
    let mut second = Run::patient(&mut rig, plainly, over);
    assert!(second.go(&mut rig), "it ends, for the first waits already");
    assert_eq!(second.calls(), ["b", "c"]);
    assert!(!run.go(&mut rig), "the first waits on");
    assert!(!put_quietly(&mut rig, &["d"]), "the next is its own");
    assert!(!run.go(&mut rig));
    assert_eq!(run.calls(), ["a", "d"]);
}

/// A task for these, put as one unit, runs until it waits or ends; which of both.
fn another(rig: &mut Rig, bodies: &[&str], over: &Arc<Notify>) -> (Run, bool) {
    assert!(put_quietly(rig, bodies), "a turn is wanted");
    rig.settle();
    assert_eq!(rig.waiting(), 1, "another task is started");
    let mut run = Run::patient(rig, plainly, Arc::clone(over));
    let has_ended = run.go(rig);
    assert_eq!(run.calls(), bodies);
    (run, has_ended)
}

#[test]
fn as_many_tasks_of_a_queue_wait_as_there_are_workers() {
    let (mut rig, mut first, over) = after_one_of_two();
    assert!(!first.go(&mut rig));
    let (mut second, has_ended) = another(&mut rig, &["b", "c"], &over);
    assert!(!has_ended, "it waits beside the first");
    let (_, has_ended) = another(&mut rig, &["d", "e"], &over);
    assert!(has_ended, "there is no worker for a third");
    // The two were told of what the third took.
    assert!(!first.go(&mut rig), "the first waits on");
    assert!(second.go(&mut rig), "the other was told in vain, and ends");
    assert_eq!((rig.depth("in"), rig.waiting()), (0, 0));
}

#[test]
fn a_task_that_waits_beside_another_takes_the_next_message_too() {
    let (mut rig, mut first, over) = after_one_of_two();
    assert!(!first.go(&mut rig));
    let (mut second, has_ended) = another(&mut rig, &["b", "c"], &over);
    assert!(!has_ended);
    for body in ["d", "e"] {
        assert!(!put_quietly(&mut rig, &[body]), "{body}: no turn is wanted");
    }
    assert!(!second.go(&mut rig), "it waits again");
    assert!(!first.go(&mut rig), "and so does the first");
    assert_eq!(second.calls(), ["b", "c", "d", "e"]);
    assert_eq!((rig.depth("in"), rig.waiting()), (0, 0));
}

#[test]
fn what_a_message_alone_would_not_start_is_not_waited_for() {
    let cases: [Pairs<'_>; 3] = [
        &[("trigger", "every")],
        &[("trigger", "depth"), ("trigger-depth", "1")],
        &[("trigger-priority", "1"), ("default-priority", "5")],
    ];
    for case in cases {
        let (mut rig, mut run, _over) = after_one(case);
        assert!(run.go(&mut rig), "{case:?}: it ends");
        assert_eq!(run.calls(), ["a"], "{case:?}");
    }
}

#[test]
fn an_operators_word_ends_the_wait_before_the_next_message() {
    let (mut rig, mut run, _over) = after_one(&[]);
    assert!(!run.go(&mut rig));
    rig.trigger("in", false);
    put_quietly(&mut rig, &["b"]);
    assert!(run.go(&mut rig), "it ends");
    assert_eq!(run.calls(), ["a"]);
    assert_eq!((rig.depth("in"), rig.waiting()), (1, 0));
}

#[test]
fn what_an_operator_changed_meanwhile_holds_for_the_next_message() {
    let (mut rig, mut run, _over) = after_one(&[]);
    assert!(!run.go(&mut rig));
    rig.process("pipe", &[("fuel", "7 M")]);
    put_quietly(&mut rig, &["b"]);
    assert!(run.go(&mut rig), "the task with the old attributes ends");
    assert_eq!(run.calls(), ["a"]);
    assert_eq!(rig.next_task().spec().attributes.fuel, 7_000_000);
}

#[test]
fn a_stop_ends_the_wait() {
    let (mut rig, mut run, _over) = after_one(&[]);
    assert!(!run.go(&mut rig));
    rig.manager.drain();
    assert!(run.go(&mut rig), "it ends");
    rig.assert_ledger_empty();
}
