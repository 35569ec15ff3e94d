//! The interfaces `producer` and `request-reply`: a topic is a queue's name, a message that is sent
//! is put.
//!
//! A request has one answer here, so a number of expected replies changes nothing.

use std::sync::Arc;

use oncue_core::names::QueueName;
use oncue_manager::tasks::port::{MAX_WAIT, PutRequest};
use oncue_manager::tasks::puts::correlation;
use wasmtime::component::{LinkerInstance, Resource, ResourceType};

use super::super::sending::{put, queue_name, refusal};
use super::message::{Client, Message, take};
use super::{Context, Error, Reply, metadata};
use crate::interfaces::Guest;

/// How a request is made.
#[derive(Debug, Default)]
struct RequestOptions {
    /// Milliseconds to wait for the answer. None: as long as any request may wait.
    timeout: Option<u32>,
}

// Arguments as the component passes them.
type Send = (Resource<Client>, String, Resource<Message>);
type Request = (
    Resource<Client>,
    String,
    Resource<Message>,
    Option<Resource<RequestOptions>>,
);
type Answering = (Resource<Message>, Resource<Message>);

pub(super) fn link_producer(producer: &mut LinkerInstance<'_, Guest>) -> wasmtime::Result<()> {
    producer.func_wrap(
        "send",
        |mut store: Context<'_>, (client, topic, message): Send| {
            answer(send(store.data_mut(), &client, &topic, message))
        },
    )
}

pub(super) fn link_request_reply(
    interface: &mut LinkerInstance<'_, Guest>,
) -> wasmtime::Result<()> {
    let options = ResourceType::host::<RequestOptions>();
    interface.resource("request-options", options, |mut store, rep| {
        let options = Resource::<RequestOptions>::new_own(rep);
        store.data_mut().table.delete(options)?;
        Ok(())
    })?;
    interface.func_wrap(
        "[constructor]request-options",
        |mut store: Context<'_>, (): ()| {
            Ok((store.data_mut().table.push(RequestOptions::default())?,))
        },
    )?;
    interface.func_wrap(
        "[method]request-options.set-timeout-ms",
        |mut store: Context<'_>, (options, timeout): (Resource<RequestOptions>, u32)| {
            store.data_mut().table.get_mut(&options)?.timeout = Some(timeout);
            Ok(())
        },
    )?;
    interface.func_wrap(
        "[method]request-options.set-expected-replies",
        |store: Context<'_>, (options, _count): (Resource<RequestOptions>, u32)| {
            store.data().table.get(&options)?;
            Ok(())
        },
    )?;
    interface.func_wrap_async("request", |store: Context<'_>, arguments: Request| {
        Box::new(async move { answer(request(store, arguments).await) })
    })?;
    interface.func_wrap(
        "reply",
        |mut store: Context<'_>, (asked, message): Answering| {
            answer(reply(store.data_mut(), &asked, message))
        },
    )
}

/// How a call goes on: refused with a value, or at an end with the component.
enum No {
    Refused(Error),
    Ended(wasmtime::Error),
}

impl From<wasmtime::Error> for No {
    fn from(error: wasmtime::Error) -> Self {
        Self::Ended(error)
    }
}

impl From<wasmtime::component::ResourceTableError> for No {
    fn from(error: wasmtime::component::ResourceTableError) -> Self {
        Self::Ended(error.into())
    }
}

impl<E: Into<Error>> From<Refused<E>> for No {
    fn from(Refused(error): Refused<E>) -> Self {
        Self::Refused(error.into())
    }
}

/// An error that the component is given.
struct Refused<E>(E);

fn answer<T>(result: Result<T, No>) -> Reply<T> {
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(No::Refused(error)) => Ok((Err(error),)),
        Err(No::Ended(error)) => Err(error),
    }
}

fn send(
    guest: &mut Guest,
    client: &Resource<Client>,
    topic: &str,
    message: Resource<Message>,
) -> Result<(), No> {
    let message = take(guest, message)?;
    Client::check(guest, client)?.map_err(Refused)?;
    let queue = queue_name(topic).map_err(Refused)?;
    let options = options(&message, &queue)?;
    let body = message.into_body(guest)?;
    let request = PutRequest {
        queue,
        body,
        options,
    };
    put(guest, request)?.map_err(Refused)?;
    Ok(())
}

fn options(
    message: &Message,
    queue: &QueueName,
) -> Result<oncue_manager::tasks::port::PutOptions, No> {
    let options = metadata::options(message.metadata(), message.content_type(), queue);
    Ok(options.map_err(Refused)?)
}

async fn request(
    mut store: Context<'_>,
    (client, topic, message, options): Request,
) -> Result<Vec<Resource<Message>>, No> {
    let guest = store.data_mut();
    let wait = match options {
        Some(options) => guest.table.delete(options)?.timeout,
        None => None,
    };
    Client::check(guest, &client)?.map_err(Refused)?;
    let queue = queue_name(&topic).map_err(Refused)?;
    let message = guest.table.get(&message)?;
    let mut options = self::options(message, &queue)?;
    // Its answer is found by its own id, not by that of a received message that is passed on.
    options.correlation_id = None;
    let request = PutRequest {
        options,
        body: message.body(guest)?,
        queue,
    };
    let session = Arc::clone(guest.session()?);
    let wait = wait.map_or(MAX_WAIT, u64::from);
    let answer = refusal(session.request(request, wait).await)?;
    let answer = Message::received(answer.map_err(Refused)?);
    Ok(vec![store.data_mut().table.push(answer)?])
}

/// Puts the reply to a message where it wants one. Nobody is told of a reply that nobody wants.
fn reply(
    guest: &mut Guest,
    asked: &Resource<Message>,
    message: Resource<Message>,
) -> Result<(), No> {
    let message = take(guest, message)?;
    let Some(asked) = guest.table.get(asked)?.delivered().map(Arc::clone) else {
        let text = "only a message that was received can be replied to".to_owned();
        return Err(Refused(Error::Other(text)).into());
    };
    let header = &asked.message.header;
    let Some(queue) = header.reply_to.clone() else {
        return Ok(());
    };
    let mut options = options(&message, &queue)?;
    let known = &mut options.correlation_id;
    known.get_or_insert_with(|| correlation(header));
    let body = message.into_body(guest)?;
    let request = PutRequest {
        queue,
        body,
        options,
    };
    put(guest, request)?.map_err(Refused)?;
    Ok(())
}
