//! A message being written: plain, unless a case says otherwise.

use bytes::Bytes;
use oncue_core::message::{Header, MessageId};
use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{IdempotencyKey, Put, PutAnswer, Unit};
use oncue_store::CommitError;

use crate::rig::{NOW, Rig};

/// A message being written.
#[must_use]
pub struct Draft<'r> {
    rig: &'r Rig,
    put: Put,
}

impl<'r> Draft<'r> {
    pub fn new(rig: &'r Rig, queue: &QueueName) -> Self {
        let header = Header {
            id: rig.store().next_id(),
            correlation_id: None,
            reply_to: None,
            group: None,
            group_sequence: None,
            priority: 4,
            persistent: true,
            content_type: None,
            properties: Vec::new(),
            put_time: NOW,
            expires: None,
            hop_count: 0,
            put_by: None,
            size: 0,
        };
        let put = Put {
            queue: queue.clone(),
            header,
            body: Bytes::new(),
            due: None,
            dead_letter: None,
            key: None,
            max_depth: None,
        };
        Self { rig, put }.body("body")
    }

    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.put.body = body.into();
        self.put.header.size = self.put.body.len() as u64;
        self
    }

    pub fn priority(mut self, priority: u8) -> Self {
        self.put.header.priority = priority;
        self
    }

    pub fn group(mut self, group: &str) -> Self {
        self.put.header.group = Some(group.to_owned());
        self
    }

    pub fn correlation(mut self, id: &str) -> Self {
        self.put.header.correlation_id = Some(id.to_owned());
        self
    }

    pub fn volatile(mut self) -> Self {
        self.put.header.persistent = false;
        self
    }

    pub fn put_at(mut self, time: Timestamp) -> Self {
        self.put.header.put_time = time;
        self
    }

    pub fn expires(mut self, time: Timestamp) -> Self {
        self.put.header.expires = Some(time);
        self
    }

    pub fn due(mut self, time: Timestamp) -> Self {
        self.put.due = Some(time);
        self
    }

    pub fn max_depth(mut self, max: u64) -> Self {
        self.put.max_depth = Some(max);
        self
    }

    /// With an idempotency key, remembered until `until`.
    pub fn key(mut self, key: &str, digest: Option<u8>, until: Timestamp) -> Self {
        let body_digest = digest.map(|byte| [byte; 32]);
        self.put.key = Some(IdempotencyKey {
            key: key.to_owned(),
            body_digest,
            until,
        });
        self
    }

    /// The put, for a unit of work.
    pub fn into_put(self) -> Put {
        self.put
    }

    /// Commits it alone.
    pub fn try_send(self) -> Result<PutAnswer, CommitError> {
        let receipt = self.rig.commit(Unit {
            puts: vec![self.put],
            ..Unit::default()
        })?;
        assert_eq!(receipt.puts.len(), 1, "one answer per put");
        Ok(receipt.puts[0])
    }

    /// Commits it alone, which works.
    pub fn send(self) -> MessageId {
        let id = self.put.header.id;
        let answer = self.try_send().expect("the put is accepted");
        assert_eq!(
            answer,
            PutAnswer {
                id,
                repeated: false
            }
        );
        id
    }
}
