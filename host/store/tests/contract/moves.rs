//! Moves to another queue, messages set aside, and taking whatever its state.

use oncue_core::message::{Attempts, DeadLetter, DeadLetterReason, MessageId};
use oncue_core::outcome::Outcome;
use oncue_core::unit_of_work::{Disposition, LeaseToken, Unit, Wait};
use oncue_store::{MessageState, StoreError};

use crate::rig::{END, NOW, Rig, later, lease, queue, requeue};

fn dead_letter(from: &str) -> Box<DeadLetter> {
    Box::new(DeadLetter {
        reason: DeadLetterReason::Backout(Outcome::Trapped),
        queue: queue(from),
        process: Some("p".to_owned()),
        digest: Some("sha256:00".to_owned()),
        attempts: 5,
        detail: "wasm trap: unreachable".to_owned(),
        backtrace: Some("0: f".to_owned()),
        log_tail: Some("oh no".to_owned()),
        task: Some("t".to_owned()),
        time: NOW,
    })
}

const CHARGED: Attempts = Attempts {
    backout_count: 5,
    interrupted_count: 0,
    deferred_since: Some(NOW),
};

pub fn a_move_keeps_the_identity_and_bears_the_record(rig: &mut Rig) {
    let (q, dead) = (rig.define("q"), rig.define("dead"));
    let id = rig.draft(&q).priority(7).body("kept").send();
    let (_, before) = {
        let (owner, message) = rig.take_one(&q);
        let record = Some(dead_letter("q"));
        let away = Disposition::Move {
            to: dead.clone(),
            record,
            attempts: CHARGED,
        };
        rig.settle(owner, &q, id, away).unwrap();
        (owner, message)
    };
    assert_eq!(rig.state(&q, id), None);
    assert!(rig.counts(&q).is_zero());
    let (owner, moved) = rig.take_one(&dead);
    assert_eq!(moved.header, before.header);
    assert_eq!(moved.attempts, CHARGED);
    assert_eq!(moved.dead_letter, Some(dead_letter("q")));
    assert_eq!(rig.store().read_body(&moved.body, 0, 9).unwrap(), "kept");
    // The redrive: back where it was, clean.
    let back = Disposition::Move {
        to: q.clone(),
        record: None,
        attempts: Attempts::default(),
    };
    rig.settle(owner, &dead, id, back).unwrap();
    let (_, redriven) = rig.take_one(&q);
    assert_eq!(redriven.header, before.header);
    assert_eq!(
        (redriven.attempts, redriven.dead_letter),
        (Attempts::default(), None)
    );
    assert!(rig.counts(&dead).is_zero());
}

pub fn a_moved_message_stands_by_its_id(rig: &mut Rig) {
    let (q, to) = (rig.define("q"), rig.define("to"));
    let moved = rig.put(&q);
    let there = rig.put(&to);
    let attempts = Attempts::default();
    rig.take_and(
        &q,
        Disposition::Move {
            to: to.clone(),
            record: None,
            attempts,
        },
    );
    assert_eq!(rig.take_ids(&to, rig.owner(), 9), [moved, there]);
}

pub fn a_move_and_a_put_are_one_unit(rig: &mut Rig) {
    let (q, to) = (rig.define("q"), rig.define("to"));
    let id = rig.put(&q);
    let (owner, _) = rig.take_one(&q);
    let attempts = Attempts::default();
    let away = Disposition::Move {
        to: to.clone(),
        record: Some(dead_letter("q")),
        attempts,
    };
    let unit = Unit {
        owner: Some(owner),
        settles: vec![crate::rig::settle(&q, id, away)],
        puts: vec![rig.draft(&to).max_depth(1).into_put()],
        ..Unit::default()
    };
    rig.commit(unit)
        .expect("a unit's moves do not count for the bound of its puts");
    assert_eq!((rig.counts(&q).depth(), rig.counts(&to).depth()), (0, 2));
}

pub fn a_message_born_dead_bears_its_record(rig: &mut Rig) {
    let dead = rig.define("dead");
    let mut put = rig.draft(&dead).into_put();
    put.dead_letter = Some(dead_letter("q"));
    rig.commit(Unit {
        puts: vec![put],
        ..Unit::default()
    })
    .unwrap();
    let (_, message) = rig.take_one(&dead);
    assert_eq!(message.dead_letter, Some(dead_letter("q")));
}

pub fn a_parked_message_waits_for_an_operator(rig: &mut Rig) {
    let q = rig.define("q");
    let id = rig.put(&q);
    rig.take_and(&q, Disposition::Park(CHARGED));
    assert_eq!((rig.counts(&q).parked, rig.counts(&q).depth()), (1, 1));
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), []);
    assert_eq!(rig.take_id(&q, rig.owner(), id), None);
    assert!(rig.claim(rig.owner(), END).is_empty());
    let owner = rig.owner();
    let message = rig
        .store()
        .take_any(owner, &q, id)
        .unwrap()
        .expect("it is there");
    assert_eq!(message.attempts, CHARGED);
    assert_eq!(rig.state(&q, id), Some(MessageState::InUnit));
    rig.release(owner, &q, id);
    assert_eq!(rig.state(&q, id), Some(MessageState::Parked));
    rig.store()
        .take_any(owner, &q, id)
        .unwrap()
        .expect("it is there");
    rig.settle(owner, &q, id, requeue()).unwrap();
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), [id]);
}

pub fn take_any_takes_whatever_the_state_and_release_puts_it_back(rig: &mut Rig) {
    let q = rig.define("q");
    let ready = rig.draft(&q).priority(0).send();
    let delayed = rig.draft(&q).due(END).send();
    rig.put(&q);
    let leased = rig.take_and(&q, lease(1, END));
    rig.put(&q);
    let retrying = rig.take_and(&q, later(Wait::Retry, END));
    let first = rig.draft(&q).group("g").send();
    let held = rig.draft(&q).group("g").send();
    rig.take_and(&q, Disposition::Park(Attempts::default()));
    let all = [ready, delayed, leased, retrying, first, held];
    let before = rig.counts(&q);
    let states: Vec<_> = all.iter().map(|id| rig.state(&q, *id)).collect();
    for (id, state) in all.iter().zip(&states) {
        let owner = rig.owner();
        let taken = rig.store().take_any(owner, &q, *id).unwrap();
        assert_eq!(
            taken.map(|message| message.header.id),
            Some(*id),
            "{state:?}"
        );
        assert_eq!(
            rig.store().take_any(rig.owner(), &q, *id),
            Ok(None),
            "{state:?}"
        );
        assert_eq!(rig.store().take_any(owner, &q, *id), Ok(None), "{state:?}");
        rig.check();
        rig.release(owner, &q, *id);
        assert_eq!(rig.state(&q, *id), *state);
    }
    assert_eq!(rig.counts(&q), before);
    assert!(rig.store().take_leased(rig.owner(), LeaseToken(1)).is_ok());
}

pub fn take_any_takes_nothing_that_is_not_there(rig: &mut Rig) {
    let (q, other) = (rig.define("q"), rig.define("other"));
    let id = rig.put(&q);
    assert_eq!(rig.store().take_any(rig.owner(), &other, id), Ok(None));
    let stranger = MessageId {
        origin: !id.origin,
        ..id
    };
    assert_eq!(rig.store().take_any(rig.owner(), &q, stranger), Ok(None));
    let never = rig.store().next_id();
    assert_eq!(rig.store().take_any(rig.owner(), &q, never), Ok(None));
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), [id]);
}

pub fn a_body_is_gone_when_its_message_is(rig: &mut Rig) {
    let q = rig.define("q");
    let id = rig.draft(&q).body(vec![7; 100]).send();
    let stored = oncue_core::message::Body::Stored {
        sequence: id.sequence,
        size: 100,
    };
    assert_eq!(
        rig.store().read_body(&stored, 90, 100).unwrap(),
        vec![7; 10]
    );
    rig.take_and(&q, Disposition::Remove);
    assert_eq!(rig.store().read_body(&stored, 0, 1), Err(StoreError::Gone));
}
