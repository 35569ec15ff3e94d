//! Gets by outside consumers: under a lease, settled by its token.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use oncue_core::backout::{self, Case, Culprit, Decision, Trouble};
use oncue_core::code::Code;
use oncue_core::message::{Message, MessageId};
use oncue_core::names::QueueName;
use oncue_core::time::{Millis, Timestamp};
use oncue_core::unit_of_work::{Disposition, LeaseToken, Settle, Unit};
use oncue_store::{Select, Take};

use super::Handle;
use super::messages::Held;
use crate::error::ApiError;
use crate::metrics::By;
use crate::put::MAX_DELAY;
use crate::shared::{Phase, QueueCell, Shared};
use crate::tasks::port::MAX_WAIT;
use crate::traces::consumer::{Step, Stepping};

/// Most messages of one get.
pub const MAX_GET: u32 = 1000;

/// Shortest lease, in milliseconds.
pub const MIN_LEASE: Millis = 100;

/// Longest lease, in milliseconds: 12 hours.
pub const MAX_LEASE: Millis = 12 * 3_600_000;

/// The lease when none is asked for, in milliseconds.
pub const DEFAULT_LEASE: Millis = 30_000;

/// What an outside consumer gets.
#[derive(Clone, Debug)]
pub struct GetRequest {
    /// From which queue.
    pub queue: QueueName,
    /// Milliseconds to wait for a first message; at most [`MAX_WAIT`].
    pub wait: Millis,
    /// At most so many; at most [`MAX_GET`].
    pub max: u32,
    /// Milliseconds of the lease; [`MIN_LEASE`] to [`MAX_LEASE`].
    pub lease: Millis,
    /// Only that message.
    pub id: Option<MessageId>,
    /// Only messages with this correlation id.
    pub correlation_id: Option<String>,
}

/// A leased message.
#[derive(Clone, Debug)]
pub struct Leased {
    /// What it is settled by.
    pub token: LeaseToken,
    /// When the lease ends.
    pub until: Timestamp,
    /// The message.
    pub message: Message,
}

/// Holds a queue open for input while an unselective get waits.
struct OpenInput<'a> {
    shared: &'a Arc<Shared>,
    cell: &'a Arc<QueueCell>,
}

impl<'a> OpenInput<'a> {
    fn new(shared: &'a Arc<Shared>, cell: &'a Arc<QueueCell>) -> Self {
        cell.waiting_inputs.fetch_add(1, Ordering::SeqCst);
        shared.mark(cell);
        Self { shared, cell }
    }
}

impl Drop for OpenInput<'_> {
    fn drop(&mut self) {
        self.cell
            .last_input_closed
            .store(self.shared.now().0, Ordering::SeqCst);
        self.cell.waiting_inputs.fetch_sub(1, Ordering::SeqCst);
        self.shared.mark(self.cell);
    }
}

impl Handle {
    /// Gets messages under leases; an empty list when none came in time. Dropping the future before
    /// it answers gives taken messages back.
    ///
    /// # Errors
    /// `unknown-queue`, `get-disabled`, `wait-too-long`, a bad lease, or a store that does not
    /// write.
    pub async fn get(&self, request: GetRequest) -> Result<Vec<Leased>, ApiError> {
        let cell = self.cell(&request.queue)?;
        check(&request)?;
        let selective = request.id.is_some() || request.correlation_id.is_some();
        let _open = (!selective && request.wait > 0).then(|| OpenInput::new(&self.shared, &cell));
        let wait = Duration::from_millis(request.wait);
        let taken = if request.wait == 0 {
            self.try_take(&cell, &request)?
        } else {
            tokio::time::timeout(wait, self.take_waiting(&cell, &request))
                .await
                .unwrap_or(Ok(None))?
        };
        match taken {
            Some((held, messages)) => self.lease(held, messages, &request, selective).await,
            None => Ok(Vec::new()),
        }
    }

    async fn take_waiting(
        &self,
        cell: &Arc<QueueCell>,
        request: &GetRequest,
    ) -> Result<Option<(Held<'_>, Vec<Message>)>, ApiError> {
        loop {
            let mut arrival = std::pin::pin!(cell.arrivals.notified());
            let mut stop = std::pin::pin!(self.shared.stop.notified());
            arrival.as_mut().enable();
            stop.as_mut().enable();
            if !self.shared.is_current(cell) {
                return Err(ApiError::unknown_queue(&cell.name));
            }
            if let Some(taken) = self.try_take(cell, request)? {
                return Ok(Some(taken));
            }
            if self.shared.phase() != Phase::Running {
                return Ok(None);
            }
            tokio::select! {
                () = arrival => {}
                () = stop => {}
            }
        }
    }

    fn try_take(
        &self,
        cell: &QueueCell,
        request: &GetRequest,
    ) -> Result<Option<(Held<'_>, Vec<Message>)>, ApiError> {
        let attributes = cell.attributes.load();
        if !attributes.get {
            return Err(ApiError::new(
                Code::GetDisabled,
                format!("get is disabled for queue \"{}\"; enable it", cell.name),
            ));
        }
        let owner = self.shared.new_owner();
        let take = Take {
            queue: cell.name.clone(),
            owner,
            select: match (&request.id, &request.correlation_id) {
                (Some(id), _) => Select::Id(*id),
                (None, Some(correlation)) => Select::Correlation(correlation.clone()),
                (None, None) => Select::Next,
            },
            max: request.max.clamp(1, MAX_GET) as usize,
            fifo: attributes.delivery == oncue_core::definition::Delivery::Fifo,
            skip_suspects: false,
            now: self.shared.now(),
        };
        let messages = self.shared.store.take(&take)?;
        if messages.is_empty() {
            return Ok(None);
        }
        let places = messages
            .iter()
            .map(|m| (cell.name.clone(), m.header.id.sequence))
            .collect();
        Ok(Some((
            Held {
                handle: self,
                owner,
                places,
            },
            messages,
        )))
    }

    async fn lease(
        &self,
        held: Held<'_>,
        messages: Vec<Message>,
        request: &GetRequest,
        selective: bool,
    ) -> Result<Vec<Leased>, ApiError> {
        let began = self.shared.trace_time();
        let until = self.shared.now().after(request.lease);
        let leased: Vec<Leased> = messages
            .into_iter()
            .map(|message| Leased {
                token: new_token(selective),
                until,
                message,
            })
            .collect();
        let settles = leased
            .iter()
            .map(|one| Settle {
                queue: request.queue.clone(),
                sequence: one.message.header.id.sequence,
                disposition: Disposition::Lease {
                    until,
                    token: one.token,
                    selective,
                    attempts: one.message.attempts,
                },
            })
            .collect();
        let unit = Unit {
            owner: Some(held.owner),
            settles,
            ..Unit::default()
        };
        let mut unanswered = Unanswered {
            handle: self,
            tokens: Vec::new(),
        };
        unanswered.tokens.extend(leased.iter().map(|one| one.token));
        self.shared.store.commit(unit).await?;
        held.settled();
        self.shared
            .metrics
            .applications
            .got
            .add(leased.len() as u64);
        for one in &leased {
            let step = Stepping {
                queue: &request.queue,
                message: &one.message,
                step: Step::Receive,
                disposition: None,
                began,
                caller: self.caller,
            };
            step.tell(&self.shared);
        }
        unanswered.tokens.clear();
        Ok(leased)
    }

    /// Settles a leased message for good.
    ///
    /// # Errors
    /// `unknown-lease` when it was settled or its end has passed and it was taken back.
    pub async fn ack(&self, token: LeaseToken) -> Result<(), ApiError> {
        self.settle_lease(token, Some(Step::Ack), |_, _| Disposition::Remove)
            .await
    }

    /// Gives a leased message back: a failed attempt, charged, retried after `delay` milliseconds
    /// or the queue's own retry delay, or moved to the backout queue at the threshold.
    ///
    /// # Errors
    /// As [`Handle::ack`].
    pub async fn nack(
        &self,
        token: LeaseToken,
        reason: Option<String>,
        delay: Option<Millis>,
    ) -> Result<(), ApiError> {
        if let Some(delay) = delay.filter(|delay| *delay > MAX_DELAY) {
            return Err(ApiError::new(
                Code::InvalidParameter,
                format!("delay is {delay} ms; at most {MAX_DELAY} ms (a year) is allowed"),
            ));
        }
        self.settle_lease(token, Some(Step::Nack), |queue, message| {
            let why = reason.unwrap_or_else(|| "given back by the consumer".to_owned());
            let trouble = Trouble::Nack(why);
            consumer_failed(&self.shared, queue, message, &trouble, delay)
                .unwrap_or(Disposition::Requeue(message.attempts))
        })
        .await
    }

    /// Prolongs a lease; answers its new end.
    ///
    /// # Errors
    /// As [`Handle::ack`], and a bad lease.
    pub async fn extend(&self, token: LeaseToken, lease: Millis) -> Result<Timestamp, ApiError> {
        check_lease(lease)?;
        let until = self.shared.now().after(lease);
        self.settle_lease(token, None, |_, message| Disposition::Lease {
            until,
            token,
            selective: is_selective(token),
            attempts: message.attempts,
        })
        .await?;
        Ok(until)
    }

    async fn settle_lease(
        &self,
        token: LeaseToken,
        step: Option<Step>,
        decide: impl FnOnce(&QueueName, &Message) -> Disposition,
    ) -> Result<(), ApiError> {
        let began = self.shared.trace_time();
        let owner = self.shared.new_owner();
        let (queue, message) = self.shared.store.take_leased(owner, token)?;
        let sequence = message.header.id.sequence;
        let held = Held {
            handle: self,
            owner,
            places: vec![(queue.clone(), sequence)],
        };
        let disposition = decide(&queue, &message);
        let done = disposition.clone();
        self.shared.settled(&queue, [sequence]);
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
        self.shared.store.commit(unit).await?;
        self.shared.metrics.settled(By::Application, &done);
        held.settled();
        if let Some(step) = step {
            let step = Stepping {
                queue: &queue,
                message: &message,
                step,
                disposition: Some(&done),
                began,
                caller: self.caller,
            };
            step.tell(&self.shared);
        }
        Ok(())
    }
}

/// What becomes of a message that an outside consumer did not settle well; `None` gives it back as
/// it was.
pub(crate) fn consumer_failed(
    shared: &Shared,
    queue: &QueueName,
    message: &Message,
    trouble: &Trouble,
    delay: Option<Millis>,
) -> Option<Disposition> {
    let cell = shared.cell(queue)?;
    let attributes = cell.attributes.load();
    let now = shared.now();
    let case = Case {
        queue,
        attributes: &attributes,
        attempts: message.attempts,
        culprit: &Culprit::default(),
        room: crate::dead_letters::room(shared, &attributes),
        now,
        random: fastrand::u64(..),
    };
    let decision = backout::after_failure(&case, trouble);
    if decision.is_parked() {
        shared.alarm_parked(queue, message.header.id);
    }
    match (decision, delay) {
        (Decision::Release, _) => None,
        (Decision::Settle(Disposition::Later { wait, attempts, .. }), Some(delay)) => {
            Some(Disposition::Later {
                until: now.after(delay),
                wait,
                attempts,
            })
        }
        (Decision::Settle(disposition), _) => Some(disposition),
    }
}

/// Leases whose consumer went away before it learned of them: given back, uncharged.
struct Unanswered<'a> {
    handle: &'a Handle,
    tokens: Vec<LeaseToken>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let tokens = std::mem::take(&mut self.tokens);
        if tokens.is_empty() {
            return;
        }
        let handle = self.handle.clone();
        // Outside a runtime nobody waits for the answer either: the leases then end by themselves.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                for token in tokens {
                    let give_back =
                        |_: &QueueName, message: &Message| Disposition::Requeue(message.attempts);
                    let step = Some(Step::Release);
                    if let Err(error) = handle.settle_lease(token, step, give_back).await {
                        tracing::debug!(%error, "a lease that nobody learned of ends by itself");
                    }
                }
            });
        }
    }
}

/// A token that cannot be guessed: 127 bits of the operating system's randomness. The lowest bit
/// tells whether the get was selective, so that the lease is still so when it is prolonged.
fn new_token(selective: bool) -> LeaseToken {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    LeaseToken(u128::from_le_bytes(bytes) & !1 | u128::from(selective))
}

fn is_selective(token: LeaseToken) -> bool {
    token.0 & 1 == 1
}

fn check(request: &GetRequest) -> Result<(), ApiError> {
    if request.wait > MAX_WAIT {
        return Err(ApiError::new(
            Code::WaitTooLong,
            format!(
                "wait is {} ms, at most {MAX_WAIT} ms; get again instead",
                request.wait
            ),
        ));
    }
    if request.max == 0 || request.max > MAX_GET {
        return Err(ApiError::new(
            Code::InvalidParameter,
            format!("max is {}; 1 to {MAX_GET} are allowed", request.max),
        ));
    }
    check_lease(request.lease)
}

fn check_lease(lease: Millis) -> Result<(), ApiError> {
    if (MIN_LEASE..=MAX_LEASE).contains(&lease) {
        return Ok(());
    }
    Err(ApiError::new(
        Code::InvalidParameter,
        format!("lease is {lease} ms; {MIN_LEASE} ms to {MAX_LEASE} ms are allowed"),
    ))
}
