//! What must be the same after each step.

use oncue_core::message::Message;
use oncue_store::MessageState;

use super::Run;
use crate::rig::END;

impl Run {
    pub(super) fn compare(&mut self) {
        self.model.drain_changes();
        self.rig.check();
        assert_eq!(
            self.rig.store().next_due(),
            self.model.next_due(),
            "next due"
        );
        for queue in &self.queues {
            let expected = self.model.counts(queue).unwrap_or_default();
            assert_eq!(self.rig.counts(queue), expected, "counts of {queue}");
            assert_eq!(
                self.model.recount(queue).unwrap_or_default(),
                expected,
                "the model's own"
            );
            for priority in [0, 5] {
                let oldest = self.rig.store().oldest(queue, priority);
                assert_eq!(
                    oldest,
                    self.model.oldest(queue, priority),
                    "oldest of {queue} from {priority}"
                );
            }
            for id in &self.ids {
                let found = self.rig.state(queue, *id);
                let expected = self
                    .model
                    .find(queue, *id)
                    .map(|(_, state)| MessageState::from(state));
                assert_eq!(found, expected, "state of {id} in {queue}");
            }
            for key in ["k0", "k1", "k2"] {
                let known = self
                    .rig
                    .store()
                    .key(queue, key, self.now)
                    .expect("a read works");
                let known = known.map(|known| (known.id, known.body_digest));
                assert_eq!(
                    known,
                    self.model.key(queue, key, self.now),
                    "key {key} of {queue}"
                );
            }
        }
        for key in ["s0", "s1"] {
            let value = self
                .rig
                .store()
                .state("n", key)
                .expect("a read works")
                .map(|(value, _)| value);
            assert_eq!(
                value.as_ref(),
                self.model.state("n", key).map(|(value, _)| value)
            );
        }
        assert!(self.now < END, "a run is shorter than the rig's time");
    }
}

/// Compares what was handed out, but for where the body is.
pub(super) fn assert_same(taken: &[Message], expected: &[Message]) {
    let shown = |messages: &[Message]| {
        let parts = |m: &Message| {
            (
                m.header.clone(),
                m.attempts,
                m.dead_letter.clone(),
                m.body.len(),
            )
        };
        messages.iter().map(parts).collect::<Vec<_>>()
    };
    assert_eq!(
        shown(taken),
        shown(expected),
        "taken (left) is not what the model gives (right)"
    );
}
