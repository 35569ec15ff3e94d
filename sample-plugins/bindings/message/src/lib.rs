//! The world `message-handler`, bound for Rust once for all samples of that style.
//!
//! A plugin of your own needs no such crate: put the `generate!` below, without its last two
//! lines and with the path of your copy of `wit/`, in your `lib.rs`. This adds nothing to
//! the world but defaults and `?`. Its twin for the other style is `../trigger`.

wit_bindgen::generate!({
    path: "../../../wit",
    world: "message-handler",
    generate_all,
    pub_export_macro: true,
    default_bindings_module: "message_handler",
});

pub use exports::oncue::handler::on_message::Guest;
pub use oncue::handler::types::{Content, Error, Failure, Message, Metadata, PutOptions, Retry};
pub use oncue::handler::{budget, queues};
pub use wasi::keyvalue::{atomics, store};

/// Each option `none`: the queue's own defaults.
impl Default for PutOptions {
    fn default() -> Self {
        Self {
            correlation_id: None,
            reply_to: None,
            group: None,
            group_sequence: None,
            priority: None,
            persistent: None,
            content_type: None,
            properties: Vec::new(),
            delay: None,
            expiry: None,
            idempotency_key: None,
        }
    }
}

/// Each option `none`: the served queue, any message, no waiting.
impl Default for queues::GetOptions {
    fn default() -> Self {
        Self {
            queue: None,
            wait: None,
            id: None,
            correlation_id: None,
        }
    }
}

/// A refused call, met with `?`: try the whole message again later, the sentence as the reason.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let reason = match error {
            Error::Full(text)
            | Error::NotGranted(text)
            | Error::UnknownQueue(text)
            | Error::TooLarge(text)
            | Error::Other(text) => text,
            Error::NotText => "the body is not UTF-8".to_string(),
        };
        retry(reason)
    }
}

/// A failed operation on state, met with `?`.
impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        retry(format!("state: {error:?}"))
    }
}

/// "Try again when the queue's retry times say so."
pub fn retry(reason: impl Into<String>) -> Failure {
    Failure::Retry(Retry {
        reason: reason.into(),
        after: None,
    })
}
