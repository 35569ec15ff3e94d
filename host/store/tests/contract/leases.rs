//! Leases of outside consumers: given by a unit, settled by a token, over at their time.

use oncue_core::message::Attempts;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{Disposition, LeaseToken, Wait};
use oncue_store::{CommitError, DueWhat, MessageState, StoreError};

use crate::rig::{END, NOW, Rig, later, lease, remove, requeue};

const SOON: Timestamp = Timestamp(NOW.0 + 500);

pub fn an_ack_removes_the_message(rig: &mut Rig) {
    let q = rig.define("q");
    rig.put(&q);
    let id = rig.take_and(&q, lease(1, SOON));
    assert_eq!(rig.state(&q, id), Some(MessageState::Leased(SOON)));
    assert_eq!((rig.counts(&q).leased, rig.counts(&q).leased_open), (1, 1));
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), []);
    let owner = rig.owner();
    let (queue, message) = rig.store().take_leased(owner, LeaseToken(1)).unwrap();
    assert_eq!((queue, message.header.id), (q.clone(), id));
    rig.settle(owner, &q, id, remove()).unwrap();
    assert!(rig.counts(&q).is_zero());
}

pub fn a_selective_lease_does_not_hold_the_queue_open(rig: &mut Rig) {
    let q = rig.define("q");
    rig.put(&q);
    let attempts = Attempts::default();
    rig.take_and(
        &q,
        Disposition::Lease {
            until: SOON,
            token: LeaseToken(1),
            selective: true,
            attempts,
        },
    );
    assert_eq!((rig.counts(&q).leased, rig.counts(&q).leased_open), (1, 0));
    rig.claim(rig.owner(), SOON);
    assert_eq!((rig.counts(&q).leased, rig.counts(&q).leased_open), (0, 0));
}

pub fn a_nack_makes_it_wait(rig: &mut Rig) {
    let q = rig.define("q");
    rig.put(&q);
    let id = rig.take_and(&q, lease(1, SOON));
    let owner = rig.owner();
    rig.store().take_leased(owner, LeaseToken(1)).unwrap();
    rig.settle(owner, &q, id, later(Wait::Retry, END)).unwrap();
    assert_eq!(
        rig.state(&q, id),
        Some(MessageState::Waiting(Wait::Retry, END))
    );
    assert_eq!(rig.counts(&q).leased_open, 0);
    assert_eq!(
        rig.store().take_leased(owner, LeaseToken(1)).err(),
        Some(StoreError::UnknownLease)
    );
}

pub fn an_extension_moves_the_end(rig: &mut Rig) {
    let q = rig.define("q");
    rig.put(&q);
    let id = rig.take_and(&q, lease(1, SOON));
    let owner = rig.owner();
    rig.store().take_leased(owner, LeaseToken(1)).unwrap();
    rig.settle(owner, &q, id, lease(1, END)).unwrap();
    assert_eq!(rig.store().next_due(), Some(END));
    assert!(rig.claim(rig.owner(), SOON).is_empty());
    assert!(
        rig.store().take_leased(owner, LeaseToken(1)).is_ok(),
        "the token still stands for it"
    );
}

pub fn a_new_token_ends_the_old_one(rig: &mut Rig) {
    let q = rig.define("q");
    rig.put(&q);
    let id = rig.take_and(&q, lease(1, SOON));
    let owner = rig.owner();
    rig.store().take_leased(owner, LeaseToken(1)).unwrap();
    rig.settle(owner, &q, id, lease(2, SOON)).unwrap();
    assert_eq!(
        rig.store().take_leased(owner, LeaseToken(1)).err(),
        Some(StoreError::UnknownLease)
    );
    assert!(rig.store().take_leased(owner, LeaseToken(2)).is_ok());
}

pub fn a_lease_over_its_time_is_claimed_and_a_late_ack_refused(rig: &mut Rig) {
    let q = rig.define("q");
    rig.put(&q);
    let id = rig.take_and(&q, lease(1, SOON));
    let manager = rig.owner();
    assert!(rig.claim(manager, Timestamp(SOON.0 - 1)).is_empty());
    let due = rig.claim(manager, SOON);
    assert_eq!(
        (due[0].message.header.id, due[0].what),
        (id, DueWhat::Lease)
    );
    let late = rig.store().take_leased(rig.owner(), LeaseToken(1));
    assert_eq!(late.err(), Some(StoreError::UnknownLease));
    rig.settle(manager, &q, id, requeue()).unwrap();
    let late = rig.store().take_leased(rig.owner(), LeaseToken(1));
    assert_eq!(late.err(), Some(StoreError::UnknownLease));
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), [id]);
}

pub fn a_lease_over_its_time_may_be_settled_until_it_is_claimed(rig: &mut Rig) {
    let q = rig.define("q");
    rig.put(&q);
    let id = rig.take_and(&q, lease(1, NOW));
    let owner = rig.owner();
    assert!(rig.store().take_leased(owner, LeaseToken(1)).is_ok());
    assert!(rig.claim(rig.owner(), END).is_empty());
    rig.settle(owner, &q, id, remove()).unwrap();
    assert!(rig.counts(&q).is_zero());
}

pub fn a_lease_given_back_is_a_lease_again(rig: &mut Rig) {
    let q = rig.define("q");
    rig.put(&q);
    let id = rig.take_and(&q, lease(1, SOON));
    let (first, second) = (rig.owner(), rig.owner());
    rig.store().take_leased(first, LeaseToken(1)).unwrap();
    let meanwhile = rig.store().take_leased(second, LeaseToken(1));
    assert_eq!(
        meanwhile.err(),
        Some(StoreError::UnknownLease),
        "one ack at a time"
    );
    assert_eq!(
        rig.settle(second, &q, id, remove()),
        Err(CommitError::Fenced)
    );
    rig.release(first, &q, id);
    assert_eq!(rig.state(&q, id), Some(MessageState::Leased(SOON)));
    assert_eq!((rig.counts(&q).leased, rig.counts(&q).leased_open), (1, 1));
    assert!(rig.store().take_leased(second, LeaseToken(1)).is_ok());
}

pub fn a_leased_message_expires_only_when_the_lease_is_over(rig: &mut Rig) {
    let q = rig.define("q");
    rig.draft(&q).expires(NOW.after(10)).send();
    rig.take_and(&q, lease(1, SOON));
    assert!(rig.claim(rig.owner(), Timestamp(SOON.0 - 1)).is_empty());
    let due = rig.claim(rig.owner(), SOON);
    assert_eq!(due[0].what, DueWhat::Expiry);
}

pub fn a_token_never_given_is_unknown(rig: &mut Rig) {
    rig.define("q");
    let error = rig.store().take_leased(rig.owner(), LeaseToken(99)).err();
    assert_eq!(error, Some(StoreError::UnknownLease));
}
