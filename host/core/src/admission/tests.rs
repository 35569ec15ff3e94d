use proptest::prelude::*;

use super::*;
use crate::trigger::scene::{NOW, later, queue};

const CAPACITY: Resources = Resources {
    slots: 4,
    memory: 100,
    fuel: 1_000,
};

fn demand(memory: u64, fuel: u64) -> Demand {
    Demand { memory, fuel }
}

/// Reserves at a time, and gives the grant back at once: only the answer matters.
fn check(ledger: &mut Ledger, name: &str, wanted: Demand, at: Timestamp, answer: Option<Refusal>) {
    let got = match ledger.reserve(&queue(name), wanted, at) {
        Ok(grant) => {
            ledger.give_back(grant);
            None
        }
        Err(refusal) => Some(refusal),
    };
    assert_eq!(got, answer, "{name} {wanted:?} at {at:?}");
}

#[test]
fn all_is_reserved_or_none() {
    let mut ledger = Ledger::new(CAPACITY);
    let first = ledger
        .reserve(&queue("a"), demand(60, 100), NOW)
        .expect("fits");
    assert_eq!(
        ledger.in_use(),
        Resources {
            slots: 1,
            memory: 60,
            fuel: 100
        }
    );
    let memory = Refusal::Memory {
        wanted: 41,
        free: 40,
    };
    check(&mut ledger, "b", demand(41, 1), NOW, Some(memory));
    let fuel = Refusal::Fuel {
        wanted: 901,
        free: 900,
    };
    check(&mut ledger, "b", demand(40, 901), NOW, Some(fuel));
    assert_eq!(
        ledger.in_use(),
        Resources {
            slots: 1,
            memory: 60,
            fuel: 100
        }
    );
    check(&mut ledger, "b", demand(40, 900), NOW, None);
    ledger.give_back(first);
    assert_eq!(ledger.in_use(), Resources::default());
    assert_eq!(
        ledger.refused(),
        Refused {
            memory: 1,
            fuel: 1,
            ..Refused::default()
        }
    );
}

#[test]
fn slots_are_counted_too() {
    let mut ledger = Ledger::new(Resources {
        slots: 1,
        ..CAPACITY
    });
    let grant = ledger
        .reserve(&queue("a"), demand(1, 1), NOW)
        .expect("fits");
    check(
        &mut ledger,
        "b",
        demand(1, 1),
        NOW,
        Some(Refusal::Slots { slots: 1 }),
    );
    ledger.lend_slot(&grant);
    check(&mut ledger, "b", demand(1, 1), NOW, None);
    let other = ledger
        .reserve(&queue("b"), demand(1, 1), NOW)
        .expect("fits");
    assert_eq!(ledger.retake_slot(&grant), Err(Refusal::Slots { slots: 1 }));
    ledger.give_back(other);
    assert_eq!(ledger.retake_slot(&grant), Ok(()));
    assert_eq!(ledger.retake_slot(&grant), Ok(()), "it has it already");
    assert_eq!(ledger.in_use().slots, 1);
    ledger.lend_slot(&grant);
    ledger.give_back(grant);
    assert_eq!(ledger.in_use(), Resources::default());
}

#[test]
fn an_exchange_counts_its_own_amounts_as_free() {
    let mut ledger = Ledger::new(CAPACITY);
    let a = queue("a");
    let other = ledger
        .reserve(&queue("b"), demand(30, 1), NOW)
        .expect("fits");
    let grant = ledger.reserve(&a, demand(60, 1), NOW).expect("fits");
    let grant = ledger
        .exchange(&a, grant, demand(70, 2), NOW)
        .expect("fits");
    assert_eq!(
        ledger.in_use(),
        Resources {
            slots: 2,
            memory: 100,
            fuel: 3
        }
    );
    let (grant, refusal) = ledger
        .exchange(&a, grant, demand(71, 2), NOW)
        .expect_err("too much");
    assert_eq!(
        refusal,
        Refusal::Memory {
            wanted: 71,
            free: 70
        }
    );
    assert_eq!(grant.demand(), demand(70, 2), "unchanged");
    assert_eq!(ledger.in_use().memory, 100);
    let grant = ledger
        .exchange(&a, grant, demand(1, 1), NOW)
        .expect("less always fits");
    ledger.give_back(grant);
    ledger.give_back(other);
    assert_eq!(ledger.in_use(), Resources::default());
}

#[test]
#[cfg(debug_assertions)]
fn a_grant_that_is_dropped_is_noticed() {
    let mut ledger = Ledger::new(CAPACITY);
    let grant = ledger
        .reserve(&queue("a"), demand(1, 1), NOW)
        .expect("fits");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(grant)));
    assert!(caught.is_err());
    assert_eq!(ledger.grants(), 1, "and it stays counted");
}

#[test]
fn after_a_second_freed_capacity_is_set_aside_for_the_longest_held() {
    let mut ledger = Ledger::new(CAPACITY);
    let grant = ledger
        .reserve(&queue("x"), demand(50, 1), NOW)
        .expect("fits");
    let refused = |free| Some(Refusal::Memory { wanted: 90, free });
    check(&mut ledger, "large", demand(90, 1), NOW, refused(50));
    check(&mut ledger, "second", demand(90, 1), later(1), refused(50));
    check(&mut ledger, "small", demand(10, 1), later(1_000), None);
    assert_eq!(ledger.starved(later(1_000)), None, "not over a second yet");
    let starved = ledger
        .starved(later(1_001))
        .map(|(name, demand)| (name.clone(), demand));
    assert_eq!(starved, Some((queue("large"), demand(90, 1))));
    let aside = Refusal::Memory {
        wanted: 10,
        free: 0,
    };
    check(
        &mut ledger,
        "small",
        demand(10, 1),
        later(1_001),
        Some(aside),
    );
    ledger.give_back(grant);
    // Ten are free beside what is set aside.
    check(
        &mut ledger,
        "second",
        demand(90, 1),
        later(1_002),
        refused(10),
    );
    check(&mut ledger, "small", demand(10, 1), later(1_002), None);
    check(&mut ledger, "large", demand(90, 1), later(1_003), None);
    let next = ledger.starved(later(1_003)).map(|(name, _)| name.clone());
    assert_eq!(next, Some(queue("second")), "the next longest");
    ledger.forget(&queue("second"));
    assert_eq!(ledger.starved(later(9_000)), None);
    assert!(!ledger.anyone_waits());
}

#[test]
fn what_no_task_can_return_sets_nothing_aside() {
    let mut ledger = Ledger::new(CAPACITY);
    ledger.set_headroom(Some(5));
    let real = Refusal::Headroom { wanted: 6, free: 5 };
    check(&mut ledger, "a", demand(6, 1), NOW, Some(real));
    assert!(
        !ledger.anyone_waits(),
        "real memory is not the ledger's to return"
    );
    ledger.set_headroom(None);
    let never = Refusal::Memory {
        wanted: 101,
        free: 100,
    };
    check(&mut ledger, "a", demand(101, 1), NOW, Some(never));
    assert!(
        !ledger.anyone_waits(),
        "more than the capacity never comes free"
    );
    assert_eq!(ledger.could_ever(demand(101, 1)), Err(never));
    assert_eq!(ledger.could_ever(demand(100, 1_000)), Ok(()));
    // Lowered beneath what a waiting queue needs.
    let grant = ledger
        .reserve(&queue("x"), demand(50, 1), NOW)
        .expect("fits");
    check(
        &mut ledger,
        "a",
        demand(90, 1),
        NOW,
        Some(Refusal::Memory {
            wanted: 90,
            free: 50,
        }),
    );
    ledger.set_capacity(Resources {
        memory: 80,
        ..CAPACITY
    });
    assert_eq!(ledger.starved(later(2_000)), None);
    ledger.give_back(grant);
}

#[test]
fn a_lowered_capacity_grants_nothing_until_tasks_return() {
    let mut ledger = Ledger::new(CAPACITY);
    let grant = ledger
        .reserve(&queue("a"), demand(90, 1), NOW)
        .expect("fits");
    ledger.set_capacity(Resources {
        memory: 50,
        ..CAPACITY
    });
    assert_eq!(ledger.free().memory, 0);
    check(
        &mut ledger,
        "b",
        demand(1, 1),
        NOW,
        Some(Refusal::Memory { wanted: 1, free: 0 }),
    );
    ledger.give_back(grant);
    check(&mut ledger, "b", demand(50, 1), NOW, None);
}

#[test]
fn a_capacity_holds_at_least_one_default_task() {
    let tiny = Resources {
        slots: 0,
        memory: 1,
        fuel: 1,
    }
    .at_least(demand(64, 10));
    assert_eq!(
        tiny,
        Resources {
            slots: 1,
            memory: 64,
            fuel: 10
        }
    );
}

proptest! {
    /// The ledger is the sum over the grants outstanding, never above its capacity, zero after all
    /// are back; and a refusal names a resource that really lacks.
    #[test]
    fn the_ledger_is_the_sum_over_running_grants(
        steps in prop::collection::vec((0..4_usize, 0..60_u64, 0..600_u64, 0..6_usize), 0..80),
    ) {
        let mut ledger = Ledger::new(CAPACITY);
        let mut grants: Vec<(QueueName, Grant)> = Vec::new();
        for (time, (kind, memory, fuel, index)) in steps.into_iter().enumerate() {
            let now = later(300 * time as u64);
            let wanted = demand(memory, fuel);
            let name = queue(&format!("q{index}"));
            match kind {
                0 | 1 => match ledger.reserve(&name, wanted, now) {
                    Ok(grant) => grants.push((name, grant)),
                    Err(Refusal::Memory { wanted, free }) => prop_assert!(wanted > free),
                    Err(Refusal::Fuel { wanted, free }) => prop_assert!(wanted > free),
                    Err(Refusal::Slots { slots }) => prop_assert_eq!(slots, CAPACITY.slots),
                    Err(Refusal::Headroom { .. }) => prop_assert!(false, "none is set"),
                },
                2 if index < grants.len() => {
                    let (name, grant) = grants.swap_remove(index);
                    let grant = ledger.exchange(&name, grant, wanted, now);
                    grants.push((name, grant.unwrap_or_else(|(grant, _)| grant)));
                }
                3 if index < grants.len() => ledger.give_back(grants.swap_remove(index).1),
                _ => {}
            }
            let memory: u64 = grants.iter().map(|(_, grant)| grant.demand().memory).sum();
            let fuel: u64 = grants.iter().map(|(_, grant)| grant.demand().fuel).sum();
            let slots = u32::try_from(grants.len()).expect("few");
            // Checked without panicking, as a grant dropped by a failing case would panic again.
            let right = ledger.in_use() == Resources { slots, memory, fuel }
                && memory <= CAPACITY.memory
                && fuel <= CAPACITY.fuel
                && slots <= CAPACITY.slots;
            if !right {
                let in_use = ledger.in_use();
                grants.into_iter().for_each(|(_, grant)| ledger.give_back(grant));
                return Err(TestCaseError::fail(format!("{in_use:?}")));
            }
        }
        grants.into_iter().for_each(|(_, grant)| ledger.give_back(grant));
        prop_assert_eq!(ledger.in_use(), Resources::default());
        prop_assert_eq!(ledger.grants(), 0);
    }
}
