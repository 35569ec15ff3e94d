//! `wasmcloud:messaging/handler@0.2.0`: called once for each message, with its body in the call; an
//! error's text backs it out. What it publishes is put, to the queue that its subject names.
//!
//! Linked by hand: two functions and a record. `wit/styles/wasmcloud-messaging.md` says what
//! becomes of every field; `wit/borrowed` has the interfaces.

use std::sync::Arc;

use bytes::Bytes;
use oncue_core::definition::Style;
use oncue_manager::tasks::Delivered;
use oncue_manager::tasks::port::{PortError, PutOptions, PutRequest};
use wasmtime::component::{
    ComponentExportIndex, ComponentType, Instance, InstancePre, Lift, Linker, Lower,
};
use wasmtime::{AsContextMut, Store, StoreContextMut};

use super::sending::{exported, function, put, queue_name, refusal};
use super::{Answer, Bound, Caller, Calling, Offer, StyleDef, Wanted};
use crate::interfaces::Guest;
use crate::interfaces::types::retry;
use crate::plugin::contract::{Function, Type, primitive, record};

const HANDLER: &str = "wasmcloud:messaging/handler@0.2.0";
const FUNCTION: &str = "handle-message";

pub(super) const DEF: StyleDef = StyleDef {
    style: Style::WasmcloudMessaging,
    world: "wasmcloud-messaging",
    exports: &[Wanted {
        name: "wasmcloud:messaging/handler",
        version: "0.2",
        function: FUNCTION,
        contract: Some(contract),
    }],
    offers: &[Offer {
        package: "wasmcloud:messaging",
        interfaces: &["types", "consumer"],
        version: "0.2",
    }],
    link,
    bind,
    fresh: false,
};

/// A message as these components know it.
#[derive(Clone, ComponentType, Lift, Lower)]
#[component(record)]
struct BrokerMessage {
    subject: String,
    body: Vec<u8>,
    #[component(name = "reply-to")]
    reply_to: Option<String>,
}

fn contract() -> Function {
    let message = record(vec![
        ("subject", primitive("string")),
        ("body", Type::List(Box::new(primitive("u8")))),
        ("reply-to", Type::Option(Box::new(primitive("string")))),
    ]);
    Function {
        asynchronous: false,
        parameters: vec![("msg".to_owned(), message)],
        result: Some(Type::Result(None, Some(Box::new(primitive("string"))))),
    }
}

type Context<'a> = StoreContextMut<'a, Guest>;
/// What a component's call is answered.
type Reply<T> = wasmtime::Result<(Result<T, String>,)>;

fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    linker.instance("wasmcloud:messaging/types@0.2.0")?;
    let mut consumer = linker.instance("wasmcloud:messaging/consumer@0.2.0")?;
    consumer.func_wrap(
        "publish",
        |store: Context<'_>, (message,): (BrokerMessage,)| publish(store.data(), message),
    )?;
    consumer.func_wrap_async(
        "request",
        |store: Context<'_>, (subject, body, timeout): (String, Vec<u8>, u32)| {
            Box::new(request(store, subject, body, timeout))
        },
    )?;
    Ok(())
}

/// A put of a message; what it refuses is an error of the component's own.
fn outgoing(message: BrokerMessage) -> Result<PutRequest, PortError> {
    let BrokerMessage {
        subject,
        body,
        reply_to,
    } = message;
    Ok(PutRequest {
        queue: queue_name(&subject)?,
        body: Bytes::from(body),
        options: PutOptions {
            reply_to: reply_to.as_deref().map(queue_name).transpose()?,
            ..PutOptions::default()
        },
    })
}

fn publish(guest: &Guest, message: BrokerMessage) -> Reply<()> {
    let sent = match outgoing(message) {
        Ok(request) => put(guest, request)?,
        Err(error) => Err(error),
    };
    Ok((sent.map_err(|error| error.to_string()),))
}

async fn request(
    store: Context<'_>,
    subject: String,
    body: Vec<u8>,
    timeout: u32,
) -> Reply<BrokerMessage> {
    let reply_to = None;
    let request = outgoing(BrokerMessage {
        subject,
        body,
        reply_to,
    });
    let session = Arc::clone(store.data().session()?);
    let answer = match request {
        Ok(request) => refusal(session.request(request, u64::from(timeout)).await)?,
        Err(error) => Err(error),
    };
    match answer {
        Ok(reply) => Ok((Ok(incoming(store.data(), &reply)?),)),
        Err(error) => Ok((Err(error.to_string()),)),
    }
}

/// A message as it is handed to the component.
fn incoming(guest: &Guest, message: &Delivered) -> wasmtime::Result<BrokerMessage> {
    let reply_to = message.message.header.reply_to.as_ref();
    Ok(BrokerMessage {
        subject: message.queue.to_string(),
        body: guest.whole_body(message)?.into(),
        reply_to: reply_to.map(ToString::to_string),
    })
}

fn bind(pre: &InstancePre<Guest>) -> wasmtime::Result<Bound> {
    let index = exported(pre, HANDLER, FUNCTION)?;
    Ok(Bound::EachMessage(Box::new(Handler(index))))
}

struct Handler(ComponentExportIndex);

/// What `handle-message` takes and answers.
type Taken = (BrokerMessage,);
type Answered = (Result<(), String>,);

impl Caller for Handler {
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
    message: &Delivered,
) -> Answer {
    let handle = function::<Taken, Answered>(store.as_context_mut(), instance, index)?;
    let given = incoming(store.data(), message)?;
    let (answer,) = handle.call_async(&mut *store, (given,)).await?;
    Ok(answer.map_err(|reason| retry(&reason)))
}
