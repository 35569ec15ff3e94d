//! The orderly end, the sudden end, and the end of the power.

use std::time::Duration;

use serde_json::json;

use crate::chance::{chance, kills};
use crate::host::Home;
use crate::ledger::{Ledger, browse};
use crate::mount::Disk;
use crate::wait::until;

/// A spell of load before an end, in milliseconds.
const LOAD_MS: std::ops::Range<u64> = 20..300;

#[test]
fn a82_sigterm_under_load_drains_loses_nothing_and_the_next_host_goes_on() {
    let mut chance = chance("a82");
    let home = Home::new();
    Ledger::prepare(&home);
    let ledger = Ledger::default();
    for _ in 0..4 {
        let host = home.start_with(&["--plugin-settle", "10ms"], &[]);
        let time = Duration::from_millis(chance.u64(LOAD_MS));
        ledger.load_for(&host, time, || host.signal("TERM"));
        let (code, log) = host.wait();
        assert_eq!(code, 0, "{log}");
        // Within the deadline: nothing had to be cut off.
        assert!(log.contains("every task ended by itself"), "{log}");
        assert!(!log.contains("requests were cut off"), "{log}");
    }
    eprintln!("a82: {:?}", ledger.counts());
    for code in ledger.refusals() {
        assert_eq!(code, "draining");
    }
    // What was owed is started with no put.
    ledger.drain_and_judge(&home);
}

#[test]
fn a82_a_task_that_outlives_the_deadline_is_cut_off_and_its_message_is_back_uncharged() {
    let home = Home::new();
    let sleeps = oncue_artifacts::ALL
        .iter()
        .find(|s| s.name == "sleeps")
        .unwrap();
    let manifest = "[process]\ndeadline = \"10m\"\ntask-deadline = \"20m\"\n[queue.sleeps]\n";
    std::fs::write(home.plugins().join("sleeps.toml"), manifest).unwrap();
    home.copy(std::path::Path::new(sleeps.component), "sleeps.wasm");
    for start in 0..2 {
        let host = home.start_with(&["--shutdown-deadline", "500ms"], &[]);
        host.wait_for_plugin("sleeps", "ready");
        if start == 0 {
            host.put("sleeps", b"get");
        }
        // At the second start with no put.
        until("the task", || host.queue("sleeps")["running"] == 1);
        until("the message in hand", || {
            browse(&host, "sleeps")[0]["state"] == "in-unit"
        });
        host.signal("TERM");
        let (code, log) = host.wait();
        assert_eq!(code, 0, "{log}");
        assert!(log.contains("cut off at the deadline"), "{log}");
    }
    std::fs::remove_file(home.plugins().join("sleeps.wasm")).unwrap();
    let host = home.start();
    let messages = browse(&host, "sleeps");
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["state"], "ready");
    assert_eq!(messages[0]["backout-count"], 0);
    assert_eq!(messages[0]["interrupted-count"], 0);
}

#[test]
fn a82_a_second_signal_ends_at_once_and_loses_nothing() {
    let home = Home::new();
    Ledger::prepare(&home);
    let ledger = Ledger::default();
    let host = home.start();
    ledger.load_for(&host, Duration::from_millis(50), || {
        host.signal("TERM");
        host.signal("INT");
    });
    let (code, log) = host.wait();
    // The end may have come between the two.
    assert!(
        code == 0 || log.contains("ended at once by a second signal"),
        "{code}: {log}"
    );
    ledger.drain_and_judge(&home);
}

#[test]
fn a83_sigterm_sigkill_and_power_cuts_in_a_loop_under_load() {
    let mut chance = chance("a83");
    // Without a disk of its own the cut is an abort between write and sync, which drops nothing.
    let disk = Disk::mount(512);
    let home = disk
        .as_ref()
        .map_or_else(Home::new, |disk| Home::within(&disk.path()));
    Ledger::prepare(&home);
    if let Some(disk) = &disk {
        disk.sync();
    }
    let ledger = Ledger::default();
    let mut ends = [0_u32; 3];
    for round in 0..kills() {
        // Each way of ending is followed by each other one.
        let end = if round < 6 {
            [0, 2, 1, 2, 0, 1][round as usize]
        } else {
            chance.usize(0..3)
        };
        ends[end] += 1;
        let point = format!("commit.before-sync.abort:{}", chance.u32(10..100));
        let aborts = end == 2 && disk.is_none();
        let environment = [("ONCUE_FAIL_POINT", point.as_str())];
        let environment = if aborts { &environment[..] } else { &[] };
        let host = home.start_with(&["--plugin-settle", "10ms"], environment);
        if chance.bool() {
            host.wait_for_plugin("echo", "ready");
        }
        let time = Duration::from_millis(chance.u64(LOAD_MS));
        ledger.load_for(&host, time, || match (end, &disk) {
            (0, _) => host.signal("TERM"),
            (2, Some(disk)) => {
                host.freeze();
                disk.cut_power();
                host.signal("KILL");
            }
            _ => host.signal("KILL"),
        });
        if end == 0 {
            assert_eq!(host.wait().0, 0);
        } else {
            host.kill();
        }
        if let Some(disk) = disk.as_ref().filter(|_| end == 2) {
            disk.restore_power();
        }
    }
    eprintln!("a83: TERM, KILL, power {ends:?}; {:?}", ledger.counts());
    assert!(ledger.counts().acknowledged > 0);
    ledger.drain_and_judge(&home);
    // Not needed by the judgement; shows that the queue manager still takes new definitions.
    let host = home.start();
    host.define("new", json!({"trigger": "none"}));
}
