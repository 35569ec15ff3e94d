//! Outside consumers: leases, what counts as an attempt, and what holds a queue open for input.

use oncue_core::outcome::CallEnd;
use oncue_manager::handle::{DeadLetterFilter, GetRequest, Leased};

use crate::rig::Rig;
use crate::trigger_types::outside_get;
use crate::values::{Pairs, name, plain, process_name, retry};

fn queue(attributes: Pairs<'_>) -> Rig {
    let mut rig = Rig::new();
    rig.define("in", attributes);
    rig
}

fn get(rig: &mut Rig, request: GetRequest) -> Vec<Leased> {
    let handle = rig.handle.clone();
    rig.ask(async move { handle.get(request).await }).unwrap()
}

fn no_wait() -> GetRequest {
    GetRequest {
        wait: 0,
        ..outside_get("in")
    }
}

#[test]
fn a_lease_is_settled_once_by_its_token() {
    let mut rig = queue(&[]);
    rig.put("in", "one");
    let leased = get(&mut rig, no_wait()).remove(0);
    assert!(get(&mut rig, no_wait()).is_empty());
    assert_eq!(rig.queue("in").counts.leased, 1);
    let handle = rig.handle.clone();
    let ack = |token| {
        let handle = handle.clone();
        async move { handle.ack(token).await }
    };
    rig.ask(ack(leased.token)).unwrap();
    assert_eq!(rig.depth("in"), 0);
    let again = rig.ask(ack(leased.token)).unwrap_err();
    assert!(again.message.ends_with("[unknown-lease]"), "{again}");
}

#[test]
fn a_nack_is_an_attempt_and_waits_as_long_as_it_says() {
    let mut rig = queue(&[("backout-threshold", "2")]);
    rig.put("in", "one");
    for delay in [7_000, 0] {
        let leased = get(&mut rig, no_wait()).remove(0);
        let handle = rig.handle.clone();
        let why = Some("busy".to_owned());
        rig.ask(async move { handle.nack(leased.token, why, Some(delay)).await })
            .unwrap();
        if delay > 0 {
            assert_eq!(rig.attempts("in"), (1, 0));
            rig.advance(delay - 1);
            assert!(get(&mut rig, no_wait()).is_empty());
            rig.advance(1);
        }
    }
    let dead = rig.browse("oncue.dead-letter").remove(0).message;
    let record = dead.dead_letter.expect("a record");
    assert_eq!(
        (record.detail.as_str(), record.attempts, record.process),
        ("busy", 2, None)
    );
}

#[test]
fn an_expired_lease_is_an_attempt_and_the_message_is_back_at_once() {
    let mut rig = queue(&[]);
    rig.put("in", "one");
    let leased = get(&mut rig, no_wait()).remove(0);
    rig.advance(29_999);
    assert!(get(&mut rig, no_wait()).is_empty());
    rig.advance(1);
    assert_eq!(rig.attempts("in"), (1, 0));
    let handle = rig.handle.clone();
    assert!(
        rig.ask(async move { handle.ack(leased.token).await })
            .is_err()
    );
    assert_eq!(get(&mut rig, no_wait()).len(), 1);
}

#[test]
fn an_extended_lease_lives_longer_and_stays_as_selective_as_it_was() {
    for selective in [true, false] {
        let mut rig = Rig::new();
        rig.plugin("work", &[], &[("in", &[("trigger-control", "off")])]);
        rig.put_all(vec![plain("in", "1"), plain("in", "2")])
            .unwrap();
        let id = rig.browse("in")[0].message.header.id;
        let request = GetRequest {
            id: selective.then_some(id),
            ..no_wait()
        };
        let leased = get(&mut rig, request).remove(0);
        rig.advance(20_000);
        let handle = rig.handle.clone();
        let until = rig
            .ask(async move { handle.extend(leased.token, 60_000).await })
            .unwrap();
        assert_eq!(until, leased.until.after(50_000));
        rig.advance(59_999);
        assert_eq!(rig.queue("in").counts.leased, 1);
        // An unselective lease holds the queue open for input, a get by id does not.
        rig.trigger("in", true);
        assert_eq!(rig.waiting(), usize::from(selective));
        rig.run_all();
        rig.advance(1);
        assert_eq!(rig.queue("in").counts.leased, 0);
        rig.advance(2_000);
        rig.run_all();
        assert_eq!(rig.depth("in"), 0);
    }
}

#[test]
fn an_unsettled_lease_holds_the_queue_open_and_lingers() {
    let mut rig = Rig::new();
    rig.plugin("work", &[], &[("in", &[("trigger-control", "off")])]);
    rig.put_all(vec![plain("in", "1"), plain("in", "2")])
        .unwrap();
    let leased = get(&mut rig, no_wait()).remove(0);
    rig.trigger("in", true);
    assert_eq!(
        (rig.waiting(), rig.reason("in")),
        (0, Some("consumer-open"))
    );
    let handle = rig.handle.clone();
    rig.ask(async move { handle.ack(leased.token).await })
        .unwrap();
    assert_eq!(
        (rig.waiting(), rig.reason("in")),
        (0, Some("consumer-open"))
    );
    rig.advance(2_000);
    assert_eq!(rig.run_all(), ["2"]);
}

#[test]
fn a_get_that_is_dropped_gives_its_messages_back_uncharged() {
    let (mut rig, faulty) = Rig::faulty();
    rig.define("in", &[]);
    rig.put("in", "one");
    // The lease cannot become durable yet, and the consumer goes away meanwhile.
    faulty.stall();
    let handle = rig.handle.clone();
    let mut waiting = Box::pin(handle.get(no_wait()));
    assert!(rig.poll(&mut waiting).is_none());
    assert_eq!(rig.queue("in").counts.in_unit, 1);
    rig.in_runtime(|| drop(waiting));
    faulty.resume();
    rig.settle();
    rig.drive(tokio::task::yield_now());
    assert_eq!(rig.queue("in").counts.ready[0], 1);
    assert_eq!(rig.attempts("in"), (0, 0));
}

#[test]
fn a_get_that_waits_is_answered_by_a_put() {
    let mut rig = queue(&[]);
    let handle = rig.handle.clone();
    let mut waiting = Box::pin(handle.get(outside_get("in")));
    assert!(rig.poll(&mut waiting).is_none());
    rig.put("in", "one");
    let leased = rig.poll(&mut waiting).expect("answered").unwrap();
    assert_eq!(leased.len(), 1);
    assert_eq!(rig.queue("in").waiting_inputs, 0);
}

#[test]
fn dead_letters_are_redriven_with_attempts_at_zero() {
    let mut rig = Rig::new();
    rig.plugin("work", &[], &[("in", &[("backout-threshold", "1")])]);
    rig.put("in", "one");
    rig.run(|_| retry());
    assert_eq!(rig.depth("oncue.dead-letter"), 1);
    let mut redrive = |filter: DeadLetterFilter| {
        let (handle, dead) = (rig.handle.clone(), name("oncue.dead-letter"));
        let done = rig.ask(async move { handle.redrive(&dead, &filter).await });
        let done = done.unwrap();
        (done.done, done.stayed)
    };
    let other = DeadLetterFilter {
        from: Some(name("other")),
        ..DeadLetterFilter::default()
    };
    assert_eq!(redrive(other), (0, 0));
    let trapped = DeadLetterFilter {
        reason: Some("trapped".to_owned()),
        ..DeadLetterFilter::default()
    };
    assert_eq!(redrive(trapped), (0, 0));
    let retried = DeadLetterFilter {
        reason: Some("retry".to_owned()),
        ..DeadLetterFilter::default()
    };
    assert_eq!(redrive(retried), (1, 0));
    assert_eq!(rig.attempts("in"), (0, 0));
    assert_eq!(rig.run_all(), ["one"]);
    assert_eq!(rig.depth("oncue.dead-letter"), 0);
}

#[test]
fn dead_letters_come_in_groups_and_go_when_they_are_discarded() {
    let mut rig = Rig::new();
    rig.plugin("work", &[], &[("in", &[("backout-threshold", "1")])]);
    rig.define("also", &[("process", "work"), ("backout-threshold", "1")]);
    for body in ["one", "two"] {
        rig.put("in", body);
    }
    rig.put("also", "three");
    rig.put("oncue.dead-letter", "by hand");
    // One task for each queue.
    for _ in 0..2 {
        rig.run(|_| retry());
    }
    let dead = name("oncue.dead-letter");
    let view = rig.handle.dead_letters(&dead).unwrap();
    let groups: Vec<_> = view
        .groups
        .iter()
        .map(|group| {
            (
                group.queue.as_str(),
                group.reason,
                group.outcome,
                group.count,
            )
        })
        .collect();
    assert_eq!(
        groups,
        [
            ("in", "backout", Some("retry"), 2),
            ("also", "backout", Some("retry"), 1)
        ]
    );
    assert_eq!(
        (view.scanned, view.without_record, view.more),
        (4, 1, false)
    );

    // Of a queue that is gone, nothing goes back; what was put there by hand is no dead letter.
    let handle = rig.handle.clone();
    rig.ask(async move { handle.delete_queue(name("also"), false).await })
        .unwrap();
    let (handle, from) = (rig.handle.clone(), dead.clone());
    let all = DeadLetterFilter::default();
    let done = rig
        .ask(async move { handle.redrive(&from, &all).await })
        .unwrap();
    assert_eq!((done.done, done.stayed), (2, 1));
    let (handle, from) = (rig.handle.clone(), dead.clone());
    let all = DeadLetterFilter::default();
    let done = rig
        .ask(async move { handle.discard(&from, &all).await })
        .unwrap();
    assert_eq!((done.done, done.stayed), (1, 0));
    assert_eq!(rig.depth("oncue.dead-letter"), 1);
}

#[test]
fn a_parked_message_holds_nothing_else_and_moves_when_something_can_take_it() {
    let mut rig = Rig::new();
    rig.define("poison", &[("max-depth", "1")]);
    // The dead-letter queue's own handler: what it fails on may not go back to where it is.
    rig.define(
        "oncue.dead-letter",
        &[
            ("trigger", "first"),
            ("process", "mortician"),
            ("backout-queue", "poison"),
            ("backout-threshold", "1"),
        ],
    );
    rig.plugin("mortician", &[], &[]);
    rig.put("poison", "full");
    rig.put("oncue.dead-letter", "bad");
    rig.put("oncue.dead-letter", "good");
    let handled = rig.run(|body| if body == "bad" { retry() } else { CallEnd::Ok });
    assert_eq!(handled, ["bad", "good"]);
    let view = rig.queue("oncue.dead-letter");
    assert_eq!(
        (view.counts.parked, view.reason),
        (1, Some("parked-message"))
    );
    rig.advance(5_000);
    assert_eq!(rig.queue("oncue.dead-letter").counts.parked, 1);
    let handle = rig.handle.clone();
    rig.ask(async move { handle.clear(&name("poison")).await })
        .unwrap();
    rig.advance(1_000);
    let moved = rig.browse("poison").remove(0).message;
    assert_eq!(
        moved.attempts.backout_count, 1,
        "charged when it failed, not again"
    );
    assert_eq!(rig.depth("oncue.dead-letter"), 0);
    let handle = rig.handle.clone();
    let view = rig.ask(async move { handle.process(process_name("mortician")).await });
    assert_eq!(view.unwrap().queues, [name("oncue.dead-letter")]);
}

#[test]
fn a_parked_message_behind_thousands_of_others_is_found_by_later_sweeps() {
    let mut rig = Rig::new();
    rig.define("full", &[("max-depth", "1")]);
    rig.put("full", "x");
    let attributes: Pairs<'_> = &[
        ("trigger", "first"),
        ("process", "mortician"),
        ("backout-queue", "full"),
        ("backout-threshold", "1"),
    ];
    rig.define("oncue.dead-letter", attributes);
    rig.plugin("mortician", &[], &[]);
    rig.put("oncue.dead-letter", "bad");
    rig.run(|_| retry());
    rig.trigger("oncue.dead-letter", false);
    let puts = (0..2_500).map(|n| plain("oncue.dead-letter", &n.to_string()));
    rig.put_all(puts.collect()).unwrap();
    rig.define("full", &[("max-depth", "2")]);
    for _ in 0..3 {
        rig.advance(1_000);
    }
    assert_eq!(rig.bodies("full"), ["x", "bad"]);
}

#[test]
fn clear_removes_what_nobody_has_in_hand() {
    let mut rig = queue(&[]);
    for body in ["1", "2", "3"] {
        rig.put("in", body);
    }
    let leased = get(&mut rig, no_wait()).remove(0);
    let handle = rig.handle.clone();
    let cleared = rig.ask(async move { handle.clear(&name("in")).await });
    assert_eq!(cleared.unwrap(), 2);
    assert_eq!(rig.bodies("in"), ["1"]);
    let handle = rig.handle.clone();
    rig.ask(async move { handle.ack(leased.token).await })
        .unwrap();
    assert_eq!(rig.depth("in"), 0);
}
