//! Puts a billion messages in one unit of work.
//!
//! Ends as `output-limit` at the manifest's `max-puts`, and not one of the puts remains.

use message_handler::{Content, Failure, Guest, Message, PutOptions, queues};

const PUTS: u64 = 1_000_000_000;

struct FloodsPuts;

impl Guest for FloodsPuts {
    fn handle(_: &Message) -> Result<(), Failure> {
        let content = Content::Text("one of a billion".into());
        let options = PutOptions::default();
        for _ in 0..PUTS {
            // A refusal ends the flood: then it is a failure like any other.
            queues::put("floods-puts.out", &content, &options)?;
        }
        Ok(())
    }
}

message_handler::export!(FloodsPuts);
