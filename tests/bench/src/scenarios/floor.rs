//! The floors: a bare instance, made, called and dropped in a loop, and a file with group commit.

use std::time::Duration;

use oncue_runtime::bare::{Bare, Calling};

use super::Scenario;
use crate::raw_log::RawLog;
use crate::run::Run;
use crate::{floor, host};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "floor",
    what: "a bare instance, made, called and dropped in a loop; a file with group commit",
    run,
};

/// Bytes of a message.
const LENGTH: usize = 1024;

/// Messages of one instance when it is used again.
const BATCH: u32 = 16;

fn run(run: &mut Run) -> anyhow::Result<()> {
    let sandbox = host::sandbox(1000)?;
    let echo = host::load_echo(&sandbox)?;
    let asynchronous = Bare::new(&sandbox, &echo, Calling::Async)?;
    let synchronous = Bare::new(&sandbox, &echo, Calling::Sync)?;
    let message = floor::message(LENGTH);
    let directory = host::directory()?;
    let measure = run.size(Duration::from_secs(3), Duration::from_millis(700));
    run.note(
        "instances",
        "echo of 1 KiB: Store, instance, call (body read, one put to a stub), drop; fuel and epoch",
    );
    run.note(
        "append",
        "records of 1 KiB with a checksum, one write and one fdatasync a group",
    );
    let instances = [
        ("sync-1", &synchronous, 1, 1),
        ("async-1", &asynchronous, 1, 1),
        ("sync-2", &synchronous, 2, 1),
        ("async-2", &asynchronous, 2, 1),
        ("async-1-batch", &asynchronous, 1, BATCH),
    ];
    let groups = [
        ("append-1", 1),
        ("append-16", 16),
        ("append-128", 128),
        ("append-256", 256),
    ];
    for round in 0..run.rounds() {
        for turn in run.order(round, instances.len()) {
            let (name, bare, threads, times) = instances[turn];
            let cost = floor::instances(bare, &message, threads, times, measure)?;
            run.sample(name, cost.us, "us/message");
            run.sample(&format!("{name}.cpu"), cost.cpu, "cpu us/message");
        }
        for turn in run.order(round, groups.len()) {
            let (name, writers) = groups[turn];
            let mut log = RawLog::create(directory.path(), LENGTH)?;
            run.sample(
                name,
                floor::append(&mut log, writers, measure)?,
                "records/s",
            );
        }
    }
    run.ratio("async-1", "sync-1");
    run.ratio("async-1", "async-2");
    run.ratio("sync-1", "sync-2");
    Ok(())
}
