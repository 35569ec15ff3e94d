//! What rows look like: four bytes of CRC32C over keyspace, key and payload, then the payload.
//!
//! The checksum covers the key, so that a row which the engine returns under a wrong key is noticed
//! too. It is checked at every read; a mismatch is [`StoreError::Corrupt`], never a panic. Payloads
//! are postcard, except dead-letter records (JSON: rare, and made of enums that grow) and bodies
//! (the bytes themselves).

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use fjall::{UserKey, UserValue};
use oncue_core::message::{Attempts, DeadLetter, MessageId, PRIORITIES};
use oncue_core::queue::Counts;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{LeaseToken, Wait};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::layout::Space;
use crate::StoreError;

/// Bytes before the payload.
const SEAL_BYTES: usize = 4;

/// What most small rows fit into, in bytes: they are encoded without a detour over the heap.
const SMALL_ROW_BYTES: usize = 320;

/// A row as the engine takes it and keeps it: one allocation, shared with whoever else holds it;
/// none at all up to 20 bytes.
pub(super) type Row = UserValue;

/// A key as the engine takes it: most stand in place, without an allocation.
pub(super) type RowKey = UserKey;

/// A row as the engine gave it, with its checksum already found right.
#[derive(Debug)]
pub(super) struct Record(UserValue);

impl Record {
    /// Checks a row.
    pub(super) fn open(space: Space, key: &[u8], value: UserValue) -> Result<Self, StoreError> {
        let sealed = value.split_first_chunk::<SEAL_BYTES>();
        match sealed {
            Some((seal, payload))
                if u32::from_le_bytes(*seal) == checksum(space, key, &[payload]) =>
            {
                Ok(Self(value))
            }
            _ => Err(corrupt(space, key, "has a wrong checksum")),
        }
    }

    /// What was stored.
    pub(super) fn payload(&self) -> &[u8] {
        self.0.get(SEAL_BYTES..).unwrap_or_default()
    }

    /// The payload as a value.
    pub(super) fn decode<T: DeserializeOwned>(
        &self,
        space: Space,
        key: &[u8],
    ) -> Result<T, StoreError> {
        postcard::from_bytes(self.payload()).map_err(|_| corrupt(space, key, "cannot be read"))
    }

    /// A range of the payload, shared instead of copied.
    pub(super) fn share(self, range: Range<usize>) -> Bytes {
        let start = SEAL_BYTES + range.start;
        let end = SEAL_BYTES + range.end;
        Bytes::from_owner(self.0).slice(start..end)
    }
}

/// The error for a row that is not what was written.
pub(super) fn corrupt(space: Space, key: &[u8], what: &str) -> StoreError {
    use std::fmt::Write as _;
    let mut hex = String::new();
    for byte in key.iter().take(32) {
        let _ = write!(hex, "{byte:02x}");
    }
    StoreError::Corrupt(format!("row {hex} in \"{}\" {what}", space.name()))
}

fn checksum(space: Space, key: &[u8], parts: &[&[u8]]) -> u32 {
    let mut sum = crc32c::crc32c_append(space as u32, key);
    for part in parts {
        sum = crc32c::crc32c_append(sum, part);
    }
    sum
}

/// A row from the parts of its payload, each byte copied once.
pub(super) fn seal(space: Space, key: &[u8], parts: &[&[u8]]) -> Row {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let seal = checksum(space, key, parts).to_le_bytes();
    let mut pieces = Pieces {
        first: &seal,
        others: parts,
    };
    Row::from_reader(&mut pieces, SEAL_BYTES + length)
        .expect("reading from memory gives as many bytes as were counted")
}

/// Pieces of memory read one after the other.
struct Pieces<'a> {
    first: &'a [u8],
    others: &'a [&'a [u8]],
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.first.is_empty()
            && let Some((next, others)) = self.others.split_first()
        {
            (self.first, self.others) = (next, others);
        }
        self.first.read(buffer)
    }
}

/// A row from a value.
pub(super) fn encode<T: Serialize>(space: Space, key: &[u8], value: &T) -> Row {
    let mut small = [0; SMALL_ROW_BYTES];
    if let Ok(payload) = postcard::to_slice(value, &mut small) {
        return seal(space, key, &[payload]);
    }
    let payload = postcard::to_stdvec(value).expect("rows are plain data, which always has a form");
    seal(space, key, &[&payload])
}

/// What the indexes say of a message that is free, so that a take can pass over it without its
/// body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IndexRow {
    pub(super) priority: u8,
    pub(super) put_time: Timestamp,
    pub(super) expires: Option<Timestamp>,
    pub(super) attempts: Attempts,
    /// A place row stands for it: it was not always plainly ready.
    pub(super) placed: bool,
    /// A dead-letter record stands beside its body.
    pub(super) dead: bool,
    #[serde(with = "shared_text")]
    pub(super) group: Option<Arc<str>>,
}

/// Shared text as plain text.
mod shared_text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        text: &Option<Arc<str>>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        text.as_deref().serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<Arc<str>>, D::Error> {
        Ok(Option::<String>::deserialize(d)?.map(Arc::from))
    }
}

/// Where a message stands in durable truth. Who has taken it is known in memory only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Home {
    /// Free to take, as far as it itself is concerned.
    Free,
    /// Set back until then.
    Waiting(Wait, Timestamp),
    /// With an outside consumer.
    Leased {
        until: Timestamp,
        token: LeaseToken,
        selective: bool,
    },
    /// Set aside.
    Parked,
}

/// The point index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlaceRow {
    pub(super) home: Home,
    pub(super) attempts: Attempts,
    pub(super) dead: bool,
}

/// Where a message of a timed row or of a lease token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Address {
    pub(super) queue: u32,
    pub(super) priority: u8,
    pub(super) sequence: u64,
}

/// A group of a queue, in numbers. There is no row while it has no members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TallyRow {
    /// Free members by priority.
    pub(super) free: [i64; PRIORITIES],
    /// Those of them before the barrier.
    pub(super) ahead: [i64; PRIORITIES],
    pub(super) set_back: i64,
    pub(super) leased: i64,
    /// The first member that is set back.
    pub(super) barrier: Option<u64>,
    /// The first free member and its priority.
    pub(super) first: Option<(u64, u8)>,
}

impl TallyRow {
    /// The member whose row stands in straggler: whom anyone may take, nothing being in hand.
    pub(super) fn open(&self) -> Option<(u64, u8)> {
        let barrier = self.barrier.unwrap_or(u64::MAX);
        self.first
            .filter(|(first, _)| self.leased == 0 && *first < barrier)
    }

    /// What the group adds to its queue's counts, nothing being in hand.
    pub(super) fn counts(&self) -> Counts {
        let free: i64 = self.free.iter().sum();
        if self.leased > 0 {
            return Counts {
                group_held: free,
                ..Counts::default()
            };
        }
        let ahead: i64 = self.ahead.iter().sum();
        Counts {
            ready: self.ahead,
            group_held: free - ahead,
            ..Counts::default()
        }
    }

    /// True when it has no members.
    pub(super) fn is_empty(&self) -> bool {
        self.set_back == 0 && self.leased == 0 && self.free.iter().all(|count| *count == 0)
    }
}

/// The lowest sequences that may still stand in a queue's indexes, of one priority. `None`: no row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursors {
    pub(super) priority: u8,
    pub(super) ready: Option<u64>,
    pub(super) straggler: Option<u64>,
    pub(super) member: Option<u64>,
}

/// A queue: what a restart must know of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueueRow {
    pub(super) name: String,
    /// Persistent messages, as if nobody had taken any.
    pub(super) counts: Counts,
    pub(super) cursors: Vec<Cursors>,
}

/// What an idempotency key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DedupRow {
    pub(super) id: MessageId,
    pub(super) digest: Option<[u8; 32]>,
    pub(super) until: Timestamp,
}

/// The last commit that wrote to a keyspace, and what else a restart must know of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MarkRow {
    pub(super) commit: u64,
    /// No row of a timed or task keyspace is below it.
    pub(super) low: (u64, u64),
    /// Bytes of task rows.
    pub(super) total: u64,
}

/// The mark of the meta keyspace: the truth with which all others are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MetaMarkRow {
    pub(super) commit: u64,
    /// The last commit of each keyspace, by its number.
    pub(super) spaces: Vec<u64>,
    pub(super) next_queue: u32,
}

/// What kind of directory this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FormatRow {
    pub(super) version: u32,
    pub(super) origin: u32,
}

/// A dead-letter record's row.
pub(super) fn encode_dead_letter(key: &[u8], record: &DeadLetter) -> Row {
    let payload = serde_json::to_vec(record).expect("dead-letter records have text keys only");
    seal(Space::Place, key, &[&payload])
}

/// A dead-letter record.
pub(super) fn decode_dead_letter(key: &[u8], record: &Record) -> Result<DeadLetter, StoreError> {
    serde_json::from_slice(record.payload())
        .map_err(|_| corrupt(Space::Place, key, "cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_or_another_key_is_noticed() {
        let row = encode(Space::Place, b"k", &7_u32);
        let good = Record::open(Space::Place, b"k", row.clone()).expect("it is as written");
        assert_eq!(good.decode::<u32>(Space::Place, b"k"), Ok(7));
        for position in 0..row.len() {
            let mut bad = row.to_vec();
            bad[position] ^= 0x10;
            assert!(
                Record::open(Space::Place, b"k", bad.into()).is_err(),
                "byte {position}"
            );
        }
        assert!(Record::open(Space::Place, b"l", row.clone()).is_err());
        assert!(Record::open(Space::Due, b"k", row).is_err());
        assert!(Record::open(Space::Due, b"k", vec![1_u8, 2].into()).is_err());
    }

    #[test]
    fn a_group_is_open_at_its_first_member_unless_something_stands_before_it() {
        let mut tally = TallyRow {
            first: Some((5, 1)),
            ..TallyRow::default()
        };
        tally.free[1] = 2;
        tally.ahead[1] = 2;
        assert_eq!(tally.open(), Some((5, 1)));
        assert_eq!(tally.counts().ready[1], 2);
        tally.barrier = Some(4);
        tally.ahead[1] = 0;
        assert_eq!(tally.open(), None);
        assert_eq!(tally.counts().group_held, 2);
        tally.barrier = None;
        tally.leased = 1;
        assert_eq!(tally.open(), None);
    }
}
