//! The world `trigger-handler`, bound for Rust once for all samples of that style.
//!
//! A plugin of your own needs no such crate: put the `generate!` below, without its last two
//! lines and with the path of your copy of `wit/`, in your `lib.rs`. This adds nothing to
//! the world but defaults and `?`. Its twin for the other style is `../message`.

wit_bindgen::generate!({
    path: "../../../wit",
    world: "trigger-handler",
    generate_all,
    pub_export_macro: true,
    default_bindings_module: "trigger_handler",
});

pub use exports::oncue::handler::on_trigger::Guest;
pub use oncue::handler::types::{
    Content, Error, Failure, Message, Metadata, PutOptions, Retry, TriggerMessage,
};
pub use oncue::handler::{budget, queues, unit_of_work};

/// Each option `none`: the triggered queue, any message, no waiting.
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

/// A refused call, met with `?`: undo this unit and try again later, the sentence as the reason.
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
        Failure::Retry(Retry {
            reason,
            after: None,
        })
    }
}
