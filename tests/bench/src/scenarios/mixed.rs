//! A light queue beside a busy one: what guests that only burn fuel do to the latency of others.

use std::sync::Arc;
use std::time::Duration;

use oncue_runtime::{Loaded, Sandbox};

use super::Scenario;
use crate::host::{self, Serving, Setup};
use crate::open_loop::{self, Arrivals, Entries, Latencies};
use crate::run::{Bound, Run};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "mixed",
    what: "a light queue alone, and beside guests that never stop burning fuel",
    run,
};

/// Bytes of a message.
const LENGTH: usize = 1024;

/// Arrivals of the light queue a second.
const RATE: f64 = 500.0;

/// Messages for the hog: each keeps a guest busy for longer than a round.
const HOGS: usize = 4;

fn run(run: &mut Run) -> anyhow::Result<()> {
    let sandbox = host::sandbox(1000)?;
    let (echo, spins) = (
        host::load_echo(&sandbox)?,
        host::load(&sandbox, oncue_artifacts::SPINS)?,
    );
    let time = run.size(Duration::from_secs(20), Duration::from_secs(4));
    run.note(
        "light",
        "500 arrivals a second, at random, non-persistent, memory store; to the guest's entry",
    );
    run.note(
        "hog",
        "4 guests in an endless loop, on a queue of their own",
    );
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    for round in 0..run.rounds() {
        for turn in run.order(round, 2) {
            let hog = (turn == 1).then_some(&spins);
            let name = if hog.is_some() { "with-hog" } else { "alone" };
            let taken = measure(&sandbox, &runtime, &echo, hog, time)?;
            for (place, per_mille) in [("p50", 500), ("p99", 990), ("p999", 999)] {
                run.sample(&format!("{name}.{place}"), taken.us(per_mille), "us");
            }
            let late = taken.late_us(990);
            run.sample(&format!("{name}.late-p99"), late, "us late");
        }
    }
    run.ratio("with-hog.p50", "alone.p50");
    run.ratio("with-hog.p99", "alone.p99");
    run.verdict("p99", "with-hog.p99/alone.p99", Bound::AtMost(3.0));
    Ok(())
}

fn measure(
    sandbox: &Sandbox,
    runtime: &tokio::runtime::Runtime,
    echo: &Arc<Loaded>,
    hog: Option<&Arc<Loaded>>,
    time: Duration,
) -> anyhow::Result<Latencies> {
    let arrivals = Arrivals::new(RATE, time);
    let mut setup = Setup::echo(echo, false);
    setup.probe = Some(Entries::probe(&arrivals));
    if let Some(spins) = hog {
        setup.serving.push(Serving {
            name: "spins",
            loaded: Arc::clone(spins),
            // Only the end of the host ends it.
            process: vec![
                ("fuel", "100 G"),
                ("deadline", "10m"),
                ("task-deadline", "10m"),
            ],
            queue: vec![("max-tasks", "4")],
        });
    }
    let manager = runtime.block_on(host::start_with(host::memory(), sandbox, &setup))?;
    let handle = manager.handle();
    if hog.is_some() {
        runtime.block_on(host::put_all(&handle, "spins", HOGS, LENGTH, 1))?;
    }
    let taken = open_loop::puts(&handle, "echo", LENGTH, &arrivals)?;
    runtime.block_on(async {
        host::wait_for(&handle, "echo.out", arrivals.len()).await?;
        host::check_done(&handle, "echo", "echo.out", arrivals.len()).await?;
        let busy = handle.status().await?.running;
        let wanted = if hog.is_some() { HOGS as u64 } else { 0 };
        anyhow::ensure!(
            busy >= wanted,
            "{busy} tasks still run, the hog has {wanted}"
        );
        manager.shutdown(Duration::ZERO).await;
        anyhow::Ok(())
    })?;
    Ok(taken)
}
