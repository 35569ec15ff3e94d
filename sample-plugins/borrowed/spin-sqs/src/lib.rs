//! Spin SQS: a handler for Spin's SQS trigger, which deletes a message, leaves it, or fails.
//!
//! The body says which: `delete`, `leave`, `fail WORDS`, `panic`. What it was given is printed.

wit_bindgen::generate!({
    path: "../../../wit/borrowed/spin-sqs-2.0",
    world: "spin-sqs",
});

use fermyon::spin_sqs::sqs_types::MessageAttributeValue;

struct Sqs;

impl Guest for Sqs {
    fn handle_queue_message(message: Message) -> Result<MessageAction, Error> {
        println!("id: {}", message.id.unwrap_or_default());
        for attribute in &message.message_attributes {
            let value = match &attribute.value {
                MessageAttributeValue::Str(text) => text.clone(),
                MessageAttributeValue::Binary(bytes) => format!("{bytes:?}"),
            };
            let kind = attribute.data_type.as_deref().unwrap_or_default();
            println!("{} ({kind}): {value}", attribute.name);
        }
        let body = message.body.unwrap_or_default();
        let (word, rest) = body.split_once(' ').unwrap_or((&body, ""));
        match word {
            "delete" => Ok(MessageAction::Delete),
            "leave" => Ok(MessageAction::Leave),
            "fail" => Err(Error::Other(rest.to_owned())),
            other => panic!("the body says {other:?}"),
        }
    }
}

export!(Sqs);
