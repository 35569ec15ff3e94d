//! Alarms through the manager: raised once, told once, cleared, computed anew after a restart.

use oncue_core::alarm::Alarm;
use oncue_core::outcome::{CallEnd, Failure};
use oncue_core::time::Timestamp;
use oncue_manager::ManagerConfig;
use oncue_manager::reload::PluginState;
use oncue_manager::status::HostEvent;
use oncue_manager::tasks::port::PortError;
use oncue_store::Store;
use tokio::sync::broadcast::Receiver;

use crate::rig::Rig;
use crate::values::{Pairs, name, plain, queue_patch, retry, update};

const MINUTE: u64 = 60_000;

/// What was told since the last look: names, with a minus when cleared.
fn told(events: &mut Receiver<HostEvent>) -> Vec<String> {
    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let HostEvent::Alarm { alarm, cleared, .. } = event {
            told.push(format!("{}{alarm}", if cleared { "-" } else { "" }));
        }
    }
    told
}

/// The raised alarms with what they are about, the newest first.
fn raised(rig: &mut Rig) -> Vec<(&'static str, Option<String>)> {
    let handle = rig.handle.clone();
    let view = rig
        .ask(async move { handle.alarms().await })
        .expect("the alarms");
    assert_eq!(view.active, view.alarms.len() as u64);
    let listed = view.alarms.into_iter().map(|alarm| {
        assert!(!alarm.cure.is_empty() && !alarm.detail.is_empty());
        let about = alarm.queue.map(|queue| queue.to_string());
        (alarm.alarm, about.or(alarm.plugin))
    });
    listed.collect()
}

fn about(alarm: &'static str, what: &str) -> Vec<(&'static str, Option<String>)> {
    vec![(alarm, Some(what.to_owned()))]
}

/// Minutes go by, a second at a time.
fn wait(rig: &mut Rig, minutes: u64) {
    for _ in 0..minutes * 60 {
        rig.advance(1_000);
    }
}

#[test]
fn a_message_that_nothing_is_started_for_rings_once_until_it_is_served() {
    let mut rig = Rig::new();
    let mut events = rig.handle.events();
    rig.plugin("q", &[], &[("q", &[("trigger-control", "off")])]);
    rig.put("q", "m");
    wait(&mut rig, 4);
    assert_eq!(told(&mut events), [""; 0]);
    wait(&mut rig, 4);
    assert_eq!(told(&mut events), ["oldest-waiting"]);
    assert_eq!(raised(&mut rig), about("oldest-waiting", "q"));
    rig.trigger("q", true);
    assert_eq!(rig.run_all(), ["m"]);
    assert_eq!(told(&mut events), ["-oldest-waiting"]);
    assert_eq!(raised(&mut rig), []);
    let count = rig.handle.alarm_counts()[Alarm::OldestWaiting as usize];
    assert_eq!((count.active, count.raised), (0, 1));
}

#[test]
fn a_healthy_queue_is_silent() {
    let mut rig = Rig::new();
    let mut events = rig.handle.events();
    rig.plugin(
        "q",
        &[],
        &[("q", &[("service-interval", "5s"), ("max-depth", "9")])],
    );
    for _ in 0..60 {
        rig.put("q", "m");
        assert_eq!(rig.run_all(), ["m"]);
        rig.advance(20_000);
    }
    assert_eq!(told(&mut events), [""; 0]);
}

#[test]
fn a_queue_that_nothing_is_got_from_rings_after_its_service_interval() {
    let mut rig = Rig::new();
    let mut events = rig.handle.events();
    rig.define("q", &[("trigger", "none"), ("service-interval", "10s")]);
    wait(&mut rig, 2);
    rig.put("q", "m");
    rig.advance(9_000);
    assert_eq!(told(&mut events), [""; 0]);
    wait(&mut rig, 1);
    assert_eq!(told(&mut events), ["service-interval"]);
    let id = rig.browse("q")[0].message.header.id;
    let handle = rig.handle.clone();
    rig.ask(async move { handle.remove(&name("q"), id).await })
        .unwrap();
    assert_eq!(told(&mut events), ["-service-interval"]);
}

#[test]
fn depth_rings_high_full_and_low() {
    let mut rig = Rig::new();
    let mut events = rig.handle.events();
    rig.plugin(
        "q",
        &[],
        &[("q", &[("trigger-control", "off"), ("max-depth", "5")])],
    );
    for _ in 0..3 {
        rig.put("q", "m");
    }
    assert_eq!(told(&mut events), [""; 0]);
    rig.put("q", "m");
    assert_eq!(told(&mut events), ["depth-high"]);
    rig.put("q", "m");
    for _ in 0..3 {
        let refused = rig.put_all(vec![plain("q", "m")]);
        assert_eq!(refused.unwrap_err().code.as_str(), "queue-full");
        rig.advance(1_000);
    }
    assert_eq!(told(&mut events), ["queue-full"]);
    rig.trigger("q", true);
    assert_eq!(rig.run_all().len(), 5);
    assert_eq!(
        told(&mut events),
        ["-depth-high", "-queue-full", "depth-low"]
    );
    assert_eq!(raised(&mut rig), []);
}

#[test]
fn a_start_held_by_an_error_rings_after_ten_seconds() {
    let mut rig = Rig::new();
    let mut events = rig.handle.events();
    rig.define("q", &[]);
    rig.put("q", "m");
    rig.advance(9_000);
    assert_eq!(told(&mut events), [""; 0]);
    for _ in 0..60 {
        rig.advance(1_000);
    }
    assert_eq!(told(&mut events), ["held-by-error"]);
    rig.plugin("q", &[], &[("q", &[])]);
    assert_eq!(rig.run_all(), ["m"]);
    assert_eq!(told(&mut events), ["-held-by-error"]);
}

#[test]
fn dead_letters_ring_until_none_is_left_and_again_after_a_restart() {
    let mut rig = Rig::new();
    let mut events = rig.handle.events();
    rig.plugin("q", &[], &[("q", &[])]);
    rig.put("q", "poison");
    rig.run(|_| CallEnd::Failed(Failure::Reject("no".to_owned())));
    rig.put("q", "poison");
    rig.run(|_| CallEnd::Failed(Failure::Reject("no".to_owned())));
    assert_eq!(told(&mut events), ["dead-letter"]);
    let mut rig = rig.reopen(ManagerConfig::default(), Vec::new());
    let mut events = rig.handle.events();
    rig.advance(1_000);
    rig.advance(1_000);
    assert_eq!(raised(&mut rig), about("dead-letter", "oncue.dead-letter"));
    let handle = rig.handle.clone();
    rig.ask(async move { handle.clear(&name("oncue.dead-letter")).await })
        .unwrap();
    assert_eq!(told(&mut events), ["dead-letter", "-dead-letter"]);
}

#[test]
fn a_parked_message_rings() {
    let mut rig = Rig::new();
    let mut events = rig.handle.events();
    rig.define(
        "full",
        &[
            ("max-depth", "1"),
            ("alarm-depth-high", "never"),
            ("trigger", "none"),
        ],
    );
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
    assert_eq!(told(&mut events), ["dead-letter", "parked-message"]);
    let handle = rig.handle.clone();
    rig.ask(async move { handle.clear(&name("oncue.dead-letter")).await })
        .unwrap();
    assert_eq!(told(&mut events), ["-parked-message", "-dead-letter"]);
}

#[test]
fn a_quarantined_plugin_rings_until_a_good_version_comes() {
    let mut rig = Rig::new();
    let mut events = rig.handle.events();
    let bad = |why: &str| PluginState::Quarantined {
        reason: why.to_owned(),
        serving: None,
    };
    rig.update(update("q", bad("truncated"), &[], &[("q", &[])]))
        .unwrap();
    rig.update(update("q", bad("no export"), &[], &[("q", &[])]))
        .unwrap();
    assert_eq!(told(&mut events), ["quarantined"]);
    assert_eq!(raised(&mut rig), about("quarantined", "q"));
    rig.plugin("q", &[], &[("q", &[])]);
    assert_eq!(told(&mut events), ["-quarantined"]);
}

#[test]
fn a_store_that_stops_rings() {
    let mut rig = Rig::new();
    let mut events = rig.handle.events();
    rig.memory.close();
    rig.settle();
    assert_eq!(told(&mut events), ["store-stopped"]);
    assert_eq!(raised(&mut rig), [("store-stopped", None)]);
}

#[test]
fn a_queue_that_is_deleted_takes_its_alarms_along() {
    let mut rig = Rig::new();
    let mut events = rig.handle.events();
    rig.define("q", &[("trigger", "none"), ("service-interval", "1s")]);
    rig.put("q", "m");
    rig.advance(MINUTE);
    assert_eq!(told(&mut events), ["service-interval"]);
    rig.put("q", "n");
    let handle = rig.handle.clone();
    rig.ask(async move { handle.delete_queue(name("q"), true).await })
        .unwrap();
    assert_eq!(told(&mut events), ["-service-interval"]);
    assert_eq!(raised(&mut rig), []);
}

/// A queue of one place, and a task that has put there in a unit that is still open.
fn unit_for_one_place(rig: &mut Rig) -> std::sync::Arc<oncue_manager::tasks::TaskSession> {
    let one: Pairs<'_> = &[
        ("max-depth", "1"),
        ("alarm-depth-high", "never"),
        ("trigger", "none"),
    ];
    rig.define("out", one);
    rig.trigger_plugin("pipe", &[("grants.put", "out")], &[("in", &[])]);
    rig.put("in", "m");
    let task = rig.next_task();
    rig.got(&task);
    task.put(plain("out", "late")).expect("there is room");
    task
}

#[test]
fn a_unit_of_work_that_finds_no_room_at_its_commit_rings() {
    let mut rig = Rig::new();
    let mut events = rig.handle.events();
    let task = unit_for_one_place(&mut rig);
    rig.put("out", "quicker");
    let refused = rig.drive(task.commit());
    assert!(matches!(refused, Err(PortError::Full(_))), "{refused:?}");
    rig.advance(1_000);
    assert_eq!(told(&mut events), ["queue-full"]);
    assert_eq!(raised(&mut rig), about("queue-full", "out"));
    rig.end(&task, CallEnd::Ok);
    let handle = rig.handle.clone();
    rig.ask(async move { handle.clear(&name("out")).await })
        .unwrap();
    assert_eq!(told(&mut events), ["-queue-full"]);
}

#[test]
fn a_full_queue_rings_again_after_a_kill_and_once() {
    let mut rig = Rig::new();
    let task = unit_for_one_place(&mut rig);
    rig.put("out", "quicker");
    let mut rig = rig.reopen(ManagerConfig::default(), vec![task]);
    let mut events = rig.handle.events();
    for _ in 0..5 {
        rig.advance(1_000);
    }
    assert_eq!(raised(&mut rig), about("queue-full", "out"));
    let refused = rig.put_all(vec![plain("out", "m")]);
    assert_eq!(refused.unwrap_err().code.as_str(), "queue-full");
    rig.advance(1_000);
    let told = told(&mut events);
    assert!(told.len() <= 1, "{told:?}");
}

/// Alters the queue `q`.
fn alter(rig: &mut Rig, attributes: Pairs<'_>) {
    let (handle, patch) = (rig.handle.clone(), queue_patch(attributes));
    rig.ask(async move { handle.alter_queue(name("q"), patch).await })
        .expect("the queue is valid");
}

#[test]
fn an_alarm_whose_attribute_is_taken_away_is_over_at_once() {
    let mut rig = Rig::new();
    let mut events = rig.handle.events();
    let attributes: Pairs<'_> = &[
        ("trigger", "first"),
        ("trigger-control", "off"),
        ("service-interval", "10s"),
        ("alarm-oldest", "10s"),
        ("max-depth", "2"),
    ];
    rig.define("q", attributes);
    rig.put_all(vec![plain("q", "1"), plain("q", "2")]).unwrap();
    wait(&mut rig, 1);
    assert_eq!(
        told(&mut events),
        ["depth-high", "service-interval", "oldest-waiting"]
    );
    for (attribute, over) in [
        (("service-interval", "0s"), "-service-interval"),
        (("alarm-oldest", "never"), "-oldest-waiting"),
        (("alarm-depth-high", "never"), "-depth-high"),
    ] {
        alter(&mut rig, &[attribute]);
        assert_eq!(told(&mut events), [over]);
    }
    assert_eq!(raised(&mut rig), []);
}

#[test]
fn a_refused_schedule_that_is_altered_is_no_alarm_any_more() {
    let mut rig = Rig::new();
    let mut events = rig.handle.events();
    let attributes: Pairs<'_> = &[
        ("trigger", "none"),
        ("put", "disabled"),
        ("schedule", "* * * * *"),
    ];
    rig.define("q", attributes);
    wait(&mut rig, 2);
    assert_eq!(told(&mut events), ["schedule-refused"]);
    alter(&mut rig, &[("schedule", "0 0 1 1 *")]);
    assert_eq!(told(&mut events), ["-schedule-refused"]);
    alter(&mut rig, &[("schedule", "* * * * *")]);
    wait(&mut rig, 2);
    alter(&mut rig, &[("schedule", "")]);
    assert_eq!(told(&mut events), ["schedule-refused", "-schedule-refused"]);
}

#[test]
fn a_clock_that_is_set_rings_for_nothing_and_stops_no_alarm() {
    const DAY: u64 = 86_400_000;
    for forward in [true, false] {
        let mut rig = Rig::new();
        rig.clock.advance(3 * DAY);
        rig.advance(0);
        let mut events = rig.handle.events();
        rig.define("q", &[("trigger", "none"), ("service-interval", "10s")]);
        rig.put("q", "m");
        rig.advance(5_000);
        let now = oncue_manager::Clock::now(rig.clock.as_ref()).0;
        let time = if forward { now + DAY } else { now - DAY };
        rig.clock.set(Timestamp(time));
        rig.advance(1_000);
        assert_eq!(told(&mut events), [""; 0], "{forward}");
        rig.advance(4_000);
        rig.advance(1_000);
        assert_eq!(told(&mut events), ["service-interval"], "{forward}");
    }
}
