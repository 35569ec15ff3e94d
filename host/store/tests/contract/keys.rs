//! Idempotency keys: a put under one happens once while it is remembered.

use oncue_core::unit_of_work::{PutAnswer, Unit};
use oncue_store::{CommitError, KnownKey};

use crate::rig::{END, NOW, Rig, record, remove};

pub fn a_repeat_answers_the_first_and_stores_nothing(rig: &mut Rig) {
    let q = rig.define("q");
    let first = rig.draft(&q).key("k", Some(1), END).send();
    let again = rig.draft(&q).key("k", Some(1), END).try_send();
    assert_eq!(
        again,
        Ok(PutAnswer {
            id: first,
            repeated: true
        })
    );
    assert_eq!(rig.counts(&q).depth(), 1);
    let known = rig.store().key(&q, "k", NOW).unwrap();
    assert_eq!(
        known,
        Some(KnownKey {
            id: first,
            body_digest: Some([1; 32])
        })
    );
}

pub fn a_repeat_is_known_after_the_first_is_gone(rig: &mut Rig) {
    let q = rig.define("q");
    let first = rig.draft(&q).key("k", Some(1), END).send();
    rig.take_and(&q, remove());
    let again = rig.draft(&q).key("k", Some(1), END).try_send();
    assert_eq!(
        again,
        Ok(PutAnswer {
            id: first,
            repeated: true
        })
    );
    assert_eq!(rig.counts(&q).depth(), 0);
}

pub fn another_message_under_the_key_is_refused(rig: &mut Rig) {
    let q = rig.define("q");
    rig.draft(&q).key("k", Some(1), END).send();
    let again = rig.draft(&q).key("k", Some(2), END).try_send();
    assert_eq!(
        again,
        Err(CommitError::KeyReused {
            queue: q,
            key: "k".to_owned()
        })
    );
}

pub fn without_a_digest_nothing_is_compared(rig: &mut Rig) {
    let q = rig.define("q");
    let first = rig.draft(&q).key("a", None, END).send();
    let second = rig.draft(&q).key("b", Some(1), END).send();
    let repeats = [
        (first, "a", Some(9)),
        (first, "a", None),
        (second, "b", None),
    ];
    for (id, key, digest) in repeats {
        let again = rig.draft(&q).key(key, digest, END).try_send();
        assert_eq!(again, Ok(PutAnswer { id, repeated: true }), "{key}");
    }
}

pub fn a_key_belongs_to_its_queue(rig: &mut Rig) {
    let (q, other) = (rig.define("q"), rig.define("other"));
    rig.draft(&q).key("k", Some(1), END).send();
    rig.draft(&other).key("k", Some(2), END).send();
    assert_eq!(rig.counts(&other).depth(), 1);
}

pub fn a_key_is_forgotten_at_its_end(rig: &mut Rig) {
    let q = rig.define("q");
    let until = NOW.after(100);
    let first = rig.draft(&q).key("k", Some(1), until).send();
    let in_time = rig
        .draft(&q)
        .put_at(NOW.after(99))
        .key("k", Some(1), END)
        .try_send();
    assert_eq!(
        in_time,
        Ok(PutAnswer {
            id: first,
            repeated: true
        })
    );
    assert!(rig.store().key(&q, "k", NOW.after(99)).unwrap().is_some());
    assert_eq!(rig.store().key(&q, "k", until).unwrap(), None);
    let second = rig.draft(&q).put_at(until).key("k", Some(2), END).send();
    assert_eq!(
        rig.store()
            .key(&q, "k", until)
            .unwrap()
            .map(|known| known.id),
        Some(second)
    );
    // Sweeping the end of the first use does not forget the second.
    assert!(rig.claim(rig.owner(), until.after(1)).is_empty());
    assert_eq!(
        rig.store()
            .key(&q, "k", until)
            .unwrap()
            .map(|known| known.id),
        Some(second)
    );
    assert_eq!(rig.counts(&q).depth(), 2);
}

pub fn in_one_unit_a_repeat_answers_at_once(rig: &mut Rig) {
    let q = rig.define("q");
    for conflict in [false, true] {
        let key = format!("k{conflict}");
        let puts: Vec<_> = (0..3)
            .map(|_| rig.draft(&q).key(&key, Some(1), END).into_put())
            .collect();
        let first = puts[0].header.id;
        let unit = Unit {
            puts,
            key_taken_is_conflict: conflict,
            ..Unit::default()
        };
        let answers = rig.commit(unit).unwrap().puts;
        let repeat = PutAnswer {
            id: first,
            repeated: true,
        };
        assert_eq!(
            answers,
            [
                PutAnswer {
                    id: first,
                    repeated: false
                },
                repeat,
                repeat
            ]
        );
    }
    assert_eq!(rig.counts(&q).depth(), 2);
}

pub fn in_one_unit_another_message_under_the_key_is_refused(rig: &mut Rig) {
    let q = rig.define("q");
    let puts = [1, 2]
        .map(|digest| rig.draft(&q).key("k", Some(digest), END).into_put())
        .into();
    let answer = rig.commit(Unit {
        puts,
        ..Unit::default()
    });
    assert_eq!(
        answer,
        Err(CommitError::KeyReused {
            queue: q.clone(),
            key: "k".to_owned()
        })
    );
    assert_eq!(
        rig.store().key(&q, "k", NOW),
        Ok(None),
        "what is refused is not remembered"
    );
    assert_eq!(rig.counts(&q).depth(), 0);
}

pub fn for_a_handler_a_taken_key_is_a_conflict(rig: &mut Rig) {
    let q = rig.define("q");
    rig.draft(&q).key("k", Some(1), END).send();
    for digest in [Some(1), Some(2), None] {
        let puts = vec![
            rig.draft(&q).into_put(),
            rig.draft(&q).key("k", digest, END).into_put(),
        ];
        let answer = rig.commit(Unit {
            puts,
            key_taken_is_conflict: true,
            ..Unit::default()
        });
        assert_eq!(answer, Err(CommitError::Conflict("k".to_owned())));
    }
    assert_eq!(rig.counts(&q).depth(), 1);
}

pub fn a_deleted_queue_forgets_its_keys(rig: &mut Rig) {
    let q = rig.define("q");
    rig.draft(&q).key("k", Some(1), END).send();
    rig.take_and(&q, remove());
    rig.commit(Unit {
        records: vec![record(&q, None)],
        ..Unit::default()
    })
    .unwrap();
    rig.define("q");
    assert_eq!(rig.store().key(&q, "k", NOW), Ok(None));
    rig.draft(&q).key("k", Some(2), END).send();
}

pub fn a_repeat_into_a_full_queue_is_answered(rig: &mut Rig) {
    let q = rig.define("q");
    let first = rig.draft(&q).max_depth(1).key("k", Some(1), END).send();
    let again = rig.draft(&q).max_depth(1).key("k", Some(1), END).try_send();
    assert_eq!(
        again,
        Ok(PutAnswer {
            id: first,
            repeated: true
        })
    );
}
