//! First, every and depth: when they fire, and what re-arms them.

use std::sync::Arc;

use oncue_core::outcome::CallEnd;
use oncue_manager::handle::GetRequest;
use oncue_manager::tasks::TaskCost;
use oncue_manager::tasks::port::{GetOptions, Got};

use crate::rig::Rig;
use crate::values::{Pairs, name, plain, retry, trapped};

/// An outside get of the next message that waits a minute.
pub(crate) fn outside_get(queue: &str) -> GetRequest {
    GetRequest {
        queue: name(queue),
        wait: 60_000,
        max: 1,
        lease: 30_000,
        id: None,
        correlation_id: None,
    }
}

fn echo(attributes: Pairs<'_>) -> Rig {
    let mut rig = Rig::new();
    rig.plugin("echo", &[], &[("echo", attributes)]);
    rig
}

#[test]
fn a1_first_starts_exactly_one_task_for_one_message() {
    let mut rig = echo(&[]);
    assert_eq!(rig.waiting(), 0);
    rig.put("echo", "one");
    assert_eq!(rig.waiting(), 1);
    assert_eq!(rig.run(|_| CallEnd::Ok), ["one"]);
    assert_eq!(rig.waiting(), 0);
    assert_eq!(rig.depth("echo"), 0);
    assert_eq!(rig.reason("echo"), Some("empty"));
    rig.assert_ledger_empty();
}

#[test]
fn a2_first_starts_no_second_task_while_one_runs_and_all_are_handled() {
    let mut rig = echo(&[]);
    rig.put("echo", "0");
    for n in 1..=1000 {
        rig.put("echo", &n.to_string());
        assert_eq!(rig.waiting(), 1);
    }
    assert_eq!(rig.run_all().len(), 1001);
    assert_eq!(rig.depth("echo"), 0);
}

#[test]
fn a3_a_message_after_the_task_was_told_empty_starts_a_new_task() {
    let mut rig = Rig::new();
    rig.trigger_plugin("echo", &[], &[("echo", &[])]);
    rig.put("echo", "one");
    let task = rig.next_task();
    assert_eq!(rig.got(&task), "one");
    rig.drive(task.commit()).unwrap();
    let told = rig.get(&task);
    assert!(matches!(told, oncue_manager::tasks::port::Got::Empty));
    rig.put("echo", "two");
    assert_eq!(
        rig.waiting(),
        0,
        "max-tasks is 1 and the task has not ended"
    );
    rig.end(&task, CallEnd::Ok);
    assert_eq!(rig.waiting(), 1);
    assert_eq!(rig.run_all(), ["two"]);
}

#[test]
fn a4_messages_left_after_progress_start_a_new_task_at_once() {
    let mut rig = Rig::new();
    rig.trigger_plugin("echo", &[], &[("echo", &[])]);
    let puts = (0..4).map(|n| plain("echo", &n.to_string())).collect();
    rig.put_all(puts).unwrap();
    let task = rig.next_task();
    rig.got(&task);
    rig.end(&task, CallEnd::Ok);
    assert_eq!(rig.waiting(), 1, "three are left and no time has passed");
    assert_eq!(rig.run_all(), ["1", "2", "3"]);
}

#[test]
fn a4_messages_left_without_progress_start_a_new_task_after_the_back_off() {
    let mut rig = Rig::new();
    rig.trigger_plugin("echo", &[], &[("echo", &[])]);
    rig.put("echo", "one");
    for wait in [100, 200, 400, 800] {
        let idle = rig.next_task();
        rig.end(&idle, CallEnd::Ok);
        assert_eq!(rig.reason("echo"), Some("backing-off"));
        rig.advance(wait - 1);
        assert_eq!(rig.waiting(), 0, "{wait} ms are not over");
        rig.advance(1);
        assert_eq!(rig.waiting(), 1, "{wait} ms are over");
    }
    assert_eq!(rig.run_all(), ["one"]);
    // Progress forgets the failures: the next idle task waits for the first delay again.
    rig.put("echo", "two");
    let idle = rig.next_task();
    rig.end(&idle, CallEnd::Ok);
    rig.advance(100);
    assert_eq!(rig.waiting(), 1);
    rig.run_all();
}

#[test]
fn a5_a_task_that_traps_before_its_first_get_is_owed_and_retried_with_growing_delay() {
    let mut rig = Rig::new();
    rig.trigger_plugin("echo", &[], &[("echo", &[])]);
    rig.put("echo", "one");
    let mut waits = Vec::new();
    for failures in 1..=5 {
        let task = rig.next_task();
        rig.end(&task, trapped());
        let explained = rig.explain("echo");
        assert_eq!(explained.reason, Some("backing-off"));
        let said = match failures {
            1 => "after a task without progress".to_owned(),
            _ => format!("after {failures} tasks without progress"),
        };
        assert!(explained.sentence.contains(&said), "{}", explained.sentence);
        let next = explained.next_check.expect("it is looked at again");
        waits.push(next.since(explained.now));
        rig.advance(next.since(explained.now));
        assert_eq!(rig.waiting(), 1, "owed after {failures} failures");
    }
    assert_eq!(waits, [100, 200, 400, 800, 1600]);
    assert_eq!(rig.run_all(), ["one"]);
    rig.assert_ledger_empty();
}

#[test]
fn a6_a_message_from_before_the_trigger_was_turned_on_starts_at_once() {
    let mut rig = echo(&[("trigger-control", "off")]);
    rig.put("echo", "one");
    assert_eq!(rig.reason("echo"), Some("trigger-off-by-operator"));
    rig.trigger("echo", true);
    assert_eq!(rig.run_all(), ["one"]);
}

#[test]
fn a7_a_new_put_starts_a_task_for_what_was_left_over() {
    let mut rig = echo(&[]);
    rig.put("echo", "yesterday");
    let lost = rig.next_task();
    lost.finish(TaskCost::default());
    rig.settle();
    // The back-off is over, and nobody has taken a turn since.
    rig.clock.advance(100);
    rig.put("echo", "today");
    assert_eq!(rig.run_all(), ["yesterday", "today"]);
}

#[test]
fn a8_every_starts_one_task_for_each_message() {
    let mut rig = echo(&[("trigger", "every"), ("max-tasks", "10")]);
    let puts = (0..3).map(|n| plain("echo", &n.to_string())).collect();
    rig.put_all(puts).unwrap();
    assert_eq!(rig.waiting(), 3);
    for n in 0..3 {
        assert_eq!(rig.run(|_| CallEnd::Ok), [n.to_string()]);
    }
    assert_eq!((rig.waiting(), rig.depth("echo")), (0, 0));
    rig.assert_ledger_empty();
}

#[test]
fn a10_every_starts_while_a_consumer_has_the_queue_open() {
    let mut rig = echo(&[("trigger", "every")]);
    let handle = rig.handle.clone();
    let mut get = Box::pin(handle.get(outside_get("echo")));
    assert!(rig.poll(&mut get).is_none());
    rig.put("echo", "one");
    assert_eq!(rig.queue("echo").waiting_inputs, 1);
    assert_eq!(rig.waiting(), 1);
}

#[test]
fn a10_first_leaves_the_queue_to_a_consumer_until_it_is_gone() {
    let mut rig = echo(&[]);
    let handle = rig.handle.clone();
    let mut get = Box::pin(handle.get(outside_get("echo")));
    assert!(rig.poll(&mut get).is_none());
    rig.put("echo", "one");
    assert_eq!(
        (rig.waiting(), rig.reason("echo")),
        (0, Some("consumer-open"))
    );
    // The connection drops: the linger of 2 s, then the start, with no put.
    drop(get);
    rig.settle();
    assert_eq!(
        (rig.waiting(), rig.reason("echo")),
        (0, Some("consumer-open"))
    );
    rig.advance(1_999);
    assert_eq!(rig.waiting(), 0);
    rig.advance(1);
    assert_eq!(rig.run_all(), ["one"]);
}

#[test]
fn a11_every_keeps_to_max_tasks_under_a_burst_and_shows_what_is_owed() {
    let mut rig = echo(&[("trigger", "every"), ("max-tasks", "4")]);
    for chunk in 0..10 {
        let body = |n: u32| plain("echo", &(chunk * 1000 + n).to_string());
        rig.put_all((0..1000).map(body).collect()).unwrap();
        assert_eq!(rig.waiting(), 4);
    }
    let queue = rig.queue("echo");
    assert_eq!((queue.running, queue.owed), (4, 9_996));
    assert_eq!(queue.reason, Some("at-max-tasks"));
    let mut handled = Vec::new();
    while rig.waiting() > 0 {
        assert!(rig.waiting() <= 4 && rig.queue("echo").running <= 4);
        handled.extend(rig.run(|_| CallEnd::Ok));
    }
    handled.sort_by_key(|body| body.parse::<u32>().unwrap());
    let all: Vec<_> = (0..10_000).map(|n| n.to_string()).collect();
    assert_eq!(handled, all);
    assert_eq!(rig.queue("echo").owed, 0);
}

const DEPTH: Pairs<'_> = &[("trigger", "depth"), ("trigger-depth", "3")];

#[test]
fn a12_depth_fires_at_the_hundredth_and_turns_itself_off() {
    let mut rig = echo(&[
        ("trigger", "depth"),
        ("trigger-depth", "100"),
        ("rearm", "manual"),
    ]);
    for n in 1..100 {
        rig.put("echo", &n.to_string());
    }
    assert_eq!(rig.waiting(), 0);
    assert_eq!(rig.reason("echo"), Some("waiting-for-depth"));
    rig.put("echo", "100");
    assert_eq!(rig.waiting(), 1);
    assert_eq!(rig.queue("echo").control, "off by depth");
    rig.put("echo", "101");
    assert_eq!(rig.waiting(), 1);
    assert_eq!(rig.run_all().len(), 101);
    assert_eq!(rig.reason("echo"), Some("trigger-off-by-depth"));
}

#[test]
fn a13_a_failed_depth_task_is_owed_until_one_makes_progress() {
    let mut rig = echo(DEPTH);
    for n in 0..3 {
        rig.put("echo", &n.to_string());
    }
    let lost = rig.next_task();
    drop(lost);
    rig.settle();
    let queue = rig.queue("echo");
    assert_eq!((queue.control, queue.start_owed), ("off by depth", true));
    assert_eq!(rig.waiting(), 0);
    rig.advance(100);
    assert_eq!(rig.waiting(), 1, "owed, and backed off");
    // Progress of any kind re-arms: all three fail, which charges them and takes them out.
    rig.run(|_| retry());
    let queue = rig.queue("echo");
    assert_eq!((queue.control, queue.start_owed), ("on", false));
    assert_eq!(rig.reason("echo"), Some("retry-delay"));
    rig.advance(1_200);
    assert_eq!(
        rig.run_all().len(),
        3,
        "and fires again when all three count"
    );
}

#[test]
fn a13_an_owed_start_lapses_when_the_queue_is_emptied() {
    let mut rig = echo(DEPTH);
    for n in 0..3 {
        rig.put("echo", &n.to_string());
    }
    drop(rig.next_task());
    rig.settle();
    assert!(rig.queue("echo").start_owed);
    let handle = rig.handle.clone();
    rig.ask(async move { handle.clear(&name("echo")).await })
        .unwrap();
    let queue = rig.queue("echo");
    assert_eq!((queue.control, queue.start_owed), ("on", false));
    rig.advance(60_000);
    assert_eq!(rig.waiting(), 0);
}

#[test]
fn a14_a_put_that_is_rolled_back_fires_no_depth_trigger() {
    let mut rig = echo(DEPTH);
    rig.trigger_plugin("feed", &[("grants.put", "echo")], &[("feed", &[])]);
    rig.put("echo", "1");
    rig.put("echo", "2");
    rig.put("feed", "go");
    let task = rig.next_task();
    rig.got(&task);
    task.put(plain("echo", "3")).unwrap();
    rig.settle();
    rig.end(&task, trapped());
    assert_eq!(rig.waiting(), 0);
    assert_eq!(rig.queue("echo").control, "on");
    assert_eq!(rig.bodies("echo"), ["1", "2"]);
}

#[test]
fn a15_depth_with_more_than_enough_starts_once_when_control_is_turned_on() {
    let mut rig = echo(&[
        ("trigger", "depth"),
        ("trigger-depth", "100"),
        ("trigger-control", "off"),
        ("rearm", "manual"),
    ]);
    for n in 0..150 {
        rig.put("echo", &n.to_string());
    }
    rig.trigger("echo", true);
    assert_eq!(rig.waiting(), 1);
    assert_eq!(rig.queue("echo").control, "off by depth");
    assert_eq!(rig.run(|_| CallEnd::Ok).len(), 150);
    assert_eq!(rig.waiting(), 0);
}

#[test]
fn depth_fires_early_when_the_oldest_message_is_older_than_max_wait() {
    let mut rig = echo(&[
        ("trigger", "depth"),
        ("trigger-depth", "100"),
        ("trigger-max-wait", "5s"),
    ]);
    rig.put("echo", "old");
    rig.advance(4_000);
    rig.put("echo", "young");
    rig.advance(1_000);
    assert_eq!(rig.waiting(), 0, "5 s old is not older than 5 s");
    rig.advance(1);
    assert_eq!(rig.run_all(), ["old", "young"]);
}

#[test]
fn a_start_is_under_way_until_the_first_get_is_answered() {
    let mut rig = Rig::new();
    let every: Pairs<'_> = &[("trigger", "every"), ("max-tasks", "2")];
    rig.trigger_plugin("echo", &[], &[("echo", every)]);
    rig.put("echo", "one");
    let first = rig.next_task();
    rig.put("echo", "two");
    let second = rig.next_task();
    assert_eq!(rig.queue("echo").reason, Some("already-in-process"));
    assert_eq!(rig.got(&first), "one");
    // One counts and one start is under way; the second get ends that.
    assert_eq!(rig.queue("echo").owed, 0);
    assert_eq!(rig.got(&second), "two");
    let get = second.get(GetOptions::default());
    assert!(matches!(
        rig.drive(get),
        Ok(oncue_manager::tasks::port::Got::Empty)
    ));
    for task in [Arc::clone(&first), second] {
        rig.end(&task, CallEnd::Ok);
    }
    assert_eq!((rig.waiting(), rig.depth("echo")), (0, 0));
}

/// Two tasks drain a queue; the slower one finds it empty. That is no idle handler: nothing is
/// paced for it.
#[test]
fn a4_a_task_that_others_left_nothing_to_does_not_back_its_queue_off() {
    let mut rig = Rig::new();
    rig.trigger_plugin("echo", &[], &[("echo", &[("max-tasks", "2")])]);
    rig.put("echo", "a");
    rig.put("echo", "b");
    let quick = rig.next_task();
    assert_eq!(rig.got(&quick), "a");
    let slow = rig.next_task();
    assert_eq!(rig.got(&quick), "b");
    assert!(matches!(rig.get(&slow), Got::Empty));
    rig.end(&quick, CallEnd::Ok);
    rig.end(&slow, CallEnd::Ok);
    assert_eq!(rig.reason("echo"), Some("empty"));
    rig.put("echo", "c");
    let quick = rig.next_task();
    rig.put("echo", "d");
    assert_eq!(rig.got(&quick), "c");
    let slow = rig.next_task();
    assert_eq!(rig.got(&quick), "d");
    assert!(matches!(rig.get(&slow), Got::Empty));
    rig.end(&quick, CallEnd::Ok);
    // One more comes before the slow one has ended: the others got something done meanwhile.
    rig.put("echo", "e");
    let third = rig.next_task();
    rig.end(&slow, CallEnd::Ok);
    assert_eq!(rig.reason("echo"), Some("already-in-process"));
    assert_eq!(rig.got(&third), "e");
    rig.end(&third, CallEnd::Ok);
    rig.assert_ledger_empty();
}
