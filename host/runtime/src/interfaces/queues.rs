//! `oncue:handler/queues`: gets, puts and looks, all of them the session's. Linked by hand, because
//! a get of a fresh message refills the fuel, which is the `wasmtime::Store`'s.
//!
//! A put's body is lifted once, from the guest's memory into the buffer that the unit keeps: no
//! other copy is made.

use std::sync::Arc;

use bytes::Bytes;
use oncue_core::definition::QueueAttributes;
use oncue_core::message::{MessageId, Sequence};
use oncue_core::names::QueueName;
use oncue_manager::tasks::port;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};

use super::Guest;
use super::bindings::oncue::handler::queues::{GetOptions, Got, Page};
use super::bindings::oncue::handler::types::{Content, Error, PutOptions};
use super::types::{MessageHandle, metadata, refusal};

type Answer<T> = wasmtime::Result<(Result<T, Error>,)>;
type Store<'a> = StoreContextMut<'a, Guest>;
// Arguments as the guest passes them.
type Browse = (String, Option<String>, u32);
type Put = (String, Content, PutOptions);
type Request = (String, Content, PutOptions, u64);
type Forward = (Resource<MessageHandle>, String);

pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut queues = linker.instance("oncue:handler/queues@0.1.0")?;
    queues.func_wrap_async("get", |store: Store<'_>, (options,): (GetOptions,)| {
        Box::new(async move { answer(get(store, options).await) })
    })?;
    queues.func_wrap_async(
        "browse",
        |store: Store<'_>, (queue, cursor, max): Browse| {
            Box::new(async move { answer(browse(store, &queue, cursor, max).await) })
        },
    )?;
    queues.func_wrap("put", |store: Store<'_>, (queue, content, options): Put| {
        answer(put(store.data(), &queue, content, options))
    })?;
    queues.func_wrap_async(
        "request",
        |store: Store<'_>, (queue, content, options, wait): Request| {
            Box::new(async move { answer(request(store, queue, content, options, wait).await) })
        },
    )?;
    queues.func_wrap("forward", |store: Store<'_>, (message, queue): Forward| {
        answer(forward(store.data(), &message, &queue))
    })?;
    queues.func_wrap_async("depth", |store: Store<'_>, (queue,): (String,)| {
        Box::new(async move { answer(depth(store, &queue).await) })
    })?;
    Ok(())
}

/// An id that is never given.
const NOBODY: MessageId = MessageId {
    origin: u32::MAX,
    sequence: Sequence(u64::MAX),
};

/// How a call goes on: refused with a value, or at an end with the guest.
enum No {
    Refused(Error),
    Ended(wasmtime::Error),
}

impl From<wasmtime::Error> for No {
    fn from(error: wasmtime::Error) -> Self {
        Self::Ended(error)
    }
}

impl From<port::PortError> for No {
    fn from(error: port::PortError) -> Self {
        match refusal(error) {
            Ok(error) => Self::Refused(error),
            Err(stop) => Self::Ended(stop.into()),
        }
    }
}

fn answer<T>(result: Result<T, No>) -> Answer<T> {
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(No::Refused(error)) => Ok((Err(error),)),
        Err(No::Ended(error)) => Err(error),
    }
}

/// A name from the guest: one that cannot be a name is no queue's.
fn queue_name(text: &str) -> Result<QueueName, No> {
    QueueName::new(text).map_err(|error| No::Refused(Error::UnknownQueue(error.to_string())))
}

async fn get(mut store: Store<'_>, options: GetOptions) -> Result<Got, No> {
    let wanted = port::GetOptions {
        queue: options.queue.as_deref().map(queue_name).transpose()?,
        wait: options.wait,
        // An id is opaque to the guest: one that this manager cannot have given is no message's.
        id: options.id.map(|id| id.parse().unwrap_or(NOBODY)),
        correlation_id: options.correlation_id,
    };
    let session = Arc::clone(store.data().session()?);
    match session.get(wanted).await? {
        port::Got::Empty => Ok(Got::Empty),
        port::Got::Stop => Ok(Got::Stop),
        port::Got::Message(message) => {
            if message.fresh && store.data().refills {
                refill(&mut store)?;
            }
            Ok(Got::Message(store.data_mut().give(message)?))
        }
    }
}

/// Gives fuel and time for one more unit.
fn refill(store: &mut Store<'_>) -> wasmtime::Result<()> {
    let left = store.get_fuel()?;
    let guest = store.data_mut();
    guest.burnt_before += guest.fuel.saturating_sub(left);
    guest.deadline.renew();
    let fuel = guest.fuel;
    store.set_fuel(fuel)
}

async fn browse(
    store: Store<'_>,
    queue: &str,
    cursor: Option<String>,
    max: u32,
) -> Result<Page, No> {
    let (session, queue) = (Arc::clone(store.data().session()?), queue_name(queue)?);
    let page = session.browse(&queue, cursor, max).await?;
    // Of another queue only the usual threshold is known here; the figure is for information.
    let threshold = if queue == session.spec().queue {
        session.spec().queue_attributes.backout_threshold
    } else {
        QueueAttributes::default().backout_threshold
    };
    let messages = page.messages.iter().map(|found| {
        let failed = found.message.attempts.backout_count;
        metadata(&found.message, threshold.saturating_sub(failed).max(1))
    });
    Ok(Page {
        messages: messages.collect(),
        next: page.next,
    })
}

fn put_request(queue: &str, content: Content, options: PutOptions) -> Result<port::PutRequest, No> {
    let reply_to = options.reply_to.as_deref().map(queue_name).transpose()?;
    Ok(port::PutRequest {
        queue: queue_name(queue)?,
        body: match content {
            Content::Bytes(bytes) => Bytes::from(bytes),
            Content::Text(text) => Bytes::from(text),
        },
        options: port::PutOptions {
            correlation_id: options.correlation_id,
            reply_to,
            group: options.group,
            group_sequence: options.group_sequence,
            priority: options.priority,
            persistent: options.persistent,
            content_type: options.content_type,
            properties: options.properties,
            delay: options.delay,
            expiry: options.expiry,
            idempotency_key: options.idempotency_key,
        },
    })
}

fn put(guest: &Guest, queue: &str, content: Content, options: PutOptions) -> Result<String, No> {
    let request = put_request(queue, content, options)?;
    Ok(guest.session()?.put(request)?.to_string())
}

async fn request(
    mut store: Store<'_>,
    queue: String,
    content: Content,
    options: PutOptions,
    wait: u64,
) -> Result<Resource<MessageHandle>, No> {
    let request = put_request(&queue, content, options)?;
    let session = Arc::clone(store.data().session()?);
    let message = session.request(request, wait).await?;
    Ok(store.data_mut().give(message)?)
}

fn forward(guest: &Guest, message: &Resource<MessageHandle>, queue: &str) -> Result<String, No> {
    let MessageHandle(delivered) = guest.table.get(message).map_err(wasmtime::Error::from)?;
    let queue = queue_name(queue)?;
    Ok(guest.session()?.forward(delivered, &queue)?.to_string())
}

async fn depth(store: Store<'_>, queue: &str) -> Result<u64, No> {
    let session = Arc::clone(store.data().session()?);
    Ok(session.depth(&queue_name(queue)?).await?)
}
