//! In which order messages come.

use crate::rig::{Rig, next, remove};
use oncue_store::{Select, StoreError, Take};

pub fn equal_priorities_come_in_arrival_order(rig: &mut Rig) {
    let q = rig.define("q");
    let put: Vec<_> = (0..20).map(|_| rig.put(&q)).collect();
    let owner = rig.owner();
    assert_eq!(rig.take_ids(&q, owner, 5), put[..5]);
    assert_eq!(rig.take_ids(&q, rig.owner(), 100), put[5..]);
    assert_eq!(rig.take_ids(&q, owner, 1), []);
}

pub fn a_higher_priority_comes_first(rig: &mut Rig) {
    let q = rig.define("q");
    let low = rig.draft(&q).priority(0).send();
    let middle = rig.draft(&q).priority(4).send();
    let high = rig.draft(&q).priority(9).send();
    let second_high = rig.draft(&q).priority(9).send();
    assert_eq!(
        rig.take_ids(&q, rig.owner(), 10),
        [high, second_high, middle, low]
    );
}

pub fn a_late_high_priority_overtakes_what_is_left(rig: &mut Rig) {
    let q = rig.define("q");
    let first = rig.draft(&q).priority(3).send();
    let second = rig.draft(&q).priority(3).send();
    let owner = rig.owner();
    assert_eq!(rig.take_ids(&q, owner, 1), [first]);
    let high = rig.draft(&q).priority(8).send();
    assert_eq!(rig.take_ids(&q, owner, 1), [high]);
    rig.settle(owner, &q, high, remove()).unwrap();
    assert_eq!(rig.take_ids(&q, owner, 1), [second]);
}

pub fn fifo_looks_at_arrival_alone(rig: &mut Rig) {
    let q = rig.define("q");
    let put: Vec<_> = [0, 9, 4, 9, 0]
        .map(|p| rig.draft(&q).priority(p).send())
        .into();
    let take = Take {
        fifo: true,
        max: 3,
        ..next(&q, rig.owner())
    };
    assert_eq!(crate::rig::ids(&rig.store().take(&take).unwrap()), put[..3]);
    let take = Take {
        fifo: true,
        max: 3,
        ..next(&q, rig.owner())
    };
    assert_eq!(crate::rig::ids(&rig.store().take(&take).unwrap()), put[3..]);
}

pub fn arrival_is_by_id_not_by_commit(rig: &mut Rig) {
    let q = rig.define("q");
    let early = rig.draft(&q);
    let late = rig.draft(&q).send();
    let early = early.send();
    assert!(early < late);
    assert_eq!(rig.take_ids(&q, rig.owner(), 2), [early, late]);
}

pub fn what_is_given_back_comes_in_its_old_place(rig: &mut Rig) {
    let q = rig.define("q");
    let put: Vec<_> = (0..4).map(|_| rig.put(&q)).collect();
    let owner = rig.owner();
    assert_eq!(rig.take_ids(&q, owner, 2), put[..2]);
    rig.release(owner, &q, put[1]);
    rig.release(owner, &q, put[0]);
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), put);
}

pub fn a_take_by_id_takes_that_one_once(rig: &mut Rig) {
    let q = rig.define("q");
    let other = rig.define("other");
    let put: Vec<_> = (0..3).map(|_| rig.put(&q)).collect();
    let owner = rig.owner();
    assert_eq!(rig.take_id(&other, owner, put[1]), None);
    assert_eq!(
        rig.take_id(&q, owner, put[1]).map(|m| m.header.id),
        Some(put[1])
    );
    assert_eq!(
        rig.take_id(&q, owner, put[1]),
        None,
        "the owner itself does not get it twice"
    );
    assert_eq!(rig.take_ids(&q, owner, 9), [put[0], put[2]]);
}

pub fn a_take_by_correlation_takes_those_in_order(rig: &mut Rig) {
    let q = rig.define("q");
    let low = rig.draft(&q).correlation("a").priority(1).send();
    rig.draft(&q).correlation("b").priority(9).send();
    let high = rig.draft(&q).correlation("a").priority(7).send();
    rig.put(&q);
    let late = rig.draft(&q).correlation("a").priority(7).send();
    let by = |fifo, max| Take {
        select: Select::Correlation("a".to_owned()),
        fifo,
        max,
        ..next(&q, rig.owner())
    };
    let priority = by(false, 2);
    let taken = crate::rig::ids(&rig.store().take(&priority).unwrap());
    assert_eq!(taken, [high, late]);
    rig.release(priority.owner, &q, high);
    rig.release(priority.owner, &q, late);
    assert_eq!(
        crate::rig::ids(&rig.store().take(&by(true, 9)).unwrap()),
        [low, high, late]
    );
}

pub fn a_take_from_no_queue_is_an_error(rig: &mut Rig) {
    let nowhere = crate::rig::queue("nowhere");
    let taken = rig.store().take(&next(&nowhere, rig.owner()));
    assert_eq!(taken, Err(StoreError::UnknownQueue(nowhere)));
}

pub fn what_has_expired_is_passed_over(rig: &mut Rig) {
    let q = rig.define("q");
    let expired = rig.draft(&q).priority(9).expires(crate::rig::NOW).send();
    let live = rig.draft(&q).expires(crate::rig::NOW.after(1)).send();
    assert_eq!(rig.take_id(&q, rig.owner(), expired), None);
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), [live]);
}

pub fn what_is_taken_is_what_was_put(rig: &mut Rig) {
    let q = rig.define("q");
    let mut put = rig
        .draft(&q)
        .group("g")
        .correlation("c")
        .priority(7)
        .into_put();
    put.header.reply_to = Some(q.clone());
    put.header.group_sequence = Some(3);
    put.header.content_type = Some("text/plain".to_owned());
    put.header.properties = vec![
        ("b".to_owned(), "1".to_owned()),
        ("a".to_owned(), String::new()),
    ];
    put.header.hop_count = 2;
    put.header.put_by = Some("process/p".to_owned());
    put.header.expires = Some(crate::rig::END);
    let header = put.header.clone();
    let unit = oncue_core::unit_of_work::Unit {
        puts: vec![put],
        ..Default::default()
    };
    rig.commit(unit).unwrap();
    let (_, message) = rig.take_one(&q);
    assert_eq!(message.header, header);
    assert_eq!(message.attempts, Default::default());
    assert_eq!(message.dead_letter, None);
    assert_eq!(
        rig.store().read_body(&message.body, 0, 100).unwrap(),
        "body"
    );
}

pub fn the_oldest_is_of_those_ready_at_or_above_the_priority(rig: &mut Rig) {
    let q = rig.define("q");
    let at = |ms| oncue_core::time::Timestamp(ms);
    assert_eq!(rig.store().oldest(&q, 0), None);
    rig.draft(&q).priority(2).put_at(at(10)).send();
    let high = rig.draft(&q).priority(6).put_at(at(20)).send();
    rig.draft(&q).priority(4).put_at(at(30)).send();
    rig.draft(&q).priority(6).put_at(at(40)).send();
    rig.draft(&q)
        .priority(9)
        .put_at(at(5))
        .due(crate::rig::END)
        .send();
    assert_eq!(rig.store().oldest(&q, 0), Some(at(10)));
    assert_eq!(rig.store().oldest(&q, 3), Some(at(20)));
    let owner = rig.owner();
    assert!(rig.take_id(&q, owner, high).is_some());
    assert_eq!(rig.store().oldest(&q, 3), Some(at(30)));
    assert_eq!(rig.store().oldest(&q, 5), Some(at(40)));
    assert_eq!(rig.store().oldest(&q, 7), None);
    rig.release(owner, &q, high);
    assert_eq!(rig.store().oldest(&q, 3), Some(at(20)));
}

pub fn ids_grow_and_never_repeat(rig: &mut Rig) {
    let ids: Vec<_> = (0..1000).map(|_| rig.store().next_id()).collect();
    assert!(
        ids.windows(2).all(|pair| pair[0] < pair[1]),
        "an id did not grow"
    );
    assert_eq!(ids[0].origin, rig.store().recovered().origin);
}
