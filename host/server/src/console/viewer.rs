//! Who looks at a page: what it shows to that one, and what it offers.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, Method};
use oncue_core::names::QueueName;
use oncue_manager::status::{HostEvent, Seen};
use oncue_manager::tasks::record::TaskRecord;

use crate::app::App;
use crate::auth::Csrf;
use crate::auth::identity::{Identity, Right};
use crate::auth::{rights, sight};
use crate::routes::events::is_for;

/// Who looks at a page.
#[derive(Clone, Debug)]
pub(crate) struct Viewer {
    /// Nobody on the page where a token is asked for.
    identity: Option<Arc<Identity>>,
    /// What forms must carry, of one who came in by a session.
    session: Option<Csrf>,
}

/// What somebody may do with a queue: a page shows the buttons of that, and no others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offers {
    pub(super) browse: bool,
    pub(super) put: bool,
    pub(super) operate: bool,
    pub(super) define: bool,
    /// Its dead letters may go back to where they came from.
    pub(super) redrive: bool,
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

    /// What it may do with a queue.
    pub(super) fn offers(&self, queue: &QueueName) -> Offers {
        Offers {
            browse: self.may_on(Right::Browse, queue),
            put: self.may_on(Right::Put, queue),
            operate: self.may_on(Right::Operate, queue),
            define: self.may_on(Right::Define, queue),
            redrive: self.may(Right::Operate),
        }
    }

    /// The queues that it may know of.
    pub(super) fn seen(&self) -> Seen {
        match &self.identity {
            Some(identity) if identity.may(Right::Observe) => Seen::default(),
            Some(identity) => {
                let identity = Arc::clone(identity);
                Seen::by(move |queue| identity.sees(queue))
            }
            None => Seen::by(|_| false),
        }
    }

    /// A task's record as it may see it; nothing where it does not see the task's queue.
    pub(super) fn task(&self, record: TaskRecord) -> Option<TaskRecord> {
        sight::task(self.identity.as_ref()?, record)
    }

    /// The same for several.
    pub(super) fn tasks(&self, records: Vec<TaskRecord>) -> Vec<TaskRecord> {
        let records = records.into_iter();
        records.filter_map(|record| self.task(record)).collect()
    }

    /// Whether it may know of an event.
    pub(super) fn may_hear(&self, event: &HostEvent) -> bool {
        let identity = self.identity.as_ref();
        identity.is_some_and(|identity| is_for(identity, event))
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
