//! Work is done per event, never per queue: queues that have nothing to do cost nothing.

use oncue_budget::rig::Rig;

use crate::allocations::ALONE;

/// Queues that have nothing to do.
const IDLE: usize = 10_000;

/// Messages counted.
const MESSAGES: u32 = 20;

/// Questions to the rule that so many messages need, each alone, beside so many idle queues.
fn asked_beside(idle: usize) -> u64 {
    let mut rig = Rig::new(idle);
    rig.bursts(1, 1);
    let before = rig.manager.asked();
    rig.bursts(MESSAGES, 1);
    rig.manager.asked() - before
}

#[test]
fn ten_thousand_idle_queues_are_not_asked() {
    let _alone = ALONE.lock();
    let none = asked_beside(0);
    assert!(none >= u64::from(MESSAGES), "each message is asked for");
    assert_eq!(asked_beside(IDLE), none);
}
