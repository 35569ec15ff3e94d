//! Other queues of messages, installed from their registries, run by their own servers and called
//! by their own native clients, as their users would; and this project's, called the same way.
//!
//! Each answers a put only when the message is on the disk, except where its name says otherwise,
//! and handles a message by putting one of the same bytes and acknowledging the first, both
//! durable. Nothing here installs anything: see the script `install-peers`.

mod nats;
mod oncue;
mod postgres;
mod rabbit;
mod redis;
mod server;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures_core::Stream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::callers::{Called, Caller, Load, closed};

pub(crate) use nats::{Nats, Sync};
pub(crate) use oncue::{InProcess, OverHttp};
pub(crate) use postgres::Postgres;
pub(crate) use rabbit::{Kind, Node, Rabbit};
pub(crate) use redis::Redis;

/// Bytes of a body.
pub(crate) const LENGTH: usize = 1 << 10;

/// Connections that putters share where a client can share one; else each has its own.
const CONNECTIONS: usize = 16;

/// Messages between their put and their effect.
pub(crate) const IN_FLIGHT: usize = 128;

/// How long the last messages of a load may take.
const STUCK: Duration = Duration::from_secs(30);

fn body() -> Vec<u8> {
    vec![b'x'; LENGTH]
}

/// Which queue is put to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Nothing is got from it.
    Kept,
    /// A consumer handles it.
    Handled,
}

/// One that is compared.
pub(crate) trait Contender {
    /// Puts one message and waits until it is durable.
    type Put: Caller;

    /// So many putters.
    async fn putters(&self, queue: Queue, count: usize) -> anyhow::Result<Vec<Self::Put>>;

    /// How many messages were kept since this was asked last.
    async fn kept(&mut self) -> anyhow::Result<u64>;

    /// Starts what handles messages. It tells `progress` of each, and ends with what is answered.
    async fn consume(
        &self,
        progress: &Arc<Progress>,
    ) -> anyhow::Result<JoinSet<anyhow::Result<()>>>;

    /// How many messages were put by the consumer since this was asked last; fails when others are
    /// left to handle.
    async fn handled(&mut self) -> anyhow::Result<u64>;
}

/// What consumers have done, and room for more in flight.
#[derive(Debug)]
pub(crate) struct Progress {
    handled: AtomicU64,
    room: Semaphore,
}

impl Progress {
    fn add(&self, count: u64) {
        self.handled.fetch_add(count, Ordering::SeqCst);
        self.room
            .add_permits(usize::try_from(count).unwrap_or(usize::MAX));
    }

    fn count(&self) -> u64 {
        self.handled.load(Ordering::SeqCst)
    }
}

/// Durable puts from so many putters.
pub(crate) async fn puts(
    contender: &mut impl Contender,
    producers: usize,
    time: Duration,
) -> anyhow::Result<Load> {
    let load = closed(contender.putters(Queue::Kept, producers).await?, time).await?;
    let kept = contender.kept().await?;
    anyhow::ensure!(
        kept == load.done,
        "{} puts were answered, {kept} were kept",
        load.done
    );
    Ok(load)
}

/// Messages handled a second while so many are in flight.
pub(crate) async fn handled(contender: &mut impl Contender, time: Duration) -> anyhow::Result<f64> {
    let progress = Arc::new(Progress {
        handled: AtomicU64::new(0),
        room: Semaphore::new(IN_FLIGHT),
    });
    let mut consumers = contender.consume(&progress).await?;
    let putters = contender.putters(Queue::Handled, IN_FLIGHT).await?;
    let putters = putters.into_iter().map(|inner| Gated {
        inner,
        progress: Arc::clone(&progress),
    });
    let warm = time / 3;
    let load = tokio::spawn(closed(putters.collect(), time + warm));
    tokio::time::sleep(warm).await;
    let (begun, from) = (Instant::now(), progress.count());
    tokio::time::sleep(time).await;
    let (seconds, count) = (begun.elapsed().as_secs_f64(), progress.count() - from);
    let stuck = tokio::time::sleep(STUCK);
    tokio::pin!(stuck);
    let mut load = load;
    let load = tokio::select! {
        load = &mut load => load??,
        // A consumer ends by itself only when it fails.
        ended = consumers.join_next() => {
            let ended = ended.context("no consumer")??;
            return Err(ended.err().unwrap_or_else(|| anyhow::anyhow!("a consumer has ended")));
        }
        () = stuck => anyhow::bail!("nothing is handled any more"),
    };
    let begun = Instant::now();
    while progress.count() < load.done {
        anyhow::ensure!(
            begun.elapsed() < STUCK,
            "{} of {}",
            progress.count(),
            load.done
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    consumers.shutdown().await;
    let handled = contender.handled().await?;
    anyhow::ensure!(
        handled == load.done,
        "{} messages were put, {handled} handled",
        load.done
    );
    #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
    Ok(count as f64 / seconds)
}

/// A putter that waits until there is room in flight.
struct Gated<C> {
    inner: C,
    progress: Arc<Progress>,
}

impl<C: Caller> Caller for Gated<C> {
    async fn call(&mut self) -> anyhow::Result<Called> {
        // Never closed.
        if let Ok(permit) = self.progress.room.acquire().await {
            permit.forget();
        }
        let called = self.inner.call().await?;
        if called != Called::Done {
            self.progress.room.add_permits(1);
        }
        Ok(called)
    }
}

/// The next item of a stream.
async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}
