//! Sleeps for a minute in a host call, where neither fuel nor the engine's clock can reach it:
//! in a get with a wait, or, if the body is `clock`, in WASI's clock.
//!
//! The deadline ends it all the same: `past-deadline`.

use std::time::Duration;

use message_handler::queues::{self, GetOptions};
use message_handler::{Failure, Guest, Message};

const MINUTE: Duration = Duration::from_secs(60);

struct Sleeps;

impl Guest for Sleeps {
    fn handle(message: &Message) -> Result<(), Failure> {
        if message.body() == b"clock" {
            std::thread::sleep(MINUTE);
        } else {
            // No message has this id, so no put can end the wait.
            let none_such = GetOptions {
                wait: Some(MINUTE.as_millis() as u64),
                id: Some("none-such".into()),
                ..GetOptions::default()
            };
            queues::get(&none_such)?;
        }
        Ok(())
    }
}

message_handler::export!(Sleeps);
