//! Dead letters as the page needs them: by groups, and settled by a filter. A look of the page's
//! own never goes past [`MAX_LOOKED_AT`] messages.

use oncue_core::message::MessageId;
use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use oncue_manager::error::ApiError;
use oncue_manager::handle::{Browsed, DeadLetterFilter, DeadLettersDone, Handle};

use super::message::reason_of;

/// Messages that one look goes through.
pub(super) const MAX_LOOKED_AT: usize = 10_000;

/// Which dead letters are meant.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    /// Only these; all when empty.
    pub(super) ids: Vec<MessageId>,
    /// Only those that came from this queue.
    pub(super) from: Option<QueueName>,
    /// Only those with this reason, or whose last attempt ended so.
    pub(super) reason: Option<String>,
    /// Only those whose detail contains this text.
    pub(super) detail: Option<String>,
}

impl Filter {
    fn of_handle(&self) -> DeadLetterFilter {
        DeadLetterFilter {
            ids: self.ids.clone(),
            from: self.from.clone(),
            reason: self.reason.clone(),
            detail: self.detail.clone(),
            max: 0,
        }
    }

    /// Whether a message is one of them.
    pub(super) fn wants(&self, browsed: &Browsed) -> bool {
        let Some(record) = &browsed.message.dead_letter else {
            return false;
        };
        let id = browsed.message.header.id;
        (self.ids.is_empty() || self.ids.contains(&id))
            && self.from.as_ref().is_none_or(|from| record.queue == *from)
            && self
                .reason
                .as_ref()
                .is_none_or(|word| reason_of(record) == word)
            && self
                .detail
                .as_ref()
                .is_none_or(|text| record.detail.contains(text))
    }
}

/// Dead letters that have reason, origin and process in common.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) reason: &'static str,
    pub(super) queue: QueueName,
    pub(super) process: Option<String>,
    pub(super) count: u64,
    /// When the oldest was put.
    pub(super) oldest: Timestamp,
    /// When the last one was moved.
    pub(super) last: Timestamp,
    /// What that one said.
    pub(super) detail: String,
}

/// The dead letters of a queue in groups, the largest first.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) groups: Vec<Group>,
    /// Messages looked at.
    pub(super) looked_at: u64,
    /// Of them, those that failed nowhere.
    pub(super) without_record: u64,
    /// There are more than were looked at.
    pub(super) more: bool,
}

/// Looks at a queue's dead letters.
pub(super) fn groups(handle: &Handle, queue: &QueueName) -> Result<Groups, ApiError> {
    let view = handle.dead_letters(queue)?;
    let groups = view.groups.into_iter().map(|group| Group {
        reason: group.outcome.unwrap_or(group.reason),
        queue: group.queue,
        process: group.process,
        count: group.count,
        oldest: group.oldest,
        last: group.last,
        detail: group.detail,
    });
    Ok(Groups {
        groups: groups.collect(),
        looked_at: view.scanned,
        without_record: view.without_record,
        more: view.more,
    })
}

/// What became of those that were meant.
pub(super) type Done = DeadLettersDone;

/// Puts them back on the queue that each came from.
pub(super) async fn redrive(
    handle: &Handle,
    queue: &QueueName,
    filter: &Filter,
) -> Result<Done, ApiError> {
    handle.redrive(queue, &filter.of_handle()).await
}

/// Removes them for good.
pub(super) async fn discard(
    handle: &Handle,
    queue: &QueueName,
    filter: &Filter,
) -> Result<Done, ApiError> {
    handle.discard(queue, &filter.of_handle()).await
}
