//! The plugins directory without a directory: settled files, scripted checks, a scripted manager.

use std::collections::{BTreeMap, BTreeSet};

use oncue_core::admission::Demand;
use oncue_core::definition::Style;

use super::super::kept::Record;
use super::*;

/// A host with one plugins directory.
struct Host {
    catalog: Catalog,
    /// What the disk remembers.
    records: BTreeMap<PluginName, Record>,
    /// Jobs that nobody has done yet.
    jobs: Vec<Job>,
    /// What the manager took, by plugin.
    told: BTreeMap<PluginName, Update>,
    /// What the manager was told in all.
    updates: Vec<String>,
    /// What the manager refuses, by plugin.
    refusals: BTreeMap<PluginName, String>,
    answers: Vec<(RollbackId, Result<Digest, String>)>,
    warnings: Vec<String>,
}

const CAPACITY: Capacity =
    Capacity { total: Demand { memory: 1 << 30, fuel: 20_000_000_000 }, table_elements: 100_000 };

fn name(text: &str) -> PluginName {
    PluginName::new(text).expect("a name")
}

impl Host {
    fn new() -> Self {
        Self::after_restart(BTreeMap::new())
    }

    fn after_restart(records: BTreeMap<PluginName, Record>) -> Self {
        Self {
            catalog: Catalog::new(CAPACITY, records.clone()),
            records,
            jobs: Vec::new(),
            told: BTreeMap::new(),
            updates: Vec::new(),
            refusals: BTreeMap::new(),
            answers: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Files settle: components by their text, manifests by theirs, `-` for gone.
    fn files(&mut self, files: &[(&str, &str)]) {
        for (file, text) in files {
            let state = match (*text, file.strip_suffix(".toml")) {
                ("-", _) => None,
                ("unreadable", _) => Some(FileState::Unreadable("cannot be opened".to_owned())),
                (text, Some(stem)) => {
                    let manifest = ManifestFile::read(text.as_bytes(), file, &name(stem));
                    Some(FileState::Manifest(Arc::new(manifest)))
                }
                (text, None) => Some(FileState::Component(Digest::of(text.as_bytes()))),
            };
            self.catalog.settled(file, state);
        }
        self.turn();
    }

    /// Decides until there is nothing to do, without doing any job.
    fn turn(&mut self) {
        for _ in 0..20 {
            let actions = self.catalog.decide();
            if actions.is_empty() {
                return;
            }
            self.perform(actions);
        }
        panic!("it does not come to rest: {:?}", self.updates);
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Check(job) => self.jobs.push(*job),
                Action::Tell(update) => {
                    let answer = match self.refusals.get(&update.plugin) {
                        Some(reason)
                            if !matches!(
                                update.state,
                                State::Quarantined { .. } | State::Removed
                            ) =>
                        {
                            Err(reason.clone())
                        }
                        _ => Ok(()),
                    };
                    if answer.is_ok() {
                        self.updates.push(format!("{} {}", update.plugin, word(&update.state)));
                        if update.state == State::Removed {
                            self.told.remove(&update.plugin);
                        } else {
                            self.told.insert(update.plugin.clone(), (*update).clone());
                        }
                    }
                    let after = self.catalog.told(*update, answer);
                    self.perform(after);
                }
                Action::Remember(plugin, record) => {
                    self.records.insert(plugin, record);
                }
                Action::Forget(plugin) => {
                    self.records.remove(&plugin);
                }
                Action::Answer(id, result) => {
                    let result = result.map_err(|(code, text)| format!("{text} [{code}]"));
                    self.answers.push((id, result));
                }
                Action::Warn(text) => self.warnings.push(text),
            }
        }
    }

    /// Does all jobs: a component whose text starts with `bad` is refused, with `late` the host
    /// fails, all others are good.
    fn work(&mut self, texts: &[&str]) {
        let known: BTreeMap<Digest, &str> =
            texts.iter().map(|text| (Digest::of(text.as_bytes()), *text)).collect();
        while !self.jobs.is_empty() {
            for job in std::mem::take(&mut self.jobs) {
                assert!(self.catalog.awaits(&job.plugin, &job.key));
                let text = known.get(&job.key.component).copied().unwrap_or("good");
                let result = if text.starts_with("bad") {
                    Err(NotPassed::Refused(format!("\"{}\" is {text} [plugin-refused]", job.file)))
                } else if text.starts_with("late") {
                    Err(NotPassed::Host("no room".to_owned()))
                } else {
                    Ok(Passed { style: Style::Message, facts: Vec::new() })
                };
                self.catalog.checked(&job.plugin, job.key, result);
            }
            self.turn();
        }
    }

    /// Demands the state of a plugin as the manager has it: `ready TEXT`, `quarantined`,
    /// `quarantined TEXT` (TEXT serves), `compiling`, `missing`, `none`.
    fn check(&self, plugin: &str, wanted: &str) {
        let got = self.told.get(&name(plugin)).map_or("none".to_owned(), |update| {
            let word = word(&update.state);
            match update.state.serving() {
                Some(version) => format!("{word} {}", version.component.short()),
                None => word.to_owned(),
            }
        });
        let wanted = match wanted.split_once(' ') {
            Some((word, text)) => format!("{word} {}", Digest::of(text.as_bytes()).short()),
            None => wanted.to_owned(),
        };
        assert_eq!(got, wanted, "plugin {plugin}: {:#?}", self.told.get(&name(plugin)));
    }

    fn reason(&self, plugin: &str) -> &str {
        match self.told.get(&name(plugin)).map(|update| &update.state) {
            Some(State::Quarantined { reason, .. }) => reason,
            other => panic!("{plugin} is not quarantined but {other:?}"),
        }
    }

    /// The queues that the manager has bound to a plugin by its last update.
    fn queues(&self, plugin: &str) -> Vec<String> {
        let update = self.told.get(&name(plugin)).expect("told of");
        let definitions = update.definitions.as_ref().expect("definitions");
        definitions.queues.iter().map(|(queue, _)| queue.to_string()).collect()
    }
}

fn word(state: &State) -> &'static str {
    match state {
        State::Compiling => "compiling",
        State::Ready(_) => "ready",
        State::Quarantined { .. } => "quarantined",
        State::Missing => "missing",
        State::Removed => "removed",
    }
}

#[test]
fn a65_a_component_alone_serves_the_queue_of_its_name() {
    let mut host = Host::new();
    host.files(&[("orders.wasm", "one")]);
    host.check("orders", "compiling");
    host.work(&[]);
    host.check("orders", "ready one");
    assert_eq!(host.queues("orders"), ["orders"]);
    let definitions = host.told[&name("orders")].definitions.clone().expect("definitions");
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
    assert_eq!((host.updates.len(), host.jobs.len()), (before, 0));
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
    host.catalog.set_restless(BTreeSet::from(["orders.toml".to_owned()]));
    host.files(&[("orders.wasm", "one")]);
    host.check("orders", "none");
    host.catalog.set_restless(BTreeSet::new());
    host.files(&[("orders.toml", "[queue.inbox]\n")]);
    host.work(&[]);
    assert_eq!(host.queues("orders"), ["inbox"]);
    // The component is there whole, its new manifest is not: both change together.
    host.catalog.set_restless(BTreeSet::from(["orders.toml".to_owned()]));
    host.files(&[("orders.wasm", "two")]);
    assert!(host.jobs.is_empty());
    host.catalog.set_restless(BTreeSet::new());
    host.files(&[("orders.toml", "[queue.outbox]\n")]);
    host.work(&[]);
    host.check("orders", "ready two");
    assert_eq!(host.queues("orders"), ["outbox"]);
    let times = host.updates.iter().filter(|update| *update == "orders ready").count();
    assert_eq!(times, 2);
}

#[test]
fn a60_a_manifest_alone_changes_definitions() {
    let mut host = Host::new();
    host.files(&[("orders.wasm", "one"), ("orders.toml", "[process]\nmemory = \"32 MiB\"\n")]);
    host.work(&[]);
    host.files(&[("orders.toml", "[process]\nmemory = \"48 MiB\"\n")]);
    // The new limits are tried before they hold.
    host.check("orders", "ready one");
    assert_eq!(host.jobs.len(), 1);
    assert_eq!(host.jobs[0].attributes.memory, 48 << 20);
    host.work(&[]);
    let definitions = host.told[&name("orders")].definitions.clone().expect("definitions");
    assert_eq!(attributes(&definitions).memory, 48 << 20);
    host.files(&[("orders.wasm", "-")]);
    host.check("orders", "missing");
}

#[test]
fn a61_a_bad_drop_never_removes_a_good_version() {
    let good = "[process]\nmemory = \"32 MiB\"\n";
    let cases: [(&[(&str, &str)], &str); 5] = [
        (&[("orders.wasm", "bad one")], "\"orders.wasm\" is bad one"),
        (&[("orders.wasm", "unreadable")], "\"orders.wasm\" cannot be opened"),
        (&[("orders.toml", "[process]\nmemori = 1\n")], "orders.toml:2:1: \"process.memori\""),
        (&[("orders.toml", "[process]\nmemory = \"2 GiB\"\n")], "\"orders.toml\": memory is 2 GiB"),
        (&[("orders.toml", "unreadable")], "\"orders.toml\" cannot be opened"),
    ];
    for (drop, wanted) in cases {
        let mut host = Host::new();
        host.files(&[("orders.wasm", "one"), ("orders.toml", good)]);
        host.work(&["bad one"]);
        host.files(drop);
        host.work(&["bad one"]);
        host.check("orders", "quarantined one");
        assert!(host.reason("orders").starts_with(wanted), "{}", host.reason("orders"));
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
    assert!(host.jobs.is_empty());
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
fn a66_with_no_queue_bound_both_are_quarantined() {
    let mut host = Host::new();
    let manifest = "[queue.inbox]\n";
    host.files(&[("a.toml", manifest), ("a.wasm", "one"), ("inbox.wasm", "two")]);
    host.work(&[]);
    for plugin in ["a", "inbox"] {
        host.check(plugin, "quarantined");
        assert!(host.reason(plugin).contains("\"a.toml\" and \"inbox.wasm\""));
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
    assert!(reason.contains("\"a.toml\"") && reason.contains("\"inbox.wasm\""), "{reason}");
    // It goes on after a restart, and after a new version.
    let mut host = Host::after_restart(host.records);
    host.files(&[("a.toml", "[queue.inbox]\n"), ("a.wasm", "two"), ("inbox.wasm", "three")]);
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
    texts.iter().map(|text| Digest::of(text.as_bytes())).collect()
}

#[test]
fn the_last_three_good_versions_are_kept() {
    let mut host = with_versions(&["one", "two", "three", "four", "five"]);
    assert_eq!(previous(&host), digests(&["four", "three", "two"]));
    let kept: BTreeSet<Digest> = digests(&["five", "four", "three", "two"]).into_iter().collect();
    assert_eq!(host.catalog.components(), kept);
    assert_eq!(host.catalog.loaded(), digests(&["five"]).into_iter().collect());
    // An old content dropped again is the newest.
    host.files(&[("orders.wasm", "three")]);
    host.work(&[]);
    assert_eq!(previous(&host), digests(&["five", "four", "two"]));
    assert!(host.catalog.give_up_oldest().is_some());
    assert!(host.catalog.components().len() == 3);
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
    assert!(refused.expect_err("refused").ends_with("[no-previous-version]"));

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
    host.refusals.insert(name("orders"), "no [queue-claimed]".to_owned());
    let actions = host.catalog.rollback(&name("orders"), 1);
    host.perform(actions);
    host.turn();
    host.work(&[]);
    assert!(matches!(&host.answers[..], [(1, Err(_))]), "{:?}", host.answers);
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
    assert!(refused.expect_err("refused").contains("\"orders.wasm\" is bad one"));
    assert_eq!(host.catalog.record(&name("orders")).and_then(|record| record.pin.clone()), None);

    // A disk that does not take the pin.
    let actions = host.catalog.rollback(&name("orders"), 3);
    assert!(matches!(&actions[..], [Action::Remember(..)]));
    let actions = host.catalog.record_failed(&name("orders"), "disk full");
    host.perform(actions);
    host.turn();
    assert!(host.jobs.is_empty());
    assert!(matches!(&host.answers[..], [.., (3, Err(_))]));

    let actions = host.catalog.rollback(&name("unknown"), 4);
    host.perform(actions);
    let (_, refused) = host.answers.pop().expect("an answer");
    assert!(refused.expect_err("refused").ends_with("[unknown-plugin]"));
}

#[test]
fn names_that_no_plugin_can_have_are_warned_of_once() {
    let mut host = Host::new();
    host.files(&[("a b.wasm", "one"), ("oncue.x.wasm", "two")]);
    host.turn();
    assert_eq!(host.warnings.len(), 1);
    assert!(host.warnings[0].contains("\"a b.wasm\" is passed over"), "{:?}", host.warnings);
    host.check("oncue.x", "quarantined");
    assert!(host.reason("oncue.x").ends_with("[reserved-name]"));
    assert_eq!(host.told[&name("oncue.x")].definitions, None);
}

#[test]
fn the_result_of_a_version_that_is_gone_does_not_matter() {
    let mut host = Host::new();
    host.files(&[("orders.wasm", "one")]);
    let old = host.jobs.pop().expect("a job");
    host.files(&[("orders.wasm", "two")]);
    assert!(!host.catalog.awaits(&old.plugin, &old.key));
    let passed = Passed { style: Style::Message, facts: Vec::new() };
    host.catalog.checked(&old.plugin, old.key, Ok(passed));
    host.turn();
    host.check("orders", "compiling");
    host.work(&[]);
    host.check("orders", "ready two");
}
