//! Versions that are kept, and rollbacks.

use super::*;

/// Drops contents one after the other, each of them good.
fn with_versions(texts: &[&str]) -> Host {
    let mut host = Host::new();
    for text in texts {
        host.files(&[("orders.wasm", text)]);
        host.work(&[]);
    }
    host
}

fn previous(host: &Host) -> Vec<Digest> {
    host.told[&name("orders")].previous.clone()
}

fn digests(texts: &[&str]) -> Vec<Digest> {
    texts
        .iter()
        .map(|text| Digest::of(text.as_bytes()))
        .collect()
}

#[test]
fn the_last_three_good_versions_are_kept() {
    let mut host = with_versions(&["one", "two", "three", "four", "five"]);
    assert_eq!(previous(&host), digests(&["four", "three", "two"]));
    let kept: BTreeSet<Digest> = digests(&["five", "four", "three", "two"])
        .into_iter()
        .collect();
    assert_eq!(host.catalog.components(), kept);
    assert_eq!(
        host.catalog.loaded(),
        digests(&["five"]).into_iter().collect()
    );
    // An old content dropped again is the newest.
    host.files(&[("orders.wasm", "three")]);
    host.work(&[]);
    assert_eq!(previous(&host), digests(&["five", "four", "two"]));
    assert!(host.catalog.give_up_oldest().is_some());
    assert!(host.catalog.components().len() == 3);
}

/// The names of the facts that were told of the plugin last.
fn facts(host: &Host) -> Vec<&str> {
    let told = &host.told[&name("orders")];
    told.facts.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn that_the_next_version_is_found_out_is_told_and_what_serves_stays() {
    let mut host = with_versions(&["one"]);
    host.files(&[("orders.wasm", "two")]);
    host.check("orders", "ready one");
    assert_eq!(facts(&host), [NEXT_VERSION]);
    host.work(&[]);
    host.check("orders", "ready two");
    assert!(facts(&host).is_empty());
    let actions = host.catalog.rollback(&name("orders"), 7);
    host.perform(actions);
    host.turn();
    assert_eq!(facts(&host), [NEXT_VERSION]);
    host.work(&[]);
    host.check("orders", "ready one");
    assert_eq!(facts(&host), [PINNED]);
    // A bad drop ends the rollback: the fact does not outlive it.
    host.files(&[("orders.wasm", "bad")]);
    host.work(&["bad"]);
    host.check("orders", "quarantined one");
    assert!(facts(&host).is_empty());
}

#[test]
fn a_rollback_holds_until_the_file_changes() {
    let mut host = with_versions(&["one", "two", "three"]);
    let actions = host.catalog.rollback(&name("orders"), 7);
    host.perform(actions);
    host.turn();
    host.check("orders", "ready three");
    assert!(host.answers.is_empty());
    host.work(&[]);
    host.check("orders", "ready two");
    assert_eq!(host.answers, [(7, Ok(Digest::of(b"two")))]);
    assert_eq!(previous(&host), digests(&["one"]));

    // It survives a restart.
    let mut host = Host::after_restart(host.records);
    host.files(&[("orders.wasm", "three")]);
    host.work(&[]);
    host.check("orders", "ready two");
    // Further back, to the end.
    let actions = host.catalog.rollback(&name("orders"), 8);
    host.perform(actions);
    host.turn();
    host.work(&[]);
    host.check("orders", "ready one");
    let actions = host.catalog.rollback(&name("orders"), 9);
    host.perform(actions);
    let (_, refused) = host.answers.pop().expect("an answer");
    assert!(
        refused
            .expect_err("refused")
            .ends_with("[no-previous-version]")
    );

    // A new content ends it; a bad one leaves what was rolled back to, also after a restart.
    host.files(&[("orders.wasm", "bad")]);
    host.work(&["bad"]);
    host.check("orders", "quarantined one");
    let mut host = Host::after_restart(host.records);
    host.files(&[("orders.wasm", "bad")]);
    host.work(&["bad"]);
    host.check("orders", "quarantined one");
    host.files(&[("orders.wasm", "four")]);
    host.work(&["bad"]);
    host.check("orders", "ready four");
}

#[test]
fn a_rollback_that_cannot_be_served_is_refused_and_changes_nothing() {
    let mut host = with_versions(&["bad one", "two"]);
    host.refusals
        .insert(name("orders"), "no [queue-claimed]".to_owned());
    let actions = host.catalog.rollback(&name("orders"), 1);
    host.perform(actions);
    host.turn();
    host.work(&[]);
    assert!(
        matches!(&host.answers[..], [(1, Err(_))]),
        "{:?}",
        host.answers
    );
    host.refusals.clear();
    host.catalog.retry();
    host.turn();
    host.check("orders", "ready two");

    let actions = host.catalog.rollback(&name("orders"), 2);
    host.perform(actions);
    host.turn();
    host.work(&["bad one"]);
    host.check("orders", "ready two");
    let (_, refused) = host.answers.pop().expect("an answer");
    assert!(
        refused
            .expect_err("refused")
            .contains("\"orders.wasm\" is bad one")
    );
    assert_eq!(
        host.catalog
            .record(&name("orders"))
            .and_then(|record| record.pin.clone()),
        None
    );

    // A disk that does not take the pin.
    let actions = host.catalog.rollback(&name("orders"), 3);
    assert!(matches!(&actions[..], [Action::Remember(..)]));
    let actions = host.catalog.record_failed(&name("orders"), "disk full");
    host.perform(actions);
    host.turn();
    assert!(host.trials.is_empty());
    assert!(matches!(&host.answers[..], [.., (3, Err(_))]));

    let actions = host.catalog.rollback(&name("unknown"), 4);
    host.perform(actions);
    let (_, refused) = host.answers.pop().expect("an answer");
    assert!(refused.expect_err("refused").ends_with("[unknown-plugin]"));
}

#[test]
fn over_a_bad_file_it_is_told_too_that_the_next_is_found_out() {
    let mut host = with_versions(&["one"]);
    for (bad, next) in [("bad", "two"), ("bad again", "three")] {
        let serving = host.told[&name("orders")].state.serving().cloned();
        host.files(&[("orders.wasm", bad)]);
        host.work(&[bad]);
        assert!(host.reason("orders").contains(bad));
        assert!(facts(&host).is_empty());
        host.files(&[("orders.wasm", next)]);
        assert_eq!(facts(&host), [NEXT_VERSION]);
        let still = host.told[&name("orders")].state.serving().cloned();
        assert_eq!(still, serving);
        host.work(&[]);
        host.check("orders", &format!("ready {next}"));
        assert!(facts(&host).is_empty());
    }
}
