//! Plugins of one file: a manifest inside of the component, and one beside it.

use super::*;

/// Drops files, does all trials, and demands what the plugin `orders` serves then, the queues that
/// it has, and what is said of its manifest.
fn check(host: &mut Host, files: &[(&str, &str)], state: &str, queues: &[&str], said: &str) {
    host.files(files);
    host.work(&[]);
    host.check("orders", state);
    assert_eq!(host.queues("orders"), queues, "{files:?}");
    let facts = &host.told[&name("orders")].facts;
    let facts: Vec<&str> = facts
        .iter()
        .filter(|(fact, _)| fact == "manifest")
        .map(|(_, text)| text.as_str())
        .collect();
    assert_eq!(facts.join(" and "), said, "{files:?}");
}

const ONE: &str = "one|[queue.inbox]\n[queue.more]\n";
const TWO: &str = "two|[queue.other]\n";
const INSIDE: &str = "embedded in orders.wasm";
const BOTH: &str = "orders.toml, which wins over the one embedded in orders.wasm";

#[test]
fn the_manifest_inside_holds_until_one_lies_beside() {
    let mut host = Host::new();
    let ready = &format!("ready {ONE}");
    check(
        &mut host,
        &[("orders.wasm", ONE)],
        ready,
        &["inbox", "more"],
        INSIDE,
    );
    check(
        &mut host,
        &[("orders.toml", "[queue.beside]\n")],
        ready,
        &["beside"],
        BOTH,
    );
    check(
        &mut host,
        &[("orders.toml", "-")],
        ready,
        &["inbox", "more"],
        INSIDE,
    );
    let ready = &format!("ready {TWO}");
    check(
        &mut host,
        &[("orders.wasm", TWO)],
        ready,
        &["other"],
        INSIDE,
    );
    check(
        &mut host,
        &[("orders.wasm", "plain")],
        "ready plain",
        &["orders"],
        "",
    );
    check(
        &mut host,
        &[("orders.wasm", ONE)],
        &format!("ready {ONE}"),
        &["inbox", "more"],
        INSIDE,
    );
    host.files(&[("orders.wasm", "-")]);
    host.check("orders", "none");
}

#[test]
fn both_dropped_at_once_and_a_restart_come_to_the_same() {
    let files = [("orders.wasm", ONE), ("orders.toml", "[queue.beside]\n")];
    let ready = &format!("ready {ONE}");
    let mut host = Host::new();
    check(&mut host, &files, ready, &["beside"], BOTH);
    let mut host = Host::after_restart(host.records);
    check(&mut host, &files, ready, &["beside"], BOTH);
    check(
        &mut host,
        &[("orders.toml", "-")],
        ready,
        &["inbox", "more"],
        INSIDE,
    );
    let mut host = Host::after_restart(host.records);
    check(
        &mut host,
        &[("orders.wasm", ONE)],
        ready,
        &["inbox", "more"],
        INSIDE,
    );
    // A bad drop while it was down: the kept version serves with the manifest inside of it.
    let mut host = Host::after_restart(host.records);
    host.files(&[("orders.wasm", "bad")]);
    host.work(&["bad"]);
    host.check("orders", &format!("quarantined {ONE}"));
    assert_eq!(host.queues("orders"), ["inbox", "more"]);
}

#[test]
fn a61_faults_of_the_manifest_inside_have_their_line_and_column() {
    let mut host = Host::new();
    let ready = &format!("ready {ONE}");
    check(
        &mut host,
        &[("orders.wasm", ONE)],
        ready,
        &["inbox", "more"],
        INSIDE,
    );
    let bad = "two|[process]\nmemori = 1\n[queue.other]\ntrigger = \"frist\"\n";
    host.files(&[("orders.wasm", bad)]);
    host.work(&[]);
    host.check("orders", &format!("quarantined {ONE}"));
    assert_eq!(host.queues("orders"), ["inbox", "more"]);
    let reason = host.reason("orders");
    for part in [
        "manifest in orders.wasm:2:1: \"process.memori\"",
        "manifest in orders.wasm:4:1: \"queue.other.trigger\"",
        "[invalid-manifest]",
    ] {
        assert!(reason.contains(part), "{reason}");
    }
    // A good one beside it cures that.
    let ready = &format!("ready {bad}");
    check(
        &mut host,
        &[("orders.toml", "[queue.beside]\n")],
        ready,
        &["beside"],
        BOTH,
    );
}

#[test]
fn a_component_that_another_manifest_names_is_not_its_own_plugin() {
    let mut host = Host::new();
    host.files(&[
        ("orders.wasm", ONE),
        ("other.toml", "[process]\ncomponent = \"orders.wasm\"\n"),
    ]);
    host.work(&[]);
    host.check("orders", "none");
    host.check("other", &format!("ready {ONE}"));
    assert_eq!(host.queues("other"), ["other"]);
}

#[test]
fn a_rollback_takes_the_manifest_of_the_version_along() {
    let mut host = Host::new();
    for text in ["plain", ONE, TWO] {
        host.files(&[("orders.wasm", text)]);
        host.work(&[]);
    }
    let back = |host: &mut Host, id: RollbackId, text: &str, queues: &[&str]| {
        let actions = host.catalog.rollback(&name("orders"), id);
        host.perform(actions);
        host.turn();
        host.work(&[]);
        assert_eq!(
            host.answers.pop(),
            Some((id, Ok(Digest::of(text.as_bytes()))))
        );
        host.check("orders", &format!("ready {text}"));
        assert_eq!(host.queues("orders"), queues);
    };
    back(&mut host, 1, ONE, &["inbox", "more"]);
    let mut host = Host::after_restart(host.records);
    check(
        &mut host,
        &[("orders.wasm", TWO)],
        &format!("ready {ONE}"),
        &["inbox", "more"],
        INSIDE,
    );
    back(&mut host, 2, "plain", &["orders"]);
    // What lies beside stays whatever the version is.
    host.files(&[("orders.toml", "[queue.beside]\n")]);
    host.work(&[]);
    host.check("orders", "ready plain");
    assert_eq!(host.queues("orders"), ["beside"]);
}

#[test]
fn a66_claims_of_manifests_inside_count() {
    let mut host = Host::new();
    host.files(&[("orders.wasm", ONE), ("inbox.wasm", "plain")]);
    host.work(&[]);
    host.check("orders", "quarantined");
    host.check("inbox", "quarantined");
    assert!(
        host.reason("inbox")
            .contains("\"inbox.wasm\" and \"orders.wasm\" both claim")
    );
}
