//! Who asks, for routes that look at more than their path.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use oncue_core::code::Code;
use oncue_core::names::QueueName;

use super::identity::{Identity, Right};
use super::rights::Missing;
use crate::app::App;
use crate::error::Problem;

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Who(pub(crate) Arc<Identity>);

impl FromRequestParts<App> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        if let Some(identity) = parts.extensions.get::<Arc<Identity>>() {
            return Ok(Self(Arc::clone(identity)));
        }
        let access = &app.options.security.access;
        if access.is_enforced() {
            // The guard lets such a request pass to routes that need nothing, and this one does.
            let detail =
                "the request has no token; send the header \"authorization: Bearer TOKEN\"";
            return Err(Problem::new(Code::NotAuthorized, detail));
        }
        Ok(Self(Arc::clone(access.local())))
    }
}

impl Who {
    /// Holds the identity to a right on a queue.
    ///
    /// # Errors
    /// `not-permitted`.
    pub(crate) fn must(&self, right: Right, queue: &QueueName) -> Result<(), Problem> {
        self.must_any(&[right], queue)
    }

    /// Holds the identity to a right on every queue, or on the host.
    ///
    /// # Errors
    /// `not-permitted`.
    pub(crate) fn must_everywhere(&self, right: Right) -> Result<(), Problem> {
        if self.0.may(right) {
            return Ok(());
        }
        let on = "on the host".to_owned();
        Err(not_permitted(&self.0, &Missing { right, on }))
    }

    /// Holds the identity to one of these rights on a queue.
    ///
    /// # Errors
    /// `not-permitted`, naming the first.
    pub(crate) fn must_any(&self, rights: &[Right], queue: &QueueName) -> Result<(), Problem> {
        if rights.iter().any(|right| self.0.may_on(*right, queue)) {
            return Ok(());
        }
        let right = rights.first().copied().unwrap_or(Right::Admin);
        let on = format!("on queue \"{queue}\"");
        Err(not_permitted(&self.0, &Missing { right, on }))
    }

    /// The putter of this one's messages; nobody when the host asks for no identity.
    pub(crate) fn putter(&self) -> Option<String> {
        (self.0.name != super::identity::LOCAL).then(|| self.0.name.clone())
    }
}

/// The problem of a right that is missing.
pub(crate) fn not_permitted(identity: &Identity, missing: &Missing) -> Problem {
    let (name, role) = (&identity.name, identity.role);
    let Missing { right, on } = missing;
    let detail = format!(
        "token \"{name}\" ({role}) lacks the right \"{right}\" {on}; an administrator can make one \
         that has it"
    );
    Problem::new(Code::NotPermitted, detail)
}
