//! SIGTERM and SIGINT: the first one asks for an end, the second one demands it.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both signals.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Catches both from now on.
    ///
    /// # Errors
    /// The system refuses the handlers.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Resolves at the next of them, with its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
