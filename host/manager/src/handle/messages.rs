//! Puts, looks and removals by applications.

use std::sync::Arc;

use bytes::Bytes;
use oncue_core::code::Code;
use oncue_core::message::{Body, MessageId};
use oncue_core::names::QueueName;
use oncue_core::unit_of_work::{Disposition, PutAnswer, Settle, Unit};
use oncue_store::{Browse, Browsed, MessageState, Page};

use super::Handle;
use crate::error::ApiError;
use crate::shared::{Phase, QueueCell};
use crate::tasks::port::PutRequest;
use crate::traces::{Sending, Span, What};

/// Messages of one browse page.
pub const MAX_PAGE: usize = 1000;

/// Puts of one unit.
pub const MAX_UNIT_PUTS: usize = 10_000;

/// Pages that a clear goes through before it gives way: ten million messages.
pub(super) const MAX_CLEAR_PAGES: usize = 10_000;

impl Handle {
    /// Puts messages as one unit of work: all or none, durable when answered. A repeat under an
    /// idempotency key answers with the first one's id.
    ///
    /// # Errors
    /// `unknown-queue`, `put-disabled`, `queue-full`, `too-large`, `invalid-message` with all
    /// faults, `duplicate-key`, or a store that does not write.
    pub async fn put(
        &self,
        puts: Vec<PutRequest>,
        putter: Option<String>,
    ) -> Result<Vec<PutAnswer>, ApiError> {
        let count = puts.len() as u64;
        let answers = self.put_unit(puts, putter).await;
        let counts = &self.shared.metrics.applications;
        match &answers {
            Ok(answers) => {
                let repeated = answers.iter().filter(|answer| answer.repeated).count() as u64;
                counts.put.add(count - repeated);
                counts.repeated.add(repeated);
            }
            Err(_) => counts.refused.add(count),
        }
        answers
    }

    async fn put_unit(
        &self,
        puts: Vec<PutRequest>,
        putter: Option<String>,
    ) -> Result<Vec<PutAnswer>, ApiError> {
        if puts.len() > MAX_UNIT_PUTS {
            return Err(ApiError::new(
                Code::UnitTooLarge,
                format!(
                    "the unit has {} puts of {MAX_UNIT_PUTS}; split it",
                    puts.len()
                ),
            ));
        }
        if self.shared.phase() == Phase::Cancelling {
            return Err(super::stopping());
        }
        let now = self.shared.now();
        let mut unit = Unit {
            refuse_when_busy: true,
            ..Unit::default()
        };
        let mut traced = Vec::new();
        let mut cells = Cells::default();
        for mut request in puts {
            let cell = self.cell(&request.queue)?;
            let attributes = cell.attributes.load_full();
            if !attributes.put {
                return Err(ApiError::new(
                    Code::PutDisabled,
                    format!("put is disabled for queue \"{}\"; enable it", cell.name),
                ));
            }
            let size = request.body.len() as u64;
            if size > attributes.max_message_length {
                return Err(ApiError::new(
                    Code::TooLarge,
                    format!(
                        "the body has {size} bytes, queue \"{}\" takes {}; raise \
                         max-message-length",
                        cell.name, attributes.max_message_length
                    ),
                ));
            }
            if let Some(tracer) = &self.shared.tracer {
                // Before the context is followed it must be one.
                crate::traces::clean(&mut request.options.properties);
                let sending = tracer.sending(&mut request.options.properties);
                traced.push((request.queue.clone(), size, sending));
            }
            let id = self.shared.store.next_id();
            let mut put = crate::put::build(request, &attributes, now, id, putter.clone())?;
            put.max_depth = Some(attributes.max_depth);
            unit.puts.push(put);
            cells.push(cell);
        }
        let began = self.shared.trace_time();
        let commit = self.shared.store.commit(unit);
        cells.each(crate::tasks::linger::tell_of_put);
        let answer = commit.await;
        if let Err(error) = &answer {
            self.shared.note_refusal(error);
        }
        let answer = answer.map(|receipt| receipt.puts).map_err(ApiError::from);
        if let Ok(answers) = &answer {
            cells.came(answers);
        }
        self.tell_puts(traced, began, &answer);
        answer
    }

    /// Tells of puts in their traces, those that are recorded.
    fn tell_puts(
        &self,
        puts: Vec<(QueueName, u64, Option<Sending>)>,
        began: u64,
        answer: &Result<Vec<PutAnswer>, ApiError>,
    ) {
        let Some(tracer) = &self.shared.tracer else {
            return;
        };
        let ended = self.shared.trace_time();
        for (place, (queue, size, sending)) in puts.into_iter().enumerate() {
            let Some(sending) = sending else { continue };
            let (message, error) = match answer {
                Ok(answers) => (answers.get(place).map(|put| put.id), None),
                Err(error) => (None, Some(error.code.as_str())),
            };
            tracer.emit(Span {
                context: sending.context,
                parent: sending.parent,
                state: sending.state,
                began,
                ended,
                what: What::Send {
                    queue,
                    message,
                    size,
                    by: None,
                    error,
                },
                links: Vec::new(),
                more_links: 0,
            });
        }
    }

    /// Looks at messages without taking them.
    ///
    /// # Errors
    /// `unknown-queue`, a bad cursor, or a failed read.
    pub fn browse(
        &self,
        queue: &QueueName,
        cursor: Option<String>,
        max: usize,
        ready_only: bool,
    ) -> Result<Page, ApiError> {
        self.cell(queue)?;
        let now = self.shared.now();
        let max = max.clamp(1, MAX_PAGE);
        let browse = Browse {
            queue: queue.clone(),
            cursor,
            max,
            now,
            ready_only,
        };
        Ok(self.shared.store.browse(&browse)?)
    }

    /// Looks at one message.
    ///
    /// # Errors
    /// `unknown-queue` or `unknown-message`.
    pub fn message(&self, queue: &QueueName, id: MessageId) -> Result<Browsed, ApiError> {
        self.cell(queue)?;
        self.shared
            .store
            .find(queue, id)?
            .ok_or_else(|| unknown_message(queue, id))
    }

    /// Reads a part of a body.
    ///
    /// # Errors
    /// `unknown-message` when it was settled meanwhile.
    pub fn read_body(&self, body: &Body, offset: u64, length: u64) -> Result<Bytes, ApiError> {
        Ok(self.shared.store.read_body(body, offset, length)?)
    }

    /// Reads a whole body. Without a copy when it is in memory.
    ///
    /// # Errors
    /// As [`Handle::read_body`].
    pub fn body(&self, body: &Body) -> Result<Bytes, ApiError> {
        match body {
            Body::Whole(bytes) => Ok(bytes.clone()),
            stored @ Body::Stored { size, .. } => self.read_body(stored, 0, *size),
        }
    }

    /// Removes one message for good.
    ///
    /// # Errors
    /// `unknown-message`, or `message-in-use` while a task or consumer has it.
    pub async fn remove(&self, queue: &QueueName, id: MessageId) -> Result<(), ApiError> {
        self.settle_one(queue, id, |_| Ok(Disposition::Remove))
            .await
    }

    /// Frees a parked message, or one that waits: it may be taken at once.
    ///
    /// # Errors
    /// `unknown-message`, or `message-in-use` while a task or consumer has it.
    pub async fn release(&self, queue: &QueueName, id: MessageId) -> Result<(), ApiError> {
        self.settle_one(queue, id, |browsed| {
            Ok(Disposition::Requeue(browsed.message.attempts))
        })
        .await
    }

    pub(super) async fn settle_one(
        &self,
        queue: &QueueName,
        id: MessageId,
        decide: impl FnOnce(&Browsed) -> Result<Disposition, ApiError>,
    ) -> Result<(), ApiError> {
        let browsed = self.message(queue, id)?;
        if matches!(
            browsed.state,
            MessageState::InUnit | MessageState::Leased(_)
        ) {
            return Err(in_use(queue, id));
        }
        let disposition = decide(&browsed)?;
        let owner = self.shared.new_owner();
        let Some(message) = self.shared.store.take_any(owner, queue, id)? else {
            return Err(in_use(queue, id));
        };
        let sequence = message.header.id.sequence;
        let settle = Settle {
            queue: queue.clone(),
            sequence,
            disposition,
        };
        let unit = Unit {
            owner: Some(owner),
            settles: vec![settle],
            ..Unit::default()
        };
        let held = Held {
            handle: self,
            owner,
            places: vec![(queue.clone(), sequence)],
        };
        self.shared.store.commit(unit).await?;
        held.settled();
        self.shared.settled(queue, [sequence]);
        Ok(())
    }

    /// Removes all messages that nobody has in hand; answers how many.
    ///
    /// # Errors
    /// `unknown-queue`, or a store that does not write.
    pub async fn clear(&self, queue: &QueueName) -> Result<u64, ApiError> {
        let mut removed = 0;
        let mut cursor = None;
        for _ in 0..MAX_CLEAR_PAGES {
            let page = self.browse(queue, cursor, MAX_PAGE, false)?;
            let all = page.messages.iter();
            removed += self
                .settle_page(queue, all.map(|browsed| (browsed, Disposition::Remove)))
                .await?;
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        Ok(removed)
    }

    /// Settles those of a page's messages that nobody has in hand, in one unit; answers how many.
    pub(super) async fn settle_page<'a>(
        &self,
        queue: &QueueName,
        page: impl Iterator<Item = (&'a Browsed, Disposition)>,
    ) -> Result<u64, ApiError> {
        let owner = self.shared.new_owner();
        let mut settles = Vec::new();
        let mut held = Held {
            handle: self,
            owner,
            places: Vec::new(),
        };
        for (browsed, disposition) in page {
            let id = browsed.message.header.id;
            if matches!(
                browsed.state,
                MessageState::InUnit | MessageState::Leased(_)
            ) {
                continue;
            }
            if self.shared.store.take_any(owner, queue, id)?.is_some() {
                held.places.push((queue.clone(), id.sequence));
                settles.push(Settle {
                    queue: queue.clone(),
                    sequence: id.sequence,
                    disposition,
                });
            }
        }
        let settled = settles.len() as u64;
        if settled == 0 {
            return Ok(0);
        }
        let unit = Unit {
            owner: Some(owner),
            settles,
            ..Unit::default()
        };
        let gone: Vec<_> = held.places.iter().map(|(_, sequence)| *sequence).collect();
        self.shared.store.commit(unit).await?;
        held.settled();
        self.shared.settled(queue, gone);
        Ok(settled)
    }
}

/// The cells of a unit's puts, in their order. One put, the usual, takes no memory of its own.
#[derive(Default)]
struct Cells {
    first: Option<Arc<QueueCell>>,
    more: Vec<Arc<QueueCell>>,
}

impl Cells {
    fn push(&mut self, cell: Arc<QueueCell>) {
        match &self.first {
            None => self.first = Some(cell),
            Some(_) => self.more.push(cell),
        }
    }

    fn each(&self, mut look: impl FnMut(&QueueCell)) {
        for cell in self.first.iter().chain(&self.more) {
            look(cell);
        }
    }

    /// Counts the puts that were made.
    fn came(&self, answers: &[PutAnswer]) {
        for (cell, answer) in self.first.iter().chain(&self.more).zip(answers) {
            if !answer.repeated {
                cell.came(1);
            }
        }
    }
}

/// Messages held by a request: given back when the request ends before they are settled.
pub(super) struct Held<'a> {
    pub(super) handle: &'a Handle,
    pub(super) owner: oncue_core::unit_of_work::OwnerId,
    pub(super) places: Vec<(QueueName, oncue_core::message::Sequence)>,
}

impl Held<'_> {
    /// They are settled: nothing to give back.
    pub(super) fn settled(mut self) {
        self.places.clear();
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if !self.places.is_empty() {
            Arc::clone(&self.handle.shared.store).release(self.owner, &self.places);
        }
    }
}

fn unknown_message(queue: &QueueName, id: MessageId) -> ApiError {
    ApiError::new(
        Code::UnknownMessage,
        format!("message {id} is not on queue \"{queue}\"; it was settled, moved, or never there"),
    )
}

fn in_use(queue: &QueueName, id: MessageId) -> ApiError {
    ApiError::new(
        Code::MessageInUse,
        format!("message {id} of queue \"{queue}\" is in a task's or a consumer's hand; try later"),
    )
}
