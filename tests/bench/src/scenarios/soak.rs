//! Many tasks, some of which trap: memory stays flat, poison goes where it belongs, and what was
//! reserved is given back.
//!
//! Each message is a task of its own. Every hundredth goes to a queue whose handler panics, and
//! must be in the dead-letter queue at the end of its share. Between shares everything that came
//! out is removed, so that what remains in memory is the host's own.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use oncue_core::names::QueueName;
use oncue_manager::Handle;
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use oncue_runtime::Sandbox;

use super::Scenario;
use crate::host::{self, Serving, Setup};
use crate::run::{Bound, Run};
use crate::watched::{self, Arrived};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "soak",
    what: "a million tasks, one in a hundred traps: memory, dead letters, the ledger",
    run,
};

/// Tasks in all.
const TASKS: u64 = 1_000_000;
const QUICK_TASKS: u64 = 20_000;

/// Shares in which they are put.
const SHARES: u64 = 20;

/// One in this many traps.
const POISON: u64 = 100;

/// Bytes of task records that are kept. Reached within the first shares: what grows after them is
/// not what is kept on purpose.
const RECORDS: u64 = 1 << 20;

/// Bytes of a message.
const LENGTH: usize = 256;

/// Messages in flight.
const IN_FLIGHT: u64 = 256;

/// How long a share may take to settle once it is put.
const SETTLE: Duration = Duration::from_secs(60);

fn run(run: &mut Run) -> anyhow::Result<()> {
    let sandbox = host::sandbox(1000)?;
    let mut setup = Setup::echo(&host::load_echo(&sandbox)?, false);
    setup.records = Some(RECORDS);
    for serving in &mut setup.serving {
        serving.queue = vec![("trigger", "every"), ("max-tasks", "16")];
    }
    setup.serving.push(Serving {
        name: "traps",
        loaded: host::load(&sandbox, oncue_artifacts::TRAPS)?,
        process: Vec::new(),
        queue: vec![
            ("trigger", "every"),
            ("max-tasks", "4"),
            ("backout-threshold", "1"),
        ],
    });
    run.note(
        "tasks",
        "memory store, a task a message, 1 % panic with a backout threshold of 1",
    );
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(soak(run, &sandbox, &setup))
}

async fn soak(run: &mut Run, sandbox: &Sandbox, setup: &Setup) -> anyhow::Result<()> {
    let arrived = Arrived::new(host::name("echo.out"));
    let store = watched::watch(host::memory(), &arrived);
    let manager = host::start_with(store, sandbox, setup).await?;
    let handle = manager.handle();
    let tasks = run.size(TASKS, QUICK_TASKS);
    let (share, mut dead, mut resident) = (tasks / SHARES, 0, Vec::new());
    let begun = Instant::now();
    for number in 1..=SHARES {
        let poison = put_share(&handle, &arrived, share).await?;
        dead += poison;
        let good = share * number - dead;
        resident.push(settled(&handle, &arrived, good, poison).await?);
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of at most a million")]
    let us = begun.elapsed().as_secs_f64() * 1e6 / tasks as f64;
    let ledger = handle.ledger().await?;
    anyhow::ensure!(
        ledger.reserved.slots == 0 && ledger.reserved.memory == 0 && ledger.reserved.fuel == 0,
        "the ledger is not even at the end: {:?} are reserved",
        ledger.reserved
    );
    let triggers = handle.status().await?.triggers;
    manager.shutdown(host::END).await;
    run.note(
        "work",
        &format!("{tasks} messages, {triggers} triggers, {dead} dead letters"),
    );
    run.sample("task", us, "us/message");
    for (name, number) in [("at-10", 2), ("at-50", 10), ("at-100", 20)] {
        if let Some(mib) = resident.get(number - 1) {
            run.sample(name, *mib, "MiB resident");
        }
    }
    run.ratio("at-100", "at-10");
    run.verdict("flat", "at-100/at-10", Bound::AtMost(1.1));
    Ok(())
}

/// Puts a share; answers how many of it are poison.
async fn put_share(handle: &Handle, arrived: &Arrived, share: u64) -> anyhow::Result<u64> {
    let body = Bytes::from(vec![b'x'; LENGTH]);
    let (before, mut good, mut poison) = (arrived.count(), 0, 0);
    for number in 0..share {
        let is_poison = number % POISON == 0;
        let put = PutRequest {
            queue: host::name(if is_poison { "traps" } else { "echo" }),
            body: body.clone(),
            options: PutOptions::default(),
        };
        handle.put(vec![put], None).await?;
        poison += u64::from(is_poison);
        good += u64::from(!is_poison);
        if good >= IN_FLIGHT + (arrived.count() - before) {
            reached(arrived, before + good - IN_FLIGHT / 2).await?;
        }
    }
    reached(arrived, before + good).await?;
    Ok(poison)
}

async fn reached(arrived: &Arrived, count: u64) -> anyhow::Result<()> {
    let waited = tokio::time::timeout(SETTLE, arrived.reached(count)).await;
    waited.with_context(|| format!("{} of {count} came out, and no more", arrived.count()))
}

/// Waits until a share is through, counts it, removes it; answers the resident memory in MiB.
async fn settled(
    handle: &Handle,
    arrived: &Arrived,
    good: u64,
    poison: u64,
) -> anyhow::Result<f64> {
    let (begun, letters) = (Instant::now(), QueueName::dead_letter());
    loop {
        let status = handle.status().await?;
        let is_even = arrived.count() == good && status.dead_letters == poison;
        if status.running == 0 && is_even {
            break;
        }
        anyhow::ensure!(
            begun.elapsed() < SETTLE,
            "{} of {good} came out, {} of {poison} are dead letters, {} tasks run",
            arrived.count(),
            status.dead_letters,
            status.running
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    handle.clear(&letters).await?;
    handle.clear(&host::name("echo.out")).await?;
    let left = handle.status().await?.depth;
    anyhow::ensure!(left == 0, "{left} messages are left on some queue");
    resident()
}

/// MiB of this process in memory.
fn resident() -> anyhow::Result<f64> {
    let text = std::fs::read_to_string("/proc/self/status").context("read the process's status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kib.context("the system tells no resident memory")? / 1024.0)
}
