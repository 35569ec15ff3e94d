//! Looking at messages page by page: section after section by state, each by priority and arrival.
//!
//! Reads the indexes on disk directly, beside the windows, so that a look does not grow what is in
//! memory.

use std::ops::Bound;

use oncue_core::cursor;
use oncue_core::message::MAX_PRIORITY;
use oncue_core::names::QueueName;

use super::codec::{Home, IndexRow, PlaceRow, Record};
use super::engine::Engine;
use super::index::Index;
use super::layout::{self, Key, QueueNo, Space};
use super::look::Found;
use crate::{Browse, Browsed, MessageState, Page, StoreError};

/// Rows that one page looks at, at most: bounds its time. The cursor then stands where the look
/// ended.
const LOOKED_AT_MAX: usize = 20_000;

/// The states in the order of a browse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Ready,
    InUnit,
    Leased,
    Waiting,
    GroupHeld,
    Parked,
}

const SECTIONS: [Section; 6] = [
    Section::Ready,
    Section::InUnit,
    Section::Leased,
    Section::Waiting,
    Section::GroupHeld,
    Section::Parked,
];

/// The inverse priority and the sequence: the order within a section.
type Spot = (u8, u64);

/// What a look for the next message of a section came to.
enum Next {
    Found(Box<Found>),
    /// Nothing up to there, after as many rows as one page may look at.
    Tired(Spot),
    End,
}

/// Where a page ended. Written as `SECTION.INVERSE.SEQUENCE`, the last in hexadecimal, and sealed
/// for its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor {
    section: Section,
    spot: Spot,
}

impl Cursor {
    fn write(self, queue: &QueueName) -> String {
        let (section, (inverse, sequence)) = (self.section as u8, self.spot);
        cursor::seal(
            &[queue.as_str()],
            &format!("{section}.{inverse}.{sequence:x}"),
        )
    }

    fn read(text: &str, queue: &QueueName) -> Result<Self, StoreError> {
        let read = || {
            let mut parts = cursor::open(&[queue.as_str()], text)?.splitn(3, '.');
            let section = *SECTIONS.get(parts.next()?.parse::<usize>().ok()?)?;
            let inverse = parts.next()?.parse().ok()?;
            let sequence = u64::from_str_radix(parts.next()?, 16).ok()?;
            Some(Self {
                section,
                spot: (inverse, sequence),
            })
        };
        read().ok_or(StoreError::BadCursor)
    }
}

impl Index {
    /// One page.
    ///
    /// # Errors
    /// As [`crate::Store::browse`].
    pub(super) fn browse(&mut self, engine: &Engine, browse: &Browse) -> Result<Page, StoreError> {
        let number = self
            .number(&browse.queue)
            .ok_or_else(|| StoreError::UnknownQueue(browse.queue.clone()))?;
        let from = browse.cursor.as_deref();
        let from = from.map(|text| Cursor::read(text, &browse.queue));
        let from = from.transpose()?;
        let mut page = Page::default();
        let mut last = from;
        let mut looked_at = 0;
        for section in SECTIONS {
            if from.is_some_and(|cursor| section < cursor.section)
                || (browse.ready_only && section != Section::Ready)
                || self.population(number, section) == 0
            {
                continue;
            }
            let mut spot = from
                .filter(|cursor| cursor.section == section)
                .map(|cursor| cursor.spot);
            // One more than wanted is looked for, so that a page that ends the browse says so.
            loop {
                let found =
                    match self.next_in(engine, number, section, spot, browse, &mut looked_at)? {
                        Next::End => break,
                        Next::Tired(spot) => {
                            page.next = Some(Cursor { section, spot }.write(&browse.queue));
                            return Ok(page);
                        }
                        Next::Found(found) => found,
                    };
                let here = (MAX_PRIORITY - found.facts.priority, found.facts.sequence);
                if page.messages.len() >= browse.max {
                    page.next = last.map(|cursor| cursor.write(&browse.queue));
                    return Ok(page);
                }
                spot = Some(here);
                last = Some(Cursor {
                    section,
                    spot: here,
                });
                let state = self.state_of(
                    engine,
                    &found.facts,
                    found.standing.home,
                    found.holder.is_some(),
                )?;
                page.messages.push(Browsed {
                    message: found.message,
                    state,
                });
            }
        }
        Ok(page)
    }

    fn population(&self, number: QueueNo, section: Section) -> i64 {
        let Some(queue) = self.queues.get(&number) else {
            return 0;
        };
        let counts = &queue.counts;
        match section {
            Section::Ready => counts.ready.iter().sum(),
            Section::InUnit => counts.in_unit,
            Section::Leased => counts.leased,
            Section::Waiting => counts.delayed + counts.retrying + counts.deferred,
            Section::GroupHeld => counts.group_held,
            Section::Parked => counts.parked,
        }
    }

    /// The next unexpired message of a section after `spot`. Damaged ones are passed over.
    fn next_in(
        &mut self,
        engine: &Engine,
        number: QueueNo,
        section: Section,
        mut spot: Option<Spot>,
        browse: &Browse,
        looked_at: &mut usize,
    ) -> Result<Next, StoreError> {
        while let Some((next, fits)) = self.spot_after(engine, number, section, spot, looked_at)? {
            if !fits {
                return Ok(Next::Tired(next));
            }
            spot = Some(next);
            let found = match self.locate(engine, number, next.1) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(StoreError::Corrupt(why)) => {
                    tracing::warn!(
                        why,
                        sequence = next.1,
                        "a damaged message is left out of a browse"
                    );
                    continue;
                }
                Err(error) => return Err(error),
            };
            if found.facts.expires.is_none_or(|time| time > browse.now) {
                return Ok(Next::Found(Box::new(found)));
            }
        }
        Ok(Next::End)
    }

    /// The first spot after `spot` with a message in that section's state, and whether it is one:
    /// it is not when the look has become too long.
    fn spot_after(
        &mut self,
        engine: &Engine,
        number: QueueNo,
        section: Section,
        spot: Option<Spot>,
        looked_at: &mut usize,
    ) -> Result<Option<(Spot, bool)>, StoreError> {
        let loose = self
            .loose_after(engine, number, section, spot)?
            .map(|spot| (spot, true));
        let stored = match section {
            Section::InUnit => {
                let held = self.held.values().filter(|held| held.facts.queue == number);
                let spots =
                    held.map(|held| (MAX_PRIORITY - held.facts.priority, held.facts.sequence));
                let first = spots
                    .filter(|one| spot.is_none_or(|spot| *one > spot))
                    .min();
                return Ok(first.map(|spot| (spot, true)));
            }
            Section::Ready => {
                let ready = self.row_after(engine, number, Row::Ready, section, spot, looked_at)?;
                let straggler =
                    self.row_after(engine, number, Row::Straggler, section, spot, looked_at)?;
                let member =
                    self.row_after(engine, number, Row::Member, section, spot, looked_at)?;
                [ready, straggler, member].into_iter().flatten().min()
            }
            Section::GroupHeld => {
                let straggler =
                    self.row_after(engine, number, Row::Straggler, section, spot, looked_at)?;
                let member =
                    self.row_after(engine, number, Row::Member, section, spot, looked_at)?;
                [straggler, member].into_iter().flatten().min()
            }
            Section::Leased | Section::Waiting => {
                self.row_after(engine, number, Row::Place, section, spot, looked_at)?
            }
            Section::Parked => {
                self.row_after(engine, number, Row::Parked, section, spot, looked_at)?
            }
        };
        Ok([loose, stored].into_iter().flatten().min())
    }

    fn loose_after(
        &mut self,
        engine: &Engine,
        number: QueueNo,
        section: Section,
        spot: Option<Spot>,
    ) -> Result<Option<Spot>, StoreError> {
        let mut position = spot;
        loop {
            let start = position.map_or(Bound::Unbounded, Bound::Excluded);
            let loose = self.queues.get(&number).map(|queue| &queue.loose);
            let next =
                loose.and_then(|loose| loose.range((start, Bound::Unbounded)).next().copied());
            let Some(spot) = next else { return Ok(None) };
            position = Some(spot);
            let Some(message) = self.loose.messages.get(&spot.1) else {
                continue;
            };
            let (facts, home) = (message.facts.clone(), message.standing.home);
            let held = self.held.contains_key(&spot.1);
            if section_of(self.state_of(engine, &facts, home, held)?) == section {
                return Ok(Some(spot));
            }
        }
    }

    fn row_after(
        &mut self,
        engine: &Engine,
        number: QueueNo,
        kind: Row,
        section: Section,
        spot: Option<Spot>,
        looked_at: &mut usize,
    ) -> Result<Option<(Spot, bool)>, StoreError> {
        let (start, end) = kind.range(number, spot, self.low_spot(number, kind));
        let view = self.view.clone();
        for row in engine.scan(&view, kind.space(), &start, &end) {
            let (key, record) = row?;
            *looked_at += 1;
            let Some((_, priority, sequence)) = kind.split(&key) else {
                continue;
            };
            if self.held.contains_key(&sequence) {
                continue;
            }
            let (home, group) = kind.read(&key, &record)?;
            let here = (MAX_PRIORITY - priority, sequence);
            let fits = match (home, section) {
                (Home::Leased { .. }, Section::Leased)
                | (Home::Waiting(..), Section::Waiting)
                | (Home::Parked, Section::Parked) => true,
                (Home::Free, Section::Ready | Section::GroupHeld) => {
                    let ready = match &group {
                        Some(name) => self.group(engine, number, name)?.is_ready(sequence),
                        None => true,
                    };
                    ready == (section == Section::Ready)
                }
                _ => false,
            };
            if fits || *looked_at > LOOKED_AT_MAX {
                return Ok(Some((here, fits)));
            }
        }
        Ok(None)
    }

    /// Where a lane index starts: without it a scan walks what was deleted before.
    fn low_spot(&self, number: QueueNo, kind: Row) -> Option<Spot> {
        if matches!(kind, Row::Place | Row::Parked) {
            return None;
        }
        let queue = self.queues.get(&number)?;
        let lanes = queue.lanes.iter().enumerate().rev();
        let mut lows = lanes.filter_map(|(priority, lane)| {
            let lane = lane.as_deref()?;
            let low = match kind {
                Row::Ready => lane.ready.low(),
                Row::Straggler => lane.straggler.low(),
                Row::Member | Row::Place | Row::Parked => lane.member.low(),
            }?;
            Some((MAX_PRIORITY - u8::try_from(priority).ok()?, low))
        });
        lows.next()
    }
}

fn section_of(state: MessageState) -> Section {
    match state {
        MessageState::Ready => Section::Ready,
        MessageState::InUnit => Section::InUnit,
        MessageState::Leased(_) => Section::Leased,
        MessageState::Waiting(..) => Section::Waiting,
        MessageState::GroupHeld => Section::GroupHeld,
        MessageState::Parked => Section::Parked,
    }
}

/// An index by queue, priority and sequence.
#[derive(Clone, Copy)]
enum Row {
    Ready,
    Straggler,
    Member,
    Place,
    Parked,
}

impl Row {
    fn space(self) -> Space {
        match self {
            Self::Ready => Space::Ready,
            Self::Straggler => Space::Straggler,
            Self::Member => Space::Group,
            Self::Place => Space::Place,
            Self::Parked => Space::Parked,
        }
    }

    fn key(self, number: QueueNo, (inverse, sequence): Spot) -> Key {
        let priority = MAX_PRIORITY.saturating_sub(inverse);
        match self {
            Self::Ready | Self::Straggler | Self::Parked => {
                layout::ordered(number, priority, sequence).to_vec()
            }
            Self::Member => layout::member(number, priority, sequence),
            Self::Place => layout::place(number, priority, sequence),
        }
    }

    fn range(self, number: QueueNo, after: Option<Spot>, low: Option<Spot>) -> (Key, Key) {
        let after = after.map(|(inverse, sequence)| (inverse, sequence.saturating_add(1)));
        let start = after.max(low).unwrap_or((0, 0));
        (
            self.key(number, start),
            self.key(number, (MAX_PRIORITY, u64::MAX)),
        )
    }

    fn split(self, key: &[u8]) -> Option<(QueueNo, u8, u64)> {
        match self {
            Self::Ready | Self::Straggler | Self::Parked => layout::split_ordered(key),
            Self::Member => layout::split_member(key),
            Self::Place => layout::split_place(key),
        }
    }

    fn read(
        self,
        key: &[u8],
        record: &Record,
    ) -> Result<(Home, Option<std::sync::Arc<str>>), StoreError> {
        Ok(match self {
            Self::Place => (record.decode::<PlaceRow>(Space::Place, key)?.home, None),
            Self::Parked => (Home::Parked, None),
            Self::Ready | Self::Straggler | Self::Member => (
                Home::Free,
                record.decode::<IndexRow>(self.space(), key)?.group,
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_nothing_else_does() {
        let at = Cursor {
            section: Section::Waiting,
            spot: (4, 0xabc),
        };
        let q = QueueName::new("q").expect("a name");
        assert_eq!(Cursor::read(&at.write(&q), &q), Ok(at));
        // Sealed, but no place; and a place of another queue.
        for place in ["", "3", "3.4", "9.0.0", "3.4.g", "-1.0.0"] {
            let text = cursor::seal(&["q"], place);
            let read = Cursor::read(&text, &q);
            assert_eq!(read, Err(StoreError::BadCursor), "{text}");
        }
        let other = QueueName::new("r").expect("a name");
        let read = Cursor::read(&at.write(&other), &q);
        assert_eq!(read, Err(StoreError::BadCursor));
    }
}
