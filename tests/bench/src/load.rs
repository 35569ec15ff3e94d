//! Load in a closed loop: always so many messages between their put and their committed effect.
//!
//! The load is a thread of its own, so that what it costs can be told from what the system costs.
//! It puts as applications in the process do, learns of effects from the store's own counts
//! ([`crate::watched`]), and measures between two looks at the clock: messages that took effect
//! meanwhile, wall time, time on the processors. Afterwards all that was put must have arrived.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use oncue_manager::Handle;
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use tokio::task::JoinSet;

use crate::cpu::{self, Cpu, Spent};
use crate::host;
use crate::watched::Arrived;

/// How long nothing may come out while messages are in.
const STUCK: Duration = Duration::from_secs(20);

/// The load wakes when this part of the messages in flight may be put anew, so that its own
/// wake-ups are not what is measured. One message in flight is put at once.
const PART: u64 = 8;

/// What to put, and for how long.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) queue: &'static str,
    pub(crate) body: Bytes,
    /// Messages between their put and their committed effect.
    pub(crate) in_flight: u64,
    /// Before this is over nothing is measured.
    pub(crate) warm: Duration,
    pub(crate) measure: Duration,
}

/// What was measured.
pub(crate) struct Taken {
    /// Messages whose effect was committed while it was measured.
    pub(crate) messages: f64,
    pub(crate) seconds: f64,
    pub(crate) spent: Spent,
    /// Messages put in all.
    pub(crate) put: u64,
}

impl Taken {
    /// Wall time of a message, in microseconds.
    pub(crate) fn us(&self) -> f64 {
        self.seconds * 1e6 / self.messages
    }
}

/// Runs the load on its thread, to its end.
pub(crate) async fn run(
    handle: Handle,
    arrived: Arc<Arrived>,
    load: Load,
) -> anyhow::Result<Taken> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name(cpu::LOAD.to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build();
            let taken = match runtime {
                Ok(runtime) => runtime.block_on(drive(&handle, &arrived, &load)),
                Err(error) => Err(error.into()),
            };
            // Nobody waits any more only when the run has failed already.
            let _ = sender.send(taken);
        })?;
    receiver.await.context("the load's thread ended")?
}

/// A moment of the run.
struct Mark {
    at: Instant,
    arrived: u64,
    cpu: Cpu,
}

impl Mark {
    fn now(arrived: &Arrived) -> Self {
        Self {
            cpu: Cpu::now(),
            arrived: arrived.count(),
            at: Instant::now(),
        }
    }
}

async fn drive(handle: &Handle, arrived: &Arrived, load: &Load) -> anyhow::Result<Taken> {
    let mut putting = JoinSet::new();
    let (begun, before) = (Instant::now(), arrived.count());
    let mut put = 0;
    let mut start: Option<Mark> = None;
    let taken = loop {
        while put - (arrived.count() - before) < load.in_flight {
            put_one(handle, load, &mut putting).await?;
            put += 1;
        }
        reap(&mut putting)?;
        let now = Instant::now();
        match &start {
            None if now >= begun + load.warm => start = Some(Mark::now(arrived)),
            Some(start) if now >= start.at + load.measure => {
                break taken(start, &Mark::now(arrived));
            }
            _ => {}
        }
        let room = (load.in_flight / PART).max(1);
        let next = before + put - load.in_flight + room;
        wait(arrived, next).await?;
    };
    wait(arrived, before + put).await?;
    while let Some(answer) = putting.join_next().await {
        answer??;
    }
    anyhow::ensure!(
        taken.messages > 0.0,
        "nothing was done while it was measured"
    );
    Ok(Taken { put, ..taken })
}

fn taken(start: &Mark, end: &Mark) -> Taken {
    #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
    let messages = (end.arrived - start.arrived) as f64;
    Taken {
        messages,
        seconds: end.at.duration_since(start.at).as_secs_f64(),
        spent: end.cpu.since(&start.cpu),
        put: 0,
    }
}

async fn wait(arrived: &Arrived, count: u64) -> anyhow::Result<()> {
    tokio::time::timeout(STUCK, arrived.reached(count))
        .await
        .with_context(|| {
            let now = arrived.count();
            format!("{now} messages arrived, {count} were waited for, and no more in {STUCK:?}")
        })
}

type Putting = JoinSet<anyhow::Result<()>>;

/// Puts one message. A put that is durable at once is over here; another is awaited beside the
/// rest.
async fn put_one(handle: &Handle, load: &Load, putting: &mut Putting) -> anyhow::Result<()> {
    let request = PutRequest {
        queue: host::name(load.queue),
        // Each message has a body of its own, as those have that come in over a connection: a
        // shared one would have all cores count its holders in one place.
        body: Bytes::copy_from_slice(&load.body),
        options: PutOptions::default(),
    };
    let handle = handle.clone();
    let mut put = Box::pin(async move {
        handle.put(vec![request], None).await?;
        anyhow::Ok(())
    });
    // Polled once here, so that messages are submitted in order.
    let first = std::future::poll_fn(|context| std::task::Poll::Ready(put.as_mut().poll(context)));
    match first.await {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => {
            putting.spawn(put);
            Ok(())
        }
    }
}

/// Looks at the puts that are over.
fn reap(putting: &mut Putting) -> anyhow::Result<()> {
    while let Some(answer) = putting.try_join_next() {
        answer??;
    }
    Ok(())
}
