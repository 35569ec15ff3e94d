//! Times at which the queue manager itself puts a message: a cron expression in a time zone, as
//! arithmetic on the calendar. What time it is, is an argument.
//!
//! When a clock is turned forward, a fixed time in the hour that is left out falls on its end; when
//! it is turned back, a fixed time in the hour that comes twice falls on the first. Expressions
//! that repeat within the hour or every hour go by elapsed time and run in both.

use std::collections::BTreeMap;
use std::str::FromStr;

use chrono::{DateTime, TimeZone};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

use crate::time::{Millis, Timestamp};

/// Times counted one by one of those that were missed; more are said to be as many.
pub const MAX_MISSED: u64 = 1_000;

/// How late a put may be and still be in time, milliseconds.
pub const IN_TIME: Millis = 60_000;

/// Fields of an expression with seconds.
const MAX_FIELDS: usize = 6;

/// Years in which an expression must name a day: every calendar comes round in them.
const YEARS: &str = "2000-2099";

/// Starts of the look for the last time that is due, when the one before is too long ago.
const LOOK_BACK: [Millis; 3] = [86_400_000, 3_600_000, 600_000];

/// What becomes of times that were missed while the host was down or paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Missed {
    /// One message for all of them.
    #[default]
    Once,
    /// None.
    Skip,
}

impl Missed {
    /// The words, in the order of the documentation.
    pub const WORDS: &[(&'static str, Self)] = &[("once", Self::Once), ("skip", Self::Skip)];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Skip => "skip",
        }
    }
}

/// What is put when. An expression that cannot be read or never falls due is none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The cron expression: minute, hour, day of month, month, day of week, with seconds before
    /// them if there are six.
    pub cron: String,
    /// In whose clock.
    pub zone: Tz,
    /// What becomes of times that were missed.
    pub missed: Missed,
    /// The message's body.
    pub body: String,
    /// Its content type.
    pub content_type: Option<String>,
    /// Its properties, beside those that tell of the schedule.
    pub properties: BTreeMap<String, String>,
}

impl Schedule {
    /// Reads an expression, with the time zone behind it if one is named.
    ///
    /// # Errors
    /// The fact and the cure, as they follow after the text in a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let (last, before) = fields
            .split_last()
            .ok_or_else(|| "is empty; write a cron expression".to_owned())?;
        let nickname = fields.first().is_some_and(|first| first.starts_with('@'));
        match zone(last) {
            Ok(zone) if !before.is_empty() => Self::new(&before.join(" "), zone),
            // What cannot be a field must be meant as a zone.
            Err(why) if last.contains('/') && last.contains(char::is_lowercase) => Err(why),
            Err(why) if fields.len() > MAX_FIELDS || (nickname && fields.len() > 1) => Err(why),
            _ => Self::new(text.trim(), Tz::UTC),
        }
    }

    /// A schedule of an empty message.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn new(cron: &str, zone: Tz) -> Result<Self, String> {
        let schedule = Self {
            cron: cron.split_whitespace().collect::<Vec<_>>().join(" "),
            zone,
            missed: Missed::Once,
            body: String::new(),
            content_type: None,
            properties: BTreeMap::new(),
        };
        parse_cron(&schedule.cron)?;
        Ok(schedule)
    }

    /// The times, ready to be asked.
    #[must_use]
    pub fn timetable(&self) -> Timetable {
        let cron = parse_cron(&self.cron).expect("a schedule's expression was read before");
        Timetable {
            cron,
            zone: self.zone,
        }
    }
}

/// Reads a time zone's name.
///
/// # Errors
/// The fact and the cure, as they follow after the text in a sentence.
pub fn zone(name: &str) -> Result<Tz, String> {
    Tz::from_str(name).map_err(|_unknown| {
        format!("names \"{name}\", which is no time zone; use one like Europe/Berlin, or UTC")
    })
}

fn parser(year: Year) -> CronParser {
    CronParser::builder()
        .seconds(Seconds::Optional)
        .year(year)
        .build()
}

/// Fields of an expression with seconds, with what may stand there.
const FIELDS: [(&str, &str); MAX_FIELDS] = [
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of month", "1 to 31, or L for the last one"),
    ("month", "1 to 12, or JAN to DEC"),
    ("day of week", "0 to 7, or SUN to SAT"),
];

/// Words that stand for a whole expression.
const NICKNAMES: &str = "@yearly, @monthly, @weekly, @daily or @hourly";

/// Why an expression cannot be read: which of its fields, where it is one alone.
fn fault(text: &str) -> String {
    const CURE: &str = "write minute, hour, day of month, month and day of week, such as \
                        0 6 * * MON-FRI, and a time zone behind them unless it is UTC";
    let fields: Vec<&str> = text.split_whitespace().collect();
    if text.starts_with('@') {
        return format!("is no cron expression (\"{text}\" is not known); use {NICKNAMES}");
    }
    let Some(names) = FIELDS.get(MAX_FIELDS.saturating_sub(fields.len())..) else {
        return format!("is no cron expression; {CURE}");
    };
    if names.len() + 1 < MAX_FIELDS || fields.len() > MAX_FIELDS {
        let count = fields.len();
        let fields = if count == 1 { "field" } else { "fields" };
        return format!("is no cron expression (it has {count} {fields}); {CURE}");
    }
    let wrong = names.iter().enumerate().find(|(place, _)| {
        let alone = (0..names.len()).map(|at| match fields.get(at) {
            Some(field) if at == *place => field,
            _ => "*",
        });
        let alone: Vec<&str> = alone.collect();
        parser(Year::Disallowed).parse(&alone.join(" ")).is_err()
    });
    match wrong.and_then(|(place, name)| Some((name, fields.get(place)?))) {
        Some(((name, range), field)) => format!(
            "is no cron expression ({name} is \"{field}\"; use {range}, *, a-b, a list with \
             commas, or steps such as */5); {CURE}"
        ),
        None => format!("is no cron expression; {CURE}"),
    }
}

fn parse_cron(text: &str) -> Result<Cron, String> {
    let refused = |_said| fault(text);
    let cron = parser(Year::Disallowed).parse(text).map_err(refused)?;
    let seconds = match text.split_whitespace().count() {
        // A nickname, such as @daily.
        1 => return Ok(cron),
        MAX_FIELDS => "",
        _ => "0 ",
    };
    // Within some years: the search for a day that never comes would be a long one.
    let bounded = parser(Year::Required)
        .parse(&format!("{seconds}{text} {YEARS}"))
        .map_err(refused)?;
    let start = DateTime::UNIX_EPOCH.with_timezone(&Tz::UTC);
    if bounded.find_next_occurrence(&start, true).is_err() {
        return Err("names a day that never comes; correct the day or the month".to_owned());
    }
    Ok(cron)
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueTime {
    /// The last time that is due.
    pub at: Timestamp,
    /// Times before it that were due too; [`MAX_MISSED`] stands for as many or more.
    pub missed: u64,
}

/// The times of a schedule.
#[derive(Clone, Debug)]
pub struct Timetable {
    cron: Cron,
    zone: Tz,
}

impl Timetable {
    /// The first time after `after`; `None` past the end of the calendar.
    #[must_use]
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let after = self.local(after)?;
        let next = self.cron.find_next_occurrence(&after, false).ok()?;
        u64::try_from(next.timestamp_millis()).ok().map(Timestamp)
    }

    /// What is due at `now`, when the last time done was `last`. The work is bounded, however long
    /// ago that was.
    #[must_use]
    pub fn due(&self, last: Timestamp, now: Timestamp) -> Option<DueTime> {
        let first = self.next(last).filter(|first| *first <= now)?;
        if let Some(due) = self.count(first, now) {
            return Some(due);
        }
        let starts = LOOK_BACK
            .iter()
            .map(|back| Timestamp(now.0.saturating_sub(*back)));
        starts
            .filter(|start| *start > first)
            .find_map(|start| self.count(self.next(start)?, now))
            .map(|due| DueTime {
                missed: MAX_MISSED,
                ..due
            })
    }

    /// From `first`, which is due, to the last that is; `None` when there are too many.
    fn count(&self, first: Timestamp, now: Timestamp) -> Option<DueTime> {
        let mut due = DueTime {
            at: first,
            missed: 0,
        };
        if first > now {
            return None;
        }
        while due.missed < MAX_MISSED {
            match self.next(due.at).filter(|next| *next <= now) {
                Some(next) => due.at = next,
                None => return Some(due),
            }
            due.missed += 1;
        }
        None
    }

    /// A time as the clock of the zone shows it, with the offset.
    #[must_use]
    pub fn written(&self, at: Timestamp) -> String {
        self.local(at).map(|at| at.to_rfc3339()).unwrap_or_default()
    }

    fn local(&self, at: Timestamp) -> Option<DateTime<Tz>> {
        let millis = i64::try_from(at.0).ok()?;
        self.zone.timestamp_millis_opt(millis).single()
    }
}

#[cfg(test)]
mod tests;
