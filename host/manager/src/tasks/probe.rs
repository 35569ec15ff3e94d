//! The seam to a bench: told of each call that a guest makes of its session, before anything is
//! done, and free to refuse it or to end the guest there.
//!
//! A host has no probe. A bench has one to learn which queues a handler wants, and to show that a
//! handler which is refused or cut off in the midst of its work leaves nothing half done. It
//! changes nothing else: what becomes of the unit is decided where it always is.

use std::fmt;

use oncue_core::names::QueueName;

use super::Delivered;
use super::port::PortError;
use super::session::TaskSession;

/// A call of a guest, as far as it reaches the queue manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionCall<'a> {
    /// A get from that queue.
    Get(&'a QueueName),
    /// A look at that queue.
    Browse(&'a QueueName),
    /// The depth of that queue.
    Depth(&'a QueueName),
    /// A put to that queue; a forward is one too.
    Put(&'a QueueName),
    /// A request to that queue.
    Request(&'a QueueName),
    /// A state key is read. Adding to a number reads and writes.
    StateRead(&'a str),
    /// A state key is written or deleted.
    StateWrite(&'a str),
    /// State keys are listed.
    StateList,
    /// The handler ends its unit of work itself (trigger style).
    Commit,
}

impl fmt::Display for SessionCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get(queue) => write!(f, "get from \"{queue}\""),
            Self::Browse(queue) => write!(f, "browse of \"{queue}\""),
            Self::Depth(queue) => write!(f, "depth of \"{queue}\""),
            Self::Put(queue) => write!(f, "put to \"{queue}\""),
            Self::Request(queue) => write!(f, "request to \"{queue}\""),
            Self::StateRead(key) => write!(f, "read of state \"{key}\""),
            Self::StateWrite(key) => write!(f, "write of state \"{key}\""),
            Self::StateList => f.write_str("list of state keys"),
            Self::Commit => f.write_str("commit"),
        }
    }
}

/// Sees the calls of all guests of a manager. Called on the thread of the guest: must be quick.
pub trait Probe: Send + Sync + 'static {
    /// A guest is about to make `call`.
    ///
    /// # Errors
    /// What the guest meets instead: a value such as [`PortError::Full`], or its end
    /// ([`PortError::Cut`]).
    fn before(&self, call: SessionCall<'_>) -> Result<(), PortError>;

    /// A guest is about to be entered for `message`: its instance is made, its handler not yet
    /// called. Not told in trigger style, where the guest gets its messages itself.
    fn entered(&self, message: &Delivered) {
        let _ = message;
    }
}

impl TaskSession {
    /// Tells the probe, if there is one.
    pub(crate) fn probe(&self, call: SessionCall<'_>) -> Result<(), PortError> {
        match &self.shared.probe {
            None => Ok(()),
            Some(probe) => probe.before(call),
        }
    }

    /// The guest is entered for a message: the probe is told, if there is one.
    pub fn entered(&self, message: &Delivered) {
        self.guest_begins();
        if let Some(probe) = &self.shared.probe {
            probe.entered(message);
        }
    }
}
