//! One canonical trace for each step of the trigger method, its stops included.

use oncue_core::admission::{Demand, Resources};
use oncue_core::outcome::{CallEnd, Outcome};
use oncue_manager::ManagerConfig;
use oncue_manager::reload::PluginState;

use crate::rig::Rig;
use crate::values::{Pairs, name, plain, update};

/// A start from the first question to the task's end.
const WHOLE: [u8; 11] = [10, 12, 14, 50, 54, 58, 60, 62, 64, 66, 68];

/// A host with room for so many tasks of 64 MiB.
pub(crate) fn room_for(tasks: u64) -> ManagerConfig {
    ManagerConfig {
        capacity: Resources {
            slots: 10,
            memory: tasks * (64 << 20),
            fuel: 1_000_000_000_000,
        },
        ..ManagerConfig::default()
    }
}

fn echo(attributes: Pairs<'_>) -> Rig {
    let mut rig = Rig::new();
    rig.plugin("echo", &[], &[("echo", attributes)]);
    rig
}

#[test]
fn a49_steps_10_to_68_of_a_whole_start() {
    let mut rig = echo(&[]);
    rig.put("echo", "one");
    let explained = rig.explain("echo");
    assert_eq!(explained.last_trace, WHOLE[..10]);
    rig.run(|_| CallEnd::Ok);
    assert_eq!(rig.records()[0].steps, WHOLE);
    rig.assert_ledger_empty();
}

#[test]
fn a49_step_10_a_queue_that_does_not_fire_goes_to_16() {
    let mut rig = echo(&[("trigger-control", "off")]);
    assert_eq!(rig.explain("echo").reason, Some("trigger-off-by-operator"));
    rig.put("echo", "one");
    let before = rig.manager.asked();
    rig.advance(1_000);
    // A sweep asks each queue once that holds anything: this one, not the manager's own two.
    assert_eq!(rig.manager.asked() - before, 1);
    let explained = rig.explain("echo");
    assert_eq!(
        (explained.reason, explained.last_trace),
        (Some("trigger-off-by-operator"), vec![])
    );
    assert_eq!(rig.waiting(), 0);
}

#[test]
fn a49_step_12_at_max_tasks_goes_to_16() {
    let mut rig = echo(&[("trigger", "every"), ("max-tasks", "2")]);
    rig.put_all(["1", "2", "3"].map(|body| plain("echo", body)).into())
        .unwrap();
    let view = rig.queue("echo");
    assert_eq!((rig.waiting(), view.running), (2, 2));
    assert_eq!(view.reason, Some("at-max-tasks"));
    // The last start's trace stands; a stop at 12 is none.
    assert_eq!(rig.explain("echo").last_trace, WHOLE[..10]);
    rig.run_all();
}

#[test]
fn a49_step_52_insufficient_resources() {
    let mut rig = Rig::with(room_for(1));
    rig.plugin("one", &[], &[("one", &[])]);
    rig.plugin("two", &[], &[("two", &[])]);
    rig.put("one", "1");
    rig.put("two", "2");
    let explained = rig.explain("two");
    assert_eq!(explained.last_trace, [10, 12, 14, 50, 52]);
    assert_eq!(explained.reason, Some("insufficient-memory"));
    assert_eq!(rig.run_all(), ["1", "2"]);
    assert_eq!(rig.explain("two").last_trace, WHOLE[..10]);
    rig.assert_ledger_empty();
}

#[test]
fn a49_step_56_already_in_process() {
    let mut rig = echo(&[("trigger-control", "off")]);
    rig.put("echo", "one");
    rig.manager.set_elsewhere(&name("echo"), true);
    rig.trigger("echo", true);
    assert_eq!(rig.waiting(), 0);
    assert_eq!(rig.explain("echo").last_trace, [10, 12, 14, 50, 54, 56]);
    rig.assert_ledger_empty();
    rig.manager.set_elsewhere(&name("echo"), false);
    rig.settle();
    assert_eq!(rig.run_all(), ["one"]);
}

#[test]
fn a49_step_60_no_process() {
    let mut rig = Rig::new();
    rig.define("orders", &[]);
    rig.put("orders", "one");
    let explained = rig.explain("orders");
    assert_eq!(explained.last_trace, [10, 12, 14, 50, 54, 58, 60, 66, 68]);
    assert_eq!(explained.reason, Some("no-process"));
    rig.assert_ledger_empty();
    assert_eq!(rig.queue("orders").running, 0);
    // With no event it is tried again at the re-fire interval, not before.
    let before = rig.explain("orders").last_fired;
    rig.advance(999);
    assert_eq!(rig.explain("orders").last_fired, before);
    rig.advance(1);
    assert!(rig.explain("orders").last_fired > before);
}

#[test]
fn a49_step_62_component_missing() {
    let mut rig = Rig::new();
    rig.update(update("echo", PluginState::Missing, &[], &[("echo", &[])]))
        .unwrap();
    rig.put("echo", "one");
    let explained = rig.explain("echo");
    let trace = [10, 12, 14, 50, 54, 58, 60, 62, 66, 68];
    assert_eq!(explained.last_trace, trace);
    assert_eq!(explained.reason, Some("component-missing"));
    rig.assert_ledger_empty();
}

#[test]
fn a49_step_64_start_failed() {
    let mut rig = echo(&[]);
    rig.plugin("other", &[], &[("other", &[])]);
    rig.refuse_starts(Some("no worker is free"));
    rig.put("echo", "one");
    let explained = rig.explain("echo");
    let trace = [10, 12, 14, 50, 54, 58, 60, 62, 64, 66, 68];
    assert_eq!(explained.last_trace, trace);
    assert_eq!(explained.reason, Some("start-failed"));
    assert!(explained.sentence.contains("no worker is free"));
    rig.assert_ledger_empty();
    assert_eq!(
        (rig.queue("echo").running, rig.attempts("echo")),
        (0, (0, 0))
    );
    // The failed start's end is no one else's: the other queue's task stays in process.
    rig.refuse_starts(None);
    rig.put("other", "two");
    rig.settle();
    assert_eq!(rig.queue("other").running, 1);
    rig.run_all();
    rig.advance(100);
    assert_eq!(rig.run_all(), ["one"]);
}

#[test]
fn a49_step_64_a_start_that_fails_and_one_that_goes_well_in_one_turn() {
    let mut rig = Rig::new();
    for plugin in ["a", "b"] {
        rig.plugin(plugin, &[], &[(plugin, &[])]);
    }
    rig.refuse_next_start("pool exhausted");
    rig.put_all(vec![plain("a", "1"), plain("b", "2")]).unwrap();
    let running = rig.queue("a").running + rig.queue("b").running;
    assert_eq!((running, rig.waiting()), (1, 1));
    rig.advance(100);
    let mut handled = rig.run_all();
    handled.sort();
    assert_eq!(handled, ["1", "2"]);
    rig.assert_ledger_empty();
}

#[test]
fn a49_step_66_asks_again_for_a_second_task() {
    let mut rig = echo(&[("trigger", "every"), ("max-tasks", "3")]);
    rig.put_all(vec![plain("echo", "1"), plain("echo", "2")])
        .unwrap();
    assert_eq!(rig.waiting(), 2, "both from the one event");
    let triggers: Vec<_> = (0..2)
        .map(|_| rig.next_task())
        .map(|task| (task.spec().trigger.sequence, task.spec().trigger.depth))
        .collect();
    assert_eq!(triggers, [(1, 2), (2, 2)]);
}

#[test]
fn a49_step_68_a_lost_task_is_an_end_like_any_other() {
    let mut rig = echo(&[]);
    rig.put("echo", "one");
    let task = rig.next_task();
    drop(task);
    rig.settle();
    let record = rig.records().remove(0);
    assert_eq!(record.outcome, Some(Outcome::StartFailed));
    assert_eq!(record.steps, WHOLE);
    rig.assert_ledger_empty();
    assert_eq!(rig.reason("echo"), Some("start-failed"));
    rig.advance(100);
    assert_eq!(rig.run_all(), ["one"]);
}

#[test]
fn a49_step_50_reserves_the_bound_definitions_demand() {
    let mut rig = Rig::new();
    let limits: Pairs<'_> = &[("memory", "128 MiB"), ("fuel", "3 G")];
    rig.plugin("echo", limits, &[("echo", &[])]);
    rig.put("echo", "one");
    let handle = rig.handle.clone();
    let ledger = rig.ask(async move { handle.ledger().await }).unwrap();
    let reserved = (
        ledger.reserved.slots,
        ledger.reserved.memory,
        ledger.reserved.fuel,
    );
    assert_eq!(reserved, (1, 128 << 20, 3_000_000_000));
    assert_eq!(ledger.by_process["echo"], ledger.reserved);
    rig.run_all();
    rig.assert_ledger_empty();
    assert_ne!(Demand::default(), ManagerConfig::default().default_demand);
}
