//! What keeps out whoever should not be here: one option of the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use oncue_manager::handle::Handle;
use oncue_manager::status::HostEvent;
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;

use crate::audit::{self, Audit, Entry};
use crate::auth::Access;
use crate::tls::Tls;

/// How often files are looked at, whether they have changed.
const LOOK: Duration = Duration::from_millis(500);

/// Who may ask, over what, and where it is written down.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// Tokens and rights.
    pub access: Access,
    /// The audit log; none is kept without.
    pub audit: Option<Audit>,
    /// The certificate to listen with; plain HTTP without.
    pub tls: Option<Tls>,
    /// A proxy in front of the host does TLS, so plain HTTP may be listened for.
    pub is_proxied: bool,
    /// Has files read again at once.
    pub reload: Reload,
}

/// Wakes whoever looks after tokens and certificates. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Reload(Arc<Notify>);

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

impl Security {
    /// Reads tokens and certificates again now, changed or not.
    pub fn reload(&self) {
        self.reload.0.notify_one();
    }

    /// Whether browsers reach the host over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.is_proxied || self.tls.is_some()
    }

    /// Looks after files that change, and after what happens without a request; until it is
    /// dropped.
    pub(crate) async fn keep(self, handle: Handle) {
        let files = self.clone().watch_files();
        let events = self.note_events(handle);
        tokio::join!(files, events);
    }

    async fn watch_files(self) {
        let mut ticks = tokio::time::interval(LOOK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let always = tokio::select! {
                _ = ticks.tick() => false,
                () = self.reload.0.notified() => true,
            };
            let security = self.clone();
            let looked = tokio::task::spawn_blocking(move || security.look(always)).await;
            if looked.is_err() {
                tracing::error!("a look at tokens and certificates panicked");
            }
        }
    }

    fn look(&self, always: bool) {
        self.look_at_tokens(always);
        self.look_at_certificate(always);
    }

    /// Reads the tokens again if their file has changed. Asked for each request that needs one, so
    /// that a revoked token is refused from then on.
    pub(crate) fn look_at_tokens(&self, always: bool) {
        if self.access.reload(always) {
            self.note_host("tokens-read", &self.access.names().join(", "));
        }
    }

    fn look_at_certificate(&self, always: bool) {
        let Some(tls) = &self.tls else {
            return;
        };
        if tls.reload(always) {
            self.note_host("certificate-read", "");
        }
    }

    fn note_host(&self, action: &str, object: &str) {
        if let Some(audit) = &self.audit {
            audit.note_host(action, object);
        }
    }

    /// Changes by files in the plugins directory are changes too.
    async fn note_events(self, handle: Handle) {
        let Some(audit) = &self.audit else {
            return;
        };
        let mut events = handle.events();
        loop {
            match events.recv().await {
                Ok(HostEvent::Plugin {
                    name,
                    state,
                    digest,
                    ..
                }) => {
                    let mut entry = Entry::new(&format!("plugin-{state}"), &name, audit::DONE);
                    entry.digest = digest;
                    audit.note(&entry.by(Some("plugins-directory"), None));
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    self.note_host("events-missed", &missed.to_string());
                }
                Err(RecvError::Closed) => return,
            }
        }
    }
}
