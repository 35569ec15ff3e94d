//! Bytes that are not what was written, and files that are older than they should be.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oncue_core::names::QueueName;
use oncue_core::unit_of_work::OwnerId;
use oncue_store::embedded::{EmbeddedOptions, EmbeddedStore, OpenError};
use oncue_store::{Store, StoreError, Take};

use super::{Embedded, Home, copy, new_home, open, options};
use crate::rig::{Rig, ids, next, queue, remove};

/// A directory with a queue, closed.
struct Closed {
    path: Home,
    q: QueueName,
}

fn closed(options: EmbeddedOptions, fill: impl FnOnce(&Rig, &QueueName)) -> Closed {
    let (mut rig, path) = Embedded::rig(options);
    let q = rig.define("q");
    fill(&rig, &q);
    rig.store().close();
    Closed { path, q }
}

/// Changes a row as no store would: the engine's checksums are right, ours are not.
fn tamper(path: &Path, space: &str, change: impl Fn(&[u8], &[u8]) -> Option<Vec<u8>>) {
    let database = fjall::Database::builder(path.join("engine"))
        .open()
        .unwrap();
    let rows = database
        .keyspace(space, fjall::KeyspaceCreateOptions::default)
        .unwrap();
    let all: Vec<_> = rows.iter().map(|row| row.into_inner().unwrap()).collect();
    for (key, value) in all {
        if let Some(new) = change(&key, &value) {
            rows.insert(key, new).unwrap();
        }
    }
    database.persist(fjall::PersistMode::SyncAll).unwrap();
}

fn refused(path: &Path) -> OpenError {
    match EmbeddedStore::open(path, options()) {
        Ok(_) => panic!("it opens"),
        Err(error) => error,
    }
}

fn accepting() -> EmbeddedOptions {
    EmbeddedOptions {
        accept_loss: true,
        ..options()
    }
}

fn take(
    store: &EmbeddedStore,
    q: &QueueName,
) -> Result<Vec<oncue_core::message::Message>, StoreError> {
    store.take(&Take {
        max: 100,
        ..next(q, OwnerId(1))
    })
}

#[test]
fn a_flipped_byte_in_a_body_is_an_error_about_that_message_alone() {
    let mut put = Vec::new();
    let home = closed(options(), |rig, q| {
        put.extend((0..3).map(|n| rig.draft(q).body(format!("body {n}")).send()));
    });
    tamper(&home.path, "body", |_, row| {
        let at = row.windows(6).position(|bytes| bytes == b"body 1")?;
        let mut row = row.to_vec();
        row[at] ^= 0x20;
        Some(row)
    });
    let store = open(&home.path);
    assert!(matches!(take(&store, &home.q), Err(StoreError::Corrupt(_))));
    assert!(matches!(
        store.find(&home.q, put[1]),
        Err(StoreError::Corrupt(_))
    ));
    // It was said once; the others are not held up by it.
    assert_eq!(ids(&take(&store, &home.q).unwrap()), [put[0], put[2]]);
    assert_eq!(store.recovered().counts[0].1.depth(), 3);
}

#[test]
fn an_engine_behind_the_high_water_file_is_refused_unless_the_loss_is_accepted() {
    let (mut rig, path) = Embedded::rig(options());
    let q = rig.define("q");
    let kept = rig.put(&q);
    let old = new_home();
    copy(&path.join("engine"), old.path());
    rig.put(&q);
    rig.store().close();
    std::fs::remove_dir_all(path.join("engine")).unwrap();
    copy(old.path(), &path.join("engine"));

    let text = refused(&path).to_string();
    assert!(
        text.contains("commit 2 is the last that the engine has"),
        "{text}"
    );
    assert!(
        text.contains("--accept-loss") && text.ends_with("[store-corrupt]"),
        "{text}"
    );
    let store = EmbeddedStore::open(&path, accepting()).unwrap();
    assert_eq!(ids(&take(&store, &q).unwrap()), [kept]);
    store.close();
    open(&path);
}

/// The newest journal of a directory, and the length of what was written to it.
fn journal(path: &Path) -> (PathBuf, usize) {
    let files = std::fs::read_dir(path.join("engine"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let newest = files
        .filter(|path| path.extension().is_some_and(|e| e == "jnl"))
        .max()
        .unwrap();
    let bytes = std::fs::read(&newest).unwrap();
    let length = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    (newest, length)
}

/// Whether one of the two slots names that commit.
fn high_water_says(path: &Path, commit: u64) -> bool {
    let bytes = std::fs::read(path.join("high-water")).unwrap();
    bytes
        .chunks(16)
        .any(|slot| slot.starts_with(&commit.to_le_bytes()))
}

fn overwrite(file: &Path, position: usize, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    file.write_all_at(bytes, position as u64).unwrap();
}

#[test]
fn a_hole_in_the_journal_is_noticed_and_the_journal_stays_as_it_was() {
    let mut put = Vec::new();
    let home = closed(options(), |rig, q| {
        put.extend((0..100).map(|_| rig.draft(q).body(vec![b'x'; 500]).send()));
    });
    let (file, length) = journal(&home.path);
    overwrite(&file, length / 2, &[0; 4096]);
    let before = std::fs::read(&file).unwrap();
    for _ in 0..2 {
        let error = refused(&home.path);
        assert!(
            matches!(error, OpenError::Lost { .. } | OpenError::Damaged { .. }),
            "{error}"
        );
        assert!(
            std::fs::read(&file).unwrap() == before,
            "the damaged journal was changed"
        );
    }
    let store = EmbeddedStore::open(&home.path, accepting()).unwrap();
    let left = ids(&take(&store, &home.q).unwrap());
    assert!(
        !left.is_empty() && left.len() < 100,
        "{} are left",
        left.len()
    );
    assert_eq!(left, put[..left.len()]);
}

#[test]
fn a83_a_torn_last_batch_is_cut_off_when_nobody_was_answered_for_it() {
    for known_durable in [false, true] {
        let interval = if known_durable { 1 } else { 3_600_000 };
        let options = EmbeddedOptions {
            guard_interval: Duration::from_millis(interval),
            ..options()
        };
        let (mut rig, path) = Embedded::rig(options);
        let q = rig.define("q");
        let kept = rig.put(&q);
        rig.draft(&q).body(vec![b'x'; 9_000]).send();
        let torn = new_home();
        let patience = Instant::now() + Duration::from_secs(60);
        while known_durable && !high_water_says(&path, 3) {
            assert!(
                Instant::now() < patience,
                "commit 3 never came to the high-water file"
            );
            std::thread::yield_now();
        }
        copy(&path, torn.path());
        let (file, _) = journal(torn.path());
        let bytes = std::fs::read(&file).unwrap();
        let body = bytes
            .windows(9_000)
            .position(|bytes| bytes.iter().all(|byte| *byte == b'x'))
            .unwrap();
        overwrite(&file, body + 100, &[0; 4096]);
        if known_durable {
            let error = refused(torn.path());
            assert!(matches!(error, OpenError::Lost { .. }), "{error}");
        } else {
            let store = open(torn.path());
            assert_eq!(ids(&take(&store, &q).unwrap()), [kept]);
        }
    }
}

#[test]
fn an_accepted_loss_leaves_counts_and_order_that_are_true() {
    let mut put = Vec::new();
    let home = closed(options(), |rig, q| {
        for n in 0..30_u8 {
            let draft = rig
                .draft(q)
                .priority(n % 3)
                .correlation("c")
                .expires(crate::rig::END);
            let draft = if n % 2 == 0 {
                draft.group(&format!("g{}", n % 4))
            } else {
                draft
            };
            put.push(draft.send());
        }
        let later = crate::rig::later(oncue_core::unit_of_work::Wait::Retry, crate::rig::NOW);
        rig.take_and(q, later);
        rig.take_and(q, crate::rig::lease(5, crate::rig::END));
        rig.take_and(
            q,
            oncue_core::unit_of_work::Disposition::Park(Default::default()),
        );
        rig.take_and(q, remove());
    });
    let counts_before = open(&home.path).recovered().counts;
    // One keyspace lost what the others kept.
    tamper(&home.path, "straggler", |key, row| {
        (key == [0xff]).then(|| row.to_vec().split_off(1))
    });
    let error = refused(&home.path);
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    let store = EmbeddedStore::open(&home.path, accepting()).unwrap();
    assert_eq!(store.recovered().counts, counts_before);
    drop(store);
    let store = open(&home.path);
    assert_eq!(store.recovered().counts, counts_before);
    let mut all = Vec::new();
    let mut owner = 1;
    loop {
        owner += 1;
        let taken = store
            .take(&Take {
                max: 100,
                ..next(&home.q, OwnerId(owner))
            })
            .unwrap();
        if taken.is_empty() {
            break;
        }
        let settles = taken
            .iter()
            .map(|m| crate::rig::settle(&home.q, m.header.id, remove()))
            .collect();
        all.extend(ids(&taken));
        let unit = oncue_core::unit_of_work::Unit {
            owner: Some(OwnerId(owner)),
            settles,
            ..Default::default()
        };
        store.commit(unit).wait().unwrap();
    }
    let due = store.claim_due(OwnerId(1), crate::rig::END, 100).unwrap();
    assert!(due.iter().all(|due| !all.contains(&due.message.header.id)));
    assert_eq!(all.len() + due.len(), 29);
    assert!(queue("q") == home.q && put.len() == 30);
}
