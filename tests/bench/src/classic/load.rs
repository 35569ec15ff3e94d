//! The same load for both: in a closed loop for throughput, at a fixed rate for latency.
//!
//! At a fixed rate a message's time counts from the moment at which it was due, so a put that had
//! to wait is not forgiven. Effects are paired with puts in their order: queues are served first
//! come, first served, and tasks that overtake each other change single times, not their spread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use oncue_core::names::QueueName;
use oncue_manager::Handle;
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use tokio::sync::Semaphore;

use super::host::Host;
use super::monitor::Monitor;
use crate::callers::{micros, quantile};
use crate::watched::Arrived;

/// How long the last messages of a load may take.
const STUCK: Duration = Duration::from_secs(30);

/// Putters of the closed loop.
const PUTTERS: usize = 64;

/// Bytes of a body.
const LENGTH: usize = 1 << 10;

/// How often an outage's end is looked for.
const LOOK: Duration = Duration::from_millis(1);

/// What is behind at most once an outage is over, in seconds of the load.
const CAUGHT_UP: f64 = 0.02;

fn body() -> Bytes {
    Bytes::from(vec![b'x'; LENGTH])
}

async fn put(handle: &Handle, queue: &QueueName, body: &Bytes) -> anyhow::Result<()> {
    let put = PutRequest {
        queue: queue.clone(),
        body: body.clone(),
        options: PutOptions::default(),
    };
    handle.put(vec![put], None).await?;
    Ok(())
}

async fn reached(arrived: &Arrived, count: u64) -> anyhow::Result<()> {
    let waited = tokio::time::timeout(STUCK, arrived.reached(count)).await;
    waited.with_context(|| format!("{} of {count} messages were handled", arrived.count()))
}

/// Messages handled a second while there are always so many in flight; and how many were put.
pub(crate) async fn closed(
    host: &Host,
    in_flight: usize,
    warm: Duration,
    time: Duration,
) -> anyhow::Result<(f64, u64)> {
    let room = Arc::new(Semaphore::new(in_flight));
    let (arrived, before) = (Arc::clone(&host.arrived), host.arrived.count());
    let giving = Arc::clone(&room);
    let observer = tokio::spawn(async move {
        let mut seen = before;
        loop {
            arrived.reached(seen + 1).await;
            let count = arrived.count();
            giving.add_permits(usize::try_from(count - seen).unwrap_or(usize::MAX));
            seen = count;
        }
    });
    let number = Arc::new(AtomicU64::new(0));
    let putters: Vec<_> = (0..PUTTERS)
        .map(|_| {
            let (room, number) = (Arc::clone(&room), Arc::clone(&number));
            let (handle, queues, body) = (host.handle.clone(), host.queues.clone(), body());
            tokio::spawn(async move {
                // Closed at the end of the run.
                while let Ok(permit) = room.acquire().await {
                    permit.forget();
                    let place = number.fetch_add(1, Ordering::Relaxed) % queues.len() as u64;
                    put(&handle, &queues[usize::try_from(place)?], &body).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    tokio::time::sleep(warm).await;
    let (begun, from) = (Instant::now(), host.arrived.count());
    tokio::time::sleep(time).await;
    let (seconds, handled) = (begun.elapsed().as_secs_f64(), host.arrived.count() - from);
    room.close();
    for putter in putters {
        putter.await??;
    }
    observer.abort();
    let put = number.load(Ordering::Relaxed);
    reached(&host.arrived, before + put).await?;
    #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
    Ok((handled as f64 / seconds, put))
}

/// What a load at a fixed rate saw.
pub(crate) struct Open {
    /// Messages put.
    pub(crate) put: u64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// The longest.
    pub(crate) max: f64,
}

/// A load at a fixed rate that runs.
struct Rate {
    begun: Instant,
    rate: f64,
    before: u64,
    total: u64,
    putting: std::thread::JoinHandle<anyhow::Result<()>>,
    handled: std::thread::JoinHandle<anyhow::Result<Vec<Instant>>>,
}

impl Rate {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of some thousands"
    )]
    fn start(host: &Host, rate: f64, time: Duration) -> Self {
        let total = ((rate * time.as_secs_f64()) as u64).max(1);
        let before = host.arrived.count();
        let arrived = Arc::clone(&host.arrived);
        let handled = std::thread::spawn(move || see(&arrived, before, total));
        let begun = Instant::now();
        let (handle, queues) = (host.handle.clone(), host.queues.clone());
        let runtime = tokio::runtime::Handle::current();
        let putting = std::thread::spawn(move || {
            let (body, mut puts) = (body(), Vec::new());
            for number in 0..total {
                let due = due(begun, rate, number);
                if let Some(wait) = due.checked_duration_since(Instant::now()) {
                    std::thread::sleep(wait);
                }
                let queue = queues[usize::try_from(number)? % queues.len()].clone();
                let (handle, body) = (handle.clone(), body.clone());
                puts.push(runtime.spawn(async move { put(&handle, &queue, &body).await }));
            }
            for put in puts {
                runtime.block_on(put)??;
            }
            Ok(())
        });
        Self {
            begun,
            rate,
            before,
            total,
            putting,
            handled,
        }
    }

    /// Messages that were due by now and are not handled.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of some thousands"
    )]
    fn behind(&self, arrived: &Arrived) -> u64 {
        let due = (self.begun.elapsed().as_secs_f64() * self.rate) as u64;
        due.min(self.total)
            .saturating_sub(arrived.count() - self.before)
    }

    /// Waits for the last message.
    async fn end(self) -> anyhow::Result<Open> {
        let (putting, handled) = (self.putting, self.handled);
        let join = move || (putting.join(), handled.join());
        let (put, handled) = tokio::task::spawn_blocking(join).await?;
        put.map_err(|_panic| anyhow::anyhow!("the putting thread panicked"))??;
        let handled =
            handled.map_err(|_panic| anyhow::anyhow!("the watching thread panicked"))??;
        let mut times: Vec<u32> = (0..)
            .zip(handled)
            .map(|(number, at)| {
                micros(at.saturating_duration_since(due(self.begun, self.rate, number)))
            })
            .collect();
        times.sort_unstable();
        Ok(Open {
            put: self.total,
            p50: quantile(&times, 0.5),
            p99: quantile(&times, 0.99),
            max: quantile(&times, 1.0),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
fn due(begun: Instant, rate: f64, number: u64) -> Instant {
    begun + Duration::from_secs_f64(number as f64 / rate)
}

/// Notes when each effect was there, on a thread of its own.
fn see(arrived: &Arrived, before: u64, total: u64) -> anyhow::Result<Vec<Instant>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    runtime.block_on(async {
        let mut times = Vec::new();
        let mut seen = before;
        while seen < before + total {
            reached(arrived, seen + 1).await?;
            let (now, count) = (Instant::now(), arrived.count());
            times.extend((seen..count).map(|_| now));
            seen = count;
        }
        Ok(times)
    })
}

/// Messages at a fixed rate, to the last effect.
pub(crate) async fn open(host: &Host, rate: f64, time: Duration) -> anyhow::Result<Open> {
    Rate::start(host, rate, time).end().await
}

/// What an outage of the monitor did.
pub(crate) struct Outage {
    pub(crate) open: Open,
    /// Messages handled while it was down.
    pub(crate) handled: u64,
    /// Trigger messages on the initiation queue at its end.
    pub(crate) piled_up: u64,
    /// Messages due and not handled at its end.
    pub(crate) behind: u64,
    /// Milliseconds from the start of the next monitor until nothing was behind.
    pub(crate) recovery: f64,
}

/// Messages at a fixed rate for three times as long, with no monitor in the second part. Where
/// there is none in the first place, nothing is down.
pub(crate) async fn outage(
    host: &Host,
    monitor: &mut Option<Monitor>,
    rate: f64,
    time: Duration,
) -> anyhow::Result<Outage> {
    let load = Rate::start(host, rate, time * 3);
    tokio::time::sleep(time).await;
    if let Some(monitor) = monitor.take() {
        tokio::task::spawn_blocking(move || drop(monitor)).await?;
    }
    let from = host.arrived.count();
    tokio::time::sleep(time).await;
    let handled = host.arrived.count() - from;
    let (piled_up, behind) = (host.piled_up().await?, load.behind(&host.arrived));
    let begun = Instant::now();
    *monitor = host.monitor()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of some thousands"
    )]
    let caught_up = (rate * CAUGHT_UP) as u64;
    while load.behind(&host.arrived) > caught_up {
        anyhow::ensure!(begun.elapsed() < STUCK, "nothing recovers");
        tokio::time::sleep(LOOK).await;
    }
    let recovery = begun.elapsed().as_secs_f64() * 1e3;
    let open = load.end().await?;
    Ok(Outage {
        open,
        handled,
        piled_up,
        behind,
        recovery,
    })
}
