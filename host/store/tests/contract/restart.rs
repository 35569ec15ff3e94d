//! What outlives the end of a store. What was in hand is ready again; what is volatile is gone.

use bytes::Bytes;
use oncue_core::message::Attempts;
use oncue_core::queue::Counts;
use oncue_core::unit_of_work::{
    Disposition, LeaseToken, PutAnswer, RecordChange, RecordKind, StateRead, StateWrite, TaskRow,
    Unit, Wait,
};
use oncue_store::{DueWhat, MessageState};

use crate::rig::{END, ENDINGS, Ending, NOW, Rig, ids, later, lease, record, remove};

pub fn persistent_messages_survive(rig: &mut Rig) {
    let q = rig.define("q");
    let put: Vec<_> = (0..5)
        .map(|n| rig.draft(&q).body(format!("body {n}")).send())
        .collect();
    for ending in ENDINGS {
        rig.reopen(ending);
        let owner = rig.owner();
        let taken = rig.take(&q, owner, 9);
        assert_eq!(ids(&taken), put, "{ending:?}");
        for (n, message) in taken.iter().enumerate() {
            let body = rig.store().read_body(&message.body, 0, 100).unwrap();
            assert_eq!(body, format!("body {n}"), "{ending:?}");
            rig.release(owner, &q, message.header.id);
        }
    }
}

pub fn settled_messages_stay_away(rig: &mut Rig) {
    let q = rig.define("q");
    let put: Vec<_> = (0..600).map(|_| rig.put(&q)).collect();
    for ending in ENDINGS {
        for _ in 0..150 {
            rig.take_and(&q, remove());
        }
        rig.reopen(ending);
        assert_eq!(rig.counts(&q).depth(), rig.everything(&q).len() as i64);
    }
    assert_eq!(rig.take_ids(&q, rig.owner(), 1000), put[300..]);
}

pub fn volatile_messages_vanish(rig: &mut Rig) {
    let q = rig.define("q");
    for ending in ENDINGS {
        let kept = rig.put(&q);
        rig.draft(&q).volatile().send();
        rig.draft(&q).volatile().due(END).send();
        rig.draft(&q).volatile().group("g").send();
        rig.draft(&q).volatile().priority(9).send();
        rig.take_and(&q, lease(1, END));
        assert_eq!(rig.counts(&q).depth(), 5);
        rig.reopen(ending);
        assert_eq!(rig.take_and(&q, remove()), kept, "{ending:?}");
        assert!(rig.counts(&q).is_zero(), "{ending:?}");
        assert_eq!(rig.store().next_due(), None, "{ending:?}");
    }
}

pub fn what_was_in_hand_is_ready_again(rig: &mut Rig) {
    let q = rig.define("q");
    let put: Vec<_> = (0..4).map(|_| rig.put(&q)).collect();
    for ending in ENDINGS {
        let owner = rig.owner();
        assert_eq!(rig.take_ids(&q, owner, 2), put[..2]);
        rig.reopen(ending);
        assert_eq!(rig.counts(&q).counted(0), 4, "{ending:?}");
        assert!(
            rig.settle(owner, &q, put[0], remove()).is_err(),
            "the hold did not survive"
        );
        let owner = rig.owner();
        assert_eq!(rig.take_ids(&q, owner, 9), put);
        let back: Vec<_> = put.iter().map(|id| (q.clone(), id.sequence)).collect();
        rig.store().release(owner, &back);
    }
}

pub fn waits_leases_and_parked_ones_survive(rig: &mut Rig) {
    let q = rig.define("q");
    let attempts = Attempts {
        backout_count: 2,
        interrupted_count: 1,
        deferred_since: Some(NOW),
    };
    let delayed = rig.draft(&q).priority(0).due(END).send();
    rig.put(&q);
    let retrying = rig.take_and(
        &q,
        Disposition::Later {
            until: END,
            wait: Wait::Retry,
            attempts,
        },
    );
    rig.put(&q);
    let deferred = rig.take_and(&q, later(Wait::Defer, END));
    rig.put(&q);
    let leased = rig.take_and(&q, lease(1, END));
    rig.put(&q);
    let parked = rig.take_and(&q, Disposition::Park(attempts));
    let claimed = rig.draft(&q).due(NOW.after(1)).send();
    let counts = rig.counts(&q);
    for ending in ENDINGS {
        assert_eq!(rig.claim(rig.owner(), NOW.after(1)).len(), 1);
        rig.reopen(ending);
        assert_eq!(rig.counts(&q), counts, "{ending:?}");
        let expected = [
            (delayed, MessageState::Waiting(Wait::Delay, END)),
            (retrying, MessageState::Waiting(Wait::Retry, END)),
            (deferred, MessageState::Waiting(Wait::Defer, END)),
            (leased, MessageState::Leased(END)),
            (parked, MessageState::Parked),
            (claimed, MessageState::Waiting(Wait::Delay, NOW.after(1))),
        ];
        for (id, state) in expected {
            assert_eq!(rig.state(&q, id), Some(state), "{ending:?}");
        }
        assert_eq!(rig.store().next_due(), Some(NOW.after(1)));
    }
    let found = rig.store().find(&q, retrying).unwrap().unwrap();
    assert_eq!(found.message.attempts, attempts);
    let owner = rig.owner();
    assert!(rig.store().take_leased(owner, LeaseToken(1)).is_ok());
    rig.settle(owner, &q, leased, remove()).unwrap();
    let due: Vec<_> = rig.claim(owner, END).iter().map(|due| due.what).collect();
    let wait = DueWhat::Wait;
    assert_eq!(
        due,
        [
            wait(Wait::Delay),
            wait(Wait::Retry),
            wait(Wait::Defer),
            wait(Wait::Delay)
        ]
    );
}

pub fn the_lives_of_messages_survive(rig: &mut Rig) {
    let q = rig.define("q");
    let id = rig.draft(&q).expires(END).send();
    for ending in ENDINGS {
        rig.reopen(ending);
        assert_eq!(rig.store().next_due(), Some(END), "{ending:?}");
        let due = rig.claim(rig.owner(), END);
        assert_eq!(
            (due[0].message.header.id, due[0].what),
            (id, DueWhat::Expiry),
            "{ending:?}"
        );
    }
}

pub fn keys_survive(rig: &mut Rig) {
    let q = rig.define("q");
    let first = rig.draft(&q).key("k", Some(1), END).send();
    rig.take_and(&q, remove());
    for ending in ENDINGS {
        rig.reopen(ending);
        let again = rig.draft(&q).key("k", Some(1), END).try_send();
        assert_eq!(
            again,
            Ok(PutAnswer {
                id: first,
                repeated: true
            }),
            "{ending:?}"
        );
        assert!(
            rig.draft(&q).key("k", Some(2), END).try_send().is_err(),
            "{ending:?}"
        );
    }
}

pub fn groups_survive(rig: &mut Rig) {
    let q = rig.define("q");
    let group: Vec<_> = [1, 9, 4]
        .map(|p| rig.draft(&q).group("g").priority(p).send())
        .into();
    rig.take_and(&q, later(Wait::Retry, END));
    for ending in ENDINGS {
        rig.reopen(ending);
        assert_eq!(rig.counts(&q).group_held, 2, "{ending:?}");
        assert_eq!(rig.take_ids(&q, rig.owner(), 9), [], "{ending:?}");
    }
    let manager = rig.owner();
    assert_eq!(rig.claim(manager, END).len(), 1);
    rig.settle(
        manager,
        &q,
        group[0],
        Disposition::Requeue(Attempts::default()),
    )
    .unwrap();
    let taken: Vec<_> = (0..3).map(|_| rig.take_and(&q, remove())).collect();
    assert_eq!(taken, group);
}

pub fn a_group_in_hand_is_free_again(rig: &mut Rig) {
    let q = rig.define("q");
    let group: Vec<_> = [1, 9]
        .map(|p| rig.draft(&q).group("g").priority(p).send())
        .into();
    for ending in ENDINGS {
        rig.take_one(&q);
        assert_eq!(rig.counts(&q).group_held, 1);
        rig.reopen(ending);
        assert_eq!(rig.counts(&q).counted(0), 2, "{ending:?}");
    }
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), group[..1]);
}

pub fn moves_and_dead_letters_survive(rig: &mut Rig) {
    let (q, to) = (rig.define("q"), rig.define("to"));
    let id = rig.draft(&q).body(vec![1; 100_000]).send();
    let attempts = Attempts {
        backout_count: 5,
        ..Attempts::default()
    };
    rig.take_and(
        &q,
        Disposition::Move {
            to: to.clone(),
            record: None,
            attempts,
        },
    );
    for ending in ENDINGS {
        rig.reopen(ending);
        assert!(rig.counts(&q).is_zero(), "{ending:?}");
        let (owner, message) = rig.take_one(&to);
        assert_eq!(
            (message.header.id, message.attempts),
            (id, attempts),
            "{ending:?}"
        );
        assert_eq!(
            rig.store().read_body(&message.body, 0, u64::MAX).unwrap(),
            vec![1; 100_000]
        );
        rig.release(owner, &to, id);
    }
}

pub fn state_survives_with_its_revisions(rig: &mut Rig) {
    let write = |key: &str, value| {
        let value = Some(Bytes::from(value));
        StateWrite {
            namespace: "n".to_owned(),
            key: key.to_owned(),
            value,
        }
    };
    rig.commit(Unit {
        writes: vec![write("k", "1")],
        ..Unit::default()
    })
    .unwrap();
    for ending in ENDINGS {
        let (value, revision) = rig.store().state("n", "k").unwrap().unwrap();
        rig.reopen(ending);
        assert_eq!(
            rig.store().state("n", "k").unwrap(),
            Some((value, revision)),
            "{ending:?}"
        );
        let read = |revision| StateRead {
            namespace: "n".to_owned(),
            key: "k".to_owned(),
            revision,
        };
        let change = |seen| Unit {
            reads: vec![read(seen)],
            writes: vec![write("k", "2")],
            ..Unit::default()
        };
        let receipt = rig.commit(change(Some(revision))).unwrap();
        assert!(
            receipt.commit > revision.0,
            "numbers go on growing after {ending:?}"
        );
        assert!(rig.commit(change(Some(revision))).is_err(), "{ending:?}");
    }
    assert_eq!(rig.store().state_keys("n", None, 9).unwrap(), ["k"]);
}

pub fn records_and_tasks_survive(rig: &mut Rig) {
    let q = rig.define("q");
    rig.define("gone");
    let row = |kind, name: &str, value: Option<&'static str>| RecordChange {
        kind,
        name: name.to_owned(),
        value: value.map(Bytes::from),
    };
    let records = vec![
        record(&crate::rig::queue("gone"), None),
        row(RecordKind::Control, "q", Some("off")),
        row(RecordKind::Process, "p", Some("one")),
        row(RecordKind::Process, "p", Some("two")),
        row(RecordKind::Plugin, "x", Some("")),
        row(RecordKind::Host, "deleted", Some("no")),
    ];
    let task = Some(TaskRow {
        id: 5,
        value: Bytes::from("task"),
    });
    rig.commit(Unit {
        records,
        task,
        ..Unit::default()
    })
    .unwrap();
    let records = vec![row(RecordKind::Host, "deleted", None)];
    rig.commit(Unit {
        records,
        ..Unit::default()
    })
    .unwrap();
    let expected = [
        (RecordKind::Queue, "q", "definition"),
        (RecordKind::Control, "q", "off"),
        (RecordKind::Process, "p", "two"),
        (RecordKind::Plugin, "x", ""),
    ];
    let expected = expected.map(|(kind, name, row)| (kind, name.to_owned(), Bytes::from(row)));
    for ending in ENDINGS {
        rig.reopen(ending);
        let mut records = rig.store().recovered().records;
        records.sort();
        assert_eq!(records, expected, "{ending:?}");
        assert_eq!(
            rig.store().tasks(None, 9).unwrap(),
            [(5, Bytes::from("task"))],
            "{ending:?}"
        );
        let counts = rig.store().recovered().counts;
        assert!(
            counts.iter().all(|(queue, c)| *queue == q && c.is_zero()),
            "{ending:?}"
        );
    }
}

pub fn ids_never_repeat_over_a_restart(rig: &mut Rig) {
    let q = rig.define("q");
    let mut last = rig.put(&q);
    for ending in ENDINGS {
        for _ in 0..10 {
            last = last.max(rig.store().next_id());
        }
        rig.reopen(ending);
        let next = rig.store().next_id();
        assert!(next > last, "{next:?} after {last:?} and {ending:?}");
        assert_eq!(next.origin, last.origin);
        assert_eq!(next.origin, rig.store().recovered().origin);
    }
}

pub fn an_unclean_end_is_known(rig: &mut Rig) {
    assert!(!rig.store().recovered().unclean, "a new store had no end");
    for (ending, unclean) in [
        (Ending::Kill, true),
        (Ending::Close, false),
        (Ending::Kill, true),
    ] {
        rig.define("q");
        rig.reopen(ending);
        assert_eq!(rig.store().recovered().unclean, unclean, "{ending:?}");
    }
}

pub fn counts_after_a_restart_are_those_before(rig: &mut Rig) {
    let queues = ["a", "b", "c"].map(|name| rig.define(name));
    for (n, q) in queues.iter().cycle().take(90).enumerate() {
        let draft = rig.draft(q).priority(n as u8 % 10).body(vec![0; n * 10]);
        let draft = if n % 4 == 0 {
            draft.group(&format!("g{}", n % 5))
        } else {
            draft
        };
        if n % 7 == 0 {
            draft.due(END).send()
        } else {
            draft.send()
        };
    }
    for q in &queues {
        rig.take_and(q, remove());
        rig.take_and(q, later(Wait::Retry, END));
    }
    for ending in ENDINGS {
        let before: Vec<Counts> = queues.iter().map(|q| rig.counts(q)).collect();
        rig.reopen(ending);
        let after: Vec<Counts> = queues.iter().map(|q| rig.counts(q)).collect();
        assert_eq!(before, after, "{ending:?}");
    }
}
