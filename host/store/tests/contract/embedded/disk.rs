//! A disk without room, and bounds on what is in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oncue_store::embedded::EmbeddedOptions;
use oncue_store::{CommitError, StopReason};

use super::{Embedded, options};
use crate::rig::{Rig, remove};

const MEBIBYTE: u64 = 1024 * 1024;

/// Waits until the guard has looked at the disk and come to `wanted`.
fn wait_for(rig: &Rig, wanted: Option<StopReason>) {
    const LOOKS_MAX: usize = 200_000;
    for _ in 0..LOOKS_MAX {
        if rig.store().status().stopped == wanted {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    panic!("the store does not become {wanted:?}");
}

#[test]
fn a81_a_full_disk_refuses_puts_lets_gets_go_on_and_opens_again_by_itself() {
    let free = Arc::new(AtomicU64::new(100 * MEBIBYTE));
    let (mut rig, path) = Embedded::rig(EmbeddedOptions {
        reserve_bytes: 10 * MEBIBYTE,
        ballast_bytes: MEBIBYTE,
        free_bytes: Some(free.clone()),
        ..options()
    });
    let ballast = path.join("ballast");
    assert_eq!(std::fs::metadata(&ballast).unwrap().len(), MEBIBYTE);
    let q = rig.define("q");
    let put = [rig.put(&q), rig.put(&q)];

    free.store(9 * MEBIBYTE, Ordering::Relaxed);
    wait_for(&rig, Some(StopReason::Full));
    assert_eq!(rig.draft(&q).try_send(), Err(CommitError::Full));
    assert!(
        rig.draft(&q).volatile().try_send().is_ok(),
        "it needs no disk"
    );
    assert!(!ballast.exists());
    assert_eq!(rig.take_and(&q, remove()), put[0]);

    free.store(10 * MEBIBYTE, Ordering::Relaxed);
    assert_eq!(
        rig.draft(&q).try_send(),
        Err(CommitError::Full),
        "there is no room for the ballast"
    );
    free.store(12 * MEBIBYTE, Ordering::Relaxed);
    wait_for(&rig, None);
    rig.put(&q);
    assert_eq!(rig.take_and(&q, remove()), put[1]);
    assert_eq!(rig.stops(), [Some(StopReason::Full), None]);
    rig.check();
}

#[test]
fn bodies_that_are_not_persistent_are_bounded_together() {
    let (mut rig, _) = Embedded::rig(EmbeddedOptions {
        volatile_bytes_max: 10,
        ..options()
    });
    let q = rig.define("q");
    rig.draft(&q).volatile().body("1234567").send();
    let refused = rig.draft(&q).volatile().body("1234").try_send();
    assert_eq!(refused, Err(CommitError::Full));
    rig.draft(&q).volatile().body("123").send();
    rig.draft(&q).body("1234").send();
    assert_eq!(rig.store().status().volatile_bytes, 10);
    rig.take_and(&q, remove());
    rig.draft(&q).volatile().body("1234567").send();
    rig.check();
}

#[test]
fn many_commits_share_a_sync() {
    let (mut rig, _) = Embedded::rig(options());
    let q = rig.define("q");
    let before = rig.store().status();
    let waiting: Vec<_> = (0..200)
        .map(|_| {
            let puts = vec![rig.draft(&q).into_put()];
            rig.store().commit(oncue_core::unit_of_work::Unit {
                puts,
                ..Default::default()
            })
        })
        .collect();
    for commit in waiting {
        commit.wait().unwrap();
    }
    let after = rig.store().status();
    assert_eq!(after.commits - before.commits, 200);
    assert!(
        after.syncs > before.syncs && after.syncs - before.syncs < 200,
        "{after:?}"
    );
    let volatile = after.syncs;
    rig.draft(&q).volatile().send();
    assert_eq!(
        rig.store().status().syncs,
        volatile,
        "what is not persistent needs no sync"
    );
}
