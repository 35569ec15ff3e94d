//! A new version of a plugin under load: what the swap does to messages that come meanwhile, and
//! whether any is lost. In a full run also a thousand versions, and the memory they leave behind.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Scenario;
use crate::child::{Client, Host, drop_echo};
use crate::host;
use crate::run::{Bound, Run};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "reload",
    what: "a new version under load: the spike of put-to-handled, nothing lost, memory",
    run,
};

/// Messages before a swap, and how long messages go on after it.
const STEADY: usize = 500;
const AFTER: Duration = Duration::from_millis(300);

/// Versions of the long run, and those after which its memory is first looked at.
const VERSIONS: u32 = 1_000;
const WARM: u32 = 100;

fn run(run: &mut Run) -> anyhow::Result<()> {
    run.note(
        "load",
        "one message at a time over HTTP, its effect waited for; durable",
    );
    for _ in 0..run.rounds() {
        let directory = host::directory()?;
        swap(run, directory.path())?;
    }
    run.ratio("swap.p99", "steady.p99");
    if !run.quick {
        let directory = host::directory()?;
        many(run, directory.path())?;
        run.verdict("memory", "growth", Bound::AtMost(1.1));
    }
    Ok(())
}

/// Messages that were put and taken effect one after another.
struct Load {
    client: Client,
    handled: u64,
}

impl Load {
    fn start(host: &Host) -> anyhow::Result<Self> {
        let mut client = host.client()?;
        client.serves("echo")?;
        client.json("PUT", "/v1/queues/echo.out", &json!({"trigger": "none"}))?;
        Ok(Self { client, handled: 0 })
    }

    /// Milliseconds from the put of a message until its effect is there.
    fn one(&mut self) -> anyhow::Result<f64> {
        let begun = Instant::now();
        self.client
            .send("POST", "/v1/queues/echo/messages", "text/plain", b"message")?;
        self.handled += 1;
        while self.client.number("/v1/queues/echo.out", "depth")? < self.handled {
            anyhow::ensure!(begun.elapsed() < host::END, "a message has no effect");
        }
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    }

    fn digest(&mut self) -> anyhow::Result<Value> {
        let mut plugin = self.client.json("GET", "/v1/plugins/echo", &Value::Null)?;
        Ok(plugin["digest"].take())
    }
}

fn swap(run: &mut Run, home: &Path) -> anyhow::Result<()> {
    drop_echo(home, 0)?;
    let host = Host::start(home)?;
    let mut load = Load::start(&host)?;
    let steady = (0..STEADY)
        .map(|_| load.one())
        .collect::<anyhow::Result<Vec<_>>>()?;
    let before = load.digest()?;
    drop_echo(home, 1)?;
    let (begun, mut swapped, mut around) = (Instant::now(), None, Vec::new());
    loop {
        around.push(load.one()?);
        match swapped {
            None if load.digest()? != before => swapped = Some(Instant::now()),
            Some(at) if at.elapsed() > AFTER => break,
            _ => {}
        }
    }
    let took = swapped.map_or(f64::NAN, |at| (at - begun).as_secs_f64() * 1e3);
    run.sample("swap.took", took, "ms");
    for (name, mut values) in [("steady", steady), ("swap", around)] {
        values.sort_by(f64::total_cmp);
        let p99 = values.get(values.len() * 99 / 100).copied();
        run.sample(&format!("{name}.p99"), p99.unwrap_or(f64::NAN), "ms");
        run.sample(
            &format!("{name}.max"),
            values.last().copied().unwrap_or(f64::NAN),
            "ms",
        );
    }
    let left = load.client.number("/v1/status", "depth")?;
    #[expect(clippy::cast_precision_loss, reason = "a count of messages")]
    let lost = (load.handled as f64) - (left as f64);
    run.sample("lost", lost, "messages");
    host.stop()
}

/// Many versions, each serving a message; how much more memory the last one finds taken.
fn many(run: &mut Run, home: &Path) -> anyhow::Result<()> {
    drop_echo(home, 0)?;
    let host = Host::start(home)?;
    let mut load = Load::start(&host)?;
    let mut warm = f64::NAN;
    for version in 1..=VERSIONS {
        let before = load.digest()?;
        drop_echo(home, version)?;
        let begun = Instant::now();
        while load.digest()? == before {
            anyhow::ensure!(
                begun.elapsed() < 4 * host::END,
                "version {version} is not taken"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        load.one()?;
        if version == WARM {
            warm = host.resident()?;
        }
    }
    run.sample("growth", host.resident()? / warm, "ratio");
    host.stop()
}
