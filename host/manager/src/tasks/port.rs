//! What a guest may ask of the queue manager, as plain values: the host interfaces of the sandbox
//! translate to and from these.

use std::sync::Arc;

use bytes::Bytes;
use oncue_core::message::MessageId;
use oncue_core::names::QueueName;
use oncue_core::time::Millis;

use super::Delivered;

/// Longest wait of one get or request, in milliseconds. A task deadline bounds it too.
pub const MAX_WAIT: Millis = 60_000;

/// What to get, and for how long to wait.
#[derive(Clone, Debug, Default)]
pub struct GetOptions {
    /// The triggered queue when `None`.
    pub queue: Option<QueueName>,
    /// Milliseconds to wait for a message; at most [`MAX_WAIT`]. `None` does not wait.
    pub wait: Option<Millis>,
    /// Only that message.
    pub id: Option<MessageId>,
    /// Only messages with this correlation id.
    pub correlation_id: Option<String>,
}

/// The answer of a get.
#[derive(Clone, Debug)]
pub enum Got {
    /// A message, now part of the unit of work.
    Message(Arc<Delivered>),
    /// Nothing there.
    Empty,
    /// The task should end: nothing may be got any more.
    Stop,
}

/// A message to put.
#[derive(Clone, Debug)]
pub struct PutRequest {
    /// Where to.
    pub queue: QueueName,
    /// The body.
    pub body: Bytes,
    /// Everything else.
    pub options: PutOptions,
}

/// What a putter may say of a message. Absent fields take the queue's defaults.
#[derive(Clone, Debug, Default)]
pub struct PutOptions {
    /// Ties a reply to its request.
    pub correlation_id: Option<String>,
    /// Where a reply is wanted.
    pub reply_to: Option<QueueName>,
    /// Group name.
    pub group: Option<String>,
    /// The putter's number within the group.
    pub group_sequence: Option<u32>,
    /// 0 to 9.
    pub priority: Option<u8>,
    /// Survives a restart.
    pub persistent: Option<bool>,
    /// Media type.
    pub content_type: Option<String>,
    /// Free pairs.
    pub properties: Vec<(String, String)>,
    /// Milliseconds before it may be taken.
    pub delay: Option<Millis>,
    /// Milliseconds until it is removed unread, from the put.
    pub expiry: Option<Millis>,
    /// Makes a repeat harmless.
    pub idempotency_key: Option<String>,
}

/// Why a call of the guest was refused. The first six are values that the guest sees; the others
/// end it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// The queue is full.
    #[error("{0}")]
    Full(String),
    /// The process definition does not grant it.
    #[error("{0}")]
    NotGranted(String),
    /// No such queue.
    #[error("{0}")]
    UnknownQueue(String),
    /// Larger than the queue takes.
    #[error("{0}")]
    TooLarge(String),
    /// A request was not answered in time.
    #[error("{0}")]
    NoReply(String),
    /// Anything else the guest may handle.
    #[error("{0}")]
    Other(String),
    /// More puts than a unit may have: the guest is ended with outcome `output-limit`.
    #[error("{0}")]
    OutputLimit(String),
    /// The unit met a state that another changed: it was undone and is run again.
    #[error("{0}")]
    Conflict(String),
    /// What a request waits for cannot start beside this task: the guest is ended, its unit undone
    /// and tried again, nothing is charged.
    #[error("{0}")]
    Cancelled(String),
    /// A bench's probe ended the guest here: a trap, charged as any other.
    #[error("{0}")]
    Cut(String),
    /// The host is stopping: the guest is ended, nothing is charged.
    #[error("the queue manager is stopping")]
    Stopping,
}
