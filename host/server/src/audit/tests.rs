//! What is written is read, in order, across files that are turned over.

use super::read::Page;
use super::*;

fn entry(number: u64) -> Entry {
    Entry {
        time: number,
        ..Entry::new("queue-alter", &format!("q-{number}"), "done")
    }
}

fn objects(page: &Page) -> Vec<String> {
    let of = |entry: &serde_json::Value| entry["object"].as_str().expect("a text").to_owned();
    page.entries.iter().map(of).collect()
}

fn query(max: usize) -> AuditQuery {
    AuditQuery {
        max,
        ..AuditQuery::default()
    }
}

#[test]
fn the_last_entries_are_read_across_files() {
    let folder = tempfile::tempdir().expect("a directory");
    let audit = Audit::with(folder.path().join("a"), 200).expect("opened");
    for number in 1..=9 {
        audit.note(&entry(number));
    }
    let page = read(audit.directory(), &query(4)).expect("readable");
    assert_eq!(objects(&page), ["q-6", "q-7", "q-8", "q-9"]);
    // What comes later follows at the cursor.
    audit.note(&entry(10));
    audit.note(&entry(11));
    let cursor: Cursor = page.next.to_string().parse().expect("a cursor");
    let after = AuditQuery {
        cursor: Some(cursor),
        ..query(1)
    };
    let page = read(audit.directory(), &after).expect("readable");
    assert_eq!((objects(&page), page.more), (vec!["q-10".to_owned()], true));
    let after = AuditQuery {
        cursor: Some(page.next),
        ..query(9)
    };
    let page = read(audit.directory(), &after).expect("readable");
    assert_eq!(
        (objects(&page), page.more),
        (vec!["q-11".to_owned()], false)
    );
}

#[test]
fn entries_since_a_time_are_read_from_the_first() {
    let folder = tempfile::tempdir().expect("a directory");
    let audit = Audit::with(folder.path().join("a"), 200).expect("opened");
    for number in 1..=9 {
        audit.note(&entry(number));
    }
    let since = AuditQuery {
        since: Some(5),
        ..query(2)
    };
    let page = read(audit.directory(), &since).expect("readable");
    assert_eq!(
        (objects(&page), page.more),
        (vec!["q-5".into(), "q-6".into()], true)
    );
}

#[test]
fn what_it_takes_is_bounded() {
    let folder = tempfile::tempdir().expect("a directory");
    let audit = Audit::with(folder.path().join("a"), 200).expect("opened");
    for number in 1..=100 {
        audit.note(&entry(number));
    }
    let files: Vec<_> = std::fs::read_dir(audit.directory())
        .expect("the directory")
        .map(|file| file.expect("a file").metadata().expect("known").len())
        .collect();
    assert_eq!(files.len(), FILES);
    assert!(files.iter().all(|length| *length <= 200), "{files:?}");
    // A log that is opened again goes on.
    drop(audit);
    let audit = Audit::with(folder.path().join("a"), 200).expect("opened");
    audit.note(&entry(101));
    let page = read(audit.directory(), &query(2)).expect("readable");
    assert_eq!(objects(&page), ["q-100", "q-101"]);
}

#[test]
fn a_line_that_is_no_entry_is_passed_over() {
    let folder = tempfile::tempdir().expect("a directory");
    let audit = Audit::with(folder.path().join("a"), 1 << 20).expect("opened");
    audit.note(&entry(1));
    let path = audit.directory().join(FILE);
    let mut file = File::options().append(true).open(path).expect("opened");
    file.write_all(b"nonsense\n{\"time\":").expect("written");
    let page = read(audit.directory(), &query(9)).expect("readable");
    assert_eq!(objects(&page), ["q-1"]);
}
