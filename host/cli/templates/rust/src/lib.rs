//! Greets: each message is a name, and the greeting goes to the queue `{{name}}.out`.

wit_bindgen::generate!({ path: "wit", world: "message-handler", generate_all });

use exports::oncue::handler::on_message::Guest;
use oncue::handler::queues;
use oncue::handler::types::{Content, Error, Failure, Message, PutOptions, Retry};

/// Where the greetings go. The manifest grants the put.
const OUTPUT: &str = "{{name}}.out";

/// A put with the queue's own defaults.
const PLAIN: PutOptions = PutOptions {
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
};

struct Handler;

impl Guest for Handler {
    /// Handles one message. `Ok` commits: the message leaves its queue and the greeting is there.
    /// A failure undoes all of it and says what becomes of the message.
    fn handle(message: &Message) -> Result<(), Failure> {
        // What can never succeed is rejected: it is not tried again, an operator reads the reason.
        let Ok(name) = message.text() else {
            return Err(Failure::Reject("the name is not UTF-8".to_owned()));
        };
        if name.is_empty() {
            return Err(Failure::Reject("the name is empty".to_owned()));
        }
        let greeting = Content::Text(format!("hello {name}"));
        queues::put(OUTPUT, &greeting, &PLAIN).map_err(later)?;
        Ok(())
    }
}

/// A call was refused, such as a put to a full queue: try again later, with the refusal as the
/// reason. A panic would do the same, less readably.
fn later(refused: Error) -> Failure {
    Failure::Retry(Retry {
        reason: refused.to_string(),
        after: None,
    })
}

export!(Handler);
