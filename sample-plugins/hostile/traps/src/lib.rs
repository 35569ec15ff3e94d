//! Panics on every message.
//!
//! A panic is a trap; its text is on standard error, whose tail is kept with the task. Ends as
//! `trapped`, with `cannot handle` in the tail.

use message_handler::{Failure, Guest, Message};

struct Traps;

impl Guest for Traps {
    fn handle(message: &Message) -> Result<(), Failure> {
        panic!(
            "cannot handle {} of {} bytes",
            message.metadata().id,
            message.metadata().size
        );
    }
}

message_handler::export!(Traps);
