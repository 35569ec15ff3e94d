//! What is said of plugins while they come and are replaced: to whoever asks, listens, or sends
//! messages back to them.

use oncue_manager::ManagerConfig;
use oncue_manager::handle::DeadLetterFilter;
use oncue_manager::reload::{NEXT_VERSION, PluginUpdate};
use oncue_manager::status::HostEvent;

use crate::rig::Rig;
use crate::values::{name, ready, retry, update};

/// The news that the next version of `echo` is compiled while this one serves.
fn interim(digest: &str) -> PluginUpdate {
    let fact = (NEXT_VERSION.to_owned(), "is being compiled".to_owned());
    PluginUpdate {
        facts: vec![fact],
        ..update("echo", ready("echo", digest), &[], &[("echo", &[])])
    }
}

#[test]
fn a_component_that_may_be_there_is_not_missing_before_the_directory_was_read() {
    let awaiting = || ManagerConfig {
        awaits_plugins: true,
        ..ManagerConfig::default()
    };
    let mut rig = Rig::with(awaiting());
    rig.plugin("echo", &[], &[("echo", &[])]);
    // The next start: the definitions are there, nothing has been told of the component.
    let mut rig = rig.reopen(awaiting(), Vec::new());
    rig.put("echo", "one");
    assert_eq!(
        (rig.waiting(), rig.reason("echo")),
        (0, Some("component-compiling"))
    );
    let handle = rig.handle.clone();
    rig.ask(async move { handle.plugins_read().await })
        .expect("it runs");
    assert_eq!(rig.reason("echo"), Some("component-missing"));
    rig.plugin("echo", &[], &[("echo", &[])]);
    assert_eq!(rig.run_all(), ["one"]);
}

#[test]
fn a_version_is_told_of_as_ready_when_it_serves_and_not_when_its_compilation_begins() {
    let mut rig = Rig::new();
    let mut events = rig.handle.events();
    for update in [
        update("echo", ready("echo", "1"), &[], &[("echo", &[])]),
        interim("1"),
        update("echo", ready("echo", "2"), &[], &[("echo", &[])]),
    ] {
        rig.update(update).expect("taken");
    }
    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let HostEvent::Plugin { state, digest, .. } = event {
            told.push(format!("{state} {}", digest.as_deref().unwrap_or("-")));
        }
    }
    assert_eq!(told, ["ready echo-1", "compiling echo-1", "ready echo-2"]);
}

#[test]
fn a_redrive_tells_that_the_next_version_is_not_ready_yet() {
    let mut rig = Rig::new();
    rig.plugin("echo", &[], &[("echo", &[("backout-threshold", "1")])]);
    let mut redrive = |next: Option<PluginUpdate>| {
        rig.put("echo", "one");
        rig.run(|_| retry());
        if let Some(next) = next {
            rig.update(next).expect("taken");
        }
        let (handle, dead) = (rig.handle.clone(), name("oncue.dead-letter"));
        let filter = DeadLetterFilter::default();
        let done = rig.ask(async move { handle.redrive(&dead, &filter).await });
        rig.run_all();
        let done = done.expect("done");
        assert_eq!((done.done, done.stayed), (1, 0));
        done.compiling
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert!(redrive(None).is_empty());
    assert_eq!(redrive(Some(interim("1"))), ["echo"]);
}

#[test]
fn who_asks_why_a_message_waits_for_its_retry_hears_how_the_last_task_failed() {
    let mut rig = Rig::new();
    rig.plugin("echo", &[], &[("echo", &[])]);
    rig.put("echo", "one");
    rig.run(|_| retry());
    let explained = rig.explain("echo");
    assert_eq!(explained.reason, Some("retry-delay"));
    let task = rig.records()[0].id;
    let failed = format!("(task {task} was the last to fail, retry: not now;");
    assert!(
        explained.sentence.contains(&failed)
            && explained
                .sentence
                .contains(&format!("\"oncue task show {task}\"")),
        "{}",
        explained.sentence
    );
}
