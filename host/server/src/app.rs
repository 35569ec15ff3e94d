//! What every route shares: the manager's handle, the options, and the bounds.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oncue_core::code::Code;
use oncue_manager::handle::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::audit::Entry;
use crate::console::Console;
use crate::doctor::Doctor;
use crate::error::Problem;
use crate::extract::permits_of;
use crate::security::Security;

/// Connections at a time, unless the options say otherwise.
const MAX_CONNECTIONS: usize = 768;

/// Bounds of the listener. Nothing a client does costs more than these.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Largest body of a request, in bytes. A queue's `max-message-length` holds beside it.
    pub body_limit: usize,
    /// Bytes of all bodies that are being received or worked on.
    pub body_memory: usize,
    /// How long a body may wait for a share of that memory before it is refused. Until then its
    /// bytes stay with the client and the system.
    pub body_wait: Duration,
    /// How long one body may take to arrive.
    pub body_time: Duration,
    /// Requests that only look, worked on at a time; those that wait for messages or events apart.
    pub max_requests: usize,
    /// Requests that change something, worked on at a time. They wait for the disk, so they must
    /// not take the places of those who look.
    pub max_changes: usize,
    /// Gets that wait and event streams at a time.
    pub max_waiting: usize,
    /// Connections at a time; further ones wait in the system's backlog.
    pub max_connections: usize,
    /// How long a connection may stay without a whole request head, or without taking the bytes of
    /// an answer.
    pub idle_time: Duration,
    /// How long a connection may take to agree on TLS.
    pub handshake_time: Duration,
    /// Connections of one address at a time; `None` is a quarter of all for other machines, and no
    /// bound for this one.
    pub max_connections_per_address: Option<usize>,
    /// How long requests in flight may take to finish once the server stops.
    pub stop_time: Duration,
    /// Names beside the loopback ones that a `Host` header may bear: those of a proxy in front.
    pub allowed_hosts: Vec<String>,
    /// Who may ask, over what, and where it is written down.
    pub security: Security,
    /// Looks at the host's own machine, where somebody can.
    pub doctor: Option<Doctor>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            body_limit: 16 << 20,
            body_memory: 256 << 20,
            body_wait: Duration::from_secs(1),
            body_time: Duration::from_secs(60),
            max_requests: 256,
            // One on each connection: what bounds them is the memory for bodies, and the store.
            max_changes: MAX_CONNECTIONS,
            max_waiting: 512,
            max_connections: MAX_CONNECTIONS,
            idle_time: Duration::from_secs(60),
            handshake_time: Duration::from_secs(10),
            max_connections_per_address: None,
            stop_time: Duration::from_secs(10),
            allowed_hosts: Vec::new(),
            security: Security::default(),
            doctor: None,
        }
    }
}

/// Shared by all routes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

/// What they share.
pub(crate) struct Shared {
    pub(crate) handle: Handle,
    pub(crate) options: ServerOptions,
    pub(crate) console: Console,
    requests: Arc<Semaphore>,
    changes: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    stopping: watch::Sender<bool>,
    ids: RequestIds,
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl App {
    pub(crate) fn new(handle: Handle, options: ServerOptions) -> Self {
        Self(Arc::new(Shared {
            handle,
            console: Console::default(),
            requests: Arc::new(Semaphore::new(options.max_requests)),
            changes: Arc::new(Semaphore::new(options.max_changes)),
            waiting: Arc::new(Semaphore::new(options.max_waiting)),
            bodies: Arc::new(Semaphore::new(permits_of(options.body_memory))),
            stopping: watch::Sender::new(false),
            ids: RequestIds::new(),
            options,
        }))
    }
}

impl Shared {
    /// A place among the requests that only look.
    ///
    /// # Errors
    /// `too-many-requests` when all are taken.
    pub(crate) fn admit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let taken = Arc::clone(&self.requests).try_acquire_owned();
        taken.map_err(|_full| too_many("requests are in work", self.options.max_requests))
    }

    /// A place among the requests that change something.
    ///
    /// # Errors
    /// `too-many-requests` when all are taken.
    pub(crate) fn admit_change(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let taken = Arc::clone(&self.changes).try_acquire_owned();
        taken.map_err(|_full| too_many("changes are in work", self.options.max_changes))
    }

    /// A place among those who wait.
    ///
    /// # Errors
    /// `too-many-requests` when all are taken.
    pub(crate) fn admit_waiting(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let taken = Arc::clone(&self.waiting).try_acquire_owned();
        taken.map_err(|_full| too_many("gets and event streams wait", self.options.max_waiting))
    }

    /// A share of the memory for bodies; none for an empty one. Waits a while for others to give
    /// theirs back.
    ///
    /// # Errors
    /// `too-many-requests` when that took too long.
    pub(crate) async fn reserve_body(
        &self,
        permits: u32,
    ) -> Result<Option<OwnedSemaphorePermit>, Problem> {
        if permits == 0 {
            return Ok(None);
        }
        // A body within the limit passes alone, even where the memory is set below the limit.
        let all = permits_of(self.options.body_memory);
        let permits = permits.min(u32::try_from(all).unwrap_or(u32::MAX));
        if let Ok(share) = Arc::clone(&self.bodies).try_acquire_many_owned(permits) {
            return Ok(Some(share));
        }
        let wait = Arc::clone(&self.bodies).acquire_many_owned(permits);
        match tokio::time::timeout(self.options.body_wait, wait).await {
            Ok(Ok(share)) => Ok(Some(share)),
            _ => {
                let memory = oncue_core::quantity::format_bytes(self.options.body_memory as u64);
                let detail =
                    format!("the bodies of other requests take up their {memory}; try again");
                Err(Problem::new(Code::TooManyRequests, detail))
            }
        }
    }

    /// Ends what waits, so that the server can stop.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Resolves once the server is stopping.
    pub(crate) async fn stopped(&self) {
        let mut stopping = self.stopping.subscribe();
        // The sender lives in `self`, so the wait cannot fail.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }

    /// Notes in the audit log what no request of the API has asked for.
    pub(crate) fn note(&self, action: &str, who: &str, result: &str, address: Option<IpAddr>) {
        if let Some(audit) = &self.options.security.audit {
            let who = Some(who).filter(|who| !who.is_empty());
            audit.note(&Entry::new(action, "", result).by(who, address));
        }
    }

    /// A new request id.
    pub(crate) fn new_request_id(&self) -> String {
        self.ids.next()
    }
}

fn too_many(what: &str, limit: usize) -> Problem {
    Problem::new(
        Code::TooManyRequests,
        format!("{limit} {what}, and no more are taken; try again"),
    )
}

/// Makes ids of requests: a random part for this start of the host, and a number.
struct RequestIds {
    start: u64,
    next: AtomicU64,
}

impl RequestIds {
    fn new() -> Self {
        Self {
            start: fastrand::u64(..),
            next: AtomicU64::new(1),
        }
    }

    fn next(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{:08x}-{number}", self.start & 0xffff_ffff)
    }
}
