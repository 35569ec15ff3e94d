//! What a second worker brings: the bare loop on one and two threads, the path with one and two
//! workers.

use std::num::NonZeroUsize;
use std::time::Duration;

use oncue_runtime::bare::{Bare, Calling};

use super::Scenario;
use crate::path::{self, Kept, Way};
use crate::run::{Bound, Run};
use crate::{floor, host};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "cores",
    what: "the bare loop on one and two threads, the path with one and two workers",
    run,
};

/// Bytes of a message.
const LENGTH: usize = 1024;

/// What is run on how many threads or workers.
const CONTENDERS: [(&str, Option<Kept>, usize); 6] = [
    ("floor-1", None, 1),
    ("floor-2", None, 2),
    ("memory-1", Some(Kept::Memory), 1),
    ("memory-2", Some(Kept::Memory), 2),
    ("durable-1", Some(Kept::Durable), 1),
    ("durable-2", Some(Kept::Durable), 2),
];

fn run(run: &mut Run) -> anyhow::Result<()> {
    let sandbox = host::sandbox(1000)?;
    let echo = host::load_echo(&sandbox)?;
    let bare = Bare::new(&sandbox, &echo, Calling::Async)?;
    let message = floor::message(LENGTH);
    let measure = run.size(Duration::from_secs(4), Duration::from_millis(800));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    run.note(
        "workers",
        "256 messages in flight, trigger first, 4 tasks; the number is workers",
    );
    for round in 0..=run.rounds() {
        run.begin_round(round);
        for turn in run.order(round, CONTENDERS.len()) {
            let (name, kept, threads) = CONTENDERS[turn];
            if !run.wants(name) {
                continue;
            }
            let (us, cpu) = if let Some(kept) = kept {
                let way = Way {
                    kept,
                    in_flight: 256,
                    length: LENGTH,
                    workers: NonZeroUsize::new(threads),
                    queue: &[("max-tasks", "4")],
                    process: &[],
                    measure,
                };
                let (taken, _) = runtime.block_on(path::measure(&sandbox, &echo, &way))?;
                (taken.us(), taken.spent.system_us() / taken.messages)
            } else {
                let cost = floor::instances(&bare, &message, threads, 1, measure)?;
                (cost.us, cost.cpu)
            };
            run.sample(name, us, "us/message");
            run.sample(&format!("{name}.cpu"), cpu, "cpu us/message");
        }
    }
    run.ratio("floor-1", "floor-2");
    run.ratio("memory-1", "memory-2");
    run.ratio("durable-1", "durable-2");
    run.verdict("memory", "memory-1/memory-2", Bound::AtLeast(1.45));
    Ok(())
}
