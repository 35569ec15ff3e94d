//! What the service manager (systemd) is told: ready, alive, stopping. Where none has started us,
//! nobody is told and nothing happens.
//!
//! Alive means that the queue manager's loop answers, not only that the process is there: a host
//! that no longer decides is ended and started again, and loses nothing by that.

use std::net::SocketAddr;

use oncue_manager::Handle;
use sd_notify::NotifyState;

/// Of the time after which the service manager thinks us dead, so many parts may pass.
const PARTS: u32 = 3;

/// The host serves.
pub(super) fn ready(address: SocketAddr) {
    let status = format!("serving on http://{address}");
    tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// The host ends in order.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("draining")]);
}

/// Tells that we are alive as often as it is asked for, until the queue manager has ended.
pub(super) async fn alive(handle: Handle) {
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return;
    };
    let mut ticks = tokio::time::interval(limit / PARTS);
    loop {
        ticks.tick().await;
        // An answer that does not come lets the time pass.
        if handle.status().await.is_err() {
            return;
        }
        tell(&[NotifyState::Watchdog]);
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be told of the host's state");
    }
}
