//! A task that has emptied its queue waits for the next message, as long as its host has patience.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::gated::{Run, ended, plainly};
use crate::rig::Rig;
use crate::values::{Pairs, plain};

/// A queue `in` of those attributes, whose handler puts to `out`, with one task that has handled
/// the message `a`. It waits until it is told that its patience is over.
fn after_one(queue: Pairs<'_>) -> (Rig, Run, Arc<Notify>) {
    let mut rig = Rig::new();
    rig.define("out", &[]);
    let mut attributes = vec![("max-tasks", "2")];
    attributes.extend_from_slice(queue);
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
fn one_task_of_a_queue_waits_and_more_messages_are_for_more_tasks() {
    let (mut rig, mut run, over) = after_one(&[]);
    assert!(!run.go(&mut rig));
    assert!(put_quietly(&mut rig, &["b", "c"]), "a turn is wanted");
    rig.settle();
    assert_eq!(rig.waiting(), 1, "another task is started");
    let mut second = Run::patient(&mut rig, plainly, over);
    assert!(second.go(&mut rig), "it ends, for the first waits already");
    assert_eq!(second.calls(), ["b", "c"]);
    assert!(!run.go(&mut rig), "the first waits on");
    assert_eq!(run.calls(), ["a"]);
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
