//! Pipelined commits: the next message is called while the last units wait for their sync.

use std::sync::Arc;

use bytes::Bytes;
use oncue_core::outcome::{CallEnd, Outcome};
use oncue_manager::tasks::TaskSession;
use oncue_manager::tasks::pipeline::PIPELINE_UNITS;
use oncue_manager::tasks::port::{GetOptions, Got, PutOptions};
use oncue_store::{CommitError, MessageState};
use parking_lot::Mutex;

use crate::gated::{Ending, Run, at_once, conflict, ended, gated, pass_on, plainly, states};
use crate::values::{Pairs, name, plain, request, retry, text};

#[test]
fn the_next_message_is_called_while_the_last_units_sync_is_pending() {
    let (mut rig, store) = gated(&[], &[], &["a", "b", "c"]);
    let mut run = Run::of(&mut rig, plainly);
    assert!(!run.go(&mut rig), "what is pending is awaited");
    assert_eq!(run.calls(), ["a", "b", "c"]);
    assert_eq!(store.stalled(), 3);
    // Nothing of them is visible, nor are they anybody else's.
    assert_eq!(rig.depth("out"), 0);
    assert_eq!(states(&rig, "in"), [MessageState::InUnit; 3]);
    store.resume_one();
    assert!(!run.go(&mut rig));
    assert_eq!(rig.bodies("out"), ["a"]);
    assert_eq!(rig.bodies("in"), ["b", "c"]);
    store.resume();
    assert!(run.go(&mut rig));
    assert_eq!(rig.bodies("out"), ["a", "b", "c"]);
    assert_eq!((rig.depth("in"), rig.waiting()), (0, 0));
    let record = ended(&mut rig);
    assert_eq!((record.committed, record.failed), (3, 0));
    rig.assert_ledger_empty();
}

#[test]
fn a_refused_unit_undoes_every_later_one_uncharged_and_each_is_handled_once() {
    let (mut rig, store) = gated(&[], &[], &["a", "b", "c", "d"]);
    let mut run = Run::of(&mut rig, plainly);
    run.go(&mut rig);
    store.resume_one();
    store.refuse_commit(conflict());
    store.resume();
    assert!(run.go(&mut rig));
    assert_eq!(run.calls(), ["a", "b", "c", "d", "b", "c", "d"]);
    assert_eq!(rig.bodies("out"), ["a", "b", "c", "d"]);
    assert_eq!((rig.depth("in"), rig.waiting()), (0, 0));
    let record = ended(&mut rig);
    assert_eq!((record.committed, record.failed), (4, 0));
    assert_eq!(record.outcome, Some(Outcome::Committed));
}

#[test]
fn a_store_that_does_not_write_ends_the_task_and_all_is_back_uncharged() {
    for error in [
        CommitError::Full,
        CommitError::Stopped("of the test".to_owned()),
        CommitError::Fenced,
    ] {
        let (mut rig, store) = gated(&[], &[], &["a", "b", "c"]);
        let mut run = Run::of(&mut rig, plainly);
        run.go(&mut rig);
        store.resume_one();
        store.refuse_commit(error);
        store.resume();
        assert!(run.go(&mut rig));
        assert_eq!(rig.bodies("out"), ["a"]);
        assert_eq!(rig.bodies("in"), ["b", "c"]);
        for browsed in rig.browse("in") {
            assert_eq!(browsed.message.attempts, Default::default());
        }
        let record = ended(&mut rig);
        assert_eq!(
            (record.committed, record.failed, record.outcome),
            (1, 0, Some(Outcome::Released))
        );
        rig.advance(1_000);
        assert_eq!(rig.run_all(), ["b", "c"]);
    }
}

#[test]
fn a_unit_whose_answer_is_unknown_undoes_what_followed_it() {
    let (mut rig, store) = gated(&[], &[], &["a", "b", "c"]);
    let mut run = Run::of(&mut rig, plainly);
    run.go(&mut rig);
    store.lose_answer();
    store.resume();
    assert!(run.go(&mut rig));
    // It turned out to be there: it is not run again, and what followed is.
    assert_eq!(rig.bodies("out"), ["a"]);
    assert_eq!(rig.bodies("in"), ["b", "c"]);
    rig.advance(1_000);
    assert_eq!(rig.run_all(), ["b", "c"]);
    assert_eq!(rig.depth("in"), 0);
}

#[test]
fn a_queue_that_fills_up_under_way_refuses_the_unit_and_then_the_put() {
    let (mut rig, store) = gated(&[], &[], &["0", "1", "2", "3"]);
    store.resume();
    rig.define("out", &[("max-depth", "2")]);
    store.stall();
    let mut run = Run::of(&mut rig, plainly);
    run.go(&mut rig);
    assert_eq!(run.calls(), ["0", "1", "2", "3"]);
    store.resume();
    assert!(run.go(&mut rig));
    assert_eq!(rig.bodies("out"), ["0", "1"]);
    // Run again with nothing under way, the puts were refused and the handlers failed: once each.
    assert_eq!(run.calls()[4..], ["2", "3"]);
    let attempts: Vec<_> = rig
        .browse("in")
        .iter()
        .map(|m| m.message.attempts)
        .collect();
    let counts: Vec<_> = attempts.iter().map(|a| a.backout_count).collect();
    assert_eq!(counts, [1, 1]);
}

/// Puts the body to `out`, and ends only when it is polled once more.
fn at_second_sight(session: Arc<TaskSession>, body: String) -> Ending {
    let passed = pass_on(&session, &body);
    let mut seen = false;
    Box::pin(std::future::poll_fn(move |_| {
        if std::mem::replace(&mut seen, true) {
            return std::task::Poll::Ready(passed.clone());
        }
        std::task::Poll::Pending
    }))
}

#[test]
fn handlers_of_several_tasks_never_fill_a_queue_past_its_depth() {
    for pipelines in [true, false] {
        let (mut rig, store) = gated(&[], &[("max-tasks", "2")], &["a", "b"]);
        store.resume();
        store.set_pipelines(pipelines);
        rig.define("out", &[("max-depth", "1")]);
        // Both put while the queue is empty, and neither is committed.
        let mut one = Run::of(&mut rig, at_second_sight);
        assert!(!one.go(&mut rig));
        let mut other = Run::of(&mut rig, at_second_sight);
        assert!(!other.go(&mut rig));
        assert_eq!([one.calls(), other.calls()], [["a"], ["b"]]);
        for run in [&mut one, &mut other] {
            assert!((0..100).any(|_| run.go(&mut rig)), "it comes to its end");
        }
        assert_eq!(rig.bodies("out"), ["a"]);
        // The second handler was told when its unit ran again.
        assert_eq!(other.calls(), ["b", "b"]);
        assert_eq!(rig.attempts("in"), (1, 0));
    }
}

/// Fails the message `bad`.
fn failing(session: Arc<TaskSession>, body: String) -> Ending {
    let passed = pass_on(&session, &body);
    at_once(if body == "bad" { retry() } else { passed })
}

#[test]
fn after_a_failed_call_everything_is_durable_before_the_next() {
    let (mut rig, store) = gated(&[], &[], &["a", "bad", "c"]);
    let mut run = Run::of(&mut rig, failing);
    run.go(&mut rig);
    assert_eq!(run.calls(), ["a", "bad"]);
    assert_eq!(store.stalled(), 1, "the failure waits for what it rests on");
    store.resume_one();
    run.go(&mut rig);
    assert_eq!((run.calls().len(), store.stalled()), (2, 1));
    store.resume_one();
    run.go(&mut rig);
    assert_eq!(run.calls(), ["a", "bad", "c"]);
    store.resume();
    assert!(run.go(&mut rig));
    assert_eq!(rig.bodies("out"), ["a", "c"]);
    assert_eq!(rig.attempts("in"), (1, 0));
}

#[test]
fn a_call_that_failed_after_a_refused_unit_is_not_charged() {
    let (mut rig, store) = gated(&[], &[], &["a", "bad", "c"]);
    let mut run = Run::of(&mut rig, failing);
    run.go(&mut rig);
    store.refuse_commit(conflict());
    store.resume();
    assert!(run.go(&mut rig));
    assert_eq!(run.calls(), ["a", "bad", "a", "bad", "c"]);
    assert_eq!(rig.bodies("out"), ["a", "c"]);
    assert_eq!(
        rig.attempts("in"),
        (1, 0),
        "charged for the second time only"
    );
    let record = ended(&mut rig);
    assert_eq!((record.committed, record.failed), (2, 1));
}

#[test]
fn members_of_a_group_follow_each_other_in_one_chain_and_keep_their_order() {
    let (mut rig, store) = gated(&[], &[], &[]);
    store.resume();
    let member = |group: &str| PutOptions {
        group: Some(group.to_owned()),
        ..PutOptions::default()
    };
    for body in ["a1", "a2", "b1", "a3", "b2"] {
        rig.put_with("in", body, member(&body[..1]));
    }
    store.stall();
    let mut run = Run::of(&mut rig, plainly);
    run.go(&mut rig);
    store.resume_one();
    store.refuse_commit(conflict());
    store.resume();
    assert!(run.go(&mut rig));
    let of = |bodies: Vec<String>, group: &str| -> Vec<String> {
        bodies
            .into_iter()
            .filter(|b| b.starts_with(group))
            .collect()
    };
    let first: Vec<_> = run.calls()[..5].to_vec();
    assert_eq!(of(first, "a"), ["a1", "a2", "a3"], "none waited for a sync");
    assert_eq!(of(rig.bodies("out"), "a"), ["a1", "a2", "a3"]);
    assert_eq!(of(rig.bodies("out"), "b"), ["b1", "b2"]);
    assert_eq!(rig.depth("in"), 0);
}

#[test]
fn a_unit_that_did_more_than_handle_its_message_is_awaited() {
    let keyed = |body: &str| {
        let idempotency_key = Some("once".to_owned());
        request(
            "out",
            body,
            PutOptions {
                idempotency_key,
                ..PutOptions::default()
            },
        )
    };
    let check = |what: &str, act: fn(&TaskSession)| {
        let (mut rig, store) = gated(&[], &[], &["a", "more", "c"]);
        let mut run = Run::of(&mut rig, move |session, body| {
            if body == "more" {
                act(&session);
            }
            at_once(CallEnd::Ok)
        });
        run.go(&mut rig);
        assert_eq!(run.calls(), ["a", "more"], "{what}");
        assert_eq!(store.stalled(), 2, "{what}");
        store.resume();
        assert!(run.go(&mut rig));
        assert_eq!(run.calls(), ["a", "more", "c"], "{what}");
    };
    check("a write of state", |session| {
        session
            .state_set("", "k", Bytes::from_static(b"1"))
            .unwrap();
    });
    check("a read of state", |session| {
        drop(session.state_get("", "k").unwrap())
    });
    check("a list of keys", |session| {
        drop(session.state_keys("", None).unwrap())
    });
    // Two units that put under one key: the second is told the first's id, and nothing conflicts.
    let (mut rig, store) = gated(&[], &[], &["a", "b"]);
    let ids = Arc::new(Mutex::new(Vec::new()));
    let seen = ids.clone();
    let mut run = Run::of(&mut rig, move |session, _| {
        seen.lock().push(session.put(keyed("same")).unwrap());
        at_once(CallEnd::Ok)
    });
    run.go(&mut rig);
    assert_eq!(run.calls(), ["a"]);
    store.resume();
    assert!(run.go(&mut rig));
    assert_eq!((run.calls().len(), rig.depth("out")), (2, 1));
    let ids = ids.lock();
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn a_guest_that_looks_around_first_waits_for_what_is_under_way() {
    let (mut rig, store) = gated(&[], &[], &["a", "looks", "c", "d"]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = seen.clone();
    let mut run = Run::of(&mut rig, move |session, body| {
        let notes = notes.clone();
        Box::pin(async move {
            if body == "looks" {
                let out = session.browse(&name("out"), None, 9).await.unwrap();
                let own = session.browse(&name("in"), None, 9).await.unwrap();
                notes.lock().push((out.messages.len(), own.messages.len()));
                let got = session.get(GetOptions::default()).await.unwrap();
                let Got::Message(next) = got else {
                    panic!("the next one is there, fetched or not");
                };
                assert_eq!(text(&session, &next), "c");
                assert_eq!(session.depth(&name("in")).await.unwrap(), 3);
            }
            pass_on(&session, &body)
        })
    });
    run.go(&mut rig);
    assert_eq!((run.calls().len(), store.stalled()), (2, 1));
    assert!(seen.lock().is_empty(), "it waits for the unit before it");
    store.resume_one();
    run.go(&mut rig);
    assert_eq!(*seen.lock(), [(1, 2)], "the put of `a`; `c` and `d`");
    assert_eq!(run.calls(), ["a", "looks"]);
    store.resume();
    assert!(run.go(&mut rig));
    assert_eq!(run.calls(), ["a", "looks", "d"]);
    assert_eq!(rig.depth("in"), 0);
}

#[test]
fn a_guest_that_looks_around_after_a_refused_unit_is_undone_with_it() {
    let (mut rig, store) = gated(&[], &[], &["a", "looks"]);
    let mut run = Run::of(&mut rig, |session, body| {
        Box::pin(async move {
            if body == "looks"
                && let Err(error) = session.depth(&name("in")).await
            {
                return CallEnd::HostFailed(error.to_string());
            }
            pass_on(&session, &body)
        })
    });
    run.go(&mut rig);
    store.refuse_commit(conflict());
    store.resume();
    assert!(run.go(&mut rig));
    assert_eq!(run.calls(), ["a", "looks", "a", "looks"]);
    assert_eq!(rig.bodies("out"), ["a", "looks"]);
    assert_eq!(ended(&mut rig).failed, 0);
}

#[test]
fn what_must_not_is_never_pipelined() {
    let check = |what: &str, process: Pairs<'_>, queue: Pairs<'_>, pipelines: bool| {
        let (mut rig, store) = gated(process, queue, &["a", "b"]);
        store.set_pipelines(pipelines);
        // Begun after the store was asked: by a start of its own.
        store.resume();
        rig.run(|_| CallEnd::Ok);
        rig.put_all(vec![plain("in", "c"), plain("in", "d")])
            .unwrap();
        store.stall();
        let mut run = Run::of(&mut rig, plainly);
        run.go(&mut rig);
        assert_eq!((run.calls().len(), store.stalled()), (1, 1), "{what}");
        store.resume();
        assert!(run.go(&mut rig), "{what}");
    };
    let http: Pairs<'_> = &[("grants.http", "https://example.org")];
    check("a network grant", http, &[], true);
    check("every", &[], &[("trigger", "every")], true);
    check("a store that does not", &[], &[], false);
}

#[test]
fn a_stop_at_the_boundary_awaits_what_is_pending() {
    let bodies: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    let (mut rig, store) = gated(&[], &[], &bodies);
    let mut run = Run::of(&mut rig, |session, body| {
        if body == "20" {
            session.stop_at_boundary();
        }
        plainly(session, body)
    });
    assert!(!run.go(&mut rig));
    assert_eq!(run.calls().len(), 21, "none after it, fetched or not");
    store.resume();
    assert!(run.go(&mut rig));
    assert_eq!(rig.depth("out"), 21);
    assert_eq!(states(&rig, "in"), [MessageState::Ready; 19]);
    assert_eq!(ended(&mut rig).committed, 21);
    assert_eq!(rig.run_all(), bodies[21..]);
}

#[test]
fn units_under_way_are_bounded() {
    let bodies: Vec<String> = (0..PIPELINE_UNITS + 10).map(|n| n.to_string()).collect();
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    let (mut rig, store) = gated(&[], &[], &bodies);
    let mut run = Run::of(&mut rig, plainly);
    run.go(&mut rig);
    assert_eq!(run.calls().len(), PIPELINE_UNITS);
    store.resume_one();
    run.go(&mut rig);
    assert_eq!(run.calls().len(), PIPELINE_UNITS + 1);
    store.resume();
    assert!(run.go(&mut rig));
    assert_eq!(rig.bodies("out"), bodies);
}

#[test]
fn a_lost_task_loses_and_doubles_nothing_that_was_pending() {
    for refused in [false, true] {
        let (mut rig, store) = gated(&[], &[], &["a", "b", "c", "d"]);
        let mut run = Run::of(&mut rig, plainly);
        run.go(&mut rig);
        store.resume_one();
        // The host drops it, as at a panic of its worker.
        rig.in_runtime(|| drop(run));
        rig.settle();
        assert_eq!(ended(&mut rig).outcome, Some(Outcome::StartFailed));
        if refused {
            store.refuse_commit(conflict());
        }
        store.resume();
        rig.settle();
        rig.advance(100_000);
        let again = rig.run_all();
        let left: &[&str] = if refused { &["b", "c", "d"] } else { &[] };
        assert_eq!(again, left);
        assert_eq!(rig.bodies("out").len(), if refused { 1 } else { 4 });
        assert_eq!(rig.depth("in"), 0);
        rig.assert_ledger_empty();
    }
}

#[test]
fn what_expires_while_it_waits_for_its_turn_is_not_called() {
    let (mut rig, store) = gated(&[], &[], &[]);
    store.resume();
    for number in 0..60 {
        let expiry = Some(5_000);
        let options = PutOptions {
            expiry,
            ..PutOptions::default()
        };
        rig.put_with("in", &number.to_string(), options);
    }
    store.stall();
    let clock = rig.clock.clone();
    let mut run = Run::of(&mut rig, move |session, body| {
        if body == "40" {
            clock.advance(10_000);
        }
        plainly(session, body)
    });
    run.go(&mut rig);
    assert_eq!(run.calls().len(), 41);
    store.resume();
    assert!(run.go(&mut rig));
    assert_eq!(rig.depth("out"), 41);
}

#[test]
fn messages_are_fetched_ahead() {
    let bodies: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    let (mut rig, store) = gated(&[], &[], &bodies);
    store.resume();
    let most = Arc::new(Mutex::new(0));
    let (seen, memory) = (most.clone(), rig.memory.clone());
    let mut run = Run::of(&mut rig, move |session, body| {
        // Those before it are settled at once here: in a unit is it and what was fetched.
        let browse = oncue_store::Browse {
            queue: name("in"),
            cursor: None,
            max: 1000,
            now: oncue_core::time::Timestamp(0),
            ready_only: false,
        };
        let page = oncue_store::Store::browse(&*memory, &browse).unwrap();
        let held = page
            .messages
            .iter()
            .filter(|m| m.state == MessageState::InUnit);
        let mut most = seen.lock();
        *most = held.count().max(*most);
        plainly(session, body)
    });
    assert!(run.go(&mut rig));
    let most = *most.lock();
    assert!((2..=17).contains(&most), "{most} at once");
    assert_eq!(rig.bodies("out"), bodies);
}
