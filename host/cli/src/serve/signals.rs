//! SIGTERM and SIGINT: the first one asks for an end, the second one demands it. SIGHUP has tokens,
//! certificates and the log's filter read again.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that are caught.
pub(crate) struct Signals {
    hang_up: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Catches them from now on.
    ///
    /// # Errors
    /// The system refuses the handlers.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self {
            hang_up: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Resolves at the next one that asks for the end, with its name; what the other one asks for
    /// is done meanwhile.
    pub(crate) async fn next(&mut self, reload: impl Fn()) -> &'static str {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return "SIGTERM",
                _ = self.interrupt.recv() => return "SIGINT",
                _ = self.hang_up.recv() => reload(),
            }
        }
    }
}
