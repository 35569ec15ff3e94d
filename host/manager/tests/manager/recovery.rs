//! Restarts: what is durable, what is owed, and messages that were in hand at an unclean end.

use oncue_core::outcome::CallEnd;
use oncue_manager::ManagerConfig;

use crate::gated::{Run, gated, kill, plainly, start_again};
use crate::rig::Rig;
use crate::values::{Pairs, plain, trapped};

fn serve(rig: &mut Rig, attributes: Pairs<'_>) {
    rig.plugin("echo", &[], &[("echo", attributes)]);
}

#[test]
fn a7_yesterdays_message_starts_a_task_after_a_restart() {
    let mut rig = Rig::new();
    rig.define("echo", &[("process", "echo")]);
    rig.put("echo", "yesterday");
    assert_eq!(rig.reason("echo"), Some("no-process"));
    let mut rig = rig.reopen(ManagerConfig::default(), Vec::new());
    serve(&mut rig, &[]);
    assert_eq!(rig.run_all(), ["yesterday"]);
}

#[test]
fn a9_every_start_that_was_owed_is_owed_after_a_kill() {
    let mut rig = Rig::new();
    let every: Pairs<'_> = &[("trigger", "every"), ("max-tasks", "3")];
    serve(&mut rig, every);
    let puts = (0..50).map(|n| plain("echo", &n.to_string())).collect();
    rig.put_all(puts).unwrap();
    assert_eq!((rig.waiting(), rig.queue("echo").owed), (3, 47));
    let hands = vec![rig.next_task()];
    let mut rig = rig.reopen(ManagerConfig::default(), hands);
    serve(&mut rig, every);
    let mut handled = rig.run_all();
    handled.sort_by_key(|body| body.parse::<u32>().unwrap());
    let all: Vec<_> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(handled, all);
    rig.assert_ledger_empty();
}

/// A volatile store is no place for an in-hand file; the store of these tests plays a durable one.
fn config(directory: &tempfile::TempDir) -> ManagerConfig {
    ManagerConfig {
        in_hand: Some(directory.path().join("in-hand")),
        ..ManagerConfig::default()
    }
}

#[test]
fn a30_a_message_in_hand_at_a_kill_is_back_once_and_shown_as_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let process: Pairs<'_> = &[("grants.put", "out")];
    let queues: &[(&str, Pairs<'_>)] = &[("echo", &[("backout-threshold", "2")])];
    let mut rig = Rig::with(config(&directory));
    rig.define("out", &[]);
    rig.trigger_plugin("echo", process, queues);
    rig.put("echo", "one");
    for (kills, charged) in [(1, 0), (2, 1)] {
        let task = rig.next_task();
        assert_eq!(rig.got(&task), "one");
        task.put(plain("out", "half done")).unwrap();
        rig = rig.reopen(config(&directory), vec![task]);
        assert_eq!(rig.depth("out"), 0);
        let (backout, interrupted) = rig.attempts("echo");
        assert_eq!((backout, interrupted), (charged, kills));
        rig.trigger_plugin("echo", process, queues);
        // The charged one waits its retry delay, the other one does not.
        rig.advance(2_000);
        assert_eq!(rig.waiting(), 1, "its start follows");
    }
    // The third kill with it as the only suspect in hand is its second charge: the threshold.
    let task = rig.next_task();
    assert_eq!(rig.got(&task), "one");
    let mut rig = rig.reopen(config(&directory), vec![task]);
    assert_eq!((rig.depth("echo"), rig.depth("oncue.dead-letter")), (0, 1));
}

#[test]
fn a30_among_several_in_hand_only_the_one_suspect_is_charged_and_the_others_become_suspects() {
    let directory = tempfile::tempdir().unwrap();
    let queues: &[(&str, Pairs<'_>)] = &[("echo", &[("max-tasks", "2"), ("trigger", "every")])];
    let mut rig = Rig::with(config(&directory));
    rig.trigger_plugin("echo", &[], queues);
    rig.put("echo", "a");
    let first = rig.next_task();
    rig.got(&first);
    let mut rig = rig.reopen(config(&directory), vec![first]);
    rig.put("echo", "b");
    rig.trigger_plugin("echo", &[], queues);
    let tasks = [rig.next_task(), rig.next_task()];
    assert_eq!(
        (rig.got(&tasks[0]), rig.got(&tasks[1])),
        ("a".to_owned(), "b".to_owned())
    );
    let mut rig = rig.reopen(config(&directory), tasks.into());
    let counts: Vec<_> = rig
        .browse("echo")
        .iter()
        .map(|one| one.message.attempts)
        .map(|attempts| (attempts.backout_count, attempts.interrupted_count))
        .collect();
    // Ready ones first: `b` is ready, `a` waits its retry delay.
    assert_eq!(counts, [(0, 1), (1, 2)]);
    // Both are suspects now: one at a time, with a message that is none beside it.
    rig.put("echo", "c");
    rig.trigger_plugin("echo", &[], queues);
    rig.advance(2_000);
    let tasks = [rig.next_task(), rig.next_task()];
    assert_eq!(
        (rig.got(&tasks[0]), rig.got(&tasks[1])),
        ("a".to_owned(), "c".to_owned())
    );
    for task in &tasks {
        rig.end(task, CallEnd::Ok);
    }
    assert_eq!(rig.bodies("echo"), ["b"]);
}

#[test]
fn a30_with_several_units_pending_at_a_kill_each_message_is_back_once_as_a_suspect() {
    let directory = tempfile::tempdir().unwrap();
    // The first start keeps an in-hand file, too.
    let (rig, _) = gated(&[], &[], &[]);
    let (mut rig, store) = start_again(rig, &directory);
    rig.put_all(["a", "b", "c"].map(|body| plain("in", body)).into())
        .unwrap();
    store.stall();
    let mut run = Run::of(&mut rig, plainly);
    run.go(&mut rig);
    assert_eq!((run.calls().len(), store.stalled()), (3, 3));
    store.resume_one();
    let (mut rig, store) = kill(rig, run, &directory);
    // The first had become durable: it is gone, and the others come back, once.
    assert_eq!(rig.bodies("out"), ["a"]);
    assert_eq!(rig.bodies("in"), ["b", "c"]);
    for browsed in rig.browse("in") {
        let attempts = browsed.message.attempts;
        assert_eq!((attempts.backout_count, attempts.interrupted_count), (0, 1));
    }
    // Suspects are awaited one by one, so that a second kill finds one in hand.
    rig.put("in", "d");
    store.stall();
    let mut run = Run::of(&mut rig, plainly);
    run.go(&mut rig);
    assert_eq!((run.calls(), store.stalled()), (vec!["b".to_owned()], 1));
    let (mut rig, _) = kill(rig, run, &directory);
    let counts: Vec<_> = rig
        .browse("in")
        .iter()
        .map(|one| one.message.attempts)
        .map(|attempts| (attempts.backout_count, attempts.interrupted_count))
        .collect();
    assert_eq!(
        counts.iter().filter(|count| count.0 == 1).count(),
        1,
        "{counts:?}"
    );
    rig.advance(10_000);
    rig.run_all();
    assert_eq!(rig.depth("in"), 0);
    assert_eq!(rig.bodies("out").len(), 1, "run_all puts nothing");
}

#[test]
fn what_was_settled_before_the_kill_is_no_suspect() {
    let directory = tempfile::tempdir().unwrap();
    let mut rig = Rig::with(config(&directory));
    rig.trigger_plugin("echo", &[], &[("echo", &[])]);
    rig.put("echo", "one");
    rig.put("echo", "two");
    let task = rig.next_task();
    rig.got(&task);
    rig.drive(task.commit()).unwrap();
    let rig = rig.reopen(config(&directory), vec![task]);
    assert_eq!(
        (rig.bodies("echo"), rig.attempts("echo")),
        (vec!["two".to_owned()], (0, 0))
    );
}

#[test]
fn definitions_pauses_and_trigger_control_are_durable() {
    let mut rig = Rig::new();
    serve(&mut rig, &[("max-tasks", "2")]);
    rig.define("echo", &[("max-tasks", "3")]);
    rig.define("other", &[("trigger-priority", "4")]);
    rig.trigger("other", false);
    let handle = rig.handle.clone();
    rig.ask(async move { handle.pause_host(true).await })
        .unwrap();
    let mut rig = rig.reopen(ManagerConfig::default(), Vec::new());
    assert_eq!(rig.queue("echo").attributes.max_tasks, 3);
    assert_eq!(rig.queue("other").control, "off by operator");
    assert_eq!(rig.queue("other").attributes.trigger_priority, 4);
    serve(&mut rig, &[("max-tasks", "2")]);
    assert_eq!(
        rig.queue("echo").attributes.max_tasks,
        3,
        "the overlay wins"
    );
    rig.put("echo", "one");
    assert_eq!(rig.reason("echo"), Some("paused"));
    let handle = rig.handle.clone();
    rig.ask(async move { handle.pause_host(false).await })
        .unwrap();
    assert_eq!(rig.run_all(), ["one"]);
}

#[test]
fn a13_a_depth_start_that_is_owed_is_owed_after_a_restart() {
    let mut rig = Rig::new();
    let depth: Pairs<'_> = &[("trigger", "depth"), ("trigger-depth", "2")];
    serve(&mut rig, depth);
    rig.put("echo", "1");
    rig.put("echo", "2");
    let task = rig.next_task();
    assert_eq!(rig.queue("echo").control, "off by depth");
    let mut rig = rig.reopen(ManagerConfig::default(), vec![task]);
    let queue = rig.queue("echo");
    assert_eq!((queue.control, queue.start_owed), ("off by depth", true));
    // One is removed: fewer than the depth, and the start is owed all the same.
    let id = rig.browse("echo")[0].message.header.id;
    let handle = rig.handle.clone();
    rig.ask(async move { handle.remove(&crate::values::name("echo"), id).await })
        .unwrap();
    serve(&mut rig, depth);
    assert_eq!(rig.run_all(), ["2"]);
    assert_eq!(rig.queue("echo").control, "on");
}

#[test]
fn task_ids_grow_over_restarts_and_failed_tasks_are_remembered() {
    let mut rig = Rig::new();
    serve(&mut rig, &[]);
    rig.put("echo", "one");
    rig.run(|_| trapped());
    let before = rig.records()[0].id;
    let mut rig = rig.reopen(ManagerConfig::default(), Vec::new());
    let records = rig.records();
    assert_eq!((records.len(), records[0].id), (1, before));
    serve(&mut rig, &[]);
    rig.advance(2_000);
    rig.run_all();
    let records = rig.records();
    assert_eq!(records.len(), 2);
    assert!(records[0].id > before);
}
