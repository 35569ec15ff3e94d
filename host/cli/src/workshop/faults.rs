//! The faults that a case is tried under after it passed as it is.

use serde::{Deserialize, Serialize};

use super::bench::Bench;
use super::job::Job;
use super::observed::Observed;
use super::suite::Trial;
use crate::exit::Failure;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FaultKind {
    /// The unit of work is undone at its commit, and the same message is handled again.
    Redelivery,
    /// Each put in turn is refused because its queue is full.
    RefusedPut,
    /// The handler is ended at each of its calls in turn.
    CutOff,
    /// The fuel is swept down to the least that passes.
    Fuel,
}

impl FaultKind {
    /// Every fault, in the order in which they are tried.
    pub(crate) const ALL: [Self; 4] =
        [Self::Redelivery, Self::RefusedPut, Self::CutOff, Self::Fuel];

    /// Its word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Redelivery => "redelivery",
            Self::RefusedPut => "refused-put",
            Self::CutOff => "cut-off",
            Self::Fuel => "fuel",
        }
    }
}

/// Tries a job under each fault. `golden` is what came of it as it is.
pub(super) fn try_out(
    _bench: &Bench,
    _job: &Job,
    _golden: &Observed,
    _kinds: &[FaultKind],
) -> Result<Vec<Trial>, Failure> {
    Ok(Vec::new())
}
