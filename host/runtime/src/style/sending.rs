//! What borrowed shapes share: a put to where the guest says by name, its tie to the message in
//! hand, and the function that a component exports.
//!
//! Grants and limits are the session's; the shapes turn what it refuses into errors of their own.

use oncue_core::names::QueueName;
use oncue_manager::tasks::port::{PortError, PutRequest};
use oncue_manager::tasks::puts::correlation;
use wasmtime::StoreContextMut;
use wasmtime::component::{
    ComponentExportIndex, ComponentNamedList, Instance, InstancePre, Lift, Lower, TypedFunc,
};

use crate::interfaces::Guest;
use crate::interfaces::types::stop;

/// A name from the guest: one that cannot be a name is no queue's.
pub(super) fn queue_name(text: &str) -> Result<QueueName, PortError> {
    let unknown = |error| PortError::UnknownQueue(format!("{error} [unknown-queue]"));
    QueueName::new(text).map_err(unknown)
}

/// Puts as part of the unit of work. What goes where the message in hand wants its reply is the
/// reply to it, unless the guest tied it to something else.
pub(super) fn put(guest: &Guest, mut request: PutRequest) -> wasmtime::Result<Sent> {
    if let Some(message) = &guest.in_hand {
        let header = &message.message.header;
        if header.reply_to.as_ref() == Some(&request.queue) {
            let known = &mut request.options.correlation_id;
            known.get_or_insert_with(|| correlation(header));
        }
    }
    refusal(guest.session()?.put(request).map(drop))
}

/// A put that was accepted, or why not.
pub(super) type Sent = Result<(), PortError>;

/// What the guest is answered: a refusal is a value, and what can have no answer ends it.
pub(super) fn refusal<T>(answer: Result<T, PortError>) -> wasmtime::Result<Result<T, PortError>> {
    match answer {
        Ok(value) => Ok(Ok(value)),
        Err(
            value @ (PortError::Full(_)
            | PortError::NotGranted(_)
            | PortError::UnknownQueue(_)
            | PortError::TooLarge(_)
            | PortError::NoReply(_)
            | PortError::Other(_)),
        ) => Ok(Err(value)),
        Err(fatal) => Err(stop(fatal).into()),
    }
}

/// The place of a function in an interface that a component exports.
pub(super) fn exported(
    pre: &InstancePre<Guest>,
    interface: &str,
    function: &str,
) -> wasmtime::Result<ComponentExportIndex> {
    let component = pre.component();
    let found = component
        .get_export_index(None, interface)
        .and_then(|interface| component.get_export_index(Some(&interface), function));
    found.ok_or_else(|| wasmtime::Error::msg(format!("no {function} of {interface} is exported")))
}

/// The function of an instance, its type checked.
pub(super) fn function<Parameters, Answer>(
    store: StoreContextMut<'_, Guest>,
    instance: &Instance,
    index: ComponentExportIndex,
) -> wasmtime::Result<TypedFunc<Parameters, Answer>>
where
    Parameters: ComponentNamedList + Lower,
    Answer: ComponentNamedList + Lift,
{
    instance.get_typed_func(store, index)
}
