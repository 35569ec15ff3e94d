//! The quick look at everything: floors, the trigger path over both stores, durable puts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use oncue_runtime::bare::{Bare, Calling};
use oncue_runtime::{Loaded, Sandbox};
use oncue_store::Store;

use super::Scenario;
use crate::raw_log::RawLog;
use crate::run::Run;
use crate::{floor, host};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "smoke",
    what: "a quick look: floors, the trigger path over both stores, durable puts",
    run,
};

/// Messages of one round, and how many are in flight.
const MESSAGES: usize = 4000;
const IN_FLIGHT: usize = 128;

/// Bytes of a message.
const LENGTH: usize = 1024;

/// How long a floor is measured.
const FLOOR: Duration = Duration::from_millis(200);

fn run(run: &mut Run) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(all(run))
}

async fn all(run: &mut Run) -> anyhow::Result<()> {
    let sandbox = host::sandbox(1000)?;
    let echo = host::load_echo(&sandbox)?;
    let bare = Bare::new(&sandbox, &echo, Calling::Async)?;
    let message = floor::message(LENGTH);
    for _ in 0..run.rounds() {
        let directory = host::directory()?;
        let took = floor::instances(&bare, &message, 1, 1, FLOOR)?;
        run.sample("instantiate", took.us, "us");
        let mut log = RawLog::create(directory.path(), LENGTH)?;
        run.sample(
            "append",
            floor::append(&mut log, IN_FLIGHT, FLOOR)?,
            "records/s",
        );
        let took = trigger(host::memory(), &sandbox, &echo, false).await?;
        run.sample("volatile", took, "us/message");
        let store = host::embedded(directory.path(), "t")?;
        let took = trigger(store, &sandbox, &echo, true).await?;
        run.sample("durable", took, "us/message");
        let store = host::embedded(directory.path(), "p")?;
        run.sample("puts", puts(store, &sandbox, &echo).await?, "puts/s");
    }
    run.ratio("volatile", "instantiate");
    run.ratio("durable", "volatile");
    run.ratio("puts", "append");
    Ok(())
}

/// Microseconds per message from the first put to the last effect: put, trigger, task, commit.
async fn trigger(
    store: Arc<dyn Store>,
    sandbox: &Sandbox,
    echo: &Arc<Loaded>,
    persistent: bool,
) -> anyhow::Result<f64> {
    let manager = host::start(store, sandbox, echo, persistent).await?;
    let handle = manager.handle();
    let start = Instant::now();
    host::put_all(&handle, "echo", MESSAGES, LENGTH, IN_FLIGHT).await?;
    host::wait_for(&handle, "echo.out", MESSAGES as u64).await?;
    let took = start.elapsed().as_secs_f64();
    manager.shutdown(host::END).await;
    #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
    Ok(took * 1e6 / MESSAGES as f64)
}

/// Durable puts a second into a queue that nothing serves.
async fn puts(store: Arc<dyn Store>, sandbox: &Sandbox, echo: &Arc<Loaded>) -> anyhow::Result<f64> {
    let manager = host::start(store, sandbox, echo, true).await?;
    let handle = manager.handle();
    let start = Instant::now();
    host::put_all(&handle, "echo.out", MESSAGES, LENGTH, IN_FLIGHT).await?;
    let took = start.elapsed().as_secs_f64();
    manager.shutdown(host::END).await;
    #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
    Ok(MESSAGES as f64 / took)
}
