//! Files come, change and go.

use super::*;

#[test]
fn a65_a_component_alone_serves_the_queue_of_its_name() {
    let mut host = Host::new();
    host.files(&[("orders.wasm", "one")]);
    host.check("orders", "compiling");
    host.work(&[]);
    host.check("orders", "ready one");
    assert_eq!(host.queues("orders"), ["orders"]);
    let definitions = host.told[&name("orders")]
        .definitions
        .clone()
        .expect("definitions");
    assert!(definitions.process.is_empty());
    let (_, patch) = &definitions.queues[0];
    assert!(patch.is_empty());
    assert_eq!(host.updates, ["orders compiling", "orders ready"]);
}

#[test]
fn a60_every_way_of_dropping_ends_with_the_right_version() {
    let mut host = Host::new();
    host.files(&[("orders.wasm", "one")]);
    host.work(&[]);
    // Overwritten, moved over, swapped: another content under the same name.
    host.files(&[("orders.wasm", "two")]);
    host.check("orders", "ready one");
    host.work(&[]);
    host.check("orders", "ready two");
    // The same content again says nothing.
    let before = host.updates.len();
    host.files(&[("orders.wasm", "two")]);
    assert_eq!((host.updates.len(), host.trials.len()), (before, 0));
    // Renamed.
    host.files(&[("orders.wasm", "-"), ("invoices.wasm", "two")]);
    host.work(&[]);
    host.check("orders", "none");
    host.check("invoices", "ready two");
    // Deleted.
    host.files(&[("invoices.wasm", "-")]);
    host.check("invoices", "none");
    assert!(host.records.is_empty());
    assert!(host.catalog.loaded().is_empty() && host.catalog.components().is_empty());
}

#[test]
fn a60_manifest_and_component_come_in_either_order() {
    let manifest = "[process]\ncomponent = \"route.wasm\"\n[queue.inbox]\n";
    let mut host = Host::new();
    host.files(&[("orders.toml", manifest)]);
    host.check("orders", "missing");
    assert_eq!(host.queues("orders"), ["inbox"]);
    host.files(&[("route.wasm", "one")]);
    host.work(&[]);
    host.check("orders", "ready one");
    host.check("route", "none");

    let mut host = Host::new();
    host.files(&[("route.wasm", "one")]);
    host.work(&[]);
    host.check("route", "ready one");
    host.files(&[("orders.toml", manifest)]);
    host.work(&[]);
    host.check("orders", "ready one");
    assert_eq!(host.queues("orders"), ["inbox"]);
    // A component that a manifest names is no plugin of its own.
    host.check("route", "none");
}

#[test]
fn a60_nothing_changes_while_a_plugins_file_is_being_written() {
    let mut host = Host::new();
    host.catalog
        .set_restless(BTreeSet::from(["orders.toml".to_owned()]));
    host.files(&[("orders.wasm", "one")]);
    host.check("orders", "none");
    host.catalog.set_restless(BTreeSet::new());
    host.files(&[("orders.toml", "[queue.inbox]\n")]);
    host.work(&[]);
    assert_eq!(host.queues("orders"), ["inbox"]);
    // The component is there whole, its new manifest is not: both change together.
    host.catalog
        .set_restless(BTreeSet::from(["orders.toml".to_owned()]));
    host.files(&[("orders.wasm", "two")]);
    assert!(host.trials.is_empty());
    host.catalog.set_restless(BTreeSet::new());
    host.files(&[("orders.toml", "[queue.outbox]\n")]);
    host.work(&[]);
    host.check("orders", "ready two");
    assert_eq!(host.queues("orders"), ["outbox"]);
    let times = host
        .updates
        .iter()
        .filter(|update| *update == "orders ready")
        .count();
    // The first, the news that the next is being found out, and the next.
    assert_eq!(times, 3);
}

#[test]
fn a_component_that_comes_is_told_of_before_it_is_whole() {
    let mut host = Host::new();
    let restless = |host: &mut Host, files: &[&str]| {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        host.catalog.set_restless(files);
        host.turn();
    };
    restless(&mut host, &["orders.wasm", "orders.toml"]);
    host.check("orders", "compiling");
    assert_eq!(host.told[&name("orders")].file, "orders.wasm");
    // It goes before it is whole.
    restless(&mut host, &[]);
    host.check("orders", "none");
    // Its manifest was there: nobody is told to drop what is on its way.
    host.files(&[("orders.toml", "[queue.inbox]\n")]);
    host.check("orders", "missing");
    restless(&mut host, &["orders.wasm"]);
    host.check("orders", "compiling");
    restless(&mut host, &[]);
    host.files(&[("orders.wasm", "one")]);
    host.work(&[]);
    host.check("orders", "ready one");
    assert_eq!(host.queues("orders"), ["inbox"]);
    // A new one over a good one is no news before it is whole.
    restless(&mut host, &["orders.wasm"]);
    host.check("orders", "ready one");
    // What the manifest of another names, or may name, is no plugin of its own.
    restless(&mut host, &["route.wasm", "other.toml"]);
    host.check("route", "none");
    host.catalog
        .set_restless(BTreeSet::from(["route.wasm".to_owned()]));
    host.files(&[("other.toml", "[process]\ncomponent = \"route.wasm\"\n")]);
    host.check("other", "none");
    restless(&mut host, &[]);
    host.check("other", "missing");
    restless(&mut host, &["route.wasm"]);
    host.check("other", "compiling");
    host.check("route", "none");
}

#[test]
fn a60_a_manifest_alone_changes_definitions() {
    let mut host = Host::new();
    host.files(&[
        ("orders.wasm", "one"),
        ("orders.toml", "[process]\nmemory = \"32 MiB\"\n"),
    ]);
    host.work(&[]);
    host.files(&[("orders.toml", "[process]\nmemory = \"48 MiB\"\n")]);
    // The new limits are tried before they hold.
    host.check("orders", "ready one");
    assert_eq!(host.trials.len(), 1);
    assert_eq!(host.trials[0].attributes.memory, 48 << 20);
    host.work(&[]);
    let definitions = host.told[&name("orders")]
        .definitions
        .clone()
        .expect("definitions");
    assert_eq!(attributes(&definitions).memory, 48 << 20);
    host.files(&[("orders.wasm", "-")]);
    host.check("orders", "missing");
}

#[test]
fn a61_a_bad_drop_never_removes_a_good_version() {
    let good = "[process]\nmemory = \"32 MiB\"\n";
    let cases: [(&[(&str, &str)], &str); 5] = [
        (&[("orders.wasm", "bad one")], "\"orders.wasm\" is bad one"),
        (
            &[("orders.wasm", "unreadable")],
            "\"orders.wasm\" cannot be opened",
        ),
        (
            &[("orders.toml", "[process]\nmemori = 1\n")],
            "orders.toml:2:1: \"process.memori\"",
        ),
        (
            &[("orders.toml", "[process]\nmemory = \"2 GiB\"\n")],
            "\"orders.toml\": memory is 2 GiB",
        ),
        (
            &[("orders.toml", "unreadable")],
            "\"orders.toml\" cannot be opened",
        ),
    ];
    for (drop, wanted) in cases {
        let mut host = Host::new();
        host.files(&[("orders.wasm", "one"), ("orders.toml", good)]);
        host.work(&["bad one"]);
        host.files(drop);
        host.work(&["bad one"]);
        host.check("orders", "quarantined one");
        assert!(
            host.reason("orders").starts_with(wanted),
            "{}",
            host.reason("orders")
        );
        assert_eq!(host.queues("orders"), ["orders"]);
        assert!(host.catalog.loaded().contains(&Digest::of(b"one")));
        host.files(&[("orders.wasm", "two"), ("orders.toml", good)]);
        host.work(&["bad one"]);
        host.check("orders", "ready two");
    }
}

#[test]
fn a61_a_bad_file_over_a_good_one_still_serves_after_a_restart() {
    let mut host = Host::new();
    host.files(&[("orders.wasm", "one"), ("orders.toml", "[queue.inbox]\n")]);
    host.work(&[]);
    host.files(&[("orders.wasm", "bad"), ("orders.toml", "broken = ")]);
    host.check("orders", "quarantined one");

    let mut host = Host::after_restart(host.records);
    host.files(&[("orders.wasm", "bad"), ("orders.toml", "broken = ")]);
    host.work(&["bad"]);
    host.check("orders", "quarantined one");
    assert_eq!(host.queues("orders"), ["inbox"]);
    // With a good manifest the file itself is tried, and the kept version serves on.
    host.files(&[("orders.toml", "[queue.inbox]\nmax-tasks = 2\n")]);
    host.work(&["bad"]);
    host.check("orders", "quarantined one");
    host.files(&[("orders.wasm", "two")]);
    host.work(&["bad"]);
    host.check("orders", "ready two");
}

#[test]
fn a34_a_first_drop_that_is_bad_holds_its_queue() {
    let mut host = Host::new();
    host.files(&[("orders.wasm", "bad")]);
    host.check("orders", "compiling");
    host.work(&["bad"]);
    host.check("orders", "quarantined");
    assert_eq!(host.queues("orders"), ["orders"]);
    host.files(&[("orders.wasm", "one")]);
    host.check("orders", "compiling");
    host.work(&["bad"]);
    host.check("orders", "ready one");
}

#[test]
fn a_failure_of_the_host_is_tried_again() {
    let mut host = Host::new();
    host.files(&[("orders.wasm", "late")]);
    host.work(&["late"]);
    host.check("orders", "quarantined");
    host.turn();
    assert!(host.trials.is_empty());
    host.catalog.retry();
    host.turn();
    // It is said once, and stays so until it is known better.
    host.work(&["late"]);
    host.check("orders", "quarantined");
    assert_eq!(host.updates, ["orders compiling", "orders quarantined"]);
    host.catalog.retry();
    host.turn();
    host.work(&[]);
    host.check("orders", "ready late");
}

#[test]
fn names_that_no_plugin_can_have_are_warned_of_once() {
    let mut host = Host::new();
    host.files(&[("a b.wasm", "one"), ("oncue.x.wasm", "two")]);
    host.turn();
    assert_eq!(host.warnings.len(), 1);
    assert!(
        host.warnings[0].contains("\"a b.wasm\" is passed over"),
        "{:?}",
        host.warnings
    );
    host.check("oncue.x", "quarantined");
    assert!(host.reason("oncue.x").ends_with("[reserved-name]"));
    assert_eq!(host.told[&name("oncue.x")].definitions, None);
}

#[test]
fn the_result_of_a_version_that_is_gone_does_not_matter() {
    let mut host = Host::new();
    host.files(&[("orders.wasm", "one")]);
    let old = host.trials.pop().expect("a trial");
    host.files(&[("orders.wasm", "two")]);
    assert!(!host.catalog.awaits(&old.plugin, &old.key));
    let passed = Passed {
        style: Style::Message,
        facts: Vec::new(),
    };
    host.catalog.checked(&old.plugin, old.key, Ok(passed));
    host.turn();
    host.check("orders", "compiling");
    host.work(&[]);
    host.check("orders", "ready two");
}
