//! What may be opened, and what opening costs.

use oncue_store::Store;
use oncue_store::embedded::{EmbeddedOptions, EmbeddedStore, OpenError};

use super::{Embedded, new_home, open, options};
use crate::rig::{ids, next, queue, remove};

fn refusal(path: &std::path::Path) -> OpenError {
    match EmbeddedStore::open(path, options()) {
        Ok(_) => panic!("it opens"),
        Err(error) => error,
    }
}

#[test]
fn a_second_opening_is_refused_and_names_the_process() {
    let (rig, path) = Embedded::rig(options());
    let refused = refusal(&path).to_string();
    assert!(
        refused.contains(&format!("process {}", std::process::id())),
        "{refused}"
    );
    assert!(refused.ends_with("[store-in-use]"), "{refused}");
    rig.store().close();
    open(&path);
}

#[test]
fn a_directory_with_something_else_in_it_is_refused_and_left_alone() {
    let home = new_home();
    std::fs::write(home.path().join("letters.txt"), "mine").unwrap();
    let refused = refusal(home.path());
    assert!(
        matches!(&refused, OpenError::Foreign { found, .. } if found == "\"letters.txt\""),
        "{refused}"
    );
    let names: Vec<_> = std::fs::read_dir(home.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names, ["letters.txt"]);
}

#[test]
fn a84_a_newer_format_is_refused_with_the_way_forward_and_left_alone() {
    let (mut rig, path) = Embedded::rig(options());
    let q = rig.define("q");
    let put = rig.put(&q);
    rig.store().close();
    drop(rig);
    let file = path.join("format");
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, "oncue store format 2\n");
    for newer in ["oncue store format 3\n", "another store\n"] {
        std::fs::write(&file, newer).unwrap();
        let refused = refusal(&path);
        assert!(
            matches!(refused, OpenError::Version { known: 2, .. }),
            "{refused}"
        );
        let refused = refused.to_string();
        assert!(
            refused.contains("open it with the version that wrote it"),
            "{refused}"
        );
    }
    // An older one is opened, and from then on belongs to this version.
    std::fs::write(&file, "oncue store format 1\n").unwrap();
    let store = open(&path);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    let taken = store
        .take(&next(&q, oncue_core::unit_of_work::OwnerId(1)))
        .unwrap();
    assert_eq!(ids(&taken), [put]);
}

#[test]
fn a_first_opening_that_did_not_come_to_its_end_is_begun_again() {
    let (rig, path) = Embedded::rig(options());
    rig.store().close();
    drop(rig);
    std::fs::remove_file(path.join("format")).unwrap();
    let store = open(&path);
    assert!(!store.recovered().unclean);
    assert!(store.recovered().counts.is_empty());
}

#[test]
fn a_restart_reads_rows_by_the_number_of_queues() {
    const QUEUES: usize = 10;
    const MESSAGES: usize = 500;
    let (mut rig, path) = Embedded::rig(EmbeddedOptions {
        window_rows: 64,
        ..options()
    });
    let queues: Vec<_> = (0..QUEUES).map(|n| rig.define(&format!("q{n}"))).collect();
    for q in &queues {
        let draft = |_| {
            rig.draft(q)
                .expires(crate::rig::END)
                .correlation("c")
                .group("g")
                .into_put()
        };
        let puts = (0..MESSAGES).map(draft).collect();
        rig.commit(oncue_core::unit_of_work::Unit {
            puts,
            ..Default::default()
        })
        .unwrap();
    }
    drop(rig);
    for clean in [false, true] {
        let store = open(&path);
        assert_eq!(store.recovered().unclean, !clean);
        assert_eq!(store.recovered().counts.len(), QUEUES);
        for (name, counts) in store.recovered().counts {
            assert_eq!(counts.depth(), MESSAGES as i64, "{name}");
        }
        let read = store.rows_read();
        // The queues, their definitions, and about twenty rows of the store's own.
        assert!(read <= 2 * QUEUES as u64 + 30, "{read} rows were read");
        store.close();
    }
}

#[test]
fn a_restart_finds_the_head_of_a_drained_queue_without_walking() {
    let (mut rig, path) = Embedded::rig(options());
    let q = rig.define("q");
    let put: Vec<_> = (0..300).map(|_| rig.put(&q)).collect();
    for _ in 0..290 {
        rig.take_and(&q, remove());
    }
    drop(rig);
    let store = open(&path);
    let before = store.rows_read();
    let taken = store
        .take(&next(&queue("q"), oncue_core::unit_of_work::OwnerId(1)))
        .unwrap();
    assert_eq!(ids(&taken), put[290..291]);
    assert!(
        store.rows_read() - before <= 20,
        "{} rows",
        store.rows_read() - before
    );
}
