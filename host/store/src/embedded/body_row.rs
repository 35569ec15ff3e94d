//! The row of a persistent message's header and body.
//!
//! The header is postcard; the body stands behind it as it is, unless it has parts. Both are read
//! without a copy of the body.

use std::borrow::Cow;

use bytes::Bytes;
use oncue_core::message::{Header, MessageId, Sequence};
use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::codec::{Record, Row, corrupt, seal};
use super::layout::Space;
use crate::StoreError;

/// Bytes before the header in a body row's payload.
const BODY_PREFIX_BYTES: usize = 12;

/// What most headers fit into, in bytes: they are encoded without a detour over the heap.
const SMALL_HEADER_BYTES: usize = 320;

/// Set in the length of a body row's header when its identity stands in two numbers. Format 1
/// wrote it as text and is still read.
const PLAIN_HEADER: u32 = 1 << 31;

/// A body row: the queue of the put, the number of parts, the header, and the body when it has no
/// parts.
#[derive(Debug)]
pub(super) struct BodyRow {
    /// Where it was put. Where it is now the indexes say; this is for when they are lost.
    pub(super) queue: u32,
    pub(super) header: Header,
    /// Rows of their own that hold the body; 0 when it stands here.
    pub(super) parts: u32,
    body_start: usize,
    record: Record,
}

impl BodyRow {
    /// A body row.
    pub(super) fn seal(key: &[u8], queue: u32, header: &Header, parts: u32, body: &[u8]) -> Row {
        let header = HeaderRow::of(header);
        let mut small = [0; SMALL_HEADER_BYTES];
        if let Ok(header) = postcard::to_slice(&header, &mut small) {
            return Self::seal_encoded(key, queue, header, parts, body);
        }
        let header =
            postcard::to_stdvec(&header).expect("headers are plain data, which always has a form");
        Self::seal_encoded(key, queue, &header, parts, body)
    }

    fn seal_encoded(key: &[u8], queue: u32, header: &[u8], parts: u32, body: &[u8]) -> Row {
        let length = u32::try_from(header.len()).expect("headers are bounded by the manager");
        let mut prefix = [0; BODY_PREFIX_BYTES];
        let numbers = [queue, length | PLAIN_HEADER, parts];
        for (place, number) in prefix.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        seal(Space::Body, key, &[&prefix, header, body])
    }

    /// Reads a body row.
    pub(super) fn read(key: &[u8], record: Record) -> Result<Self, StoreError> {
        let wrong = || corrupt(Space::Body, key, "cannot be read");
        let payload = record.payload();
        let (queue, rest) = payload.split_first_chunk::<4>().ok_or_else(wrong)?;
        let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(wrong)?;
        let (parts, rest) = rest.split_first_chunk::<4>().ok_or_else(wrong)?;
        let length = u32::from_le_bytes(*length);
        let is_plain = length & PLAIN_HEADER != 0;
        let length = (length & !PLAIN_HEADER) as usize;
        let header = rest.get(..length).ok_or_else(wrong)?;
        let header: Header = match is_plain {
            true => postcard::from_bytes::<HeaderRow>(header)
                .map_err(|_| wrong())?
                .into_header()
                .ok_or_else(wrong)?,
            false => postcard::from_bytes(header).map_err(|_| wrong())?,
        };
        let (queue, parts) = (u32::from_le_bytes(*queue), u32::from_le_bytes(*parts));
        let row = Self {
            queue,
            header,
            parts,
            body_start: BODY_PREFIX_BYTES + length,
            record,
        };
        if row.parts == 0 && row.inline_length() as u64 != row.header.size {
            return Err(wrong());
        }
        Ok(row)
    }

    fn inline_length(&self) -> usize {
        self.record.payload().len() - self.body_start
    }

    /// The body that stands here; empty when it stands in parts.
    pub(super) fn into_parts(self) -> (Header, Bytes) {
        let range = self.body_start..self.record.payload().len();
        (self.header, self.record.share(range))
    }
}

/// A header as it stands in a body row, borrowed from where it is.
#[derive(Serialize, Deserialize)]
struct HeaderRow<'a> {
    origin: u32,
    sequence: u64,
    #[serde(borrow)]
    correlation_id: Option<&'a str>,
    #[serde(borrow)]
    reply_to: Option<&'a str>,
    #[serde(borrow)]
    group: Option<&'a str>,
    group_sequence: Option<u32>,
    priority: u8,
    persistent: bool,
    #[serde(borrow)]
    content_type: Option<&'a str>,
    properties: Cow<'a, [(String, String)]>,
    put_time: Timestamp,
    expires: Option<Timestamp>,
    hop_count: u8,
    #[serde(borrow)]
    put_by: Option<&'a str>,
    size: u64,
}

impl<'a> HeaderRow<'a> {
    fn of(header: &'a Header) -> Self {
        Self {
            origin: header.id.origin,
            sequence: header.id.sequence.0,
            correlation_id: header.correlation_id.as_deref(),
            reply_to: header.reply_to.as_ref().map(QueueName::as_str),
            group: header.group.as_deref(),
            group_sequence: header.group_sequence,
            priority: header.priority,
            persistent: header.persistent,
            content_type: header.content_type.as_deref(),
            properties: Cow::Borrowed(&header.properties),
            put_time: header.put_time,
            expires: header.expires,
            hop_count: header.hop_count,
            put_by: header.put_by.as_deref(),
            size: header.size,
        }
    }

    /// `None` when the name in it is none.
    fn into_header(self) -> Option<Header> {
        Some(Header {
            id: MessageId {
                origin: self.origin,
                sequence: Sequence(self.sequence),
            },
            correlation_id: self.correlation_id.map(str::to_owned),
            reply_to: self.reply_to.map(QueueName::new).transpose().ok()?,
            group: self.group.map(str::to_owned),
            group_sequence: self.group_sequence,
            priority: self.priority,
            persistent: self.persistent,
            content_type: self.content_type.map(str::to_owned),
            properties: self.properties.into_owned(),
            put_time: self.put_time,
            expires: self.expires,
            hop_count: self.hop_count,
            put_by: self.put_by.map(str::to_owned),
            size: self.size,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_row_reads_back_its_header_and_so_does_one_of_format_1() {
        let header = Header {
            id: MessageId {
                origin: 7,
                sequence: Sequence(9),
            },
            correlation_id: Some("c".to_owned()),
            reply_to: QueueName::new("replies").ok(),
            group: Some("g".to_owned()),
            group_sequence: Some(3),
            priority: 5,
            persistent: true,
            content_type: Some("text/plain".to_owned()),
            properties: vec![("one".to_owned(), "two".to_owned())],
            put_time: Timestamp(11),
            expires: Some(Timestamp(12)),
            hop_count: 2,
            put_by: Some("process/p".to_owned()),
            size: 4,
        };
        let key = super::super::layout::body(9);
        let new = BodyRow::seal(&key, 6, &header, 0, b"body");
        let text = postcard::to_stdvec(&header).expect("it is plain data");
        let length = u32::try_from(text.len())
            .expect("it is short")
            .to_le_bytes();
        let numbers = [6_u32.to_le_bytes(), length, [0; 4]].concat();
        let old = seal(Space::Body, &key, &[&numbers, &text, b"body"]);
        for row in [new, old] {
            let record = Record::open(Space::Body, &key, row).expect("it is as written");
            let row = BodyRow::read(&key, record).expect("it is whole");
            assert_eq!((row.queue, row.parts), (6, 0));
            assert_eq!(row.into_parts(), (header.clone(), Bytes::from("body")));
        }
    }
}
