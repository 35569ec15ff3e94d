//! Never returns and calls nothing: only fuel, or the deadline, can end it.
//!
//! Ends as `out-of-fuel`.

use message_handler::{Failure, Guest, Message};

struct Spins;

impl Guest for Spins {
    fn handle(_: &Message) -> Result<(), Failure> {
        let mut turns = 0_u64;
        loop {
            // Without `black_box` the optimiser may take the loop for one without effect.
            turns = std::hint::black_box(turns.wrapping_add(1));
        }
    }
}

message_handler::export!(Spins);
