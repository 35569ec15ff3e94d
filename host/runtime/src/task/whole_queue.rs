//! A task whose handler works the queue itself: one call with the trigger message.

use oncue_manager::tasks::{CallReport, trigger_style};
use wasmtime::Store;

use super::Run;
use super::deadline::within;
use crate::engine::{Loaded, Sandbox};
use crate::interfaces::Guest;
use crate::loaded::Linked;
use crate::style::{Answer, Bound};

/// Calls the handler and lets the session commit or undo what is still open.
pub(super) async fn run(run: &mut Run, sandbox: &Sandbox, loaded: &Loaded) {
    let report = call(run, sandbox, loaded).await;
    trigger_style::end(&run.session, report).await;
}

async fn call(run: &mut Run, sandbox: &Sandbox, loaded: &Loaded) -> CallReport {
    run.deadline.renew();
    // Held until the store is gone, which is declared after it.
    let place = sandbox.place();
    let mut store = match run.open(&place, None) {
        Ok(store) => store,
        Err(end) => return run.not_called(end),
    };
    let ended = within(
        invoke(run, loaded.in_pool(place.number()), &mut store),
        &run.deadline,
        run.session.stopped(),
    )
    .await;
    run.report(&store, ended)
}

async fn invoke(run: &Run, linked: &Linked, store: &mut Store<Guest>) -> Answer {
    let spec = run.session.spec();
    let Some((_, Bound::Queue(handler))) = linked.bound(spec.component.style) else {
        return Err(wasmtime::format_err!("the component has no such handler"));
    };
    let instance = linked.instantiate(&mut *store).await?;
    run.session.guest_begins();
    handler.call(store, &instance, &spec.trigger).await
}
