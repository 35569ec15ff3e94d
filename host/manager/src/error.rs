//! The error that applications and operators see: a permanent code, a sentence, and every fault of
//! the input.

use oncue_core::code::Code;
use oncue_core::definition::Fault;
use oncue_core::names::QueueName;
use oncue_store::{CommitError, StoreError};

/// Why a request was not done.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// For programs.
    pub code: Code,
    /// For people: object, fact, what to do, code.
    pub message: String,
    /// What is wrong with the input, all of it.
    pub faults: Vec<Fault>,
}

impl ApiError {
    /// An error whose sentence ends with its code.
    #[must_use]
    pub fn new(code: Code, message: impl std::fmt::Display) -> Self {
        let message = format!("{message} [{}]", code.as_str());
        Self {
            code,
            message,
            faults: Vec::new(),
        }
    }

    /// An error that lists faults of the input.
    #[must_use]
    pub fn with_faults(code: Code, what: impl std::fmt::Display, faults: Vec<Fault>) -> Self {
        let listed: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Self {
            faults,
            ..Self::new(code, format!("{what}: {}", listed.join("; ")))
        }
    }

    /// No such queue.
    #[must_use]
    pub fn unknown_queue(queue: &QueueName) -> Self {
        Self::new(
            Code::UnknownQueue,
            format!("queue \"{queue}\" is not defined; define it first"),
        )
    }
}

/// Keeps the sentence of an error that already carries its code.
fn coded(code: Code, error: &dyn std::fmt::Display) -> ApiError {
    ApiError {
        code,
        message: error.to_string(),
        faults: Vec::new(),
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::UnknownQueue(_) => Code::UnknownQueue,
            StoreError::UnknownLease => Code::UnknownLease,
            StoreError::Gone => Code::UnknownMessage,
            StoreError::BadCursor => Code::InvalidCursor,
            StoreError::Corrupt(_) => Code::StoreCorrupt,
            _ => Code::StoreStopped,
        };
        coded(code, &error)
    }
}

impl From<CommitError> for ApiError {
    fn from(error: CommitError) -> Self {
        let code = match &error {
            CommitError::UnknownQueue(_) => Code::UnknownQueue,
            CommitError::QueueFull { .. } => Code::QueueFull,
            CommitError::KeyReused { .. } => Code::DuplicateKey,
            CommitError::Conflict(_) | CommitError::Fenced => Code::StateConflict,
            CommitError::QueueNotEmpty(_) => Code::QueueNotEmpty,
            CommitError::Full => Code::StoreFull,
            CommitError::Busy { .. } => Code::StoreBusy,
            CommitError::Unknown(_) => Code::CommitUnknown,
            _ => Code::StoreStopped,
        };
        coded(code, &error)
    }
}
