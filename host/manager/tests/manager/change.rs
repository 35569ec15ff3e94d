//! Suppression and change: get and put disabled, processes and components that come and go, pauses,
//! definitions.

use oncue_core::outcome::CallEnd;
use oncue_manager::ManagerConfig;
use oncue_manager::reload::{PluginState, PluginUpdate};
use oncue_manager::tasks::port::{GetOptions, Got};

use crate::rig::Rig;
use crate::values::{Pairs, name, plain, process_name, ready, update};

fn echo(attributes: Pairs<'_>) -> Rig {
    let mut rig = Rig::new();
    rig.plugin("echo", &[], &[("echo", attributes)]);
    rig
}

#[test]
fn a32_get_disabled_holds_with_the_reason_and_starts_when_enabled() {
    let mut rig = echo(&[("get", "disabled")]);
    rig.put("echo", "one");
    assert_eq!(
        (rig.waiting(), rig.reason("echo")),
        (0, Some("get-disabled"))
    );
    rig.define("echo", &[("get", "enabled")]);
    assert_eq!(rig.run_all(), ["one"]);
}

#[test]
fn a32_put_disabled_with_messages_waiting_still_starts() {
    let mut rig = echo(&[("trigger-control", "off")]);
    rig.put("echo", "one");
    rig.define("echo", &[("put", "disabled")]);
    let refused = rig.put_all(vec![plain("echo", "two")]).unwrap_err();
    assert!(refused.message.ends_with("[put-disabled]"), "{refused}");
    rig.trigger("echo", true);
    assert_eq!(rig.run_all(), ["one"]);
}

#[test]
fn a33_no_process_holds_until_one_is_defined_and_then_starts_with_no_other_action() {
    let mut rig = Rig::new();
    rig.plugin("worker", &[], &[]);
    rig.define("unbound", &[]);
    rig.define("orders", &[("process", "late")]);
    rig.put("unbound", "one");
    rig.put("orders", "two");
    for queue in ["unbound", "orders"] {
        assert_eq!(rig.reason(queue), Some("no-process"));
    }
    rig.process("late", &[("component", "worker.wasm")]);
    assert_eq!(rig.run_all(), ["two"]);
    rig.define("unbound", &[("process", "late")]);
    assert_eq!(rig.run_all(), ["one"]);
}

#[test]
fn a34_a_component_that_cannot_run_holds_with_its_reason_and_starts_when_it_can() {
    let quarantined = PluginState::Quarantined {
        reason: "plugins/echo.wasm is not a component".to_owned(),
        serving: None,
    };
    for (state, reason) in [
        (PluginState::Missing, "component-missing"),
        (PluginState::Compiling, "component-compiling"),
        (quarantined, "component-quarantined"),
    ] {
        let mut rig = Rig::new();
        rig.update(update("echo", state, &[], &[("echo", &[])]))
            .unwrap();
        rig.put("echo", "one");
        assert_eq!((rig.waiting(), rig.reason("echo")), (0, Some(reason)));
        rig.plugin("echo", &[], &[("echo", &[])]);
        assert_eq!(rig.run_all(), ["one"], "after {reason}");
    }
}

#[test]
fn a34_a_bad_drop_over_a_good_version_changes_nothing() {
    let mut rig = echo(&[]);
    let PluginState::Ready(version) = ready("echo", "1") else {
        unreachable!("ready is ready");
    };
    let state = PluginState::Quarantined {
        reason: "plugins/echo.wasm is truncated".to_owned(),
        serving: Some(version),
    };
    let bad = PluginUpdate {
        definitions: None,
        ..update("echo", state, &[], &[])
    };
    rig.update(bad).unwrap();
    rig.put("echo", "one");
    assert_eq!(rig.run_all(), ["one"]);
    let handle = rig.handle.clone();
    let view = rig
        .ask(async move { handle.plugins().await })
        .unwrap()
        .remove(0);
    assert_eq!(
        (view.state, view.digest.as_deref()),
        ("quarantined", Some("echo-1"))
    );
    assert_eq!(view.queues, [name("echo")]);
}

#[test]
fn a36_a_browser_does_not_hold_the_queue_open() {
    let mut rig = echo(&[]);
    assert!(rig.browse("echo").is_empty());
    rig.put("echo", "one");
    assert_eq!(rig.browse("echo").len(), 1);
    assert_eq!(rig.run_all(), ["one"]);
}

#[test]
fn a37_trigger_turned_off_during_a_task_lets_it_finish_and_starts_no_new_one() {
    let mut rig = echo(&[]);
    rig.put_all(vec![plain("echo", "1"), plain("echo", "2")])
        .unwrap();
    let task = rig.next_task();
    rig.trigger("echo", false);
    assert_eq!(
        rig.run_session(&task, |_, _| CallEnd::Ok).len(),
        0,
        "its next boundary is its first"
    );
    assert_eq!((rig.waiting(), rig.depth("echo")), (0, 2));
    assert_eq!(rig.reason("echo"), Some("trigger-off-by-operator"));
    rig.trigger("echo", true);
    assert_eq!(rig.run_all(), ["1", "2"]);
}

#[test]
fn a37_a_unit_begun_is_finished_whatever_the_operator_does() {
    let mut rig = Rig::new();
    rig.trigger_plugin("echo", &[], &[("echo", &[])]);
    rig.put_all(["1", "2", "3"].map(|body| plain("echo", body)).into())
        .unwrap();
    let task = rig.next_task();
    assert_eq!(rig.got(&task), "1");
    rig.trigger("echo", false);
    assert_eq!(rig.got(&task), "2", "in the unit that it began");
    rig.drive(task.commit()).unwrap();
    assert!(matches!(rig.get(&task), Got::Stop));
    rig.end(&task, CallEnd::Ok);
    assert_eq!(
        (rig.bodies("echo"), rig.waiting()),
        (vec!["3".to_owned()], 0)
    );
}

#[test]
fn a40_an_altered_process_is_used_by_the_next_start_and_the_record_names_the_digest() {
    let mut rig = Rig::new();
    let every: Pairs<'_> = &[("trigger", "every")];
    let queues: &[(&str, Pairs<'_>)] = &[("echo", every)];
    rig.plugin("echo", &[("environment-data", "old")], queues);
    rig.put_all(vec![plain("echo", "1"), plain("echo", "2")])
        .unwrap();
    let old = rig.next_task();
    let next = update(
        "echo",
        ready("echo", "2"),
        &[("environment-data", "new")],
        queues,
    );
    rig.update(next).unwrap();
    let spec = old.spec();
    assert_eq!(
        (
            spec.component.digest.as_str(),
            spec.trigger.environment_data.as_str()
        ),
        ("echo-1", "old")
    );
    // Told at its boundary: the old version takes no message any more.
    assert!(rig.run_session(&old, |_, _| CallEnd::Ok).is_empty());
    rig.advance(100);
    let new = rig.next_task();
    assert_eq!(new.spec().trigger.environment_data, "new");
    assert_eq!(new.spec().trigger.application_id, "echo.wasm@echo-2");
    assert_eq!(rig.run_session(&new, |_, _| CallEnd::Ok), ["1"]);
    rig.run_all();
    let digests: Vec<_> = rig.records().into_iter().map(|r| r.digest).collect();
    assert_eq!(digests, ["echo-2", "echo-2", "echo-1"]);
}

#[test]
fn a_plugin_replaced_during_a_task_is_run_from_the_next_start_on() {
    let mut rig = Rig::new();
    rig.trigger_plugin("echo", &[], &[("echo", &[])]);
    rig.put_all(["1", "2", "3"].map(|body| plain("echo", body)).into())
        .unwrap();
    let old = rig.next_task();
    assert_eq!(rig.got(&old), "1");
    rig.update(update("echo", ready("echo", "2"), &[], &[("echo", &[])]))
        .unwrap();
    assert_eq!(rig.got(&old), "2", "the unit that it began is finished");
    rig.drive(old.commit()).unwrap();
    assert!(matches!(rig.get(&old), Got::Stop), "and no other is begun");
    rig.end(&old, CallEnd::Ok);
    assert_eq!(rig.run_all(), ["3"]);
    let digests: Vec<_> = rig.records().into_iter().map(|r| r.digest).collect();
    assert_eq!(digests, ["echo-2", "echo-1"]);
}

#[test]
fn a_removed_plugin_takes_its_process_along_and_leaves_its_queues() {
    let mut rig = Rig::new();
    rig.trigger_plugin("echo", &[], &[("echo", &[])]);
    rig.put_all(vec![plain("echo", "1"), plain("echo", "2")])
        .unwrap();
    let task = rig.next_task();
    rig.got(&task);
    let gone = PluginUpdate {
        definitions: None,
        ..update("echo", PluginState::Removed, &[], &[])
    };
    rig.update(gone).unwrap();
    let handle = rig.handle.clone();
    let none = rig.ask(async move { handle.process(process_name("echo")).await });
    assert!(none.unwrap_err().message.ends_with("[unknown-process]"));
    rig.drive(task.commit()).unwrap();
    assert!(matches!(rig.get(&task), Got::Stop));
    rig.end(&task, CallEnd::Ok);
    assert_eq!(rig.bodies("echo"), ["2"]);
    assert_eq!((rig.waiting(), rig.reason("echo")), (0, Some("no-process")));
    let mut rig = rig.reopen(ManagerConfig::default(), Vec::new());
    assert_eq!(rig.reason("echo"), Some("no-process"));
    rig.plugin("echo", &[], &[("echo", &[])]);
    assert_eq!(rig.run_all(), ["2"]);
}

#[test]
fn pauses_hold_at_three_levels_and_each_is_resumed_alone() {
    let mut rig = echo(&[]);
    let handle = rig.handle.clone();
    for paused in [true, false] {
        let (one, two, three) = (handle.clone(), handle.clone(), handle.clone());
        rig.ask(async move { one.pause_host(paused).await })
            .unwrap();
        if paused {
            rig.put("echo", "one");
            rig.ask(async move { two.pause_queue(name("echo"), true).await })
                .unwrap();
            let process = process_name("echo");
            rig.ask(async move { three.pause_process(process, true).await })
                .unwrap();
            assert!(rig.explain("echo").sentence.contains("the host is paused"));
        }
    }
    assert!(rig.explain("echo").sentence.contains("the queue is paused"));
    let one = handle.clone();
    rig.ask(async move { one.pause_queue(name("echo"), false).await })
        .unwrap();
    assert!(
        rig.explain("echo")
            .sentence
            .contains("the process is paused")
    );
    assert_eq!((rig.waiting(), rig.reason("echo")), (0, Some("paused")));
    rig.ask(async move { handle.pause_process(process_name("echo"), false).await })
        .unwrap();
    assert_eq!(rig.run_all(), ["one"]);
}

#[test]
fn a58_a_get_that_waits_is_woken_by_a_stop() {
    let waits = || GetOptions {
        wait: Some(60_000),
        ..GetOptions::default()
    };
    for stop in ["pause", "drain", "message"] {
        let mut rig = Rig::new();
        rig.trigger_plugin("echo", &[], &[("echo", &[])]);
        rig.put("echo", "one");
        let task = rig.next_task();
        rig.got(&task);
        rig.drive(task.commit()).unwrap();
        let mut get = Box::pin(task.get(waits()));
        assert!(rig.poll(&mut get).is_none(), "it waits");
        match stop {
            "pause" => {
                let handle = rig.handle.clone();
                rig.ask(async move { handle.pause_queue(name("echo"), true).await })
                    .unwrap();
            }
            "drain" => {
                rig.manager.drain();
                rig.settle();
            }
            _ => drop(rig.put("echo", "two")),
        }
        let answer = rig.poll(&mut get).expect("woken").unwrap();
        match answer {
            Got::Stop => assert_ne!(stop, "message"),
            Got::Message(_) => assert_eq!(stop, "message"),
            Got::Empty => panic!("nothing was told"),
        }
        drop(get);
        rig.end(&task, CallEnd::Ok);
        rig.assert_ledger_empty();
    }
}

#[test]
fn a66_the_second_plugin_that_claims_a_queue_is_refused_with_both_files_named() {
    let mut rig = Rig::new();
    rig.plugin("one", &[], &[("orders", &[])]);
    let second = update("two", ready("two", "1"), &[], &[("orders", &[])]);
    let refused = rig.update(second).unwrap_err();
    for word in ["\"orders\"", "plugins/one.wasm", "plugins/two.wasm"] {
        assert!(refused.contains(word), "{refused}");
    }
    rig.put("orders", "1");
    let task = rig.next_task();
    assert_eq!(task.spec().component.digest, "one-1");
    rig.run_session(&task, |_, _| CallEnd::Ok);
    let handle = rig.handle.clone();
    let none = rig.ask(async move { handle.process(process_name("two")).await });
    assert!(none.is_err(), "nothing of the refused one is left");
}

#[test]
fn a_process_past_the_capacity_is_refused_with_the_numbers() {
    let mut rig = Rig::new();
    let big = update(
        "big",
        ready("big", "1"),
        &[("fuel", "2 T")],
        &[("big", &[])],
    );
    let refused = rig.update(big).unwrap_err();
    assert!(refused.contains("fuel 2 T wanted, 1 T free"), "{refused}");
    assert!(refused.ends_with("[over-capacity]"), "{refused}");
    assert!(
        rig.try_define("big", &[]).is_ok(),
        "and its queue was not made"
    );
}

#[test]
fn a_queue_is_deleted_only_when_it_is_empty_and_no_task_is_in_process() {
    let mut rig = echo(&[]);
    rig.put("echo", "one");
    let handle = rig.handle.clone();
    let delete = |force| {
        let handle = handle.clone();
        async move { handle.delete_queue(name("echo"), force).await }
    };
    let busy = rig.ask(delete(false)).unwrap_err();
    assert!(busy.message.ends_with("[queue-in-use]"), "{busy}");
    rig.trigger("echo", false);
    rig.run(|_| CallEnd::Ok);
    let full = rig.ask(delete(false)).unwrap_err();
    assert!(full.message.ends_with("[queue-not-empty]"), "{full}");
    assert_eq!(rig.depth("echo"), 1);
    rig.ask(delete(true)).unwrap();
    let gone = rig.put_all(vec![plain("echo", "two")]).unwrap_err();
    assert!(gone.message.ends_with("[unknown-queue]"), "{gone}");
    let own = handle.clone();
    let own = rig.ask(async move { own.delete_queue(name("oncue.dead-letter"), false).await });
    assert!(own.unwrap_err().message.ends_with("[reserved-name]"));
}
