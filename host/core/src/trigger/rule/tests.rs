use proptest::prelude::*;

use super::*;
use crate::trigger::hold::PausedBy;
use crate::trigger::scene::{NOW, Scene, ago, any_scene, held, later, ready};
use crate::trigger::step::Step;

/// What a test changes in a scene.
type Change = fn(&mut Scene);

const FIRES: Verdict = Verdict::Fire(Cause::First);

/// Builds a scene from the default one of its type, and compares the rule's answer.
fn check(trigger: TriggerType, counts: Counts, change: impl FnOnce(&mut Scene), wanted: Verdict) {
    let mut scene = Scene::new(trigger, counts);
    change(&mut scene);
    assert_eq!(evaluate(&scene.facts(), NOW), wanted, "{scene:#?}");
}

fn check_first(counts: Counts, change: impl FnOnce(&mut Scene), wanted: Verdict) {
    check(TriggerType::First, counts, change, wanted);
}

fn hold(reason: HoldReason) -> Verdict {
    Verdict::hold(reason)
}

fn hold_until(reason: HoldReason, until: Timestamp) -> Verdict {
    Verdict::Hold {
        reason,
        until: Some(until),
    }
}

fn nothing(_: &mut Scene) {}

#[test]
fn rule_first_fires_for_one_message_and_not_for_none() {
    check_first(ready(0, 1), nothing, FIRES);
    check_first(ready(9, 1001), nothing, FIRES);
    check_first(Counts::default(), nothing, hold(HoldReason::Empty));
}

#[test]
fn rule_first_starts_one_at_a_time_and_leaves_max_tasks_to_step_12() {
    let started =
        |starting| move |scene: &mut Scene| (scene.running, scene.starting) = (1, starting);
    check_first(ready(0, 3), started(1), hold(HoldReason::AlreadyInProcess));
    check_first(ready(0, 3), started(0), FIRES);
}

#[test]
fn rule_first_waits_while_a_consumer_has_the_queue_open() {
    let reason = |waiting, leases| HoldReason::ConsumerOpen { waiting, leases };
    check_first(
        ready(0, 1),
        |scene| scene.waiting_inputs = 2,
        hold(reason(2, 0)),
    );
    let leased = Counts {
        leased: 1,
        leased_open: 1,
        ..ready(0, 1)
    };
    check_first(leased, nothing, hold(reason(0, 1)));
    // A selective lease does not hold it open; a browse is not even a fact here (a36).
    check_first(
        Counts {
            leased: 1,
            ..ready(0, 1)
        },
        nothing,
        FIRES,
    );
    let closed = |millis| move |scene: &mut Scene| scene.last_input_closed = Some(ago(millis));
    check_first(
        ready(0, 1),
        closed(1_999),
        hold_until(reason(0, 0), later(1)),
    );
    check_first(ready(0, 1), closed(2_000), FIRES);
}

#[test]
fn rule_every_owes_what_counts_beyond_the_starts_under_way() {
    let every = |count, running, starting, wanted| {
        let change = |scene: &mut Scene| (scene.running, scene.starting) = (running, starting);
        check(TriggerType::Every, ready(0, count), change, wanted);
    };
    every(3, 0, 0, Verdict::Fire(Cause::Every));
    every(3, 2, 2, Verdict::Fire(Cause::Every));
    every(3, 3, 3, hold(HoldReason::AlreadyInProcess));
    every(3, 9, 2, Verdict::Fire(Cause::Every));
    every(0, 0, 0, hold(HoldReason::Empty));
    // Whoever has the queue open (a10).
    let open = |scene: &mut Scene| scene.waiting_inputs = 1;
    check(
        TriggerType::Every,
        ready(0, 1),
        open,
        Verdict::Fire(Cause::Every),
    );
}

#[test]
fn rule_depth_fires_at_its_depth_or_for_an_old_message() {
    let depth = |count, change: Change, wanted| {
        check(TriggerType::Depth, ready(0, count), change, wanted);
    };
    let waiting = |counted| HoldReason::WaitingForDepth {
        counted,
        depth: 100,
    };
    depth(99, nothing, hold(waiting(99)));
    depth(100, nothing, Verdict::Fire(Cause::DepthReached));
    depth(
        150,
        |scene| scene.waiting_inputs = 1,
        Verdict::Fire(Cause::DepthReached),
    );
    let old: Change = |scene| {
        scene.attributes.trigger_max_wait = Some(500);
        scene.oldest_counted = Some(ago(501));
    };
    depth(1, old, Verdict::Fire(Cause::MaxWait));
    let young: Change = |scene| {
        scene.attributes.trigger_max_wait = Some(500);
        scene.oldest_counted = Some(ago(500));
    };
    depth(1, young, hold_until(waiting(1), later(1)));
}

#[test]
fn rule_depth_off_by_depth_fires_only_what_is_owed() {
    let off: Change = |scene| scene.control = Control::OffByDepth;
    let owed: Change = |scene| {
        scene.control = Control::OffByDepth;
        scene.start_owed = true;
    };
    let depth = |count, change, wanted| {
        check(TriggerType::Depth, ready(0, count), change, wanted);
    };
    depth(500, off, hold(HoldReason::TriggerOffByDepth));
    depth(1, owed, Verdict::Fire(Cause::StartOwed));
    depth(0, owed, hold(HoldReason::Empty));
    // Off by depth means nothing to other types.
    check_first(ready(0, 1), off, FIRES);
}

#[test]
fn a17_one_message_of_the_trigger_priority_starts_among_ten_below() {
    let five = |scene: &mut Scene| scene.attributes.trigger_priority = 5;
    let below = |waiting| {
        hold(HoldReason::BelowTriggerPriority {
            waiting,
            priority: 5,
        })
    };
    check_first(ready(3, 10), five, below(10));
    let mut counts = ready(3, 10);
    counts.ready[5] = 1;
    check_first(counts, five, FIRES);
}

#[test]
fn a18_lowering_the_trigger_priority_starts() {
    let priority = |priority| move |scene: &mut Scene| scene.attributes.trigger_priority = priority;
    let below = HoldReason::BelowTriggerPriority {
        waiting: 1,
        priority: 5,
    };
    check_first(ready(4, 1), priority(5), hold(below));
    check_first(ready(4, 1), priority(0), FIRES);
}

#[test]
fn a19_expired_and_delayed_messages_do_not_reach_a_depth() {
    let five = |scene: &mut Scene| {
        scene.attributes.trigger_depth = 5;
        scene.next_due = Some(later(10));
    };
    // Four expired ones were taken off the ready count before the rule is asked; one put follows.
    let waiting = |counted| HoldReason::WaitingForDepth { counted, depth: 5 };
    check(TriggerType::Depth, ready(0, 1), five, hold(waiting(1)));
    let delayed = Counts {
        delayed: 4,
        ..ready(0, 1)
    };
    check(TriggerType::Depth, delayed, five, hold(waiting(1)));
    let only_delayed = Counts {
        delayed: 5,
        ..Counts::default()
    };
    let reason = HoldReason::Delayed {
        delayed: 5,
        deferred: 0,
    };
    check(
        TriggerType::Depth,
        only_delayed,
        five,
        hold_until(reason, later(10)),
    );
    check(
        TriggerType::Depth,
        ready(0, 5),
        five,
        Verdict::Fire(Cause::DepthReached),
    );
}

#[test]
fn a20_type_none_says_so_before_anything_the_queue_holds() {
    for counts in [ready(0, 1), Counts::default()] {
        check(
            TriggerType::None,
            counts,
            nothing,
            hold(HoldReason::TriggerTypeNone),
        );
    }
}

#[test]
fn what_people_decided_comes_before_what_the_queue_holds() {
    let decided: [(Change, HoldReason); 8] = [
        (|scene| scene.store_stopped = true, HoldReason::StoreStopped),
        (|scene| scene.draining = true, HoldReason::Draining),
        (
            |scene| scene.control = Control::OffByOperator,
            HoldReason::TriggerOffByOperator,
        ),
        (
            |scene| scene.paused = Some(PausedBy::Queue),
            HoldReason::Paused(PausedBy::Queue),
        ),
        (
            |scene| scene.paused = Some(PausedBy::Process),
            HoldReason::Paused(PausedBy::Process),
        ),
        (
            |scene| scene.paused = Some(PausedBy::Host),
            HoldReason::Paused(PausedBy::Host),
        ),
        (
            |scene| scene.attributes.get = false,
            HoldReason::GetDisabled,
        ),
        (
            |scene| scene.attributes.trigger = TriggerType::None,
            HoldReason::TriggerTypeNone,
        ),
    ];
    for (change, reason) in decided {
        for counts in [ready(0, 1), Counts::default()] {
            check_first(counts, change, hold(reason.clone()));
        }
    }
    // Put disabled with messages waiting still starts (a32).
    check_first(ready(0, 1), |scene| scene.attributes.put = false, FIRES);
}

#[test]
fn when_nothing_counts_the_state_of_the_messages_says_why() {
    let empty = Counts::default();
    let cases = [
        (
            Counts {
                parked: 1,
                retrying: 2,
                ..empty
            },
            HoldReason::ParkedMessage(1),
        ),
        (
            Counts {
                retrying: 2,
                in_unit: 1,
                ..empty
            },
            HoldReason::RetryDelay(2),
        ),
        (
            Counts {
                deferred: 2,
                delayed: 1,
                ..empty
            },
            HoldReason::Delayed {
                delayed: 1,
                deferred: 2,
            },
        ),
        (
            Counts {
                group_held: 4,
                in_unit: 1,
                ..empty
            },
            HoldReason::GroupBusy(4),
        ),
        (
            Counts {
                group_held: 4,
                retrying: 1,
                ..empty
            },
            HoldReason::RetryDelay(1),
        ),
        (
            Counts {
                leased: 3,
                in_unit: 1,
                ..empty
            },
            HoldReason::Leased(3),
        ),
        (
            Counts {
                in_unit: 2,
                ..empty
            },
            HoldReason::InOpenUnit(2),
        ),
    ];
    for (counts, reason) in cases {
        check_first(counts, nothing, hold(reason));
    }
}

#[test]
fn a_wait_for_time_says_until_when() {
    let empty = Counts::default();
    let due = |scene: &mut Scene| scene.next_due = Some(later(70));
    for counts in [
        Counts {
            retrying: 1,
            ..empty
        },
        Counts {
            delayed: 1,
            ..empty
        },
        Counts {
            deferred: 1,
            ..empty
        },
        Counts { leased: 1, ..empty },
    ] {
        let scene = Scene {
            next_due: Some(later(70)),
            ..Scene::new(TriggerType::First, counts)
        };
        let verdict = evaluate(&scene.facts(), NOW);
        assert!(
            matches!(verdict, Verdict::Hold { until: Some(until), .. } if until == later(70)),
            "{verdict:?}"
        );
    }
    check_first(
        Counts {
            in_unit: 1,
            ..empty
        },
        due,
        hold(HoldReason::InOpenUnit(1)),
    );
}

#[test]
fn a_held_start_is_the_answer_until_its_time() {
    let reason = || HoldReason::NoProcess(None);
    let with =
        |at: Timestamp| move |scene: &mut Scene| scene.held = Some(held(Step::S60, reason(), at));
    check_first(ready(0, 1), with(later(1)), hold_until(reason(), later(1)));
    check_first(ready(0, 1), with(NOW), FIRES);
    check_first(Counts::default(), with(later(1)), hold(HoldReason::Empty));
    // Resources may have come back, so step 50 is asked again each time.
    let lacking = HoldReason::NoTaskSlot { slots: 1 };
    let at_52 = |scene: &mut Scene| scene.held = Some(held(Step::S52, lacking, later(9)));
    check_first(ready(0, 1), at_52, FIRES);
}

#[test]
fn a_queue_that_backs_off_is_asked_again_when_it_is_over() {
    let with = |until: Timestamp| {
        move |scene: &mut Scene| scene.backoff = Some(BackOffState { failures: 3, until })
    };
    let reason = HoldReason::BackingOff { failures: 3 };
    check_first(ready(0, 1), with(later(40)), hold_until(reason, later(40)));
    check_first(ready(0, 1), with(NOW), FIRES);
}

proptest! {
    /// A time named in a hold is exact: nothing changes before it by time alone, and something
    /// does then. A hold without one never ends by time alone; what fires goes on firing.
    #[test]
    fn until_is_exact(scene in any_scene(), millis in 0..10_000_u64) {
        let facts = scene.facts();
        let verdict = evaluate(&facts, NOW);
        match verdict.clone() {
            Verdict::Hold { until: Some(until), .. } => {
                prop_assert!(until > NOW);
                let before = Timestamp(NOW.0 + millis % (until.0 - NOW.0));
                prop_assert_eq!(evaluate(&facts, before), verdict.clone());
                prop_assert_ne!(evaluate(&facts, until), verdict);
            }
            Verdict::Hold { reason, until: None } => {
                let after = evaluate(&facts, later(millis));
                prop_assert_eq!(after.reason(), Some(&reason));
            }
            Verdict::Fire(_) => {
                prop_assert!(matches!(evaluate(&facts, later(millis)), Verdict::Fire(_)));
            }
        }
    }

    #[test]
    fn nothing_fires_against_a_decision_or_without_a_counted_message(scene in any_scene()) {
        let facts = scene.facts();
        let allowed = facts.counted() > 0
            && !facts.store_stopped
            && !facts.draining
            && facts.paused.is_none()
            && facts.attributes.get
            && facts.control != Control::OffByOperator
            && facts.attributes.trigger != TriggerType::None;
        if let Verdict::Fire(_) = evaluate(&facts, NOW) {
            prop_assert!(allowed);
        }
    }
}
