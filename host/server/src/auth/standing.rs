//! Whether somebody who was let in may stay: for answers that last longer than a moment.
//!
//! A request is held to its token when it comes. A stream of events, or a get that waits, would
//! outlive a token that is revoked or expires meanwhile; so it asks here, and ends with it.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use oncue_core::code::Code;
use tokio::time::timeout;

use super::tokens::Hash;
use super::{Access, now};
use crate::app::App;
use crate::error::Problem;

/// The longest time between two looks when nothing has changed: the system's clock may be set.
const LOOK: Duration = Duration::from_secs(60);

/// What somebody was let in by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Nothing: the host asked nobody.
    #[default]
    None,
    /// A token.
    Token(Hash),
    /// A session, and the token that began it.
    Session {
        /// The hash of its id.
        id: Hash,
        /// Of the token.
        token: Hash,
    },
}

/// Whoever waits, and by what right.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    access: Access,
    proof: Proof,
}

impl FromRequestParts<App> for Standing {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        // A proof that the guard has not noted is none, and with tokens that stands for nobody.
        let proof = parts.extensions.get::<Proof>().copied();
        Ok(Self {
            access: app.options.security.access.clone(),
            proof: proof.unwrap_or_default(),
        })
    }
}

impl Standing {
    /// Resolves once it is over: the token was revoked or has expired, the session was ended, or
    /// the host began to ask for tokens.
    pub(crate) async fn lost(&self) {
        let mut changes = self.access.changes();
        loop {
            let now = now();
            let Some(end) = self.access.stands_until(&self.proof, now) else {
                return;
            };
            let left = Duration::from_millis(end.saturating_sub(now)).min(LOOK);
            // The sender lives as long as the access that is held here.
            let _ = timeout(left, changes.changed()).await;
        }
    }

    /// What whoever waited is told.
    pub(crate) fn problem() -> Problem {
        let detail = "the token was revoked or has expired while the request waited";
        Problem::new(Code::NotAuthorized, detail)
    }
}

impl Access {
    /// Until when something is worth that somebody was let in by; `None` when it is over.
    fn stands_until(&self, proof: &Proof, now: u64) -> Option<u64> {
        let (token, until) = match proof {
            Proof::None if self.is_enforced() => return None,
            Proof::None => return Some(u64::MAX),
            Proof::Token(token) => (token, u64::MAX),
            Proof::Session { id, token } => (token, self.0.sessions.ends(id, now)?),
        };
        let held = self.0.held.load();
        let expires = held.tokens.find(token)?.expires.unwrap_or(u64::MAX);
        (expires > now).then(|| expires.min(until))
    }
}
