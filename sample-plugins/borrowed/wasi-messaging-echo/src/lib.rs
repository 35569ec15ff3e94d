//! Written against `wasi:messaging` and nothing of ours. Each message is sent to the topic
//! `echoed` as it is, metadata and all; the first word of a body may ask for something else:
//!
//! - `reply TEXT` replies with TEXT, and with metadata `colour` set to `blue`;
//! - `ask TOPIC TEXT` requests TEXT of TOPIC and replies with the answer;
//! - `tell TOPIC TEXT` sends TEXT to TOPIC and replies with what came of that;
//! - `facts` replies with the message's topic, content type and metadata;
//! - `hoard` makes messages of a MiB each without end;
//! - `fail TEXT` fails with TEXT.

wit_bindgen::generate!({
    path: "../../../wit/borrowed/wasi-messaging-0.2-draft",
    inline: "package sample:echo;
        world echo {
            import wasi:messaging/producer@0.2.0-draft;
            import wasi:messaging/request-reply@0.2.0-draft;
            export wasi:messaging/incoming-handler@0.2.0-draft;
        }",
    generate_all,
});

use exports::wasi::messaging::incoming_handler::Guest;
use wasi::messaging::producer;
use wasi::messaging::request_reply::{self, RequestOptions};
use wasi::messaging::types::{Client, Error, Message};

/// How long to wait for an answer, in milliseconds.
const WAIT: u32 = 20_000;

struct Echo;

impl Guest for Echo {
    fn handle(message: Message) -> Result<(), Error> {
        let text = String::from_utf8_lossy(&message.data()).into_owned();
        let mut words = text.splitn(3, ' ');
        let first = words.next().unwrap_or_default();
        let (topic, rest) = (words.next(), words.next().unwrap_or_default());
        match (first, topic) {
            ("reply", Some(text)) => {
                let answer = Message::new(text.as_bytes());
                answer.add_metadata("colour", "red");
                answer.add_metadata("colour", "blue");
                answer.set_content_type("text/x-answer");
                request_reply::reply(&message, answer)
            }
            ("ask", Some(topic)) => {
                let client = Client::connect("")?;
                let options = RequestOptions::new();
                options.set_timeout_ms(WAIT);
                let question = Message::new(rest.as_bytes());
                let answers = request_reply::request(&client, topic, &question, Some(options))?;
                let data: Vec<u8> = answers.iter().flat_map(Message::data).collect();
                request_reply::reply(&message, Message::new(&data))
            }
            ("tell", Some(topic)) => {
                let client = Client::connect("")?;
                let told = producer::send(&client, topic, Message::new(rest.as_bytes()));
                let said = match told {
                    Ok(()) => "told".to_owned(),
                    Err(Error::PermissionDenied(why)) => format!("denied: {why}"),
                    Err(other) => format!("{other:?}"),
                };
                client.disconnect()?;
                let late = producer::send(&client, topic, Message::new(b"late"));
                assert!(matches!(late, Err(Error::Connection(_))));
                request_reply::reply(&message, Message::new(said.as_bytes()))
            }
            ("facts", None) => {
                let facts = facts(&message);
                request_reply::reply(&message, Message::new(facts.as_bytes()))
            }
            ("hoard", None) => {
                let mebibyte = vec![0; 1 << 20];
                let mut kept = Vec::new();
                loop {
                    kept.push(Message::new(&mebibyte));
                }
            }
            ("fail", _) => Err(Error::Other(text)),
            _ => producer::send(&Client::connect("any")?, "echoed", message),
        }
    }
}

/// A line for the topic, one for the content type and one for each pair.
fn facts(message: &Message) -> String {
    let topic = message.topic().unwrap_or_default();
    let content_type = message.content_type().unwrap_or_default();
    let pairs = message.metadata().unwrap_or_default();
    let pairs = pairs.iter().map(|(name, value)| format!("{name}={value}"));
    let mut lines = vec![topic, content_type];
    lines.extend(pairs);
    lines.join("\n")
}

export!(Echo);
