//! Which messages count: priority, expiry, delay, units that are open, and what a person decided.

use oncue_core::outcome::{CallEnd, Failure};
use oncue_manager::tasks::port::PutOptions;

use crate::rig::Rig;
use crate::values::{Pairs, plain, trapped};

fn echo(attributes: Pairs<'_>) -> Rig {
    let mut rig = Rig::new();
    rig.plugin("echo", &[], &[("echo", attributes)]);
    rig
}

fn priority(priority: u8) -> PutOptions {
    PutOptions {
        priority: Some(priority),
        ..PutOptions::default()
    }
}

#[test]
fn a17_one_message_of_the_trigger_priority_starts_a_task_that_takes_all() {
    let mut rig = echo(&[("trigger-priority", "5")]);
    for n in 0..10 {
        rig.put_with("echo", &n.to_string(), priority(3));
    }
    assert_eq!(rig.waiting(), 0);
    rig.put_with("echo", "urgent", priority(5));
    assert_eq!(rig.waiting(), 1);
    let handled = rig.run_all();
    assert_eq!((handled.len(), handled[0].as_str()), (11, "urgent"));
}

#[test]
fn a18_a_put_below_the_trigger_priority_starts_when_the_threshold_falls() {
    let mut rig = echo(&[("trigger-priority", "5")]);
    rig.put_with("echo", "one", priority(4));
    assert_eq!(rig.reason("echo"), Some("below-trigger-priority"));
    assert_eq!(rig.waiting(), 0);
    rig.define("echo", &[("trigger-priority", "0")]);
    assert_eq!(rig.run_all(), ["one"]);
}

#[test]
fn a19_expired_messages_do_not_count_for_depth() {
    let mut rig = echo(&[("trigger", "depth"), ("trigger-depth", "5")]);
    let expiry = PutOptions {
        expiry: Some(1_000),
        ..PutOptions::default()
    };
    for n in 0..4 {
        rig.put_with("echo", &n.to_string(), expiry.clone());
    }
    // Nobody takes a turn between the expiry and the put.
    rig.clock.advance(1_000);
    rig.put("echo", "fresh");
    assert_eq!(rig.waiting(), 0);
    assert_eq!(rig.depth("echo"), 1);
    for n in 0..4 {
        rig.put("echo", &n.to_string());
    }
    assert_eq!(rig.waiting(), 1);
}

#[test]
fn a19_a_delayed_message_does_not_count_until_it_is_due() {
    let mut rig = echo(&[]);
    let delay = PutOptions {
        delay: Some(5_000),
        ..PutOptions::default()
    };
    rig.put_with("echo", "later", delay);
    assert_eq!(rig.reason("echo"), Some("delayed"));
    rig.advance(4_999);
    assert_eq!(rig.waiting(), 0);
    rig.advance(1);
    assert_eq!(rig.run_all(), ["later"]);
}

#[test]
fn a20_type_none_never_starts_and_explain_says_so() {
    let mut rig = echo(&[("trigger", "none"), ("trigger-control", "on")]);
    rig.put("echo", "one");
    rig.advance(10_000);
    assert_eq!(rig.waiting(), 0);
    let explained = rig.explain("echo");
    assert_eq!(explained.reason, Some("trigger-type-none"));
    assert!(
        explained.sentence.contains("type is none"),
        "{}",
        explained.sentence
    );
}

/// A put in an open unit of work, and the unit's end.
fn put_in_a_unit(end: CallEnd) -> Rig {
    let mut rig = echo(&[]);
    rig.trigger_plugin("feed", &[("grants.put", "echo")], &[("feed", &[])]);
    rig.put("feed", "go");
    let task = rig.next_task();
    rig.got(&task);
    task.put(plain("echo", "inside")).unwrap();
    rig.advance(5_000);
    assert_eq!(
        (rig.waiting(), rig.depth("echo")),
        (0, 0),
        "the unit is open"
    );
    rig.end(&task, end);
    rig
}

#[test]
fn a23_a_put_in_an_open_unit_starts_nothing_before_the_commit() {
    let mut rig = put_in_a_unit(CallEnd::Ok);
    assert_eq!((rig.waiting(), rig.depth("echo")), (1, 1));
    assert_eq!(rig.run_all(), ["inside"]);
}

#[test]
fn a24_a_put_that_is_rolled_back_starts_nothing() {
    let mut rig = put_in_a_unit(trapped());
    assert_eq!((rig.waiting(), rig.depth("echo")), (0, 0));
}

#[test]
fn a_deferred_message_waits_uncharged_and_its_queue_goes_on() {
    let mut rig = echo(&[]);
    rig.put("echo", "later");
    rig.put("echo", "now");
    let handled = rig.run(|body| match body {
        "later" => CallEnd::Failed(Failure::Defer(9_000)),
        _ => CallEnd::Ok,
    });
    assert_eq!(handled, ["later", "now"]);
    assert_eq!(rig.reason("echo"), Some("delayed"));
    assert_eq!(rig.attempts("echo"), (0, 0));
    rig.advance(8_999);
    assert_eq!(rig.waiting(), 0);
    rig.advance(1);
    assert_eq!(rig.run_all(), ["later"]);
}
