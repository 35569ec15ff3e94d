//! A process that dies, or whose disk fails, at a named point. The process is this test binary
//! itself, started again for one entry; what it has been answered it writes to its standard output,
//! which is the ledger.

#![cfg(feature = "fail-points")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oncue_core::message::{MessageId, Sequence};
use oncue_core::unit_of_work::{OwnerId, Unit};
use oncue_store::{CommitError, StopReason, Store, Take};

use super::{new_home, open};
use crate::rig::{Harness, Rig, ids, next, queue, remove, settle};

/// Says to [`the_other_process`] where its store is; without it there is nothing to do.
const HOME: &str = "ONCUE_CONTRACT_CRASH_HOME";

/// Puts of the other process, each in a unit of its own; after every third a message is taken and
/// removed.
const PUTS: u64 = 30;

/// What the other process was answered.
#[derive(Debug, Default)]
struct Ledger {
    put: Vec<MessageId>,
    removed: Vec<MessageId>,
    /// Puts that were not refused for certain.
    doubtful: Vec<MessageId>,
    refused: Vec<String>,
    stopped: String,
    ended: bool,
}

/// Runs the other process with a fail point armed, until it dies or is done.
fn run(home: &Path, fail_point: &str) -> Ledger {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "embedded::crash::the_other_process",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(HOME, home)
        .env("ONCUE_FAIL_POINT", fail_point)
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut ledger = Ledger::default();
    for line in text.lines() {
        let Some((word, rest)) = line.split_once(' ') else {
            continue;
        };
        match word {
            "PUT" => ledger.put.push(rest.parse().unwrap()),
            "REMOVED" => ledger.removed.push(rest.parse().unwrap()),
            "DOUBTFUL" => ledger.doubtful.push(rest.parse().unwrap()),
            "REFUSED" => ledger.refused.push(rest.to_owned()),
            "STOPPED" => rest.clone_into(&mut ledger.stopped),
            "ENDED" => ledger.ended = true,
            _ => {}
        }
    }
    assert!(
        !ledger.put.is_empty(),
        "the other process did nothing: {output:?}"
    );
    ledger
}

/// The store that stands there.
struct At(PathBuf);

impl Harness for At {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(open(&self.0))
    }
}

/// Not a rule of its own: what the process does that the tests below start.
#[test]
#[expect(clippy::print_stdout, reason = "the ledger")]
fn the_other_process() {
    let Some(home) = std::env::var_os(HOME) else {
        return;
    };
    let rig = Rig::new(At(home.into()));
    let q = queue("q");
    let say = |word: &str, what: &dyn std::fmt::Display| println!("\n{word} {what}");
    for n in 0..PUTS {
        let put = rig.draft(&q).into_put();
        let id = put.header.id;
        match rig.commit(Unit {
            puts: vec![put],
            ..Unit::default()
        }) {
            Ok(_) => say("PUT", &id),
            Err(error @ CommitError::Unknown(_)) => {
                say("DOUBTFUL", &id);
                say("REFUSED", &error);
            }
            Err(error) => say("REFUSED", &error),
        }
        if n % 3 == 2 {
            let owner = rig.owner();
            for id in rig.take_ids(&q, owner, 1) {
                match rig.settle(owner, &q, id, remove()) {
                    Ok(_) => say("REMOVED", &id),
                    Err(error) => say("REFUSED", &error),
                }
            }
        }
        if let Some(why) = rig.store().status().stopped {
            say("STOPPED", &format!("{why:?}"));
        }
        // Else a quick process has ended before the guard has looked at the disk again.
        let patience = Instant::now() + Duration::from_secs(30);
        while rig.store().status().stopped == Some(StopReason::Full) && Instant::now() < patience {
            std::thread::yield_now();
        }
    }
    say("ENDED", &"well");
}

/// Says to [`the_process_that_gives_back`] where its store is.
const GIVES_BACK: &str = "ONCUE_CONTRACT_GIVES_BACK_HOME";

/// Not a rule of its own: a task gives a message back while the engine is closed.
#[test]
fn the_process_that_gives_back() {
    let Some(home) = std::env::var_os(GIVES_BACK) else {
        return;
    };
    let rig = Rig::new(At(home.into()));
    let q = queue("q");
    let (one, two) = (rig.put(&q), rig.put(&q));
    let owner = rig.owner();
    assert_eq!(rig.take_ids(&q, owner, 2), [one, two]);
    let put = rig.draft(&q).into_put();
    let unit = Unit {
        puts: vec![put],
        ..Unit::default()
    };
    let answer = rig.commit(unit);
    assert!(matches!(answer, Err(CommitError::Unknown(_))), "{answer:?}");
    let closed = rig.store().take(&next(&q, owner));
    assert!(closed.is_err(), "the engine is closed");
    rig.release(owner, &q, one);
    let patience = Instant::now() + Duration::from_secs(60);
    while rig.store().status().stopped.is_some() {
        assert!(Instant::now() < patience, "it is opened again");
        std::thread::yield_now();
    }
    rig.check();
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), [one]);
}

/// Such a release was lost: the message was in nobody's hand and could not be taken until a
/// restart.
#[test]
fn a81_what_is_given_back_while_the_engine_is_closed_can_be_taken_once_it_is_open() {
    let home = home();
    // The opening and two puts come first; it is opened again by a guard that looks each 5 ms.
    let points = format!("commit.write.enospc:4{}", ",engine.reopen.fail".repeat(100));
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "embedded::crash::the_process_that_gives_back"])
        .env(GIVES_BACK, home.path())
        .env("ONCUE_FAIL_POINT", points)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A home with a queue in it.
fn home() -> tempfile::TempDir {
    let home = new_home();
    let store = open(home.path());
    let records = vec![crate::rig::record(&queue("q"), Some("definition"))];
    store
        .commit(Unit {
            records,
            ..Unit::default()
        })
        .wait()
        .unwrap();
    store.close();
    home
}

/// Every message that is there, in order.
fn everything(home: &Path) -> Vec<MessageId> {
    let store = open(home);
    let taken = store
        .take(&Take {
            max: 1000,
            ..next(&queue("q"), OwnerId(1))
        })
        .unwrap();
    ids(&taken)
}

/// What was acknowledged is there and what was removed is not, except the one removal that may have
/// been under way.
fn audit(home: &Path, ledger: &Ledger) {
    let there = everything(home);
    for id in &ledger.removed {
        assert!(!there.contains(id), "{id} was removed and is back");
    }
    let expected = expected(ledger);
    let lost: Vec<_> = expected.iter().filter(|id| !there.contains(id)).collect();
    assert!(
        lost.is_empty() || lost == [&expected[0]],
        "{lost:?} were acknowledged and are gone: {ledger:?}"
    );
}

/// What was put and not removed.
fn expected(ledger: &Ledger) -> Vec<MessageId> {
    ledger
        .put
        .iter()
        .filter(|id| !ledger.removed.contains(id))
        .copied()
        .collect()
}

#[test]
fn a31_death_before_and_after_the_sync_loses_nothing_that_was_answered() {
    for point in ["commit.before-sync.abort", "commit.after-sync.abort"] {
        // The first passing is the opening itself, the second the first put.
        for count in [3, 7, 20] {
            let home = home();
            let ledger = run(home.path(), &format!("{point}:{count}"));
            assert!(!ledger.ended, "{point}:{count} did not act");
            audit(home.path(), &ledger);
        }
    }
}

#[test]
fn a30_death_with_a_message_in_hand_gives_it_back() {
    let home = home();
    let ledger = run(home.path(), "take.after-hold.abort:3");
    assert!(!ledger.ended);
    let there = everything(home.path());
    assert_eq!(there, expected(&ledger));
    assert!(open_unclean(home.path()));
}

fn open_unclean(home: &Path) -> bool {
    open(home).recovered().unclean
}

#[test]
fn a81_a_write_into_a_full_disk_refuses_that_put_and_the_store_goes_on_in_the_same_process() {
    let home = home();
    let ledger = run(home.path(), "commit.write.enospc:5");
    assert!(ledger.ended, "{ledger:?}");
    assert_eq!(ledger.doubtful, []);
    let full = ledger
        .refused
        .iter()
        .filter(|text| text.contains("[store-full]"))
        .count();
    assert!(full >= 1 && full == ledger.refused.len(), "{ledger:?}");
    assert!(ledger.put.len() > 5, "the store did not go on: {ledger:?}");
    assert_eq!(everything(home.path()), expected(&ledger));
}

/// While the engine is closed nobody knows whether the unit is there; once it is open again and the
/// unit is not, what it held can be taken again without a restart.
#[test]
fn a81_a_unit_that_was_in_doubt_gives_its_messages_back_when_it_was_not_written() {
    let home = home();
    let ledger = run(home.path(), "commit.write.enospc:5,engine.reopen.fail");
    assert!(ledger.ended, "{ledger:?}");
    let doubtful = |text: &&String| text.contains("[commit-unknown]");
    assert_eq!(ledger.refused.iter().filter(doubtful).count(), 1);
    assert_eq!(ledger.doubtful, [], "it was the removal: {ledger:?}");
    assert_eq!(ledger.removed[0], ledger.put[0], "{ledger:?}");
    assert_eq!(everything(home.path()), expected(&ledger));
}

#[test]
fn a81_a_failed_sync_stops_writing_says_so_and_a_restart_reads_back_what_is_there() {
    let home = home();
    let ledger = run(home.path(), "commit.sync.fail:6");
    assert!(ledger.ended);
    assert_eq!(ledger.stopped, format!("{:?}", StopReason::SyncFailed));
    assert!(ledger.refused[0].contains("[commit-unknown]"), "{ledger:?}");
    assert!(
        ledger.refused[1..]
            .iter()
            .all(|text| text.contains("[store-stopped]")),
        "{ledger:?}"
    );
    audit(home.path(), &ledger);
    // It writes again.
    let store = open(home.path());
    let taken = store.take(&next(&queue("q"), OwnerId(1))).unwrap();
    let settles = vec![settle(&queue("q"), taken[0].header.id, remove())];
    let unit = Unit {
        owner: Some(OwnerId(1)),
        settles,
        ..Unit::default()
    };
    store.commit(unit).wait().unwrap();
}

#[test]
fn sequences_do_not_repeat_after_a_death() {
    let home = home();
    let mut last = Sequence(0);
    for _ in 0..3 {
        let ledger = run(home.path(), "commit.after-sync.abort:9");
        assert!(ledger.put[0].sequence > last);
        last = ledger.put.last().unwrap().sequence;
    }
}
