//! The page that explains a queue: whenever a message waits and nothing runs, one condition is
//! named as the one that holds it.

use std::collections::BTreeSet;

use oncue_core::admission::Resources;
use oncue_core::outcome::{CallEnd, Failure};
use oncue_core::trigger::hold::ALL_NAMES;
use oncue_manager::ManagerConfig;
use oncue_manager::handle::GetRequest;
use oncue_manager::reload::PluginState;
use oncue_manager::tasks::TaskCost;
use oncue_manager::tasks::port::PutOptions;
use oncue_store::Store;

use crate::rig::Rig;
use crate::trigger_types::outside_get;
use crate::values::{Pairs, name, plain, retry, update};

/// What there is to run one task with, and no more.
fn capacity(slots: u32, memory: u64, fuel: u64) -> ManagerConfig {
    ManagerConfig {
        capacity: Resources {
            slots,
            memory,
            fuel,
        },
        ..ManagerConfig::default()
    }
}

fn served(attributes: Pairs<'_>) -> Rig {
    let mut rig = Rig::new();
    rig.plugin("q", &[], &[("q", attributes)]);
    rig
}

fn with_options(options: PutOptions) -> Rig {
    let mut rig = served(&[("trigger-priority", "5")]);
    rig.put_with("q", "m", options);
    rig
}

/// Another queue's task has all that the capacity gives.
fn starved(config: ManagerConfig) -> Rig {
    let mut rig = Rig::with(config);
    rig.plugin("other", &[], &[("other", &[])]);
    rig.plugin("q", &[], &[("q", &[])]);
    rig.put("other", "x");
    rig.put("q", "m");
    rig
}

fn component(state: PluginState) -> Rig {
    let mut rig = Rig::new();
    rig.update(update("q", state, &[], &[("q", &[])])).unwrap();
    rig.put("q", "m");
    rig
}

/// A message in another's hand, so that none counts: leased by a selective get.
fn leased() -> Rig {
    let mut rig = served(&[("trigger-control", "off")]);
    rig.put("q", "m");
    let id = rig.browse("q")[0].message.header.id;
    let handle = rig.handle.clone();
    let request = GetRequest {
        wait: 0,
        id: Some(id),
        ..outside_get("q")
    };
    rig.ask(async move { handle.get(request).await }).unwrap();
    rig.trigger("q", true);
    rig
}

fn in_open_unit(group: Option<&str>) -> Rig {
    let mut rig = Rig::new();
    rig.plugin("q", &[], &[("q", &[("trigger-control", "off")])]);
    rig.trigger_plugin("other", &[("grants.get", "q")], &[("other", &[])]);
    let options = PutOptions {
        group: group.map(str::to_owned),
        ..PutOptions::default()
    };
    for _ in 0..if group.is_some() { 2 } else { 1 } {
        rig.put_with("q", "m", options.clone());
    }
    rig.put("other", "x");
    let task = rig.next_task();
    let get = oncue_manager::tasks::port::GetOptions {
        queue: Some(name("q")),
        ..Default::default()
    };
    rig.drive(task.get(get)).unwrap();
    std::mem::forget(task);
    rig.trigger("q", true);
    rig
}

fn consumer() -> Rig {
    let mut rig = served(&[]);
    let handle = rig.handle.clone();
    let mut get = Box::pin(async move { handle.get(outside_get("q")).await });
    assert!(rig.poll(&mut get).is_none());
    std::mem::forget(get);
    rig.put("q", "m");
    rig
}

/// The consumer has gone, a moment ago.
fn lingering() -> Rig {
    let mut rig = served(&[]);
    let handle = rig.handle.clone();
    let mut get = Box::pin(async move { handle.get(outside_get("q")).await });
    assert!(rig.poll(&mut get).is_none());
    rig.in_runtime(|| drop(get));
    rig.put("q", "m");
    rig
}

/// The first task may have a second beside it, but not before it has had a message.
fn starting() -> Rig {
    let mut rig = served(&[("max-tasks", "2")]);
    rig.put("q", "m");
    rig
}

fn paused(level: u8) -> Rig {
    let mut rig = served(&[]);
    let handle = rig.handle.clone();
    rig.ask(async move {
        match level {
            0 => handle.pause_queue(name("q"), true).await,
            1 => {
                handle
                    .pause_process(crate::values::process_name("q"), true)
                    .await
            }
            _ => handle.pause_host(true).await,
        }
    })
    .unwrap();
    rig.put("q", "m");
    rig
}

/// A dead-letter queue whose own handler fails: the one place from which a message can go nowhere.
fn parked() -> Rig {
    let mut rig = Rig::new();
    rig.define("full", &[("max-depth", "1")]);
    rig.put("full", "x");
    let attributes: Pairs<'_> = &[
        ("trigger", "first"),
        ("process", "q"),
        ("backout-queue", "full"),
        ("backout-threshold", "1"),
    ];
    rig.define("oncue.dead-letter", attributes);
    rig.plugin("q", &[], &[]);
    rig.put("oncue.dead-letter", "m");
    rig.run(|_| retry());
    rig
}

fn depth(rearm: &str, more: u32) -> Rig {
    let mut rig = served(&[
        ("trigger", "depth"),
        ("trigger-depth", "2"),
        ("rearm", rearm),
    ]);
    rig.put("q", "m");
    if more > 0 {
        rig.put("q", "m");
        rig.run_all();
        rig.put("q", "left");
    }
    rig
}

fn idle() -> Rig {
    let mut rig = served(&[]);
    rig.put("q", "m");
    rig.next_task().finish(TaskCost::default());
    rig.settle();
    rig
}

fn failed_start() -> Rig {
    let mut rig = served(&[]);
    rig.refuse_starts(Some("no worker"));
    rig.put("q", "m");
    rig
}

fn after(end: CallEnd) -> Rig {
    let mut rig = served(&[]);
    rig.put("q", "m");
    rig.run(move |_| end.clone());
    rig
}

/// Something runs here: these two reasons need it.
fn busy(max_tasks: &str, messages: usize) -> Rig {
    let mut rig = Rig::new();
    let attributes: Pairs<'_> = &[("trigger", "every"), ("max-tasks", max_tasks)];
    rig.plugin("q", &[], &[("q", attributes)]);
    rig.put_all(vec![plain("q", "m"); messages]).unwrap();
    rig
}

fn elsewhere() -> Rig {
    let mut rig = served(&[]);
    rig.manager.set_elsewhere(&name("q"), true);
    rig.put("q", "m");
    rig
}

fn host(what: &str) -> Rig {
    let mut rig = served(&[("trigger-control", "off")]);
    rig.put("q", "m");
    match what {
        "draining" => rig.manager.drain(),
        _ => rig.memory.close(),
    }
    rig.settle();
    rig
}

const MIB: u64 = 1 << 20;
const G: u64 = 1_000_000_000;

/// A reason, the condition that it belongs to, and a situation in which it holds a queue.
fn situations() -> Vec<(&'static str, &'static str, Rig)> {
    let priority = PutOptions {
        priority: Some(4),
        ..PutOptions::default()
    };
    let delay = PutOptions {
        delay: Some(1_000),
        ..PutOptions::default()
    };
    let defer = CallEnd::Failed(Failure::Defer(1_000));
    let quarantined = PluginState::Quarantined {
        reason: "q.wasm is truncated".to_owned(),
        serving: None,
    };
    let headroom = ManagerConfig {
        headroom: Some(Box::new(|| Some(MIB))),
        ..ManagerConfig::default()
    };
    let mut no_headroom = Rig::with(headroom);
    no_headroom.plugin("q", &[], &[("q", &[])]);
    no_headroom.put("q", "m");
    let mut no_process = Rig::new();
    no_process.define("q", &[]);
    no_process.put("q", "m");
    let with = |attributes: Pairs<'_>| {
        let mut rig = served(attributes);
        rig.put("q", "m");
        rig
    };
    vec![
        ("empty", "messages-count", served(&[])),
        (
            "below-trigger-priority",
            "messages-count",
            with_options(priority),
        ),
        ("delayed", "messages-count", with_options(delay)),
        ("delayed", "messages-count", after(defer)),
        ("leased", "messages-count", leased()),
        ("in-open-unit", "messages-count", in_open_unit(None)),
        ("group-busy", "messages-count", in_open_unit(Some("g"))),
        ("retry-delay", "messages-count", after(retry())),
        ("parked-message", "messages-count", parked()),
        (
            "trigger-off-by-operator",
            "trigger-control",
            with(&[("trigger-control", "off")]),
        ),
        (
            "trigger-off-by-depth",
            "trigger-control",
            depth("manual", 1),
        ),
        ("waiting-for-depth", "depth-reached", depth("auto", 0)),
        (
            "trigger-type-none",
            "trigger-type",
            with(&[("trigger", "none")]),
        ),
        ("paused", "not-paused", paused(0)),
        ("paused", "not-paused", paused(1)),
        ("paused", "not-paused", paused(2)),
        ("get-disabled", "get-enabled", with(&[("get", "disabled")])),
        ("consumer-open", "no-consumer-open", consumer()),
        ("consumer-open", "no-consumer-open", lingering()),
        ("at-max-tasks", "below-max-tasks", busy("1", 2)),
        (
            "already-in-process",
            "not-in-process-elsewhere",
            elsewhere(),
        ),
        ("already-in-process", "starts-owed", busy("2", 1)),
        ("already-in-process", "no-start-under-way", starting()),
        (
            "insufficient-memory",
            "resources",
            starved(capacity(9, 100 * MIB, 100 * G)),
        ),
        ("insufficient-memory", "resources", no_headroom),
        (
            "insufficient-fuel",
            "resources",
            starved(capacity(9, 900 * MIB, 15 * G)),
        ),
        (
            "no-task-slot",
            "resources",
            starved(capacity(1, 900 * MIB, 100 * G)),
        ),
        ("no-process", "start-not-held", no_process),
        (
            "component-missing",
            "start-not-held",
            component(PluginState::Missing),
        ),
        (
            "component-compiling",
            "start-not-held",
            component(PluginState::Compiling),
        ),
        (
            "component-quarantined",
            "start-not-held",
            component(quarantined),
        ),
        ("start-failed", "start-not-held", failed_start()),
        ("backing-off", "not-backing-off", idle()),
        ("store-stopped", "store-writes", host("store")),
        ("draining", "host-runs", host("draining")),
    ]
}

#[test]
fn a80_explain_names_the_one_condition_that_holds_the_queue_for_every_reason() {
    let mut seen = BTreeSet::new();
    for (reason, decides, mut rig) in situations() {
        let queue = if reason == "parked-message" {
            "oncue.dead-letter"
        } else {
            "q"
        };
        let explained = rig.explain(queue);
        let said = &explained.sentence;
        assert_eq!(
            (explained.verdict, explained.reason),
            ("hold", Some(reason)),
            "{said}"
        );
        let deciding: Vec<_> = explained.conditions.iter().filter(|c| c.decides).collect();
        assert_eq!(deciding.len(), 1, "{reason}: {:?}", explained.conditions);
        let named = (deciding[0].name.as_str(), deciding[0].holds);
        assert_eq!(named, (decides, false), "{reason}: {}", deciding[0].value);
        assert!(!deciding[0].value.is_empty() && !deciding[0].source.is_empty());
        let text = rig.queue(queue).reason_text.expect("a sentence");
        assert!(said.contains(&text), "{said} / {text}");
        let running = rig.queue(queue).running;
        let needs_a_task = matches!(
            decides,
            "below-max-tasks" | "starts-owed" | "no-start-under-way"
        );
        assert_eq!(
            (running > 0, rig.depth(queue) > 0),
            (needs_a_task, reason != "empty"),
            "{reason}"
        );
        seen.insert(reason);
    }
    // Pending spans one call of the loop: nobody can look in between. Every name of the enum is in
    // the list, so one that is added without a row here is missing.
    let missing: Vec<_> = ALL_NAMES
        .iter()
        .filter(|name| !seen.contains(*name))
        .collect();
    assert_eq!(missing, [&"trigger-pending"]);
}

#[test]
fn a80_explain_tells_where_each_value_comes_from_and_when_it_is_looked_at_again() {
    let mut rig = served(&[("trigger-priority", "7"), ("trigger", "depth")]);
    rig.define("q", &[("trigger-depth", "9")]);
    rig.put_with(
        "q",
        "m",
        PutOptions {
            priority: Some(8),
            ..PutOptions::default()
        },
    );
    let explained = rig.explain("q");
    let source = |name: &str| {
        let found = explained.conditions.iter().find(|c| c.name == name);
        found.map(|c| c.source.as_str())
    };
    assert_eq!(source("depth-reached"), Some("trigger-depth (operator)"));
    assert_eq!(source("trigger-type"), Some("trigger (manifest)"));
    assert_eq!(source("get-enabled"), Some("get (default)"));
    let mut rig = after(retry());
    let explained = rig.explain("q");
    assert!(
        explained.sentence.contains("; looked at again in "),
        "{}",
        explained.sentence
    );
    let at = explained.next_check.expect("by itself");
    rig.advance(at.since(explained.now));
    assert_eq!(rig.run_all(), ["m"]);
}
