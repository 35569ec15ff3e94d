//! The same over the embedded store. One unit waits at a time, so that the batches of its
//! committer are the same in every run; few bytes are written, so that its engine compacts nothing.

use std::time::Duration;

use oncue_store::Store;
use oncue_store::embedded::{EmbeddedOptions, EmbeddedStore};

use super::Path;
use crate::values::{body, commit_puts, define, name, put, whole_message};

/// Puts of one unit.
const UNIT_PUTS: usize = 64;

/// Longer than any run: what looks at the disk by time would count differently each time.
const NEVER: Duration = Duration::from_secs(3600);

pub(super) const PUT: Path = Path {
    name: "embedded-put",
    unit: "instructions a durable put alone in its batch",
    count: 300,
    run: |count| puts(count, 1, true),
};

pub(super) const UNIT: Path = Path {
    name: "embedded-unit",
    unit: "instructions for 64 durable puts in one batch",
    count: 30,
    run: |count| puts(count, UNIT_PUTS, true),
};

pub(super) const LOOSE: Path = Path {
    name: "embedded-loose",
    unit: "instructions for 64 puts that are not persistent",
    count: 30,
    run: |count| puts(count, UNIT_PUTS, false),
};

pub(super) const MESSAGE: Path = Path {
    name: "embedded-message",
    unit: "instructions for a durable put, a handler's unit and a get",
    count: 200,
    run: messages,
};

fn with_store(work: impl FnOnce(&dyn Store)) {
    let directory = tempfile::tempdir().expect("a directory");
    let options = EmbeddedOptions {
        reserve_bytes: 0,
        ballast_bytes: 0,
        guard_interval: NEVER,
        ..EmbeddedOptions::default()
    };
    let store = EmbeddedStore::open(directory.path(), options).expect("the store opens");
    define(&store, &name("orders"));
    define(&store, &name("done"));
    work(&store);
    store.close();
}

fn puts(count: u32, together: usize, persistent: bool) {
    let (queue, body) = (name("orders"), body());
    with_store(|store| {
        for _ in 0..count {
            let unit = (0..together).map(|_| put(store, &queue, &body, persistent));
            commit_puts(store, unit.collect());
        }
    });
}

fn messages(count: u32) {
    let (from, to, body) = (name("orders"), name("done"), body());
    with_store(|store| {
        for owner in 0..u64::from(count) {
            whole_message(store, owner, [&from, &to], &body, true);
        }
    });
}
