//! The quick look at everything: floors, the trigger path over both stores, durable puts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use oncue_runtime::{Loaded, Sandbox, SandboxConfig};
use oncue_store::Store;
use oncue_store::embedded::{EmbeddedOptions, EmbeddedStore};
use oncue_store::memory::{MEMORY_STORE_MAX_BYTES, MemoryStore};

use crate::figures::{Figures, median};
use crate::{floor, host};

/// Interleaved rounds of every contender; medians are given.
const ROUNDS: usize = 3;

/// Messages of one round, and how many are in flight.
const MESSAGES: usize = 4000;
const IN_FLIGHT: usize = 128;

/// Bytes of a message.
const LENGTH: usize = 1024;

/// How long a manager may take to end.
const END: Duration = Duration::from_secs(5);

/// Runs it all.
pub(crate) fn run(figures: &mut Figures) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(all(figures))
}

async fn all(figures: &mut Figures) -> anyhow::Result<()> {
    let sandbox = Sandbox::new(SandboxConfig { slots: Some(1000) })?;
    let echo = host::load_echo(&sandbox)?;
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        let directory = tempfile::tempdir_in(".")?;
        rounds
            .instantiate
            .push(floor::instantiate(&sandbox, &echo).await?);
        rounds.append.push(floor::append(directory.path())?);
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(1, MEMORY_STORE_MAX_BYTES));
        rounds
            .volatile
            .push(trigger(memory, &sandbox, &echo, false).await?);
        rounds
            .durable
            .push(trigger(embedded(&directory, "t")?, &sandbox, &echo, true).await?);
        rounds
            .puts
            .push(puts(embedded(&directory, "p")?, &sandbox, &echo).await?);
    }
    let instantiate = median(rounds.instantiate);
    let append = median(rounds.append);
    let volatile = median(rounds.volatile);
    let durable = median(rounds.durable);
    let puts = median(rounds.puts);
    figures.add("floor.instantiate", instantiate, "us");
    figures.add("floor.append", append, "records/s");
    figures.add("trigger.volatile", volatile, "us/message");
    figures.add("trigger.durable", durable, "us/message");
    figures.add("puts.durable", puts, "puts/s");
    figures.ratio("trigger.volatile/floor.instantiate", volatile, instantiate);
    figures.ratio("trigger.durable/trigger.volatile", durable, volatile);
    figures.ratio("puts.durable/floor.append", puts, append);
    Ok(())
}

#[derive(Default)]
struct Rounds {
    instantiate: Vec<f64>,
    append: Vec<f64>,
    volatile: Vec<f64>,
    durable: Vec<f64>,
    puts: Vec<f64>,
}

fn embedded(directory: &tempfile::TempDir, name: &str) -> anyhow::Result<Arc<dyn Store>> {
    let options = EmbeddedOptions::default();
    Ok(Arc::new(EmbeddedStore::open(
        &directory.path().join(name),
        options,
    )?))
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
    manager.shutdown(END).await;
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
    manager.shutdown(END).await;
    #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
    Ok(MESSAGES as f64 / took)
}
