//! Plugins of one file: packed, dropped, with a manifest beside and without.

use std::fs;

use super::modules::check;
use super::{handles, plugin_view, version};
use crate::host::{Home, Host};
use crate::wait::until;

const INSIDE: &str =
    "[process.grants]\nput = [\"echo.out\"]\n\n[queue.inside]\ntrigger = \"first\"\n";
const BESIDE: &str =
    "[process.grants]\nput = [\"echo.out\"]\n\n[queue.beside]\ntrigger = \"first\"\n";

/// Waits until the plugin `p` is ready and serves this queue; answers what it is told of it.
fn serves_queue(host: &Host, queue: &str) -> String {
    let wanted = serde_json::json!([queue]);
    let mut facts = String::new();
    until(&format!("p to serve {queue}"), || {
        let view = plugin_view(host, "p");
        facts = view["facts"].to_string();
        view["state"] == "ready" && view["queues"] == wanted
    });
    facts
}

#[test]
fn the_manifest_inside_serves_and_the_one_beside_wins() {
    let home = Home::new();
    let folder = home.path();
    fs::write(folder.join("echo.wasm"), version(1)).expect("written");
    fs::write(folder.join("inside.toml"), INSIDE).expect("written");
    let line = "plugin pack echo.wasm --manifest inside.toml -O p.wasm";
    check(
        folder,
        line,
        0,
        &["plugin \"p\"", "manifest of \"inside.toml\""],
    );
    check(
        folder,
        "plugin check p.wasm",
        0,
        &["embedded", "inside", "echo.out"],
    );
    check(
        folder,
        "plugin inspect p.wasm",
        0,
        &["embedded", "put [echo.out]"],
    );
    let packed = fs::read(folder.join("p.wasm")).expect("it reads");

    let host = home.start();
    host.define_plain("echo.out");
    home.write("p.wasm", &packed);
    assert!(serves_queue(&host, "inside").contains("embedded in p.wasm"));
    handles(&host, "inside", &packed);

    home.write("p.toml", BESIDE);
    assert!(serves_queue(&host, "beside").contains("p.toml, which wins over"));
    handles(&host, "beside", &packed);
    check(
        folder,
        "plugin check plugins",
        0,
        &["warning", "\"p.toml\" beside it wins"],
    );

    home.remove("p.toml");
    serves_queue(&host, "inside");
    handles(&host, "inside", &packed);
    assert_eq!(host.stop(), 0);
    let host = home.start();
    serves_queue(&host, "inside");
    handles(&host, "inside", &packed);

    // One that was not packed, in its place.
    home.write("p.wasm", version(2));
    assert!(!serves_queue(&host, "p").contains("manifest"));
}

#[test]
fn a61_faults_of_a_packed_manifest_are_named_at_its_lines() {
    let home = Home::new();
    let folder = home.path();
    fs::write(folder.join("p.wasm"), version(1)).expect("written");
    let bad = "[process]\nfuell = 1\nmemory = \"lots\"\n";
    fs::write(folder.join("p.toml"), bad).expect("written");
    let faults = [
        "p.toml:2:1: \"process.fuell\"",
        "p.toml:3:1: \"process.memory\"",
    ];
    check(
        folder,
        "plugin pack p.wasm",
        4,
        &["was not packed", faults[0], faults[1]],
    );
    check(
        folder,
        "plugin pack p.wasm --manifest none.toml",
        3,
        &["none.toml"],
    );
    fs::write(folder.join("good.toml"), "[process]\n").expect("written");
    check(
        folder,
        "plugin pack p.wasm --manifest good.toml -O good.toml",
        4,
        &["good.toml", "is what it is made of"],
    );
    let kept = fs::read(folder.join("good.toml")).expect("it reads");
    assert_eq!(kept, b"[process]\n");
    // Nothing was written: it is as it was.
    assert_eq!(
        fs::read(folder.join("p.wasm")).expect("it reads"),
        version(1)
    );
    // By another tool, past the check.
    let section = [&[14][..], b"oncue:manifest", bad.as_bytes()].concat();
    let length = u8::try_from(section.len()).expect("a short one");
    let packed = [&version(1)[..], &[0, length], &section].concat();
    home.write("q.wasm", packed);
    let faults = [
        "manifest in q.wasm:2:1",
        "manifest in q.wasm:3:1",
        "[invalid-manifest]",
    ];
    check(folder, "plugin check plugins", 4, &faults);
    let host = home.start();
    let view = host.wait_for_plugin("q", "quarantined");
    let reason = view["reason"].to_string();
    assert!(
        faults.iter().all(|fault| reason.contains(fault)),
        "{reason}"
    );
}
