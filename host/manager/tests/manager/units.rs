//! Units of work: undone whole, charged where the blame lies, moved at the threshold.

use bytes::Bytes;
use oncue_core::outcome::{CallEnd, Failure, Outcome};
use oncue_manager::tasks::port::{GetOptions, Got, PutOptions};

use crate::rig::Rig;
use crate::values::{Pairs, at_once, name, plain, request, retry, text, trapped};

/// A queue `in` whose handler may put to `out`.
fn pipe(trigger_style: bool, attributes: Pairs<'_>) -> Rig {
    let mut rig = Rig::new();
    rig.define("out", &[]);
    let process: Pairs<'_> = &[("grants.put", "out,in"), ("batch", "1")];
    if trigger_style {
        rig.trigger_plugin("pipe", process, &[("in", attributes)]);
    } else {
        rig.plugin("pipe", process, &[("in", attributes)]);
    }
    rig
}

#[test]
fn a27_a_trap_undoes_gets_puts_and_state_and_charges_that_message_only() {
    let mut rig = pipe(false, &[]);
    rig.put("in", "bad");
    rig.put("in", "good");
    let task = rig.next_task();
    let handled = rig.run_session(&task, |task, body| {
        task.put(plain("out", body)).unwrap();
        let value = Bytes::copy_from_slice(body.as_bytes());
        task.state_set("seen", body, value).unwrap();
        if body == "bad" {
            trapped()
        } else {
            CallEnd::Ok
        }
    });
    assert_eq!(handled, ["bad", "good"]);
    assert_eq!(rig.bodies("out"), ["good"]);
    assert_eq!(rig.bodies("in"), ["bad"]);
    assert_eq!(rig.attempts("in"), (1, 0));
    let record = rig.records().remove(0);
    assert_eq!((record.committed, record.failed), (1, 1));
    assert_eq!(record.outcome, Some(Outcome::Trapped));
    // The next task sees what is left of the state.
    rig.advance(2_000);
    let task = rig.next_task();
    rig.run_session(&task, |task, _| {
        assert!(!task.state_exists("seen", "bad").unwrap());
        assert!(task.state_exists("seen", "good").unwrap());
        CallEnd::Ok
    });
    rig.assert_ledger_empty();
}

#[test]
fn a52_a_message_that_fails_threshold_times_moves_and_the_queue_goes_on() {
    let mut rig = pipe(false, &[("backout-threshold", "3")]);
    rig.put("in", "poison");
    rig.put("in", "good");
    let mut handled = rig.run(|body| match body {
        "poison" => trapped(),
        _ => CallEnd::Ok,
    });
    assert_eq!(handled, ["poison", "good"]);
    for _ in 0..2 {
        assert_eq!(rig.reason("in"), Some("retry-delay"));
        rig.advance(400_000);
        handled = rig.run(|_| trapped());
        assert_eq!(handled, ["poison"]);
    }
    assert_eq!(rig.depth("in"), 0);
    assert_eq!(rig.bodies("oncue.dead-letter"), ["poison"]);
    let record = rig.browse("oncue.dead-letter")[0]
        .message
        .dead_letter
        .clone();
    let record = record.expect("a record beside the body");
    assert_eq!((record.queue.as_str(), record.attempts), ("in", 3));
    assert_eq!(record.process.as_deref(), Some("pipe"));
    assert_eq!(record.digest.as_deref(), Some("pipe-1"));
    assert_eq!(record.detail, "unreachable");
    assert_eq!(record.task, Some(rig.records()[0].id.to_string()));
    rig.put("in", "next");
    assert_eq!(rig.run_all(), ["next"]);
    rig.assert_ledger_empty();
}

#[test]
fn a52_the_backout_queue_is_used_while_it_can_take_the_message() {
    let attributes: Pairs<'_> = &[("backout-threshold", "1"), ("backout-queue", "poison")];
    for (room, to) in [("10", "poison"), ("1", "oncue.dead-letter")] {
        let mut rig = pipe(false, attributes);
        rig.define("poison", &[("max-depth", room)]);
        rig.put("poison", "before");
        rig.put("in", "one");
        rig.run(|_| retry());
        assert_eq!(rig.bodies(to).last().map(String::as_str), Some("one"));
        assert_eq!(rig.depth("in"), 0);
    }
}

#[test]
fn a_rejected_message_goes_to_the_backout_queue_at_once() {
    let mut rig = pipe(false, &[]);
    rig.put("in", "wrong");
    rig.run(|_| CallEnd::Failed(Failure::Reject("no such customer".to_owned())));
    let message = rig.browse("oncue.dead-letter").remove(0).message;
    let record = message.dead_letter.expect("a record");
    assert_eq!(record.detail, "no such customer");
    assert_eq!(rig.depth("in"), 0);
}

#[test]
fn a_failed_unit_of_several_charges_nobody_and_the_next_ones_hold_one_message() {
    let mut rig = pipe(true, &[]);
    let puts = ["a", "poison", "b"].map(|body| plain("in", body));
    rig.put_all(puts.into()).unwrap();
    let task = rig.next_task();
    for body in ["a", "poison", "b"] {
        assert_eq!(rig.got(&task), body);
    }
    rig.end(&task, trapped());
    let charged: u32 = rig
        .browse("in")
        .iter()
        .map(|m| m.message.attempts.backout_count)
        .sum();
    assert_eq!((charged, rig.depth("in")), (0, 3));
    // No progress: backed off, then one by one.
    assert_eq!(rig.reason("in"), Some("backing-off"));
    rig.advance(100);
    let task = rig.next_task();
    assert_eq!(rig.got(&task), "a");
    assert!(matches!(rig.get(&task), Got::Stop), "one message in a unit");
    rig.drive(task.commit()).unwrap();
    assert_eq!(rig.got(&task), "poison");
    rig.end(&task, trapped());
    let one = rig.browse("in");
    let attempts: Vec<_> = one
        .iter()
        .map(|m| m.message.attempts.backout_count)
        .collect();
    assert_eq!(
        attempts,
        [0, 1],
        "b is ready and uncharged, the poison waits"
    );
    let task = rig.next_task();
    assert_eq!(rig.got(&task), "b");
    rig.end(&task, CallEnd::Ok);
    // All three have been settled: units are as large as before.
    rig.put("in", "c");
    rig.put("in", "d");
    let task = rig.next_task();
    assert_eq!(
        (rig.got(&task), rig.got(&task)),
        ("c".to_owned(), "d".to_owned())
    );
    rig.end(&task, CallEnd::Ok);
}

#[test]
fn a_failed_unit_of_several_from_another_queue_is_limited_too() {
    let mut rig = Rig::new();
    rig.define("side", &[("trigger", "none"), ("backout-threshold", "1")]);
    rig.trigger_plugin("pipe", &[("grants.get", "side")], &[("in", &[])]);
    rig.put_all(vec![plain("side", "a"), plain("side", "poison")])
        .unwrap();
    rig.put("in", "wake");
    let side = || GetOptions {
        queue: Some(name("side")),
        ..GetOptions::default()
    };
    for held in [2, 1] {
        let task = rig.next_task();
        for n in 0..2 {
            let got = rig.drive(task.get(side())).unwrap();
            assert_eq!(matches!(got, Got::Message(_)), n < held, "{got:?}");
        }
        rig.end(&task, trapped());
        rig.advance(60_000);
    }
    assert_eq!(rig.bodies("oncue.dead-letter"), ["a"], "charged alone");
}

#[test]
fn an_operators_removal_ends_the_limit_of_a_failed_unit() {
    let mut rig = pipe(true, &[]);
    rig.put_all(vec![plain("in", "a"), plain("in", "b")])
        .unwrap();
    let task = rig.next_task();
    rig.got(&task);
    rig.got(&task);
    rig.end(&task, trapped());
    rig.put_all(vec![plain("in", "c"), plain("in", "d")])
        .unwrap();
    for browsed in rig.browse("in").into_iter().take(2) {
        let handle = rig.handle.clone();
        let id = browsed.message.header.id;
        rig.ask(async move { handle.remove(&name("in"), id).await })
            .unwrap();
    }
    rig.advance(100);
    let task = rig.next_task();
    assert_eq!(
        (rig.got(&task), rig.got(&task)),
        ("c".to_owned(), "d".to_owned())
    );
    rig.end(&task, CallEnd::Ok);
}

#[test]
fn a_trigger_style_handler_commits_and_backs_out_within_its_task() {
    let mut rig = pipe(true, &[]);
    rig.put_all(vec![plain("in", "a"), plain("in", "b")])
        .unwrap();
    let task = rig.next_task();
    assert_eq!(rig.got(&task), "a");
    task.put(plain("out", "of a")).unwrap();
    rig.drive(task.commit()).unwrap();
    assert_eq!(rig.bodies("out"), ["of a"]);
    assert_eq!(rig.got(&task), "b");
    task.put(plain("out", "of b")).unwrap();
    rig.drive(task.backout());
    assert_eq!(rig.bodies("out"), ["of a"]);
    assert_eq!(
        (rig.bodies("in"), rig.attempts("in")),
        (vec!["b".to_owned()], (1, 0))
    );
    rig.end(&task, CallEnd::Ok);
    let record = rig.records().remove(0);
    assert_eq!((record.committed, record.failed), (1, 1));
    assert_eq!(record.outcome, Some(Outcome::BackedOut));
}

#[test]
fn a_depth_starts_unit_is_charged_and_retried_as_a_whole() {
    let depth: Pairs<'_> = &[
        ("trigger", "depth"),
        ("trigger-depth", "3"),
        ("backout-threshold", "2"),
    ];
    let mut rig = pipe(true, depth);
    let puts = ["a", "b", "c"].map(|body| plain("in", body));
    rig.put_all(puts.into()).unwrap();
    for attempt in 1..=2 {
        let task = rig.next_task();
        for body in ["a", "b", "c"] {
            assert_eq!(rig.got(&task), body);
        }
        rig.end(&task, retry());
        if attempt == 1 {
            let until: Vec<_> = rig.browse("in").iter().map(|m| m.state).collect();
            assert!(until.windows(2).all(|two| two[0] == two[1]), "{until:?}");
            rig.advance(2_000);
        }
    }
    assert_eq!(rig.bodies("oncue.dead-letter"), ["a", "b", "c"]);
    assert_eq!(rig.depth("in"), 0);
}

#[test]
fn a_put_past_the_hop_limit_is_a_dead_letter_in_the_same_unit() {
    let mut rig = pipe(false, &[("hop-limit", "2")]);
    rig.put("in", "loop");
    let mut answered = Vec::new();
    let task = rig.next_task();
    // The task meets its own puts: hops 1 and 2, and the third put would be hop 3.
    rig.run_session(&task, |task, body| {
        answered.push(task.put(plain("in", body)).unwrap());
        CallEnd::Ok
    });
    assert_eq!(answered.len(), 3);
    assert_eq!((rig.depth("in"), rig.waiting()), (0, 0));
    let dead = rig.browse("oncue.dead-letter").remove(0).message;
    assert_eq!(Some(&dead.header.id), answered.last());
    let record = dead.dead_letter.expect("a record");
    assert_eq!(record.queue.as_str(), "in");
    assert_eq!(
        record.reason,
        oncue_core::message::DeadLetterReason::HopLimit
    );
}

#[test]
fn an_idempotency_key_makes_a_handlers_repeat_harmless() {
    let mut rig = pipe(true, &[]);
    let keyed = |body: &str| {
        let options = PutOptions {
            idempotency_key: Some("k".to_owned()),
            ..PutOptions::default()
        };
        request("out", body, options)
    };
    rig.put_all(vec![plain("in", "a"), plain("in", "b")])
        .unwrap();
    let task = rig.next_task();
    rig.got(&task);
    let first = task.put(keyed("x")).unwrap();
    assert_eq!(task.put(keyed("x")).unwrap(), first, "in one unit, at once");
    let other = task.put(keyed("y")).unwrap_err().to_string();
    assert!(other.ends_with("[duplicate-key]"), "{other}");
    rig.drive(task.commit()).unwrap();
    rig.got(&task);
    assert_eq!(task.put(keyed("x")).unwrap(), first, "in a later one");
    rig.end(&task, CallEnd::Ok);
    assert_eq!(rig.bodies("out"), ["x"]);
}

#[test]
fn a_key_of_another_open_unit_is_a_conflict_and_the_second_run_meets_the_first() {
    let mut rig = Rig::new();
    rig.define("out", &[]);
    let every: Pairs<'_> = &[("trigger", "every"), ("max-tasks", "2")];
    rig.plugin("pipe", &[("grants.put", "out")], &[("in", every)]);
    rig.put_all(vec![plain("in", "a"), plain("in", "b")])
        .unwrap();
    let (outer, inner) = (rig.next_task(), rig.next_task());
    let keyed = || {
        let options = PutOptions {
            idempotency_key: Some("k".to_owned()),
            ..PutOptions::default()
        };
        request("out", "once", options)
    };
    let mut ids = Vec::new();
    let store = rig.handle.clone();
    let mut runs = 0;
    rig.run_session(&outer, |task, _| {
        ids.push(task.put(keyed()).unwrap());
        runs += 1;
        if runs == 1 {
            // The other unit commits under the same key while this one is open.
            let put = store.put(vec![keyed()], None);
            let answer = at_once(put).unwrap();
            assert!(!answer[0].repeated);
        }
        CallEnd::Ok
    });
    assert_eq!((runs, rig.bodies("out").len()), (2, 1));
    assert_ne!(
        ids[0], ids[1],
        "the second run answers with the first put's id"
    );
    assert_eq!(rig.browse("out")[0].message.header.id, ids[1]);
    assert_eq!(rig.run_session(&inner, |_, _| CallEnd::Ok), ["b"]);
}

#[test]
fn a_state_conflict_runs_the_unit_again_uncharged_and_after_three_alone() {
    let mut rig = Rig::new();
    let every: Pairs<'_> = &[("trigger", "every"), ("max-tasks", "2")];
    rig.trigger_plugin("sum", &[], &[("add", &[]), ("other", every)]);
    rig.put("add", "5");
    rig.put("other", "x");
    let (adder, other) = (rig.task_of("add"), rig.task_of("other"));
    let mut runs = 0;
    let bump = |n: i64| {
        other.state_increment("", "total", n).unwrap();
        other.commit()
    };
    let task = adder;
    rig.run_session(&task, |task, _| {
        runs += 1;
        task.state_increment("", "total", 100).unwrap();
        if runs <= 3 {
            // Another unit of the same namespace is faster each time.
            at_once(bump(1)).unwrap();
        } else {
            // Alone: the other one's commit waits for this unit's end.
            let mut commit = Box::pin(bump(1));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(commit.as_mut().poll(&mut context).is_pending());
        }
        CallEnd::Ok
    });
    assert_eq!((runs, rig.depth("add")), (4, 0));
    let mut records = rig.records().into_iter();
    let record = records.find(|record| record.ended.is_some()).unwrap();
    assert_eq!(
        (record.outcome, record.failed),
        (Some(Outcome::Committed), 0)
    );
    // The unit that had to wait read before: now it is the one that conflicts, and tries again.
    other.state_get("", "total").unwrap();
    assert!(at_once(other.commit()).is_err());
    at_once(bump(1)).unwrap();
    let total = other.state_get("", "total").unwrap();
    assert_eq!(total.as_deref(), Some(&b"104"[..]));
    rig.end(&other, CallEnd::Ok);
    rig.run_all();
    rig.assert_ledger_empty();
}

#[test]
fn every_runs_a_unit_in_conflict_again_within_its_task() {
    let mut rig = Rig::new();
    let every: Pairs<'_> = &[("trigger", "every"), ("max-tasks", "2")];
    rig.plugin("sum", &[], &[("add", every)]);
    rig.put_all(vec![plain("add", "1"), plain("add", "2")])
        .unwrap();
    let (first, second) = (rig.next_task(), rig.next_task());
    let mut runs = 0;
    let bodies = rig.run_session(&first, |task, _| {
        runs += 1;
        task.state_increment("", "n", 1).unwrap();
        if runs == 1 {
            second.state_set("", "n", Bytes::from_static(b"7")).unwrap();
            at_once(second.commit()).unwrap();
        }
        CallEnd::Ok
    });
    assert_eq!(bodies, ["1", "1"]);
    rig.run_session(&second, |task, _| {
        assert_eq!(task.state_get("", "n").unwrap().as_deref(), Some(&b"8"[..]));
        CallEnd::Ok
    });
    assert_eq!((rig.depth("add"), rig.waiting()), (0, 0));
}

#[test]
fn a_handler_reads_the_body_and_attempts_left_of_what_it_gets() {
    let mut rig = pipe(true, &[("backout-threshold", "2")]);
    rig.put("in", "one");
    for left in [2, 1] {
        let task = rig.next_task();
        let Got::Message(message) = rig.get(&task) else {
            panic!("a message is there");
        };
        assert_eq!(text(&task, &message), "one");
        assert_eq!((message.attempts_left, message.fresh), (left, true));
        rig.end(&task, retry());
        rig.advance(2_000);
    }
    assert_eq!(rig.depth("oncue.dead-letter"), 1);
}

#[test]
fn puts_need_a_grant_to_the_handlers_own_queue_too_and_refusals_are_recorded() {
    let mut rig = Rig::new();
    rig.define("secret", &[]);
    rig.plugin("pipe", &[], &[("in", &[])]);
    rig.put("in", "one");
    let task = rig.next_task();
    rig.run_session(&task, |task, _| {
        for queue in ["in", "secret", "oncue.replies"] {
            let refused = task.put(plain(queue, "x")).unwrap_err().to_string();
            assert!(refused.ends_with("[not-granted]"), "{refused}");
        }
        assert!(at_once(task.browse(&name("in"), None, 1)).is_ok());
        assert!(at_once(task.depth(&name("secret"))).is_err());
        CallEnd::Ok
    });
    let refused = rig.records().remove(0).cost.refused;
    let what: Vec<_> = refused
        .iter()
        .map(|refusal| refusal.what.as_str())
        .collect();
    assert_eq!(
        what,
        ["browse secret", "put in", "put oncue.replies", "put secret"]
    );
    assert_eq!((rig.depth("in"), rig.depth("secret")), (0, 0));
}
