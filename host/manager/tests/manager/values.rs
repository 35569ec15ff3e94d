//! The values that tests give and take: names, puts, ends of calls, plugins, a store on disk.

use std::sync::Arc;

use bytes::Bytes;
use oncue_core::definition::Style;
use oncue_core::definition::{ProcessPatch, QueuePatch};
use oncue_core::names::{PluginName, ProcessName, QueueName};
use oncue_core::outcome::{CallEnd, Failure, Outcome};
use oncue_manager::reload::{PluginDefinitions, PluginState, PluginUpdate};
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use oncue_manager::tasks::{CallReport, ComponentVersion, Delivered, TaskSession};
use oncue_store::embedded::{EmbeddedOptions, EmbeddedStore};

/// Attributes as a person writes them.
pub(crate) type Pairs<'a> = &'a [(&'a str, &'a str)];

pub(crate) fn report(end: CallEnd) -> CallReport {
    CallReport {
        end,
        fuel: 1000,
        log_tail: String::new(),
    }
}

/// A message's body.
pub(crate) fn text(session: &TaskSession, message: &Delivered) -> String {
    let body = session.read_body(message, 0, message.message.header.size);
    String::from_utf8(body.expect("a body").to_vec()).expect("text")
}

pub(crate) fn trapped() -> CallEnd {
    CallEnd::Stopped {
        outcome: Outcome::Trapped,
        detail: "unreachable".to_owned(),
        backtrace: None,
    }
}

pub(crate) fn retry() -> CallEnd {
    CallEnd::Failed(Failure::Retry {
        reason: "not now".to_owned(),
        after: None,
    })
}

/// A put as applications and handlers make it.
pub(crate) fn request(queue: &str, body: &str, options: PutOptions) -> PutRequest {
    PutRequest {
        queue: name(queue),
        body: Bytes::copy_from_slice(body.as_bytes()),
        options,
    }
}

/// A plain put.
pub(crate) fn plain(queue: &str, body: &str) -> PutRequest {
    request(queue, body, PutOptions::default())
}

pub(crate) fn name(queue: &str) -> QueueName {
    QueueName::new(queue).expect("a queue's name")
}

fn owned(attributes: Pairs<'_>) -> Vec<(String, String)> {
    let pairs = attributes.iter();
    pairs
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect()
}

pub(crate) fn queue_patch(attributes: Pairs<'_>) -> QueuePatch {
    QueuePatch::parse_flags(&owned(attributes)).expect("valid attributes")
}

pub(crate) fn process_patch(attributes: Pairs<'_>) -> ProcessPatch {
    ProcessPatch::parse_flags(&owned(attributes)).expect("valid attributes")
}

/// That version serves, in message style.
pub(crate) fn ready(plugin: &str, digest: &str) -> PluginState {
    PluginState::Ready(ComponentVersion {
        plugin: PluginName::new(plugin).expect("a plugin's name"),
        digest: format!("{plugin}-{digest}"),
        style: Style::Message,
    })
}

/// What the plugins directory tells of a plugin.
pub(crate) fn update(
    plugin: &str,
    state: PluginState,
    process: Pairs<'_>,
    queues: &[(&str, Pairs<'_>)],
) -> PluginUpdate {
    let queues = queues
        .iter()
        .map(|(queue, attributes)| (name(queue), queue_patch(attributes)));
    PluginUpdate {
        name: PluginName::new(plugin).expect("a plugin's name"),
        file: format!("plugins/{plugin}.wasm"),
        state,
        definitions: Some(PluginDefinitions {
            process: process_patch(process),
            queues: queues.collect(),
        }),
        previous: Vec::new(),
        facts: Vec::new(),
    }
}

pub(crate) fn process_name(process: &str) -> ProcessName {
    ProcessName::new(process).expect("a process's name")
}

/// The answer of a future that never waits.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => panic!("the memory store answers at once"),
    }
}

/// A store on disk that sets nothing aside, and the directory that it is in.
pub(crate) fn on_disk() -> (tempfile::TempDir, Arc<EmbeddedStore>) {
    let home = tempfile::tempdir().expect("a directory");
    let options = EmbeddedOptions {
        ballast_bytes: 0,
        reserve_bytes: 0,
        ..EmbeddedOptions::default()
    };
    let store = Arc::new(EmbeddedStore::open(home.path(), options).expect("a store"));
    (home, store)
}
