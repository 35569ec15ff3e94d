//! One task in the sandbox, from its start to its end: an instance, its calls, and what they cost.
//!
//! Which messages are taken and what becomes of them is the session's and the drain's; here a call
//! is made under its limits and its end is named. Neighbours: [`crate::worker`] polls what is
//! written here, [`crate::classify`] names ends.

use std::sync::Arc;

use oncue_core::outcome::{CallEnd, Outcome};
use oncue_core::quantity::format_millis;
use oncue_manager::tasks::drain::drain;
use oncue_manager::tasks::{CallReport, Delivered, TaskCost, TaskSession};
use wasmtime::Store;

use self::deadline::{Deadline, Ended};
use self::each_message::EachMessage;
use self::limits::Limits;
use crate::classify::{Facts, classify};
use crate::engine::{Loaded, Sandbox};
use crate::interfaces::Guest;
use crate::pool::Place;
use crate::secrets::Given;
use crate::sink::Log;
use crate::style::{Answer, Bound, Caller};
use crate::worker::Meter;

pub(crate) mod deadline;
mod each_message;
pub(crate) mod instance;
pub(crate) mod limits;
mod whole_queue;

/// Runs one task to its end and finishes its session.
pub(crate) async fn run(
    sandbox: Sandbox,
    loaded: Arc<Loaded>,
    session: Arc<TaskSession>,
    given: Arc<Given>,
    meter: Arc<Meter>,
) {
    let hidden = given
        .all()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    session.hide(hidden.collect());
    let mut run = Run::new(sandbox.clone(), Arc::clone(&session), given, &meter);
    match loaded.bound(session.spec().component.style) {
        Some((def, Bound::EachMessage(_))) => {
            let mut handler = EachMessage::new(run, &sandbox, &loaded, def);
            drain(&session, &mut handler).await;
            run = handler.end();
        }
        Some((_, Bound::Queue(_))) => whole_queue::run(&mut run, &sandbox, &loaded).await,
        // The host starts no task with a style that its component has not; the session then ends
        // with nothing taken.
        None => {}
    }
    session.finish(run.cost(&meter));
}

/// What all calls of one task share.
pub(crate) struct Run {
    sandbox: Sandbox,
    session: Arc<TaskSession>,
    limits: Limits,
    log: Log,
    deadline: Arc<Deadline>,
    fuel: u64,
    peak_memory: u64,
}

impl Run {
    fn new(
        sandbox: Sandbox,
        session: Arc<TaskSession>,
        given: Arc<Given>,
        meter: &Arc<Meter>,
    ) -> Self {
        let limits = Limits::new(&session.spec().attributes);
        let meter = Arc::clone(meter);
        let deadline = Deadline::metered(limits.deadline, limits.task_deadline, meter);
        Self {
            log: Log::new(limits.log).without(given),
            deadline: Arc::new(deadline),
            sandbox,
            session,
            limits,
            fuel: 0,
            peak_memory: 0,
        }
    }

    /// A `wasmtime::Store` for a new instance in that place, dressed by its style for the message
    /// that it is made for.
    fn open(
        &self,
        place: &Place<'_>,
        message: Option<(&dyn Caller, &Arc<Delivered>)>,
    ) -> Result<Store<Guest>, CallEnd> {
        let refills = self.session.spec().component.style.works_the_queue();
        let session = Some(Arc::clone(&self.session));
        let guest = Guest::new(
            session,
            &self.limits,
            &self.log,
            &self.deadline,
            refills,
            message,
        );
        instance::new_store(place.engine(), guest, &self.limits)
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
            Ended::Done(Ok(Err(failure))) => CallEnd::Failed(failure),
            Ended::Done(Err(error)) => classify(&error, &Facts::new(&self.limits, guest)),
            Ended::PastDeadline => self.past_deadline(),
            Ended::Stopped => CallEnd::HostFailed("the host is stopping".to_owned()),
        };
        let end = self.log.redact_end(end);
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
