use super::*;
use crate::trigger::scene::{NOW, attributes, later};

const FIRST: TaskId = TaskId(1);
const SECOND: TaskId = TaskId(2);

fn depth(rearm: Rearm) -> QueueAttributes {
    QueueAttributes {
        rearm,
        ..attributes(TriggerType::Depth)
    }
}

fn fired(gate: &mut Gate, cause: Cause) -> TriggerRecord {
    let pending = gate
        .fire(&Verdict::Fire(cause), 100, NOW)
        .expect("not pending");
    pending.record().clone()
}

/// A gate whose depth trigger has fired and whose task is in process.
fn serving(attributes: &QueueAttributes) -> Gate {
    let mut gate = Gate::new(attributes);
    fired(&mut gate, Cause::DepthReached);
    gate.raise(FIRST);
    gate
}

fn record(control: Control, start_owed: bool) -> ControlRecord {
    ControlRecord {
        control,
        start_owed,
    }
}

#[test]
fn the_counter_is_up_from_10_to_66_and_no_longer() {
    let mut gate = Gate::default();
    {
        let mut pending = gate
            .fire(&Verdict::Fire(Cause::First), 3, NOW)
            .expect("fires");
        assert!(pending.is_pending());
        let again = pending.fire(&Verdict::Fire(Cause::First), 3, NOW);
        assert_eq!(again.err(), Some(HoldReason::TriggerPending));
        assert_eq!(pending.record().sequence, 1);
    }
    assert!(!gate.is_pending());
    assert_eq!(fired(&mut gate, Cause::First).sequence, 2);
    assert!(!gate.is_pending());
}

#[test]
fn the_counter_goes_down_when_the_trigger_process_panics() {
    let mut gate = Gate::default();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _pending = gate
            .fire(&Verdict::Fire(Cause::First), 1, NOW)
            .expect("fires");
        std::panic::resume_unwind(Box::new("a fault in the trigger process"));
    }));
    assert!(caught.is_err());
    assert!(!gate.is_pending());
}

#[test]
fn a_hold_leaves_the_counter_down() {
    let mut gate = Gate::default();
    let answer = gate.fire(&Verdict::hold(HoldReason::Empty), 0, NOW).err();
    assert_eq!(answer, Some(HoldReason::Empty));
    assert!(!gate.is_pending());
    assert_eq!(gate.sequence(), 0);
}

#[test]
fn a_start_is_under_way_until_the_first_get_is_answered_or_the_task_ends() {
    let attributes = attributes(TriggerType::Every);
    let mut gate = Gate::new(&attributes);
    gate.raise(FIRST);
    gate.raise(SECOND);
    assert_eq!((gate.running(), gate.starting()), (2, 2));
    assert!(gate.first_get_answered(FIRST));
    assert!(!gate.first_get_answered(FIRST), "only the first is news");
    assert_eq!((gate.running(), gate.starting()), (2, 1));
    assert!(gate.lower(SECOND, &TaskEnd::FAILED, &attributes, NOW));
    assert!(gate.lower(FIRST, &TaskEnd::DONE, &attributes, NOW));
    assert_eq!((gate.running(), gate.starting()), (0, 0));
    assert!(
        !gate.lower(FIRST, &TaskEnd::DONE, &attributes, NOW),
        "it ends once"
    );
    assert!(!gate.first_get_answered(FIRST));
}

#[test]
fn backing_off_doubles_to_the_maximum_and_progress_resets_it() {
    let mut attributes = attributes(TriggerType::First);
    attributes.backoff = Backoff {
        initial: 100,
        max: 350,
    };
    let mut gate = Gate::new(&attributes);
    let mut end = |end: &TaskEnd| {
        gate.raise(FIRST);
        gate.lower(FIRST, end, &attributes, NOW);
        gate.backoff().map(|state| (state.failures, state.until))
    };
    assert_eq!(end(&TaskEnd::IDLE), Some((1, later(100))));
    assert_eq!(end(&TaskEnd::FAILED), Some((2, later(200))));
    assert_eq!(end(&TaskEnd::FAILED), Some((3, later(350))));
    assert_eq!(end(&TaskEnd::FAILED), Some((4, later(350))));
    assert_eq!(end(&TaskEnd::DONE), None);
    assert_eq!(end(&TaskEnd::IDLE), Some((1, later(100))));
    // A failed message was charged: that is progress of the queue, though not of the message.
    assert_eq!(
        end(&TaskEnd {
            progress: true,
            ..TaskEnd::FAILED
        }),
        None
    );
}

#[test]
fn doubling_never_overflows() {
    assert_eq!(doubled(100, 0, 60_000), 100);
    assert_eq!(doubled(100, 3, 60_000), 800);
    assert_eq!(doubled(100, 64, 60_000), 60_000);
    assert_eq!(doubled(u64::MAX, u32::MAX, u64::MAX), u64::MAX);
    assert_eq!(doubled(0, 9, 10), 0);
}

#[test]
fn a_start_that_fails_is_held_with_its_reason_and_backed_off() {
    let attributes = attributes(TriggerType::First);
    let mut gate = Gate::new(&attributes);
    gate.raise(FIRST);
    let end = TaskEnd {
        start_failed: Some("no export".to_owned()),
        ..TaskEnd::FAILED
    };
    gate.lower(FIRST, &end, &attributes, NOW);
    let held = gate.held().expect("held");
    assert_eq!(held.reason, HoldReason::StartFailed("no export".to_owned()));
    assert_eq!(
        (held.step, held.since, held.retry_at),
        (Step::S64, NOW, later(100))
    );
    gate.start_failed("no export".to_owned(), attributes.backoff, later(100));
    let held = gate.held().expect("held");
    assert_eq!(
        (held.since, held.retry_at),
        (NOW, later(300)),
        "since the first of them"
    );
    gate.cure();
    assert_eq!((gate.held(), gate.backoff()), (None, None));
}

#[test]
fn a12_reaching_the_depth_turns_the_trigger_off_with_a_start_owed() {
    let mut gate = Gate::new(&depth(Rearm::Auto));
    assert_eq!(gate.take_control_change(), None);
    fired(&mut gate, Cause::DepthReached);
    let wanted = record(Control::OffByDepth, true);
    assert_eq!(gate.take_control_change(), Some(wanted));
    assert_eq!(gate.take_control_change(), None, "told once");
    assert!(gate.start_owed());
    gate.raise(FIRST);
    assert!(!gate.start_owed(), "its task serves it");
    assert_eq!(
        gate.control_record(),
        wanted,
        "and until it ends it stays owed durably"
    );
}

#[test]
fn a13_a_depth_trigger_is_owed_or_rearmed_never_silently_off() {
    let charged = TaskEnd {
        progress: true,
        ..TaskEnd::FAILED
    };
    let idle = TaskEnd::IDLE;
    let cases = [
        (Rearm::Auto, TaskEnd::DONE, record(Control::On, false)),
        (Rearm::Auto, charged.clone(), record(Control::On, false)),
        (
            Rearm::Auto,
            TaskEnd::FAILED,
            record(Control::OffByDepth, true),
        ),
        (Rearm::Auto, idle.clone(), record(Control::OffByDepth, true)),
        (
            Rearm::Manual,
            TaskEnd::DONE,
            record(Control::OffByDepth, false),
        ),
        (Rearm::Manual, charged, record(Control::OffByDepth, true)),
        (
            Rearm::Manual,
            TaskEnd::FAILED,
            record(Control::OffByDepth, true),
        ),
        (Rearm::Manual, idle, record(Control::OffByDepth, true)),
    ];
    for (rearm, end, wanted) in cases {
        let attributes = depth(rearm);
        let mut gate = serving(&attributes);
        gate.lower(FIRST, &end, &attributes, NOW);
        assert_eq!(gate.control_record(), wanted, "{rearm}, {end:?}");
        assert_eq!(gate.start_owed(), wanted.start_owed);
    }
}

#[test]
fn what_is_owed_lapses_at_depth_zero_unless_a_task_serves_it() {
    for (rearm, control) in [
        (Rearm::Auto, Control::On),
        (Rearm::Manual, Control::OffByDepth),
    ] {
        let attributes = depth(rearm);
        let mut gate = serving(&attributes);
        gate.lapse(rearm);
        assert_eq!(
            gate.control_record(),
            record(Control::OffByDepth, true),
            "being served"
        );
        gate.lower(FIRST, &TaskEnd::FAILED, &attributes, NOW);
        gate.lapse(rearm);
        assert_eq!(gate.control_record(), record(control, false));
    }
    let mut off = Gate::new(&depth(Rearm::Auto));
    off.set_control(false);
    off.lapse(Rearm::Auto);
    assert_eq!(
        off.control(),
        Control::OffByOperator,
        "touches only off by depth"
    );
}

#[test]
fn an_operator_turns_control_on_and_off_over_everything() {
    let attributes = depth(Rearm::Manual);
    let mut gate = serving(&attributes);
    gate.set_control(true);
    assert_eq!(gate.control_record(), record(Control::On, false));
    // The depth is there once more while the first task runs: that start is owed on its own.
    fired(&mut gate, Cause::DepthReached);
    assert!(gate.start_owed());
    gate.lower(FIRST, &TaskEnd::DONE, &attributes, NOW);
    assert!(gate.start_owed(), "the task that ended did not serve it");
    gate.set_control(false);
    assert_eq!(gate.control_record(), record(Control::OffByOperator, false));
    assert!(gate.take_control_change().is_some());
}

#[test]
fn a_change_of_control_that_is_not_durable_is_put_back() {
    let attributes = depth(Rearm::Manual);
    let mut gate = serving(&attributes);
    let before = gate.control_record();
    assert!(gate.take_control_change().is_some());
    gate.set_control(false);
    gate.put_control_back(before, &attributes);
    assert_eq!(gate.control_record(), before);
    assert_eq!(
        gate.take_control_change(),
        None,
        "the durable record is still right"
    );
}

#[test]
fn a37_a_task_that_ends_does_not_turn_the_operators_off_on() {
    let attributes = depth(Rearm::Auto);
    let mut gate = serving(&attributes);
    gate.set_control(false);
    gate.lower(FIRST, &TaskEnd::DONE, &attributes, NOW);
    assert_eq!(gate.control_record(), record(Control::OffByOperator, false));
}

#[test]
fn a_changed_definition_moves_control_only_where_it_must() {
    let manual = depth(Rearm::Manual);
    let auto = depth(Rearm::Auto);
    let first = attributes(TriggerType::First);
    let off = QueueAttributes {
        trigger_control: false,
        ..manual.clone()
    };
    let done = |to: &QueueAttributes| {
        let mut gate = serving(&manual);
        gate.lower(FIRST, &TaskEnd::DONE, &manual, NOW);
        gate.back_off(manual.backoff, NOW);
        gate.attributes_changed(&manual, to);
        assert_eq!(gate.backoff(), None, "a change cures");
        gate.control()
    };
    assert_eq!(
        done(&QueueAttributes {
            max_tasks: 3,
            ..manual.clone()
        }),
        Control::OffByDepth
    );
    assert_eq!(done(&auto), Control::On);
    assert_eq!(done(&first), Control::On);
    assert_eq!(done(&off), Control::OffByOperator);
    let mut gate = Gate::new(&off);
    assert_eq!(gate.control(), Control::OffByOperator);
    gate.attributes_changed(&off, &manual);
    assert_eq!(gate.control(), Control::On);
}

#[test]
fn a_restart_keeps_what_is_owed() {
    let attributes = depth(Rearm::Manual);
    let gate = serving(&attributes);
    let json = serde_json::to_string(&gate.control_record()).expect("serialises");
    assert_eq!(json, r#"{"control":"off-by-depth","start-owed":true}"#);
    let read = serde_json::from_str(&json).expect("parses");
    let gate = Gate::restore(read, &attributes);
    assert!(gate.start_owed(), "the task that served it is gone");
    assert_eq!(gate.running(), 0);
}

#[test]
fn a_second_trigger_process_is_seen_at_54() {
    let mut gate = Gate::default();
    assert!(!gate.second_is_running(1));
    gate.raise(FIRST);
    assert!(gate.second_is_running(1));
    assert!(!gate.second_is_running(2));
    gate.set_elsewhere(true);
    assert!(gate.second_is_running(2));
    gate.set_elsewhere(false);
    assert!(!gate.second_is_running(2));
}

#[test]
fn a_task_that_found_nothing_is_not_paced_and_an_idle_one_is() {
    let nothing = TaskEnd {
        found_nothing: true,
        ..TaskEnd::IDLE
    };
    let attributes = QueueAttributes::default();
    let mut gate = Gate::new(&attributes);
    for (end, backs_off) in [(nothing, false), (TaskEnd::IDLE, true)] {
        gate.raise(FIRST);
        assert!(gate.lower(FIRST, &end, &attributes, NOW));
        assert_eq!(gate.backoff().is_some(), backs_off, "{end:?}");
    }
}
