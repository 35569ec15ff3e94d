//! Units of work: all or nothing, behind a fence.

use bytes::Bytes;
use oncue_core::message::{Attempts, Sequence};
use oncue_core::names::QueueName;
use oncue_core::unit_of_work::{
    Disposition, RecordChange, RecordKind, Revision, StateRead, StateWrite, TaskRow, Unit,
};
use oncue_store::{CommitError, MessageState, StopReason};

use crate::rig::{END, NOW, Rig, ids, queue, record, remove, requeue, settle};

fn state(key: &str) -> StateWrite {
    StateWrite {
        namespace: "n".to_owned(),
        key: key.to_owned(),
        value: Some(Bytes::from("v")),
    }
}

fn read(key: &str, revision: Option<Revision>) -> StateRead {
    StateRead {
        namespace: "n".to_owned(),
        key: key.to_owned(),
        revision,
    }
}

pub fn everything_in_a_unit_is_applied(rig: &mut Rig) {
    let (q, out) = (rig.define("q"), rig.define("out"));
    let taken = rig.put(&q);
    let (owner, _) = rig.take_one(&q);
    let put = rig.draft(&out).into_put();
    let id = put.header.id;
    let control = RecordChange {
        kind: RecordKind::Control,
        name: "q".to_owned(),
        value: Some(Bytes::from("off")),
    };
    let receipt = rig
        .commit(Unit {
            owner: Some(owner),
            settles: vec![settle(&q, taken, remove())],
            puts: vec![put],
            writes: vec![state("k")],
            records: vec![control],
            task: Some(TaskRow {
                id: 1,
                value: Bytes::from("task"),
            }),
            ..Unit::default()
        })
        .unwrap();
    assert_eq!(receipt.puts[0].id, id);
    assert_eq!(rig.state(&q, taken), None);
    assert_eq!(rig.state(&out, id), Some(MessageState::Ready));
    assert!(rig.store().state("n", "k").unwrap().is_some());
    assert_eq!(
        rig.store().tasks(None, 9).unwrap(),
        [(1, Bytes::from("task"))]
    );
}

type Spoil<'a> = &'a dyn Fn(&mut Unit);

/// One fault in a unit that does everything, for each kind of fault.
pub fn a_unit_with_one_fault_leaves_no_trace(rig: &mut Rig) {
    let (q, out) = (rig.define("q"), rig.define("out"));
    let nowhere = queue("nowhere");
    let other = rig.put(&out);
    rig.draft(&out).key("k", Some(1), END).send();
    let taken = rig.put(&q);
    let (owner, _) = rig.take_one(&q);
    let attempts = Attempts::default();
    let faults: [(&str, Spoil<'_>); 8] = [
        ("fenced", &|unit| {
            unit.settles.push(settle(&out, other, remove()))
        }),
        ("no owner", &|unit| unit.owner = None),
        ("twice", &|unit| {
            unit.settles.push(settle(&q, taken, requeue()))
        }),
        ("revision", &|unit| {
            unit.reads.push(read("k", Some(Revision(1))))
        }),
        ("no queue", &|unit| {
            unit.puts.push(rig.draft(&nowhere).into_put())
        }),
        ("no queue to move to", &|unit| {
            let (to, record) = (nowhere.clone(), None);
            unit.settles[0].disposition = Disposition::Move {
                to,
                record,
                attempts,
            };
        }),
        ("full", &|unit| {
            unit.puts.push(rig.draft(&out).max_depth(2).into_put())
        }),
        ("key", &|unit| {
            unit.puts
                .push(rig.draft(&out).key("k", Some(2), END).into_put())
        }),
    ];
    let counts = || (rig.counts(&q), rig.counts(&out), rig.changes());
    let before = counts();
    for (name, spoil) in faults {
        let put = rig.draft(&out).key("fresh", Some(1), END).into_put();
        let id = put.header.id;
        let mut unit = Unit {
            owner: Some(owner),
            settles: vec![settle(&q, taken, remove())],
            puts: vec![put],
            reads: vec![read("k", None)],
            writes: vec![state("k")],
            records: vec![record(&queue("made"), Some("row"))],
            task: Some(TaskRow {
                id: 1,
                value: Bytes::from("task"),
            }),
            ..Unit::default()
        };
        spoil(&mut unit);
        assert!(rig.commit(unit).is_err(), "{name}");
        assert_eq!(counts(), before, "{name}");
        assert_eq!(rig.state(&q, taken), Some(MessageState::InUnit), "{name}");
        assert_eq!(rig.state(&out, id), None, "{name}");
        assert_no_trace(rig, &out, name);
    }
    rig.settle(owner, &q, taken, remove())
        .expect("the owner still holds its message");
}

fn assert_no_trace(rig: &Rig, out: &QueueName, name: &str) {
    assert_eq!(rig.store().state("n", "k"), Ok(None), "{name}");
    assert_eq!(rig.store().key(out, "fresh", NOW), Ok(None), "{name}");
    assert!(rig.store().tasks(None, 9).unwrap().is_empty(), "{name}");
    assert!(
        rig.browse(&queue("made"), None, 1, NOW, false).is_err(),
        "{name}"
    );
}

pub fn the_faults_have_their_names(rig: &mut Rig) {
    let (q, nowhere) = (rig.define("q"), queue("nowhere"));
    let unknown = Err(CommitError::UnknownQueue(nowhere.clone()));
    assert_eq!(rig.draft(&nowhere).try_send(), unknown);
    let id = rig.put(&q);
    assert_eq!(
        rig.settle(rig.owner(), &q, id, remove()),
        Err(CommitError::Fenced),
        "never taken"
    );
    let (owner, _) = rig.take_one(&q);
    let away = Disposition::Move {
        to: nowhere,
        record: None,
        attempts: Attempts::default(),
    };
    assert_eq!(rig.settle(owner, &q, id, away).err(), unknown.err());
    assert_eq!(
        rig.settle(owner, &queue("nowhere"), id, remove()),
        Err(CommitError::Fenced)
    );
}

pub fn a_released_message_is_fenced(rig: &mut Rig) {
    let q = rig.define("q");
    let id = rig.put(&q);
    let (first, _) = rig.take_one(&q);
    rig.release(first, &q, id);
    assert_eq!(
        rig.settle(first, &q, id, remove()),
        Err(CommitError::Fenced)
    );
    let (second, _) = rig.take_one(&q);
    assert_eq!(
        rig.settle(first, &q, id, remove()),
        Err(CommitError::Fenced)
    );
    rig.settle(second, &q, id, remove()).unwrap();
    assert_eq!(
        rig.settle(second, &q, id, remove()),
        Err(CommitError::Fenced),
        "settled once"
    );
}

pub fn a_second_release_is_harmless(rig: &mut Rig) {
    let q = rig.define("q");
    let id = rig.put(&q);
    let (first, _) = rig.take_one(&q);
    rig.release(first, &q, id);
    let (second, _) = rig.take_one(&q);
    let changes = rig.changes();
    rig.release(first, &q, id);
    rig.store().release(
        first,
        &[
            (queue("nowhere"), id.sequence),
            (q.clone(), Sequence(u64::MAX)),
        ],
    );
    assert_eq!(rig.changes(), changes);
    assert_eq!(rig.state(&q, id), Some(MessageState::InUnit));
    rig.settle(second, &q, id, remove()).unwrap();
    rig.release(second, &q, id);
    assert!(rig.counts(&q).is_zero());
}

pub fn a_refused_unit_keeps_its_messages_in_hand(rig: &mut Rig) {
    let q = rig.define("q");
    let put: Vec<_> = (0..3).map(|_| rig.put(&q)).collect();
    let owner = rig.owner();
    assert_eq!(rig.take_ids(&q, owner, 2), put[..2]);
    let settles = put.iter().map(|id| settle(&q, *id, remove())).collect();
    let unit = Unit {
        owner: Some(owner),
        settles,
        ..Unit::default()
    };
    assert_eq!(rig.commit(unit), Err(CommitError::Fenced));
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), put[2..]);
    rig.release(owner, &q, put[0]);
    rig.release(owner, &q, put[1]);
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), put[..2]);
}

pub fn an_empty_unit_commits(rig: &mut Rig) {
    let receipt = rig.commit(Unit::default()).unwrap();
    assert_eq!(receipt.puts, []);
    assert_eq!(rig.changes(), 0);
}

pub fn commit_numbers_grow_by_one(rig: &mut Rig) {
    let q = rig.define("q");
    let number = |rig: &Rig| {
        let puts = vec![rig.draft(&q).into_put()];
        rig.commit(Unit {
            puts,
            ..Unit::default()
        })
        .unwrap()
        .commit
    };
    let first = number(rig);
    assert!(
        rig.draft(&queue("nowhere")).try_send().is_err(),
        "a refused unit has no number"
    );
    assert_eq!([number(rig), number(rig)], [first + 1, first + 2]);
    assert!(rig.store().status().commits >= 3);
}

pub fn the_depth_bound_counts_messages_of_any_state(rig: &mut Rig) {
    let q = rig.define("q");
    for _ in 0..3 {
        rig.put(&q);
    }
    rig.draft(&q).due(END).send();
    let (owner, message) = rig.take_one(&q);
    let full = Err(CommitError::QueueFull {
        queue: q.clone(),
        depth: 4,
        max: 4,
    });
    assert_eq!(rig.draft(&q).max_depth(4).try_send(), full);
    rig.draft(&q).max_depth(5).send();
    rig.draft(&q).send();
    rig.settle(owner, &q, message.header.id, remove()).unwrap();
    assert_eq!(
        rig.draft(&q)
            .max_depth(5)
            .try_send()
            .err()
            .map(|e| e.to_string())
            .as_deref(),
        Some("queue \"q\" is full (depth 5 of 5); raise max-depth or drain it [queue-full]")
    );
}

pub fn the_depth_bound_counts_the_units_own_puts(rig: &mut Rig) {
    let q = rig.define("q");
    rig.put(&q);
    let unit = |count| {
        let puts = (0..count)
            .map(|_| rig.draft(&q).max_depth(3).into_put())
            .collect();
        Unit {
            puts,
            ..Unit::default()
        }
    };
    let full = CommitError::QueueFull {
        queue: q.clone(),
        depth: 3,
        max: 3,
    };
    assert_eq!(rig.commit(unit(3)), Err(full));
    assert_eq!(rig.counts(&q).depth(), 1);
    rig.commit(unit(2)).unwrap();
}

pub fn a28_one_unit_tells_each_queue_once(rig: &mut Rig) {
    let queues = ["a", "b", "c"].map(|name| rig.define(name));
    let puts = (0..500)
        .map(|n| rig.draft(&queues[n % 3]).into_put())
        .collect();
    let before = rig.changes();
    rig.commit(Unit {
        puts,
        ..Unit::default()
    })
    .unwrap();
    assert_eq!(rig.changes() - before, 3);
    assert_eq!(queues.map(|q| rig.counts(&q).counted(0)), [167, 167, 166]);
}

pub fn one_take_and_one_claim_tell_once(rig: &mut Rig) {
    let q = rig.define("q");
    for _ in 0..10 {
        rig.draft(&q).expires(END).send();
    }
    let before = rig.changes();
    let owner = rig.owner();
    let taken = ids(&rig.take(&q, owner, 9));
    assert_eq!(rig.changes() - before, 1);
    let messages: Vec<_> = taken.iter().map(|id| (q.clone(), id.sequence)).collect();
    rig.store().release(owner, &messages);
    assert_eq!(rig.changes() - before, 2);
    assert_eq!(rig.claim(owner, END).len(), 10);
    assert_eq!(rig.changes() - before, 3);
    assert!(rig.take(&q, owner, 9).is_empty());
    assert_eq!(
        rig.changes() - before,
        3,
        "what changes nothing tells nothing"
    );
}

pub fn after_a_commit_is_answered_the_sink_knows(rig: &mut Rig) {
    let q = rig.define("q");
    for depth in 1..=50 {
        rig.put(&q);
        assert_eq!(rig.counts(&q).depth(), depth);
    }
}

pub fn a_closed_store_refuses_units(rig: &mut Rig) {
    let q = rig.define("q");
    rig.put(&q);
    rig.store().close();
    let refused = rig.draft(&q).try_send();
    assert!(
        matches!(refused, Err(CommitError::Stopped(_))),
        "{refused:?}"
    );
    assert_eq!(rig.store().status().stopped, Some(StopReason::Closed));
    rig.store().close();
    assert_eq!(rig.stops(), [Some(StopReason::Closed)], "told once");
}
