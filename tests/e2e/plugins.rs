//! The plugins directory of a real host: files come, change and go, and the right version serves.

mod bad_files;
mod cache;
mod command_line;
mod files;
mod guarded;
mod holds;
mod modules;
mod packed;
mod reloads;
mod rollback;

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::host::{Home, Host};
use crate::wait::until;
use crate::work::{outcome_of, sample};

/// The manifest of a plugin that serves the queue `p` and may put to `out`'s queue.
const MANIFEST: &str = "[process.grants]\nput = [\"echo.out\"]\n\n[queue.p]\ntrigger = \"first\"\n";

/// The sample `echo` with a custom section: as good as the sample, of another digest.
fn version(number: u8) -> Vec<u8> {
    let mut bytes = std::fs::read(sample("echo").component).expect("the sample is read");
    bytes.extend([0, 9, 7]);
    bytes.extend(*b"version");
    bytes.push(number);
    bytes
}

/// The digest by which a host knows a component.
fn digest(component: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(component) {
        write!(text, "{byte:02x}").expect("a string takes it");
    }
    text
}

/// A home with version 1 of the plugin `p`, and its host, ready.
fn host_with_version_1() -> (Home, Host) {
    let home = Home::new();
    home.write("p.toml", MANIFEST);
    home.write("p.wasm", version(1));
    let host = home.start();
    host.define_plain("echo.out");
    serves(&host, "p", &version(1));
    (home, host)
}

/// Waits until a plugin is ready with this component, and demands that it handles a message.
fn serves(host: &Host, plugin: &str, component: &[u8]) {
    let wanted = digest(component);
    until(&format!("{plugin} to be ready with {wanted}"), || {
        let view = plugin_view(host, plugin);
        view["state"] == "ready" && view["digest"] == wanted.as_str()
    });
    handles(host, plugin, component);
}

/// Demands that the next message is handled, by this component.
fn handles(host: &Host, queue: &str, component: &[u8]) {
    let id = host.put(queue, b"hello");
    let record = host.record_of(queue, &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
    assert_eq!(record["digest"], digest(component).as_str(), "{record}");
}

/// What the host says of a plugin; null when it knows none.
fn plugin_view(host: &Host, plugin: &str) -> Value {
    let answer = host.get(&format!("/v1/plugins/{plugin}"));
    if answer.status == 404 {
        Value::Null
    } else {
        answer.expect(200).json()
    }
}

/// Waits until a plugin is quarantined; answers the reason.
fn quarantined(host: &Host, plugin: &str) -> String {
    let view = host.wait_for_plugin(plugin, "quarantined");
    view["reason"].as_str().expect("a reason").to_owned()
}

/// A file of `tests/fixtures`.
fn fixture(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    std::fs::read(path).expect("the fixture is read")
}
