//! State keys: read with a revision, written all or nothing, in conflict when another was faster.

use bytes::Bytes;
use oncue_core::unit_of_work::{Revision, StateRead, StateWrite, Unit};
use oncue_store::CommitError;

use crate::rig::Rig;

fn read(key: &str, revision: Option<Revision>) -> StateRead {
    StateRead {
        namespace: "plugin".to_owned(),
        key: key.to_owned(),
        revision,
    }
}

fn write(key: &str, value: Option<&'static str>) -> StateWrite {
    let value = value.map(Bytes::from);
    StateWrite {
        namespace: "plugin".to_owned(),
        key: key.to_owned(),
        value,
    }
}

fn change(rig: &Rig, reads: &[StateRead], writes: &[StateWrite]) -> Result<Revision, CommitError> {
    let unit = Unit {
        reads: reads.to_vec(),
        writes: writes.to_vec(),
        ..Unit::default()
    };
    rig.commit(unit).map(|receipt| Revision(receipt.commit))
}

fn value(rig: &Rig, key: &str) -> Option<(Bytes, Revision)> {
    rig.store().state("plugin", key).unwrap()
}

pub fn a_written_key_has_the_commits_number_as_revision(rig: &mut Rig) {
    assert_eq!(value(rig, "k"), None);
    let first = change(rig, &[], &[write("k", Some("1")), write("l", Some("1"))]).unwrap();
    assert_eq!(value(rig, "k"), Some((Bytes::from("1"), first)));
    let second = change(rig, &[], &[write("k", Some("2"))]).unwrap();
    assert!(second > first);
    assert_eq!(value(rig, "k"), Some((Bytes::from("2"), second)));
    assert_eq!(value(rig, "l"), Some((Bytes::from("1"), first)));
}

pub fn the_last_write_of_a_key_wins(rig: &mut Rig) {
    let writes = [
        write("k", Some("1")),
        write("k", None),
        write("k", Some("3")),
        write("l", Some("1")),
    ];
    change(rig, &[], &writes).unwrap();
    assert_eq!(
        value(rig, "k").map(|(value, _)| value),
        Some(Bytes::from("3"))
    );
    change(rig, &[], &[write("l", Some("2")), write("l", None)]).unwrap();
    assert_eq!(value(rig, "l"), None);
}

pub fn an_outdated_read_is_a_conflict_and_nothing_is_written(rig: &mut Rig) {
    let q = rig.define("q");
    let old = change(rig, &[], &[write("k", Some("1"))]).unwrap();
    let new = change(rig, &[read("k", Some(old))], &[write("k", Some("2"))]).unwrap();
    for seen in [Some(old), None] {
        let unit = Unit {
            reads: vec![read("other", None), read("k", seen)],
            writes: vec![write("k", Some("3")), write("other", Some("3"))],
            puts: vec![rig.draft(&q).into_put()],
            ..Unit::default()
        };
        assert_eq!(rig.commit(unit), Err(CommitError::Conflict("k".to_owned())));
    }
    assert_eq!(value(rig, "k"), Some((Bytes::from("2"), new)));
    assert_eq!(value(rig, "other"), None);
    assert_eq!(rig.counts(&q).depth(), 0);
}

pub fn a_deleted_key_is_absent_and_comes_back_with_a_new_revision(rig: &mut Rig) {
    let first = change(rig, &[read("k", None)], &[write("k", Some("1"))]).unwrap();
    change(rig, &[read("k", Some(first))], &[write("k", None)]).unwrap();
    assert_eq!(value(rig, "k"), None);
    assert!(change(rig, &[read("k", Some(first))], &[]).is_err());
    let again = change(rig, &[read("k", None)], &[write("k", Some("1"))]).unwrap();
    assert_ne!(again, first);
    assert!(change(rig, &[read("k", None)], &[]).is_err());
}

pub fn namespaces_are_apart(rig: &mut Rig) {
    change(rig, &[], &[write("k", Some("1"))]).unwrap();
    let namespace = "plugin2".to_owned();
    let other = StateWrite {
        namespace,
        key: "k".to_owned(),
        value: Some(Bytes::from("2")),
    };
    change(rig, &[], &[other]).unwrap();
    assert_eq!(
        value(rig, "k").map(|(value, _)| value),
        Some(Bytes::from("1"))
    );
    assert_eq!(
        rig.store().state("plugin2", "k").unwrap().map(|(v, _)| v),
        Some(Bytes::from("2"))
    );
    assert_eq!(rig.store().state_keys("plugin", None, 9).unwrap(), ["k"]);
    assert_eq!(rig.store().state_keys("plug", None, 9).unwrap(), [""; 0]);
}

pub fn keys_are_listed_in_order_and_by_pages(rig: &mut Rig) {
    let keys = ["b", "a", "", "a/b", "ü", "c", "a\0b"];
    let writes: Vec<_> = keys.iter().map(|key| write(key, Some("x"))).collect();
    change(rig, &[], &writes).unwrap();
    let mut expected = keys.map(str::to_owned);
    expected.sort();
    let mut listed: Vec<String> = Vec::new();
    loop {
        let page = rig
            .store()
            .state_keys("plugin", listed.last().map(String::as_str), 2)
            .unwrap();
        assert!(page.len() <= 2);
        if page.is_empty() {
            break;
        }
        listed.extend(page);
    }
    assert_eq!(listed, expected);
}

pub fn an_empty_value_is_a_value(rig: &mut Rig) {
    change(rig, &[], &[write("k", Some(""))]).unwrap();
    assert_eq!(value(rig, "k").map(|(value, _)| value), Some(Bytes::new()));
}
