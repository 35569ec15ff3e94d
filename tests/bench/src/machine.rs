//! What must be known of a machine and a build to judge a figure later.

use std::process::Command;

use serde_json::{Value, json};

/// Facts beside the figures. What the system does not tell is null.
pub(crate) fn facts(load_before: &str) -> Value {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let time = std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |time| time.as_secs());
    json!({
        "cores": cores,
        "cpu": field("/proc/cpuinfo", "model name"),
        "memory": field("/proc/meminfo", "MemTotal"),
        "kernel": read("/proc/sys/kernel/osrelease"),
        "load-before": load_before,
        "load-after": load(),
        "revision": revision(),
        "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
        "arguments": std::env::args().skip(1).collect::<Vec<_>>(),
        "unix-time": time,
    })
}

/// Mean number of threads that wanted a processor, over one, five and fifteen minutes.
pub(crate) fn load() -> String {
    let text = read("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}

fn read(file: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    Some(text.trim().to_owned())
}

/// The first value of that name in a list of `name : value` lines.
fn field(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The revision that is checked out where the bench runs, marked when files differ from it.
fn revision() -> Option<String> {
    let arguments = ["describe", "--always", "--dirty", "--abbrev=12"];
    let answer = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    answer.status.success().then(|| text.trim().to_owned())
}
