//! The interface `types`: messages, received or made, and clients.
//!
//! A received message's body and metadata stay with the manager until they are asked for or
//! changed. What a component writes into messages is kept by the host, and counted: in all no more
//! than the component's own memory may have.

use std::sync::Arc;

use bytes::Bytes;
use oncue_manager::tasks::Delivered;
use wasmtime::component::{LinkerInstance, Resource, ResourceType};

use super::metadata::{self, Metadata};
use super::{Context, Error, Reply};
use crate::interfaces::Guest;

/// A message that the component has.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    /// What it was received as; none for one that the component made.
    received: Option<Arc<Delivered>>,
    /// What the component wrote over what was received, or made.
    content_type: Option<String>,
    data: Option<Vec<u8>>,
    metadata: Option<Metadata>,
}

/// A connection to the one queue manager that there is: its name says nothing.
#[derive(Debug)]
pub(super) struct Client {
    connected: bool,
}

impl Client {
    /// # Errors
    /// It was disconnected.
    pub(super) fn check(guest: &Guest, client: &Resource<Self>) -> wasmtime::Result<Checked> {
        Ok(if guest.table.get(client)?.connected {
            Ok(())
        } else {
            Err(Error::Connection("the client is disconnected".to_owned()))
        })
    }
}

/// Whether a client may be used.
pub(super) type Checked = Result<(), Error>;

impl Message {
    pub(super) fn received(message: Arc<Delivered>) -> Self {
        Self {
            received: Some(message),
            ..Self::default()
        }
    }

    pub(super) fn delivered(&self) -> Option<&Arc<Delivered>> {
        self.received.as_ref()
    }

    /// Bytes that the host keeps of it beside what the manager has.
    pub(super) fn kept_bytes(&self) -> u64 {
        let data = self.data.as_ref().map_or(0, Vec::len);
        let pairs = self.metadata.iter().flatten();
        let metadata: usize = pairs.map(metadata::bytes_of).sum();
        let content_type = self.content_type.as_ref().map_or(0, String::len);
        (data + metadata + content_type) as u64
    }

    pub(super) fn content_type(&self) -> Option<String> {
        let received = self.received.as_ref();
        let theirs = || received.and_then(|it| it.message.header.content_type.clone());
        self.content_type.clone().or_else(theirs)
    }

    pub(super) fn metadata(&self) -> Metadata {
        let received = self.received.as_deref();
        let theirs = || received.map(metadata::of).unwrap_or_default();
        self.metadata.clone().unwrap_or_else(theirs)
    }

    /// Metadata to be changed where it is: a copy for each change would cost the host more than
    /// the component.
    fn own_metadata(&mut self) -> &mut Metadata {
        let received = self.received.as_deref();
        let theirs = || received.map(metadata::of).unwrap_or_default();
        self.metadata.get_or_insert_with(theirs)
    }

    /// The body for the component, at most as much as its memory could take.
    fn data(&self, guest: &Guest) -> wasmtime::Result<Vec<u8>> {
        match (&self.data, &self.received) {
            (Some(data), _) => Ok(data.clone()),
            (None, Some(received)) => Ok(guest.whole_body(received)?.into()),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// The body for a put; that of a received message does not pass through the component.
    pub(super) fn body(&self, guest: &Guest) -> wasmtime::Result<Bytes> {
        match (&self.data, &self.received) {
            (Some(data), _) => Ok(Bytes::copy_from_slice(data)),
            (None, Some(received)) => guest.body_to_put(received),
            (None, None) => Ok(Bytes::new()),
        }
    }

    /// The same of a message that is not needed any more.
    pub(super) fn into_body(mut self, guest: &Guest) -> wasmtime::Result<Bytes> {
        match self.data.take() {
            Some(data) => Ok(Bytes::from(data)),
            None => self.body(guest),
        }
    }
}

/// Takes a message from the component.
pub(super) fn take(guest: &mut Guest, message: Resource<Message>) -> wasmtime::Result<Message> {
    let message = guest.table.delete(message)?;
    guest.keep_bytes(message.kept_bytes(), 0)?;
    Ok(message)
}

fn make(guest: &mut Guest, data: Vec<u8>) -> wasmtime::Result<Resource<Message>> {
    guest.keep_bytes(0, data.len() as u64)?;
    Ok(guest.table.push(Message {
        data: Some(data),
        ..Message::default()
    })?)
}

fn change(
    mut store: Context<'_>,
    message: &Resource<Message>,
    change: impl FnOnce(&mut Message),
) -> wasmtime::Result<()> {
    let guest = store.data_mut();
    let message = guest.table.get_mut(message)?;
    let before = message.kept_bytes();
    change(message);
    let after = message.kept_bytes();
    guest.keep_bytes(before, after)
}

// Arguments as the component passes them.
type Of<T> = (Resource<T>,);
type With<T> = (Resource<Message>, T);

pub(super) fn link(types: &mut LinkerInstance<'_, Guest>) -> wasmtime::Result<()> {
    link_client(types)?;
    types.resource(
        "message",
        ResourceType::host::<Message>(),
        |mut store, rep| take(store.data_mut(), Resource::new_own(rep)).map(drop),
    )?;
    types.func_wrap(
        "[constructor]message",
        |mut store: Context<'_>, (data,): (Vec<u8>,)| Ok((make(store.data_mut(), data)?,)),
    )?;
    types.func_wrap(
        "[method]message.topic",
        |store: Context<'_>, (message,): Of<Message>| {
            let received = store.data().table.get(&message)?.delivered();
            Ok((received.map(|delivered| delivered.queue.to_string()),))
        },
    )?;
    types.func_wrap(
        "[method]message.content-type",
        |store: Context<'_>, (message,): Of<Message>| {
            Ok((store.data().table.get(&message)?.content_type(),))
        },
    )?;
    types.func_wrap(
        "[method]message.set-content-type",
        |store: Context<'_>, (message, text): With<String>| {
            change(store, &message, |message| message.content_type = Some(text))
        },
    )?;
    types.func_wrap(
        "[method]message.data",
        |store: Context<'_>, (message,): Of<Message>| {
            Ok((store.data().table.get(&message)?.data(store.data())?,))
        },
    )?;
    types.func_wrap(
        "[method]message.set-data",
        |store: Context<'_>, (message, data): With<Vec<u8>>| {
            change(store, &message, |message| message.data = Some(data))
        },
    )?;
    link_metadata(types)
}

fn link_metadata(types: &mut LinkerInstance<'_, Guest>) -> wasmtime::Result<()> {
    types.func_wrap(
        "[method]message.metadata",
        |store: Context<'_>, (message,): Of<Message>| {
            let pairs = store.data().table.get(&message)?.metadata();
            Ok(((!pairs.is_empty()).then_some(pairs),))
        },
    )?;
    types.func_wrap(
        "[method]message.set-metadata",
        |store: Context<'_>, (message, pairs): With<Metadata>| {
            change(store, &message, |message| message.metadata = Some(pairs))
        },
    )?;
    types.func_wrap(
        "[method]message.add-metadata",
        |store: Context<'_>, (message, key, value): (Resource<Message>, String, String)| {
            change(store, &message, |message| {
                let pairs = message.own_metadata();
                pairs.retain(|(known, _)| *known != key);
                pairs.push((key, value));
            })
        },
    )?;
    types.func_wrap(
        "[method]message.remove-metadata",
        |store: Context<'_>, (message, key): With<String>| {
            change(store, &message, |message| {
                let pairs = message.own_metadata();
                pairs.retain(|(known, _)| *known != key);
            })
        },
    )
}

fn link_client(types: &mut LinkerInstance<'_, Guest>) -> wasmtime::Result<()> {
    types.resource(
        "client",
        ResourceType::host::<Client>(),
        |mut store, rep| {
            store
                .data_mut()
                .table
                .delete(Resource::<Client>::new_own(rep))?;
            Ok(())
        },
    )?;
    types.func_wrap(
        "[static]client.connect",
        |mut store: Context<'_>, (_name,): (String,)| -> Reply<Resource<Client>> {
            let client = Client { connected: true };
            Ok((Ok(store.data_mut().table.push(client)?),))
        },
    )?;
    types.func_wrap(
        "[method]client.disconnect",
        |mut store: Context<'_>, (client,): Of<Client>| -> Reply<()> {
            store.data_mut().table.get_mut(&client)?.connected = false;
            Ok((Ok(()),))
        },
    )
}
