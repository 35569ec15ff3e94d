//! Whatever happens in whatever order, in the end every message was handled or is a dead letter,
//! exactly once. What was handled is judged by what the handlers put, not by the manager's own
//! numbers.

use oncue_core::outcome::{CallEnd, Failure};
use oncue_manager::ManagerConfig;
use oncue_manager::tasks::port::PutOptions;
use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::rig::Rig;
use crate::values::{Pairs, name, plain, process_name, ready, request, retry, trapped, update};

/// One queue of each kind; all settle with what [`quiesce`] sets.
const QUEUES: [(&str, Pairs<'static>); 3] = [
    ("first", &[("backout-threshold", "2")]),
    (
        "every",
        &[
            ("trigger", "every"),
            ("max-tasks", "3"),
            ("backout-threshold", "3"),
        ],
    ),
    (
        "depth",
        &[
            ("trigger", "depth"),
            ("trigger-depth", "3"),
            ("trigger-max-wait", "5s"),
            ("backout-threshold", "2"),
        ],
    ),
];

#[derive(Clone, Debug)]
enum Happening {
    Put {
        queue: usize,
        priority: u8,
        group: Option<u8>,
        delay: Option<u64>,
    },
    /// The oldest started task runs; its calls end so, in turn.
    Run(Vec<u8>),
    /// A started task is lost by its host.
    Lose,
    /// The next start fails.
    RefuseStart,
    Advance(u64),
    Pause(u8, usize, bool),
    Trigger(usize, bool),
    Alter(usize, &'static str, &'static str),
    Replace(u8),
    LoseEvents,
    Kill,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let queue = 0..QUEUES.len();
    let put = (
        queue.clone(),
        0..10_u8,
        prop::option::weighted(0.3, 0..2_u8),
        prop::option::weighted(0.2, 1..3_000_u64),
    );
    let put = put.prop_map(|(queue, priority, group, delay)| Happening::Put {
        queue,
        priority,
        group,
        delay,
    });
    let pause = (0..3_u8, queue.clone(), any::<bool>())
        .prop_map(|(level, queue, paused)| Happening::Pause(level, queue, paused));
    let alter = prop::sample::select(vec![
        ("get", "disabled"),
        ("get", "enabled"),
        ("trigger-priority", "5"),
        ("trigger-priority", "0"),
        ("max-tasks", "1"),
        ("max-tasks", "4"),
        ("delivery", "fifo"),
        ("rearm", "manual"),
        ("rearm", "auto"),
    ]);
    let one = prop_oneof![
        8 => put,
        6 => prop::collection::vec(0..7_u8, 1..5).prop_map(Happening::Run),
        1 => Just(Happening::Lose),
        1 => Just(Happening::RefuseStart),
        4 => (1..4_000_u64).prop_map(Happening::Advance),
        1 => pause,
        1 => (queue.clone(), any::<bool>()).prop_map(|(q, on)| Happening::Trigger(q, on)),
        2 => (queue, alter).prop_map(|(q, (n, v))| Happening::Alter(q, n, v)),
        1 => (0..3_u8).prop_map(Happening::Replace),
        1 => Just(Happening::LoseEvents),
        1 => Just(Happening::Kill),
    ];
    prop::collection::vec(one, 1..80)
}

fn serve(rig: &mut Rig, version: u8) {
    let process = &[("grants.put", "out"), ("batch", "3")];
    let served = update(
        "work",
        ready("work", &version.to_string()),
        process,
        &QUEUES,
    );
    rig.update(served).expect("the plugin is taken");
}

fn call_end(code: u8) -> CallEnd {
    match code {
        0..=2 => CallEnd::Ok,
        3 => retry(),
        4 => trapped(),
        5 => CallEnd::Failed(Failure::Defer(2_000)),
        _ => CallEnd::HostFailed("no slot".to_owned()),
    }
}

/// Runs the oldest started task. Each call puts its body to `out`, whatever its end.
fn run(rig: &mut Rig, ends: &[u8]) {
    let task = rig.next_task();
    let mut calls = 0;
    rig.run_session(&task, |task, body| {
        task.put(plain("out", body)).expect("the put is granted");
        calls += 1;
        // A task in which the host fails ends; else it would be given the same message for ever.
        call_end(ends[(calls - 1) % ends.len()])
    });
}

fn happen(mut rig: Rig, happening: &Happening, puts: &mut Vec<String>) -> Rig {
    let handle = rig.handle.clone();
    let queue_name = |queue: usize| name(QUEUES[queue].0);
    match happening {
        Happening::Put {
            queue,
            priority,
            group,
            delay,
        } => {
            let body = puts.len().to_string();
            let options = PutOptions {
                priority: Some(*priority),
                group: group.map(|group| group.to_string()),
                delay: *delay,
                ..PutOptions::default()
            };
            rig.put_all(vec![request(QUEUES[*queue].0, &body, options)])
                .expect("the put is taken");
            puts.push(body);
        }
        Happening::Run(ends) if rig.waiting() > 0 => run(&mut rig, ends),
        Happening::Lose if rig.waiting() > 0 => {
            drop(rig.next_task());
            rig.settle();
        }
        Happening::Run(_) | Happening::Lose => {}
        Happening::RefuseStart => rig.refuse_next_start("no worker"),
        Happening::Advance(millis) => rig.advance(*millis),
        Happening::Pause(level, queue, paused) => {
            let (level, queue, paused) = (*level, queue_name(*queue), *paused);
            rig.ask(async move {
                match level {
                    0 => handle.pause_queue(queue, paused).await,
                    1 => handle.pause_process(process_name("work"), paused).await,
                    _ => handle.pause_host(paused).await,
                }
            })
            .expect("it is there");
        }
        Happening::Trigger(queue, on) => rig.trigger(QUEUES[*queue].0, *on),
        Happening::Alter(queue, attribute, value) => {
            rig.define(QUEUES[*queue].0, &[(attribute, value)]);
        }
        Happening::Replace(version) => serve(&mut rig, *version),
        Happening::LoseEvents => rig.manager.lose_ring(),
        Happening::Kill => {
            rig = rig.reopen(ManagerConfig::default(), Vec::new());
            serve(&mut rig, 0);
        }
    }
    rig
}

/// Everything is enabled and every call goes well: what is left must come to its end by itself.
fn quiesce(rig: &mut Rig) {
    let handle = rig.handle.clone();
    rig.ask(async move {
        handle.pause_host(false).await?;
        handle.pause_process(process_name("work"), false).await
    })
    .expect("resumed");
    for (queue, _) in QUEUES {
        let handle = rig.handle.clone();
        rig.ask(async move { handle.pause_queue(name(queue), false).await })
            .expect("resumed");
        rig.define(
            queue,
            &[
                ("get", "enabled"),
                ("trigger-priority", "0"),
                ("rearm", "auto"),
            ],
        );
        rig.trigger(queue, true);
    }
    for _ in 0..60 {
        while rig.waiting() > 0 {
            run(rig, &[0]);
        }
        rig.advance(7_000);
    }
}

proptest! {
    #![proptest_config(Config { cases: 48, failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_message_is_handled_or_dead_lettered_exactly_once(happenings in happenings()) {
        let mut rig = Rig::new();
        rig.define("out", &[]);
        serve(&mut rig, 0);
        let mut puts = Vec::new();
        for happening in &happenings {
            rig = happen(rig, happening, &mut puts);
            let handle = rig.handle.clone();
            let ledger = rig.ask(async move { handle.ledger().await }).expect("the ledger");
            prop_assert_eq!(ledger.reserved.slots, rig.waiting() as u64, "after {:?}", happening);
        }
        quiesce(&mut rig);
        for (queue, _) in QUEUES {
            let explained = rig.explain(queue).sentence;
            prop_assert_eq!(rig.depth(queue), 0, "{}", explained);
        }
        let mut ends = rig.bodies("out");
        ends.extend(rig.bodies("oncue.dead-letter"));
        ends.sort();
        puts.sort();
        prop_assert_eq!(ends, puts);
        prop_assert_eq!(rig.waiting(), 0);
        rig.assert_ledger_empty();
        for (queue, _) in QUEUES {
            let view = rig.queue(queue);
            prop_assert_eq!((view.running, view.owed, view.start_owed), (0, 0, false));
        }
    }
}
