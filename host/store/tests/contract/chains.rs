//! Chains: units submitted before the earlier ones are known to be durable.

use bytes::Bytes;
use oncue_core::message::MessageId;
use oncue_core::names::QueueName;
use oncue_core::unit_of_work::{Chain, OwnerId, Revision, StateRead, StateWrite, Unit};
use oncue_store::{Commit, CommitError, MessageState};

use crate::rig::{Rig, queue, remove, settle};

/// What each unit of these cases puts to.
const OUT: &str = "out";

/// A unit of `chain` that removes a message and puts another.
fn link(rig: &Rig, chain: &Chain, owner: OwnerId, q: &QueueName, id: MessageId) -> Unit {
    Unit {
        owner: Some(owner),
        settles: vec![settle(q, id, remove())],
        puts: vec![rig.draft(&queue(OUT)).into_put()],
        chain: Some(chain.clone()),
        ..Unit::default()
    }
}

/// `count` messages of a queue in the hands of one owner.
fn in_hand(rig: &mut Rig, count: usize) -> (QueueName, OwnerId, Vec<MessageId>) {
    let q = rig.define("q");
    rig.define(OUT);
    for _ in 0..count {
        rig.put(&q);
    }
    let owner = rig.owner();
    let taken = rig.take_ids(&q, owner, count);
    assert_eq!(taken.len(), count);
    (q, owner, taken)
}

/// A read of a revision that no key has: a conflict.
fn outdated() -> Vec<StateRead> {
    vec![StateRead {
        namespace: "n".to_owned(),
        key: "k".to_owned(),
        revision: Some(Revision(u64::MAX)),
    }]
}

/// Submits all before it waits for any.
fn submit(rig: &Rig, units: Vec<Unit>) -> Vec<Result<u64, CommitError>> {
    let commits: Vec<Commit> = units
        .into_iter()
        .map(|unit| rig.store().commit(unit))
        .collect();
    let wait = |commit: Commit| commit.wait().map(|receipt| receipt.commit);
    commits.into_iter().map(wait).collect()
}

pub fn units_of_a_chain_are_applied_in_order(rig: &mut Rig) {
    let (q, owner, taken) = in_hand(rig, 5);
    let chain = Chain::default();
    let units: Vec<_> = taken
        .iter()
        .map(|id| link(rig, &chain, owner, &q, *id))
        .collect();
    let puts: Vec<_> = units.iter().map(|unit| unit.puts[0].header.id).collect();
    let answers = submit(rig, units);
    let numbers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    assert!(!chain.is_cut());
    assert!(rig.everything(&q).is_empty());
    let owner = rig.owner();
    assert_eq!(rig.take_ids(&queue(OUT), owner, 9), puts);
}

pub fn after_a_refused_unit_every_later_one_of_its_chain_is_undone(rig: &mut Rig) {
    let (q, owner, taken) = in_hand(rig, 6);
    let (chain, other) = (Chain::default(), Chain::default());
    let mut units: Vec<_> = taken
        .iter()
        .map(|id| link(rig, &chain, owner, &q, *id))
        .collect();
    units[1].reads = outdated();
    // One between the others that is of another chain, and one of none.
    units[3].chain = Some(other.clone());
    units[4].chain = None;
    let answers = submit(rig, units);
    let undone = |answer: &Result<u64, CommitError>| *answer == Err(CommitError::Undone);
    assert!(answers[0].is_ok());
    assert_eq!(answers[1], Err(CommitError::Conflict("k".to_owned())));
    assert!(undone(&answers[2]) && undone(&answers[5]), "{answers:?}");
    assert!(answers[3].is_ok() && answers[4].is_ok(), "{answers:?}");
    assert!(chain.is_cut() && !other.is_cut());
    assert_eq!(rig.everything(&queue(OUT)).len(), 3);
    for (index, id) in taken.iter().enumerate() {
        let stays = [1, 2, 5].contains(&index).then_some(MessageState::InUnit);
        assert_eq!(rig.state(&q, *id), stays, "message {index}");
    }
}

pub fn what_is_undone_stays_with_its_owner_and_can_be_run_again(rig: &mut Rig) {
    let (q, owner, taken) = in_hand(rig, 3);
    let chain = Chain::default();
    let mut units: Vec<_> = taken
        .iter()
        .map(|id| link(rig, &chain, owner, &q, *id))
        .collect();
    units[0].reads = outdated();
    let answers = submit(rig, units);
    assert_eq!(answers[2], Err(CommitError::Undone));
    for id in &taken {
        rig.release(owner, &q, *id);
        assert_eq!(rig.state(&q, *id), Some(MessageState::Ready));
    }
    let (owner, chain) = (rig.owner(), Chain::default());
    assert_eq!(rig.take_ids(&q, owner, 9), taken);
    let units = taken
        .iter()
        .map(|id| link(rig, &chain, owner, &q, *id))
        .collect();
    assert!(submit(rig, units).iter().all(Result::is_ok));
    assert_eq!(rig.everything(&queue(OUT)).len(), 3);
}

pub fn a_chain_that_was_cut_stays_cut(rig: &mut Rig) {
    let (q, owner, taken) = in_hand(rig, 2);
    let chain = Chain::default();
    let mut first = link(rig, &chain, owner, &q, taken[0]);
    first.reads = outdated();
    assert!(matches!(rig.commit(first), Err(CommitError::Conflict(_))));
    // Each waited for: in batches of their own.
    for _ in 0..3 {
        let again = link(rig, &chain, owner, &q, taken[1]);
        assert_eq!(rig.commit(again), Err(CommitError::Undone));
    }
    let empty = Unit {
        chain: Some(chain),
        ..Unit::default()
    };
    assert_eq!(rig.commit(empty), Err(CommitError::Undone));
    assert!(rig.everything(&queue(OUT)).is_empty());
}

pub fn any_refusal_undoes_puts_and_state_of_all_later_ones(rig: &mut Rig) {
    let (q, owner, taken) = in_hand(rig, 3);
    let chain = Chain::default();
    let mut units: Vec<_> = taken
        .iter()
        .map(|id| link(rig, &chain, owner, &q, *id))
        .collect();
    let write = |value: &'static str| StateWrite {
        namespace: "n".to_owned(),
        key: "k".to_owned(),
        value: Some(Bytes::from(value)),
    };
    // The first is refused by its put; alone the others would be applied.
    units[0].writes = vec![write("first")];
    units[0].puts[0].max_depth = Some(0);
    units[1].writes = vec![write("second")];
    let answers = submit(rig, units);
    assert!(matches!(answers[0], Err(CommitError::QueueFull { .. })));
    assert_eq!(
        answers[1..],
        [Err(CommitError::Undone), Err(CommitError::Undone)]
    );
    assert_eq!(rig.store().state("n", "k").unwrap(), None);
    assert!(rig.everything(&queue(OUT)).is_empty());
}

pub fn a_closed_store_cuts_a_chain(rig: &mut Rig) {
    let (q, owner, taken) = in_hand(rig, 1);
    let chain = Chain::default();
    let unit = link(rig, &chain, owner, &q, taken[0]);
    rig.store().close();
    assert!(matches!(rig.commit(unit), Err(CommitError::Stopped(_))));
    assert!(chain.is_cut());
}
