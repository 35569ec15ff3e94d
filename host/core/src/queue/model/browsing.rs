//! Looking at messages page by page. A page starts behind a place, not behind a message, so it
//! stays where it is when messages come and go; a message that changes its state between two pages
//! may be met twice or not at all.

use std::fmt;
use std::ops::Bound;
use std::str::FromStr;

use super::contents::Contents;
use super::order::Key;
use super::{Model, State};
use crate::message::{Message, Sequence};
use crate::names::QueueName;
use crate::time::Timestamp;

/// The states in the order of a browse.
const SECTIONS: u8 = 6;

/// A place in a browse: a section of one state, and a place in its order. Written as text it is a
/// cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    section: u8,
    key: Key,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{:x}", self.section, self.key.0, self.key.1.0)
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<&str> = text.split('.').collect();
        let &[section, inverse, sequence] = parts.as_slice() else {
            return Err(());
        };
        let place = Self {
            section: section.parse().map_err(drop)?,
            key: (
                inverse.parse().map_err(drop)?,
                Sequence(u64::from_str_radix(sequence, 16).map_err(drop)?),
            ),
        };
        // Only what is written above is read: no signs, no zeros in front, no section that is none.
        if place.section < SECTIONS && place.to_string() == text {
            Ok(place)
        } else {
            Err(())
        }
    }
}

/// A page: messages with their states, and the place of the last one when more follow.
pub type Page<'a> = (Vec<(&'a Message, State)>, Option<Place>);

impl Model {
    /// Up to `max` unexpired messages behind `after`: those that are ready by priority and arrival
    /// (members of a group by their own), then the others by state. `None` when there is no such
    /// queue.
    #[must_use]
    pub fn browse(
        &mut self,
        queue: &QueueName,
        after: Option<Place>,
        max: usize,
        now: Timestamp,
        ready_only: bool,
    ) -> Option<Page<'_>> {
        let contents = self.queues.get_mut(queue)?;
        contents.line_up();
        let contents = &*contents;
        let mut page: Vec<(&Message, State)> = Vec::new();
        let mut last = after;
        for place in places(contents, after, ready_only) {
            let entry = contents.entry(place.key.1);
            if entry.has_expired(now) {
                continue;
            }
            if page.len() >= max {
                return Some((page, last));
            }
            page.push((&entry.message, contents.state(entry)));
            last = Some(place);
        }
        Some((page, None))
    }
}

/// Every place behind `after` with a message of its section. Walks the queue once for each section
/// that has any.
fn places(
    contents: &Contents,
    after: Option<Place>,
    ready_only: bool,
) -> impl Iterator<Item = Place> {
    let first = after.map_or(0, |place| place.section);
    let end = if ready_only { 1 } else { SECTIONS };
    (first..end)
        .filter(|section| population(contents, *section) > 0)
        .flat_map(move |section| {
            let start = match after {
                Some(place) if place.section == section => Bound::Excluded(place.key),
                _ => Bound::Unbounded,
            };
            let here = contents
                .behind(start)
                .filter(move |key| section_of(contents.state(contents.entry(key.1))) == section);
            here.map(move |key| Place { section, key: *key })
        })
}

fn section_of(state: State) -> u8 {
    match state {
        State::Ready => 0,
        State::InUnit => 1,
        State::Leased(_) => 2,
        State::Waiting(..) => 3,
        State::GroupHeld => 4,
        State::Parked => 5,
    }
}

fn population(contents: &Contents, section: u8) -> i64 {
    let counts = &contents.counts;
    match section {
        0 => counts.ready.iter().sum(),
        1 => counts.in_unit,
        2 => counts.leased,
        3 => counts.delayed + counts.retrying + counts.deferred,
        4 => counts.group_held,
        _ => counts.parked,
    }
}
