//! Redrive: dead letters back to where they came from.

use oncue_core::code::Code;
use oncue_core::message::{Attempts, MessageId};
use oncue_core::names::QueueName;
use oncue_core::unit_of_work::Disposition;
use oncue_store::Browsed;

use super::Handle;
use super::messages::MAX_PAGE;
use crate::error::ApiError;

/// Dead letters of one redrive.
pub const MAX_REDRIVE: usize = 100_000;

/// Which dead letters to redrive.
#[derive(Clone, Debug, Default)]
pub struct RedriveFilter {
    /// Only these; all when empty.
    pub ids: Vec<MessageId>,
    /// Only those that came from this queue.
    pub from: Option<QueueName>,
    /// Only those whose detail contains this text.
    pub detail: Option<String>,
    /// At most so many; 0 means [`MAX_REDRIVE`].
    pub max: usize,
}

impl Handle {
    /// Puts dead letters back on the queue that each came from, with attempts at zero; answers how
    /// many.
    ///
    /// # Errors
    /// `unknown-queue`, or a store that does not write. Those whose queue is gone stay.
    pub async fn redrive(&self, queue: &QueueName, filter: RedriveFilter) -> Result<u64, ApiError> {
        let max = if filter.max == 0 {
            MAX_REDRIVE
        } else {
            filter.max.min(MAX_REDRIVE)
        };
        let mut wanted = Vec::new();
        let mut cursor = None;
        loop {
            let page = self.browse(queue, cursor, MAX_PAGE, false)?;
            wanted.extend(
                page.messages
                    .iter()
                    .filter(|browsed| is_wanted(browsed, &filter))
                    .map(|browsed| browsed.message.header.id),
            );
            cursor = page.next;
            if cursor.is_none() || wanted.len() >= max {
                break;
            }
        }
        let mut done = 0;
        for id in wanted.into_iter().take(max) {
            match self.redrive_one(queue, id).await {
                Ok(()) => done += 1,
                Err(error) if error.code == Code::StoreStopped => return Err(error),
                Err(error) => tracing::info!(%id, %error, "a dead letter stays"),
            }
        }
        Ok(done)
    }

    async fn redrive_one(&self, queue: &QueueName, id: MessageId) -> Result<(), ApiError> {
        self.settle_one(queue, id, |browsed| {
            let record = browsed.message.dead_letter.as_ref();
            let origin = record.map(|record| record.queue.clone()).ok_or_else(|| {
                ApiError::new(
                    Code::InvalidMessage,
                    format!("message {id} has no dead-letter record; put it where it belongs"),
                )
            })?;
            self.cell(&origin)?;
            Ok(Disposition::Move {
                to: origin,
                record: None,
                attempts: Attempts::default(),
            })
        })
        .await
    }
}

fn is_wanted(browsed: &Browsed, filter: &RedriveFilter) -> bool {
    let Some(record) = &browsed.message.dead_letter else {
        return false;
    };
    let id = browsed.message.header.id;
    (filter.ids.is_empty() || filter.ids.contains(&id))
        && filter
            .from
            .as_ref()
            .is_none_or(|from| record.queue == *from)
        && filter
            .detail
            .as_ref()
            .is_none_or(|text| record.detail.contains(text))
}
