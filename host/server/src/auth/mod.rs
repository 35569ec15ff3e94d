//! Who may do what: tokens, roles, grants, and the console's sessions.
//!
//! A host without a tokens file is as open as its loopback address: whoever reaches it is `local`
//! and may do everything. Once there is one, every request needs an identity, until the host ends:
//! a file that goes away leaves nobody, not everybody. [`crate::guard`] asks here before any route;
//! [`rights`] says what each route needs. A route that looks at queues which are not in its path
//! asks [`Who`].

mod extract;
pub mod identity;
mod limits;
pub(crate) mod login;
pub(crate) mod rights;
mod sessions;
pub(crate) mod sight;
mod standing;
pub mod tokens;

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use governor::DefaultDirectRateLimiter;
use oncue_core::code::Code;
use oncue_manager::{Clock as _, SystemClock};
use tokio::sync::watch;

pub(crate) use extract::{Who, not_permitted};
use identity::Identity;
pub(crate) use sessions::CSRF;
use sessions::Sessions;
pub(crate) use standing::{Proof, Standing};
use tokens::{Tokens, TokensError, hash_of};

use crate::error::Problem;
use crate::files::Stamp;

/// Longest token that is looked at, in bytes.
const MAX_TOKEN: usize = 256;

/// Whether requests need a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// As soon as there is a tokens file.
    #[default]
    Auto,
    /// Always; a host without a token does not start.
    Required,
    /// Never.
    Off,
}

/// Why a host's tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The file.
    #[error("{0} [invalid-configuration]")]
    Tokens(#[from] TokensError),
    /// There are none.
    #[error(
        "setting \"auth\" is required and there is no token in \"{0}\"; make one with \"oncue \
         token create\" [invalid-configuration]"
    )]
    NoTokens(PathBuf),
}

/// Who may use a host. Cheap to clone.
#[derive(Clone)]
pub struct Access(Arc<Shared>);

struct Shared {
    mode: Mode,
    path: Option<PathBuf>,
    /// Set once and never unset.
    is_enforced: AtomicBool,
    held: ArcSwap<Held>,
    stamp: Mutex<Option<Stamp>>,
    rate: Option<NonZeroU32>,
    local: Arc<Identity>,
    local_limit: Option<DefaultDirectRateLimiter>,
    sessions: Sessions,
    failures: limits::Failures,
    /// Refusals that are written down, and how many were not since the last that was.
    refusals: limits::Failures,
    unwritten: AtomicU64,
    /// Told whenever somebody who was let in may have lost that.
    changes: watch::Sender<()>,
}

/// The tokens, and a limit for each if there is a rate.
#[derive(Default)]
struct Held {
    tokens: Tokens,
    limits: Vec<(String, Arc<DefaultDirectRateLimiter>)>,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Access");
        shown.field("enforced", &self.is_enforced());
        shown.finish_non_exhaustive()
    }
}

impl Default for Access {
    fn default() -> Self {
        Self::open()
    }
}

/// Whoever was named by a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Who.
    pub(crate) identity: Arc<Identity>,
    /// What changes from the browser must bear, when a cookie named it.
    pub(crate) csrf: Option<Csrf>,
    /// What named it.
    pub(crate) proof: Proof,
}

/// What a page of this session must send with every change, in the header [`CSRF`].
#[derive(Clone, Debug)]
pub(crate) struct Csrf(pub(crate) Arc<str>);

fn now() -> u64 {
    SystemClock.now().0
}

impl Access {
    /// Everyone who reaches the host may do everything.
    #[must_use]
    pub fn open() -> Self {
        Self::new(Mode::Off, None, None)
    }

    fn new(mode: Mode, path: Option<PathBuf>, rate: Option<NonZeroU32>) -> Self {
        Self(Arc::new(Shared {
            mode,
            path,
            is_enforced: AtomicBool::new(false),
            held: ArcSwap::default(),
            stamp: Mutex::new(None),
            rate,
            local: Arc::new(Identity::local()),
            local_limit: rate.map(limits::of_identity),
            sessions: Sessions::default(),
            failures: limits::Failures::default(),
            refusals: limits::Failures::default(),
            unwritten: AtomicU64::new(0),
            changes: watch::Sender::default(),
        }))
    }

    /// Who the tokens file of a data directory names. `rate` is how many requests a second each
    /// identity may make.
    ///
    /// # Errors
    /// The file cannot be used, or tokens are required and there is none.
    pub fn load(data: &Path, mode: Mode, rate: Option<NonZeroU32>) -> Result<Self, AccessError> {
        let path = Tokens::path(data);
        let access = Self::new(mode, Some(path.clone()), rate);
        if mode == Mode::Off {
            return Ok(access);
        }
        *access.stamp_read() = access.stamp();
        let tokens = Tokens::read(&path)?;
        let some = tokens
            .as_ref()
            .is_some_and(|tokens| !tokens.all().is_empty());
        if mode == Mode::Required && !some {
            return Err(AccessError::NoTokens(path));
        }
        if let Some(tokens) = tokens {
            access.take(tokens);
        }
        Ok(access)
    }

    /// Whether every request needs an identity.
    #[must_use]
    pub fn is_enforced(&self) -> bool {
        self.0.is_enforced.load(Ordering::Acquire)
    }

    /// Names of all tokens with their roles, for the log and the audit log.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let held = self.0.held.load();
        let tokens = held.tokens.all().iter();
        tokens
            .map(|token| format!("{} ({})", token.identity.name, token.identity.role))
            .collect()
    }

    /// How the file looks now.
    fn stamp(&self) -> Option<Stamp> {
        self.0.path.as_deref().and_then(Stamp::of)
    }

    /// How the file looked when it was read last. Held while it is read.
    fn stamp_read(&self) -> MutexGuard<'_, Option<Stamp>> {
        self.0.stamp.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, tokens: Tokens) {
        let before = self.0.held.load();
        let limits = self.0.rate.map(|rate| {
            let limit_of = |name: &str| {
                let known = before.limits.iter().find(|(its, _)| its == name);
                known.map_or_else(
                    || Arc::new(limits::of_identity(rate)),
                    |(_, limit)| Arc::clone(limit),
                )
            };
            let names = tokens.all().iter().map(|token| token.identity.name.clone());
            names
                .map(|name| {
                    let limit = limit_of(&name);
                    (name, limit)
                })
                .collect()
        });
        self.0.held.store(Arc::new(Held {
            tokens,
            limits: limits.unwrap_or_default(),
        }));
        self.0.is_enforced.store(true, Ordering::Release);
        self.0.changes.send_replace(());
    }

    /// Told whenever somebody who was let in may have lost that.
    fn changes(&self) -> watch::Receiver<()> {
        self.0.changes.subscribe()
    }

    /// Reads the file again if it has changed, or in any case. A file that cannot be used changes
    /// nothing, and one that has gone leaves no token. True when something was read. Costs a look
    /// at the file's state; whoever comes while it is read waits, and sees what was read.
    pub fn reload(&self, always: bool) -> bool {
        let Some(path) = self
            .0
            .path
            .as_deref()
            .filter(|_path| self.0.mode != Mode::Off)
        else {
            return false;
        };
        let now = self.stamp();
        let mut read = self.stamp_read();
        if *read == now && !always {
            return false;
        }
        // Another may have read it meanwhile; what changes from here on is read the next time.
        let now = self.stamp();
        if *read == now && !always {
            return false;
        }
        *read = now;
        match Tokens::read(path) {
            Ok(Some(tokens)) => {
                tracing::info!(tokens = tokens.all().len(), "the tokens were read again");
                self.take(tokens);
                true
            }
            Ok(None) if self.is_enforced() => {
                let path = path.display();
                tracing::warn!(
                    "tokens file \"{path}\" is gone: nobody has access; make a token, or restart \
                     the host to go without"
                );
                self.take(Tokens::default());
                true
            }
            Ok(None) => false,
            Err(error) => {
                tracing::warn!("{error}; the tokens read before hold");
                false
            }
        }
    }

    /// Whoever asks a host without tokens.
    pub(crate) fn local(&self) -> &Arc<Identity> {
        &self.0.local
    }

    /// Who the request names, by token or by cookie.
    ///
    /// # Errors
    /// `not-authorized`, or `rate-limited` when the address has failed too often.
    pub(crate) fn caller(
        &self,
        (method, path): (&Method, &str),
        headers: &HeaderMap,
        address: Option<IpAddr>,
        is_secure: bool,
    ) -> Result<Caller, Problem> {
        let named = match headers.get(header::AUTHORIZATION) {
            Some(value) => self.by_token(value),
            None => self.by_cookie((method, path), headers, is_secure),
        };
        named.map_err(|problem| self.failed(address, problem))
    }

    fn by_token(&self, value: &HeaderValue) -> Result<Caller, Problem> {
        let token = bearer(value).ok_or_else(|| {
            refused("the authorization header is not \"Bearer\" and a token of this host")
        })?;
        let token = hash_of(token);
        Ok(Caller {
            identity: self.identity(&token)?,
            csrf: None,
            proof: Proof::Token(token),
        })
    }

    fn by_cookie(
        &self,
        (method, path): (&Method, &str),
        headers: &HeaderMap,
        is_secure: bool,
    ) -> Result<Caller, Problem> {
        let session = self
            .0
            .sessions
            .of(headers, now(), is_secure)
            .ok_or_else(|| {
                refused("the request has no token; send the header \"authorization: Bearer TOKEN\"")
            })?;
        let identity = self.identity(&session.token)?;
        // A form of a page bears it in a field, which the page's own route looks at.
        let is_safe = matches!(*method, Method::GET | Method::HEAD) || !rights::is_api(path);
        let sent = headers.get(CSRF).map(HeaderValue::as_bytes);
        if !is_safe && sent != Some(session.csrf.as_bytes()) {
            let detail = format!(
                "the request comes with a cookie and without the {CSRF} header of its session; \
                 load the page again"
            );
            return Err(Problem::new(Code::ForeignOrigin, detail));
        }
        Ok(Caller {
            identity,
            csrf: Some(Csrf(session.csrf.into())),
            proof: Proof::Session {
                id: session.id,
                token: session.token,
            },
        })
    }

    fn identity(&self, hash: &tokens::Hash) -> Result<Arc<Identity>, Problem> {
        let held = self.0.held.load();
        let token = held.tokens.find(hash).ok_or_else(|| {
            refused("the token is not one of this host; it may have been revoked")
        })?;
        if token.expires.is_some_and(|end| end <= now()) {
            let name = &token.identity.name;
            return Err(refused(&format!("token \"{name}\" has expired")));
        }
        Ok(Arc::clone(&token.identity))
    }

    /// Counts a failure of an address; too many are answered otherwise, and not told.
    fn failed(&self, address: Option<IpAddr>, problem: Problem) -> Problem {
        if address.is_none_or(|address| self.0.failures.count(address)) {
            return problem;
        }
        let detail = "too many requests without a valid token came from this address; wait";
        Problem::new(Code::RateLimited, detail)
    }

    /// Counts a refusal of somebody. `None` when that one has been refused so often that it is not
    /// to be written down; else how many were not since the last that was.
    pub(crate) fn refused(&self, name: Option<&str>, address: Option<IpAddr>) -> Option<u64> {
        let is_written = match (name, address) {
            (Some(name), _) => self.0.refusals.count_name(name),
            (None, Some(address)) => self.0.refusals.count(address),
            (None, None) => true,
        };
        if is_written {
            return Some(self.0.unwritten.swap(0, Ordering::Relaxed));
        }
        self.0.unwritten.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Holds an identity to its rate.
    ///
    /// # Errors
    /// `rate-limited`.
    pub(crate) fn check_rate(&self, identity: &Identity) -> Result<(), Problem> {
        let Some(rate) = self.0.rate else {
            return Ok(());
        };
        let held = self.0.held.load();
        let of_token = || {
            let found = held.limits.iter().find(|(name, _)| *name == identity.name);
            found.map(|(_, limit)| &**limit)
        };
        let limit = if identity.name == identity::LOCAL {
            self.0.local_limit.as_ref()
        } else {
            of_token()
        };
        if limit.is_none_or(|limit| limit.check().is_ok()) {
            return Ok(());
        }
        let name = &identity.name;
        let detail = format!(
            "\"{name}\" makes more than {rate} requests a second; make fewer, or raise rate-limit"
        );
        Err(Problem::new(Code::RateLimited, detail))
    }

    /// Begins a console session with a token; answers with the `set-cookie` header.
    ///
    /// # Errors
    /// As [`caller`](Self::caller).
    pub(crate) fn login(
        &self,
        token: &str,
        address: Option<IpAddr>,
        is_secure: bool,
    ) -> Result<(HeaderValue, Arc<Identity>), Problem> {
        let token = token.trim();
        let token = if token.len() > MAX_TOKEN { "" } else { token };
        let hash = hash_of(token);
        let identity = self.identity(&hash);
        let identity = identity.map_err(|problem| self.failed(address, problem))?;
        Ok((self.0.sessions.begin(hash, now(), is_secure), identity))
    }

    /// Ends the request's console session; answers with the `set-cookie` header.
    pub(crate) fn logout(&self, headers: &HeaderMap, is_secure: bool) -> HeaderValue {
        let cookie = self.0.sessions.end(headers, is_secure);
        self.0.changes.send_replace(());
        cookie
    }
}

fn refused(detail: &str) -> Problem {
    Problem::new(Code::NotAuthorized, detail)
}

/// The token of an authorization header.
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    let is_token = !token.is_empty() && token.len() <= MAX_TOKEN;
    (scheme.eq_ignore_ascii_case("bearer") && is_token).then_some(token)
}

#[cfg(test)]
mod tests;
