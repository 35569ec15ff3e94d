use proptest::prelude::*;

use super::*;
use crate::trigger::scene::{NOW, later, process, queue};

const ROOM: Room = Room {
    backout_queue: true,
    dead_letter_queue: true,
};
/// With the default jitter of 20 %, the random number that varies a delay of 1 s by nothing.
const NO_VARIATION: u64 = 200;

/// A message of the queue `orders` as a test wants it.
struct Given {
    queue: QueueName,
    attributes: QueueAttributes,
    attempts: Attempts,
    room: Room,
    random: u64,
}

fn given(backout_count: u32) -> Given {
    Given {
        queue: queue("orders"),
        attributes: QueueAttributes::default(),
        attempts: Attempts {
            backout_count,
            ..Attempts::default()
        },
        room: ROOM,
        random: NO_VARIATION,
    }
}

impl Given {
    fn decide(&self, trouble: &Trouble) -> Decision {
        let culprit = culprit();
        after_failure(&self.case(&culprit), trouble)
    }

    fn case<'a>(&'a self, culprit: &'a Culprit) -> Case<'a> {
        Case {
            queue: &self.queue,
            attributes: &self.attributes,
            attempts: self.attempts,
            culprit,
            room: self.room,
            now: NOW,
            random: self.random,
        }
    }
}

fn culprit() -> Culprit {
    Culprit {
        process: Some(process("route")),
        digest: Some("sha256:1".to_owned()),
        task: Some(TaskId(7)),
        log_tail: Some("tail".to_owned()),
    }
}

fn trapped() -> Trouble {
    Trouble::Failed {
        outcome: Outcome::Trapped,
        after: None,
        detail: "unreachable".to_owned(),
        backtrace: Some("frame".to_owned()),
    }
}

fn retry(after: Option<Millis>) -> Trouble {
    Trouble::Failed {
        outcome: Outcome::Retry,
        after,
        detail: "busy".to_owned(),
        backtrace: None,
    }
}

/// Checks a message that waits: until when, how, and its charged attempts.
fn check_waits(decision: Decision, millis: Millis, wanted: Wait, backout_count: u32) {
    match decision {
        Decision::Settle(Disposition::Later {
            until,
            wait,
            attempts,
        }) => {
            assert_eq!(until, later(millis));
            assert_eq!((wait, attempts.backout_count), (wanted, backout_count));
        }
        decision => panic!("{decision:?}"),
    }
}

/// Checks a message that leaves its queue: where to, why, and its charged attempts.
fn check_moves(
    decision: Decision,
    wanted: &str,
    reason: DeadLetterReason,
    count: u32,
) -> DeadLetter {
    match decision {
        Decision::Settle(Disposition::Move {
            to,
            record: Some(record),
            attempts,
        }) => {
            assert_eq!((to.as_str(), record.reason), (wanted, reason));
            assert_eq!((attempts.backout_count, record.attempts), (count, count));
            *record
        }
        decision => panic!("{decision:?}"),
    }
}

#[test]
fn a_failed_message_is_charged_and_waits_longer_each_time() {
    for (count, millis) in [(0, 1_000), (1, 2_000), (2, 4_000), (3, 8_000)] {
        let random = millis * 20 / 100;
        let decision = Given {
            random,
            ..given(count)
        }
        .decide(&trapped());
        check_waits(decision, millis, Wait::Retry, count + 1);
    }
    check_waits(given(0).decide(&retry(None)), 1_000, Wait::Retry, 1);
    check_waits(given(0).decide(&retry(Some(70))), 70, Wait::Retry, 1);
    check_waits(
        given(0).decide(&retry(Some(u64::MAX))),
        86_400_000,
        Wait::Retry,
        1,
    );
}

#[test]
fn a52_at_the_threshold_it_moves_with_its_record() {
    let mut given = given(4);
    let reason = DeadLetterReason::Backout(Outcome::Trapped);
    let record = check_moves(given.decide(&trapped()), "oncue.dead-letter", reason, 5);
    let wanted = DeadLetter {
        reason,
        queue: queue("orders"),
        process: Some("route".to_owned()),
        digest: Some("sha256:1".to_owned()),
        attempts: 5,
        detail: "unreachable".to_owned(),
        backtrace: Some("frame".to_owned()),
        log_tail: Some("tail".to_owned()),
        task: Some("7".to_owned()),
        time: NOW,
    };
    assert_eq!(record, wanted);
    given.attributes.backout_queue = Some(queue("bad"));
    check_moves(given.decide(&trapped()), "bad", reason, 5);
    // A message that failed under a higher threshold, before it was lowered.
    given.attributes.backout_threshold = 2;
    check_moves(given.decide(&trapped()), "bad", reason, 5);
    given.attributes.backout_threshold = 0;
    assert!(matches!(
        given.decide(&trapped()),
        Decision::Settle(Disposition::Later { .. })
    ));
}

#[test]
fn without_room_it_goes_to_the_next_place_and_is_parked_at_last() {
    let place = |queue_name: &str, backout: Option<&str>, room: Room| {
        let mut given = given(4);
        given.queue = queue(queue_name);
        given.attributes.backout_queue = backout.map(queue);
        given.room = room;
        match given.decide(&trapped()) {
            Decision::Settle(Disposition::Move { to, .. }) => to.to_string(),
            Decision::Settle(Disposition::Park(attempts)) => {
                assert_eq!(attempts.backout_count, 5);
                "parked".to_owned()
            }
            decision => panic!("{decision:?}"),
        }
    };
    let dead_letter = "oncue.dead-letter";
    let no_backout = Room {
        backout_queue: false,
        ..ROOM
    };
    let none = Room {
        backout_queue: false,
        dead_letter_queue: false,
    };
    assert_eq!(place("orders", Some("bad"), ROOM), "bad");
    assert_eq!(place("orders", Some("bad"), no_backout), dead_letter);
    assert_eq!(place("orders", Some("bad"), none), "parked");
    assert_eq!(place("orders", None, ROOM), dead_letter);
    // Never onto its own queue.
    assert_eq!(place("bad", Some("bad"), ROOM), dead_letter);
    assert_eq!(place(dead_letter, None, ROOM), "parked");
    assert_eq!(place(dead_letter, Some("bad"), ROOM), "bad");
}

#[test]
fn a_parked_message_moves_uncharged_when_there_is_room() {
    let culprit = culprit();
    // One charge only: it was rejected, and must not be delivered again.
    let mut given = given(1);
    let moved = from_parked(&given.case(&culprit))
        .map(Decision::Settle)
        .expect("room");
    let reason = DeadLetterReason::Backout(Outcome::BackedOut);
    check_moves(moved, "oncue.dead-letter", reason, 1);
    given.room.dead_letter_queue = false;
    assert_eq!(from_parked(&given.case(&culprit)), None);
}

#[test]
fn a_rejected_message_goes_at_once() {
    let decision = given(0).decide(&Trouble::Rejected("no such order".to_owned()));
    let record = check_moves(decision, "oncue.dead-letter", DeadLetterReason::Rejected, 1);
    assert_eq!(record.detail, "no such order");
}

#[test]
fn a_deferred_message_is_not_charged_until_it_is_too_old() {
    let mut given = given(3);
    check_waits(
        given.decide(&Trouble::Deferred(5_000)),
        5_000,
        Wait::Defer,
        3,
    );
    check_waits(given.decide(&Trouble::Deferred(0)), 100, Wait::Defer, 3);
    let age = given.attributes.defer_max_age;
    check_waits(
        given.decide(&Trouble::Deferred(u64::MAX)),
        age,
        Wait::Defer,
        3,
    );
    given.attributes.defer_max_age = 10_000;
    given.attempts.deferred_since = Some(Timestamp(NOW.0 - 9_000));
    let decision = given.decide(&Trouble::Deferred(5_000));
    check_waits(decision, 1_000, Wait::Defer, 3);
    given.attempts.deferred_since = Some(Timestamp(NOW.0 - 10_000));
    let decision = given.decide(&Trouble::Deferred(5_000));
    check_moves(decision, "oncue.dead-letter", DeadLetterReason::Deferred, 3);
    // A charged attempt begins the age anew.
    match given.decide(&trapped()) {
        Decision::Settle(Disposition::Later { attempts, .. }) => {
            assert_eq!(attempts.deferred_since, None);
        }
        decision => panic!("{decision:?}"),
    }
}

#[test]
fn what_an_outside_consumer_gives_back_counts() {
    let nack = Trouble::Nack("later please".to_owned());
    check_waits(given(0).decide(&nack), 1_000, Wait::Retry, 1);
    let wanted = Attempts {
        backout_count: 1,
        ..Attempts::default()
    };
    let requeued = Decision::Settle(Disposition::Requeue(wanted));
    assert_eq!(given(0).decide(&Trouble::LeaseExpired), requeued);
    for trouble in [nack, Trouble::LeaseExpired] {
        let decision = given(4).decide(&trouble);
        check_moves(decision, "oncue.dead-letter", DeadLetterReason::Consumer, 5);
    }
}

#[test]
fn the_faults_of_the_host_charge_nobody() {
    assert_eq!(given(4).decide(&Trouble::Released), Decision::Release);
    let wanted = Attempts {
        backout_count: 4,
        interrupted_count: 1,
        deferred_since: None,
    };
    assert_eq!(
        given(4).decide(&Trouble::Interrupted { charged: false }),
        Decision::Settle(Disposition::Requeue(wanted))
    );
    let reason = DeadLetterReason::Backout(Outcome::Interrupted);
    let decision = given(4).decide(&Trouble::Interrupted { charged: true });
    check_moves(decision, "oncue.dead-letter", reason, 5);
}

#[test]
fn a30_the_only_suspect_in_hand_at_a_second_unclean_end_is_charged() {
    let charged = |interrupted: &[u32]| {
        let in_hand: Vec<Attempts> = interrupted
            .iter()
            .map(|count| Attempts {
                interrupted_count: *count,
                ..Attempts::default()
            })
            .collect();
        charged_by_interruption(&in_hand)
    };
    assert_eq!(charged(&[]), [false; 0]);
    assert_eq!(charged(&[0]), [false]);
    assert_eq!(charged(&[0, 0]), [false, false]);
    assert_eq!(charged(&[0, 1, 0]), [false, true, false]);
    assert_eq!(charged(&[3]), [true]);
    assert_eq!(charged(&[1, 1, 0]), [false, false, false]);
}

#[test]
fn the_end_of_a_call_says_what_happened_to_its_message() {
    let stopped = |outcome| CallEnd::Stopped {
        outcome,
        detail: "unreachable".to_owned(),
        backtrace: Some("frame".to_owned()),
    };
    let failed = |failure| Trouble::of(&CallEnd::Failed(failure));
    assert_eq!(Trouble::of(&CallEnd::Ok), None);
    assert_eq!(Trouble::of(&stopped(Outcome::Trapped)), Some(trapped()));
    assert_eq!(
        Trouble::of(&stopped(Outcome::StateConflict)),
        Some(Trouble::Released)
    );
    assert_eq!(
        Trouble::of(&stopped(Outcome::Cancelled)),
        Some(Trouble::Released)
    );
    let host = CallEnd::HostFailed("no slot".to_owned());
    assert_eq!(Trouble::of(&host), Some(Trouble::Released));
    let again = Failure::Retry {
        reason: "busy".to_owned(),
        after: Some(3),
    };
    assert_eq!(failed(again), Some(retry(Some(3))));
    assert_eq!(failed(Failure::Defer(3)), Some(Trouble::Deferred(3)));
    let reject = Failure::Reject("no".to_owned());
    assert_eq!(failed(reject), Some(Trouble::Rejected("no".to_owned())));
}

#[test]
fn blame_falls_on_who_is_known_to_be_in_hand() {
    let first = TriggerType::First;
    assert_eq!(blame(1, Style::Message, first), Blame::Delivered);
    assert_eq!(
        blame(7, Style::Message, TriggerType::Depth),
        Blame::Delivered
    );
    assert_eq!(blame(7, Style::Command, first), Blame::Delivered);
    assert_eq!(blame(1, Style::Trigger, first), Blame::Whole);
    assert_eq!(blame(2, Style::Trigger, first), Blame::Nobody);
    assert_eq!(blame(2, Style::Trigger, TriggerType::Every), Blame::Nobody);
    assert_eq!(blame(100, Style::Trigger, TriggerType::Depth), Blame::Whole);
    assert_eq!(blame(0, Style::Trigger, first), Blame::Nobody);
}

#[test]
fn a_unit_charged_as_a_whole_stays_together() {
    let culprit = culprit();
    let given = Given {
        random: 77,
        ..given(0)
    };
    let count = |backout_count| Attempts {
        backout_count,
        ..Attempts::default()
    };
    let case = given.case(&culprit);
    let decisions = after_failed_unit(&case, &[count(0), count(2), count(1)], &trapped());
    assert_eq!(decisions.len(), 3);
    assert!(
        decisions.iter().all(|decision| decision == &decisions[0]),
        "{decisions:#?}"
    );
    for decision in after_failed_unit(&case, &[count(0), count(4)], &trapped()) {
        let reason = DeadLetterReason::Backout(Outcome::Trapped);
        check_moves(decision, "oncue.dead-letter", reason, 5);
    }
    assert!(after_failed_unit(&case, &[], &trapped()).is_empty());
}

#[test]
fn after_an_unblamed_unit_the_next_are_of_one_message_until_all_are_settled() {
    let mut limit = UnitLimit::default();
    assert_eq!(limit.messages(10_000), 10_000);
    limit.failed([Sequence(1), Sequence(2)]);
    assert_eq!(limit.messages(10_000), 1);
    limit.settled(Sequence(9));
    limit.settled(Sequence(1));
    assert_eq!(limit.messages(10_000), 1);
    limit.settled(Sequence(2));
    assert_eq!(limit.messages(10_000), 10_000);
    limit.failed([Sequence(3)]);
    limit.clear();
    assert_eq!(limit.messages(10_000), 10_000);
}

fn any_trouble() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        Just(trapped()),
        proptest::option::of(any::<u64>()).prop_map(retry),
        Just(Trouble::Rejected(String::new())),
        any::<u64>().prop_map(Trouble::Deferred),
        Just(Trouble::Nack(String::new())),
        Just(Trouble::LeaseExpired),
        any::<bool>().prop_map(|charged| Trouble::Interrupted { charged }),
        Just(Trouble::Released),
    ]
}

proptest! {
    /// A retry is never off by more than the jitter, at any count.
    #[test]
    fn the_retry_delay_is_doubled_within_its_jitter(
        initial in 0..10_000_u64,
        more in 0..1_000_000_u64,
        jitter in 0..=100_u8,
        count in 0..100_u32,
        random in any::<u64>(),
    ) {
        let max = initial + more;
        let plain = doubled(initial, count.saturating_sub(1), max);
        let delay = retry_delay(Retry { initial, max, jitter }, count, random);
        let spread = plain * u64::from(jitter) / 100;
        prop_assert!(plain - spread <= delay && delay <= plain + spread, "{plain} {delay}");
    }

    /// Nothing is ever deleted, whatever fails how often; and a message that only fails leaves its
    /// queue within its threshold.
    #[test]
    fn nothing_is_ever_deleted(
        troubles in prop::collection::vec(any_trouble(), 1..30),
        threshold in 1..9_u32,
        rooms in (any::<bool>(), any::<bool>()),
    ) {
        let mut given = given(0);
        given.attributes.backout_threshold = threshold;
        given.attributes.backout_queue = Some(queue("bad"));
        given.room = Room { backout_queue: rooms.0, dead_letter_queue: rooms.1 };
        for trouble in troubles {
            match given.decide(&trouble) {
                Decision::Release => {}
                Decision::Settle(Disposition::Requeue(attempts)) => given.attempts = attempts,
                Decision::Settle(Disposition::Later { until, attempts, .. }) => {
                    prop_assert!(until >= NOW);
                    given.attempts = attempts;
                }
                Decision::Settle(Disposition::Move { to, record, .. }) => {
                    prop_assert!(rooms.0 || to.is_dead_letter());
                    prop_assert!(record.is_some() && to != given.queue);
                    break;
                }
                Decision::Settle(Disposition::Park(_)) => {
                    prop_assert!(!rooms.0 && !rooms.1);
                    break;
                }
                decision => prop_assert!(false, "{decision:?}"),
            }
            prop_assert!(given.attempts.backout_count < threshold);
        }
    }
}
