//! Request and reply inside a handler: put at once, outside the unit, then await the answer.
//!
//! The put is under the idempotency key (id of the message in hand, ordinal of the call), so a
//! handler that is tried again meets its first request and its first answer. The answer is taken in
//! the unit: it goes with the commit, and comes back with a backout.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use oncue_core::names::QueueName;
use oncue_core::time::Millis;
use oncue_core::unit_of_work::{IdempotencyKey, Put, Unit};
use oncue_store::{CommitError, Select};
use tokio::sync::oneshot;

use super::Delivered;
use super::port::{MAX_WAIT, PortError, PutRequest};
use super::probe::SessionCall;
use super::puts::takes;
use super::session::TaskSession;
use crate::event::Event;
use crate::shared::QueueCell;
use crate::traces::Sending;

/// How long a request's key is remembered: far beyond any retry of its input, in milliseconds (7
/// days).
const REQUEST_KEY_LIFE: Millis = 7 * 24 * 3_600_000;

/// A slot lent to others while a request waits. Dropped before the task has it back (the call was
/// ended), it asks for it without waiting.
struct LentSlot<'a>(Option<&'a TaskSession>);

impl<'a> LentSlot<'a> {
    fn new(session: &'a TaskSession, target: &QueueName) -> Self {
        let event = Event::TaskWaits(session.spec.id, target.clone());
        session.shared.inbox.push(event);
        Self(Some(session))
    }

    /// Waits until the task has a slot again.
    async fn back(mut self) -> Result<(), PortError> {
        let Some(session) = self.0.take() else {
            return Ok(());
        };
        let (answer, wait) = oneshot::channel();
        let event = Event::TaskResumes(session.spec.id, Some(answer));
        session.shared.inbox.push(event);
        tokio::select! {
            answer = wait => answer.map_err(|_| PortError::Stopping),
            () = session.stopped() => Err(PortError::Stopping),
        }
    }
}

impl Drop for LentSlot<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.0 {
            let event = Event::TaskResumes(session.spec.id, None);
            session.shared.inbox.push(event);
        }
    }
}

impl TaskSession {
    /// Puts a request at once and waits for the message that answers it on the manager's own reply
    /// queue: the one that carries the request's correlation id, else its id. While it waits, the
    /// task gives its slot back.
    ///
    /// # Errors
    /// As a put; [`PortError::NoReply`] when no answer came within `wait` milliseconds;
    /// [`PortError::Cancelled`] when the handler that should answer cannot start beside this task.
    pub async fn request(
        &self,
        request: PutRequest,
        wait: Millis,
    ) -> Result<Arc<Delivered>, PortError> {
        self.probe(SessionCall::Request(&request.queue))?;
        let cell = self.may_put(&request.queue)?;
        self.guest_catches_up().await?;
        let replies = QueueName::replies();
        let reply_cell = self.shared.cell(&replies).ok_or_else(|| {
            PortError::UnknownQueue(format!(
                "reply queue \"{replies}\" is not defined; define it first [unknown-queue]"
            ))
        })?;
        let asked = request.options.correlation_id.clone();
        let (put, sending) = self.build_request(&cell, request)?;
        let told = sending.map(|sending| self.asking(sending, &put));
        let unit = Unit {
            puts: vec![put],
            ..Unit::default()
        };
        let receipt = self
            .shared
            .store
            .commit(unit)
            .await
            .inspect_err(|error| self.shared.note_refusal(error))
            .map_err(|error| match error {
                CommitError::QueueFull { .. } | CommitError::Full => {
                    PortError::Full(error.to_string())
                }
                error => PortError::Other(error.to_string()),
            })?;
        self.shared.metrics.handlers.put.add(1);
        let id = receipt
            .puts
            .first()
            .map(|answer| answer.id)
            .ok_or(PortError::Stopping)?;
        self.tell_request(told, id);
        let asked = asked.unwrap_or_else(|| id.to_string());
        // A request that was made before may have its answer already.
        if let Some(found) = self.take_reply(&reply_cell, &cell.name, &asked)? {
            return Ok(found);
        }
        // Others may have to commit before the answer can come.
        *self.alone.lock() = None;
        let lent = LentSlot::new(self, &cell.name);
        let limit = std::time::Duration::from_millis(wait.min(MAX_WAIT));
        match tokio::time::timeout(limit, self.wait_for_reply(&reply_cell, &cell.name, &asked))
            .await
        {
            Ok(Err(fatal)) => Err(fatal),
            Ok(Ok(found)) => {
                lent.back().await?;
                Ok(found)
            }
            Err(_) => {
                lent.back().await?;
                Err(PortError::NoReply(format!(
                    "no reply to request {id} came within {wait} ms; raise the wait, or retry \
                     [no-reply]"
                )))
            }
        }
    }

    /// The put of a request: under the key of the message in hand and the call's ordinal, outside
    /// the unit.
    fn build_request(
        &self,
        cell: &QueueCell,
        mut request: PutRequest,
    ) -> Result<(Put, Option<Sending>), PortError> {
        let attributes = cell.attributes.load_full();
        takes(cell, &attributes, request.body.len() as u64)?;
        request.options.reply_to = Some(QueueName::replies());
        request.options.idempotency_key = None;
        let mut unit = self.unit.lock();
        let (mut put, sending) = self.build_put(&unit, cell, &attributes, request)?;
        let key = match unit.input {
            Some(input) => {
                unit.requests += 1;
                format!("request/{input}/{}", unit.requests)
            }
            None => {
                let ordinal = self.requests.fetch_add(1, Ordering::Relaxed);
                format!("request/task/{}/{ordinal}", self.spec.id)
            }
        };
        put.key = Some(IdempotencyKey {
            key,
            body_digest: None,
            until: self.shared.now().after(REQUEST_KEY_LIFE),
        });
        // Past the hop limit it is a dead letter, for which there is always room.
        put.max_depth = (put.queue == cell.name).then_some(attributes.max_depth);
        Ok((put, sending))
    }

    fn take_reply(
        &self,
        cell: &Arc<QueueCell>,
        target: &QueueName,
        correlation: &str,
    ) -> Result<Option<Arc<Delivered>>, PortError> {
        let owner = self.unit.lock().owner;
        let select = Select::Correlation(correlation.to_owned());
        let Some(message) = self.take(owner, cell, select, 1)?.pop() else {
            return Ok(None);
        };
        let delivered = self.deliver(cell, message);
        self.unit.lock().got_reply(target, Arc::clone(&delivered));
        Ok(Some(delivered))
    }

    async fn wait_for_reply(
        &self,
        cell: &Arc<QueueCell>,
        target: &QueueName,
        correlation: &str,
    ) -> Result<Arc<Delivered>, PortError> {
        loop {
            let mut arrival = std::pin::pin!(cell.arrivals.notified());
            let mut way = std::pin::pin!(self.boundary().notified());
            let mut stop = std::pin::pin!(self.shared.stop.notified());
            arrival.as_mut().enable();
            way.as_mut().enable();
            stop.as_mut().enable();
            if self.stop_requested() {
                return Err(PortError::Stopping);
            }
            if let Some(found) = self.take_reply(cell, target, correlation)? {
                return Ok(found);
            }
            if self.is_giving_way() {
                return Err(PortError::Cancelled(
                    "the queue that should answer cannot start beside this task, which gives way \
                     to it and is tried again [insufficient-resources]"
                        .to_owned(),
                ));
            }
            tokio::select! {
                () = arrival => {}
                () = way => {}
                () = stop => {}
            }
        }
    }
}
