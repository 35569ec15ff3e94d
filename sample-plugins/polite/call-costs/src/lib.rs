//! What each kind of call to the host costs, as a handler sees it: fuel and time, a line for each
//! kind on standard error. The figures of `wit/what-a-call-costs.md` are made with it:
//!
//! ```sh
//! head -c 65536 /dev/zero | tr '\0' x | oncue run call-costs.wasm --message -
//! ```
//!
//! Fuel is exact and repeats. Time is of the machine, the store of the run and its load.

use std::hint::black_box;
use std::io::{Write, stderr};
use std::time::{Instant, SystemTime};

use message_handler::wasi::{config, logging};
use message_handler::{Content, Failure, Guest, Message, PutOptions};
use message_handler::{atomics, budget, queues, store};

/// Calls of each kind.
const CALLS: u32 = 200;

/// Where puts go.
const OUT: &str = "call-costs.out";

/// Calls of one kind, and what one of them cost.
fn measure(kind: &str, mut call: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    // The first pays for what is made once.
    call()?;
    let (fuel, begun) = (budget::fuel_left(), Instant::now());
    for _ in 0..CALLS {
        call()?;
    }
    let (time, burnt) = (begun.elapsed(), fuel - budget::fuel_left());
    let (fuel, nanos) = (burnt / u64::from(CALLS), (time / CALLS).as_nanos());
    eprintln!("{kind}: {fuel} fuel, {nanos} ns");
    Ok(())
}

fn puts(message: &Message) -> Result<(), Failure> {
    let plain = PutOptions::default();
    let put = |content: &Content| -> Result<(), Failure> {
        queues::put(OUT, content, &plain)?;
        Ok(())
    };
    let (short, long) = (vec![b'x'; 1 << 10], vec![b'x'; 64 << 10]);
    let text = Content::Text("x".repeat(1 << 10));
    let (short, long) = (Content::Bytes(short), Content::Bytes(long));
    measure("queues.put of 1 KiB of bytes", || put(&short))?;
    measure("queues.put of 1 KiB of text", || put(&text))?;
    measure("queues.put of 64 KiB", || put(&long))?;
    measure("queues.forward of 64 KiB", || {
        queues::forward(message, OUT)?;
        Ok(())
    })?;
    measure("queues.depth", || {
        black_box(queues::depth(OUT)?);
        Ok(())
    })?;
    measure("queues.browse of an empty queue", || {
        black_box(queues::browse(OUT, None, 10)?);
        Ok(())
    })
}

fn reads(message: &Message) -> Result<(), Failure> {
    let size = message.metadata().size as usize;
    measure("message.metadata", || {
        black_box(message.metadata());
        Ok(())
    })?;
    measure("message.read of 1 KiB", || {
        black_box(message.read(0, 1 << 10));
        Ok(())
    })?;
    measure(&format!("message.body of {size} bytes"), || {
        black_box(message.body());
        Ok(())
    })?;
    measure(&format!("message.text of {size} bytes"), || {
        black_box(message.text()?);
        Ok(())
    })
}

fn state() -> Result<(), Failure> {
    let bucket = store::open("default")?;
    measure("keyvalue.get of no value", || {
        black_box(bucket.get("nothing")?);
        Ok(())
    })?;
    measure("keyvalue.set of 100 bytes", || {
        Ok(bucket.set("value", &[b'x'; 100])?)
    })?;
    measure("keyvalue.get of 100 bytes", || {
        black_box(bucket.get("value")?);
        Ok(())
    })?;
    measure("keyvalue.increment", || {
        black_box(atomics::increment(&bucket, "count", 1)?);
        Ok(())
    })
}

fn rest() -> Result<(), Failure> {
    measure("budget.fuel-left", || {
        black_box(budget::fuel_left());
        Ok(())
    })?;
    measure("budget.time-left", || {
        black_box(budget::time_left());
        Ok(())
    })?;
    measure("config.get", || {
        black_box(config::store::get("region").ok());
        Ok(())
    })?;
    measure("logging.log of a line", || {
        let level = logging::logging::Level::Debug;
        logging::logging::log(level, "call-costs", "a line");
        Ok(())
    })?;
    measure("WASI write of a line to standard error", || {
        let _ = stderr().write_all(b"a line\n");
        Ok(())
    })?;
    measure("WASI time of day", || {
        black_box(SystemTime::now());
        Ok(())
    })
}

struct CallCosts;

impl Guest for CallCosts {
    fn handle(message: &Message) -> Result<(), Failure> {
        reads(message)?;
        state()?;
        puts(message)?;
        rest()
    }
}

message_handler::export!(CallCosts);
