//! A handler of message style that also imports `acme:secret/vault@1.0.0`.
//!
//! Refused at load, by the import's name.

use message_handler::{Failure, Guest, Message, retry};

wit_bindgen::generate!({
    inline: "
        package acme:secret@1.0.0;
        interface vault { unlock: func(name: string) -> result<string, string>; }
        world safe { import vault; }
    ",
});

struct UnknownImport;

impl Guest for UnknownImport {
    fn handle(message: &Message) -> Result<(), Failure> {
        let secret = acme::secret::vault::unlock(&message.text()?).map_err(retry)?;
        Err(Failure::Reject(format!(
            "a host gave {} bytes away",
            secret.len()
        )))
    }
}

message_handler::export!(UnknownImport);
