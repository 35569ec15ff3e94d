//! `demo`: the samples on a host of their own, told step by step.
//!
//! It is a client like any other: it starts the real `oncue serve`, drops files into the plugins
//! directory, and talks HTTP. It believes nothing that it has not seen from the outside.

mod counts;
mod host;
mod orders;
mod report;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::args::Globals;
use crate::args::demo::DemoArgs;
use crate::client::{Client, Request};
use crate::exit::{Exit, Failure};
use crate::render::time::{format_duration, format_number};
use crate::render::values::{at, items, plain};
use crate::render::{Format, Screen};
use crate::serve::signals::Signals;
use crate::{Sample, Samples};
use counts::Sums;
use host::HostProcess;

/// Orders of one unit of work.
const UNIT: u64 = 10;

/// Pauses of the stream of orders, all together: so that queues run empty and triggers fire again.
const PAUSES: Duration = Duration::from_secs(4);

/// Longest pause between two units.
const MAX_PAUSE: Duration = Duration::from_millis(80);

/// How long a plugin may take to be compiled and live.
const PLUGIN_TIME: Duration = Duration::from_secs(180);

/// How long the orders may take to be handled.
const DRAIN_TIME: Duration = Duration::from_secs(300);

/// How often the host is asked whether it has got so far.
const LOOK: Duration = Duration::from_millis(50);

/// The input queues, each with the plugin that serves it.
const INPUTS: [(&str, &str); 2] = [
    ("orders", "route-orders"),
    ("running-total", "running-total"),
];

/// Where dead letters go.
const DEAD_LETTERS: &str = "oncue.dead-letter";

/// Runs the demo.
///
/// # Errors
/// The samples are missing, the host failed, or the sums do not agree.
pub(crate) fn run(
    globals: &Globals,
    args: &DemoArgs,
    samples: Option<Samples>,
) -> Result<(), Failure> {
    let Some(samples) = samples else {
        let message = "this program was built without the samples; run \"cargo demo\"";
        return Err(Failure::new(Exit::Refused, message));
    };
    let screen = Screen::standard(Format::Table, globals.quiet);
    let home = tempfile::Builder::new().prefix("oncue-demo-").tempdir();
    let home = home.context("make a directory for the demo")?;
    let mut demo = Demo::start(screen, home.path(), &args.listen)?;
    demo.define_outputs()?;
    demo.drop_plugins(&samples)?;
    let begun = Instant::now();
    demo.put_orders(args.orders, &samples)?;
    demo.drain()?;
    let took = begun.elapsed();
    let agrees = demo.report(took, args.once)?;
    if args.once {
        demo.host.stop()?;
    } else {
        demo.serve_on()?;
        demo.step("end", "stopping the host")?;
        demo.host.stop_signalled()?;
    }
    if agrees {
        return Ok(());
    }
    // Kept for whoever looks into it.
    let kept = home.keep();
    let message = format!(
        "the sums do not agree; see {}",
        kept.join("host.log").display()
    );
    Err(Failure::new(Exit::Failed, message))
}

/// The demo as far as it has come.
struct Demo {
    screen: Screen,
    host: HostProcess,
    client: Client,
    plugins: PathBuf,
    put: u64,
    pause: Duration,
    expected: BTreeMap<String, u64>,
}

fn since(begun: Instant) -> String {
    format_duration(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX))
}

impl Demo {
    fn start(screen: Screen, home: &Path, listen: &str) -> Result<Self, Failure> {
        let begun = Instant::now();
        let host = HostProcess::start(home, listen)?;
        let client = host.client()?;
        let plugins = home.join("plugins");
        let (pause, expected) = (Duration::ZERO, BTreeMap::new());
        let demo = Self {
            screen,
            host,
            client,
            plugins,
            put: 0,
            pause,
            expected,
        };
        let url = demo.host.url();
        demo.step(
            "host",
            &format!(
                "ready at {url} after {}, in {}",
                since(begun),
                home.display()
            ),
        )?;
        Ok(demo)
    }

    /// One line of the story, seen at once.
    fn step(&self, what: &str, text: &str) -> Result<(), Failure> {
        self.screen.text(&format!("{what:<9} {text}"))?;
        self.screen.flush()
    }

    /// The handlers put to these queues. Nobody handles them, so that they can be counted.
    fn define_outputs(&self) -> Result<(), Failure> {
        let outputs = orders::KINDS.map(|(_, queue)| queue);
        let attributes = json!({ "trigger": "none" });
        for queue in outputs.into_iter().chain(["totals"]) {
            self.client
                .ask(Request::put(&["queues", queue], &attributes))?;
        }
        self.step(
            "queues",
            &format!("defined {} and totals for the results", outputs.join(", ")),
        )
    }

    fn drop_plugins(&self, samples: &Samples) -> Result<(), Failure> {
        let begun = Instant::now();
        for ((_, name), sample) in INPUTS
            .iter()
            .zip([&samples.route_orders, &samples.running_total])
        {
            copy_sample(sample, &self.plugins, name)?;
        }
        for (queue, name) in INPUTS {
            let digest = self.wait_for_plugin(name, |digest| !digest.is_empty())?;
            let text = format!("{name} {} serves queue {queue}", short(&digest));
            self.step(
                "plugin",
                &format!("{text} ({} after the drop)", since(begun)),
            )?;
        }
        Ok(())
    }

    /// Waits until a plugin is live in the wanted version; answers its digest.
    fn wait_for_plugin(
        &self,
        name: &str,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<String, Failure> {
        let begun = Instant::now();
        loop {
            let plugins = self.client.list("plugins", &[], None)?;
            let plugin = items(&plugins)
                .iter()
                .find(|plugin| plain(at(plugin, "name")) == name);
            let plugin = plugin.unwrap_or(&Value::Null);
            let digest = plain(at(plugin, "digest"));
            let state = plain(at(plugin, "state"));
            if state == "ready" && is_wanted(&digest) {
                return Ok(digest);
            }
            if state == "quarantined" || begun.elapsed() > PLUGIN_TIME {
                let reason = plain(at(plugin, "reason"));
                let message = format!("plugin \"{name}\" is not live: {state} {reason}");
                return Err(Failure::new(Exit::Failed, message));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Puts all orders, and swaps a plugin while they are handled.
    fn put_orders(&mut self, count: u64, samples: &Samples) -> Result<(), Failure> {
        let (first, second) = (count / 2, count / 2 + count / 4);
        let units = u32::try_from(count.div_ceil(UNIT)).unwrap_or(u32::MAX);
        self.pause = MAX_PAUSE.min(PAUSES / units);
        self.put_range(0, 1)?;
        self.show_first_trigger()?;
        self.put_range(1, first)?;
        self.step(
            "put",
            &format!("{} orders, each to both queues", format_number(first)),
        )?;
        let old = self.wait_for_plugin("route-orders", |digest| !digest.is_empty())?;
        let begun = Instant::now();
        swap(&samples.route_orders, &self.plugins)?;
        // These come while the new version is compiled: the old one handles them.
        self.put_range(first, second)?;
        let new = self.wait_for_plugin("route-orders", |digest| digest != old)?;
        let (old, new) = (short(&old), short(&new));
        let text = format!(
            "route-orders {old} -> {new} in {}, under load",
            since(begun)
        );
        self.step("swap", &text)?;
        self.put_range(second, count)?;
        self.step(
            "put",
            &format!("{} more orders", format_number(count - first)),
        )
    }

    fn put_range(&mut self, from: u64, to: u64) -> Result<(), Failure> {
        let mut next = from;
        while next < to {
            let end = to.min(next + UNIT);
            let mut puts = Vec::new();
            for number in next..end {
                let order = orders::order(number);
                puts.extend(orders::puts(&order));
                if let Some((kind, amount)) = order.valid {
                    *self.expected.entry(kind.to_owned()).or_default() += amount;
                }
            }
            let request = Request::post(&["units"]).json(&json!({ "puts": puts }));
            let answer = self.client.ask(request)?;
            // Only what was answered with an id counts as put.
            let ids = items(&answer)
                .iter()
                .filter(|put| at(put, "id").is_string());
            self.put += ids.count() as u64;
            next = end;
            std::thread::sleep(self.pause);
        }
        Ok(())
    }

    /// The first order, from the put to the handler's end.
    fn show_first_trigger(&self) -> Result<(), Failure> {
        self.step("put", "one order; nothing was running:")?;
        self.drain()?;
        for (queue, _) in INPUTS {
            if let Some(task) = counts::tasks(&self.client, queue)?.last() {
                self.step("trigger", &report::first_trigger(queue, task))?;
            }
        }
        Ok(())
    }

    fn depth(&self, queue: &str) -> Result<u64, Failure> {
        let view = self.client.ask(Request::get(&["queues", queue]))?;
        Ok(at(&view, "depth").as_u64().unwrap_or_default())
    }

    /// Waits until both input queues are empty and nothing runs on them.
    fn drain(&self) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            let mut left = 0;
            for (queue, _) in INPUTS {
                let view = self.client.ask(Request::get(&["queues", queue]))?;
                let number = |name: &str| at(&view, name).as_u64().unwrap_or_default();
                left += number("depth") + number("running");
            }
            self.screen
                .progress(|| format!("waiting for {left} messages ..."));
            if left == 0 || begun.elapsed() > DRAIN_TIME {
                self.screen.end_progress();
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Serves on until the host or this process is told to end.
    fn serve_on(&mut self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("wait for signals")?;
        runtime.block_on(async {
            let mut signals = Signals::catch().context("catch signals")?;
            while !self.host.has_ended() {
                let look = tokio::time::sleep(LOOK * 4);
                tokio::select! {
                    _ = signals.next(|| {}) => break,
                    () = look => {}
                }
            }
            Ok(())
        })
    }
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// Copies a plugin as an operator would: the manifest first, each file whole at once.
fn copy_sample(sample: &Sample, plugins: &Path, name: &str) -> Result<(), Failure> {
    if let Some(manifest) = &sample.manifest {
        let text = read(manifest)?;
        place(&text, &plugins.join(format!("{name}.toml")))?;
    }
    place(
        &read(&sample.component)?,
        &plugins.join(format!("{name}.wasm")),
    )
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    Ok(fs::read(path).with_context(|| format!("read sample \"{}\"", path.display()))?)
}

/// Writes a file beside the plugins directory and moves it in.
fn place(bytes: &[u8], path: &Path) -> Result<(), Failure> {
    let outside = path
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(outside).context("make a file")?;
    file.write_all(bytes).context("write a file")?;
    let placed = file
        .persist(path)
        .with_context(|| format!("place \"{}\"", path.display()));
    placed?;
    Ok(())
}

/// Puts another version over `route-orders`: the same code with a note in it, so another digest.
fn swap(sample: &Sample, plugins: &Path) -> Result<(), Failure> {
    let mut component = read(&sample.component)?;
    component.extend_from_slice(&custom_section("oncue-demo", b"version 2"));
    place(&component, &plugins.join("route-orders.wasm"))
}

/// A custom section: it means nothing to anybody, and is allowed at the end of every component.
fn custom_section(name: &str, content: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| u8::try_from(bytes).expect("short enough for one byte of LEB128");
    assert!(
        name.len() + content.len() < 127,
        "longer sections need a longer length"
    );
    let mut section = vec![
        0,
        length(1 + name.len() + content.len()),
        length(name.len()),
    ];
    section.extend_from_slice(name.as_bytes());
    section.extend_from_slice(content);
    section
}
