//! Disks that are full, read-only, or fail to sync.

use serde_json::{Value, json};

use crate::host::{Home, Host, oncue};
use crate::ledger::{Ledger, browse};
use crate::mount::Disk;
use crate::wait::until;

/// Puts until one is refused, and answers the refusal.
fn put_until_refused(ledger: &Ledger, host: &Host) -> Value {
    let mut refusal = None;
    until("a refused put", || {
        refusal = ledger.put(host).expect("the host answers").err();
        refusal.is_some()
    });
    refusal.expect("a refusal")
}

fn check_sentence(problem: &Value, code: &str, parts: &[&str]) {
    assert_eq!(problem["code"], code, "{problem}");
    let detail = problem["detail"].as_str().expect("a sentence");
    for part in parts {
        assert!(detail.contains(part), "{part}: {detail}");
    }
}

fn store_word(host: &Host) -> String {
    host.get("/v1/status").expect(200).json()["store"]
        .as_str()
        .expect("a word")
        .to_owned()
}

#[test]
fn a81_a_write_that_meets_a_full_disk_is_refused_and_service_resumes() {
    let home = Home::new();
    Ledger::prepare(&home);
    let ledger = Ledger::default();
    let host = home.start_with(&[], &[("ONCUE_FAIL_POINT", "commit.write.enospc:20")]);
    // Some put meets it, or some task; whoever does, puts are taken again afterwards.
    ledger.load(&host, || {
        until("the full disk", || host.log().contains("a write failed"));
        until("room again", || store_word(&host) == "ok");
    });
    until("an acknowledged put", || {
        ledger.put(&host).expect("an answer").is_ok()
    });
    for code in ledger.refusals() {
        assert_eq!(code, "store-full");
    }
    crate::ledger::drain(&host);
    let failed = host.get("/v1/tasks?failed=true").expect(200).json();
    assert_eq!(failed, json!([]), "a full disk is no message's fault");
    host.kill();
    ledger.drain_and_judge(&home);
}

#[test]
fn a81_below_the_reserve_puts_are_refused_and_gets_go_on() {
    let home = Home::new();
    let host = home.start();
    host.define("q", json!({"trigger": "none"}));
    let id = host.put("q", b"before");
    host.kill();
    // More than any disk has free.
    let host = home.start_with(&["--store-reserve", "1000000 GiB"], &[]);
    let refused = host.post("/v1/queues/q/messages", b"x").expect(503).json();
    check_sentence(&refused, "store-full", &["full"]);
    assert_eq!(store_word(&host), "full");
    let got = host.post("/v1/queues/q/get?lease=1m", &[]).expect(200);
    assert_eq!(got.header("oncue-id"), Some(id.as_str()));
    let token = got.header("oncue-lease").expect("a lease");
    assert!(host.post(&format!("/v1/leases/{token}/ack"), &[]).status < 300);
    assert_eq!(host.stop(), 0);
    let host = home.start();
    assert_eq!(host.depth("q"), 0);
    host.put("q", b"after");
}

#[test]
fn a81_a_disk_that_fills_up_refuses_puts_loses_nothing_and_serves_again_when_there_is_room() {
    let Some(disk) = Disk::mount(1024) else {
        return;
    };
    let home = Home::within(&disk.path());
    Ledger::prepare(&home);
    let ledger = Ledger::default();
    let flags = ["--store-reserve", "16 MiB", "--store-ballast", "4 MiB"];
    let host = home.start_with(&flags, &[]);
    assert!(ledger.put(&host).is_some_and(|said| said.is_ok()));
    let filler = disk.fill_but(8 << 20);
    let refusal = put_until_refused(&ledger, &host);
    check_sentence(&refusal, "store-full", &["full"]);
    assert_eq!(store_word(&host), "full");
    std::fs::remove_file(filler).unwrap();
    until("room again", || {
        ledger.put(&host).expect("an answer").is_ok()
    });
    assert_eq!(store_word(&host), "ok");
    crate::ledger::drain(&host);
    host.kill();
    ledger.drain_and_judge(&home);
}

#[test]
fn a81_a_disk_without_a_reserve_that_is_full_to_the_last_byte_loses_nothing() {
    let Some(disk) = Disk::mount(1024) else {
        return;
    };
    let home = Home::within(&disk.path());
    let flags = ["--store-reserve", "0", "--store-ballast", "4 MiB"];
    let host = home.start_with(&flags, &[]);
    host.define("q", json!({"trigger": "none"}));
    let filler = disk.fill_but(1 << 20);
    let body = vec![b'x'; 256 << 10];
    let mut acknowledged = Vec::new();
    let mut refused = None;
    until("the disk to be full", || {
        let answer = host.post("/v1/queues/q/messages", &body);
        match answer.status {
            201 => acknowledged.push(answer.json()["id"].clone()),
            _ => refused = Some(answer.json()),
        }
        refused.is_some()
    });
    let refused = refused.expect("a refusal");
    assert!(["store-full", "commit-unknown"].contains(&refused["code"].as_str().unwrap()));
    let later = host.post("/v1/queues/q/messages", &body).expect(503).json();
    check_sentence(&later, "store-full", &["full"]);
    std::fs::remove_file(filler).unwrap();
    until("room again", || {
        let answer = host.post("/v1/queues/q/messages", b"again");
        if answer.status == 201 {
            acknowledged.push(answer.json()["id"].clone());
        }
        answer.status == 201
    });
    let mut running = Some(host);
    for _ in 0..2 {
        // Judged as it is, and once more after a kill.
        let host = running
            .take()
            .unwrap_or_else(|| home.start_with(&flags, &[]));
        let found: Vec<_> = browse(&host, "q").iter().map(|m| m["id"].clone()).collect();
        let lost: Vec<_> = acknowledged
            .iter()
            .filter(|id| !found.contains(id))
            .collect();
        assert!(lost.is_empty(), "{lost:?}");
        let more = usize::from(refused["code"] == "commit-unknown");
        assert!(found.len() <= acknowledged.len() + more);
        host.kill();
    }
}

/// Puts to a host whose next sync fails: that put is unknown, the later ones are refused, and the
/// host says why.
fn check_failed_sync(ledger: &Ledger, host: &Host) {
    let first = put_until_refused(ledger, host);
    assert!(["commit-unknown", "store-stopped"].contains(&first["code"].as_str().unwrap()));
    let later = put_until_refused(ledger, host);
    check_sentence(&later, "store-stopped", &["restart"]);
    assert_eq!(store_word(host), "sync-failed");
    host.get("/livez").expect(200);
    assert_eq!(
        host.get("/readyz").expect(503).json()["code"],
        "store-stopped"
    );
    for queue in ["echo", "running-total"] {
        assert_eq!(host.reason(queue), "store-stopped");
    }
    let explained = host.get("/v1/queues/echo/explain").expect(200).json();
    assert_eq!(explained["reason"], "store-stopped");
    let (code, text, _) = oncue(host, &["explain", "echo"]);
    assert_eq!(code, 0);
    assert!(text.contains("the store does not write"), "{text}");
}

#[test]
fn a81_after_a_failed_sync_the_store_stops_writing_says_so_and_recovers_on_restart() {
    let home = Home::new();
    Ledger::prepare(&home);
    let ledger = Ledger::default();
    for count in [1, 7, 30] {
        let point = format!("commit.sync.fail:{}", count + 6);
        let host = home.start_with(&[], &[("ONCUE_FAIL_POINT", &point)]);
        ledger.load(&host, || {
            until("the failed sync", || host.log().contains("a sync failed"));
        });
        check_failed_sync(&ledger, &host);
        // An orderly end is still possible.
        if count == 7 {
            assert_eq!(host.stop(), 0);
        } else {
            host.kill();
        }
    }
    assert!(ledger.refusals().iter().all(|code| code == "store-stopped"));
    ledger.drain_and_judge(&home);
}

#[test]
fn a81_a_disk_that_dies_under_load_is_told_from_a_full_one() {
    let Some(disk) = Disk::mount(1024) else {
        return;
    };
    let home = Home::within(&disk.path());
    Ledger::prepare(&home);
    disk.sync();
    let ledger = Ledger::default();
    let host = home.start_with(&["--store-reserve", "0"], &[]);
    ledger.load_for(&host, std::time::Duration::from_millis(100), || {
        host.freeze();
        disk.cut_power();
        host.signal("CONT");
        until("a store that has stopped", || store_word(&host) != "ok");
    });
    let refusal = put_until_refused(&ledger, &host);
    let code = refusal["code"].as_str().expect("a code");
    assert!(
        ["store-full", "store-stopped", "commit-unknown"].contains(&code),
        "{refusal}"
    );
    host.get("/livez").expect(200);
    host.kill();
    disk.restore_power();
    ledger.drain_and_judge(&home);
}

#[test]
fn a81_a_directory_that_can_only_be_read_is_refused_with_a_sentence_and_not_touched() {
    let Some(disk) = Disk::mount(1024) else {
        return;
    };
    let home = Home::within(&disk.path());
    Ledger::prepare(&home);
    let ledger = Ledger::default();
    let host = home.start();
    ledger.load(&host, || {});
    assert_eq!(host.stop(), 0);
    disk.make_read_only();
    let log = home.try_start(&[], &[]).err().expect("refused");
    for part in ["cannot be opened", "writable", "[store-stopped]"] {
        assert!(log.contains(part), "{part}: {log}");
    }
    disk.make_writable();
    ledger.drain_and_judge(&home);
}
