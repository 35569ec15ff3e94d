//! The attribute `schedule`: a text where that is enough, else a table.

use std::collections::BTreeMap;

use super::collection::TextTable;
use super::fault::Reader;
use super::kind::Kind;
use super::limits::{MAX_KEY, MAX_VALUE};
use super::raw::Raw;
use crate::schedule::{Missed, Schedule, zone};

/// A schedule, or empty for none.
pub(super) struct OptionalSchedule;

/// Members of the table, in the order of the documentation.
const MEMBERS: &str = "cron, zone, missed, body, content-type and properties";

impl Kind<Option<Box<Schedule>>> for OptionalSchedule {
    fn accepts(&self) -> String {
        format!("a cron expression with a time zone, a table of {MEMBERS}, or \"\" for none")
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<Option<Box<Schedule>>> {
        match raw {
            Raw::Text(text) if text.is_empty() => Some(None),
            Raw::Text(text) => match Schedule::parse(text) {
                Ok(schedule) => Some(Some(Box::new(schedule))),
                Err(why) => {
                    reader.fault(why);
                    None
                }
            },
            Raw::Table(entries) => read_table(entries, reader).map(|read| Some(Box::new(read))),
            _ => self.refuse(raw, reader),
        }
    }

    fn write(&self, value: &Option<Box<Schedule>>) -> Raw {
        let Some(schedule) = value else {
            return Raw::text("");
        };
        let utc = schedule.zone == chrono_tz::Tz::UTC;
        let plain = Schedule::new(&schedule.cron, schedule.zone);
        if plain.is_ok_and(|plain| plain == **schedule) {
            return Raw::Text(match utc {
                true => schedule.cron.clone(),
                false => format!("{} {}", schedule.cron, schedule.zone),
            });
        }
        let mut entries = vec![("cron".to_owned(), Raw::text(schedule.cron.as_str()))];
        let mut add = |name: &str, value: Raw| entries.push((name.to_owned(), value));
        if !utc {
            add("zone", Raw::text(schedule.zone.name()));
        }
        if schedule.missed != Missed::Once {
            add("missed", Raw::text(schedule.missed.as_str()));
        }
        if !schedule.body.is_empty() {
            add("body", Raw::text(schedule.body.as_str()));
        }
        if let Some(content_type) = &schedule.content_type {
            add("content-type", Raw::text(content_type.as_str()));
        }
        if !schedule.properties.is_empty() {
            add("properties", PROPERTIES.write(&schedule.properties));
        }
        Raw::Table(entries)
    }
}

const PROPERTIES: TextTable = TextTable { environment: false };

/// A text of the table, within a bound of bytes.
fn text<'a>(value: &'a Raw, max: usize, reader: &mut Reader) -> Option<&'a str> {
    match value {
        Raw::Text(text) if text.len() <= max => return Some(text),
        Raw::Text(text) => reader.fault(format!("has {} bytes; use at most {max}", text.len())),
        _ => reader.fault(format!("is {}; use a text", value.shown())),
    }
    None
}

fn read_table(entries: &[(String, Raw)], reader: &mut Reader) -> Option<Schedule> {
    let before = reader.count();
    let mut cron = None;
    let mut in_zone = chrono_tz::Tz::UTC;
    let mut missed = Missed::Once;
    let (mut body, mut content_type) = (String::new(), None);
    let mut properties = BTreeMap::new();
    for (index, (name, value)) in entries.iter().enumerate() {
        let twice = entries.iter().take(index).any(|(known, _)| known == name);
        reader.within_key(name, |reader| match name.as_str() {
            _ if twice => reader.fault("is given twice; remove one"),
            "cron" => cron = text(value, MAX_KEY, reader).map(str::to_owned),
            "zone" => match text(value, MAX_KEY, reader).map(zone) {
                Some(Ok(zone)) => in_zone = zone,
                Some(Err(why)) => reader.fault(why),
                None => {}
            },
            "missed" => {
                let word = text(value, MAX_KEY, reader);
                match Missed::WORDS.iter().find(|(known, _)| Some(*known) == word) {
                    Some((_, found)) => missed = *found,
                    None if word.is_some() => {
                        let shown = value.shown();
                        reader.fault(format!("is {shown}; use \"once\" or \"skip\""));
                    }
                    None => {}
                }
            }
            "body" => {
                body = text(value, MAX_VALUE, reader)
                    .unwrap_or_default()
                    .to_owned()
            }
            "content-type" => {
                content_type = text(value, MAX_KEY, reader)
                    .filter(|text| !text.is_empty())
                    .map(str::to_owned);
            }
            "properties" => properties = PROPERTIES.read(value, reader).unwrap_or_default(),
            _ => reader.fault(format!("is no part of a schedule; use {MEMBERS}")),
        });
    }
    let schedule = match cron.as_deref().map(|cron| Schedule::new(cron, in_zone)) {
        Some(Ok(schedule)) => Some(schedule),
        Some(Err(why)) => {
            reader.within_key("cron", |reader| reader.fault(why));
            None
        }
        None => {
            if !entries.iter().any(|(name, _)| name == "cron") {
                reader.fault("has no cron; say when");
            }
            None
        }
    };
    let schedule = schedule.filter(|_| reader.count() == before)?;
    Some(Schedule {
        missed,
        body,
        content_type,
        properties,
        ..schedule
    })
}
