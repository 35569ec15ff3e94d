//! Who looks at a page: what it shows to that one, and what it offers.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, Method};
use oncue_core::names::QueueName;

use crate::app::App;
use crate::auth::Csrf;
use crate::auth::identity::{Identity, Right};
use crate::auth::rights;

/// Who looks at a page.
#[derive(Clone, Debug)]
pub(crate) struct Viewer {
    /// Nobody on the page where a token is asked for.
    identity: Option<Arc<Identity>>,
    /// What forms must carry, of one who came in by a session.
    session: Option<Csrf>,
}

impl FromRequestParts<App> for Viewer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        Ok(Self::of(app, &parts.extensions))
    }
}

impl Viewer {
    /// Whom the guard found in a request.
    pub(crate) fn of(app: &App, extensions: &Extensions) -> Self {
        let access = &app.options.security.access;
        let local = || (!access.is_enforced()).then(|| Arc::clone(access.local()));
        Self {
            identity: extensions.get().cloned().or_else(local),
            session: extensions.get().cloned(),
        }
    }

    /// What its forms must carry, if it came in by a session.
    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_ref().map(|csrf| &*csrf.0)
    }

    /// Whether it has a right on the whole host.
    pub(super) fn may(&self, right: Right) -> bool {
        let identity = self.identity.as_ref();
        identity.is_some_and(|identity| identity.may(right))
    }

    /// Whether it has a right on a queue.
    pub(super) fn may_on(&self, right: Right, queue: &QueueName) -> bool {
        let identity = self.identity.as_ref();
        identity.is_some_and(|identity| identity.may_on(right, queue))
    }

    /// Whether it may know of a queue.
    pub(super) fn sees(&self, queue: &QueueName) -> bool {
        let identity = self.identity.as_ref();
        identity.is_some_and(|identity| identity.sees(queue))
    }

    /// Whether it may open the page at a path, as the guard would say.
    pub(super) fn may_open(&self, path: &str) -> bool {
        let found = rights::find(&Method::GET, path);
        let identity = self.identity.as_ref();
        found
            .zip(identity)
            .is_some_and(|(found, identity)| found.check(identity).is_ok())
    }
}
