//! Members of a group: one owner at a time, in arrival order. The rule stands at the head of the
//! model.

use oncue_core::message::{Attempts, MessageId};
use oncue_core::names::QueueName;
use oncue_core::unit_of_work::{Disposition, Wait};
use oncue_store::{MessageState, Select, Take};

use crate::rig::{END, Rig, ids, later, lease, next, remove, requeue};

/// Puts members of one group, in this order of priorities.
fn members(rig: &Rig, queue: &QueueName, group: &str, priorities: &[u8]) -> Vec<MessageId> {
    priorities
        .iter()
        .map(|p| rig.draft(queue).group(group).priority(*p).send())
        .collect()
}

fn states(rig: &Rig, queue: &QueueName, ids: &[MessageId]) -> Vec<MessageState> {
    ids.iter()
        .map(|id| rig.state(queue, *id).expect("the member is there"))
        .collect()
}

use MessageState::{GroupHeld, InUnit, Ready};

pub fn a_group_is_not_in_two_hands(rig: &mut Rig) {
    let q = rig.define("q");
    let group = members(rig, &q, "g", &[4, 4, 4]);
    let (first, second) = (rig.owner(), rig.owner());
    assert_eq!(rig.take_ids(&q, first, 9), group[..1]);
    assert_eq!(rig.take_ids(&q, second, 9), []);
    assert_eq!(rig.take_id(&q, second, group[1]), None);
    assert_eq!(states(rig, &q, &group), [InUnit, GroupHeld, GroupHeld]);
    rig.settle(first, &q, group[0], remove()).unwrap();
    assert_eq!(rig.take_ids(&q, second, 9), group[1..2]);
    assert_eq!(rig.take_ids(&q, first, 9), []);
}

pub fn a_free_group_counts_whole_by_priority(rig: &mut Rig) {
    let q = rig.define("q");
    let group = members(rig, &q, "g", &[1, 9, 4, 9]);
    assert_eq!(rig.counts(&q).ready, [0, 1, 0, 0, 1, 0, 0, 0, 0, 2]);
    let (owner, _) = rig.take_one(&q);
    let counts = rig.counts(&q);
    assert_eq!(
        (counts.in_unit, counts.group_held, counts.counted(0)),
        (1, 3, 0)
    );
    rig.release(owner, &q, group[0]);
    assert_eq!(rig.counts(&q).ready, [0, 1, 0, 0, 1, 0, 0, 0, 0, 2]);
    assert_eq!(rig.counts(&q).group_held, 0);
}

pub fn arrival_beats_priority_within_a_group(rig: &mut Rig) {
    let q = rig.define("q");
    let group = members(rig, &q, "g", &[0, 9, 5]);
    let taken: Vec<_> = (0..3).map(|_| rig.take_and(&q, remove())).collect();
    assert_eq!(taken, group);
}

pub fn a_group_stands_where_its_first_member_stands(rig: &mut Rig) {
    let q = rig.define("q");
    let group = members(rig, &q, "g", &[2, 9]);
    let alone = rig.draft(&q).priority(5).send();
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), [alone, group[0]]);
}

pub fn groups_go_side_by_side(rig: &mut Rig) {
    let q = rig.define("q");
    let a = members(rig, &q, "a", &[4, 4]);
    let b = members(rig, &q, "b", &[4, 4]);
    let alone = rig.put(&q);
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), [a[0], b[0], alone]);
}

pub fn groups_of_two_queues_are_two_groups(rig: &mut Rig) {
    let (q, other) = (rig.define("q"), rig.define("other"));
    let here = members(rig, &q, "g", &[4]);
    let there = members(rig, &other, "g", &[4]);
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), here);
    assert_eq!(rig.take_ids(&other, rig.owner(), 9), there);
}

pub fn one_owner_takes_member_after_member(rig: &mut Rig) {
    let q = rig.define("q");
    let group = members(rig, &q, "g", &[4, 9, 4]);
    let (owner, stranger) = (rig.owner(), rig.owner());
    for id in &group {
        assert_eq!(rig.take_ids(&q, stranger, 0), []);
        assert_eq!(
            rig.take_ids(&q, owner, 9),
            [*id],
            "one member for each take"
        );
        assert_eq!(rig.take_ids(&q, stranger, 9), []);
    }
    rig.release(owner, &q, group[1]);
    assert_eq!(
        rig.take_ids(&q, stranger, 9),
        [],
        "the others are still in the first owner's hand"
    );
    assert_eq!(rig.take_ids(&q, owner, 9), [group[1]]);
}

pub fn the_owners_next_member_stands_in_the_queues_order(rig: &mut Rig) {
    let q = rig.define("q");
    let group = members(rig, &q, "g", &[9, 3]);
    let owner = rig.owner();
    assert_eq!(rig.take_ids(&q, owner, 1), group[..1]);
    let (high, low) = (
        rig.draft(&q).priority(5).send(),
        rig.draft(&q).priority(1).send(),
    );
    let fifo = Take {
        fifo: true,
        max: 1,
        ..next(&q, owner)
    };
    assert_eq!(ids(&rig.store().take(&fifo).unwrap()), group[1..]);
    rig.release(owner, &q, group[1]);
    assert_eq!(rig.take_ids(&q, owner, 9), [high, group[1], low]);
}

pub fn by_id_only_the_first_member(rig: &mut Rig) {
    let q = rig.define("q");
    let group = members(rig, &q, "g", &[4, 9]);
    let owner = rig.owner();
    assert_eq!(rig.take_id(&q, owner, group[1]), None);
    assert!(rig.take_id(&q, owner, group[0]).is_some());
    assert!(
        rig.take_id(&q, owner, group[1]).is_some(),
        "now it is the owner's next"
    );
}

pub fn by_correlation_only_the_first_member(rig: &mut Rig) {
    let q = rig.define("q");
    let first = rig.draft(&q).group("g").send();
    let second = rig.draft(&q).group("g").correlation("c").send();
    let by = |owner| {
        let select = Select::Correlation("c".to_owned());
        ids(&rig
            .store()
            .take(&Take {
                select,
                max: 9,
                ..next(&q, owner)
            })
            .unwrap())
    };
    let owner = rig.owner();
    assert_eq!(by(owner), []);
    assert_eq!(rig.take_ids(&q, owner, 9), [first]);
    assert_eq!(by(rig.owner()), []);
    assert_eq!(by(owner), [second]);
}

pub fn a_member_that_waits_holds_those_behind_it(rig: &mut Rig) {
    for (name, wait) in [
        ("delay", Wait::Delay),
        ("retry", Wait::Retry),
        ("defer", Wait::Defer),
    ] {
        let q = rig.define(name);
        let group = members(rig, &q, "g", &[4, 4]);
        rig.take_and(&q, later(wait, END));
        assert_eq!(
            states(rig, &q, &group),
            [MessageState::Waiting(wait, END), GroupHeld]
        );
        assert_eq!(rig.take_ids(&q, rig.owner(), 9), []);
        let owner = rig.owner();
        assert_eq!(rig.claim(owner, END).len(), 1);
        assert_eq!(rig.take_ids(&q, rig.owner(), 9), [], "claimed is in hand");
        rig.settle(owner, &q, group[0], requeue()).unwrap();
        assert_eq!(states(rig, &q, &group), [Ready, Ready]);
        assert_eq!(rig.take_ids(&q, rig.owner(), 9), group[..1]);
    }
}

pub fn a_delayed_put_holds_only_those_behind_it(rig: &mut Rig) {
    let q = rig.define("q");
    let first = rig.draft(&q).group("g").send();
    let second = rig.draft(&q).group("g").send();
    let delayed = rig.draft(&q).group("g").due(END).send();
    let behind = rig.draft(&q).group("g").priority(9).send();
    let all = [first, second, delayed, behind];
    let waiting = MessageState::Waiting(Wait::Delay, END);
    assert_eq!(states(rig, &q, &all), [Ready, Ready, waiting, GroupHeld]);
    let owner = rig.owner();
    assert_eq!(rig.take_ids(&q, owner, 9), [first]);
    assert_eq!(
        states(rig, &q, &all),
        [InUnit, GroupHeld, waiting, GroupHeld]
    );
    assert_eq!(rig.take_ids(&q, owner, 9), [second]);
    assert_eq!(
        rig.take_ids(&q, owner, 9),
        [],
        "what is behind is not the owner's next"
    );
    for id in [first, second] {
        rig.settle(owner, &q, id, remove()).unwrap();
    }
    assert_eq!(rig.take_ids(&q, owner, 9), []);
    let manager = rig.owner();
    assert_eq!(rig.claim(manager, END).len(), 1);
    rig.settle(manager, &q, delayed, requeue()).unwrap();
    assert_eq!(rig.take_and(&q, remove()), delayed);
    assert_eq!(rig.take_and(&q, remove()), behind);
}

pub fn a_leased_member_holds_all_others(rig: &mut Rig) {
    let q = rig.define("q");
    let group = members(rig, &q, "g", &[4, 4]);
    rig.take_and(&q, lease(7, END));
    assert_eq!(
        states(rig, &q, &group),
        [MessageState::Leased(END), GroupHeld]
    );
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), []);
    let owner = rig.owner();
    rig.store()
        .take_leased(owner, oncue_core::unit_of_work::LeaseToken(7))
        .unwrap();
    rig.settle(owner, &q, group[0], remove()).unwrap();
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), group[1..]);
}

pub fn a_parked_member_holds_those_behind_it(rig: &mut Rig) {
    let q = rig.define("q");
    let group = members(rig, &q, "g", &[4, 4]);
    let alone = rig.put(&q);
    rig.take_and(&q, Disposition::Park(Attempts::default()));
    assert_eq!(states(rig, &q, &group), [MessageState::Parked, GroupHeld]);
    assert_eq!(
        rig.take_ids(&q, rig.owner(), 9),
        [alone],
        "the rest of the queue goes on"
    );
}

pub fn a_move_frees_the_group_it_leaves_and_joins_the_one_it_meets(rig: &mut Rig) {
    let (q, to) = (rig.define("q"), rig.define("to"));
    let group = members(rig, &q, "g", &[4, 4]);
    let there = members(rig, &to, "g", &[4]);
    let attempts = Attempts::default();
    rig.take_and(
        &q,
        Disposition::Move {
            to: to.clone(),
            record: None,
            attempts,
        },
    );
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), group[1..]);
    assert_eq!(
        rig.take_ids(&to, rig.owner(), 9),
        group[..1],
        "its id is the lower one"
    );
    assert_eq!(states(rig, &to, &there), [GroupHeld]);
}

pub fn a_late_commit_under_an_early_id_becomes_the_first(rig: &mut Rig) {
    let q = rig.define("q");
    let early = rig.draft(&q).group("g");
    let late = rig.draft(&q).group("g").send();
    let owner = rig.owner();
    assert_eq!(rig.take_ids(&q, owner, 9), [late]);
    let early = early.send();
    assert_eq!(states(rig, &q, &[early, late]), [GroupHeld, InUnit]);
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), []);
    rig.settle(owner, &q, late, later(Wait::Retry, END))
        .unwrap();
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), [early]);
}

pub fn an_expired_first_member_is_not_stepped_over(rig: &mut Rig) {
    let q = rig.define("q");
    let expired = rig.draft(&q).group("g").expires(crate::rig::NOW).send();
    let second = rig.draft(&q).group("g").send();
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), []);
    let manager = rig.owner();
    assert_eq!(rig.claim(manager, crate::rig::NOW).len(), 1);
    rig.settle(manager, &q, expired, remove()).unwrap();
    assert_eq!(rig.take_ids(&q, rig.owner(), 9), [second]);
}

pub fn an_expired_member_is_claimed_though_its_group_is_held(rig: &mut Rig) {
    let q = rig.define("q");
    let first = rig.draft(&q).group("g").send();
    let expired = rig.draft(&q).group("g").expires(END).send();
    let third = rig.draft(&q).group("g").send();
    let (owner, manager) = (rig.owner(), rig.owner());
    assert_eq!(rig.take_ids(&q, owner, 9), [first]);
    assert_eq!(rig.claim(manager, END).len(), 1);
    assert_eq!(
        states(rig, &q, &[first, expired, third]),
        [InUnit, InUnit, GroupHeld]
    );
    assert_eq!(
        rig.take_ids(&q, owner, 9),
        [],
        "two hands: nobody takes the next"
    );
    rig.settle(manager, &q, expired, remove()).unwrap();
    assert_eq!(rig.take_ids(&q, owner, 9), [third]);
}

pub fn the_oldest_of_a_group_is_of_any_ready_member(rig: &mut Rig) {
    let q = rig.define("q");
    let at = oncue_core::time::Timestamp;
    rig.draft(&q).group("g").priority(1).put_at(at(10)).send();
    rig.draft(&q).group("g").priority(7).put_at(at(20)).send();
    rig.draft(&q).group("g").priority(7).put_at(at(30)).send();
    assert_eq!(rig.store().oldest(&q, 0), Some(at(10)));
    assert_eq!(rig.store().oldest(&q, 5), Some(at(20)));
    rig.take_one(&q);
    assert_eq!(rig.store().oldest(&q, 0), None);
}
