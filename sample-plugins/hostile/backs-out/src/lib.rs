//! Asks for another attempt every time, and never succeeds.
//!
//! Each attempt is charged; at the backout threshold the message moves to the dead-letter
//! queue. Each attempt ends as `retry`.

use message_handler::{Failure, Guest, Message, retry};

struct BacksOut;

impl Guest for BacksOut {
    fn handle(message: &Message) -> Result<(), Failure> {
        let about = message.metadata();
        Err(retry(format!(
            "attempt {} failed, {} left",
            about.backout_count + 1,
            about.attempts_left.saturating_sub(1)
        )))
    }
}

message_handler::export!(BacksOut);
