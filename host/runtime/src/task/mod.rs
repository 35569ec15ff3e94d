//! One task in the sandbox, from its start to its end: an instance, its calls, and what they cost.
//!
//! Which messages are taken and what becomes of them is the session's and the drain's; here a call
//! is made under its limits and its end is named. Neighbours: [`crate::worker`] polls what is
//! written here, [`crate::classify`] names ends.

use std::sync::Arc;

use oncue_core::outcome::{CallEnd, Outcome};
use oncue_core::quantity::format_millis;
use oncue_manager::tasks::drain::drain;
use oncue_manager::tasks::{CallReport, CallStyle, TaskCost, TaskSession};
use wasmtime::Store;

use self::deadline::{Deadline, Ended};
use self::limits::Limits;
use crate::classify::{Facts, classify};
use crate::engine::Loaded;
use crate::interfaces::Guest;
use crate::interfaces::bindings::oncue::handler::types;
use crate::interfaces::types::failure;
use crate::sink::Log;
use crate::worker::Meter;

pub(crate) mod deadline;
pub(crate) mod instance;
pub(crate) mod limits;
mod message_style;
mod trigger_style;

/// What a call into a handler answers.
type Answer = wasmtime::Result<Result<(), types::Failure>>;

/// Runs one task to its end and finishes its session.
pub(crate) async fn run(loaded: Arc<Loaded>, session: Arc<TaskSession>, meter: Arc<Meter>) {
    let style = session.spec().component.style;
    let mut run = Run::new(loaded, Arc::clone(&session));
    match style {
        CallStyle::Message => {
            let mut handler = message_style::MessageHandler::new(run);
            drain(&session, &mut handler).await;
            run = handler.end();
        }
        CallStyle::Trigger => trigger_style::run(&mut run).await,
    }
    session.finish(run.cost(&meter));
}

/// What all calls of one task share.
pub(crate) struct Run {
    loaded: Arc<Loaded>,
    session: Arc<TaskSession>,
    limits: Limits,
    log: Log,
    deadline: Arc<Deadline>,
    fuel: u64,
    peak_memory: u64,
}

impl Run {
    fn new(loaded: Arc<Loaded>, session: Arc<TaskSession>) -> Self {
        let limits = Limits::new(&session.spec().attributes);
        Self {
            log: Log::new(limits.log),
            deadline: Arc::new(Deadline::new(limits.deadline, limits.task_deadline)),
            loaded,
            session,
            limits,
            fuel: 0,
            peak_memory: 0,
        }
    }

    /// A `wasmtime::Store` for a new instance.
    fn open(&self) -> Result<Store<Guest>, CallEnd> {
        let refills = self.session.spec().component.style == CallStyle::Trigger;
        let session = Some(Arc::clone(&self.session));
        let guest = Guest::new(session, &self.limits, &self.log, &self.deadline, refills);
        instance::new_store(self.loaded.engine(), guest, &self.limits)
            .map_err(|error| CallEnd::HostFailed(format!("an instance cannot be made: {error}")))
    }

    /// Names the end of a call, and counts what it cost.
    fn report(&mut self, store: &Store<Guest>, ended: Ended<Answer>) -> CallReport {
        let guest = store.data();
        // Fuel is always on; a guest that ran out has 0 left.
        let left = store.get_fuel().unwrap_or(0);
        let fuel = guest.burnt_before + self.limits.fuel.saturating_sub(left);
        self.fuel = self.fuel.saturating_add(fuel);
        self.peak_memory = self.peak_memory.max(guest.limiter.peak_memory());
        let end = match ended {
            Ended::Done(Ok(Ok(()))) => CallEnd::Ok,
            Ended::Done(Ok(Err(answer))) => CallEnd::Failed(failure(answer)),
            Ended::Done(Err(error)) => classify(&error, &Facts::new(&self.limits, guest)),
            Ended::PastDeadline => self.past_deadline(),
            Ended::Stopped => CallEnd::HostFailed("the host is stopping".to_owned()),
        };
        // A dead letter tells what was written; a success does not ask, and the tail costs a copy.
        let log_tail = if end == CallEnd::Ok {
            String::new()
        } else {
            self.log.tail().0
        };
        CallReport {
            end,
            fuel,
            log_tail,
        }
    }

    /// The end of a call that could not be made.
    fn not_called(&self, end: CallEnd) -> CallReport {
        CallReport {
            end,
            fuel: 0,
            log_tail: self.log.tail().0,
        }
    }

    fn past_deadline(&self) -> CallEnd {
        let (name, time) = if self.deadline.is_task() {
            ("task-deadline", self.limits.task_deadline)
        } else {
            ("deadline", self.limits.deadline)
        };
        let time = format_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        CallEnd::Stopped {
            outcome: Outcome::PastDeadline,
            detail: format!("ran past its {name} of {time}; raise {name} if it needs more"),
            backtrace: None,
        }
    }

    /// What the task cost in all.
    fn cost(&self, meter: &Meter) -> TaskCost {
        let (log_tail, log_cut) = self.log.tail();
        TaskCost {
            fuel: self.fuel,
            peak_memory: self.peak_memory,
            guest_micros: meter.micros(),
            log_tail,
            log_cut,
            // The session counts these itself.
            refused: Vec::new(),
        }
    }
}
