//! Echo: each message is put again as it came, to the queue its sender asked for.
//!
//! The smallest useful handler of message style: one function, called once for each message.

use message_handler::{Content, Failure, Guest, Message, PutOptions, queues};

/// Where the echo goes when the message names no reply-to. The manifest grants this put.
const OUTPUT: &str = "echo.out";

struct Echo;

impl Guest for Echo {
    fn handle(message: &Message) -> Result<(), Failure> {
        // One call for everything but the body; the body stays with the manager until asked for.
        let about = message.metadata();
        let options = PutOptions {
            // An answer says which question it belongs to: by the sender's correlation id, else
            // by the question's own id.
            correlation_id: about.correlation_id.or(Some(about.id)),
            content_type: about.content_type,
            properties: about.properties,
            ..PutOptions::default()
        };
        let target = about.reply_to.as_deref().unwrap_or(OUTPUT);

        // The put is part of this message's unit of work: it appears when `handle` returns ok,
        // in the same write that takes the message off its queue. A refusal (`?`) makes this
        // attempt fail, and the message is tried again later.
        queues::put(target, &Content::Bytes(message.body()), &options)?;
        Ok(())
    }
}

message_handler::export!(Echo);
