//! Points in time as plain values. Core never asks what time it is: `now` is always an argument.

use serde::{Deserialize, Serialize};

/// A duration in milliseconds.
pub type Millis = u64;

/// Milliseconds since the Unix epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The time `millis` later; saturates at the end of time instead of wrapping.
    #[must_use]
    pub fn after(self, millis: Millis) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to `self`, zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Millis {
        self.0.saturating_sub(earlier.0)
    }
}
