//! A task whose handler is called once for each message that the drain takes.

use std::sync::Arc;

use oncue_core::outcome::CallEnd;
use oncue_manager::tasks::{CallReport, Delivered, Handler};
use wasmtime::Store;
use wasmtime::component::Instance;

use super::Run;
use super::deadline::within;
use crate::interfaces::Guest;
use crate::style::{Answer, Caller};
use crate::ticker::Patience;

/// How long a task that has emptied its queue waits for the next message, in ticks of a
/// millisecond, the present one included.
const LINGER_TICKS: u64 = 3;

/// Calls a component for one message after the other.
pub(super) struct EachMessage<'a> {
    run: Run,
    caller: &'a dyn Caller,
    /// Messages that one instance handles.
    reuse: u32,
    /// The instance that may be used again.
    live: Option<Live>,
    /// To wait for the next message with; made when it is first waited for.
    patience: Option<Patience>,
}

struct Live {
    store: Store<Guest>,
    instance: Instance,
    /// Messages that it has handled.
    uses: u32,
}

impl<'a> EachMessage<'a> {
    pub(super) fn new(run: Run, caller: &'a dyn Caller, fresh: bool) -> Self {
        let reuse = if fresh { 1 } else { run.limits.reuse };
        Self {
            run,
            caller,
            reuse,
            live: None,
            patience: None,
        }
    }

    /// Drops the instance; the costs remain.
    pub(super) fn end(self) -> Run {
        self.run
    }

    /// The instance to call: the last one while it may be used again, else none and a store for a
    /// new one.
    fn take(
        &mut self,
        message: &Arc<Delivered>,
    ) -> Result<(Store<Guest>, Option<Instance>, u32), CallEnd> {
        let Some(mut live) = self.live.take() else {
            let store = self.run.open(Some((self.caller, message)))?;
            return Ok((store, None, 0));
        };
        let refilled = live.store.set_fuel(self.run.limits.fuel);
        refilled.map_err(|error| CallEnd::HostFailed(error.to_string()))?;
        live.store.data_mut().limiter.begin_call();
        Ok((live.store, Some(live.instance), live.uses))
    }
}

/// Makes the instance if there is none yet, and calls it.
async fn invoke(
    run: &Run,
    caller: &dyn Caller,
    store: &mut Store<Guest>,
    instance: &mut Option<Instance>,
    message: &Arc<Delivered>,
) -> Answer {
    let instance = match instance {
        Some(instance) => instance,
        None => instance.insert(run.loaded.instantiate(&mut *store).await?),
    };
    store.data_mut().in_hand = Some(Arc::clone(message));
    run.session.entered(message);
    caller.call(store, instance, message).await
}

impl Handler for EachMessage<'_> {
    async fn call(&mut self, message: &Arc<Delivered>) -> CallReport {
        self.run.deadline.renew();
        self.run.log.begin_call();
        let (mut store, mut instance, uses) = match self.take(message) {
            Ok(taken) => taken,
            Err(end) => return self.run.not_called(end),
        };
        let call = invoke(&self.run, self.caller, &mut store, &mut instance, message);
        let ended = within(call, &self.run.deadline, self.run.session.stopped()).await;
        let report = self.run.report(&store, ended);
        let uses = uses + 1;
        if let (CallEnd::Ok, Some(instance)) = (&report.end, instance)
            && uses < self.reuse
        {
            self.live = Some(Live {
                store,
                instance,
                uses,
            });
        }
        report
    }

    fn patience(&mut self) -> impl Future<Output = ()> + Send {
        let ticker = self.run.sandbox.ticker();
        let patience = self.patience.get_or_insert_with(|| ticker.patience());
        patience.wait(LINGER_TICKS)
    }
}
