use super::*;
use crate::admission::Resources;
use crate::definition::{ProcessDefinition, QueueDefinition, Style, TriggerType};
use crate::process_table::ComponentState;
use crate::queue::Counts;
use crate::trigger::gate::Control;
use crate::trigger::rule::Cause;
use crate::trigger::scene::{NOW, attributes, later, process, queue, ready};

mod liveness;
mod paths;
mod world;

use world::{DEMAND, MEMORY, World, entry, host, version};

const WHOLE: [u8; 9] = [10, 12, 14, 50, 54, 58, 60, 62, 64];
const STARTED: [u8; 10] = [10, 12, 14, 50, 54, 58, 60, 62, 64, 66];

#[test]
fn a49_the_whole_path_and_the_end_of_the_task() {
    let mut world = World::new(TriggerType::First, ready(0, 3));
    let task = world.check(&STARTED).expect("started");
    assert_eq!(world.ledger.in_use(), Resources::of(DEMAND));
    assert_eq!(
        (world.entry.gate.running(), world.entry.gate.starting()),
        (1, 1)
    );
    world.finish(task, &TaskEnd::DONE);
    assert_eq!(world.ledger.in_use(), Resources::default());
    assert_eq!(world.entry.gate.running(), 0);
}

#[test]
fn a49_step_10_holds_with_the_rules_reason() {
    let mut world = World::new(TriggerType::First, Counts::default());
    let Report { trace, end } = world.run_with(Ok(()));
    assert_eq!(trace.numbers(), [10, 16]);
    assert!(
        matches!(
            end,
            End::NextQueue {
                reason: HoldReason::Empty,
                until: None
            }
        ),
        "{end:?}"
    );
}

#[test]
fn a49_step_10_stops_at_a_pending_trigger() {
    let mut world = World::new(TriggerType::First, ready(0, 1));
    // The pending span is open: as another evaluator would see it in the middle of 50 to 64.
    let fire = Verdict::Fire(Cause::First);
    std::mem::forget(world.entry.gate.fire(&fire, 1, NOW).expect("fires"));
    let ask = Ask {
        host: &world.host,
        processes: &world.processes,
        now: NOW,
        task: TaskId(1),
    };
    let Report { trace, end } = run(&mut world.entry, &mut world.ledger, &ask, |_| Ok(()));
    assert_eq!(trace.numbers(), [10, 16]);
    assert!(
        matches!(
            end,
            End::NextQueue {
                reason: HoldReason::TriggerPending,
                ..
            }
        ),
        "{end:?}"
    );
}

#[test]
fn a49_step_12_stops_at_max_tasks() {
    let mut world = World::new(TriggerType::First, ready(0, 3));
    let task = world.check(&STARTED).expect("started");
    world.entry.gate.first_get_answered(task.0);
    let Report { trace, end } = world.run_with(Ok(()));
    assert_eq!(trace.numbers(), [10, 12, 16]);
    let wanted = HoldReason::AtMaxTasks { running: 1, max: 1 };
    assert!(matches!(end, End::NextQueue { reason, .. } if reason == wanted));
    world.finish(task, &TaskEnd::DONE);
    let again = world.check(&STARTED).expect("68 asks again");
    world.finish(again, &TaskEnd::DONE);
}

#[test]
fn a42_step_50_stops_at_52_and_starts_when_capacity_is_freed() {
    let mut world = World::new(TriggerType::First, ready(0, 1));
    let other = queue("other");
    let most = Demand {
        memory: 2 * MEMORY - (12 << 20),
        fuel: 1,
    };
    let grant = world.ledger.reserve(&other, most, NOW).expect("fits");
    let reason = HoldReason::InsufficientMemory {
        wanted: MEMORY,
        free: 12 << 20,
    };
    world.check_held(&[10, 12, 14, 50, 52], &reason);
    let sentence = "insufficient resources: memory 64 MiB wanted, 12 MiB free";
    assert_eq!(reason.to_string(), sentence);
    assert_eq!(
        world.ledger.waiting().collect::<Vec<_>>(),
        [&world.entry.name]
    );
    world.ledger.give_back(grant);
    let task = world.check(&STARTED).expect("no put was needed");
    assert_eq!(world.entry.gate.held(), None);
    world.finish(task, &TaskEnd::DONE);
}

#[test]
fn a_queue_with_nothing_left_to_start_waits_for_no_resources() {
    let mut world = World::new(TriggerType::First, ready(0, 1));
    world.ledger.set_capacity(Resources {
        slots: 1,
        ..world.ledger.capacity()
    });
    let grant = world
        .ledger
        .reserve(&queue("other"), DEMAND, NOW)
        .expect("fits");
    world.check_held(&[10, 12, 14, 50, 52], &HoldReason::NoTaskSlot { slots: 1 });
    assert!(world.ledger.anyone_waits());
    world.entry.counts = Counts::default().into();
    assert!(world.check(&[10, 16]).is_none());
    assert!(!world.ledger.anyone_waits());
    assert_eq!(world.entry.gate.held(), None);
    world.ledger.give_back(grant);
}

#[test]
fn a49_step_54_stops_at_56_when_another_host_is_between_58_and_66() {
    let mut world = World::new(TriggerType::First, ready(0, 1));
    world.entry.gate.set_elsewhere(true);
    assert!(world.check(&[10, 12, 14, 50, 54, 56]).is_none());
    assert_eq!(
        world.ledger.in_use(),
        Resources::default(),
        "the grant is back"
    );
    world.entry.gate.set_elsewhere(false);
    let task = world.check(&STARTED).expect("started");
    world.finish(task, &TaskEnd::DONE);
}

#[test]
fn a33_step_60_holds_without_a_process_and_starts_when_it_is_defined() {
    let mut world = World::new(TriggerType::First, ready(0, 1));
    let defined = world.processes.remove(&process("p")).expect("defined");
    let reason = HoldReason::NoProcess(Some(process("p")));
    world.check_held(&[10, 12, 14, 50, 54, 58, 60, 66, 68], &reason);
    assert!(
        world.check(&[10, 16]).is_none(),
        "held until cured or the re-fire interval is over"
    );
    world.processes.insert(process("p"), defined);
    world.entry.gate.cure();
    let task = world.check(&STARTED).expect("started");
    world.finish(task, &TaskEnd::DONE);
}

#[test]
fn a33_a_queue_that_names_no_process_asks_for_the_default_demand() {
    let mut world = World::new(TriggerType::First, ready(0, 1));
    world.attributes().process = None;
    world.host.default_demand = Demand {
        memory: 3 * MEMORY,
        ..DEMAND
    };
    let reason = HoldReason::InsufficientMemory {
        wanted: 3 * MEMORY,
        free: 2 * MEMORY,
    };
    world.check_held(&[10, 12, 14, 50, 52], &reason);
    world.host.default_demand = DEMAND;
    let no_process = HoldReason::NoProcess(None);
    world.check_held(&[10, 12, 14, 50, 54, 58, 60, 66, 68], &no_process);
}

#[test]
fn a34_step_62_holds_for_the_components_state_and_starts_when_it_is_fixed() {
    let file = || "p.wasm".to_owned();
    let cases = [
        (
            ComponentState::Missing,
            HoldReason::ComponentMissing(file()),
        ),
        (
            ComponentState::Compiling,
            HoldReason::ComponentCompiling(file()),
        ),
        (
            ComponentState::Quarantined(file()),
            HoldReason::ComponentQuarantined(file()),
        ),
    ];
    for (state, reason) in cases {
        let mut world = World::new(TriggerType::First, ready(0, 1));
        world.process().component = state;
        world.check_held(&[10, 12, 14, 50, 54, 58, 60, 62, 66, 68], &reason);
        // Its re-fire interval passes and nothing is better.
        world.now = later(1_000);
        world.check_held(&[10, 12, 14, 50, 54, 58, 60, 62, 66, 68], &reason);
        assert_eq!(world.entry.gate.held().map(|held| held.since), Some(NOW));
        world.process().component = version(DEMAND);
        world.entry.gate.cure();
        let task = world.check(&STARTED).expect("started");
        world.finish(task, &TaskEnd::DONE);
    }
}

#[test]
fn a49_step_62_exchanges_the_grant_for_what_the_version_needs() {
    let mut world = World::new(TriggerType::First, ready(0, 1));
    let larger = Demand {
        memory: 2 * MEMORY,
        ..DEMAND
    };
    world.process().component = version(larger);
    let task = world.check(&STARTED).expect("started");
    assert_eq!(task.1.demand(), larger);
    assert_eq!(world.ledger.in_use(), Resources::of(larger));
    world.finish(task, &TaskEnd::DONE);
    assert_eq!(world.ledger.in_use(), Resources::default());
}

#[test]
fn a49_step_62_stops_at_52_when_the_exchange_is_refused() {
    let mut world = World::new(TriggerType::First, ready(0, 1));
    world.process().component = version(Demand {
        memory: 3 * MEMORY,
        ..DEMAND
    });
    let reason = HoldReason::InsufficientMemory {
        wanted: 3 * MEMORY,
        free: 2 * MEMORY,
    };
    world.check_held(&[10, 12, 14, 50, 54, 58, 60, 62, 52, 66, 68], &reason);
}

#[test]
fn a49_step_64_holds_a_start_that_fails_and_backs_off() {
    let mut world = World::new(TriggerType::First, ready(0, 1));
    let mut at = |now: Timestamp| {
        world.now = now;
        let Report { trace, end } = world.run_with(Err("no export"));
        assert_eq!(trace.numbers(), [&WHOLE[..], &[66, 68]].concat());
        assert_eq!(world.ledger.in_use(), Resources::default());
        match end {
            End::Held {
                step: Step::S64,
                retry_at,
                ..
            } => retry_at,
            end => panic!("{end:?}"),
        }
    };
    assert_eq!(at(NOW), later(100));
    assert_eq!(at(later(100)), later(300));
    assert_eq!(at(later(300)), later(700));
    let held = world.entry.gate.held().expect("held");
    assert_eq!(held.reason, HoldReason::StartFailed("no export".to_owned()));
}

#[test]
fn a40_the_trigger_message_is_of_the_definition_at_the_start() {
    let mut world = World::new(TriggerType::Every, ready(0, 2));
    world.attributes().max_tasks = 2;
    let mut seen = Vec::new();
    let mut tasks = Vec::new();
    for text in ["old", "new"] {
        std::sync::Arc::make_mut(&mut world.process().attributes).user_data = text.to_owned();
        let task = TaskId(world.next_task);
        world.next_task += 1;
        let ask = Ask {
            host: &world.host,
            processes: &world.processes,
            now: NOW,
            task,
        };
        let report = run(&mut world.entry, &mut world.ledger, &ask, |start| {
            seen.push((
                start.message.user_data.clone(),
                start.message.depth,
                start.message.sequence,
            ));
            assert_eq!(start.message.application_id, "p.wasm@sha256:1");
            Ok(())
        });
        match report.end {
            End::Started { task, grant } => tasks.push((task, grant)),
            end => panic!("{end:?}"),
        }
    }
    assert_eq!(seen, [("old".to_owned(), 2, 1), ("new".to_owned(), 2, 2)]);
    tasks
        .into_iter()
        .for_each(|task| world.finish(task, &TaskEnd::DONE));
}

#[test]
fn a8_every_starts_as_many_tasks_as_messages_count() {
    let mut world = World::new(TriggerType::Every, ready(0, 3));
    world.attributes().max_tasks = 10;
    world.ledger.set_capacity(Resources {
        slots: 9,
        memory: 9 * MEMORY,
        fuel: 9 * DEMAND.fuel,
    });
    let tasks: Vec<_> = (0..3)
        .map(|_| world.check(&STARTED).expect("started"))
        .collect();
    assert!(world.check(&[10, 16]).is_none());
    tasks
        .into_iter()
        .for_each(|task| world.finish(task, &TaskEnd::DONE));
}

#[test]
fn a12_depth_fires_once_and_a15_once_more_when_control_is_turned_on() {
    let mut world = World::new(TriggerType::Depth, ready(0, 99));
    assert!(world.check(&[10, 16]).is_none());
    world.entry.counts = ready(0, 100).into();
    let task = world.check(&STARTED).expect("the hundredth");
    assert_eq!(world.entry.gate.control(), Control::OffByDepth);
    world.entry.counts = ready(0, 150).into();
    let Report { end, .. } = world.run_with(Ok(()));
    let off = HoldReason::TriggerOffByDepth;
    assert!(matches!(end, End::NextQueue { reason, .. } if reason == off));
    world.entry.gate.set_control(false);
    world.finish(task, &TaskEnd::DONE);
    assert!(world.check(&[10, 16]).is_none());
    world.entry.gate.set_control(true);
    let task = world.check(&STARTED).expect("150 are there");
    assert!(world.check(&[10, 16]).is_none());
    world.finish(task, &TaskEnd::DONE);
}

#[test]
fn a_depth_start_that_was_stopped_stays_owed_until_the_queue_is_empty() {
    let mut world = World::new(TriggerType::Depth, ready(0, 100));
    let bound = world.processes.remove(&process("p"));
    assert!(world.check(&[10, 12, 14, 50, 54, 58, 60, 66, 68]).is_none());
    world.entry.counts = ready(0, 1).into();
    world
        .processes
        .insert(process("p"), bound.expect("defined"));
    world.now = later(1_000);
    let task = world.check(&STARTED).expect("still owed");
    world.finish(task, &TaskEnd::FAILED);
    world.now = later(9_000);
    world.entry.counts = Counts::default().into();
    assert!(world.check(&[10, 16]).is_none());
    assert_eq!(
        world.entry.gate.control(),
        Control::On,
        "lapsed and re-armed"
    );
    world.entry.counts = ready(0, 1).into();
    assert!(world.check(&[10, 16]).is_none());
}

#[test]
fn a43_many_evaluators_start_one_task() {
    let mut world = World::new(TriggerType::First, ready(0, 9));
    let started: Vec<_> = (0..20)
        .filter_map(|_| match world.run_with(Ok(())).end {
            End::Started { task, grant } => Some((task, grant)),
            _ => None,
        })
        .collect();
    assert_eq!(started.len(), 1);
    started
        .into_iter()
        .for_each(|task| world.finish(task, &TaskEnd::DONE));
}
