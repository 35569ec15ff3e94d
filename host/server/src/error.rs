//! Errors as clients see them: `application/problem+json` (RFC 9457) with a permanent code.
//!
//! The one place that knows which status a code has. A handler returns a [`Problem`]; the outermost
//! layer ([`crate::guard`]) writes it, because only that layer knows the request's id.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use oncue_core::code::{Class, Code};
use oncue_core::definition::Fault;
use oncue_core::names::NameError;
use oncue_manager::error::ApiError;
use serde::Serialize;
use utoipa::ToSchema;

/// The media type of a problem.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// Faults repeated in the sentence of a problem; all of them are in its list.
const TOLD_FAULTS: usize = 3;

/// After how many seconds a client may repeat a request that was refused for load.
const RETRY_AFTER: u16 = 1;

/// Why a request was not done.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    code: Code,
    detail: String,
    faults: Vec<Fault>,
}

impl Problem {
    /// A problem whose sentence ends with its code.
    pub(crate) fn new(code: Code, detail: impl std::fmt::Display) -> Self {
        Self {
            code,
            detail: format!("{detail} [{code}]"),
            faults: Vec::new(),
        }
    }

    /// A problem that lists what is wrong with the input.
    pub(crate) fn with_faults(code: Code, faults: Vec<Fault>) -> Self {
        let mut told: Vec<String> = faults
            .iter()
            .take(TOLD_FAULTS)
            .map(ToString::to_string)
            .collect();
        if let Some(more) = faults
            .len()
            .checked_sub(TOLD_FAULTS)
            .filter(|more| *more > 0)
        {
            told.push(format!("{more} more faults are in the list"));
        }
        Self {
            faults,
            ..Self::new(code, told.join("; also "))
        }
    }

    /// The same problem under another code, if it has one fault only.
    pub(crate) fn or_if_alone(self, code: Code) -> Self {
        if self.faults.len() == 1 {
            Self::with_faults(code, self.faults)
        } else {
            self
        }
    }

    /// A fault of ours: what happened goes to the log, not to the client.
    pub(crate) fn internal() -> Self {
        let detail = "the request could not be finished for a fault of the queue manager; \
                      report it with the request id";
        Self::new(Code::Internal, detail)
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        status_of(self.code)
    }

    /// The permanent code.
    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// Whether a person must know: the fault is the host's.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self.code.class(), Class::Internal | Class::Corrupt)
    }

    /// The sentence.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Writes the problem for the request of that id.
    pub(crate) fn write(&self, request_id: &str) -> Response {
        let status = self.status();
        let body = ProblemJson {
            kind: format!("urn:oncue:problem:{}", self.code),
            title: self.code.meaning().trim().to_owned(),
            status: status.as_u16(),
            detail: self.detail.clone(),
            code: self.code.to_string(),
            request_id: request_id.to_owned(),
            faults: self.faults.iter().map(FaultJson::from).collect(),
        };
        let mut response = (status, Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if is_repeatable(self.code) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
        }
        if status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"oncue\"");
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// The status of a code: by its class, with the exceptions that HTTP has words for.
pub(crate) fn status_of(code: Code) -> StatusCode {
    match code {
        // Not a rate, but what clients do at 429 is right: wait, then repeat.
        Code::QueueFull | Code::StoreBusy | Code::TooManyLeases | Code::RateLimited => {
            StatusCode::TOO_MANY_REQUESTS
        }
        Code::TooLarge | Code::UnitTooLarge | Code::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::NotAuthorized => StatusCode::UNAUTHORIZED,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::TimedOut => StatusCode::REQUEST_TIMEOUT,
        Code::InvalidDefinition
        | Code::InvalidManifest
        | Code::PluginRefused
        | Code::WrongWorld
        | Code::SignatureMissing
        | Code::SignatureWrong
        | Code::CompileFailed
        | Code::NotSupported
        | Code::OverCapacity
        | Code::NoOrigin => StatusCode::UNPROCESSABLE_ENTITY,
        _ => match code.class() {
            Class::Absent => StatusCode::NOT_FOUND,
            Class::Conflict => StatusCode::CONFLICT,
            Class::Refused => StatusCode::FORBIDDEN,
            Class::Invalid => StatusCode::BAD_REQUEST,
            Class::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Class::Corrupt | Class::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        },
    }
}

/// Whether the same request may be repeated blindly. Not when it is unknown what became of it: that
/// needs an idempotency key, and the client knows whether it sent one.
fn is_repeatable(code: Code) -> bool {
    code != Code::CommitUnknown
        && matches!(
            status_of(code),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        )
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        Self {
            code: error.code,
            detail: error.message,
            faults: error.faults,
        }
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Self {
        Self {
            code: error.code(),
            detail: error.to_string(),
            faults: Vec::new(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Why a request was not done (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Problem)]
pub(crate) struct ProblemJson {
    /// `urn:oncue:problem:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// What the code means.
    title: String,
    /// The status of the answer.
    status: u16,
    /// What happened here, with numbers and what to do.
    detail: String,
    /// A permanent code for programs.
    code: String,
    /// Names the request in the host's log.
    request_id: String,
    /// Everything that is wrong with the input; empty when the fault is not in the input.
    faults: Vec<FaultJson>,
}

/// One fault of an input.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Fault)]
pub(crate) struct FaultJson {
    /// Where: the names of fields and positions in lists with dots between, a header or parameter.
    path: String,
    /// The fact and what to do.
    message: String,
}

impl From<&Fault> for FaultJson {
    fn from(fault: &Fault) -> Self {
        Self {
            path: fault.path.join("."),
            message: fault.message.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: Code, status: u16, retry: bool) {
        let response = Problem::new(code, "it is so").write("r-1");
        assert_eq!(response.status().as_u16(), status, "{code}");
        assert_eq!(
            response.headers().contains_key(header::RETRY_AFTER),
            retry,
            "{code}"
        );
        assert_eq!(response.headers()[header::CONTENT_TYPE], PROBLEM_JSON);
    }

    #[test]
    fn each_code_has_its_status() {
        check(Code::UnknownQueue, 404, false);
        check(Code::QueueFull, 429, true);
        check(Code::StoreBusy, 429, true);
        check(Code::RateLimited, 429, true);
        check(Code::NotAuthorized, 401, false);
        check(Code::NotPermitted, 403, false);
        check(Code::QueueNotEmpty, 409, false);
        check(Code::PutDisabled, 403, false);
        check(Code::TooLarge, 413, false);
        check(Code::InvalidMessage, 400, false);
        check(Code::InvalidDefinition, 422, false);
        check(Code::MethodNotAllowed, 405, false);
        check(Code::UnsupportedMediaType, 415, false);
        check(Code::StoreStopped, 503, true);
        check(Code::CommitUnknown, 503, false);
        check(Code::TooManyRequests, 503, true);
        check(Code::TimedOut, 408, false);
        check(Code::StoreCorrupt, 500, false);
        check(Code::Internal, 500, false);
    }

    #[test]
    fn no_code_answers_success_and_only_ours_are_500() {
        for code in Code::ALL {
            let problem = Problem::new(*code, "it is so");
            assert!(problem.status().as_u16() >= 400, "{code}");
            assert_eq!(
                problem.status().as_u16() == 500,
                problem.is_ours(),
                "{code}"
            );
        }
    }

    #[test]
    fn a_sentence_tells_some_faults_and_the_list_has_all() {
        let faults: Vec<Fault> = (0..5)
            .map(|n| Fault::new(&format!("a.{n}"), "is odd"))
            .collect();
        let problem = Problem::with_faults(Code::InvalidParameter, faults);
        assert_eq!(
            problem.detail(),
            "\"a.0\" is odd; also \"a.1\" is odd; also \"a.2\" is odd; \
             also 2 more faults are in the list [invalid-parameter]"
        );
        assert_eq!(problem.faults.len(), 5);
    }
}
