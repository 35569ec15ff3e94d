//! Message style: `oncue:handler/on-message`, called once for each message with the message lent
//! for the call; or `oncue:handler/on-owned-message`, with the message given for good, for
//! languages that give back late what was lent to them.

use std::sync::Arc;

use oncue_core::definition::Style;
use oncue_manager::tasks::Delivered;
use wasmtime::component::{Instance, InstancePre, Resource};
use wasmtime::{Store, StoreContextMut};

use super::{Answer, Bound, Caller, Calling, StyleDef, Wanted};
use crate::interfaces::Guest;
use crate::interfaces::bindings::exports::oncue::handler::{on_message, on_owned_message};
use crate::interfaces::types::failure;
use crate::plugin::contract;

pub(super) const DEF: StyleDef = StyleDef {
    style: Style::Message,
    world: "message-handler",
    exports: &[
        Wanted {
            name: "oncue:handler/on-message",
            version: "0.1",
            function: "handle",
            contract: Some(contract::on_message),
        },
        Wanted {
            name: "oncue:handler/on-owned-message",
            version: "0.1",
            function: "handle",
            contract: Some(contract::on_owned_message),
        },
    ],
    offers: &[],
    link: |_| Ok(()),
    bind,
    fresh: false,
};

fn bind(pre: &InstancePre<Guest>) -> wasmtime::Result<Bound> {
    let bound = match on_message::GuestIndices::new(pre) {
        Ok(lent) => OnMessage::Lent(lent),
        Err(error) => match on_owned_message::GuestIndices::new(pre) {
            Ok(owned) => OnMessage::Owned(owned),
            // It has neither: the usual one is what to say.
            Err(_) => return Err(error),
        },
    };
    Ok(Bound::EachMessage(Box::new(bound)))
}

/// How the message is handed over.
enum OnMessage {
    /// For the call.
    Lent(on_message::GuestIndices),
    /// For good: it is the guest's to drop.
    Owned(on_owned_message::GuestIndices),
}

impl Caller for OnMessage {
    fn check(
        &self,
        store: StoreContextMut<'_, Guest>,
        instance: &Instance,
    ) -> wasmtime::Result<()> {
        match self {
            Self::Lent(indices) => indices.load(store, instance).map(drop),
            Self::Owned(indices) => indices.load(store, instance).map(drop),
        }
    }

    fn call<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: &'a Instance,
        message: &'a Arc<Delivered>,
    ) -> Calling<'a> {
        Box::pin(call(self, store, instance, message))
    }
}

async fn call(
    bound: &OnMessage,
    store: &mut Store<Guest>,
    instance: &Instance,
    message: &Arc<Delivered>,
) -> Answer {
    let answer = match bound {
        OnMessage::Lent(indices) => {
            let handler = indices.load(&mut *store, instance)?;
            let given = store.data_mut().give(Arc::clone(message))?;
            let lent = Resource::new_borrow(given.rep());
            let answer = handler.call_handle(&mut *store, lent).await?;
            store.data_mut().table.delete(given)?;
            answer
        }
        OnMessage::Owned(indices) => {
            let handler = indices.load(&mut *store, instance)?;
            let given = store.data_mut().give(Arc::clone(message))?;
            handler.call_handle(&mut *store, given).await?
        }
    };
    Ok(answer.map_err(failure))
}
