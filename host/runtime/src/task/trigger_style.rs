//! Trigger style: one call with the trigger message; the handler works the queue itself.

use oncue_manager::tasks::{CallReport, trigger_style};
use wasmtime::Store;

use super::deadline::within;
use super::{Answer, Run};
use crate::interfaces::Guest;
use crate::interfaces::types::trigger_message;

/// Calls the handler and lets the session commit or undo what is still open.
pub(super) async fn run(run: &mut Run) {
    let report = call(run).await;
    trigger_style::end(&run.session, report).await;
}

async fn call(run: &mut Run) -> CallReport {
    run.deadline.renew();
    let mut store = match run.open() {
        Ok(store) => store,
        Err(end) => return run.not_called(end),
    };
    let ended = within(
        invoke(run, &mut store),
        &run.deadline,
        run.session.stopped(),
    )
    .await;
    run.report(&store, ended)
}

async fn invoke(run: &Run, store: &mut Store<Guest>) -> Answer {
    let handler = run.loaded.trigger_handler(&mut *store).await?;
    let message = trigger_message(&run.session.spec().trigger);
    handler.call_handle(&mut *store, &message).await
}
