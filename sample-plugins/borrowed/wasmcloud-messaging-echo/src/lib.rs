//! Written against wasmCloud's interfaces and nothing of ours. Each message is published to its
//! reply-to as it came; the first word of a body may ask for something else:
//!
//! - `ask SUBJECT TEXT` requests TEXT of SUBJECT and answers the reply and where it came from;
//! - `tell SUBJECT TEXT` publishes TEXT to SUBJECT and answers what came of that;
//! - `subject` answers the subject of the message itself;
//! - `fail TEXT` fails with TEXT after it has published.

wit_bindgen::generate!({
    path: "../../../wit/borrowed/wasmcloud-messaging-0.2",
    inline: "package sample:echo;
        world echo {
            import wasmcloud:messaging/consumer@0.2.0;
            export wasmcloud:messaging/handler@0.2.0;
        }",
    generate_all,
});

use exports::wasmcloud::messaging::handler::Guest;
use wasmcloud::messaging::consumer;
use wasmcloud::messaging::types::BrokerMessage;

/// How long to wait for an answer, in milliseconds.
const WAIT: u32 = 20_000;

struct Echo;

impl Guest for Echo {
    fn handle_message(message: BrokerMessage) -> Result<(), String> {
        let text = String::from_utf8_lossy(&message.body).into_owned();
        let mut words = text.splitn(3, ' ');
        let first = words.next().unwrap_or_default();
        let (subject, rest) = (words.next(), words.next().unwrap_or_default());
        let answer = match (first, subject) {
            ("ask", Some(subject)) => {
                let reply = consumer::request(subject, rest.as_bytes(), WAIT)?;
                let from = format!(" from {}", reply.subject);
                [reply.body, from.into_bytes()].concat()
            }
            ("tell", Some(subject)) => match publish(subject, rest.as_bytes().to_vec()) {
                Ok(()) => b"told".to_vec(),
                Err(why) => why.into_bytes(),
            },
            ("subject", None) => message.subject.clone().into_bytes(),
            _ => message.body.clone(),
        };
        if let Some(reply_to) = &message.reply_to {
            publish(reply_to, answer)?;
        }
        match first {
            "fail" => Err(text),
            _ => Ok(()),
        }
    }
}

fn publish(subject: &str, body: Vec<u8>) -> Result<(), String> {
    consumer::publish(&BrokerMessage {
        subject: subject.to_owned(),
        body,
        reply_to: None,
    })
}

export!(Echo);
