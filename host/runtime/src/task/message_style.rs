//! Message style: an instance that is called once for each message that the drain takes.

use std::sync::Arc;

use oncue_core::outcome::CallEnd;
use oncue_manager::tasks::{CallReport, Delivered, Handler};
use wasmtime::Store;
use wasmtime::component::Resource;

use super::deadline::within;
use super::{Answer, Run};
use crate::interfaces::Guest;
use crate::interfaces::bindings::exports::oncue::handler::on_message;

/// Calls a component for one message after the other.
pub(super) struct MessageHandler {
    run: Run,
    /// The instance that may be used again.
    live: Option<Live>,
}

struct Live {
    store: Store<Guest>,
    handler: on_message::Guest,
    /// Messages that it has handled.
    uses: u32,
}

impl MessageHandler {
    pub(super) fn new(run: Run) -> Self {
        Self { run, live: None }
    }

    /// Drops the instance; the costs remain.
    pub(super) fn end(self) -> Run {
        self.run
    }

    /// The instance to call: the last one while it may be used again, else none and a store for a
    /// new one.
    fn take(&mut self) -> Result<(Store<Guest>, Option<on_message::Guest>, u32), CallEnd> {
        let Some(mut live) = self.live.take() else {
            return Ok((self.run.open()?, None, 0));
        };
        let refilled = live.store.set_fuel(self.run.limits.fuel);
        refilled.map_err(|error| CallEnd::HostFailed(error.to_string()))?;
        live.store.data_mut().limiter.begin_call();
        Ok((live.store, Some(live.handler), live.uses))
    }
}

/// Makes the instance if there is none yet, and calls it. The message is lent for the call.
async fn invoke(
    run: &Run,
    store: &mut Store<Guest>,
    handler: &mut Option<on_message::Guest>,
    message: &Arc<Delivered>,
) -> Answer {
    let handler = match handler {
        Some(handler) => handler,
        None => handler.insert(run.loaded.message_handler(&mut *store).await?),
    };
    let given = store.data_mut().give(Arc::clone(message))?;
    let lent = Resource::new_borrow(given.rep());
    let answer = handler.call_handle(&mut *store, lent).await?;
    store.data_mut().table.delete(given)?;
    Ok(answer)
}

impl Handler for MessageHandler {
    async fn call(&mut self, message: &Arc<Delivered>) -> CallReport {
        self.run.deadline.renew();
        let (mut store, mut handler, uses) = match self.take() {
            Ok(taken) => taken,
            Err(end) => return self.run.not_called(end),
        };
        let call = invoke(&self.run, &mut store, &mut handler, message);
        let ended = within(call, &self.run.deadline, self.run.session.stopped()).await;
        let report = self.run.report(&store, ended);
        let uses = uses + 1;
        if let (CallEnd::Ok, Some(handler)) = (&report.end, handler)
            && uses < self.run.limits.reuse
        {
            self.live = Some(Live {
                store,
                handler,
                uses,
            });
        }
        report
    }
}
