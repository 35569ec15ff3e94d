//! Looking without taking.

use oncue_core::message::{Attempts, MessageId};
use oncue_core::unit_of_work::{Disposition, Wait};
use oncue_store::{Browsed, MessageState, StoreError};

use crate::rig::{END, NOW, Rig, later, lease, queue, remove};

fn browsed_ids(browsed: &[Browsed]) -> Vec<MessageId> {
    browsed.iter().map(|one| one.message.header.id).collect()
}

pub fn ready_messages_come_in_the_order_of_taking(rig: &mut Rig) {
    let q = rig.define("q");
    for n in 0..50_u16 {
        rig.draft(&q).priority((n * 7 % 10) as u8).send();
    }
    let browsed = browsed_ids(&rig.browse_all(&q, NOW, true));
    assert_eq!(browsed, rig.take_ids(&q, rig.owner(), 50));
    assert!(rig.browse_all(&q, NOW, true).is_empty());
    assert_eq!(rig.everything(&q).len(), 50);
}

pub fn ready_ones_come_first_then_the_others_by_state(rig: &mut Rig) {
    let q = rig.define("q");
    let delayed = rig.draft(&q).priority(9).due(END).send();
    rig.draft(&q).priority(9).send();
    let leased = rig.take_and(&q, lease(1, END));
    rig.draft(&q).priority(9).send();
    let parked = rig.take_and(&q, Disposition::Park(Attempts::default()));
    rig.draft(&q).priority(9).send();
    let retrying = rig.take_and(&q, later(Wait::Retry, END));
    let first = rig.draft(&q).priority(9).group("g").send();
    let held = rig.draft(&q).priority(9).group("g").send();
    rig.take_one(&q);
    let ready = rig.draft(&q).priority(0).send();
    let all = rig.everything(&q);
    assert_eq!(
        (all[0].message.header.id, all[0].state),
        (ready, MessageState::Ready)
    );
    let mut rest: Vec<_> = all[1..]
        .iter()
        .map(|b| (b.message.header.id, b.state))
        .collect();
    rest.sort_by_key(|(id, _)| *id);
    let expected = [
        (delayed, MessageState::Waiting(Wait::Delay, END)),
        (leased, MessageState::Leased(END)),
        (parked, MessageState::Parked),
        (retrying, MessageState::Waiting(Wait::Retry, END)),
        (first, MessageState::InUnit),
        (held, MessageState::GroupHeld),
    ];
    assert_eq!(rest, expected);
    for (id, state) in expected {
        assert_eq!(rig.state(&q, id), Some(state));
    }
    assert_eq!(browsed_ids(&rig.browse_all(&q, NOW, true)), [ready]);
}

pub fn expired_ones_are_passed_over(rig: &mut Rig) {
    let q = rig.define("q");
    rig.draft(&q).expires(NOW).send();
    rig.draft(&q).expires(NOW).due(END).send();
    let live = rig.draft(&q).expires(NOW.after(1)).send();
    assert_eq!(browsed_ids(&rig.browse_all(&q, NOW, false)), [live]);
    assert_eq!(rig.everything(&q).len(), 3);
}

pub fn pages_are_as_long_as_asked_and_end(rig: &mut Rig) {
    let q = rig.define("q");
    let put: Vec<_> = (0..10).map(|_| rig.put(&q)).collect();
    for max in [1, 3, 5, 9, 10, 11] {
        let mut all = Vec::new();
        let mut cursor = None;
        for _ in 0..=10 {
            let page = rig.browse(&q, cursor, max, NOW, false).unwrap();
            let full = page.messages.len() == max;
            all.extend(browsed_ids(&page.messages));
            cursor = page.next;
            assert!(full || cursor.is_none(), "a short page is the last");
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(cursor, None);
        assert_eq!(all, put, "pages of {max}");
    }
}

pub fn a_cursor_stands_while_messages_come_and_go(rig: &mut Rig) {
    let q = rig.define("q");
    let put: Vec<_> = (0..10).map(|_| rig.draft(&q).priority(4).send()).collect();
    let page = rig.browse(&q, None, 4, NOW, true).unwrap();
    assert_eq!(browsed_ids(&page.messages), put[..4]);
    let owner = rig.owner();
    for id in [put[0], put[3], put[4]] {
        assert!(rig.take_id(&q, owner, id).is_some());
        rig.settle(owner, &q, id, remove()).unwrap();
    }
    rig.draft(&q).priority(9).send();
    let new = rig.draft(&q).priority(0).send();
    let mut rest = Vec::new();
    let mut cursor = page.next;
    while cursor.is_some() {
        let page = rig.browse(&q, cursor, 2, NOW, true).unwrap();
        rest.extend(browsed_ids(&page.messages));
        cursor = page.next;
    }
    assert_eq!(rest, [put[5], put[6], put[7], put[8], put[9], new]);
}

pub fn a_cursor_that_is_none_is_refused(rig: &mut Rig) {
    let q = rig.define("q");
    rig.put(&q);
    for text in ["", "x", "9999999999999999999999999", "-1", "0.0", "\u{fc}"] {
        let page = rig.browse(&q, Some(text.to_owned()), 1, NOW, false);
        assert_eq!(page.err(), Some(StoreError::BadCursor), "{text:?}");
    }
}

pub fn a_cursor_of_another_queue_or_a_changed_one_is_refused(rig: &mut Rig) {
    let (q, other) = (rig.define("q"), rig.define("other"));
    for queue in [&q, &other] {
        rig.put(queue);
        rig.put(queue);
    }
    let page = rig.browse(&q, None, 1, NOW, false).unwrap();
    let cursor = page.next.expect("there is one more");
    let foreign = rig.browse(&other, Some(cursor.clone()), 1, NOW, false);
    assert_eq!(foreign.err(), Some(StoreError::BadCursor));
    for at in 0..cursor.len() {
        let mut bytes = cursor.clone().into_bytes();
        bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
        let text = String::from_utf8(bytes).expect("ASCII");
        let page = rig.browse(&q, Some(text.clone()), 1, NOW, false);
        assert_eq!(page.err(), Some(StoreError::BadCursor), "{text}");
    }
}

pub fn a_browse_takes_nothing(rig: &mut Rig) {
    let q = rig.define("q");
    let id = rig.put(&q);
    let changes = rig.changes();
    rig.everything(&q);
    rig.store().find(&q, id).unwrap();
    assert_eq!(rig.changes(), changes);
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), [id]);
}

pub fn what_is_not_there_is_not_found(rig: &mut Rig) {
    let (q, other) = (rig.define("q"), rig.define("other"));
    let id = rig.put(&q);
    assert_eq!(rig.state(&other, id), None);
    assert_eq!(rig.state(&q, rig.store().next_id()), None);
    assert_eq!(
        rig.state(
            &q,
            MessageId {
                origin: !id.origin,
                ..id
            }
        ),
        None
    );
    let nowhere = queue("nowhere");
    assert!(rig.store().find(&nowhere, id).unwrap().is_none());
    let error = rig.browse(&nowhere, None, 1, NOW, false).err();
    assert_eq!(error, Some(StoreError::UnknownQueue(nowhere)));
}
