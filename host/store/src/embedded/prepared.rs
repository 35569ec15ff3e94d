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
