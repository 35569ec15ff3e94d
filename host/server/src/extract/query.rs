//! Parameters of the query: known ones only, each once, all faults at once.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use oncue_core::code::Code;
use oncue_core::definition::Raw;

use crate::error::Problem;
use crate::wire::fields::{Faults, known_fields};

/// Most parameters of one query.
const MAX_PARAMETERS: usize = 100;

/// The query, taken apart and not yet understood.
#[derive(Debug)]
pub(crate) struct Query(pub(super) Raw);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        if parts.uri.query().is_none() {
            return Ok(Self(Raw::Table(Vec::new())));
        }
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let axum::extract::Query(pairs) = pairs
            .map_err(|error| Problem::new(Code::InvalidParameter, format!("the query: {error}")))?;
        if pairs.len() > MAX_PARAMETERS {
            let detail = format!(
                "the query has {} parameters of {MAX_PARAMETERS}",
                pairs.len()
            );
            return Err(Problem::new(Code::InvalidParameter, detail));
        }
        let entries = pairs
            .into_iter()
            .map(|(name, value)| (name, Raw::Text(value)));
        Ok(Self(Raw::Table(entries.collect())))
    }
}

impl Query {
    /// Reads the parameters of those names. `read` is called for each one given and says what is
    /// wrong with it.
    ///
    /// # Errors
    /// All faults, code `invalid-parameter`.
    pub(crate) fn read(
        &self,
        known: &[&'static str],
        mut read: impl FnMut(&str, &Raw) -> Result<(), String>,
    ) -> Result<(), Problem> {
        let mut faults = Faults::default();
        for (name, value) in known_fields(&self.0, known, "", &mut faults) {
            let done = read(name, value);
            faults.keep(name, done);
        }
        faults
            .finish(())
            .map_err(|faults| Problem::with_faults(Code::InvalidParameter, faults))
    }

    /// Refuses every parameter: for routes that know none.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn nothing(&self) -> Result<(), Problem> {
        self.read(&[], |_, _| Ok(()))
    }
}
