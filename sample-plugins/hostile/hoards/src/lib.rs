//! Takes memory, writes to it, and never gives it back.
//!
//! The growth past the limit is denied, the allocator aborts: ends as `over-memory`.

use message_handler::{Failure, Guest, Message};

const BLOCK_BYTES: usize = 256 * 1024;

struct Hoards;

impl Guest for Hoards {
    fn handle(_: &Message) -> Result<(), Failure> {
        let mut hoard: Vec<Vec<u8>> = Vec::new();
        loop {
            // Zeroed memory might never be touched; ones have to be written.
            hoard.push(vec![1; BLOCK_BYTES]);
            std::hint::black_box(&hoard);
        }
    }
}

message_handler::export!(Hoards);
