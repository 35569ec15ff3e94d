//! Calls itself without end.
//!
//! Rust keeps arrays on a stack in linear memory, which runs below address 0 long before the
//! engine's own stack is full. Either way a trap: ends as `trapped`.

use message_handler::{Failure, Guest, Message};
use std::hint::black_box;

/// One frame's burden on the stack, so that its end comes well before the fuel's.
const FRAME_BYTES: usize = 256;

struct Recurses;

impl Guest for Recurses {
    fn handle(_: &Message) -> Result<(), Failure> {
        let depth = descend(0);
        Err(Failure::Reject(format!("came back from depth {depth}")))
    }
}

/// `black_box` before and after the call: the optimiser can neither drop the frame nor turn the
/// call into a loop. The lint for it is right, and this is the point.
#[expect(
    unconditional_recursion,
    reason = "the sample is about recursion without end"
)]
#[inline(never)]
fn descend(depth: u64) -> u64 {
    let frame = black_box([depth as u8; FRAME_BYTES]);
    let below = descend(black_box(depth + 1));
    below + u64::from(black_box(frame)[0])
}

message_handler::export!(Recurses);
