//! Trigger style: `oncue:handler/on-trigger`, called once for a task with the trigger message; the
//! handler works the queue itself.

use oncue_core::definition::Style;
use oncue_core::trigger::message::TriggerMessage;
use wasmtime::component::{Instance, InstancePre};
use wasmtime::{Store, StoreContextMut};

use super::{Answer, Bound, StyleDef, Wanted};
use crate::interfaces::Guest;
use crate::interfaces::bindings::exports::oncue::handler::on_trigger::GuestIndices;
use crate::interfaces::types::{failure, trigger_message};
use crate::plugin::contract;

pub(super) const DEF: StyleDef = StyleDef {
    style: Style::Trigger,
    world: "trigger-handler",
    exports: &[Wanted {
        name: "oncue:handler/on-trigger",
        version: "0.1",
        function: "handle",
        contract: Some(contract::on_trigger),
    }],
    offers: &[],
    link: |_| Ok(()),
    bind,
    fresh: true,
};

fn bind(pre: &InstancePre<Guest>) -> wasmtime::Result<Bound> {
    Ok(Bound::Queue(OnTrigger(GuestIndices::new(pre)?)))
}

/// A component that works its queue itself.
pub(crate) struct OnTrigger(GuestIndices);

impl OnTrigger {
    /// Checks the type of what an instance exports.
    ///
    /// # Errors
    /// How it differs.
    pub(crate) fn check(
        &self,
        store: StoreContextMut<'_, Guest>,
        instance: &Instance,
    ) -> wasmtime::Result<()> {
        self.0.load(store, instance).map(drop)
    }

    /// Calls the handler with the trigger message.
    pub(crate) async fn call(
        &self,
        store: &mut Store<Guest>,
        instance: &Instance,
        message: &TriggerMessage,
    ) -> Answer {
        let handler = self.0.load(&mut *store, instance)?;
        let answer = handler
            .call_handle(&mut *store, &trigger_message(message))
            .await?;
        Ok(answer.map_err(failure))
    }
}
