//! Dead letters: what there is, by groups; back to where they came from; away for good.

use std::collections::{BTreeMap, BTreeSet};

use oncue_core::message::{Attempts, DeadLetter, MessageId};
use oncue_core::names::{PluginName, QueueName};
use oncue_core::unit_of_work::Disposition;
use oncue_store::Browsed;

use super::Handle;
use super::messages::{MAX_CLEAR_PAGES, MAX_PAGE};
use crate::error::ApiError;
use crate::status::{DeadLetterGroup, DeadLettersView};

/// Dead letters of one redrive or discard.
pub const MAX_REDRIVE: usize = 100_000;

/// Messages that one summary of dead letters looks at.
pub const MAX_DEAD_LETTERS: usize = 10_000;

/// Longest detail of a group, in characters.
const DETAIL_LENGTH: usize = 400;

/// Which dead letters are meant. Messages without a dead-letter record are never among them.
#[derive(Clone, Debug, Default)]
pub struct DeadLetterFilter {
    /// Only these; all when empty.
    pub ids: Vec<MessageId>,
    /// Only those that came from this queue.
    pub from: Option<QueueName>,
    /// Only those with this reason, or whose last attempt ended so: `rejected`, `trapped`.
    pub reason: Option<String>,
    /// Only those whose detail contains this text.
    pub detail: Option<String>,
    /// At most so many; 0 means [`MAX_REDRIVE`].
    pub max: usize,
}

impl DeadLetterFilter {
    fn wants(&self, browsed: &Browsed) -> bool {
        let Some(record) = &browsed.message.dead_letter else {
            return false;
        };
        let (reason, outcome) = record.reason.words();
        let id = browsed.message.header.id;
        (self.ids.is_empty() || self.ids.contains(&id))
            && self.from.as_ref().is_none_or(|from| record.queue == *from)
            && self
                .reason
                .as_deref()
                .is_none_or(|word| word == reason || Some(word) == outcome)
            && self
                .detail
                .as_ref()
                .is_none_or(|text| record.detail.contains(text))
    }

    fn max(&self) -> usize {
        match self.max {
            0 => MAX_REDRIVE,
            max => max.min(MAX_REDRIVE),
        }
    }
}

/// What became of the dead letters that were meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLettersDone {
    /// Redriven, or discarded.
    pub done: u64,
    /// Still there: the queue they came from is gone, or somebody has them in hand.
    pub stayed: u64,
    /// Plugins of the queues to which messages went back, of which a next version is being
    /// compiled: until it is ready, the version before it gets them.
    pub compiling: Vec<PluginName>,
}

impl Handle {
    /// The dead letters of a queue by groups, the largest first. Looks at [`MAX_DEAD_LETTERS`]
    /// messages at most.
    ///
    /// # Errors
    /// `unknown-queue`, or a failed read.
    pub fn dead_letters(&self, queue: &QueueName) -> Result<DeadLettersView, ApiError> {
        let mut groups = Groups::default();
        let mut view = DeadLettersView {
            queue: queue.clone(),
            groups: Vec::new(),
            scanned: 0,
            without_record: 0,
            more: false,
            now: self.shared.now(),
        };
        let mut cursor = None;
        loop {
            let left = MAX_DEAD_LETTERS - view.scanned as usize;
            let page = self.browse(queue, cursor, left.min(MAX_PAGE), false)?;
            view.scanned += page.messages.len() as u64;
            for browsed in &page.messages {
                match &browsed.message.dead_letter {
                    Some(record) => groups.add(browsed, record),
                    None => view.without_record += 1,
                }
            }
            cursor = page.next;
            if cursor.is_none() || view.scanned as usize >= MAX_DEAD_LETTERS {
                break;
            }
        }
        view.more = cursor.is_some();
        view.groups = groups.0.into_values().collect();
        view.groups
            .sort_by_key(|group| std::cmp::Reverse(group.count));
        Ok(view)
    }

    /// Puts dead letters back on the queue that each came from, with attempts at zero.
    ///
    /// # Errors
    /// `unknown-queue`, or a store that does not write. Those whose queue is gone stay.
    pub async fn redrive(
        &self,
        queue: &QueueName,
        filter: &DeadLetterFilter,
    ) -> Result<DeadLettersDone, ApiError> {
        // Looked up before: what is ready afterwards may have missed the first of them.
        let compiling = self.awaiting_next().await?;
        let mut origins = BTreeSet::new();
        let settled = self.settle_dead_letters(queue, filter, |record| {
            self.cell(&record.queue).ok()?;
            if !compiling.is_empty() && !origins.contains(&record.queue) {
                origins.insert(record.queue.clone());
            }
            Some(Disposition::Move {
                to: record.queue.clone(),
                record: None,
                attempts: Attempts::default(),
            })
        });
        let mut answer = settled.await?;
        let concerned = compiling
            .into_iter()
            .filter(|(_, queues)| queues.iter().any(|queue| origins.contains(queue)));
        answer.compiling = concerned.map(|(plugin, _)| plugin).collect();
        Ok(answer)
    }

    /// Plugins that serve while their next version is compiled, each with its queues.
    async fn awaiting_next(&self) -> Result<Vec<(PluginName, Vec<QueueName>)>, ApiError> {
        let mut found = Vec::new();
        for plugin in self.plugins().await? {
            if !plugin.awaits_next() {
                continue;
            }
            // Also those that operators have bound. A process that is gone by now has none.
            let process = self.process(plugin.process.clone()).await;
            let queues = process.map(|view| view.queues).unwrap_or_default();
            found.push((plugin.name, queues));
        }
        Ok(found)
    }

    /// Removes dead letters for good.
    ///
    /// # Errors
    /// `unknown-queue`, or a store that does not write.
    pub async fn discard(
        &self,
        queue: &QueueName,
        filter: &DeadLetterFilter,
    ) -> Result<DeadLettersDone, ApiError> {
        self.settle_dead_letters(queue, filter, |_| Some(Disposition::Remove))
            .await
    }

    /// Settles those that are meant, a unit for each page; `None` leaves one where it is.
    async fn settle_dead_letters(
        &self,
        queue: &QueueName,
        filter: &DeadLetterFilter,
        mut decide: impl FnMut(&DeadLetter) -> Option<Disposition> + Send,
    ) -> Result<DeadLettersDone, ApiError> {
        let mut left = filter.max();
        let mut answer = DeadLettersDone::default();
        let mut cursor = None;
        for _ in 0..MAX_CLEAR_PAGES {
            let page = self.browse(queue, cursor, MAX_PAGE, false)?;
            let wanted = page.messages.iter().filter(|browsed| filter.wants(browsed));
            let meant: Vec<_> = wanted.take(left).collect();
            left -= meant.len();
            let settles = meant.iter().filter_map(|browsed| {
                let record = browsed.message.dead_letter.as_ref()?;
                Some((*browsed, decide(record)?))
            });
            let done = self.settle_page(queue, settles).await?;
            answer.done += done;
            answer.stayed += meant.len() as u64 - done;
            cursor = page.next;
            if cursor.is_none() || left == 0 {
                break;
            }
        }
        Ok(answer)
    }
}

/// By origin, reason, outcome and process: at most one group for each message looked at.
#[derive(Default)]
struct Groups(BTreeMap<GroupKey, DeadLetterGroup>);

type GroupKey = (
    QueueName,
    &'static str,
    Option<&'static str>,
    Option<String>,
);

impl Groups {
    fn add(&mut self, browsed: &Browsed, record: &DeadLetter) {
        let (reason, outcome) = record.reason.words();
        let header = &browsed.message.header;
        let key = (
            record.queue.clone(),
            reason,
            outcome,
            record.process.clone(),
        );
        let group = self.0.entry(key).or_insert_with(|| DeadLetterGroup {
            reason,
            outcome,
            queue: record.queue.clone(),
            process: record.process.clone(),
            count: 0,
            oldest: header.put_time,
            newest: header.put_time,
            last: record.time,
            message: header.id,
            detail: String::new(),
        });
        group.count += 1;
        group.oldest = group.oldest.min(header.put_time);
        group.newest = group.newest.max(header.put_time);
        if group.count == 1 || record.time >= group.last {
            group.last = record.time;
            group.message = header.id;
            group.detail = record.detail.chars().take(DETAIL_LENGTH).collect();
        }
    }
}
