//! Put, take and commit over the memory store: the model's own cost.

use oncue_store::memory::{MEMORY_STORE_MAX_BYTES, MemoryStore};

use super::Path;
use crate::values::{body, commit_puts, define, handled, name, put, take, whole_message};

/// Messages of one unit.
const BATCH_MESSAGES: usize = 64;

pub(super) const PUT: Path = Path {
    name: "memory-put",
    unit: "instructions a put",
    count: 5_000,
    run: puts,
};

pub(super) const MESSAGE: Path = Path {
    name: "memory-message",
    unit: "instructions for a put, a handler's unit and a get",
    count: 5_000,
    run: messages,
};

pub(super) const BATCH: Path = Path {
    name: "memory-batch",
    unit: "instructions for 64 messages put and taken as one unit each",
    count: 100,
    run: batches,
};

fn store() -> MemoryStore {
    let store = MemoryStore::new(1, MEMORY_STORE_MAX_BYTES);
    define(&store, &name("orders"));
    define(&store, &name("done"));
    store
}

fn puts(count: u32) {
    let (store, queue, body) = (store(), name("orders"), body());
    for _ in 0..count {
        commit_puts(&store, vec![put(&store, &queue, &body, true)]);
    }
}

fn messages(count: u32) {
    let (store, body) = (store(), body());
    let (from, to) = (name("orders"), name("done"));
    for owner in 0..u64::from(count) {
        whole_message(&store, owner, [&from, &to], &body, true);
    }
}

fn batches(count: u32) {
    use oncue_store::Store as _;
    let (store, queue, body) = (store(), name("orders"), body());
    for owner in 0..u64::from(count) {
        let unit = (0..BATCH_MESSAGES).map(|_| put(&store, &queue, &body, true));
        commit_puts(&store, unit.collect());
        let got = take(&store, owner, &queue, BATCH_MESSAGES);
        let unit = handled(owner, &queue, &got, Vec::new());
        store.commit(unit).wait().expect("the unit commits");
    }
}
