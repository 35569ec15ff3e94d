//! The way to a collector over TLS: by the client that the commands have, too. What it blocks is a
//! thread of the runtime that is there for that, one at a time.

use std::pin::Pin;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

use super::TIMEOUT;
use crate::client::tls;
use crate::exit::Failure;

/// Longest answer that is read, in bytes: a collector says little.
const MAX_ANSWER: u64 = 1 << 20;

/// Sends over TLS.
#[derive(Debug)]
pub(super) struct TlsClient {
    agent: ureq::Agent,
}

impl TlsClient {
    /// A client; with `ca_file` only its certificates vouch for a collector, else the system's.
    ///
    /// # Errors
    /// Usage, when the file cannot be read or has no certificate.
    pub(super) fn new(ca_file: Option<&str>) -> Result<Self, Failure> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .https_only(true)
            .max_redirects(0)
            .timeout_global(Some(TIMEOUT))
            .tls_config(tls::config(ca_file)?);
        Ok(Self {
            agent: config.build().new_agent(),
        })
    }
}

/// An answer that is not yet there.
type Answer<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for TlsClient {
    fn send_bytes<'me, 'out>(&'me self, request: Request<Bytes>) -> Answer<'out>
    where
        'me: 'out,
        Self: 'out,
    {
        let agent = self.agent.clone();
        Box::pin(async move { tokio::task::spawn_blocking(move || send(&agent, request)).await? })
    }
}

fn send(agent: &ureq::Agent, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let answer = agent.run(request.map(Vec::from))?;
    let (parts, mut body) = answer.into_parts();
    let bytes = body.with_config().limit(MAX_ANSWER).read_to_vec()?;
    Ok(Response::from_parts(parts, Bytes::from(bytes)))
}
