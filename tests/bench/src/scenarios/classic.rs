//! Triggers against the classic architecture: the same store, runtime, rule and load, with the
//! detour over an initiation queue and a separate monitor, and without. See [`crate::classic`] for
//! how the classic design is built here.

use std::collections::HashMap;
use std::time::Duration;

use super::Scenario;
use crate::classic::{Host, Initiation, Monitor, Shape, closed, open, outage};
use crate::host;
use crate::run::{Bound, Run};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "classic",
    what: "triggers against trigger messages, an initiation queue and a monitor",
    run,
};

/// Messages in flight where throughput is measured.
const IN_FLIGHT: usize = 256;

/// Rates of the fixed loads, as parts of what the classic contender could do at most in this round.
const RATES: [(&str, f64); 3] = [("below", 0.5), ("at", 1.0), ("beyond", 1.5)];

/// The load during an outage.
const OUTAGE: f64 = 0.5;

/// Contenders, the classic one first: the others are loaded at rates that it sets.
const CONTENDERS: [Initiation; 3] = [
    Initiation::SameStore,
    Initiation::OwnMemory,
    Initiation::None,
];

fn run(run: &mut Run) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(all(run))
}

async fn all(run: &mut Run) -> anyhow::Result<()> {
    notes(run);
    let sandbox = host::sandbox(1000)?;
    let echo = host::load_echo(&sandbox)?;
    // What the classic contender could do, by shape; the first round sets the rates of all.
    let mut saturation = HashMap::new();
    for round in 0..run.rounds() {
        for shape in [Shape::Busy, Shape::Many, Shape::Every] {
            let mut contenders = Vec::new();
            let directory = host::directory()?;
            for initiation in CONTENDERS {
                // On the busy queue the detour is taken a few times a second, if at all.
                if shape == Shape::Busy && initiation == Initiation::OwnMemory {
                    continue;
                }
                let host = Host::start(directory.path(), &sandbox, &echo, shape, initiation);
                contenders.push(Contender::new(shape, initiation, host.await?)?);
            }
            let turn = round % contenders.len();
            contenders.rotate_left(turn);
            for contender in &mut contenders {
                let rate = contender.throughput(run).await?;
                if contender.initiation == Initiation::SameStore {
                    saturation.entry(shape).or_insert(rate);
                }
            }
            let rate = saturation.get(&shape).copied().unwrap_or(1.0);
            if shape != Shape::Busy {
                for contender in &mut contenders {
                    contender.latencies(run, rate).await?;
                }
            }
            for contender in contenders {
                contender.end().await?;
            }
        }
    }
    ratios(run);
    for shape in ["many", "every"] {
        let figure = format!("{shape}.oncue/{shape}.classic");
        run.verdict(&format!("{shape}-throughput"), &figure, Bound::AtLeast(3.0));
        let figure = format!("{shape}.oncue.beyond.p99/{shape}.classic.beyond.p99");
        run.verdict(&format!("{shape}-p99"), &figure, Bound::AtMost(1.0 / 3.0));
    }
    Ok(())
}

fn notes(run: &mut Run) {
    run.note("oncue", "the manager starts the task");
    run.note(
        "classic",
        "trigger message to an initiation queue in the same store, not persistent; \
        a monitor process gets it over HTTP and has the task started",
    );
    run.note(
        "classic-memory",
        "the same, the initiation queue in a store without a disk",
    );
    run.note("busy", "one queue, trigger first, drained by one task");
    run.note("many", "256 queues, trigger first");
    run.note(
        "every",
        "one queue, one start a message, at most 64 at a time",
    );
}

fn ratios(run: &mut Run) {
    for shape in [Shape::Busy, Shape::Many, Shape::Every] {
        for classic in ["classic", "classic-memory"] {
            let shape = shape.name();
            run.ratio(&format!("{shape}.oncue"), &format!("{shape}.{classic}"));
            for (rate, _) in RATES {
                let oncue = format!("{shape}.oncue.{rate}.p99");
                run.ratio(&oncue, &format!("{shape}.{classic}.{rate}.p99"));
            }
        }
    }
}

/// A host under one load after the other.
struct Contender {
    shape: Shape,
    initiation: Initiation,
    host: Host,
    monitor: Option<Monitor>,
    put: u64,
}

impl Contender {
    fn new(shape: Shape, initiation: Initiation, host: Host) -> anyhow::Result<Self> {
        Ok(Self {
            shape,
            initiation,
            monitor: host.monitor()?,
            host,
            put: 0,
        })
    }

    fn name(&self) -> String {
        format!("{}.{}", self.shape.name(), self.initiation.name())
    }

    async fn throughput(&mut self, run: &mut Run) -> anyhow::Result<f64> {
        let warm = run.size(Duration::from_millis(500), Duration::from_millis(150));
        let time = run.size(Duration::from_secs(2), Duration::from_millis(400));
        let (rate, put) = closed(&self.host, IN_FLIGHT, warm, time).await?;
        self.put += put;
        run.sample(&self.name(), rate, "messages/s");
        Ok(rate)
    }

    async fn latencies(&mut self, run: &mut Run, saturation: f64) -> anyhow::Result<()> {
        let time = run.size(Duration::from_secs(3), Duration::from_millis(400));
        for (rate, part) in RATES {
            let seen = open(&self.host, saturation * part, time).await?;
            self.put += seen.put;
            let name = format!("{}.{rate}", self.name());
            run.sample(&format!("{name}.rate"), saturation * part, "messages/s");
            run.sample(&format!("{name}.p50"), seen.p50, "ms");
            run.sample(&format!("{name}.p99"), seen.p99, "ms");
        }
        if self.shape == Shape::Many && self.initiation != Initiation::OwnMemory {
            self.outage(run, saturation * OUTAGE).await?;
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of some thousands")]
    async fn outage(&mut self, run: &mut Run, rate: f64) -> anyhow::Result<()> {
        let time = run.size(Duration::from_secs(3), Duration::from_millis(400));
        let seen = outage(&self.host, &mut self.monitor, rate, time).await?;
        self.put += seen.open.put;
        let name = format!("{}.outage", self.name());
        run.sample(&format!("{name}.handled"), seen.handled as f64, "messages");
        run.sample(
            &format!("{name}.piled-up"),
            seen.piled_up as f64,
            "trigger messages",
        );
        run.sample(&format!("{name}.behind"), seen.behind as f64, "messages");
        run.sample(&format!("{name}.recovery"), seen.recovery, "ms");
        run.sample(&format!("{name}.p99"), seen.open.p99, "ms");
        run.sample(&format!("{name}.max"), seen.open.max, "ms");
        Ok(())
    }

    /// All that was put was handled, once.
    async fn end(mut self) -> anyhow::Result<()> {
        if let Some(monitor) = &mut self.monitor {
            monitor.check()?;
        }
        self.host.check(self.put).await?;
        // Before the host: a monitor would see its connections break.
        let monitor = self.monitor.take();
        tokio::task::spawn_blocking(move || drop(monitor)).await?;
        self.host.end().await;
        Ok(())
    }
}
