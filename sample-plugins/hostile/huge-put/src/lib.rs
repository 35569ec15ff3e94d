//! Puts one message of 256 MiB.
//!
//! The host refuses it before it has copied so much: either the task ends as `output-limit`, or
//! the put answers `too-large` and this fails with that reason.

use message_handler::{Content, Failure, Guest, Message, PutOptions, queues};

const BODY_BYTES: usize = 256 * 1024 * 1024;

struct HugePut;

impl Guest for HugePut {
    fn handle(_: &Message) -> Result<(), Failure> {
        let body = vec![0; BODY_BYTES];
        queues::put(
            "huge-put.out",
            &Content::Bytes(body),
            &PutOptions::default(),
        )?;
        Ok(())
    }
}

message_handler::export!(HugePut);
