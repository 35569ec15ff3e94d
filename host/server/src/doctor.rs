//! What a host finds when it looks at its own process and machine. What is looked at, and what it
//! means, is for whoever made the host to say: the server only asks.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::{Semaphore, SemaphorePermit};
use utoipa::ToSchema;

/// How it stands with one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// As it should be.
    Ok,
    /// It works, and may not for long or not well.
    Warn,
    /// It does not work.
    Fail,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// What was looked at: `open files`, `sync`.
    pub name: String,
    /// How it stands with it.
    pub state: Standing,
    /// What was found.
    pub fact: String,
    /// What to do, where something is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cure: Option<String>,
}

type Look = dyn Fn() -> Vec<Finding> + Send + Sync;

/// Looks at the process and its machine. Cheap to clone.
#[derive(Clone)]
pub struct Doctor {
    look: Arc<Look>,
    turn: Arc<Semaphore>,
}

impl Doctor {
    /// One that finds what `look` answers. It may wait for the disk; it is asked on a thread where
    /// that is no harm, and by one request at a time.
    #[must_use]
    pub fn new(look: impl Fn() -> Vec<Finding> + Send + Sync + 'static) -> Self {
        Self {
            look: Arc::new(look),
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// Waits for those who ask already.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.turn.acquire().await.ok()
    }

    pub(crate) fn look(&self) -> Vec<Finding> {
        (self.look)()
    }
}

impl fmt::Debug for Doctor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Doctor")
    }
}
