//! Written against the interfaces that wasmCloud 1.9 had under a name of its own and that are
//! `wasi:messaging` otherwise. Replies to each message with its body in capitals.

wit_bindgen::generate!({
    path: "../../../wit/borrowed/wasmcloud-messaging-0.3",
    world: "wasmcloud:messaging/messaging-request-reply@0.3.0",
    generate_all,
});

use exports::wasmcloud::messaging::incoming_handler::Guest;
use wasmcloud::messaging::request_reply::reply;
use wasmcloud::messaging::types::{Error, Message};

struct Reply;

impl Guest for Reply {
    fn handle(message: Message) -> Result<(), Error> {
        let capitals = message.data().to_ascii_uppercase();
        reply(&message, Message::new(&capitals))
    }
}

export!(Reply);
