//! Commits of the loop's own, and of tasks that are lost: submitted, polled in each turn, and what
//! they held given back when they are refused. The loop waits for none of them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use oncue_core::message::Sequence;
use oncue_core::names::QueueName;
use oncue_core::unit_of_work::{OwnerId, Unit};
use oncue_store::Commit;

use crate::event::Nudge;
use crate::main_loop::Manager;
use crate::traces::Span;

/// Messages that an owner holds.
pub(crate) type HeldBy = (OwnerId, Vec<(QueueName, Sequence)>);

/// A commit of the manager's own or of a task that is lost, not yet answered.
#[derive(Debug)]
pub struct Pending {
    pub(crate) commit: Commit,
    /// What to give back if it is refused.
    pub(crate) held: Option<HeldBy>,
    /// What is told in traces once it is durable.
    pub(crate) told: Vec<Span>,
}

impl Manager {
    /// Submits a commit of the manager's own. What `held` names is given back if it is refused.
    pub(crate) fn submit(&mut self, unit: Unit, held: Option<HeldBy>) {
        self.submit_told(unit, held, Vec::new());
    }

    /// The same; `told` is told in traces once it is durable.
    pub(crate) fn submit_told(&mut self, unit: Unit, held: Option<HeldBy>, told: Vec<Span>) {
        let commit = self.shared.store.commit(unit);
        self.pending.push(Pending { commit, held, told });
    }

    /// Takes the answers that are there.
    pub(crate) fn poll_commits(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let waker = Waker::from(Arc::new(Nudge(Arc::clone(&self.shared.inbox))));
        let mut context = Context::from_waker(&waker);
        let shared = Arc::clone(&self.shared);
        self.pending.retain_mut(
            |pending| match Pin::new(&mut pending.commit).poll(&mut context) {
                Poll::Pending => true,
                Poll::Ready(Ok(_)) => {
                    shared.tell_spans(std::mem::take(&mut pending.told));
                    false
                }
                Poll::Ready(Err(error)) => {
                    tracing::warn!(%error, "a unit of work that no task waits for was refused");
                    shared.note_refusal(&error);
                    if let Some((owner, places)) = pending.held.take() {
                        shared.store.release(owner, &places);
                    }
                    false
                }
            },
        );
    }
}
