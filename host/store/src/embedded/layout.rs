//! Where each kind of row stands: one keyspace per purpose, big-endian keys so that byte order is
//! the order of use.
//!
//! Knows no values (see [`super::codec`]) and reads nothing. Every keyspace also holds one *mark*
//! under [`MARK_KEY`], which no other key equals and no range below meets.

use std::borrow::Cow;

use oncue_core::message::MAX_PRIORITY;
use oncue_core::unit_of_work::RecordKind;

/// A queue's number within the store; a name costs up to 128 bytes in every row, a number four.
pub(super) type QueueNo = u32;

/// A key of a row.
pub(super) type Key = Vec<u8>;

/// Where a keyspace keeps its last commit. Sorts after all other keys: no tag, number or time
/// starts with 0xff.
pub(super) const MARK_KEY: &[u8] = &[0xff];

/// The longest text that stands in a key as it is, in bytes. The engine's limit for a whole key is
/// 65535.
const LONGEST_TEXT: usize = 8 * 1024;

/// The keyspaces, in the order of their numbers in the meta mark. Add new ones at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(super) enum Space {
    /// Headers and bodies in the order of arrival; the parts of large bodies.
    Body,
    /// Messages never touched since their put, free to take: by queue, priority, sequence.
    Ready,
    /// Messages that are free again, and the heads of free groups: same key.
    Straggler,
    /// Members of groups by arrival, the same members by priority, and one tally per group.
    Group,
    /// The point index by sequence of all that are not plainly ready; lease tokens; dead-letter
    /// records.
    Place,
    /// What waits for a time (delays, retries, deferrals, leases), at the first time that concerns
    /// it.
    Due,
    /// What was set aside.
    Parked,
    /// Ends of lives, of messages that are free or parked.
    Expiry,
    /// Idempotency keys, and the times at which they are forgotten.
    Dedup,
    /// Messages by correlation id.
    Correlation,
    /// Task records.
    Tasks,
    /// State of plugins.
    State,
    /// Format, origin, queues with counts and cursors, definition records.
    Meta,
}

impl Space {
    /// All of them, in order.
    pub(super) const ALL: [Self; 13] = [
        Self::Body,
        Self::Ready,
        Self::Straggler,
        Self::Group,
        Self::Place,
        Self::Due,
        Self::Parked,
        Self::Expiry,
        Self::Dedup,
        Self::Correlation,
        Self::Tasks,
        Self::State,
        Self::Meta,
    ];

    /// The keyspace's name on disk.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Ready => "ready",
            Self::Straggler => "straggler",
            Self::Group => "group",
            Self::Place => "place",
            Self::Due => "due",
            Self::Parked => "parked",
            Self::Expiry => "expiry",
            Self::Dedup => "dedup",
            Self::Correlation => "correlation",
            Self::Tasks => "tasks",
            Self::State => "state",
            Self::Meta => "meta",
        }
    }
}

const MEMBER: u8 = b'm';
const FREE_IN_GROUP: u8 = b'g';
const SET_BACK_IN_GROUP: u8 = b'b';
const TALLY: u8 = b't';
const PLACE: u8 = b'p';
const TOKEN: u8 = b't';
const DEAD: u8 = b'd';
const DEDUP_KEY: u8 = b'k';
const DEDUP_UNTIL: u8 = b'u';
const QUEUE: u8 = b'q';
const RECORD: u8 = b'r';

/// The row with the format version and the origin, in meta.
pub(super) const FORMAT_KEY: &[u8] = b"f";
/// The row that counts how often the store was opened, in meta.
pub(super) const OPENING_KEY: &[u8] = b"o";

/// Text as it stands in a key. What is too long is cut and made distinct by two checksums and its
/// length.
fn text(text: &str) -> Cow<'_, [u8]> {
    let bytes = text.as_bytes();
    if bytes.len() <= LONGEST_TEXT {
        return Cow::Borrowed(bytes);
    }
    let (front, back) = bytes.split_at(LONGEST_TEXT);
    let mut cut = front.to_vec();
    cut.extend_from_slice(&crc32c::crc32c(back).to_be_bytes());
    cut.extend_from_slice(&crc32c::crc32c_append(u32::MAX, bytes).to_be_bytes());
    cut.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    Cow::Owned(cut)
}

/// Text with its length before it, so that what follows can be told from it.
fn measured(key: &mut Key, part: &str) {
    let part = text(part);
    let length = u16::try_from(part.len()).expect("cut text is shorter than 64 KiB");
    key.extend_from_slice(&length.to_be_bytes());
    key.extend_from_slice(&part);
}

fn tagged(tag: u8, queue: QueueNo) -> Key {
    let mut key = Vec::with_capacity(48);
    key.push(tag);
    key.extend_from_slice(&queue.to_be_bytes());
    key
}

pub(super) fn body(sequence: u64) -> [u8; 8] {
    sequence.to_be_bytes()
}

pub(super) fn body_part(sequence: u64, part: u32) -> [u8; 12] {
    let mut key = [0; 12];
    let (front, back) = key.split_at_mut(8);
    front.copy_from_slice(&sequence.to_be_bytes());
    back.copy_from_slice(&part.to_be_bytes());
    key
}

/// Key of ready, straggler and parked rows: the highest priority comes first.
pub(super) fn ordered(queue: QueueNo, priority: u8, sequence: u64) -> [u8; 13] {
    let mut key = [0; 13];
    let (front, back) = key.split_at_mut(4);
    front.copy_from_slice(&queue.to_be_bytes());
    let (inverse, back) = back.split_at_mut(1);
    inverse.copy_from_slice(&[MAX_PRIORITY.saturating_sub(priority)]);
    back.copy_from_slice(&sequence.to_be_bytes());
    key
}

/// Key of a group's member by priority: all but the head of a free group.
pub(super) fn member(queue: QueueNo, priority: u8, sequence: u64) -> Key {
    let mut key = vec![MEMBER];
    key.extend_from_slice(&ordered(queue, priority, sequence));
    key
}

/// Which members of a group a row by arrival is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// Free members, with their index rows.
    Free,
    /// Waiting and parked members: they hold those behind them.
    SetBack,
}

/// Key of a group's member by arrival.
pub(super) fn in_group(stand: Stand, queue: QueueNo, group: &str, sequence: u64) -> Key {
    let tag = match stand {
        Stand::Free => FREE_IN_GROUP,
        Stand::SetBack => SET_BACK_IN_GROUP,
    };
    let mut key = tagged(tag, queue);
    measured(&mut key, group);
    key.extend_from_slice(&sequence.to_be_bytes());
    key
}

/// What an [`in_group`] key is about: the stand, the key of the group's [`tally`], the sequence.
/// `None` for the other rows of the group keyspace.
pub(super) fn split_in_group(key: &[u8]) -> Option<(Stand, Key, u64)> {
    let (tag, rest) = key.split_first()?;
    let stand = match *tag {
        FREE_IN_GROUP => Stand::Free,
        SET_BACK_IN_GROUP => Stand::SetBack,
        _ => return None,
    };
    let (middle, sequence) = rest.split_last_chunk::<8>()?;
    let mut tally = vec![TALLY];
    tally.extend_from_slice(middle);
    Some((stand, tally, u64::from_be_bytes(*sequence)))
}

pub(super) fn tally(queue: QueueNo, group: &str) -> Key {
    let mut key = tagged(TALLY, queue);
    measured(&mut key, group);
    key
}

/// Key of the point index. Has the priority before the sequence so that a browse meets the rows in
/// its order.
pub(super) fn place(queue: QueueNo, priority: u8, sequence: u64) -> Key {
    let mut key = vec![PLACE];
    key.extend_from_slice(&ordered(queue, priority, sequence));
    key
}

/// Where a [`place`] key stands; `None` for the other rows of its keyspace.
pub(super) fn split_place(key: &[u8]) -> Option<(QueueNo, u8, u64)> {
    split_ordered(key.strip_prefix(&[PLACE])?)
}

pub(super) fn token(token: u128) -> Key {
    let mut key = vec![TOKEN];
    key.extend_from_slice(&token.to_be_bytes());
    key
}

pub(super) fn dead_letter(sequence: u64) -> Key {
    let mut key = vec![DEAD];
    key.extend_from_slice(&sequence.to_be_bytes());
    key
}

/// The last time that a key can say, in milliseconds since the epoch: its top bit is kept free for
/// the mark. No clock reaches it, and a later time means the same: never.
pub(super) const LAST_TIME: u64 = u64::MAX >> 1;

/// Key of due and expiry rows.
pub(super) fn timed(time: u64, sequence: u64) -> Key {
    let mut key = time.min(LAST_TIME).to_be_bytes().to_vec();
    key.extend_from_slice(&sequence.to_be_bytes());
    key
}

pub(super) fn dedup(queue: QueueNo, key_text: &str) -> Key {
    let mut key = tagged(DEDUP_KEY, queue);
    key.extend_from_slice(&text(key_text));
    key
}

pub(super) fn dedup_until(until: u64, dedup_key: &[u8]) -> Key {
    let mut key = vec![DEDUP_UNTIL];
    key.extend_from_slice(&until.to_be_bytes());
    key.extend_from_slice(dedup_key);
    key
}

/// The time and the [`dedup`] key within a [`dedup_until`] key.
pub(super) fn split_dedup_until(key: &[u8]) -> Option<(u64, &[u8])> {
    let (time, rest) = key.strip_prefix(&[DEDUP_UNTIL])?.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*time), rest))
}

pub(super) fn correlation(queue: QueueNo, id: &str, priority: u8, sequence: u64) -> Key {
    let mut key = correlation_prefix(queue, id);
    key.push(MAX_PRIORITY.saturating_sub(priority));
    key.extend_from_slice(&sequence.to_be_bytes());
    key
}

pub(super) fn correlation_prefix(queue: QueueNo, id: &str) -> Key {
    // With room for what follows in a whole key.
    let mut key = Vec::with_capacity(16 + id.len());
    key.extend_from_slice(&queue.to_be_bytes());
    measured(&mut key, id);
    key
}

pub(super) fn task(id: u64) -> Key {
    id.to_be_bytes().to_vec()
}

pub(super) fn state(namespace: &str, name: &str) -> Key {
    let mut key = state_prefix(namespace);
    key.extend_from_slice(&text(name));
    key
}

pub(super) fn state_prefix(namespace: &str) -> Key {
    let mut key = Vec::with_capacity(64);
    measured(&mut key, namespace);
    key
}

pub(super) fn queue(number: QueueNo) -> Key {
    tagged(QUEUE, number)
}

pub(super) fn queues_prefix() -> Key {
    vec![QUEUE]
}

pub(super) fn record(kind: RecordKind, name: &str) -> Key {
    let mut key = vec![RECORD, record_tag(kind)];
    key.extend_from_slice(&text(name));
    key
}

pub(super) fn records_prefix() -> Key {
    vec![RECORD]
}

/// The kind and the name within a [`record`] key.
pub(super) fn split_record(key: &[u8]) -> Option<(RecordKind, &str)> {
    let (tag, name) = key.strip_prefix(&[RECORD])?.split_first()?;
    let kind = KINDS.into_iter().find(|kind| record_tag(*kind) == *tag)?;
    Some((kind, std::str::from_utf8(name).ok()?))
}

const KINDS: [RecordKind; 5] = [
    RecordKind::Queue,
    RecordKind::Control,
    RecordKind::Process,
    RecordKind::Plugin,
    RecordKind::Host,
];

const fn record_tag(kind: RecordKind) -> u8 {
    match kind {
        RecordKind::Queue => b'q',
        RecordKind::Control => b'c',
        RecordKind::Process => b'p',
        RecordKind::Plugin => b'g',
        RecordKind::Host => b'h',
    }
}

/// The first key after all that start with `prefix`.
pub(super) fn after_prefix(prefix: &[u8]) -> Key {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    end
}

/// The big-endian number at the end of a key: the sequence, where a key ends in one.
pub(super) fn last_number(key: &[u8]) -> Option<u64> {
    key.last_chunk::<8>()
        .map(|bytes| u64::from_be_bytes(*bytes))
}

/// The big-endian number at the start of a key: the time of a timed one.
pub(super) fn first_number(key: &[u8]) -> Option<u64> {
    key.first_chunk::<8>()
        .map(|bytes| u64::from_be_bytes(*bytes))
}

/// The queue number after a tag of one byte.
pub(super) fn tagged_queue(key: &[u8]) -> Option<QueueNo> {
    key.get(1..)?
        .first_chunk::<4>()
        .map(|bytes| u32::from_be_bytes(*bytes))
}

/// Where an [`ordered`] key stands; for a [`member`] key without its tag too.
pub(super) fn split_ordered(key: &[u8]) -> Option<(QueueNo, u8, u64)> {
    let (queue, rest) = key.split_first_chunk::<4>()?;
    let (turned, sequence) = rest.split_first()?;
    let sequence: [u8; 8] = sequence.try_into().ok()?;
    Some((
        u32::from_be_bytes(*queue),
        MAX_PRIORITY.checked_sub(*turned)?,
        u64::from_be_bytes(sequence),
    ))
}

/// Where a [`member`] key stands; `None` for the other rows of the group keyspace.
pub(super) fn split_member(key: &[u8]) -> Option<(QueueNo, u8, u64)> {
    split_ordered(key.strip_prefix(&[MEMBER])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_priority_and_earlier_arrival_sort_first() {
        let keys = [
            ordered(1, 9, 7),
            ordered(1, 9, 8),
            ordered(1, 0, 1),
            ordered(2, 9, 0),
        ];
        assert!(keys.is_sorted());
        assert_eq!(split_ordered(&keys[2]), Some((1, 0, 1)));
        assert_eq!(split_member(&member(3, 4, 5)), Some((3, 4, 5)));
        let split = split_in_group(&in_group(Stand::SetBack, 3, "g", 5));
        assert_eq!(split, Some((Stand::SetBack, tally(3, "g"), 5)));
        assert_eq!(split_member(&in_group(Stand::Free, 3, "g", 5)), None);
    }

    #[test]
    fn the_mark_sorts_after_everything_and_a_prefix_ends_before_the_next() {
        for key in [
            ordered(u32::MAX >> 1, 0, 1).to_vec(),
            timed(u64::MAX, u64::MAX),
            body(u64::MAX >> 1).to_vec(),
        ] {
            assert!(key.as_slice() < MARK_KEY, "{key:?}");
        }
        assert_eq!(after_prefix(&[1, 0xff]), vec![2]);
        assert!(correlation(1, "a", 0, 9) < after_prefix(&correlation_prefix(1, "a")));
        assert!(correlation(1, "ab", 9, 0) > after_prefix(&correlation_prefix(1, "a")));
    }

    #[test]
    fn long_texts_stay_distinct() {
        let long = "x".repeat(LONGEST_TEXT + 5);
        let other = format!("{}y", &long[..long.len() - 1]);
        assert_ne!(dedup(1, &long), dedup(1, &other));
        assert!(dedup(1, &long).len() < usize::from(u16::MAX));
    }

    #[test]
    fn records_read_back_their_kind_and_name() {
        for kind in KINDS {
            assert_eq!(split_record(&record(kind, "a.b")), Some((kind, "a.b")));
        }
    }
}
