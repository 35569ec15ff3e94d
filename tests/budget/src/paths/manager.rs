//! The whole manager, stepped by hand over the memory store: a put through its handle, the turn
//! that starts a task, the drain with a handler that answers each message, the end. The sandbox
//! alone is missing.

use super::Path;
use crate::rig::{PERIOD, Rig};

/// Messages of one burst.
const BURST_MESSAGES: usize = 100;

/// Queues that have nothing to do.
const IDLE_QUEUES: usize = 1000;

pub(super) const PUT: Path = Path {
    name: "manager-put",
    unit: "instructions a put to a queue that nothing serves, with its turn",
    count: 3_000,
    run: |count| {
        let mut rig = Rig::new(0);
        for _ in 0..count {
            rig.put("done");
            rig.turn();
        }
    },
};

pub(super) const MESSAGE: Path = Path {
    name: "manager-message",
    unit: "instructions from a put to the end of its task",
    count: 1_000,
    run: |count| Rig::new(0).bursts(count, 1),
};

pub(super) const BURST: Path = Path {
    name: "manager-burst",
    unit: "instructions for 100 messages that one task handles",
    count: 20,
    run: |count| Rig::new(0).bursts(count, BURST_MESSAGES),
};

pub(super) const BESIDE: Path = Path {
    name: "manager-beside-idle",
    unit: "instructions from a put to the end of its task, beside 1000 idle queues",
    count: 300,
    run: |count| Rig::new(IDLE_QUEUES).bursts(count, 1),
};

pub(super) const SWEEP: Path = Path {
    name: "manager-sweep",
    unit: "instructions for a sweep over 1000 idle queues",
    count: 20,
    run: |count| {
        let mut rig = Rig::new(IDLE_QUEUES);
        for _ in 0..count {
            rig.clock.advance(PERIOD);
            rig.turn();
        }
    },
};
