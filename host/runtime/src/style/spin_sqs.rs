//! Spin's SQS trigger: the function `handle-queue-message` of `fermyon:spin-sqs@2.0.0`, which
//! stands alone in the world and is called once for each message.
//!
//! `delete` commits, `leave` and an error back out. A body that is not UTF-8 has no form there and
//! is rejected without a call. See `wit/styles/spin-sqs.md`.

use std::sync::Arc;

use oncue_core::definition::Style;
use oncue_core::message::Message;
use oncue_core::outcome::Failure;
use oncue_manager::tasks::Delivered;
use wasmtime::component::{
    ComponentExportIndex, ComponentType, Instance, InstancePre, Lift, Lower, TypedFunc,
};
use wasmtime::{Store, StoreContextMut};

use super::{Answer, Bound, Caller, Calling, Offer, StyleDef, Wanted};
use crate::interfaces::Guest;
use crate::interfaces::types::MAX_REASON;
use crate::plugin::contract;
use crate::sink::cut;

/// The function.
const HANDLE: &str = "handle-queue-message";
/// The data type of a text, as SQS calls it.
const TEXT: &str = "String";
/// The data type of a number.
const NUMBER: &str = "Number";

pub(super) const DEF: StyleDef = StyleDef {
    style: Style::SpinSqs,
    world: "fermyon:spin-sqs/spin-sqs",
    exports: &[Wanted {
        name: HANDLE,
        version: "",
        function: "",
        contract: Some(contract::handle_queue_message),
    }],
    // Types alone: there is nothing to link.
    offers: &[Offer {
        package: "fermyon:spin-sqs",
        interfaces: &["sqs-types"],
        version: "2.0.0",
    }],
    link: |_| Ok(()),
    bind,
    fresh: false,
};

#[derive(ComponentType, Lower)]
#[component(variant)]
enum Value {
    #[component(name = "str")]
    Text(String),
    #[component(name = "binary")]
    #[expect(dead_code, reason = "part of the type; a message has no binary fields")]
    Binary(Vec<u8>),
}

#[derive(ComponentType, Lower)]
#[component(record)]
struct Attribute {
    name: String,
    #[component(name = "data-type")]
    data_type: Option<String>,
    value: Value,
}

#[derive(ComponentType, Lower)]
#[component(record)]
struct Given {
    id: Option<String>,
    #[component(name = "message-attributes")]
    attributes: Vec<Attribute>,
    body: Option<String>,
}

#[derive(Clone, Copy, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "lifted, never made here")]
enum Action {
    #[component(name = "delete")]
    Delete,
    #[component(name = "leave")]
    Leave,
}

#[derive(ComponentType, Lift)]
#[component(variant)]
enum Refusal {
    #[component(name = "other")]
    Other(String),
}

/// The function's type.
type Handle = TypedFunc<(Given,), (Result<Action, Refusal>,)>;

struct HandleQueueMessage(ComponentExportIndex);

fn bind(pre: &InstancePre<Guest>) -> wasmtime::Result<Bound> {
    let index = pre.component().get_export_index(None, HANDLE);
    let index = index.ok_or_else(|| wasmtime::format_err!("no export {HANDLE}"))?;
    Ok(Bound::EachMessage(Box::new(HandleQueueMessage(index))))
}

impl HandleQueueMessage {
    fn load(
        &self,
        store: impl wasmtime::AsContextMut,
        instance: &Instance,
    ) -> wasmtime::Result<Handle> {
        instance.get_typed_func(store, self.0)
    }
}

impl Caller for HandleQueueMessage {
    fn check(
        &self,
        store: StoreContextMut<'_, Guest>,
        instance: &Instance,
    ) -> wasmtime::Result<()> {
        self.load(store, instance).map(drop)
    }

    fn call<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: &'a Instance,
        message: &'a Arc<Delivered>,
    ) -> Calling<'a> {
        Box::pin(async move {
            let handle = self.load(&mut *store, instance)?;
            call(handle, store, message).await
        })
    }
}

async fn call(handle: Handle, store: &mut Store<Guest>, message: &Delivered) -> Answer {
    let body = store.data().whole_body(message)?;
    let Ok(body) = String::from_utf8(body.into()) else {
        let why = "the body is not UTF-8, and a handler of spin-sqs style takes text";
        return Ok(Err(Failure::Reject(why.to_owned())));
    };
    let given = Given {
        id: Some(message.message.header.id.to_string()),
        attributes: attributes(message),
        body: Some(body),
    };
    let (answer,) = handle.call_async(&mut *store, (given,)).await?;
    let reason = match answer {
        Ok(Action::Delete) => return Ok(Ok(())),
        Ok(Action::Leave) => "the handler left the message on its queue".to_owned(),
        Err(Refusal::Other(reason)) => cut(&reason, MAX_REASON),
    };
    Ok(Err(Failure::Retry {
        reason,
        after: None,
    }))
}

/// The message's properties under their own names, then its fields under the names that they have
/// as headers of HTTP.
fn attributes(delivered: &Delivered) -> Vec<Attribute> {
    let Message {
        header, attempts, ..
    } = &delivered.message;
    let mut all = Vec::new();
    let mut add = |name: &str, data_type: &str, value: String| {
        all.push(Attribute {
            name: name.to_owned(),
            data_type: Some(data_type.to_owned()),
            value: Value::Text(value),
        });
    };
    for (name, value) in &header.properties {
        add(name, TEXT, value.clone());
    }
    let reply_to = header.reply_to.as_ref().map(ToString::to_string);
    for (name, value) in [
        ("content-type", header.content_type.clone()),
        ("oncue-correlation-id", header.correlation_id.clone()),
        ("oncue-reply-to", reply_to),
        ("oncue-group", header.group.clone()),
        ("oncue-put-by", header.put_by.clone()),
        ("oncue-queue", Some(delivered.queue.to_string())),
    ] {
        if let Some(value) = value {
            add(name, TEXT, value);
        }
    }
    for (name, value) in [
        ("oncue-group-sequence", header.group_sequence.map(u64::from)),
        ("oncue-priority", Some(u64::from(header.priority))),
        ("oncue-put-time", Some(header.put_time.0)),
        ("oncue-backout-count", Some(attempts.backout_count.into())),
    ] {
        if let Some(value) = value {
            add(name, NUMBER, value.to_string());
        }
    }
    all
}
