//! Names and identities in paths.

use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use oncue_core::code::Code;
use oncue_core::definition::Fault;
use oncue_core::message::MessageId;
use oncue_core::names::{PluginName, ProcessName, QueueName};
use oncue_core::unit_of_work::LeaseToken;
use oncue_manager::tasks::TaskId;

use crate::error::Problem;
use crate::routes::health::Check;
use crate::wire::lease;

/// The raw text of one parameter of the path.
async fn parameter<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<String, Problem> {
    let parameters = RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|error| Problem::new(Code::InvalidParameter, format!("the path: {error}")))?;
    let found = parameters.iter().find(|(key, _)| *key == name);
    // A route that does not name the parameter is our own fault; a test visits every route.
    found
        .map(|(_, value)| value.to_owned())
        .ok_or_else(Problem::internal)
}

fn invalid(name: &str, message: impl Into<String>) -> Problem {
    Problem::with_faults(Code::InvalidParameter, vec![Fault::new(name, message)])
}

macro_rules! name_path {
    ($(#[$doc:meta])* $path:ident($name:ident) = $parameter:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $path(pub(crate) $name);

        impl<S: Send + Sync> FromRequestParts<S> for $path {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
                let text = parameter(parts, state, $parameter).await?;
                Ok(Self($name::new(&text)?))
            }
        }
    };
}

name_path!(
    /// `{queue}`.
    QueuePath(QueueName) = "queue"
);
name_path!(
    /// `{process}`.
    ProcessPath(ProcessName) = "process"
);
name_path!(
    /// `{plugin}`.
    PluginPath(PluginName) = "plugin"
);

/// `{check}`: a check of the host's health.
#[derive(Debug)]
pub(crate) struct CheckPath(pub(crate) Check);

impl<S: Send + Sync> FromRequestParts<S> for CheckPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = parameter(parts, state, "check").await?;
        let known = Check::ALL.into_iter().find(|(_, name)| *name == text);
        known.map(|(check, _)| Self(check)).ok_or_else(|| {
            let names = Check::ALL.map(|(_, name)| name).join(", ");
            let shown: String = text.chars().take(60).collect();
            let shown = shown.escape_debug();
            let detail = format!("check \"{shown}\" does not exist; use {names}");
            Problem::new(Code::NotFound, detail)
        })
    }
}

/// `{id}`: a message.
#[derive(Debug)]
pub(crate) struct IdPath(pub(crate) MessageId);

impl<S: Send + Sync> FromRequestParts<S> for IdPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = parameter(parts, state, "id").await?;
        let read = MessageId::from_str(&text);
        read.map(Self)
            .map_err(|error| Problem::new(Code::InvalidParameter, error))
    }
}

/// `{token}`: a lease.
#[derive(Debug)]
pub(crate) struct TokenPath(pub(crate) LeaseToken);

impl<S: Send + Sync> FromRequestParts<S> for TokenPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = parameter(parts, state, "token").await?;
        lease::read(&text)
            .map(Self)
            .map_err(|message| invalid("token", message))
    }
}

/// `{task}`: a task.
#[derive(Debug)]
pub(crate) struct TaskPath(pub(crate) TaskId);

impl<S: Send + Sync> FromRequestParts<S> for TaskPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = parameter(parts, state, "task").await?;
        let read = text.parse().map(|id| Self(TaskId(id)));
        read.map_err(|_not_a_number| {
            invalid(
                "task",
                "is not a whole number; copy it from the list of tasks",
            )
        })
    }
}
