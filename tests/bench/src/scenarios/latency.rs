//! From an arrival to the first instruction of its handler, at parts of what the path can bear.
//!
//! Arrivals are fixed in advance and the latency counts from the intended one. It ends at the entry
//! of the guest, its instance made. The floor gets the same arrivals through a channel, on as many
//! threads as there are workers; its durable twin syncs a record to a raw log first.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use oncue_manager::tasks::Delivered;
use oncue_runtime::bare::{Bare, Calling};
use oncue_runtime::{Loaded, Sandbox};

use super::Scenario;
use crate::floor;
use crate::host::{self, Flag, Setup};
use crate::open_loop::{self, Arrivals, Entries, Latencies};
use crate::path::{self, Kept, Way};
use crate::run::{Bound, Run};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "latency",
    what: "arrival to the handler's first instruction at 10, 50 and 90 % of saturation",
    run,
};

/// Bytes of a message.
const LENGTH: usize = 1024;

/// Memory that a message takes which nobody gets, body and indexes, about, in bytes.
const MESSAGE_BYTES: usize = 3 << 10;

/// Memory that is touched before a measurement: in pieces of so many bytes, and so many at most.
const CHUNK_BYTES: usize = 1 << 20;
const WARM_BYTES_MAX: usize = 2 << 30;

/// Settings of the queue.
const QUEUE: &[Flag] = &[("max-tasks", "4")];

/// Parts of the saturation, per cent.
const LOADS: [u32; 3] = [10, 50, 90];

/// Messages in flight that saturate it.
const SATURATING: u64 = 256;

const KINDS: [(&str, Kept); 2] = [("memory", Kept::Memory), ("durable", Kept::Durable)];

/// One measurement.
struct Point {
    name: &'static str,
    kept: Kept,
    load: u32,
    /// Arrivals a second.
    rate: f64,
    is_floor: bool,
}

struct Ground {
    sandbox: Sandbox,
    echo: Arc<Loaded>,
    bare: Bare,
    message: Arc<Delivered>,
    threads: usize,
    time: Duration,
}

fn run(run: &mut Run) -> anyhow::Result<()> {
    let sandbox = host::sandbox(1000)?;
    let echo = host::load_echo(&sandbox)?;
    let ground = Ground {
        bare: Bare::new(&sandbox, &echo, Calling::Async)?,
        message: floor::message(LENGTH),
        threads: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        time: run.size(Duration::from_secs(6), Duration::from_millis(900)),
        sandbox,
        echo,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let points = points(run, &ground, &runtime)?;
    for round in 0..run.rounds() {
        for turn in run.order(round, points.len()) {
            let Some(point) = points.get(turn) else {
                continue;
            };
            let taken = measure(&ground, &runtime, point)?;
            sample(run, point, &taken);
        }
    }
    for (name, _) in KINDS {
        for load in LOADS {
            for place in ["p50", "p99", "p999"] {
                let of = format!("{name}-{load}.{place}");
                run.ratio(&of, &format!("{name}-floor-{load}.{place}"));
            }
        }
    }
    for place in ["p50", "p99"] {
        let ratio = format!("memory-50.{place}/memory-floor-50.{place}");
        run.verdict(place, &ratio, Bound::AtMost(3.0));
        let ratio = format!("durable-50.{place}/durable-floor-50.{place}");
        run.verdict(&format!("durable-{place}"), &ratio, Bound::AtMost(3.0));
    }
    Ok(())
}

/// Finds out what the path can bear, and what to measure at which rate.
fn points(
    run: &mut Run,
    ground: &Ground,
    runtime: &tokio::runtime::Runtime,
) -> anyhow::Result<Vec<Point>> {
    let mut points = Vec::new();
    for (name, kept) in KINDS {
        if !run.wants(name) {
            continue;
        }
        let way = Way {
            kept,
            in_flight: SATURATING,
            length: LENGTH,
            workers: None,
            queue: QUEUE,
            process: &[],
            measure: ground.time,
        };
        let measured = path::measure(&ground.sandbox, &ground.echo, &way);
        let (taken, _) = runtime.block_on(measured)?;
        let most = 1e6 / taken.us();
        run.sample(&format!("{name}.saturation"), most, "messages/s");
        for load in LOADS {
            for is_floor in [false, true] {
                points.push(Point {
                    name,
                    kept,
                    load,
                    rate: most * f64::from(load) / 100.0,
                    is_floor,
                });
            }
        }
    }
    Ok(points)
}

/// Takes the memory that a path over memory is going to need, touches it and gives it back. The
/// first touch of a large page costs a virtual machine up to 8 ms, and everybody waits who wants
/// the store meanwhile; a host that has run for a while has done with that.
fn warm(point: &Point, time: Duration) {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is positive, and bytes are bounded here"
    )]
    let messages = (point.rate * time.as_secs_f64()) as usize;
    let bytes = messages.saturating_mul(MESSAGE_BYTES).min(WARM_BYTES_MAX);
    let touched: Vec<Vec<u8>> = (0..bytes / CHUNK_BYTES)
        .map(|_| std::hint::black_box(vec![1; CHUNK_BYTES]))
        .collect();
    drop(touched);
}

fn measure(
    ground: &Ground,
    runtime: &tokio::runtime::Runtime,
    point: &Point,
) -> anyhow::Result<Latencies> {
    let directory = host::directory()?;
    if point.is_floor {
        let log = (point.kept == Kept::Durable).then_some((directory.path(), LENGTH));
        let arrivals = Arrivals::new(point.rate, ground.time);
        return open_loop::bare(
            &ground.bare,
            &ground.message,
            ground.threads,
            log,
            &arrivals,
        );
    }
    if point.kept != Kept::Durable {
        warm(point, ground.time);
    }
    let store = point.kept.store(directory.path())?;
    let mut setup = Setup::echo(&ground.echo, point.kept == Kept::Durable);
    for serving in &mut setup.serving {
        serving.queue = QUEUE.to_vec();
    }
    let arrivals = Arrivals::new(point.rate, ground.time);
    setup.probe = Some(Entries::probe(&arrivals));
    let manager = runtime.block_on(host::start_with(store, &ground.sandbox, &setup))?;
    let handle = manager.handle();
    let mut taken = open_loop::puts(&handle, "echo", LENGTH, &arrivals)?;
    runtime.block_on(async {
        let status = handle.status().await?;
        taken.loop_work = Some([status.triggers, status.asked]);
        host::wait_for(&handle, "echo.out", arrivals.len()).await?;
        host::check_done(&handle, "echo", "echo.out", arrivals.len()).await?;
        manager.shutdown(host::END).await;
        anyhow::Ok(())
    })?;
    Ok(taken)
}

fn sample(run: &mut Run, point: &Point, taken: &Latencies) {
    let floor = if point.is_floor { "floor-" } else { "" };
    let name = format!("{}-{floor}{}", point.name, point.load);
    run.sample(&format!("{name}.p50"), taken.us(500), "us");
    run.sample(&format!("{name}.p99"), taken.us(990), "us");
    run.sample(&format!("{name}.p999"), taken.us(999), "us");
    run.note(&format!("{name}.threads"), &taken.by_thread());
    if let Some([starts, asked]) = taken.loop_work {
        run.sample(
            &format!("{name}.starts"),
            taken.each(starts),
            "tasks/message",
        );
        run.sample(
            &format!("{name}.asked"),
            taken.each(asked),
            "questions/message",
        );
    }
    let late = taken.late_us(500);
    run.sample(&format!("{name}.late-p50"), late, "us late");
    let late = taken.late_us(990);
    run.sample(&format!("{name}.late-p99"), late, "us late");
}
