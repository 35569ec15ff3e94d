//! Makes a million timers and waits for none of them.
//!
//! As `leaks-handles`, but the handles are WASI's, which are made without any grant. Ends as
//! `handle-limit` too.

use message_handler::{Failure, Guest, Message};

// WASI's clock is not part of the handlers' worlds: the platform has it all the same.
wit_bindgen::generate!({
    path: ["../../../wit/deps/io", "../../../wit/deps/clocks"],
    inline: "
        package sample:timers;
        world timers { import wasi:clocks/monotonic-clock@0.2.12; }
    ",
    generate_all,
});

const TIMERS: u32 = 1_000_000;
const FAR_AWAY_NANOSECONDS: u64 = 3_600_000_000_000;

struct LeaksPollables;

impl Guest for LeaksPollables {
    fn handle(_: &Message) -> Result<(), Failure> {
        for _ in 0..TIMERS {
            let timer = wasi::clocks::monotonic_clock::subscribe_duration(FAR_AWAY_NANOSECONDS);
            // `forget` keeps the handle open: its drop would close it.
            std::mem::forget(timer);
        }
        Ok(())
    }
}

message_handler::export!(LeaksPollables);
