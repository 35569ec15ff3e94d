//! Messages that were put lately, as they were put: a take of one reads nothing.
//!
//! The bytes of a row are shared with the engine's memory until that is flushed. Bounded in bytes;
//! the oldest go first. A message leaves when somebody holds it, so nothing here can be out of
//! date.

use std::collections::VecDeque;

use bytes::Bytes;
use oncue_core::message::Header;

use super::codec::Row;
use oncue_core::quick_hash::QuickMap;

/// Bytes of rows and headers kept, about.
const WARM_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// A longer row is not kept, in bytes: reading it costs little beside handling it.
const WARM_ROW_BYTES_MAX: usize = 64 * 1024;

/// What a message counts beside its row, in bytes: its header, and its places here.
const ENTRY_BYTES: u64 = 512;

/// Places of those that have left that are not worth a walk.
const SLACK: usize = 1024;

/// A message as it was put. Its body is the end of its row.
pub(super) type WarmMessage = Box<(Header, Row)>;

/// The messages.
#[derive(Debug, Default)]
pub(super) struct Warm {
    messages: QuickMap<u64, WarmMessage>,
    /// By age; those that have left are still in it, up to as many again.
    order: VecDeque<u64>,
    bytes: u64,
}

fn weight(message: &WarmMessage) -> u64 {
    message.1.len() as u64 + ENTRY_BYTES
}

impl Warm {
    /// What is worth keeping of a put.
    pub(super) fn of(header: Header, row: Row) -> Option<WarmMessage> {
        (row.len() <= WARM_ROW_BYTES_MAX).then(|| Box::new((header, row)))
    }

    /// A message became visible.
    pub(super) fn insert(&mut self, sequence: u64, message: WarmMessage) {
        self.bytes += weight(&message);
        self.messages.insert(sequence, message);
        self.order.push_back(sequence);
        while self.bytes > WARM_BYTES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.remove(oldest);
        }
        if self.order.len() / 2 > self.messages.len() + SLACK {
            let messages = &self.messages;
            self.order
                .retain(|sequence| messages.contains_key(sequence));
        }
    }

    /// A message leaves: its header and its body.
    pub(super) fn take(&mut self, sequence: u64) -> Option<(Header, Bytes)> {
        let (header, row) = *self.remove(sequence)?;
        let end = row.len();
        let start = usize::try_from(header.size)
            .ok()
            .and_then(|size| end.checked_sub(size))?;
        Some((header, Bytes::from_owner(row).slice(start..end)))
    }

    /// A message leaves.
    pub(super) fn remove(&mut self, sequence: u64) -> Option<WarmMessage> {
        let message = self.messages.remove(&sequence)?;
        self.bytes -= weight(&message);
        Some(message)
    }
}
