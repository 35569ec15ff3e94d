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
    let of = |entry: &serde_json::Value| entry["object"].as_str().unwrap_or_default().to_owned();
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

/// All entries that are wanted, by going backwards some at a time.
fn backwards(audit: &Audit, mut wanted: AuditQuery) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    loop {
        let page = read(audit.directory(), &wanted).expect("readable");
        pages.push(objects(&page));
        let Some(previous) = page.previous else {
            return pages;
        };
        let point = previous.to_string().parse().expect("a cursor");
        wanted.before = Some(point);
    }
}

#[test]
fn entries_before_a_point_are_read_backwards_across_files() {
    let folder = tempfile::tempdir().expect("a directory");
    let audit = Audit::with(folder.path().join("a"), 200).expect("opened");
    for number in 1..=9 {
        audit.note(&entry(number));
    }
    let pages = backwards(&audit, query(4));
    assert_eq!(
        pages,
        [
            vec!["q-6", "q-7", "q-8", "q-9"],
            vec!["q-2", "q-3", "q-4", "q-5"],
            vec!["q-1"]
        ]
    );
    // A page that ends with the first entry is the last one.
    assert_eq!(backwards(&audit, query(3)).len(), 3);
    let since = AuditQuery {
        since: Some(8),
        before: read(audit.directory(), &query(1))
            .expect("readable")
            .previous,
        ..query(9)
    };
    assert_eq!(backwards(&audit, since), [["q-8"]]);
    // The file of the point was dropped: everything before it too.
    let gone = AuditQuery {
        before: Some(Cursor {
            file: 1,
            offset: 100,
        }),
        ..query(9)
    };
    assert_eq!(backwards(&audit, gone), [Vec::<String>::new()]);
}

#[test]
fn a_long_file_is_read_backwards_in_parts() {
    let folder = tempfile::tempdir().expect("a directory");
    let audit = Audit::with(folder.path().join("a"), 64 << 20).expect("opened");
    // Several times what is read at once, with lines across its edges.
    let count = 9_000;
    for number in 1..=count {
        audit.note(&entry(number));
    }
    let pages = backwards(&audit, query(1_000));
    let mut all: Vec<String> = pages.into_iter().rev().flatten().collect();
    let wanted: Vec<String> = (1..=count).map(|number| format!("q-{number}")).collect();
    assert_eq!(all.len(), wanted.len());
    assert_eq!(all, wanted);
    // One that is rare is found all the same.
    let rare = AuditQuery {
        wanted: Wanted {
            object: "q-7".to_owned(),
            ..Wanted::default()
        },
        ..query(2_000)
    };
    all = backwards(&audit, rare).concat();
    assert_eq!((all.len(), all[0].as_str()), (1_111, "q-7"));
}

#[test]
fn only_wanted_entries_are_read() {
    let folder = tempfile::tempdir().expect("a directory");
    let audit = Audit::with(folder.path().join("a"), 200).expect("opened");
    let by = |who: &str, action: &str, object: &str, result: &str| {
        audit.note(&Entry::new(action, object, result).by(Some(who), None));
    };
    by("ops", "queue-alter", "orders", "done");
    by("ops", "queue-clear", "Orders.eu", "not-permitted");
    by("shop", "queue-clear", "orders", "done");
    by("shop", "login", "", "done");
    let check = |identity: &str, action: &str, object: &str, refused, wanted: &[&str]| {
        let texts = [identity, action, object].map(str::to_owned);
        let [identity, action, object] = texts;
        let which = AuditQuery {
            wanted: Wanted {
                identity,
                action,
                object,
                refused,
            },
            ..query(9)
        };
        let page = read(audit.directory(), &which).expect("readable");
        assert_eq!(objects(&page), wanted, "{which:?}");
        let forward = AuditQuery {
            since: Some(0),
            ..which
        };
        let page = read(audit.directory(), &forward).expect("readable");
        assert_eq!(objects(&page), wanted, "{forward:?}");
    };
    check("OPS", "", "", false, &["orders", "Orders.eu"]);
    check("", "clear", "", false, &["Orders.eu", "orders"]);
    check("", "", "ORDERS", false, &["orders", "Orders.eu", "orders"]);
    check("", "", "", true, &["Orders.eu"]);
    check("shop", "log", "", false, &[""]);
    check("shop", "clear", "", true, &[]);
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
