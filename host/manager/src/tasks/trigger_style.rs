//! The trigger style: the handler works the queue itself. Its unit of work ends when it says so, or
//! with its call.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use oncue_core::outcome::{CallEnd, Outcome};
use oncue_core::unit_of_work::Disposition;
use oncue_store::CommitError;

use super::CallReport;
use super::port::PortError;
use super::probe::SessionCall;
use super::session::TaskSession;

impl TaskSession {
    /// The handler commits its unit of work and begins another.
    ///
    /// # Errors
    /// [`PortError::Conflict`] when a state key changed meanwhile: the unit is undone, uncharged.
    /// Another error when the store does not write; then too the unit is undone.
    pub async fn commit(&self) -> Result<(), PortError> {
        self.probe(SessionCall::Commit)?;
        self.commit_rest().await
    }

    /// Commits what is open, with all that is still undecided.
    async fn commit_rest(&self) -> Result<(), PortError> {
        {
            let mut unit = self.unit.lock();
            unit.settle_rest(&Disposition::Remove);
            if let Some(trace) = &mut unit.trace {
                trace.end(self.trace_time(), Outcome::Committed, None, 0);
            }
        }
        match self.commit_unit().await {
            Ok(()) => {
                self.cell.conflicts.store(0, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                if matches!(error, CommitError::Conflict(_)) {
                    self.cell.conflicts.fetch_add(1, Ordering::Relaxed);
                }
                Err(match error {
                    CommitError::Conflict(_) => PortError::Conflict(error.to_string()),
                    CommitError::QueueFull { .. } => PortError::Full(error.to_string()),
                    other => PortError::Other(other.to_string()),
                })
            }
        }
    }

    /// The handler undoes its unit of work and begins another: a failed unit, with blame.
    pub async fn backout(&self) {
        let end = CallEnd::Stopped {
            outcome: Outcome::BackedOut,
            detail: "the handler backed its unit of work out".to_owned(),
            backtrace: None,
        };
        self.undo_unit(&CallReport {
            end,
            fuel: 0,
            log_tail: String::new(),
        })
        .await;
    }
}

/// Ends the unit of work of a trigger-style call: committed when it returned ok, else undone. The
/// caller then finishes the session.
pub async fn end(session: &Arc<TaskSession>, report: CallReport) {
    session.first_get_answered();
    session.fuel.fetch_add(report.fuel, Ordering::Relaxed);
    let time = session.shared.now().since(session.started);
    session.called(&report, Duration::from_millis(time));
    if report.end != CallEnd::Ok {
        session.undo_unit(&report).await;
        return;
    }
    if let Err(error) = session.commit_rest().await {
        let outcome = match error {
            PortError::Conflict(_) => Outcome::StateConflict,
            _ => Outcome::Released,
        };
        session
            .progress
            .lock()
            .fail(None, outcome, error.to_string(), None);
    }
}
