//! Message style: `oncue:handler/on-message`, called once for each message with the message lent
//! for the call.

use std::sync::Arc;

use oncue_core::definition::Style;
use oncue_manager::tasks::Delivered;
use wasmtime::component::{Instance, InstancePre, Resource};
use wasmtime::{Store, StoreContextMut};

use super::{Answer, Bound, Caller, Calling, StyleDef, Wanted};
use crate::interfaces::Guest;
use crate::interfaces::bindings::exports::oncue::handler::on_message::GuestIndices;
use crate::interfaces::types::failure;
use crate::plugin::contract;

pub(super) const DEF: StyleDef = StyleDef {
    style: Style::Message,
    world: "message-handler",
    exports: &[Wanted {
        name: "oncue:handler/on-message",
        version: "0.1",
        function: "handle",
        contract: Some(contract::on_message),
    }],
    offers: &[],
    link: |_| Ok(()),
    bind,
    fresh: false,
};

fn bind(pre: &InstancePre<Guest>) -> wasmtime::Result<Bound> {
    Ok(Bound::EachMessage(Box::new(OnMessage(GuestIndices::new(
        pre,
    )?))))
}

struct OnMessage(GuestIndices);

impl Caller for OnMessage {
    fn check(
        &self,
        store: StoreContextMut<'_, Guest>,
        instance: &Instance,
    ) -> wasmtime::Result<()> {
        self.0.load(store, instance).map(drop)
    }

    fn call<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: &'a Instance,
        message: &'a Arc<Delivered>,
    ) -> Calling<'a> {
        Box::pin(call(&self.0, store, instance, message))
    }
}

async fn call(
    indices: &GuestIndices,
    store: &mut Store<Guest>,
    instance: &Instance,
    message: &Arc<Delivered>,
) -> Answer {
    let handler = indices.load(&mut *store, instance)?;
    let given = store.data_mut().give(Arc::clone(message))?;
    let lent = Resource::new_borrow(given.rep());
    let answer = handler.call_handle(&mut *store, lent).await?;
    store.data_mut().table.delete(given)?;
    Ok(answer.map_err(failure))
}
