//! Batches: the manifest's `batch = 10` makes ten messages share one durable write.
//!
//! The handler does not notice: it is called once for each message as ever. Around each call
//! the manager keeps a savepoint, so that a message that fails takes only its own puts and state
//! back. The body says what happens: `fail` fails, `trap` panics, anything else is settled.

use message_handler::{Content, Failure, Guest, Message, PutOptions, queues, retry, store};

struct BatchSettle;

impl Guest for BatchSettle {
    fn handle(message: &Message) -> Result<(), Failure> {
        let body = message.text()?;
        let options = PutOptions {
            correlation_id: Some(message.metadata().id),
            ..PutOptions::default()
        };

        // Effects come first here, on purpose: none of them may remain of a message that fails.
        queues::put("settled", &Content::Text(body.clone()), &options)?;
        store::open("default")?.set(&format!("settled.{body}"), b"yes")?;

        match body.as_str() {
            // This message alone: undone and tried again, the batch goes on.
            "fail" => Err(retry("the body says fail")),
            // A trap ends the instance: those before it are committed, this message is charged,
            // the rest of the batch goes back uncharged.
            "trap" => panic!("the body says trap"),
            _ => Ok(()),
        }
    }
}

message_handler::export!(BatchSettle);
