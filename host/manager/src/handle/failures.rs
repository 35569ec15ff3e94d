//! Failed units of work, to be run again at a desk: what the manager kept, made whole with what is
//! still in its queues.

use std::sync::Arc;

use oncue_core::code::Code;
use oncue_core::message::MessageId;
use oncue_core::names::QueueName;
use oncue_core::outcome::Outcome;

use super::Handle;
use crate::error::ApiError;
use crate::tasks::TaskId;
use crate::tasks::failures::{FailedUnit, KeptBody, KeptMessage};
use crate::tasks::record::TaskRecord;

/// Bytes of bodies that are read from queues for one answer, beside those kept in memory.
const MAX_FOUND: u64 = 64 << 20;

/// A failed unit, and what else is kept of its task.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The unit, with whole bodies as far as its messages are still in a queue.
    pub unit: FailedUnit,
    /// Messages of the task's other kept units.
    pub others: Vec<MessageId>,
}

impl Handle {
    /// The unit of a task that failed last, or the one that had `message` in hand.
    ///
    /// # Errors
    /// `unknown-task`, or `no-case` with what became of the task.
    pub async fn failed_unit(
        &self,
        id: TaskId,
        message: Option<MessageId>,
    ) -> Result<Failure, ApiError> {
        let kept = self.shared.failures.of(id);
        if kept.is_empty() {
            return Err(nothing_kept(&self.task(id).await?));
        }
        let wanted = |unit: &&Arc<FailedUnit>| message.is_none_or(|message| unit.had(message));
        let Some(unit) = kept.iter().rev().find(wanted) else {
            let had: Vec<_> = kept.iter().filter_map(|unit| unit.message()).collect();
            let had: Vec<_> = had.iter().map(ToString::to_string).collect();
            return Err(ApiError::new(
                Code::NoCase,
                format!(
                    "task \"{id}\" has no kept unit of that message; it has those of {}",
                    had.join(", ")
                ),
            ));
        };
        let others = kept
            .iter()
            .filter(|other| !Arc::ptr_eq(other, unit))
            .filter_map(|other| other.message())
            .collect();
        let mut unit = FailedUnit::clone(unit);
        let mut left = MAX_FOUND;
        for message in &mut unit.messages {
            if !message.body.is_whole()
                && message.body.size <= left
                && let Some(body) = self.whole_body(message)
            {
                left -= message.body.size;
                message.body = body;
            }
        }
        Ok(Failure { unit, others })
    }

    /// The whole body of a message that is still somewhere: on its queue, or where the queue's
    /// failures go.
    fn whole_body(&self, message: &KeptMessage) -> Option<KeptBody> {
        let backout = self
            .shared
            .cell(&message.queue)
            .and_then(|cell| cell.attributes.load().backout_queue.clone());
        let mut places = vec![message.queue.clone()];
        places.extend(backout);
        places.push(QueueName::dead_letter());
        places.iter().find_map(|queue| {
            let found = self.shared.store.find(queue, message.header.id).ok()??;
            let body = found.message.body;
            let bytes = self.shared.store.read_body(&body, 0, body.len()).ok()?;
            Some(KeptBody {
                size: bytes.len() as u64,
                bytes,
            })
        })
    }
}

/// Why there is no unit of a task that is known.
fn nothing_kept(record: &TaskRecord) -> ApiError {
    let id = record.id;
    let text = match record.outcome {
        None => format!("task \"{id}\" still runs, and no unit of it has failed; ask again later"),
        Some(Outcome::Committed) => format!(
            "task \"{id}\" ended committed and has nothing to export; take one that failed: \
             oncue tasks --failed"
        ),
        Some(outcome) if outcome.is_charged() || outcome == Outcome::Rejected => format!(
            "task \"{id}\" ended {} and has no kept unit: the host keeps the last failures in \
             memory, has made room for newer ones or was restarted; export the next failure",
            outcome.as_str()
        ),
        Some(outcome) => format!(
            "task \"{id}\" ended {} by no fault of its handler and has nothing to export; take \
             one whose handler failed",
            outcome.as_str()
        ),
    };
    ApiError::new(Code::NoCase, text)
}
