//! Delays, retries, deferrals and lives that end.

use oncue_core::message::Attempts;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{Disposition, Wait};
use oncue_store::{DueWhat, MessageState};

use crate::rig::{END, Ending, NOW, Rig, later, lease, remove, requeue};

const SOON: Timestamp = Timestamp(NOW.0 + 500);

pub fn a_delayed_put_is_not_taken_until_claimed_and_requeued(rig: &mut Rig) {
    let q = rig.define("q");
    let id = rig.draft(&q).due(SOON).send();
    assert_eq!(rig.counts(&q).delayed, 1);
    assert_eq!(
        rig.state(&q, id),
        Some(MessageState::Waiting(Wait::Delay, SOON))
    );
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), []);
    assert_eq!(rig.take_id(&q, rig.owner(), id), None);
    let manager = rig.owner();
    assert!(rig.claim(manager, Timestamp(SOON.0 - 1)).is_empty());
    let due = rig.claim(manager, SOON);
    assert_eq!(
        (due[0].message.header.id, due[0].what),
        (id, DueWhat::Wait(Wait::Delay))
    );
    assert_eq!(due[0].queue, q);
    assert_eq!((rig.counts(&q).delayed, rig.counts(&q).in_unit), (0, 1));
    rig.settle(manager, &q, id, requeue()).unwrap();
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), [id]);
}

pub fn a_delay_that_is_over_at_the_put_is_none(rig: &mut Rig) {
    let q = rig.define("q");
    let id = rig.draft(&q).due(NOW).send();
    assert_eq!(rig.state(&q, id), Some(MessageState::Ready));
    assert_eq!(rig.store().next_due(), None);
}

pub fn a_retry_and_a_deferral_become_due(rig: &mut Rig) {
    for (name, wait) in [("retry", Wait::Retry), ("defer", Wait::Defer)] {
        let q = rig.define(name);
        rig.put(&q);
        let attempts = Attempts {
            backout_count: 3,
            deferred_since: Some(NOW),
            ..Attempts::default()
        };
        let id = rig.take_and(
            &q,
            Disposition::Later {
                until: SOON,
                wait,
                attempts,
            },
        );
        let counts = rig.counts(&q);
        assert_eq!(
            (counts.retrying, counts.deferred),
            if wait == Wait::Retry { (1, 0) } else { (0, 1) }
        );
        assert_eq!(rig.take_ids(&q, rig.owner(), 9), []);
        let manager = rig.owner();
        let due = rig.claim(manager, SOON);
        assert_eq!(due.len(), 1);
        assert_eq!(due[0].what, DueWhat::Wait(wait));
        assert_eq!(due[0].message.attempts, attempts);
        rig.settle(manager, &q, id, Disposition::Requeue(attempts))
            .unwrap();
        let (_, message) = rig.take_one(&q);
        assert_eq!(message.attempts, attempts);
    }
}

pub fn a_claim_given_back_is_due_again(rig: &mut Rig) {
    let q = rig.define("q");
    let id = rig.draft(&q).due(SOON).send();
    let manager = rig.owner();
    assert_eq!(rig.claim(manager, SOON).len(), 1);
    assert_eq!(rig.store().next_due(), None, "what is in hand is not due");
    assert!(rig.claim(rig.owner(), END).is_empty(), "it is claimed once");
    rig.release(manager, &q, id);
    assert_eq!(
        rig.state(&q, id),
        Some(MessageState::Waiting(Wait::Delay, SOON))
    );
    assert_eq!(rig.store().next_due(), Some(SOON));
    assert_eq!(rig.claim(rig.owner(), SOON).len(), 1);
}

pub fn a_claim_is_bounded_and_the_rest_stays_due(rig: &mut Rig) {
    let q = rig.define("q");
    for n in 0..10 {
        rig.draft(&q).due(Timestamp(SOON.0 + n)).send();
    }
    let mut claimed = Vec::new();
    for expected in [4, 4, 2, 0] {
        let due = rig.store().claim_due(rig.owner(), END, 4).unwrap();
        assert_eq!(due.len(), expected);
        claimed.extend(due.into_iter().map(|due| due.message.header.id));
    }
    claimed.sort();
    claimed.dedup();
    assert_eq!(claimed.len(), 10, "each once");
}

pub fn next_due_is_exact(rig: &mut Rig) {
    let q = rig.define("q");
    let at = |n| Timestamp(NOW.0 + n);
    assert_eq!(rig.store().next_due(), None);
    rig.put(&q);
    assert_eq!(rig.store().next_due(), None, "a plain message never is");
    rig.draft(&q).due(at(50)).send();
    assert_eq!(rig.store().next_due(), Some(at(50)));
    let expiring = rig.draft(&q).priority(9).expires(at(30)).send();
    assert_eq!(rig.store().next_due(), Some(at(30)));
    let both = rig.draft(&q).due(at(40)).expires(at(20)).send();
    assert_eq!(
        rig.store().next_due(),
        Some(at(20)),
        "its life is shorter than its delay"
    );
    assert_eq!(rig.claim(rig.owner(), at(20))[0].message.header.id, both);
    assert_eq!(rig.store().next_due(), Some(at(30)));
    let (owner, _) = rig.take_one(&q);
    assert_eq!(
        rig.store().next_due(),
        Some(at(50)),
        "one in hand is not due"
    );
    rig.settle(owner, &q, expiring, lease(1, at(45))).unwrap();
    assert_eq!(
        rig.store().next_due(),
        Some(at(45)),
        "a lease is due at its end, not at the expiry"
    );
    let due = rig.claim(rig.owner(), at(45));
    assert_eq!(
        (due.len(), due[0].what),
        (1, DueWhat::Expiry),
        "over and expired: expired"
    );
    assert_eq!(rig.store().next_due(), Some(at(50)));
}

pub fn a19_what_expired_unswept_is_not_taken_and_is_claimed(rig: &mut Rig) {
    let q = rig.define("q");
    let expired: Vec<_> = (0..4).map(|_| rig.draft(&q).expires(SOON).send()).collect();
    let live = rig.put(&q);
    let manager = rig.owner();
    assert_eq!(rig.counts(&q).counted(0), 5);
    let due = rig.claim(manager, SOON);
    assert_eq!(
        due.iter()
            .map(|due| due.message.header.id)
            .collect::<Vec<_>>(),
        expired
    );
    assert!(due.iter().all(|due| due.what == DueWhat::Expiry));
    assert_eq!(rig.counts(&q).counted(0), 1);
    for id in expired {
        rig.settle(manager, &q, id, remove()).unwrap();
    }
    assert_eq!((rig.counts(&q).depth(), rig.counts(&q).in_unit), (1, 0));
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), [live]);
}

pub fn waiting_and_parked_messages_expire(rig: &mut Rig) {
    let q = rig.define("q");
    let ids: Vec<_> = (0..3).map(|_| rig.draft(&q).expires(SOON).send()).collect();
    rig.take_and(&q, later(Wait::Retry, END));
    rig.take_and(&q, Disposition::Park(Attempts::default()));
    rig.take_and(&q, later(Wait::Defer, NOW.after(1)));
    let due = rig.claim(rig.owner(), SOON);
    assert_eq!(
        due.iter()
            .map(|due| due.message.header.id)
            .collect::<Vec<_>>(),
        ids
    );
    assert!(due.iter().all(|due| due.what == DueWhat::Expiry), "{due:?}");
}

pub fn what_is_in_hand_does_not_expire(rig: &mut Rig) {
    let q = rig.define("q");
    let id = rig.draft(&q).expires(SOON).send();
    let (owner, _) = rig.take_one(&q);
    assert!(rig.claim(rig.owner(), END).is_empty());
    rig.release(owner, &q, id);
    assert_eq!(rig.claim(rig.owner(), END).len(), 1);
}

pub fn a_time_past_every_clock_never_comes(rig: &mut Rig) {
    let q = rig.define("q");
    let far = [1 << 63, (1 << 63) + NOW.0, u64::MAX - 1, u64::MAX].map(Timestamp);
    for time in far {
        rig.draft(&q).expires(time).send();
        rig.draft(&q).expires(time).volatile().send();
        rig.draft(&q).priority(9).send();
        rig.take_and(&q, later(Wait::Retry, time));
    }
    let claimed = rig.claim(rig.owner(), END);
    assert!(claimed.is_empty(), "{claimed:?}");
    assert_eq!((rig.counts(&q).depth(), rig.counts(&q).retrying), (12, 4));
    rig.reopen(Ending::Close);
    assert!(rig.claim(rig.owner(), END).is_empty());
    for _ in 0..4 {
        rig.take_and(&q, remove());
    }
    assert_eq!((rig.counts(&q).depth(), rig.counts(&q).retrying), (4, 4));
}
