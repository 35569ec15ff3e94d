//! Load: callers that call again and again, each waiting for its answer, and what they saw.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::http::{self, Client};

/// How long a caller waits that was refused for want of room.
const AGAIN: Duration = Duration::from_millis(2);

/// How one call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// It did what it should.
    Done,
    /// The other side had no room; it is tried again.
    Refused,
    /// There is nothing more to do.
    Over,
}

/// Does one thing at a time.
pub(crate) trait Caller: Send + 'static {
    /// Does it once.
    fn call(&mut self) -> impl Future<Output = anyhow::Result<Called>> + Send;
}

/// What callers did.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// Calls that were done.
    pub(crate) done: u64,
    /// Calls that met no room.
    pub(crate) refused: u64,
    /// From the first call to the last answer.
    pub(crate) seconds: f64,
    /// Microseconds of each call done.
    latencies: Vec<u32>,
}

impl Load {
    /// Calls done a second.
    #[expect(clippy::cast_precision_loss, reason = "counts of millions at most")]
    pub(crate) fn rate(&self) -> f64 {
        self.done as f64 / self.seconds
    }

    /// Milliseconds that this part of the calls did not exceed.
    pub(crate) fn quantile(&mut self, part: f64) -> f64 {
        self.latencies.sort_unstable();
        quantile(&self.latencies, part)
    }

    fn add(&mut self, other: Self) {
        self.done += other.done;
        self.refused += other.refused;
        self.latencies.extend(other.latencies);
    }
}

/// Milliseconds below which this part of sorted microseconds lies.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places in a list of millions at most"
)]
pub(crate) fn quantile(sorted: &[u32], part: f64) -> f64 {
    let place = (sorted.len() as f64 * part) as usize;
    let place = place.min(sorted.len().saturating_sub(1));
    sorted
        .get(place)
        .map_or(f64::NAN, |micros| f64::from(*micros) / 1e3)
}

/// Microseconds of a duration, as the lists of latencies keep them.
pub(crate) fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

/// All callers at once for `time`: each calls until it is over, and then finishes its call.
pub(crate) async fn closed<C: Caller>(callers: Vec<C>, time: Duration) -> anyhow::Result<Load> {
    let start = Instant::now();
    let end = start + time;
    let running: Vec<_> = callers
        .into_iter()
        .map(|caller| tokio::spawn(one(caller, end)))
        .collect();
    let mut load = Load::default();
    for caller in running {
        load.add(caller.await??);
    }
    load.seconds = start.elapsed().as_secs_f64();
    Ok(load)
}

async fn one<C: Caller>(mut caller: C, end: Instant) -> anyhow::Result<Load> {
    let mut load = Load::default();
    let mut begun = Instant::now();
    while begun < end {
        match caller.call().await? {
            Called::Done => {
                let now = Instant::now();
                load.done += 1;
                load.latencies.push(micros(now - begun));
                begun = now;
            }
            Called::Refused => {
                load.refused += 1;
                tokio::time::sleep(AGAIN).await;
                begun = Instant::now();
            }
            Called::Over => break,
        }
    }
    Ok(load)
}

/// Puts one message over HTTP.
pub(crate) struct HttpPut {
    client: Client,
    request: Vec<u8>,
}

impl HttpPut {
    pub(crate) async fn connect(
        address: SocketAddr,
        queue: &str,
        body: &[u8],
    ) -> anyhow::Result<Self> {
        let path = format!("/v1/queues/{queue}/messages");
        Ok(Self {
            client: Client::connect(address).await?,
            request: http::request("POST", &path, "application/octet-stream", body),
        })
    }
}

impl Caller for HttpPut {
    async fn call(&mut self) -> anyhow::Result<Called> {
        match self.client.send(&self.request).await? {
            201 => Ok(Called::Done),
            429 => Ok(Called::Refused),
            status => {
                let text = String::from_utf8_lossy(self.client.body());
                anyhow::bail!("a put was answered {status}: {text}")
            }
        }
    }
}
