//! Memory holds the front of an index only: order and cost do not show it.

use oncue_core::message::MessageId;
use oncue_core::unit_of_work::{Disposition, OwnerId, Unit};
use oncue_store::Store;
use oncue_store::embedded::EmbeddedOptions;

use super::{Embedded, open, options};
use crate::rig::{END, Rig, ids, later, lease, next, remove, settle};

fn put_many(rig: &Rig, q: &oncue_core::names::QueueName, count: usize) -> Vec<MessageId> {
    let mut put = Vec::new();
    while put.len() < count {
        let puts = (0..500.min(count - put.len()))
            .map(|_| rig.draft(q).into_put())
            .collect();
        let receipt = rig
            .commit(Unit {
                puts,
                ..Unit::default()
            })
            .unwrap();
        put.extend(receipt.puts.iter().map(|answer| answer.id));
    }
    put
}

/// Takes up to `max` and removes them in one unit.
fn drain(rig: &Rig, q: &oncue_core::names::QueueName, max: usize) -> Vec<MessageId> {
    let owner = rig.owner();
    let taken = rig.take_ids(q, owner, max);
    let settles = taken.iter().map(|id| settle(q, *id, remove())).collect();
    rig.commit(Unit {
        owner: Some(owner),
        settles,
        ..Unit::default()
    })
    .unwrap();
    taken
}

#[test]
fn twenty_thousand_come_in_order_through_a_window_of_256() {
    let (mut rig, _) = Embedded::rig(EmbeddedOptions {
        window_rows: 256,
        ..options()
    });
    let q = rig.define("q");
    let put = put_many(&rig, &q, 20_000);
    let mut came = Vec::new();
    for round in 0_u8.. {
        let high = rig.draft(&q).priority(5 + round % 5).send();
        let taken = drain(&rig, &q, 700);
        assert_eq!(taken.first(), Some(&high));
        if taken.len() == 1 {
            break;
        }
        came.extend_from_slice(&taken[1..]);
    }
    assert_eq!(came.len(), put.len());
    assert!(came == put, "they came in another order");
    assert!(rig.counts(&q).is_zero());
}

#[test]
fn what_is_held_at_the_head_does_not_make_takes_walk() {
    for leased in [false, true] {
        let (mut rig, path) = Embedded::rig(EmbeddedOptions {
            window_rows: 32,
            ..options()
        });
        let q = rig.define("q");
        let put = put_many(&rig, &q, 2_000);
        let (owner, head) = rig.take_one(&q);
        assert_eq!(head.header.id, put[0]);
        if leased {
            rig.settle(owner, &q, put[0], lease(7, END)).unwrap();
        }
        for chunk in put[1..].chunks(100) {
            assert_eq!(drain(&rig, &q, 100), chunk);
        }
        drop(rig);
        let store = open(&path);
        // Each message is read once as a row and once as a body, and rows are read ahead in
        // portions.
        let before = store.rows_read();
        let taken = store.take(&next(&q, OwnerId(1))).unwrap();
        assert_eq!(ids(&taken), if leased { vec![] } else { vec![put[0]] });
        assert!(
            store.rows_read() - before <= 10,
            "{} rows",
            store.rows_read() - before
        );
    }
}

#[test]
fn rows_read_follow_what_is_taken() {
    let (mut rig, path) = Embedded::rig(EmbeddedOptions {
        window_rows: 32,
        ..options()
    });
    let q = rig.define("q");
    let put = put_many(&rig, &q, 3_000);
    drop(rig);
    let store = open(&path);
    let owner = OwnerId(1);
    let before = store.rows_read();
    for chunk in put.chunks(100) {
        let taken = store
            .take(&oncue_store::Take {
                max: 100,
                ..next(&q, owner)
            })
            .unwrap();
        assert_eq!(ids(&taken), chunk);
    }
    let read = store.rows_read() - before;
    assert!(
        read <= 2 * put.len() as u64 + 100,
        "{read} rows for {} messages",
        put.len()
    );
}

#[test]
fn what_comes_back_stands_among_the_others() {
    let (mut rig, _) = Embedded::rig(options());
    let q = rig.define("q");
    let put = put_many(&rig, &q, 40);
    for id in put.iter().step_by(3) {
        let owner = rig.owner();
        assert!(rig.take_id(&q, owner, *id).is_some());
        let wait = later(
            oncue_core::unit_of_work::Wait::Retry,
            crate::rig::NOW.after(1),
        );
        rig.settle(owner, &q, *id, wait).unwrap();
    }
    let owner = rig.owner();
    for due in rig.claim(owner, END) {
        let requeue = Disposition::Requeue(oncue_core::message::Attempts::default());
        rig.settle(owner, &q, due.message.header.id, requeue)
            .unwrap();
    }
    assert_eq!(drain(&rig, &q, 100), put);
    rig.check();
}
