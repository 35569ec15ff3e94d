use proptest::prelude::*;

use super::*;
use crate::trigger::scene::queue;

#[test]
fn queues_in_credit_take_turns() {
    let mut turns = Fairness::default();
    let (a, b) = (queue("a"), queue("b"));
    turns.push(&a);
    turns.push(&b);
    turns.push(&a);
    assert_eq!(turns.len(), 2, "a second wish changes nothing");
    assert_eq!(turns.next(), Some(a.clone()));
    turns.push(&a);
    assert_eq!(turns.next(), Some(b));
    assert_eq!(turns.next(), Some(a));
    assert_eq!(turns.next(), None);
    assert!(turns.is_empty());
}

#[test]
fn a_queue_in_debt_is_passed_over_until_the_rounds_have_paid_it() {
    let mut turns = Fairness::default();
    let (large, small) = (queue("large"), queue("small"));
    turns.push(&large);
    turns.push(&small);
    assert_eq!(turns.next().as_ref(), Some(&large));
    turns.charge(&large, 4 * ROUND_PAY.unsigned_abs());
    turns.push(&large);
    assert_eq!(turns.balance(&large), -3 * ROUND_PAY);
    let mut served = 0;
    loop {
        let next = turns.next().expect("both are ready");
        if next == large {
            break;
        }
        served += 1;
        turns.charge(&next, ROUND_PAY.unsigned_abs() / 2);
        turns.push(&next);
    }
    // Two tasks spend a round's pay.
    assert_eq!(served, 2 * 4);
}

#[test]
fn a_debtor_alone_is_served_at_once() {
    let mut turns = Fairness::default();
    let a = queue("a");
    turns.charge(&a, u64::MAX);
    turns.push(&a);
    assert_eq!(turns.next(), Some(a.clone()));
    turns.charge(&a, 1);
    assert!(
        turns.balance(&a) > 0,
        "served with nobody before it: the rounds have passed"
    );
}

#[test]
fn to_be_asked_in_vain_pays_no_debt() {
    let mut turns = Fairness::default();
    let (large, small) = (queue("large"), queue("small"));
    turns.charge(&large, 4 * ROUND_PAY.unsigned_abs());
    // Many sweeps find no capacity for anyone.
    for _ in 0..100 {
        turns.push(&large);
        turns.push(&small);
        assert_eq!(turns.next().as_ref(), Some(&small));
        assert_eq!(turns.next().as_ref(), Some(&large));
    }
    assert_eq!(turns.balance(&large), -3 * ROUND_PAY);
}

#[test]
fn a_charge_moves_a_queue_that_stands_in_line() {
    let mut turns = Fairness::default();
    let (a, b) = (queue("a"), queue("b"));
    turns.push(&a);
    turns.push(&b);
    turns.charge(&a, 2 * ROUND_PAY.unsigned_abs());
    assert_eq!(turns.next(), Some(b.clone()));
    turns.push(&b);
    // Enough rounds pass for both; then who came first is first.
    turns.charge(&b, ROUND_PAY.unsigned_abs());
    turns.charge(&b, ROUND_PAY.unsigned_abs() / 2);
    turns.charge(&b, ROUND_PAY.unsigned_abs());
    turns.charge(&b, 1);
    assert!(turns.balance(&a) > 0 && turns.balance(&b) > 0);
    assert_eq!(turns.next(), Some(a));
    assert_eq!(turns.next(), Some(b));
    assert!(turns.is_empty());
}

#[test]
fn nobody_saves_up() {
    let mut turns = Fairness::default();
    let (idle, busy) = (queue("idle"), queue("busy"));
    turns.charge(&idle, 1);
    for _ in 0..100 {
        turns.push(&busy);
        assert_eq!(turns.next().as_ref(), Some(&busy));
        turns.charge(&busy, 3 * ROUND_PAY.unsigned_abs());
    }
    assert_eq!(turns.balance(&idle), ROUND_PAY);
    turns.forget(&idle);
    turns.push(&busy);
    turns.forget(&busy);
    assert!(turns.is_empty());
}

proptest! {
    /// Queues that are always ready burn alike, whatever their tasks cost: two of them never differ
    /// by more than the largest task and a round's pay each.
    #[test]
    fn queues_that_stay_ready_burn_alike(
        costs in prop::collection::vec(1..2_000_000_000_u64, 2..6),
        jitter in prop::collection::vec(0..1_000_u64, 1..300),
    ) {
        let names: Vec<QueueName> =
            (0..costs.len()).map(|index| queue(&format!("q{index}"))).collect();
        let mut burnt = vec![0_u64; costs.len()];
        let mut turns = Fairness::default();
        names.iter().for_each(|name| turns.push(name));
        let largest = costs.iter().max().copied().unwrap_or(0);
        let bound = 2 * (largest + 1_000 + ROUND_PAY.unsigned_abs());
        for more in jitter.iter().cycle().take(1_000) {
            let name = turns.next().expect("all are ready");
            let index = names.iter().position(|other| *other == name).expect("known");
            let cost = costs[index] + more;
            burnt[index] += cost;
            turns.charge(&name, cost);
            turns.push(&name);
            let most = burnt.iter().max().copied().unwrap_or(0);
            let least = burnt.iter().min().copied().unwrap_or(0);
            prop_assert!(most - least <= bound, "{:?} by {:?}", burnt, costs);
        }
    }
}
