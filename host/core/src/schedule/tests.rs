use super::*;

/// A time as the zone's clock shows it, in milliseconds.
fn at(text: &str) -> Timestamp {
    let at = DateTime::parse_from_rfc3339(text).expect("a time with its offset");
    Timestamp(u64::try_from(at.timestamp_millis()).expect("after 1970"))
}

/// The first times after `after`.
fn check(schedule: &str, after: &str, wanted: &[&str]) {
    let timetable = Schedule::parse(schedule).expect("a schedule").timetable();
    let mut last = at(after);
    let mut times = Vec::new();
    for _ in wanted {
        last = timetable.next(last).expect("a next time");
        times.push(timetable.written(last));
    }
    assert_eq!(times, wanted, "{schedule} after {after}");
}

fn refused(schedule: &str, part: &str) {
    let why = Schedule::parse(schedule).expect_err(schedule);
    assert!(why.contains(part), "{schedule:?}: {why}");
}

#[test]
fn an_expression_is_read_in_the_clock_of_its_zone() {
    check(
        "0 6 * * * Europe/Berlin",
        "2026-01-10T05:59:59.500+01:00",
        &["2026-01-10T06:00:00+01:00", "2026-01-11T06:00:00+01:00"],
    );
    check(
        "30 8 * * MON-FRI",
        "2026-01-09T08:30:00Z",
        &["2026-01-12T08:30:00+00:00"],
    );
    check(
        "@daily Asia/Kathmandu",
        "2026-01-09T12:00:00Z",
        &["2026-01-10T00:00:00+05:45"],
    );
    check(
        "*/20 * * * * * UTC",
        "2026-01-09T08:30:01Z",
        &["2026-01-09T08:30:20+00:00", "2026-01-09T08:30:40+00:00"],
    );
}

#[test]
fn the_night_that_the_clock_is_turned_forward() {
    // From 02:00 to 03:00 on 29 March 2026: a fixed time falls on the end of the gap.
    check(
        "30 2 * * * Europe/Berlin",
        "2026-03-28T12:00:00+01:00",
        &["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"],
    );
    check(
        "*/30 * * * * Europe/Berlin",
        "2026-03-29T01:30:00+01:00",
        &["2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"],
    );
}

#[test]
fn the_night_that_the_clock_is_turned_back() {
    // From 03:00 to 02:00 on 25 October 2026: a fixed time comes once, the first time.
    check(
        "30 2 * * * Europe/Berlin",
        "2026-10-24T12:00:00+02:00",
        &["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"],
    );
    check(
        "*/30 * * * * Europe/Berlin",
        "2026-10-25T02:00:00+02:00",
        &[
            "2026-10-25T02:30:00+02:00",
            "2026-10-25T02:00:00+01:00",
            "2026-10-25T02:30:00+01:00",
            "2026-10-25T03:00:00+01:00",
        ],
    );
}

#[test]
fn a_leap_day_comes_when_it_comes() {
    check(
        "0 0 29 2 *",
        "2026-01-01T00:00:00Z",
        &["2028-02-29T00:00:00+00:00", "2032-02-29T00:00:00+00:00"],
    );
}

#[test]
fn what_never_comes_or_cannot_be_read_is_refused() {
    refused("0 0 30 2 *", "names a day that never comes");
    refused("0 0 0 31 11 *", "names a day that never comes");
    refused("", "is empty");
    refused("every day", "(it has 2 fields); write minute, hour");
    refused("hourly", "(it has 1 field)");
    refused("* * * *", "(it has 4 fields)");
    refused("61 * * * *", "(minute is \"61\"; use 0 to 59, ");
    refused("61 * * * * *", "(second is \"61\"; use 0 to 59, ");
    refused("0 24 * * *", "(hour is \"24\"; use 0 to 23, ");
    refused("0 6 * * MON-FRY", "(day of week is \"MON-FRY\"; use 0 to 7");
    refused("0 6 * * * berlin", "(day of week is \"berlin\"; ");
    refused("0 6 * * * berlin", "and a time zone behind them");
    refused("*/0 * * * *", "(minute is \"*/0\"; ");
    refused("@dayly", "(\"@dayly\" is not known); use @yearly");
    refused("* * * * * * 2030", "names \"2030\", which is no time zone");
    refused(
        "0 6 * * * Europe/Berln",
        "names \"Europe/Berln\", which is no time zone",
    );
    refused("@daily Mars", "names \"Mars\", which is no time zone");
    refused("*/0.5 * * * * *", "(second is \"*/0.5\"; ");
}

#[test]
fn what_is_due_is_the_last_time_and_how_many_came_before_it() {
    let timetable = Schedule::parse("*/10 * * * *")
        .expect("a schedule")
        .timetable();
    let last = at("2026-01-09T08:00:00Z");
    let due = |now: &str| timetable.due(last, at(now));
    assert_eq!(due("2026-01-09T08:09:59Z"), None);
    let first = DueTime {
        at: at("2026-01-09T08:10:00Z"),
        missed: 0,
    };
    assert_eq!(due("2026-01-09T08:10:00Z"), Some(first));
    assert_eq!(due("2026-01-09T08:19:59Z"), Some(first));
    let later = DueTime {
        at: at("2026-01-09T09:00:00Z"),
        missed: 5,
    };
    assert_eq!(due("2026-01-09T09:05:00Z"), Some(later));
    // The clock went back: nothing is due again.
    assert_eq!(due("2026-01-09T07:00:00Z"), None);
}

#[test]
fn a_long_time_of_a_frequent_schedule_costs_little() {
    for expression in ["* * * * * *", "* * * * *"] {
        let timetable = Schedule::parse(expression).expect("a schedule").timetable();
        let now = at("2026-01-09T08:00:00Z");
        let due = timetable.due(Timestamp(0), now).expect("due");
        assert_eq!((due.at, due.missed), (now, MAX_MISSED), "{expression}");
    }
}

#[test]
fn every_nickname_that_an_error_names_is_one() {
    let names = NICKNAMES
        .split([',', ' '])
        .filter(|name| name.starts_with('@'));
    for name in names {
        assert!(Schedule::parse(name).is_ok(), "{name}");
        assert!(Schedule::parse(&format!("{name} Europe/Berlin")).is_ok());
    }
}
