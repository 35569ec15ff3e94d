//! Two plugins and one queue; a manager that refuses.

use super::*;

#[test]
fn a66_with_no_queue_bound_both_are_quarantined() {
    let mut host = Host::new();
    let manifest = "[queue.inbox]\n";
    host.files(&[
        ("a.toml", manifest),
        ("a.wasm", "one"),
        ("inbox.wasm", "two"),
    ]);
    host.work(&[]);
    for plugin in ["a", "inbox"] {
        host.check(plugin, "quarantined");
        assert!(
            host.reason(plugin)
                .contains("\"a.toml\" and \"inbox.wasm\"")
        );
        assert!(host.reason(plugin).ends_with("[queue-claimed]"));
        assert!(host.queues(plugin).is_empty());
    }
    // One of them is withdrawn, and the other serves.
    host.files(&[("a.toml", "[queue.other]\n")]);
    host.work(&[]);
    host.check("a", "ready one");
    host.check("inbox", "ready two");
}

#[test]
fn a66_the_bound_one_goes_on() {
    let mut host = Host::new();
    host.files(&[("inbox.wasm", "one")]);
    host.work(&[]);
    host.files(&[("a.toml", "[queue.inbox]\n"), ("a.wasm", "two")]);
    host.work(&[]);
    host.check("inbox", "ready one");
    host.check("a", "quarantined");
    let reason = host.reason("a");
    assert!(
        reason.contains("\"a.toml\"") && reason.contains("\"inbox.wasm\""),
        "{reason}"
    );
    // It goes on after a restart, and after a new version.
    let mut host = Host::after_restart(host.records);
    host.files(&[
        ("a.toml", "[queue.inbox]\n"),
        ("a.wasm", "two"),
        ("inbox.wasm", "three"),
    ]);
    host.work(&[]);
    host.check("inbox", "ready three");
    host.check("a", "quarantined");
    // A served plugin that claims another's queue serves on as it was.
    host.files(&[("b.wasm", "four")]);
    host.work(&[]);
    host.files(&[("b.toml", "[queue.inbox]\n")]);
    host.work(&[]);
    host.check("b", "quarantined four");
    assert_eq!(host.queues("b"), ["b"]);
    // The bound one goes: the first by name cannot be known to be meant, so neither serves...
    host.files(&[("inbox.wasm", "-")]);
    host.work(&[]);
    host.check("a", "quarantined");
    // ... until one is withdrawn.
    host.files(&[("b.toml", "-")]);
    host.work(&[]);
    host.check("a", "ready two");
    host.check("b", "ready four");
}

#[test]
fn the_managers_refusal_quarantines_until_it_is_withdrawn() {
    let mut host = Host::new();
    host.files(&[("orders.wasm", "one")]);
    host.work(&[]);
    let refusal = "queue \"orders\" is bound by an operator to \"x\" [queue-claimed]";
    host.refusals.insert(name("orders"), refusal.to_owned());
    host.files(&[("orders.wasm", "two")]);
    host.work(&[]);
    host.check("orders", "quarantined one");
    assert_eq!(host.reason("orders"), refusal);
    host.catalog.retry();
    host.turn();
    host.check("orders", "quarantined one");
    assert_eq!(host.warnings.len(), 1);
    host.refusals.clear();
    host.catalog.retry();
    host.turn();
    host.check("orders", "ready two");

    let mut host = Host::new();
    host.refusals.insert(name("orders"), refusal.to_owned());
    host.files(&[("orders.wasm", "one")]);
    host.work(&[]);
    host.check("orders", "quarantined");
    assert!(host.queues("orders").is_empty());
}
