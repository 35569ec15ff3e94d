//! Scheduled puts: each time once, over pauses, restarts, refusals and clocks that jump.

use oncue_core::time::Timestamp;
use oncue_manager::ManagerConfig;
use oncue_manager::schedules::{MISSED_PROPERTY, PUT_BY, TIME_PROPERTY};

use crate::rig::Rig;
use crate::values::{name, queue_patch};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// The scheduled messages of a queue: the times that were due, and how many were missed.
fn scheduled(rig: &Rig, queue: &str) -> Vec<(String, u64)> {
    let messages = rig.browse(queue).into_iter().map(|browsed| {
        let header = browsed.message.header;
        assert_eq!(header.put_by.as_deref(), Some(PUT_BY));
        assert!(header.persistent);
        let property = |wanted: &str| {
            let found = header.properties.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.clone())
        };
        let time = property(TIME_PROPERTY).expect("the time");
        let missed = property(MISSED_PROPERTY).map_or(0, |missed| missed.parse().unwrap());
        (time, missed)
    });
    messages.collect()
}

fn times(rig: &Rig, queue: &str) -> Vec<String> {
    let scheduled = scheduled(rig, queue).into_iter();
    scheduled
        .map(|(time, missed)| format!("{time}+{missed}"))
        .collect()
}

/// A queue that is put to at every full hour, at half past the first one (UTC).
fn hourly(more: crate::values::Pairs<'_>) -> Rig {
    let mut rig = Rig::new();
    rig.clock.set(Timestamp(30 * MINUTE));
    rig.advance(0);
    let mut attributes = vec![("trigger", "none"), ("schedule", "0 * * * *")];
    attributes.extend_from_slice(more);
    rig.define("q", &attributes);
    rig
}

fn alter(rig: &mut Rig, attributes: crate::values::Pairs<'_>) {
    let handle = rig.handle.clone();
    let patch = queue_patch(attributes);
    rig.ask(async move { handle.alter_queue(name("q"), patch).await })
        .expect("the queue is valid");
}

/// Removes all messages.
fn clear(rig: &mut Rig) {
    let handle = rig.handle.clone();
    rig.ask(async move { handle.clear(&name("q")).await })
        .unwrap();
}

fn alarms(rig: &mut Rig) -> Vec<&'static str> {
    let handle = rig.handle.clone();
    let view = rig.ask(async move { handle.alarms().await }).unwrap();
    view.alarms.iter().map(|alarm| alarm.alarm).collect()
}

#[test]
fn each_time_is_put_once_and_the_next_one_is_shown() {
    let mut rig = hourly(&[]);
    assert_eq!(rig.queue("q").next_scheduled, Some(Timestamp(HOUR)));
    rig.advance(30 * MINUTE - 1);
    assert_eq!(times(&rig, "q"), [""; 0]);
    rig.advance(1);
    rig.advance(10);
    assert_eq!(times(&rig, "q"), ["1970-01-01T01:00:00+00:00+0"]);
    assert_eq!(rig.explain("q").next_scheduled, Some(Timestamp(2 * HOUR)));
    rig.advance(HOUR);
    assert_eq!(
        times(&rig, "q"),
        ["1970-01-01T01:00:00+00:00+0", "1970-01-01T02:00:00+00:00+0"]
    );
}

#[test]
fn a_handler_gets_the_message_like_any_other() {
    let mut rig = Rig::new();
    let patch = oncue_core::definition::QueuePatch::parse(
        &serde_json::from_str(
            r#"{"schedule": {"cron": "* * * * *", "body": "tick", "content-type": "text/plain",
                "properties": {"kind": "timer"}}}"#,
        )
        .unwrap(),
    );
    let mut update = crate::values::update("q", crate::values::ready("q", "1"), &[], &[]);
    update.definitions.as_mut().unwrap().queues = vec![(name("q"), patch.unwrap())];
    rig.update(update).unwrap();
    rig.advance(MINUTE);
    let message = rig.browse("q").remove(0).message;
    assert_eq!(message.header.content_type.as_deref(), Some("text/plain"));
    assert_eq!(
        message.header.properties[0],
        ("kind".to_owned(), "timer".to_owned())
    );
    assert_eq!(rig.run_all(), ["tick"]);
}

#[test]
fn what_was_missed_while_the_host_was_down_is_one_message_or_none() {
    for (missed, wanted) in [
        ("once", vec!["1970-01-01T05:00:00+00:00+4"]),
        ("skip", vec![]),
    ] {
        let mut rig = hourly(&[]);
        let table = format!(r#"{{"schedule": {{"cron": "0 * * * *", "missed": "{missed}"}}}}"#);
        let patch =
            oncue_core::definition::QueuePatch::parse(&serde_json::from_str(&table).unwrap());
        let handle = rig.handle.clone();
        rig.ask(async move { handle.alter_queue(name("q"), patch.unwrap()).await })
            .unwrap();
        rig.clock.advance(5 * HOUR - 5 * MINUTE);
        let mut rig = rig.reopen(ManagerConfig::default(), Vec::new());
        assert_eq!(times(&rig, "q"), wanted, "{missed}");
        rig.advance(35 * MINUTE);
        assert_eq!(times(&rig, "q").len(), wanted.len() + 1, "{missed}");
        // And it is not put again by the next start.
        let rig = rig.reopen(ManagerConfig::default(), Vec::new());
        assert_eq!(times(&rig, "q").len(), wanted.len() + 1, "{missed}");
    }
}

#[test]
fn a_start_soon_after_a_skipped_time_is_in_time() {
    let mut rig = Rig::new();
    let table = r#"{"trigger": "none", "schedule": {"cron": "0 * * * *", "missed": "skip"}}"#;
    let patch = oncue_core::definition::QueuePatch::parse(&serde_json::from_str(table).unwrap());
    let handle = rig.handle.clone();
    rig.ask(async move { handle.define_queue(name("q"), patch.unwrap()).await })
        .unwrap();
    let now = oncue_manager::Clock::now(rig.clock.as_ref()).0;
    rig.clock.advance(HOUR - now % HOUR + MINUTE);
    let rig = rig.reopen(ManagerConfig::default(), Vec::new());
    assert_eq!(times(&rig, "q").len(), 1);
}

#[test]
fn a_pause_holds_puts_back_and_its_end_makes_up_for_them() {
    let mut rig = hourly(&[]);
    let pause = |rig: &mut Rig, paused| {
        let handle = rig.handle.clone();
        rig.ask(async move { handle.pause_queue(name("q"), paused).await })
            .unwrap();
    };
    pause(&mut rig, true);
    rig.advance(HOUR);
    rig.advance(HOUR);
    assert_eq!(times(&rig, "q"), [""; 0]);
    pause(&mut rig, false);
    rig.advance(1_000);
    assert_eq!(times(&rig, "q"), ["1970-01-01T02:00:00+00:00+1"]);
}

#[test]
fn a_put_that_is_refused_is_tried_again_until_the_next_time_takes_its_place() {
    let mut rig = hourly(&[("max-depth", "1")]);
    rig.advance(HOUR);
    assert_eq!(times(&rig, "q"), ["1970-01-01T01:00:00+00:00+0"]);
    // Full at two and three o'clock.
    for _ in 0..120 {
        rig.advance(MINUTE);
    }
    assert_eq!(alarms(&mut rig).len(), 3, "full, high, schedule-refused");
    assert!(alarms(&mut rig).contains(&"schedule-refused"));
    clear(&mut rig);
    rig.advance(1_000);
    assert_eq!(times(&rig, "q"), ["1970-01-01T03:00:00+00:00+1"]);
    assert!(!alarms(&mut rig).contains(&"schedule-refused"));
}

#[test]
fn a_put_that_is_disabled_waits_for_its_enabling() {
    let mut rig = hourly(&[("put", "disabled")]);
    rig.advance(31 * MINUTE);
    assert_eq!(alarms(&mut rig), ["schedule-refused"]);
    assert_eq!(times(&rig, "q"), [""; 0]);
    alter(&mut rig, &[("put", "enabled")]);
    rig.advance(1_000);
    assert_eq!(times(&rig, "q"), ["1970-01-01T01:00:00+00:00+0"]);
    assert_eq!(alarms(&mut rig), [""; 0]);
}

#[test]
fn a_clock_that_goes_back_puts_nothing_twice() {
    let mut rig = hourly(&[]);
    rig.advance(31 * MINUTE);
    assert_eq!(times(&rig, "q").len(), 1);
    rig.clock.set(Timestamp(10 * MINUTE));
    rig.advance(0);
    for _ in 0..4 {
        rig.advance(20 * MINUTE);
    }
    assert_eq!(times(&rig, "q"), ["1970-01-01T01:00:00+00:00+0"]);
    rig.advance(40 * MINUTE);
    assert_eq!(times(&rig, "q").len(), 2);
}

#[test]
fn an_altered_schedule_begins_anew_and_one_that_is_taken_away_ends() {
    let mut rig = hourly(&[]);
    alter(&mut rig, &[("schedule", "15 * * * *")]);
    assert_eq!(
        rig.queue("q").next_scheduled,
        Some(Timestamp(HOUR + 15 * MINUTE))
    );
    rig.advance(50 * MINUTE);
    assert_eq!(times(&rig, "q"), ["1970-01-01T01:15:00+00:00+0"]);
    alter(&mut rig, &[("schedule", "")]);
    assert_eq!(rig.queue("q").next_scheduled, None);
    rig.advance(3 * HOUR);
    assert_eq!(times(&rig, "q").len(), 1);
    let mut rig = rig.reopen(ManagerConfig::default(), Vec::new());
    rig.advance(3 * HOUR);
    assert_eq!(times(&rig, "q").len(), 1);
}

#[test]
fn a_deleted_queue_leaves_no_schedule_behind() {
    let mut rig = hourly(&[]);
    let handle = rig.handle.clone();
    rig.ask(async move { handle.delete_queue(name("q"), true).await })
        .unwrap();
    rig.advance(3 * HOUR);
    rig.define("q", &[("trigger", "none")]);
    let mut rig = rig.reopen(ManagerConfig::default(), Vec::new());
    rig.advance(3 * HOUR);
    assert_eq!(rig.depth("q"), 0);
}

#[test]
fn another_time_zone_is_another_schedule() {
    let mut rig = hourly(&[]);
    alter(&mut rig, &[("schedule", "0 6 * * * UTC")]);
    assert_eq!(rig.queue("q").next_scheduled, Some(Timestamp(6 * HOUR)));
    alter(&mut rig, &[("schedule", "0 6 * * * Europe/Berlin")]);
    assert_eq!(rig.queue("q").next_scheduled, Some(Timestamp(5 * HOUR)));
    rig.advance(5 * HOUR);
    let berlin = "1970-01-01T06:00:00+01:00+0";
    assert_eq!(times(&rig, "q"), [berlin]);
    // The same hour elsewhere: it is due once more on this day.
    alter(&mut rig, &[("schedule", "0 6 * * * UTC")]);
    let mut rig = rig.reopen(ManagerConfig::default(), Vec::new());
    rig.advance(HOUR);
    assert_eq!(times(&rig, "q"), [berlin, "1970-01-01T06:00:00+00:00+0"]);
}

#[test]
fn a_queue_that_is_deleted_while_a_put_is_refused_leaves_neither_alarm_nor_put() {
    let mut rig = hourly(&[("put", "disabled")]);
    rig.advance(31 * MINUTE);
    assert_eq!(alarms(&mut rig), ["schedule-refused"]);
    let handle = rig.handle.clone();
    rig.ask(async move { handle.delete_queue(name("q"), true).await })
        .unwrap();
    assert_eq!(alarms(&mut rig), [""; 0]);
    rig.define("q", &[("trigger", "none")]);
    rig.advance(2 * HOUR);
    assert_eq!(rig.depth("q"), 0);
}

#[test]
fn a_schedule_of_every_second_puts_each_of_a_minute() {
    let mut rig = hourly(&[]);
    alter(&mut rig, &[("schedule", "* * * * * *")]);
    for _ in 0..60 {
        rig.advance(1_000);
    }
    let found = times(&rig, "q");
    let seconds: std::collections::BTreeSet<_> = found.iter().collect();
    assert_eq!((found.len(), seconds.len()), (60, 60));
}
