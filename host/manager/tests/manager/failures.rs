//! What is kept of failed units: the message, the state as it was read, the undone puts; and
//! nothing of units that commit.

use std::sync::Arc;

use bytes::Bytes;
use oncue_core::message::MessageId;
use oncue_core::outcome::{CallEnd, Outcome};
use oncue_manager::handle::Failure;
use oncue_manager::tasks::failures::{KeptState, MAX_BODY_BYTES};
use oncue_manager::tasks::port::PutOptions;
use oncue_manager::tasks::{TaskId, TaskSession};
use oncue_manager::{ApiError, ManagerConfig};

use crate::rig::Rig;
use crate::values::{Pairs, plain, trapped};

fn rig(process: Pairs<'_>) -> Rig {
    let mut rig = Rig::new();
    rig.define("out", &[]);
    rig.plugin("pipe", process, &[("in", &[("backout-threshold", "2")])]);
    rig
}

const PROCESS: Pairs<'_> = &[("grants.put", "out"), ("config", "region=eu")];

fn set(task: &TaskSession, key: &str, value: &str) {
    let value = Bytes::copy_from_slice(value.as_bytes());
    task.state_set("default", key, value).expect("a write");
}

fn get(task: &TaskSession, key: &str) -> Option<Bytes> {
    task.state_get("default", key).expect("a read")
}

fn failed(rig: &mut Rig, task: TaskId, message: Option<MessageId>) -> Result<Failure, ApiError> {
    let handle = rig.handle.clone();
    rig.ask(async move { handle.failed_unit(task, message).await })
}

/// The state that a unit read, as texts.
fn state(state: &[KeptState]) -> Vec<(&str, Option<&str>)> {
    let text = |bytes| std::str::from_utf8(bytes).expect("text");
    let kept = state.iter();
    kept.map(|kept| {
        let value = kept.value.as_ref().map(|value| text(&value.bytes));
        (kept.key.as_str(), value)
    })
    .collect()
}

#[test]
fn a_failed_unit_is_kept_as_it_was_and_a_committed_one_is_not() {
    let mut rig = rig(PROCESS);
    rig.put("in", "first");
    let task = rig.next_task();
    let first = task.spec().id;
    rig.run_session(&task, |task, _| {
        set(task, "total", "5");
        task.put(plain("out", "kept")).expect("a put");
        CallEnd::Ok
    });
    let error = failed(&mut rig, first, None).expect_err("it committed");
    assert!(error.message.contains("ended committed"), "{error}");
    assert!(error.message.ends_with("[no-case]"), "{error}");

    let id = rig.put("in", "second");
    let task = rig.next_task();
    let second = task.spec().id;
    rig.run_session(&task, |task, _| {
        assert_eq!(get(task, "total").as_deref(), Some(&b"5"[..]));
        set(task, "total", "6");
        assert_eq!(get(task, "total").as_deref(), Some(&b"6"[..]));
        set(task, "own", "1");
        assert!(get(task, "own").is_some() && get(task, "none").is_none());
        task.put(plain("out", "undone")).expect("a put");
        trapped()
    });
    let Failure { unit, others } = failed(&mut rig, second, None).expect("it is kept");
    assert_eq!(unit.outcome, Outcome::Trapped);
    assert_eq!(unit.messages.len(), 1);
    assert_eq!(unit.messages[0].header.id.to_string(), id);
    assert_eq!(unit.messages[0].body.bytes, "second");
    assert_eq!(state(&unit.state), [("none", None), ("total", Some("5"))]);
    assert_eq!(unit.puts.len(), 1);
    assert_eq!(unit.puts[0].body.bytes, "undone");
    assert_eq!(unit.attributes.config["region"], "eu");
    assert!(others.is_empty() && !unit.listed_keys);
    assert_eq!(rig.bodies("out"), ["kept"]);
}

#[test]
fn each_failed_call_of_a_batch_is_kept_with_what_it_saw() {
    let mut rig = rig(&[("batch", "10"), ("grants.put", "out")]);
    let puts = ["one", "two", "three"].map(|body| plain("in", body));
    let ids = rig.put_all(puts.to_vec()).expect("puts");
    let task = rig.next_task();
    let id = task.spec().id;
    rig.run_session(&task, |task, body| {
        let before = get(task, "last");
        set(task, "last", body);
        task.put(plain("out", body)).expect("a put");
        assert_eq!(before.is_some(), body != "one");
        if body == "one" {
            CallEnd::Ok
        } else {
            crate::values::retry()
        }
    });
    let failure = failed(&mut rig, id, None).expect("the last");
    let message = |text: &str| text.parse::<MessageId>().expect("an id");
    assert_eq!(failure.others, [message(&ids[1])]);
    assert_eq!(failure.unit.messages[0].body.bytes, "three");
    let failure = failed(&mut rig, id, Some(message(&ids[1]))).expect("the one before");
    assert_eq!(failure.unit.messages[0].body.bytes, "two");
    assert_eq!(failure.unit.detail, "not now");
    // What the first call of the unit wrote is what these found; what they wrote is undone.
    assert_eq!(state(&failure.unit.state), [("last", Some("one"))]);
    assert_eq!(failure.unit.puts.len(), 1);
    let error = failed(&mut rig, id, Some(message(&ids[0]))).expect_err("it did not fail");
    assert!(error.message.contains(&ids[2]), "{error}");
}

#[test]
fn a_long_body_is_found_where_the_failure_moved_it() {
    let mut rig = rig(&[]);
    let body = "x".repeat(MAX_BODY_BYTES + 1);
    rig.put("in", &body);
    rig.run(|_| trapped());
    rig.advance(400_000);
    let task = rig.next_task();
    let id = task.spec().id;
    rig.run_session(&task, |_, _| trapped());
    assert_eq!(rig.bodies("oncue.dead-letter").len(), 1);
    let Failure { unit, .. } = failed(&mut rig, id, None).expect("it is kept");
    assert_eq!(unit.messages[0].body.bytes, body);
    assert_eq!(unit.messages[0].attempts.backout_count, 1);

    let handle = rig.handle.clone();
    rig.ask(async move {
        handle
            .clear(&crate::values::name("oncue.dead-letter"))
            .await
    })
    .expect("cleared");
    let Failure { unit, .. } = failed(&mut rig, id, None).expect("it is kept");
    let cut = &unit.messages[0].body;
    assert!(!cut.is_whole());
    assert_eq!(
        (cut.bytes.len(), cut.size),
        (MAX_BODY_BYTES, body.len() as u64)
    );
}

#[test]
fn a_unit_in_trigger_style_is_kept_whole() {
    let mut rig = Rig::new();
    rig.define("out", &[]);
    rig.trigger_plugin("pipe", &[("grants.put", "out")], &[("in", &[])]);
    rig.put("in", "one");
    rig.put("in", "two");
    let task = rig.next_task();
    assert_eq!(rig.got(&task), "one");
    task.put(plain("out", "1")).expect("a put");
    assert_eq!(rig.got(&task), "two");
    rig.drive(task.backout());
    let id = task.spec().id;
    rig.end(&task, CallEnd::Ok);
    let Failure { unit, .. } = failed(&mut rig, id, None).expect("it is kept");
    assert_eq!(unit.outcome, Outcome::BackedOut);
    let bodies: Vec<_> = unit.messages.iter().map(|m| m.body.bytes.clone()).collect();
    assert_eq!(bodies, ["one", "two"]);
    assert_eq!(unit.puts.len(), 1);
}

#[test]
fn what_is_not_kept_is_said() {
    let mut rig = rig(&[]);
    let check = |rig: &mut Rig, task: TaskId, part: &str| {
        let error = failed(rig, task, None).expect_err("nothing is kept");
        assert!(error.message.contains(part), "{error}");
    };
    check(&mut rig, TaskId(4711), "[unknown-task]");
    rig.put("in", "slow");
    let task = rig.next_task();
    check(&mut rig, task.spec().id, "still runs");
    rig.run_session(&task, |_, _| {
        CallEnd::HostFailed("no instance was free".to_owned())
    });
    check(&mut rig, task.spec().id, "by no fault of its handler");
    let id = retried(&mut rig);
    let mut rig = rig.reopen(ManagerConfig::default(), Vec::new());
    check(&mut rig, id, "was restarted");
}

/// A task that fails on the message that waits, once it may be taken.
fn retried(rig: &mut Rig) -> TaskId {
    rig.advance(400_000);
    let task = rig.next_task();
    rig.run_session(&task, |_, _| trapped());
    let id = task.spec().id;
    drop::<Arc<TaskSession>>(task);
    id
}

#[test]
fn a_message_keeps_its_fields() {
    let mut rig = rig(&[]);
    let options = PutOptions {
        correlation_id: Some("c-1".to_owned()),
        properties: vec![("region".to_owned(), "eu".to_owned())],
        ..PutOptions::default()
    };
    rig.put_with("in", "hello", options);
    let task = rig.next_task();
    let id = task.spec().id;
    rig.run_session(&task, |_, _| trapped());
    let Failure { unit, .. } = failed(&mut rig, id, None).expect("it is kept");
    let header = &unit.messages[0].header;
    assert_eq!(header.correlation_id.as_deref(), Some("c-1"));
    assert_eq!(header.properties.len(), 1);
}
