//! The message style: the manager drains the queue on the handler's behalf. Get one, call, settle,
//! commit; in batches, one savepoint around each call and one durable write for all.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use oncue_core::definition::TriggerType;
use oncue_core::outcome::{CallEnd, Outcome};
use oncue_core::unit_of_work::Disposition;
use oncue_store::{CommitError, Select};

use super::Handler;
use super::seen::Seen;
use super::session::TaskSession;
use super::settle::is_blamed;

/// What the drain does next.
enum Next {
    /// Another unit.
    Go,
    /// The same unit once more: a state key that it read was changed meanwhile.
    Again,
    /// The task ends.
    End,
}

/// Drains the session's queue through `handler` until it is empty or the task should end. The
/// caller then finishes the session.
pub async fn drain<H: Handler>(session: &Arc<TaskSession>, handler: &mut H) {
    // One start of `every` takes one message: its count of starts owed is the count of messages.
    let single = session.spec.queue_attributes.trigger == TriggerType::Every;
    loop {
        if session.should_end() {
            session.first_get_answered();
            return;
        }
        let conflicts = session.progress.lock().conflicts;
        let batch = if single || conflicts > 0 || session.cell.is_limited() {
            1
        } else {
            session.spec.attributes.batch as usize
        };
        session.run_alone_after(conflicts).await;
        match one_unit(session, handler, batch).await {
            Next::Again => {}
            Next::Go if !single => {}
            Next::Go | Next::End => return,
        }
    }
}

async fn one_unit<H: Handler>(session: &Arc<TaskSession>, handler: &mut H, batch: usize) -> Next {
    let count = match take_batch(session, batch) {
        Ok(0) => return Next::End,
        Ok(count) => count,
        Err(error) => {
            session
                .progress
                .lock()
                .fail(None, Outcome::Released, error.to_string(), None);
            return Next::End;
        }
    };
    let mut good = Vec::new();
    let mut ended = false;
    for index in 0..count {
        match one_message(session, handler, index).await {
            Settled::Well(id) => good.push(id),
            Settled::Failed => {}
            // The instance is gone and the rest of the batch has not been tried: it goes back
            // uncharged.
            Settled::Trapped => break,
            Settled::NotTried => {
                ended = true;
                break;
            }
        }
    }
    match session.commit_unit().await {
        Ok(()) => {
            let mut progress = session.progress.lock();
            progress.conflicts = 0;
            for id in good {
                progress.note(id, Outcome::Committed, None);
            }
        }
        Err(CommitError::Conflict(what)) => {
            session.release_all();
            let mut progress = session.progress.lock();
            progress.conflicts += 1;
            tracing::debug!(task = %session.spec.id, %what, "state conflict: the unit runs again");
            return if ended { Next::End } else { Next::Again };
        }
        Err(error) => {
            session.release_all();
            session
                .progress
                .lock()
                .fail(None, Outcome::Released, error.to_string(), None);
            ended = true;
        }
    }
    if ended { Next::End } else { Next::Go }
}

fn take_batch(session: &Arc<TaskSession>, batch: usize) -> Result<usize, super::port::PortError> {
    if !session.cell.attributes.load().get {
        session.first_get_answered();
        return Ok(0);
    }
    let owner = session.unit.lock().owner;
    let taken = session.take(owner, &session.cell, Select::Next, batch);
    session.first_get_answered();
    let taken = taken?;
    let count = taken.len();
    for message in taken {
        let delivered = session.deliver(&session.cell, message);
        session.unit.lock().got(delivered, None);
    }
    Ok(count)
}

enum Settled {
    Well(oncue_core::message::MessageId),
    Failed,
    Trapped,
    NotTried,
}

async fn one_message<H: Handler>(
    session: &Arc<TaskSession>,
    handler: &mut H,
    index: usize,
) -> Settled {
    let (delivered, savepoint) = {
        let mut unit = session.unit.lock();
        let Some(taken) = unit.taken.get_mut(index) else {
            return Settled::NotTried;
        };
        let delivered = Arc::clone(&taken.delivered);
        let header = &delivered.message.header;
        taken.in_hand = session.shared.in_hand.mark(&delivered.queue, header.id);
        unit.hop = header.hop_count;
        unit.input = Some(header.id);
        unit.requests = 0;
        unit.seen = Seen::new(!unit.writes.is_empty());
        (delivered, unit.savepoint())
    };
    let report = handler.call(&delivered).await;
    session.fuel.fetch_add(report.fuel, Ordering::Relaxed);
    if report.end == CallEnd::Ok {
        let mut unit = session.unit.lock();
        // What the handler itself got in this call is part of the unit that it says is done.
        let since = unit.savepoint_taken(&savepoint);
        for taken in unit.taken.iter_mut().skip(since) {
            taken.disposition = Some(Disposition::Remove);
        }
        if let Some(taken) = unit.taken.get_mut(index) {
            taken.disposition = Some(Disposition::Remove);
        }
        return Settled::Well(delivered.message.header.id);
    }
    session.keep_failure(&report, Some((&delivered, &savepoint)));
    let (extra, owner) = {
        let mut unit = session.unit.lock();
        (unit.roll_back(&savepoint), unit.owner)
    };
    for taken in &extra {
        session.shared.in_hand.clear(taken.in_hand);
    }
    let places: Vec<_> = extra.iter().map(|taken| taken.place()).collect();
    if !places.is_empty() {
        session.shared.store.release(owner, &places);
    }
    if !is_blamed(&report.end) {
        let detail = super::settle::detail(&report.end);
        session
            .progress
            .lock()
            .fail(None, session.outcome(&report.end), detail, None);
        return Settled::NotTried;
    }
    session.note_failure(&delivered, &report.end);
    let disposition = session.after_failure(std::slice::from_ref(&delivered), &report);
    session
        .unit
        .lock()
        .decide(&delivered, disposition.into_iter().next().flatten());
    match report.end {
        CallEnd::Stopped { .. } => Settled::Trapped,
        _ => Settled::Failed,
    }
}
