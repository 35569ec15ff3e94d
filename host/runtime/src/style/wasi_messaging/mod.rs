//! `wasi:messaging/incoming-handler@0.2.0-draft`: called once for each message, which it owns and
//! may send on; an error backs it out. The same interfaces under the name that another host gave
//! them, `wasmcloud:messaging@0.3.0`, are the same code.
//!
//! Linked by hand, since generated bindings have one name. `wit/styles/wasi-messaging.md` says what
//! becomes of every field; `wit/borrowed` has the interfaces.

use std::sync::Arc;

use oncue_core::definition::Style;
use oncue_core::outcome::Failure;
use oncue_manager::tasks::Delivered;
use oncue_manager::tasks::port::PortError;
use wasmtime::component::{
    ComponentExportIndex, ComponentType, Instance, InstancePre, Lift, Linker, Lower, Resource,
};
use wasmtime::{AsContextMut, Store, StoreContextMut};

use self::message::Message;
use super::sending::{exported, function};
use super::{Answer, Bound, Caller, Calling, Offer, StyleDef, Wanted};
use crate::interfaces::Guest;
use crate::interfaces::types::retry;
use crate::plugin::contract::{Function, Type, primitive};

mod message;
mod metadata;
mod sends;

const FUNCTION: &str = "handle";

const INTERFACES: &[&str] = &["types", "producer", "request-reply"];

pub(super) const DEF: StyleDef = StyleDef {
    style: Style::WasiMessaging,
    world: "wasi-messaging",
    exports: &[
        Wanted {
            name: "wasi:messaging/incoming-handler",
            version: "0.2.0-draft",
            function: FUNCTION,
            contract: Some(contract),
        },
        Wanted {
            name: "wasmcloud:messaging/incoming-handler",
            version: "0.3.0",
            function: FUNCTION,
            contract: Some(contract),
        },
    ],
    offers: &[
        Offer {
            package: "wasi:messaging",
            interfaces: INTERFACES,
            version: "0.2.0-draft",
        },
        Offer {
            package: "wasmcloud:messaging",
            interfaces: INTERFACES,
            version: "0.3.0",
        },
    ],
    link,
    bind,
    fresh: false,
};

/// What goes wrong, as these components know it.
#[derive(Clone, Debug, PartialEq, Eq, ComponentType, Lift, Lower)]
#[component(variant)]
enum Error {
    #[component(name = "timeout")]
    Timeout,
    #[component(name = "connection")]
    Connection(String),
    #[component(name = "permission-denied")]
    PermissionDenied(String),
    #[component(name = "other")]
    Other(String),
}

impl From<PortError> for Error {
    fn from(error: PortError) -> Self {
        match error {
            PortError::NotGranted(text) => Self::PermissionDenied(text),
            PortError::NoReply(_) => Self::Timeout,
            other => Self::Other(other.to_string()),
        }
    }
}

fn failure(error: Error) -> Failure {
    retry(&match error {
        Error::Timeout => "timeout".to_owned(),
        Error::Connection(text) => format!("connection: {text}"),
        Error::PermissionDenied(text) => format!("permission denied: {text}"),
        Error::Other(text) => text,
    })
}

fn contract() -> Function {
    let text = || Some(primitive("string"));
    let cases = [
        ("timeout", None),
        ("connection", text()),
        ("permission-denied", text()),
        ("other", text()),
    ];
    let cases = cases.map(|(name, carried)| (name.to_owned(), carried));
    let error = Type::Variant(cases.to_vec());
    Function {
        asynchronous: false,
        parameters: vec![("message".to_owned(), Type::Own("message".to_owned()))],
        result: Some(Type::Result(None, Some(Box::new(error)))),
    }
}

type Context<'a> = StoreContextMut<'a, Guest>;
/// What a component's call is answered.
type Reply<T> = wasmtime::Result<(Result<T, Error>,)>;

fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    for offer in DEF.offers {
        let full = |interface: &str| format!("{}/{interface}@{}", offer.package, offer.version);
        message::link(&mut linker.instance(&full("types"))?)?;
        sends::link_producer(&mut linker.instance(&full("producer"))?)?;
        sends::link_request_reply(&mut linker.instance(&full("request-reply"))?)?;
    }
    Ok(())
}

fn bind(pre: &InstancePre<Guest>) -> wasmtime::Result<Bound> {
    let mut known = DEF.exports.iter();
    let index = known.find_map(|wanted| exported(pre, &wanted.full(), FUNCTION).ok());
    let index = index.ok_or_else(|| wasmtime::Error::msg("no incoming-handler is exported"))?;
    Ok(Bound::EachMessage(Box::new(IncomingHandler(index))))
}

struct IncomingHandler(ComponentExportIndex);

/// What `handle` takes and answers.
type Taken = (Resource<Message>,);
type Answered = (Result<(), Error>,);

impl Caller for IncomingHandler {
    fn check(
        &self,
        store: StoreContextMut<'_, Guest>,
        instance: &Instance,
    ) -> wasmtime::Result<()> {
        function::<Taken, Answered>(store, instance, self.0).map(drop)
    }

    fn call<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: &'a Instance,
        message: &'a Arc<Delivered>,
    ) -> Calling<'a> {
        Box::pin(call(self.0, store, instance, message))
    }
}

async fn call(
    index: ComponentExportIndex,
    store: &mut Store<Guest>,
    instance: &Instance,
    message: &Arc<Delivered>,
) -> Answer {
    let handle = function::<Taken, Answered>(store.as_context_mut(), instance, index)?;
    let given = Message::received(Arc::clone(message));
    let given = store.data_mut().table.push(given)?;
    let (answer,) = handle.call_async(&mut *store, (given,)).await?;
    Ok(answer.map_err(failure))
}
