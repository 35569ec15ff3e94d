//! Answers each message with another one on its own queue: a loop with no end of its own.
//!
//! The hop count ends it: the put past `hop-limit` goes to the dead-letter queue instead. Each
//! task ends as `committed`.

use message_handler::{Content, Failure, Guest, Message, PutOptions, queues};

struct WritesToItself;

impl Guest for WritesToItself {
    fn handle(message: &Message) -> Result<(), Failure> {
        let body = Content::Bytes(message.body());
        queues::put("writes-to-itself", &body, &PutOptions::default())?;
        Ok(())
    }
}

message_handler::export!(WritesToItself);
