//! A disk that does not keep up: what waits is bounded, and nobody who submits waits.

use std::sync::Arc;

use oncue_core::names::QueueName;
use oncue_core::queue::Counts;
use oncue_core::unit_of_work::Unit;
use oncue_store::{ChangeSink, Commit, CommitError, StopReason};
use parking_lot::{Condvar, Mutex};

use super::{Embedded, options};
use crate::draft::Draft;
use crate::rig::Rig;

/// Bytes that may wait in this test's store, and of one message.
const WAITING: u64 = 100_000;
const LENGTH: usize = 1000;

/// Holds whoever tells it of a change: the committer, with everything behind it.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    moved: Condvar,
}

impl Gate {
    fn set(&self, closed: bool) {
        *self.is_closed.lock() = closed;
        self.moved.notify_all();
    }
}

impl ChangeSink for Gate {
    fn changed(&self, _: &QueueName, _: &Counts) {
        let mut closed = self.is_closed.lock();
        while *closed {
            self.moved.wait(&mut closed);
        }
    }

    fn stopped(&self, _: Option<StopReason>) {}
}

#[test]
fn what_waits_for_the_disk_is_bounded_and_nobody_who_submits_waits() {
    let mut rig = Rig::new(Embedded::with(oncue_store::embedded::EmbeddedOptions {
        waiting_bytes_max: WAITING,
        ..options()
    }));
    let queue = rig.define("q");
    let gate = Arc::new(Gate::default());
    rig.store().attach(gate.clone());
    let submit = |refuse_when_busy: bool| -> Commit {
        let put = Draft::new(&rig, &queue).body(vec![b'x'; LENGTH]).into_put();
        rig.store().commit(Unit {
            puts: vec![put],
            refuse_when_busy,
            ..Unit::default()
        })
    };
    gate.set(true);
    let mut accepted = Vec::new();
    let mut refused = None;
    // Bounded: each takes more than its body.
    for _ in 0..=WAITING / LENGTH as u64 + 10_000 {
        let mut commit = submit(true);
        match commit.try_answer() {
            None => accepted.push(commit),
            Some(answer) => {
                refused = answer.err();
                break;
            }
        }
    }
    let Some(CommitError::Busy { bytes, .. }) = refused else {
        panic!("not refused for what waits: {refused:?}");
    };
    assert!(bytes <= WAITING, "{bytes} bytes wait");
    let sentence = refused.map(|error| error.to_string()).unwrap_or_default();
    assert!(sentence.ends_with("[store-busy]"), "{sentence}");
    // A task's own unit is not refused: its bytes are in memory anyway.
    accepted.push(submit(false));
    gate.set(false);
    let written = accepted.len();
    for commit in accepted {
        commit.wait().expect("what was accepted is written");
    }
    assert!(written > 10, "{written} fitted");
    submit(true).wait().expect("there is room again");
}
