//! The way from a put to a committed handler, one instance a message, beside its floors.
//!
//! Every contender runs the echo sample: a message of 1 KiB in, one out. `memory` is the memory
//! store, `volatile` non-persistent messages in the embedded store, `durable` persistent ones in
//! it; the number after it says how many messages are in flight: between their put and the commit
//! of their effect.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use oncue_manager::tasks::Delivered;
use oncue_runtime::bare::{Bare, Calling};
use oncue_runtime::{Loaded, Sandbox};

use super::Scenario;
use crate::floor;
use crate::host::{self, Flag};
use crate::path::{self, Kept, Way};
use crate::raw_log::{self, RawLog};
use crate::run::{Bound, Run};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "trigger",
    what: "put, trigger, task, commit: over memory and disk, 1, 16 and 256 in flight; batches",
    run,
};

/// Bytes of a message.
const LENGTH: usize = 1024;

/// Messages in flight of the ceiling.
const CEILING: usize = 256;

/// Messages of one instance, when it is used again.
const BATCH: u32 = 16;

/// How long a contender is measured. Nobody takes what it puts: a longer run would measure memory
/// that is touched for the first time, which the round that warms up has not.
const MEASURE: Duration = Duration::from_secs(1);
const QUICK_MEASURE: Duration = Duration::from_millis(500);

/// One way to run it.
struct Contender {
    name: &'static str,
    kept: Kept,
    in_flight: u64,
    queue: &'static [Flag],
    process: &'static [Flag],
    note: &'static str,
}

const TASKS: &[Flag] = &[("max-tasks", "4")];
const MANY_TASKS: &[Flag] = &[("max-tasks", "64")];
const EVERY: &[Flag] = &[("max-tasks", "64"), ("trigger", "every")];
const DEPTH: &[Flag] = &[
    ("max-tasks", "4"),
    ("trigger", "depth"),
    ("trigger-depth", "16"),
    ("trigger-max-wait", "50ms"),
];
const BATCHED: &[Flag] = &[("batch", "16")];
const REUSED: &[Flag] = &[("reuse", "16")];

/// A contender of which each message has an instance of its own.
const fn plain(name: &'static str, kept: Kept, in_flight: u64) -> Contender {
    Contender {
        name,
        kept,
        in_flight,
        queue: TASKS,
        process: &[],
        note: "trigger first, 4 tasks, one instance a message",
    }
}

const CONTENDERS: &[Contender] = &[
    plain("memory-1", Kept::Memory, 1),
    plain("memory-16", Kept::Memory, 16),
    plain("memory-256", Kept::Memory, 256),
    plain("volatile-1", Kept::Volatile, 1),
    plain("volatile-16", Kept::Volatile, 16),
    plain("volatile-256", Kept::Volatile, 256),
    plain("durable-1", Kept::Durable, 1),
    plain("durable-16", Kept::Durable, 16),
    plain("durable-256", Kept::Durable, 256),
    Contender {
        queue: MANY_TASKS,
        note: "as durable-256 with 64 tasks",
        ..plain("durable-256-wide", Kept::Durable, 256)
    },
    Contender {
        queue: EVERY,
        note: "trigger every: a task a message, 64 at once",
        ..plain("memory-256-every", Kept::Memory, 256)
    },
    Contender {
        process: REUSED,
        note: "trigger first, 16 messages an instance, a commit each",
        ..plain("memory-256-reuse", Kept::Memory, 256)
    },
    Contender {
        process: BATCHED,
        note: "trigger first, 16 messages an instance and a commit",
        ..plain("memory-256-batch", Kept::Memory, 256)
    },
    Contender {
        queue: DEPTH,
        process: BATCHED,
        note: "trigger depth 16, 16 messages an instance and a commit",
        ..plain("memory-256-depth", Kept::Memory, 256)
    },
    Contender {
        process: BATCHED,
        note: "trigger first, 16 messages an instance and a commit",
        ..plain("durable-256-batch", Kept::Durable, 256)
    },
];

/// What all contenders share.
struct Ground {
    sandbox: Sandbox,
    echo: Arc<Loaded>,
    bare: Bare,
    message: Arc<Delivered>,
    measure: Duration,
}

fn run(run: &mut Run) -> anyhow::Result<()> {
    let sandbox = host::sandbox(1000)?;
    let echo = host::load_echo(&sandbox)?;
    let ground = Ground {
        bare: Bare::new(&sandbox, &echo, Calling::Async)?,
        message: floor::message(LENGTH),
        measure: run.size(MEASURE, QUICK_MEASURE),
        sandbox,
        echo,
    };
    notes(run);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let wanted: Vec<_> = CONTENDERS
        .iter()
        .filter(|contender| run.wants(contender.name))
        .collect();
    for round in 0..=run.rounds() {
        run.begin_round(round);
        floors(run, &ground, round)?;
        for turn in run.order(round, wanted.len()) {
            runtime.block_on(contend(run, &ground, wanted[turn]))?;
        }
    }
    ratios(run);
    Ok(())
}

fn notes(run: &mut Run) {
    for contender in CONTENDERS {
        if run.wants(contender.name) {
            run.note(contender.name, contender.note);
        }
    }
    run.note("floor-1", "bare loop on one thread");
    run.note("floor-2", "bare loop on two threads at once");
    run.note(
        "ceiling-256",
        "two records a message to a raw log, all that waits in one sync, a bare call between \
         them on as many threads as there are workers",
    );
}

/// What the machine allows, in the same round.
fn floors(run: &mut Run, ground: &Ground, round: usize) -> anyhow::Result<()> {
    let Ground { bare, message, .. } = ground;
    let floors = ["floor-1", "floor-2", "floor-1-batch", "ceiling-256"];
    for turn in run.order(round, floors.len()) {
        let name = floors[turn];
        let cost = match name {
            "floor-1" => floor::instances(bare, message, 1, 1, ground.measure)?,
            "floor-2" => floor::instances(bare, message, 2, 1, ground.measure)?,
            "floor-1-batch" => floor::instances(bare, message, 1, BATCH, ground.measure)?,
            _ => {
                let directory = host::directory()?;
                let mut log = RawLog::create(directory.path(), LENGTH)?;
                let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
                let time = (floor::WARM, ground.measure);
                raw_log::ceiling(&mut log, bare, message, CEILING, threads, time)?
            }
        };
        run.sample(name, cost.us, "us/message");
        run.sample(&format!("{name}.cpu"), cost.cpu, "cpu us/message");
    }
    Ok(())
}

/// One contender, once.
async fn contend(run: &mut Run, ground: &Ground, contender: &Contender) -> anyhow::Result<()> {
    let way = Way {
        kept: contender.kept,
        in_flight: contender.in_flight,
        length: LENGTH,
        workers: None,
        queue: contender.queue,
        process: contender.process,
        measure: ground.measure,
    };
    let (taken, status) = path::measure(&ground.sandbox, &ground.echo, &way).await?;
    let name = contender.name;
    run.sample(name, taken.us(), "us/message");
    let spent = &taken.spent;
    let cpu = spent.system_us() / taken.messages;
    run.sample(&format!("{name}.cpu"), cpu, "cpu us/message");
    let cpu = spent.load_us() / taken.messages;
    run.sample(&format!("{name}.load"), cpu, "cpu us/message");
    #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
    let each = |count: u64| count as f64 / taken.put as f64;
    let triggers = each(status.triggers);
    run.sample(&format!("{name}.triggers"), triggers, "triggers/message");
    if contender.kept == Kept::Durable {
        run.sample(
            &format!("{name}.syncs"),
            each(status.syncs),
            "syncs/message",
        );
    }
    run.note(&format!("{name}.threads"), &spent.by_thread(taken.messages));
    Ok(())
}

fn ratios(run: &mut Run) {
    for contender in CONTENDERS {
        if contender.kept != Kept::Durable {
            run.ratio(contender.name, "floor-2");
        }
    }
    run.ratio("memory-256.cpu", "floor-2.cpu");
    run.ratio("volatile-256.cpu", "floor-2.cpu");
    run.ratio("ceiling-256.cpu", "durable-256.cpu");
    run.ratio("ceiling-256", "durable-256");
    run.ratio("ceiling-256", "durable-256-wide");
    run.verdict("memory", "memory-256/floor-2", Bound::AtMost(2.0));
    run.verdict("memory-aim", "memory-256/floor-2", Bound::AtMost(1.3));
    run.verdict("durable", "ceiling-256/durable-256", Bound::AtLeast(0.5));
    run.verdict(
        "durable-aim",
        "ceiling-256/durable-256",
        Bound::AtLeast(0.8),
    );
}
