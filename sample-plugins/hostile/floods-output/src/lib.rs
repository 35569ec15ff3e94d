//! Writes 1 GiB to standard error in pieces of 64 KiB, and then succeeds.
//!
//! The host keeps a tail, marks the cut and counts the bytes; the task goes on. Ends as
//! `committed`.

use std::io::Write;

use message_handler::{Failure, Guest, Message};

const PIECE_BYTES: usize = 64 * 1024;
const TOTAL_BYTES: usize = 1024 * 1024 * 1024;

struct FloodsOutput;

impl Guest for FloodsOutput {
    fn handle(_: &Message) -> Result<(), Failure> {
        let piece = [b'x'; PIECE_BYTES];
        let mut errors = std::io::stderr().lock();
        for _ in 0..TOTAL_BYTES / PIECE_BYTES {
            // A host may refuse more output; a handler should not fail for its log's sake.
            let _ = errors.write_all(&piece);
        }
        let _ = errors.write_all(b"\nthe end of the flood\n");
        Ok(())
    }
}

message_handler::export!(FloodsOutput);
