//! What a crowd of clients at once brought to light, each case brought down to one thread.

use oncue_manager::handle::GetRequest;

use crate::rig::Rig;
use crate::trigger_types::outside_get;
use crate::values::{name, queue_patch};

/// An acknowledgement that commits in the same turn in which the queue is deleted and defined again
/// counts for the old queue, not for the new one: else the new one would count a message less than
/// it has, and the last one would wait for ever.
#[test]
fn a_queue_defined_again_starts_from_nothing() {
    let (mut rig, faulty) = Rig::faulty();
    rig.plugin("in", &[], &[("in", &[("trigger-control", "off")])]);
    rig.put("in", "old");
    let handle = rig.handle.clone();
    let get = GetRequest {
        wait: 0,
        ..outside_get("in")
    };
    let leased = rig.ask(async move { handle.get(get).await }).unwrap();
    assert_eq!(rig.queue("in").counts.leased, 1);

    faulty.stall();
    let handle = rig.handle.clone();
    let mut ack = Box::pin(handle.ack(leased[0].token));
    let mut delete = Box::pin(handle.delete_queue(name("in"), false));
    let patch = queue_patch(&[("process", "in")]);
    let mut define = Box::pin(handle.define_queue(name("in"), patch));
    assert!(rig.poll(&mut ack).is_none(), "the store stalls");
    assert!(rig.poll(&mut delete).is_none(), "the loop has not turned");
    assert!(rig.poll(&mut define).is_none(), "the loop has not turned");
    let manager = &mut rig.manager;
    std::thread::scope(|scope| {
        scope.spawn(|| manager.turn());
        // The loop waits for its deletion, which stands behind the acknowledgement.
        while faulty.stalled() < 2 {
            std::thread::yield_now();
        }
        faulty.resume();
    });
    rig.ask(ack).unwrap();
    rig.ask(delete).unwrap();
    assert!(rig.ask(define).unwrap().1, "it was made anew");

    rig.put("in", "new");
    let queue = rig.queue("in");
    assert_eq!((queue.depth, queue.counts.leased), (1, 0));
    assert_eq!(rig.run_all(), ["new"]);
}

/// A get that waits on a queue that is deleted is told so, rather than waiting beside a new queue
/// of that name.
#[test]
fn a_waiting_get_learns_that_its_queue_is_gone() {
    let mut rig = Rig::new();
    rig.define("in", &[]);
    let handle = rig.handle.clone();
    let mut get = Box::pin(handle.get(outside_get("in")));
    assert!(rig.poll(&mut get).is_none(), "nothing is there");
    rig.ask(handle.delete_queue(name("in"), false)).unwrap();
    rig.define("in", &[]);
    rig.put("in", "new");
    let answer = rig.poll(&mut get).expect("it waits no longer");
    let error = answer.expect_err("the queue is gone");
    assert!(error.message.ends_with("[unknown-queue]"), "{error}");
}

/// A message that is given back until the end of time would be lost to everybody.
#[test]
fn a_nack_waits_a_year_at_most() {
    let mut rig = Rig::new();
    rig.define("in", &[]);
    rig.put("in", "one");
    let handle = rig.handle.clone();
    let leased = rig.ask(handle.get(outside_get("in"))).unwrap();
    let nack = |delay| handle.nack(leased[0].token, None, Some(delay));
    let year = 366 * 24 * 3_600_000;
    let error = rig.ask(nack(year + 1)).unwrap_err();
    assert!(error.message.contains("at most 31622400000 ms"), "{error}");
    rig.ask(nack(year)).unwrap();
    assert_eq!(rig.queue("in").counts.retrying, 1);
}

/// A forced deletion that is refused has removed nothing.
#[test]
fn a_refused_deletion_removes_no_message() {
    let mut rig = Rig::new();
    rig.plugin("busy", &[], &[("busy", &[])]);
    let handle = rig.handle.clone();
    let delete = |queue: &str| handle.delete_queue(name(queue), true);

    rig.put("busy", "one");
    rig.put("busy", "two");
    let error = rig.ask(delete("busy")).unwrap_err();
    assert!(error.message.ends_with("[queue-in-use]"), "{error}");
    assert_eq!(rig.run_all(), ["one", "two"]);

    rig.define("leased", &[]);
    rig.put("leased", "one");
    rig.put("leased", "two");
    let leased = rig.ask(handle.get(outside_get("leased"))).unwrap();
    let error = rig.ask(delete("leased")).unwrap_err();
    assert!(error.message.ends_with("[queue-in-use]"), "{error}");
    assert_eq!(rig.depth("leased"), 2);
    rig.ask(handle.ack(leased[0].token)).unwrap();
    rig.ask(delete("leased")).unwrap();

    rig.put("oncue.dead-letter", "one");
    let error = rig.ask(delete("oncue.dead-letter")).unwrap_err();
    assert!(error.message.ends_with("[reserved-name]"), "{error}");
    assert_eq!(rig.bodies("oncue.dead-letter"), ["one"]);
}

/// Two queues that are each other's backout queue would pass poison to and fro for ever.
#[test]
fn a_circle_of_backout_queues_is_refused() {
    let mut rig = Rig::new();
    rig.define("a", &[("backout-queue", "b")]);
    rig.define("b", &[("backout-queue", "c")]);
    let error = rig
        .try_define("c", &[("backout-queue", "a")])
        .expect_err("c leads back to itself");
    assert!(error.message.contains("leads back to \"c\""), "{error}");
    rig.define("c", &[("backout-queue", "d")]);
}
