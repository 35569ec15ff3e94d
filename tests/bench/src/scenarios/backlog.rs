//! Very many messages on a thousand queues: how fast they come in, how soon the first task starts
//! after a crash and after a clean end, how fast they go out, in how much memory and disk.
//!
//! They come over HTTP in units, while no plugin is there; the plugin is there again before each
//! restart, compiled, as it would be on a host that crashed.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Scenario;
use crate::child::{Host, drop_echo, in_parallel, remove_echo};
use crate::host;
use crate::run::{Bound, Run};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "backlog",
    what: "millions of messages: fill, restart to the first trigger, drain, memory and disk",
    run,
};

/// Messages, full and quick. `ONCUE_BENCH_BACKLOG` names another number.
const FULL: usize = 10_000_000;
const QUICK: usize = 200_000;

/// Queues, bytes of a body, puts of a unit, and connections that fill.
const QUEUES: usize = 1_000;
const LENGTH: usize = 1_024;
const UNIT: usize = 200;
const CONNECTIONS: usize = 16;

/// How long draining is watched.
const DRAINED: Duration = Duration::from_secs(20);
const QUICK_DRAINED: Duration = Duration::from_secs(5);

fn run(run: &mut Run) -> anyhow::Result<()> {
    let named = std::env::var("ONCUE_BENCH_BACKLOG").ok();
    let messages = match named {
        Some(number) => number.parse()?,
        None => run.size(FULL, QUICK),
    };
    run.note(
        "messages",
        &format!("{messages} of {LENGTH} bytes on {QUEUES} queues"),
    );
    // One round: what is measured takes minutes, and no ratio is made of it.
    let directory = host::directory()?;
    fill(run, directory.path(), messages)?;
    let host = first_trigger(run, directory.path(), "killed")?;
    drain(run, &host)?;
    run.sample("disk.drained", disk(directory.path()), "MiB");
    host.stop()?;
    first_trigger(run, directory.path(), "closed")?.kill()?;
    run.verdict("restart", "killed.first-trigger", Bound::AtMost(2_000.0));
    Ok(())
}

const MEBIBYTE: f64 = 1024.0 * 1024.0;

fn fill(run: &mut Run, home: &Path, messages: usize) -> anyhow::Result<()> {
    drop_echo(home, 0)?;
    let host = Host::start(home)?;
    let mut client = host.client()?;
    client.serves("echo")?;
    let output = json!({"trigger": "none", "max-depth": 999_999_999});
    client.json("PUT", "/v1/queues/echo.out", &output)?;
    in_parallel(&host, CONNECTIONS, QUEUES, |client, number| {
        let path = format!("/v1/queues/full-{number:04}");
        client
            .json("PUT", &path, &json!({"process": "echo"}))
            .map(|_| ())
    })?;
    remove_echo(home, &mut client)?;
    let body = "x".repeat(LENGTH);
    let units: Vec<Vec<u8>> = (0..QUEUES / UNIT)
        .map(|unit| {
            let puts: Vec<_> = (0..UNIT)
                .map(|put| json!({"queue": format!("full-{:04}", unit * UNIT + put), "body": body}))
                .collect();
            json!({"puts": puts}).to_string().into_bytes()
        })
        .collect();
    let begun = Instant::now();
    in_parallel(&host, CONNECTIONS, messages / UNIT, |client, number| {
        let unit = units
            .get(number % units.len())
            .map_or(&[][..], Vec::as_slice);
        client
            .send("POST", "/v1/units", "application/json", unit)
            .map(|_| ())
    })?;
    #[expect(clippy::cast_precision_loss, reason = "a count of messages")]
    let rate = messages as f64 / begun.elapsed().as_secs_f64();
    run.sample("fill", rate, "messages/s");
    run.sample("resident.filled", host.resident()? / MEBIBYTE, "MiB");
    run.sample("disk.filled", disk(home), "MiB");
    // Another connection: a host ends one that says nothing for as long as filling takes.
    let depth = host.client()?.number("/v1/status", "depth")?;
    anyhow::ensure!(depth == messages as u64, "{depth} of {messages} are there");
    host.kill()?;
    drop_echo(home, 0)
}

fn first_trigger(run: &mut Run, home: &Path, after: &str) -> anyhow::Result<Host> {
    let host = Host::start(home)?;
    let mut client = host.client()?;
    client.until(|client| Ok(client.number("/v1/status", "triggers")? > 0))?;
    let first = host.begun.elapsed().as_secs_f64() * 1e3;
    run.sample(
        &format!("{after}.ready"),
        host.ready.as_secs_f64() * 1e3,
        "ms",
    );
    run.sample(&format!("{after}.first-trigger"), first, "ms");
    let resident = host.resident()? / MEBIBYTE;
    run.sample(&format!("resident.{after}"), resident, "MiB");
    Ok(host)
}

fn drain(run: &mut Run, host: &Host) -> anyhow::Result<()> {
    let output = "/v1/queues/echo.out";
    let (before, begun) = (host.client()?.number(output, "depth")?, Instant::now());
    std::thread::sleep(run.size(DRAINED, QUICK_DRAINED));
    let drained = host.client()?.number(output, "depth")? - before;
    #[expect(clippy::cast_precision_loss, reason = "a count of messages")]
    let rate = drained as f64 / begun.elapsed().as_secs_f64();
    run.sample("drain", rate, "messages/s");
    run.sample("resident.draining", host.resident()? / MEBIBYTE, "MiB");
    Ok(())
}

/// What the data directory takes on disk, in MiB. Files that go away meanwhile count nothing.
fn disk(home: &Path) -> f64 {
    use std::os::unix::fs::MetadataExt as _;
    let mut folders = vec![home.join("data")];
    let mut blocks = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => folders.push(entry.path()),
                Ok(found) => blocks += found.blocks(),
                Err(_) => {}
            }
        }
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "far below the bound of exactness"
    )]
    let bytes = blocks as f64 * 512.0;
    bytes / MEBIBYTE
}
