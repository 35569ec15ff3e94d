//! What somebody may see of the host's views. A handler's words (its log, its reasons, a trap's
//! backtrace) may tell of messages, so they are for those who may see messages.

use oncue_manager::status::DeadLettersView;
use oncue_manager::tasks::record::TaskRecord;

use super::identity::{Identity, Right};

/// A task as an identity may see it; nothing where its queue is not seen at all.
pub(crate) fn task(identity: &Identity, mut record: TaskRecord) -> Option<TaskRecord> {
    if !identity.sees(&record.queue) {
        return None;
    }
    if !identity.may_on(Right::Browse, &record.queue) {
        record.cost.log_tail.clear();
        record.detail = None;
        record.backtrace = None;
        for message in &mut record.messages {
            message.detail = None;
        }
    }
    Some(record)
}

/// Tasks as an identity may see them.
pub(crate) fn tasks(identity: &Identity, records: Vec<TaskRecord>) -> Vec<TaskRecord> {
    let records = records.into_iter();
    records
        .filter_map(|record| task(identity, record))
        .collect()
}

/// Dead letters as an identity may see them: how many and why, without a handler's words unless it
/// may browse the queue.
pub(crate) fn dead_letters(identity: &Identity, view: &mut DeadLettersView) {
    if identity.may_on(Right::Browse, &view.queue) {
        return;
    }
    for group in &mut view.groups {
        group.detail.clear();
    }
}
