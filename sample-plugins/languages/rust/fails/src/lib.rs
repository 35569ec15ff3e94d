//! Fails in the way that the body says: "panic", "oom", any body that is no UTF-8. A body that
//! starts with "huge" is taken to pieces.

wit_bindgen::generate!({ path: "wit", world: "message-handler", generate_all });

use exports::oncue::handler::on_message::Guest;
use oncue::handler::queues;
use oncue::handler::types::{Content, Failure, Message, PutOptions};

struct Fails;

impl Guest for Fails {
    fn handle(message: &Message) -> Result<(), Failure> {
        // Not handled: a body that is no text is a panic.
        let text = message.text().expect("the body is text");
        match text.as_str() {
            "panic" => panics(),
            "oom" => hoards(),
            text if text.starts_with("huge") => weighs(text),
            _ => {}
        }
        Ok(())
    }
}

// Not inlined, so that the backtrace names it.
#[inline(never)]
fn panics() {
    panic!("boom from Rust");
}

fn hoards() {
    let mut all = Vec::new();
    loop {
        all.push(vec![1_u8; 1 << 20]);
    }
}

/// Every character and every byte, one by one.
fn weighs(text: &str) {
    let characters = text.chars().count();
    let sum: u64 = text.bytes().map(u64::from).sum();
    let content = Content::Text(format!("{characters} characters, sum {sum}"));
    let options = PutOptions {
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
    queues::put("fails.out", &content, &options).expect("the put is granted");
}

export!(Fails);
