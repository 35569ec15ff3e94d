//! Rows that are made by who submits a unit, so that the committer, of which there is one, need
//! not: the row of a body is its checksum and a copy of it.
//!
//! What is made here is a guess: the committer uses a row if the queue still has the number that
//! stands in it, and else makes it anew. Puts that a task may take before they are durable have
//! none, since most of them are never written (decision record 0040).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use oncue_core::names::QueueName;
use oncue_core::quick_hash::QuickMap;
use oncue_core::unit_of_work::{Put, Unit};
use parking_lot::RwLock;

use super::body_row::BodyRow;
use super::codec::Row;
use super::early::may_be_taken;
use super::layout::{self, QueueNo};
use super::shared::Shared;

/// Longer bodies are left to the committer, in bytes: with all that wait for it in two copies, a
/// host under many large puts would hold twice as much.
const SEALED_BYTES_MAX: usize = 16 * 1024;

/// The numbers of queues by their names, for all threads. Who changes them has the index locked.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers(Arc<RwLock<QuickMap<QueueName, QueueNo>>>);

impl Numbers {
    pub(super) fn get(&self, name: &QueueName) -> Option<QueueNo> {
        self.0.read().get(name).copied()
    }

    pub(super) fn insert(&self, name: QueueName, number: QueueNo) {
        self.0.write().insert(name, number);
    }

    pub(super) fn remove(&self, name: &QueueName) -> Option<QueueNo> {
        self.0.write().remove(name)
    }
}

/// The row of a body, as it is if its queue has that number when it is written.
#[derive(Debug)]
pub(super) struct Sealed {
    pub(super) queue: QueueNo,
    pub(super) row: Row,
}

impl Shared {
    /// Makes the rows of a unit's bodies: one for each put, or none at all. The bodies are seen in
    /// their rows from then on, so that they are in memory once.
    pub(super) fn seal(&self, unit: &mut Unit) -> Vec<Option<Sealed>> {
        if !unit.puts.iter().any(is_simple) || self.is_awaited(unit) {
            return Vec::new();
        }
        let puts = unit.puts.iter_mut();
        puts.map(|put| is_simple(put).then(|| self.seal_one(put))?)
            .collect()
    }

    fn seal_one(&self, put: &mut Put) -> Option<Sealed> {
        let queue = self.numbers.get(&put.queue)?;
        put.header.size = put.body.len() as u64;
        let key = layout::body(put.header.id.sequence.0);
        let row = BodyRow::seal(&key, queue, &put.header, 0, &put.body);
        let start = row.len().checked_sub(put.body.len())?;
        put.body = Bytes::from_owner(row.clone()).slice(start..);
        Some(Sealed { queue, row })
    }

    /// Whether a task waits for the unit's one put and may take it before it is durable.
    fn is_awaited(&self, unit: &Unit) -> bool {
        let [put] = &*unit.puts else {
            return false;
        };
        self.follows.load(Ordering::Acquire)
            && may_be_taken(unit, put)
            && self.early.lock().follows(&put.queue)
    }
}

/// Whether a put has a row, with the whole of a short body in it.
fn is_simple(put: &Put) -> bool {
    put.header.persistent && put.body.len() <= SEALED_BYTES_MAX
}

/// Bytes of rows beside the bodies that they were made of, which their putters may still hold.
pub(super) fn weight(sealed: &[Option<Sealed>]) -> u64 {
    let rows = sealed.iter().flatten();
    rows.map(|sealed| sealed.row.len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use oncue_core::message::{Header, MessageId, Sequence};
    use oncue_core::time::Timestamp;

    use super::super::codec::Record;
    use super::super::layout::Space;
    use super::super::plan::{Batch, Progress};
    use super::*;

    fn header(body: &Bytes) -> Header {
        Header {
            id: MessageId {
                origin: 1,
                sequence: Sequence(9),
            },
            correlation_id: None,
            reply_to: None,
            group: None,
            group_sequence: None,
            priority: 4,
            persistent: true,
            content_type: None,
            properties: Vec::new(),
            put_time: Timestamp(1),
            expires: None,
            hop_count: 0,
            put_by: None,
            size: body.len() as u64,
        }
    }

    #[test]
    fn a_row_is_used_while_its_queue_has_the_number_in_it_and_else_made_anew() {
        let body = Bytes::from_static(b"a body longer than a row that stands in place");
        let (header, key) = (header(&body), layout::body(9));
        for (sealed, planned) in [(2, 2), (2, 3)] {
            let row = BodyRow::seal(&key, sealed, &header, 0, &body);
            let made = row.as_ptr();
            let sealed = Sealed { queue: sealed, row };
            let mut batch = Batch::new(Progress::default());
            let row = batch.plan_body(planned, &header, &body, 0, Some(sealed));
            assert_eq!(row.as_ptr() == made, planned == 2, "{planned}");
            let record = Record::open(Space::Body, &key, row).expect("its checksum is right");
            let read = BodyRow::read(&key, record).expect("it is whole");
            assert_eq!(read.queue, planned);
            assert_eq!(read.into_parts(), (header.clone(), body.clone()));
        }
    }
}
