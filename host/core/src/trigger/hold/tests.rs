use std::collections::BTreeSet;

use super::*;

/// One of each reason.
pub(crate) fn samples() -> Vec<HoldReason> {
    let text = || "x.wasm".to_owned();
    vec![
        HoldReason::Empty,
        HoldReason::BelowTriggerPriority {
            waiting: 2,
            priority: 5,
        },
        HoldReason::Delayed {
            delayed: 1,
            deferred: 0,
        },
        HoldReason::Leased(1),
        HoldReason::InOpenUnit(1),
        HoldReason::TriggerPending,
        HoldReason::TriggerOffByOperator,
        HoldReason::TriggerOffByDepth,
        HoldReason::TriggerTypeNone,
        HoldReason::Paused(PausedBy::Queue),
        HoldReason::GetDisabled,
        HoldReason::ConsumerOpen {
            waiting: 1,
            leases: 0,
        },
        HoldReason::AtMaxTasks { running: 1, max: 1 },
        HoldReason::AlreadyInProcess,
        HoldReason::InsufficientMemory {
            wanted: 64 << 20,
            free: 12 << 20,
        },
        HoldReason::InsufficientHostMemory {
            wanted: 64 << 20,
            free: 12 << 20,
        },
        HoldReason::InsufficientFuel {
            wanted: 10_000_000_000,
            free: 1,
        },
        HoldReason::NoTaskSlot { slots: 4 },
        HoldReason::NoProcess(None),
        HoldReason::ComponentMissing(text()),
        HoldReason::ComponentCompiling(text()),
        HoldReason::ComponentQuarantined(text()),
        HoldReason::StartFailed(text()),
        HoldReason::BackingOff { failures: 3 },
        HoldReason::WaitingForDepth {
            counted: 99,
            depth: 100,
        },
        HoldReason::GroupBusy(1),
        HoldReason::RetryDelay(1),
        HoldReason::ParkedMessage(1),
        HoldReason::StoreStopped,
        HoldReason::Draining,
    ]
}

/// Reasons that a start can be held for.
pub(crate) fn start_reasons() -> Vec<HoldReason> {
    let from = |reason: &HoldReason| {
        reason.is_resources()
            || matches!(
                reason,
                HoldReason::NoProcess(_) | HoldReason::StartFailed(_)
            )
            || reason.as_str().starts_with("component-")
    };
    samples().into_iter().filter(from).collect()
}

#[test]
fn the_names_are_those_of_the_documentation() {
    let names: BTreeSet<&str> = samples().iter().map(HoldReason::as_str).collect();
    let listed: BTreeSet<&str> = ALL_NAMES.iter().copied().collect();
    assert_eq!(names, listed);
    assert_eq!(listed.len(), ALL_NAMES.len(), "a name is listed twice");
}

#[test]
fn every_reason_is_a_sentence_of_its_own() {
    let sentences: BTreeSet<String> = samples().iter().map(ToString::to_string).collect();
    assert_eq!(sentences.len(), samples().len());
    for sentence in sentences {
        assert!(
            sentence.len() > 15 && !sentence.ends_with('.'),
            "{sentence}"
        );
    }
}

fn check(reason: HoldReason, wanted: &str) {
    assert_eq!(reason.to_string(), wanted);
}

#[test]
fn a42_the_sentence_of_a_hold_for_memory() {
    check(
        HoldReason::InsufficientMemory {
            wanted: 64 << 20,
            free: 12 << 20,
        },
        "insufficient resources: memory 64 MiB wanted, 12 MiB free",
    );
    check(
        HoldReason::InsufficientMemory {
            wanted: 64 << 20,
            free: (63 << 20) + 12_345,
        },
        "insufficient resources: memory 64 MiB wanted, 63 MiB free",
    );
    check(
        HoldReason::InsufficientFuel {
            wanted: 10_000_000_000,
            free: 1_234_567,
        },
        "insufficient resources: fuel 10 G wanted, 1234 K free",
    );
    check(
        HoldReason::NoTaskSlot { slots: 4 },
        "insufficient resources: all 4 task slots are taken",
    );
}

#[test]
fn counts_agree_with_their_verbs() {
    check(
        HoldReason::RetryDelay(1),
        "1 message is waiting to be tried again after a failure",
    );
    check(
        HoldReason::Delayed {
            delayed: 0,
            deferred: 2,
        },
        "2 messages are deferred by the handler and not due yet",
    );
}
