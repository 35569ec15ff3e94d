use proptest::prelude::*;

use super::*;
use crate::queue::Counts;
use crate::trigger::gate::BackOffState;
use crate::trigger::hold::PausedBy;
use crate::trigger::rule::Cause;
use crate::trigger::scene::{NOW, Scene, any_scene, held, later, ready};
use crate::trigger::step::Step;

/// The deciding condition's name and value, from the default scene with a change.
fn check(trigger: TriggerType, change: impl FnOnce(&mut Scene), name: &str, value: &str) {
    let mut scene = Scene::new(trigger, ready(0, 1));
    change(&mut scene);
    let list = conditions(&scene.facts(), NOW);
    let decides: Vec<&Condition> = list.iter().filter(|condition| condition.decides).collect();
    assert_eq!(decides.len(), 1, "{list:#?}");
    assert_eq!((decides[0].name, &*decides[0].value), (name, value));
}

#[test]
fn a80_the_deciding_condition_is_named_with_its_present_value() {
    let first = TriggerType::First;
    check(
        first,
        |scene| {
            scene.counts = Counts {
                parked: 1,
                delayed: 2,
                ..Counts::default()
            }
        },
        "messages-count",
        "0 of 3, 2 delayed, 1 parked",
    );
    check(
        first,
        |scene| scene.attributes.get = false,
        "get-enabled",
        "disabled",
    );
    check(
        first,
        |scene| scene.starting = 1,
        "no-start-under-way",
        "1 under way",
    );
    check(
        first,
        |scene| scene.paused = Some(PausedBy::Process),
        "not-paused",
        "the process is paused",
    );
    check(
        first,
        |scene| scene.waiting_inputs = 2,
        "no-consumer-open",
        "2 waiting gets, 0 unsettled leases",
    );
    check(
        first,
        |scene| scene.running = 1,
        "below-max-tasks",
        "1 of 1 in process",
    );
    check(
        first,
        |scene| {
            scene.backoff = Some(BackOffState {
                failures: 2,
                until: later(150),
            })
        },
        "not-backing-off",
        "2 in a row without progress; again in 150ms",
    );
    check(
        first,
        |scene| {
            let reason = HoldReason::InsufficientMemory {
                wanted: 64 << 20,
                free: 12 << 20,
            };
            scene.held = Some(held(Step::S52, reason, later(9)));
        },
        "resources",
        "insufficient resources: memory 64 MiB wanted, 12 MiB free",
    );
    check(
        first,
        |scene| scene.held = Some(held(Step::S60, HoldReason::NoProcess(None), later(1_000))),
        "start-not-held",
        "held at step 60: the queue names no process; set its process attribute; again in 1s",
    );
    check(TriggerType::Depth, |_| (), "depth-reached", "1 of 100");
    check(TriggerType::None, |_| (), "trigger-type", "none");
    check(
        TriggerType::Depth,
        |scene| (scene.control, scene.running) = (Control::OffByDepth, 1),
        "trigger-control",
        "off by depth, its task is in process",
    );
    check(
        TriggerType::Every,
        |scene| (scene.running, scene.starting) = (1, 1),
        "starts-owed",
        "0 (1 counted, 1 starts under way)",
    );
}

#[test]
fn what_fires_has_no_deciding_condition() {
    let scene = Scene::new(TriggerType::First, ready(0, 1));
    let Explanation {
        conditions,
        verdict,
    } = explain(&scene.facts(), NOW);
    assert_eq!(verdict, Verdict::Fire(Cause::First));
    assert!(
        conditions
            .iter()
            .all(|condition| condition.holds && !condition.decides)
    );
}

proptest! {
    /// The page and the rule cannot contradict each other: the first condition that does not hold
    /// is the one that decides, and there is one exactly when nothing starts.
    #[test]
    fn a80_the_first_condition_that_fails_decides(scene in any_scene()) {
        let Explanation { conditions, verdict } = explain(&scene.facts(), NOW);
        let deciding: Vec<usize> =
            (0..conditions.len()).filter(|index| conditions[*index].decides).collect();
        let failing = conditions.iter().position(|condition| !condition.holds);
        prop_assert_eq!(failing.into_iter().collect::<Vec<_>>(), deciding, "{:#?}", conditions);
        prop_assert_eq!(failing.is_some(), verdict.reason().is_some());
    }
}
