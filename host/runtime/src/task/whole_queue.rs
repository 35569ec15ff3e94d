//! A task whose handler works the queue itself: one call with the trigger message.

use oncue_manager::tasks::{CallReport, trigger_style};
use wasmtime::Store;

use super::Run;
use super::deadline::within;
use crate::interfaces::Guest;
use crate::style::{Answer, OnTrigger};

/// Calls the handler and lets the session commit or undo what is still open.
pub(super) async fn run(run: &mut Run, handler: &OnTrigger) {
    let report = call(run, handler).await;
    trigger_style::end(&run.session, report).await;
}

async fn call(run: &mut Run, handler: &OnTrigger) -> CallReport {
    run.deadline.renew();
    let mut store = match run.open(None) {
        Ok(store) => store,
        Err(end) => return run.not_called(end),
    };
    let ended = within(
        invoke(run, handler, &mut store),
        &run.deadline,
        run.session.stopped(),
    )
    .await;
    run.report(&store, ended)
}

async fn invoke(run: &Run, handler: &OnTrigger, store: &mut Store<Guest>) -> Answer {
    let instance = run.loaded.instantiate(&mut *store).await?;
    run.session.guest_begins();
    handler
        .call(store, &instance, &run.session.spec().trigger)
        .await
}
