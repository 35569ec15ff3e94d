//! A task whose handler is called once for each message that the drain takes.

use std::sync::Arc;

use oncue_core::definition::Style;
use oncue_core::outcome::CallEnd;
use oncue_manager::tasks::{CallReport, Delivered, Handler};
use wasmtime::Store;
use wasmtime::component::Instance;

use super::Run;
use super::deadline::within;
use crate::engine::{Loaded, Sandbox};
use crate::interfaces::Guest;
use crate::loaded::Linked;
use crate::pool::Place;
use crate::style::{Answer, Bound, Caller, StyleDef};
use crate::ticker::Patience;

/// How long a task that has emptied its queue waits for the next message, in ticks of a
/// millisecond, the present one included.
const LINGER_TICKS: u64 = 3;

/// Calls a component for one message after the other.
pub(super) struct EachMessage<'a> {
    run: Run,
    sandbox: &'a Sandbox,
    loaded: &'a Loaded,
    style: Style,
    /// Messages that one instance handles.
    reuse: u32,
    /// The instance that may be used again.
    live: Option<Live<'a>>,
    /// To wait for the next message with; made when it is first waited for.
    patience: Option<Patience>,
}

/// An instance, or the store for one to come.
struct Live<'a> {
    store: Store<Guest>,
    instance: Option<Instance>,
    /// The component in its pool, and how it is called there.
    linked: &'a Linked,
    caller: &'a dyn Caller,
    /// Messages that it has handled.
    uses: u32,
    /// Its place. Dropped after what is in it.
    _place: Place<'a>,
}

impl<'a> EachMessage<'a> {
    /// For a component that has that style.
    pub(super) fn new(run: Run, sandbox: &'a Sandbox, loaded: &'a Loaded, def: &StyleDef) -> Self {
        let reuse = if def.fresh { 1 } else { run.limits.reuse };
        Self {
            run,
            sandbox,
            loaded,
            style: def.style,
            reuse,
            live: None,
            patience: None,
        }
    }

    /// Drops the instance; the costs remain.
    pub(super) fn end(self) -> Run {
        self.run
    }

    /// What to call: the last instance while it may be used again, else a store for a new one.
    fn take(&mut self, message: &Arc<Delivered>) -> Result<Live<'a>, CallEnd> {
        let failed = |error: wasmtime::Error| CallEnd::HostFailed(error.to_string());
        if let Some(mut live) = self.live.take() {
            let refilled = live.store.set_fuel(self.run.limits.fuel);
            refilled.map_err(failed)?;
            live.store.data_mut().limiter.begin_call();
            return Ok(live);
        }
        let place = self.sandbox.place();
        let linked = self.loaded.in_pool(place.number());
        let Some((_, Bound::EachMessage(caller))) = linked.bound(self.style) else {
            let why = format!("the component has no handler of {} style", self.style);
            return Err(CallEnd::HostFailed(why));
        };
        let caller = caller.as_ref();
        Ok(Live {
            store: self.run.open(&place, Some((caller, message)))?,
            instance: None,
            linked,
            caller,
            uses: 0,
            _place: place,
        })
    }
}

/// Makes the instance if there is none yet, and calls it.
async fn invoke(run: &Run, live: &mut Live<'_>, message: &Arc<Delivered>) -> Answer {
    let Live {
        store,
        instance,
        linked,
        caller,
        ..
    } = live;
    let instance = match instance {
        Some(instance) => instance,
        None => instance.insert(linked.instantiate(&mut *store).await?),
    };
    store.data_mut().in_hand = Some(Arc::clone(message));
    run.session.entered(message);
    caller.call(store, instance, message).await
}

impl Handler for EachMessage<'_> {
    async fn call(&mut self, message: &Arc<Delivered>) -> CallReport {
        self.run.deadline.renew();
        self.run.log.begin_call();
        let mut live = match self.take(message) {
            Ok(live) => live,
            Err(end) => return self.run.not_called(end),
        };
        let call = invoke(&self.run, &mut live, message);
        let ended = within(call, &self.run.deadline, self.run.session.stopped()).await;
        let report = self.run.report(&live.store, ended);
        live.uses += 1;
        if report.end == CallEnd::Ok && live.instance.is_some() && live.uses < self.reuse {
            self.live = Some(live);
        }
        report
    }

    fn patience(&mut self) -> impl Future<Output = ()> + Send {
        let ticker = self.run.sandbox.ticker();
        let patience = self.patience.get_or_insert_with(|| ticker.patience());
        patience.wait(LINGER_TICKS)
    }
}
