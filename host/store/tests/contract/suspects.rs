//! Suspects: messages that were in hand at an unclean end. One in hand at a time in the whole
//! store.

use oncue_core::message::{Attempts, MessageId};
use oncue_core::names::QueueName;
use oncue_core::unit_of_work::Disposition;
use oncue_store::Take;

use crate::rig::{END, Rig, ids, lease, next, remove};

const SUSPECT: Attempts = Attempts {
    backout_count: 0,
    interrupted_count: 1,
    deferred_since: None,
};

fn suspects(rig: &Rig, queue: &QueueName, count: usize) -> Vec<MessageId> {
    let put: Vec<_> = (0..count).map(|_| rig.put(queue)).collect();
    let owner = rig.owner();
    assert_eq!(rig.take_ids(queue, owner, count), put);
    for id in &put {
        rig.settle(owner, queue, *id, Disposition::Requeue(SUSPECT))
            .unwrap();
    }
    put
}

pub fn one_suspect_is_in_hand_at_a_time(rig: &mut Rig) {
    let (q, other) = (rig.define("q"), rig.define("other"));
    let here = suspects(rig, &q, 3);
    let there = suspects(rig, &other, 1);
    let plain = rig.put(&q);
    let owner = rig.owner();
    assert_eq!(
        rig.take_ids(&q, owner, 9),
        [here[0], plain],
        "others run beside it"
    );
    assert_eq!(rig.take_ids(&q, owner, 9), []);
    assert_eq!(rig.take_id(&q, rig.owner(), here[1]), None);
    assert_eq!(
        rig.take_ids(&other, rig.owner(), 9),
        [],
        "one in the whole store"
    );
    rig.release(owner, &q, plain);
    assert_eq!(rig.take_ids(&other, rig.owner(), 9), []);
    rig.settle(owner, &q, here[0], remove()).unwrap();
    let second = rig.owner();
    assert_eq!(rig.take_ids(&other, second, 9), there);
    rig.release(second, &other, there[0]);
    assert_eq!(rig.take_ids(&q, rig.owner(), 1), [here[1]]);
}

pub fn suspects_are_passed_over_when_asked(rig: &mut Rig) {
    let q = rig.define("q");
    let suspects = suspects(rig, &q, 2);
    let plain = rig.put(&q);
    let take = Take {
        skip_suspects: true,
        max: 9,
        ..next(&q, rig.owner())
    };
    assert_eq!(ids(&rig.store().take(&take).unwrap()), [plain]);
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), suspects[..1]);
}

pub fn suspects_count_like_any_other(rig: &mut Rig) {
    let q = rig.define("q");
    suspects(rig, &q, 2);
    assert_eq!(rig.counts(&q).counted(0), 2);
}

pub fn a_suspect_that_is_leased_is_no_longer_in_hand(rig: &mut Rig) {
    let q = rig.define("q");
    let suspects = suspects(rig, &q, 2);
    let (owner, _) = rig.take_one(&q);
    let leased = match lease(1, END) {
        Disposition::Lease {
            until,
            token,
            selective,
            ..
        } => Disposition::Lease {
            until,
            token,
            selective,
            attempts: SUSPECT,
        },
        other => other,
    };
    rig.settle(owner, &q, suspects[0], leased).unwrap();
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), suspects[1..]);
}

pub fn a_suspect_holds_its_group(rig: &mut Rig) {
    let q = rig.define("q");
    let first = rig.draft(&q).group("g").send();
    let second = rig.draft(&q).group("g").send();
    rig.take_and(&q, Disposition::Requeue(SUSPECT));
    let take = Take {
        skip_suspects: true,
        max: 9,
        ..next(&q, rig.owner())
    };
    assert_eq!(ids(&rig.store().take(&take).unwrap()), []);
    let owner = rig.owner();
    assert_eq!(rig.take_ids(&q, owner, 9), [first]);
    assert_eq!(rig.take_ids(&q, owner, 9), [second]);
}

pub fn clearing_the_count_clears_the_suspicion(rig: &mut Rig) {
    let q = rig.define("q");
    let suspects = suspects(rig, &q, 2);
    for id in &suspects {
        let owner = rig.owner();
        assert!(rig.take_id(&q, owner, *id).is_some());
        rig.settle(owner, &q, *id, Disposition::Requeue(Attempts::default()))
            .unwrap();
    }
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), suspects);
}
