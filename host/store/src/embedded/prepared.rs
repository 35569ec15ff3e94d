//! A batch that is planned whole, and what follows its fate. The committer has one, used again
//! for each batch: the lists that hold something for each message keep their room, which is
//! otherwise asked for and touched anew some hundred times a second.

use oncue_core::unit_of_work::Receipt;

use super::committer::BATCH_UNITS_MAX;
use super::early::Noted;
use super::plan::{Batch, Progress};
use crate::CommitAnswer;

/// A planned batch.
pub(super) struct Prepared {
    pub(super) batch: Batch,
    pub(super) answers: Vec<(CommitAnswer, Receipt)>,
    /// Puts of it that are noted as early.
    pub(super) noted: Vec<Noted>,
}

impl Prepared {
    /// A first one.
    pub(super) fn new(progress: Progress) -> Self {
        Self {
            batch: Batch::new(progress),
            answers: Vec::new(),
            noted: Vec::new(),
        }
    }

    /// The next one. What of the lists has become longer than [`BATCH_UNITS_MAX`] is given up.
    pub(super) fn again(self, progress: Progress) -> Self {
        let Batch {
            own,
            deferred,
            removed,
            effects,
            ids,
            ..
        } = self.batch;
        let (mut deferred, mut ids) = (deferred, ids);
        deferred.clear();
        deferred.shrink_to(BATCH_UNITS_MAX);
        ids.clear();
        ids.shrink_to(BATCH_UNITS_MAX);
        let batch = Batch {
            own: emptied(own),
            deferred,
            removed: emptied(removed),
            effects: emptied(effects),
            ids,
            ..Batch::new(progress)
        };
        Self {
            batch,
            answers: emptied(self.answers),
            noted: emptied(self.noted),
        }
    }
}

fn emptied<T>(mut list: Vec<T>) -> Vec<T> {
    list.clear();
    list.shrink_to(BATCH_UNITS_MAX);
    list
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use oncue_core::names::QueueName;
    use oncue_core::unit_of_work::Unit;

    use super::super::layout::Space;
    use super::super::plan::{Effect, Planned};
    use super::*;
    use crate::Commit;

    fn filled(count: u64) -> Prepared {
        let queue: QueueName = "orders".parse().expect("it is a name");
        let mut prepared = Prepared::new(Progress::default());
        for number in 0..count {
            let key = Bytes::copy_from_slice(&number.to_be_bytes());
            prepared
                .batch
                .set_own(Space::Ready, key.as_ref(), Planned::Bare);
            prepared.batch.removed.push(number);
            prepared.batch.ids.insert(number);
            let effect = Effect::DeleteQueue(queue.clone());
            prepared.batch.effects.push(effect);
            let (answer, _) = Commit::pending(&Unit::default());
            let receipt = Receipt {
                commit: number,
                puts: Vec::new(),
            };
            prepared.answers.push((answer, receipt));
            prepared.noted.push((queue.clone(), number));
        }
        prepared
    }

    #[test]
    fn the_next_batch_begins_empty_and_keeps_no_more_room_than_a_batch_needs() {
        for count in [100, 3 * BATCH_UNITS_MAX as u64] {
            let Prepared {
                batch,
                answers,
                noted,
            } = filled(count).again(Progress::default());
            let lengths = [
                batch.own.len(),
                batch.removed.len(),
                batch.effects.len(),
                batch.ids.len(),
                batch.deferred.len(),
                answers.len(),
                noted.len(),
            ];
            assert_eq!(lengths, [0; 7]);
            let rooms = [
                batch.own.capacity(),
                batch.removed.capacity(),
                batch.effects.capacity(),
                answers.capacity(),
                noted.capacity(),
            ];
            let kept = 100..=BATCH_UNITS_MAX;
            assert!(rooms.iter().all(|room| kept.contains(room)), "{rooms:?}");
            assert!(batch.ids.capacity() <= 2 * BATCH_UNITS_MAX);
        }
    }
}
