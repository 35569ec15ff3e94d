//! Single messages: where one stands, and what it is as a whole.

use bytes::{Bytes, BytesMut};
use fjall::Snapshot;
use oncue_core::message::{Body, Message, Sequence};
use oncue_core::unit_of_work::OwnerId;

use super::body_row::BodyRow;
use super::codec::{Home, IndexRow, PlaceRow, corrupt, decode_dead_letter};
use super::engine::Engine;
use super::facts::{Facts, Held, Standing};
use super::index::{Index, LooseMessage};
use super::layout::{self, QueueNo, Space, Stand};
use crate::{MessageState, StoreError};

/// Bodies longer than this stand in parts of this length, in bytes. A part is what one read brings
/// into memory.
pub(super) const PART_BYTES: u64 = 1024 * 1024;

/// A message that is there.
pub(super) struct Found {
    pub(super) facts: Facts,
    pub(super) standing: Standing,
    pub(super) holder: Option<OwnerId>,
    pub(super) message: Message,
}

impl Index {
    /// Finds a message of a queue, whoever has it.
    ///
    /// # Errors
    /// A failed read.
    pub(super) fn locate(
        &self,
        engine: &Engine,
        queue: QueueNo,
        sequence: u64,
    ) -> Result<Option<Found>, StoreError> {
        let holder = self.held.get(&sequence);
        if let Some(loose) = self.loose.messages.get(&sequence) {
            let found = || {
                let LooseMessage {
                    facts, standing, ..
                } = loose.clone();
                let holder = holder.map(|held| held.owner);
                Found {
                    facts,
                    standing,
                    holder,
                    message: loose_message(loose),
                }
            };
            return Ok((loose.facts.queue == queue).then(found));
        }
        if let Some(Held {
            owner,
            facts,
            standing,
            ..
        }) = holder
        {
            if facts.queue != queue {
                return Ok(None);
            }
            let (facts, message) = read_message(engine, &self.view, queue, sequence, standing)?;
            return Ok(Some(Found {
                facts,
                standing: *standing,
                holder: Some(*owner),
                message,
            }));
        }
        let Some(row) = read_body_row(engine, &self.view, sequence)? else {
            return Ok(None);
        };
        let facts = Facts::new(queue, &row.header, row.parts);
        let Some(standing) = read_standing(engine, &self.view, &facts)? else {
            return Ok(None);
        };
        let message = whole(engine, &self.view, &standing, row)?;
        Ok(Some(Found {
            facts,
            standing,
            holder: None,
            message,
        }))
    }

    /// The state that a browser sees.
    ///
    /// # Errors
    /// A failed read of the group.
    pub(super) fn state_of(
        &mut self,
        engine: &Engine,
        facts: &Facts,
        home: Home,
        held: bool,
    ) -> Result<MessageState, StoreError> {
        if held {
            return Ok(MessageState::InUnit);
        }
        Ok(match home {
            Home::Waiting(wait, until) => MessageState::Waiting(wait, until),
            Home::Leased { until, .. } => MessageState::Leased(until),
            Home::Parked => MessageState::Parked,
            Home::Free => match &facts.group {
                Some(name)
                    if !self
                        .group(engine, facts.queue, name)?
                        .is_ready(facts.sequence) =>
                {
                    MessageState::GroupHeld
                }
                _ => MessageState::Ready,
            },
        })
    }
}

/// A loose message as it is handed out.
pub(super) fn loose_message(loose: &LooseMessage) -> Message {
    Message {
        header: loose.header.clone(),
        attempts: loose.standing.attempts,
        body: Body::Whole(loose.body.clone()),
        dead_letter: loose.dead_letter.clone(),
    }
}

fn read_body_row(
    engine: &Engine,
    view: &Snapshot,
    sequence: u64,
) -> Result<Option<BodyRow>, StoreError> {
    let key = layout::body(sequence);
    let record = engine.get(view, Space::Body, &key)?;
    record.map(|record| BodyRow::read(&key, record)).transpose()
}

/// Where a persistent message that nobody has taken stands; `None` when it is not in that queue.
fn read_standing(
    engine: &Engine,
    view: &Snapshot,
    facts: &Facts,
) -> Result<Option<Standing>, StoreError> {
    let Facts {
        queue,
        priority,
        sequence,
        ..
    } = *facts;
    let key = layout::place(queue, priority, sequence);
    if let Some(record) = engine.get(view, Space::Place, &key)? {
        let PlaceRow {
            home,
            attempts,
            dead,
        } = record.decode(Space::Place, &key)?;
        return Ok(Some(Standing {
            home,
            attempts,
            placed: true,
            dead,
        }));
    }
    let (space, key) = match &facts.group {
        Some(name) => (
            Space::Group,
            layout::in_group(Stand::Free, queue, name, sequence),
        ),
        None => {
            let key = layout::ordered(queue, priority, sequence);
            (Space::Ready, key.to_vec())
        }
    };
    let Some(record) = engine.get(view, space, &key)? else {
        return Ok(None);
    };
    let row: IndexRow = record.decode(space, &key)?;
    Ok(Some(Standing {
        home: Home::Free,
        attempts: row.attempts,
        placed: false,
        dead: row.dead,
    }))
}

/// Reads a persistent message that an index names.
///
/// # Errors
/// [`StoreError::Corrupt`] also when it is not there.
pub(super) fn read_message(
    engine: &Engine,
    view: &Snapshot,
    queue: QueueNo,
    sequence: u64,
    standing: &Standing,
) -> Result<(Facts, Message), StoreError> {
    let row = read_body_row(engine, view, sequence)?
        .ok_or_else(|| corrupt(Space::Body, &layout::body(sequence), "is missing"))?;
    let facts = Facts::new(queue, &row.header, row.parts);
    Ok((facts, whole(engine, view, standing, row)?))
}

fn whole(
    engine: &Engine,
    view: &Snapshot,
    standing: &Standing,
    row: BodyRow,
) -> Result<Message, StoreError> {
    let parts = row.parts;
    let (header, bytes) = row.into_parts();
    let sequence = header.id.sequence;
    let body = match parts {
        0 => Body::Whole(bytes),
        _ => Body::Stored {
            sequence,
            size: header.size,
        },
    };
    let dead_letter = match standing.dead {
        true => Some(Box::new(read_dead_letter(engine, view, sequence)?)),
        false => None,
    };
    Ok(Message {
        header,
        attempts: standing.attempts,
        body,
        dead_letter,
    })
}

fn read_dead_letter(
    engine: &Engine,
    view: &Snapshot,
    sequence: Sequence,
) -> Result<oncue_core::message::DeadLetter, StoreError> {
    let key = layout::dead_letter(sequence.0);
    match engine.get(view, Space::Place, &key)? {
        Some(record) => decode_dead_letter(&key, &record),
        None => Err(corrupt(Space::Place, &key, "is missing")),
    }
}

/// Reads a range of a stored body, part by part.
pub(super) fn read_parts(
    engine: &Engine,
    view: &Snapshot,
    sequence: u64,
    offset: u64,
    length: u64,
) -> Result<Bytes, StoreError> {
    let row = read_body_row(engine, view, sequence)?.ok_or(StoreError::Gone)?;
    let size = row.header.size;
    let start = offset.min(size);
    let end = start.saturating_add(length).min(size);
    if row.parts == 0 {
        let (_, bytes) = row.into_parts();
        return Ok(bytes.slice(to_usize(start)..to_usize(end)));
    }
    let mut read = BytesMut::with_capacity(to_usize(end - start));
    let mut position = start;
    while position < end {
        let part = position / PART_BYTES;
        let key = layout::body_part(sequence, u32::try_from(part).unwrap_or(u32::MAX));
        let record = engine.get(view, Space::Body, &key)?;
        let record = record.ok_or_else(|| corrupt(Space::Body, &key, "is missing"))?;
        let from = to_usize(position - part * PART_BYTES);
        let wanted = to_usize(end - position);
        let bytes = record
            .payload()
            .get(from..)
            .filter(|bytes| !bytes.is_empty());
        let bytes = bytes.ok_or_else(|| corrupt(Space::Body, &key, "is too short"))?;
        let bytes = bytes.get(..wanted).unwrap_or(bytes);
        read.extend_from_slice(bytes);
        position += bytes.len() as u64;
    }
    Ok(read.freeze())
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).expect("a body that is read fits into memory")
}
