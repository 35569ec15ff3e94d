//! What happens on a host, as it happens: the stream of `/v1/events`.

use std::io::{BufRead, BufReader, Read};

use oncue_core::code::Code;
use serde_json::Value;
use ureq::http;

use super::{Answer, Client};
use crate::client::Request;
use crate::exit::Failure;

/// Longest line of the stream, in bytes.
const MAX_LINE: u64 = 1 << 20;

/// An open stream.
pub(crate) struct Events {
    lines: BufReader<ureq::BodyReader<'static>>,
    base: String,
}

impl Client {
    /// Opens the stream of events: what happens from now on.
    ///
    /// # Errors
    /// As [`send`](Client::send).
    pub(crate) fn events(&self) -> Result<Events, Failure> {
        let mut request = http::Request::builder()
            .uri(Request::get(&["events"]).url(&self.base))
            .header("accept", "text/event-stream");
        if let Some(token) = &self.token {
            request = request.header(http::header::AUTHORIZATION, token.header());
        }
        let request = request.body(()).map_err(|error| super::malformed(&error))?;
        // Without a limit: it lasts until one end closes.
        let request = self.agent.configure_request(request);
        let response = self
            .agent
            .run(request.build())
            .map_err(|error| self.unanswered(&error, None))?;
        let status = response.status().as_u16();
        if status != 200 {
            let body = response.into_body().into_with_config().limit(MAX_LINE);
            let body = body.read_to_vec().unwrap_or_default();
            return Err(self.refusal(&Answer { status, body }));
        }
        Ok(Events {
            lines: BufReader::new(response.into_body().into_reader()),
            base: self.base.clone(),
        })
    }
}

impl Events {
    /// Waits for the next event: its kind is the field `kind`.
    ///
    /// # Errors
    /// Unreachable when the host is gone.
    pub(crate) fn next(&mut self) -> Result<Value, Failure> {
        loop {
            let mut line = String::new();
            let read = self.lines.by_ref().take(MAX_LINE).read_line(&mut line);
            if !matches!(read, Ok(length) if length > 0) {
                let message = format!("host \"{}\" has ended the stream of events", self.base);
                return Err(Failure::coded(Code::Unreachable, message));
            }
            // The other lines name the event, end it, or keep the connection alive.
            let data = line.strip_prefix("data:").map(str::trim);
            if let Some(event) = data.and_then(|data| serde_json::from_str(data).ok()) {
                return Ok(event);
            }
        }
    }
}
