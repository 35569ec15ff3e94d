//! Bad files over good ones, and beside them.

use super::{
    MANIFEST, digest, fixture, handles, host_with_version_1, plugin_view, quarantined, serves,
    version,
};
use crate::host::{Home, oncue};
use crate::wait::until;
use crate::work::sample;

#[test]
fn a61_a_bad_file_never_replaces_a_good_version() {
    let (home, host) = host_with_version_1();
    let whole = version(2);
    let read = |name: &str| std::fs::read(sample(name).component).unwrap();
    let limit = |line: &str| format!("[process]\n{line}\n{MANIFEST}").into_bytes();
    let bad: [(&str, Vec<u8>, &str); 11] = [
        ("p.wasm", b"this is text".to_vec(), "p.wasm"),
        ("p.wasm", whole[..whole.len() / 2].to_vec(), "p.wasm"),
        ("p.wasm", fixture("core-module.wasm"), "p.wasm"),
        (
            "p.wasm",
            fixture("other-version.wasm"),
            "oncue:handler/types@0.9.0",
        ),
        ("p.wasm", read("wrong-world"), "acme:weather/forecast@1.0.0"),
        ("p.wasm", read("unknown-import"), "acme:secret/vault@1.0.0"),
        ("p.toml", b"[process\n".to_vec(), "p.toml:1"),
        ("p.toml", limit("fuell = \"1 G\""), "fuell"),
        ("p.toml", limit("fuel = \"lots\""), "lots"),
        ("p.toml", limit("memory = \"9000 TiB\""), "memory"),
        (
            "p.toml",
            limit("table-elements = 4000000000"),
            "table-elements",
        ),
    ];
    for (file, content, word) in bad {
        home.write(file, content);
        let mut reason = String::new();
        until(&format!("a reason with {word:?}"), || {
            let view = plugin_view(&host, "p");
            reason = view["reason"].as_str().unwrap_or_default().to_owned();
            view["state"] == "quarantined" && reason.contains(word)
        });
        assert!(reason.contains(file), "no {file} in {reason}");
        assert_eq!(
            plugin_view(&host, "p")["digest"],
            digest(&version(1)).as_str()
        );
        handles(&host, "p", &version(1));
        let (code, list, _) = oncue(&host, &["plugin", "list"]);
        assert_eq!(code, 0);
        let line = list
            .lines()
            .find(|line| line.starts_with("p "))
            .unwrap_or_default();
        // Of several faults the list has the first.
        let first = reason.split("; also ").next().unwrap_or_default();
        assert!(
            line.contains("quarantined, serving on") && line.contains(first),
            "{list}"
        );
        // The good file again: nothing is left of the bad one.
        home.write("p.toml", MANIFEST);
        home.write("p.wasm", version(1));
        serves(&host, "p", &version(1));
    }
}

#[test]
fn a61_a_good_version_serves_on_after_a_restart_with_the_bad_file_in_place() {
    let (home, host) = host_with_version_1();
    home.write("p.wasm", b"this is text");
    quarantined(&host, "p");
    assert_eq!(host.stop(), 0);
    let host = home.start();
    let reason = quarantined(&host, "p");
    assert!(reason.contains("\"p.wasm\""), "{reason}");
    until("the kept version", || {
        plugin_view(&host, "p")["digest"] == digest(&version(1)).as_str()
    });
    handles(&host, "p", &version(1));
}

#[test]
fn a66_of_two_plugins_that_claim_a_queue_the_bound_one_goes_on() {
    let (home, host) = host_with_version_1();
    home.write("rival.toml", MANIFEST);
    home.write("rival.wasm", version(2));
    let reason = quarantined(&host, "rival");
    assert!(
        reason.contains("\"p.") && reason.contains("\"rival."),
        "{reason}"
    );
    assert!(
        reason.contains("queue \"p\"") && reason.contains("[queue-claimed]"),
        "{reason}"
    );
    assert_eq!(plugin_view(&host, "p")["state"], "ready");
    handles(&host, "p", &version(1));
    // With the bound one gone the other has the queue, with no further change to its files.
    home.remove("p.toml");
    home.remove("p.wasm");
    until("the rival", || {
        plugin_view(&host, "rival")["state"] == "ready"
    });
    handles(&host, "p", &version(2));
}

#[test]
fn a66_of_two_plugins_that_claim_a_queue_at_the_start_neither_has_it() {
    let home = Home::new();
    for (name, number) in [("one", 1), ("two", 2)] {
        home.write(&format!("{name}.toml"), MANIFEST);
        home.write(&format!("{name}.wasm"), version(number));
    }
    let host = home.start();
    host.define_plain("echo.out");
    for name in ["one", "two"] {
        let reason = quarantined(&host, name);
        assert!(
            reason.contains("\"one.") && reason.contains("\"two."),
            "{reason}"
        );
        assert!(reason.contains("queue \"p\""), "{reason}");
    }
    assert!(host.records("p").is_empty() || host.get("/v1/queues/p").status == 404);
    home.remove("two.toml");
    home.remove("two.wasm");
    host.wait_for_plugin("one", "ready");
    handles(&host, "p", &version(1));
}
