//! Opens its state bucket a million times and closes it never.
//!
//! Each open bucket is a handle, which costs the host memory that no memory limit of the guest
//! counts. Ends as `handle-limit` at the manifest's `max-handles`.

use message_handler::{Failure, Guest, Message, store};

const HANDLES: u32 = 1_000_000;

struct LeaksHandles;

impl Guest for LeaksHandles {
    fn handle(_: &Message) -> Result<(), Failure> {
        for _ in 0..HANDLES {
            // `forget` keeps the handle open: its drop would close it.
            std::mem::forget(store::open("default")?);
        }
        Ok(())
    }
}

message_handler::export!(LeaksHandles);
