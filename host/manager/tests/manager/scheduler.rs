//! Capacity, fairness, the ready ring and the sweep; several evaluators of one queue.

use std::sync::Arc;

use oncue_core::admission::Resources;
use oncue_core::outcome::CallEnd;
use oncue_manager::ManagerConfig;
use oncue_manager::tasks::port::Got;

use crate::rig::Rig;
use crate::steps::room_for;
use crate::values::{Pairs, name, plain};

#[test]
fn a28_one_commit_puts_each_queue_on_the_ready_ring_once_after_all_are_visible() {
    let mut rig = Rig::new();
    for queue in ["a", "b", "c"] {
        rig.plugin(queue, &[], &[(queue, &[])]);
    }
    let queue = |n: usize| ["a", "b", "c"][n % 3];
    let puts = (0..500).map(|n| plain(queue(n), &n.to_string())).collect();
    let handle = rig.handle.clone();
    crate::values::at_once(handle.put(puts, None)).unwrap();
    assert_eq!(rig.manager.on_ring(), 3);
    let visible: usize = ["a", "b", "c"]
        .map(|queue| rig.browse(queue).len())
        .iter()
        .sum();
    assert_eq!(visible, 500);
    rig.settle();
    assert_eq!(rig.waiting(), 3);
    assert_eq!(rig.run_all().len(), 500);
}

/// What cannot start a task does not wake the loop, and is not lost: the turn that can sees it.
#[test]
fn a28_messages_for_a_queue_that_is_served_wait_for_the_next_turn() {
    let mut rig = Rig::new();
    rig.define("sink", &[("trigger", "none")]);
    rig.trigger_plugin("echo", &[], &[("echo", &[("max-tasks", "1")])]);
    let woken = |rig: &mut Rig, queue: &str| {
        let put = plain(queue, "x");
        let handle = rig.handle.clone();
        crate::values::at_once(handle.put(vec![put], None)).unwrap();
        let woken = rig.manager.wants_turn();
        rig.settle();
        woken
    };
    assert!(!woken(&mut rig, "sink"), "nothing serves it");
    assert!(woken(&mut rig, "echo"), "a task is to be started");
    assert!(!woken(&mut rig, "echo"), "the one that may run is starting");
    let session = rig.next_task();
    assert_eq!(rig.got(&session), "x");
    assert!(!woken(&mut rig, "echo"), "the one that may run is running");
    rig.end(&session, CallEnd::Ok);
    // Nothing but its end tells of the two that came meanwhile.
    let session = rig.next_task();
    assert_eq!(
        (rig.got(&session), rig.got(&session)),
        ("x".into(), "x".into())
    );
    rig.end(&session, CallEnd::Ok);
    assert!(woken(&mut rig, "echo"), "nothing runs any more");
    let session = rig.next_task();
    assert_eq!(rig.got(&session), "x");
    rig.end(&session, CallEnd::Ok);
    rig.assert_ledger_empty();
}

#[test]
fn a42_no_capacity_holds_with_the_numbers_and_starts_when_it_is_freed() {
    let config = ManagerConfig {
        capacity: Resources {
            memory: 76 << 20,
            ..room_for(1).capacity
        },
        ..ManagerConfig::default()
    };
    let mut rig = Rig::with(config);
    rig.plugin("one", &[], &[("one", &[])]);
    rig.plugin("two", &[], &[("two", &[])]);
    rig.put("one", "1");
    rig.put("two", "2");
    assert_eq!(rig.waiting(), 1);
    let said = rig.explain("two").sentence;
    let wanted = "insufficient resources: memory 64 MiB wanted, 12 MiB free";
    assert!(said.contains(wanted), "{said}");
    assert_eq!(rig.run(|_| CallEnd::Ok), ["1"]);
    // No put and no time in between.
    assert_eq!(rig.run_all(), ["2"]);
    rig.assert_ledger_empty();
}

/// A record says how long the start waited since the event, so a wait for capacity can be seen.
#[test]
fn the_start_latency_counts_from_the_event() {
    let mut rig = Rig::with(room_for(1));
    rig.plugin("one", &[], &[("one", &[])]);
    rig.plugin("two", &[], &[("two", &[])]);
    rig.put("one", "1");
    rig.put("two", "2");
    rig.advance(700);
    assert_eq!(rig.run(|_| CallEnd::Ok), ["1"]);
    assert_eq!(rig.run_all(), ["2"]);
    let records = rig.records();
    let latency = |queue: &str| {
        let record = records.iter().find(|record| record.queue.as_str() == queue);
        record.map(|record| record.start_latency)
    };
    assert_eq!((latency("one"), latency("two")), (Some(0), Some(700)));
}

#[test]
fn a43_many_evaluators_that_see_a_queue_at_once_make_one_start() {
    let mut rig = Rig::new();
    rig.plugin("echo", &[], &[("echo", &[])]);
    // Eight threads put, browse and ask for turns at once, while the loop turns.
    let handle = rig.handle.clone();
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let handle = handle.clone();
            std::thread::spawn(move || {
                for n in 0..50 {
                    let put = plain("echo", &format!("{thread}/{n}"));
                    crate::values::at_once(handle.put(vec![put], None)).unwrap();
                }
            })
        })
        .collect();
    while threads.iter().any(|thread| !thread.is_finished()) {
        rig.manager.turn();
        assert!(rig.waiting() <= 1);
    }
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    rig.settle();
    assert_eq!((rig.waiting(), rig.queue("echo").running), (1, 1));
    assert_eq!(rig.run_all().len(), 400);
    assert_eq!(rig.records().len(), 1);
}

/// Two managers over one store, with the trigger of one queue off in both, and a message on it.
fn two_managers() -> (Rig, Rig) {
    let mut one = Rig::new();
    let mut two = Rig::beside(&one);
    for rig in [&mut one, &mut two] {
        rig.trigger_plugin("echo", &[], &[("echo", &[])]);
        rig.trigger("echo", false);
    }
    one.put("echo", "m");
    two.settle();
    assert_eq!((one.depth("echo"), two.depth("echo")), (1, 1));
    (one, two)
}

#[test]
fn a43_of_two_managers_over_one_store_the_second_stops_at_56() {
    let (mut one, mut two) = two_managers();
    one.trigger("echo", true);
    assert_eq!(one.waiting(), 1);
    // What a shared store's leased indicator will tell.
    two.manager.set_elsewhere(&name("echo"), true);
    two.trigger("echo", true);
    assert_eq!(two.waiting(), 0);
    assert_eq!(two.explain("echo").last_trace, [10, 12, 14, 50, 54, 56]);
    assert_eq!(one.run_all(), ["m"]);
    two.manager.set_elsewhere(&name("echo"), false);
    two.settle();
    assert_eq!((two.waiting(), two.depth("echo")), (0, 0));
    two.assert_ledger_empty();
}

#[test]
fn a43_two_managers_that_both_start_handle_each_message_once() {
    let (mut one, mut two) = two_managers();
    two.trigger("echo", true);
    one.trigger("echo", true);
    let tasks = (one.next_task(), two.next_task());
    assert_eq!(one.got(&tasks.0), "m");
    assert!(
        matches!(two.get(&tasks.1), Got::Empty),
        "the store gives it once"
    );
    two.end(&tasks.1, CallEnd::Ok);
    one.end(&tasks.0, CallEnd::Ok);
    two.settle();
    assert_eq!((one.depth("echo"), two.depth("echo")), (0, 0));
}

#[test]
fn a44_one_sweep_repairs_an_event_that_was_lost() {
    let mut rig = Rig::new();
    rig.plugin("echo", &[], &[("echo", &[])]);
    let handle = rig.handle.clone();
    for body in ["1", "2"] {
        crate::values::at_once(handle.put(vec![plain("echo", body)], None)).unwrap();
        rig.manager.lose_ring();
    }
    rig.settle();
    assert_eq!(
        (rig.waiting(), rig.queue("echo").depth),
        (0, 0),
        "nothing was heard"
    );
    rig.advance(999);
    assert_eq!(rig.waiting(), 0);
    rig.advance(1);
    assert_eq!(rig.run_all(), ["1", "2"]);
    // And the ring works again.
    rig.put("echo", "3");
    assert_eq!(rig.run_all(), ["3"]);
}

#[test]
fn a45_ten_thousand_idle_queues_cost_neither_a_put_nor_a_sweep_a_question() {
    let mut rig = Rig::new();
    rig.plugin("busy", &[], &[("busy", &[])]);
    for n in 0..10_000 {
        rig.define(&format!("idle.{n}"), &[("process", "busy")]);
    }
    rig.settle();
    let mut asked = rig.manager.asked();
    let mut since = |rig: &Rig| {
        let now = rig.manager.asked();
        now - std::mem::replace(&mut asked, now)
    };
    for n in 0..20 {
        rig.put("busy", &n.to_string());
        rig.run_all();
        let questions = since(&rig);
        assert!(
            questions <= 8,
            "{questions} questions for one put and its task"
        );
    }
    // The period is gone through in slices.
    for _ in 0..200 {
        rig.advance(10);
    }
    assert_eq!(since(&rig), 1, "the one that was busy, once");
    // A pause concerns all, and none that is idle need be asked for it.
    rig.ask(rig.handle.clone().pause_host(true)).unwrap();
    rig.ask(rig.handle.clone().pause_host(false)).unwrap();
    for _ in 0..2 {
        rig.advance(1_000);
        assert_eq!(since(&rig), 0, "idle ones are passed over");
    }
}

#[test]
fn a44_a_lost_event_of_one_among_ten_thousand_is_repaired_within_a_period() {
    let mut rig = Rig::new();
    rig.plugin("echo", &[], &[("echo", &[])]);
    for n in 0..10_000 {
        rig.define(&format!("idle.{n}"), &[("process", "echo")]);
    }
    rig.advance(1_000);
    for round in 0..3 {
        let queue = format!("idle.{}", round * 3_333);
        let handle = rig.handle.clone();
        crate::values::at_once(handle.put(vec![plain(&queue, "lost")], None)).unwrap();
        rig.manager.lose_ring();
        rig.settle();
        assert_eq!(rig.waiting(), 0, "nothing was heard");
        // The period is gone through in slices: it comes in one of them.
        let mut asked = rig.manager.asked();
        for slice in 0..=100 {
            assert!(slice < 100, "{queue} was not found within a period");
            rig.advance(10);
            if rig.waiting() > 0 {
                break;
            }
            assert_eq!(rig.manager.asked(), asked, "nobody else is asked");
            asked = rig.manager.asked();
        }
        assert_eq!(rig.run_all(), ["lost"]);
        rig.advance(1_000);
    }
}

#[test]
fn a_spent_quantum_ends_a_task_only_while_another_queue_is_held_at_52() {
    for contended in [true, false] {
        let mut rig = Rig::with(room_for(1));
        rig.plugin("long", &[], &[("long", &[])]);
        rig.plugin("short", &[], &[("short", &[])]);
        let puts = (0..600).map(|n| plain("long", &n.to_string())).collect();
        rig.put_all(puts).unwrap();
        if contended {
            rig.put("short", "s");
            assert_eq!(rig.reason("short"), Some("insufficient-memory"));
        }
        let first = rig.run(|_| CallEnd::Ok);
        assert_eq!(first.len(), if contended { 256 } else { 600 });
        let rest = rig.run_all();
        if contended {
            assert_eq!(rest[0], "s", "the one that waited comes first");
        }
        assert_eq!(first.len() + rest.len(), 600 + usize::from(contended));
        rig.assert_ledger_empty();
    }
}

#[test]
fn a_task_that_waits_in_a_get_is_woken_when_its_quantum_is_spent_and_another_queue_is_held() {
    let mut rig = Rig::with(room_for(1));
    rig.trigger_plugin("idle", &[], &[("idle", &[])]);
    rig.plugin("short", &[], &[("short", &[])]);
    rig.put("idle", "one");
    let task = rig.next_task();
    rig.got(&task);
    rig.drive(task.commit()).unwrap();
    let options = oncue_manager::tasks::port::GetOptions {
        wait: Some(60_000),
        ..Default::default()
    };
    let mut get = Box::pin(task.get(options));
    assert!(rig.poll(&mut get).is_none());
    rig.put("short", "s");
    assert!(
        rig.poll(&mut get).is_none(),
        "its quantum of 100 ms is not spent"
    );
    rig.advance(1_000);
    assert!(matches!(rig.poll(&mut get), Some(Ok(Got::Stop))));
    drop(get);
    rig.end(&task, CallEnd::Ok);
    assert_eq!(rig.run_all(), ["s"]);
}

#[test]
fn a_large_task_is_not_starved_by_small_ones() {
    let mut rig = Rig::with(room_for(4));
    let every: Pairs<'_> = &[("trigger", "every"), ("max-tasks", "4")];
    rig.plugin("small", &[], &[("small", every)]);
    rig.plugin("large", &[("memory", "256 MiB")], &[("large", &[])]);
    let puts = (0..100).map(|n| plain("small", &n.to_string())).collect();
    rig.put_all(puts).unwrap();
    rig.put("large", "L");
    assert_eq!(rig.reason("large"), Some("insufficient-memory"));
    rig.advance(1_001);
    // From now on what is freed is set aside for it: none of the small ones is started anew.
    for left in (0..4).rev() {
        let task = rig.task_of("small");
        task.finish(oncue_manager::tasks::TaskCost::default());
        rig.settle();
        rig.advance(100);
        assert_eq!(rig.queue("small").running, left);
    }
    let task = rig.task_of("large");
    assert_eq!(rig.run_session(&task, |_, _| CallEnd::Ok), ["L"]);
    rig.advance(60_000);
    assert_eq!(rig.run_all().len(), 100);
}

#[test]
fn real_memory_headroom_holds_and_ends_no_quantum() {
    let free = Arc::new(std::sync::atomic::AtomicU64::new(u64::MAX));
    let measured = Arc::clone(&free);
    let config = ManagerConfig {
        headroom: Some(Box::new(move || {
            Some(measured.load(std::sync::atomic::Ordering::SeqCst))
        })),
        ..ManagerConfig::default()
    };
    let mut rig = Rig::with(config);
    rig.plugin("long", &[], &[("long", &[])]);
    rig.plugin("echo", &[], &[("echo", &[])]);
    let puts = (0..600).map(|n| plain("long", &n.to_string())).collect();
    rig.put_all(puts).unwrap();
    free.store(1 << 20, std::sync::atomic::Ordering::SeqCst);
    rig.put("echo", "one");
    let said = rig.explain("echo").sentence;
    assert!(said.contains("free on the machine"), "{said}");
    assert_eq!(
        rig.run(|_| CallEnd::Ok).len(),
        600,
        "no quantum ends for it"
    );
    assert_eq!(rig.waiting(), 0);
    free.store(1 << 30, std::sync::atomic::Ordering::SeqCst);
    rig.advance(1_000);
    assert_eq!(rig.run_all(), ["one"]);
}

#[test]
fn queues_that_wait_for_capacity_are_served_in_turn() {
    let mut rig = Rig::with(room_for(1));
    for queue in ["a", "b", "c"] {
        rig.plugin(queue, &[], &[(queue, &[("trigger", "every")])]);
    }
    for n in 0..3 {
        for queue in ["a", "b", "c"] {
            rig.put(queue, &format!("{queue}{n}"));
        }
    }
    let mut order = Vec::new();
    while rig.waiting() > 0 {
        rig.advance(1);
        order.extend(rig.run(|_| CallEnd::Ok));
    }
    assert_eq!(order.len(), 9);
    let rounds: Vec<_> = order.chunks(3).map(|round| round.concat()).collect();
    assert_eq!(rounds, ["a0b0c0", "a1b1c1", "a2b2c2"]);
}
