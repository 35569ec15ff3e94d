//! Many queues with triggers on which nothing happens: what each costs in memory, at a start and in
//! every sweep, and what they do to the one queue that is busy.
//!
//! Memory and starts are those of a host in a process of its own. The busy queue's latency is
//! measured in this process over the memory store, where no disk hides what the loop does.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use oncue_core::definition::QueuePatch;
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use oncue_runtime::{Loaded, Sandbox};
use serde_json::json;

use super::Scenario;
use crate::child::{Host, drop_echo, in_parallel};
use crate::host::{self, Setup};
use crate::run::{Bound, Run};
use crate::watched::{Arrived, watch};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "idle",
    what: "memory, starts, sweeps and the busy queue's latency beside many idle queues",
    run,
};

/// Idle queues: of a quick run, and of a full one.
const QUICK: &[usize] = &[1_000, 10_000];
const FULL: &[usize] = &[1_000, 10_000, 100_000];

/// Connections that define queues, and definitions under way at once in this process.
const CONNECTIONS: usize = 32;
const DEFINING: usize = 1_000;

/// After what was done last this long, so that what it left has settled: more than two sweeps.
const SETTLED: Duration = Duration::from_millis(2_200);

/// How long sweeps are watched.
const WATCHED: Duration = Duration::from_secs(3);

/// Messages of one latency measurement, and the time between two of them: over two sweeps.
const MESSAGES: usize = 2_000;
const BETWEEN: Duration = Duration::from_millis(1);

fn run(run: &mut Run) -> anyhow::Result<()> {
    let sizes = run.size(FULL, QUICK);
    run.note(
        "queues",
        "trigger first, bound to one process, defined over HTTP on 32 connections",
    );
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let sandbox = host::sandbox(1000)?;
    let echo = host::load_echo(&sandbox)?;
    for round in 0..run.rounds() {
        if round == 0 || !run.quick {
            for size in sizes {
                let directory = host::directory()?;
                cost(run, directory.path(), *size)?;
            }
        }
        for turn in run.order(round, sizes.len() + 1) {
            let size = turn.checked_sub(1).and_then(|turn| sizes.get(turn));
            let size = size.copied().unwrap_or(0);
            runtime.block_on(latency(run, &sandbox, &echo, size))?;
        }
    }
    for size in sizes {
        run.ratio(&format!("busy.p50.{size}"), "busy.p50.0");
        run.ratio(&format!("busy.p99.{size}"), "busy.p99.0");
    }
    if let Some(most) = sizes.last() {
        let memory = format!("restarted.{most}");
        run.verdict("memory", &memory, Bound::AtMost(2048.0));
        run.verdict(
            "defined-memory",
            &format!("defined.{most}"),
            Bound::AtMost(2048.0),
        );
        let p99 = format!("busy.p99.{most}/busy.p99.0");
        run.verdict("busy-p99", &p99, Bound::AtMost(1.5));
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts of queues")]
fn cost(run: &mut Run, home: &Path, size: usize) -> anyhow::Result<()> {
    drop_echo(home, 0)?;
    let host = Host::start(home)?;
    host.client()?.serves("echo")?;
    std::thread::sleep(SETTLED);
    let before = host.resident()?;
    let begun = Instant::now();
    let definition = json!({"process": "echo"});
    in_parallel(&host, CONNECTIONS, size, |client, number| {
        let path = format!("/v1/queues/idle-{number:06}");
        client.json("PUT", &path, &definition).map(|_| ())
    })?;
    let defining = begun.elapsed().as_secs_f64() * 1e6 / size as f64;
    run.sample(&format!("define.{size}"), defining, "us/queue");
    std::thread::sleep(SETTLED);
    let each = |host: &Host| anyhow::Ok((host.resident()? - before) / size as f64);
    run.sample(&format!("defined.{size}"), each(&host)?, "B/queue");
    let spent = host.spent()?;
    std::thread::sleep(WATCHED);
    let sweep = (host.spent()? - spent) * 1e3 / WATCHED.as_secs_f64();
    run.sample(&format!("sweep.{size}"), sweep, "ms/s");
    host.kill()?;
    let host = Host::start(home)?;
    run.sample(
        &format!("start.{size}"),
        host.ready.as_secs_f64() * 1e3,
        "ms",
    );
    host.client()?.serves("echo")?;
    std::thread::sleep(SETTLED);
    run.sample(&format!("restarted.{size}"), each(&host)?, "B/queue");
    host.stop()
}

async fn latency(
    run: &mut Run,
    sandbox: &Sandbox,
    echo: &Arc<Loaded>,
    size: usize,
) -> anyhow::Result<()> {
    let arrived = Arrived::new(host::name("echo.out"));
    let store = watch(host::memory(), &arrived);
    let manager = host::start_with(store, sandbox, &Setup::echo(echo, false)).await?;
    let handle = manager.handle();
    let flags = [("process".to_owned(), "echo".to_owned())];
    let patch = QueuePatch::parse_flags(&flags).map_err(|f| anyhow::anyhow!("{f:?}"))?;
    for first in (0..size).step_by(DEFINING) {
        let mut defining = tokio::task::JoinSet::new();
        for number in first..size.min(first + DEFINING) {
            let (handle, patch) = (handle.clone(), patch.clone());
            let queue = host::name(&format!("idle-{number:06}"));
            defining.spawn(async move { handle.define_queue(queue, patch).await });
        }
        while let Some(defined) = defining.join_next().await {
            defined??;
        }
    }
    tokio::time::sleep(SETTLED).await;
    let mut took = Vec::with_capacity(MESSAGES);
    for number in 1..=MESSAGES {
        let put = PutRequest {
            queue: host::name("echo"),
            body: Bytes::from_static(b"busy"),
            options: PutOptions::default(),
        };
        let begun = Instant::now();
        handle.put(vec![put], None).await?;
        arrived.reached(number as u64).await;
        took.push(begun.elapsed().as_secs_f64() * 1e6);
        tokio::time::sleep(BETWEEN).await;
    }
    took.sort_by(f64::total_cmp);
    let at = |part: usize| took.get(MESSAGES * part / 100).copied().unwrap_or(f64::NAN);
    run.sample(&format!("busy.p50.{size}"), at(50), "us");
    run.sample(&format!("busy.p99.{size}"), at(99), "us");
    manager.shutdown(host::END).await;
    Ok(())
}
