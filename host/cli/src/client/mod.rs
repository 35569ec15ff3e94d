//! The HTTP client of the command line: one request, one answer, every refusal a [`Failure`].
//!
//! It knows how `/v1` says things (paths, headers, problems), not what they mean. It does not
//! retry: whether a repeat is harmless is known by the caller alone.

mod events;
mod pages;
mod problem;
mod request;
pub(crate) mod tls;
mod token;
mod unanswered;

use std::time::Duration;

use oncue_core::code::Code;
use oncue_core::definition::limits::MAX_MESSAGE_LENGTH;
use serde_json::Value;
use ureq::http;

use crate::config::Config;
use crate::exit::{Exit, Failure};
use problem::problem;
pub(crate) use request::{Request, decode_header, property_header};
use token::Token;
use unanswered::Asked;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The status of a request without a token that the host knows.
const NOT_AUTHORIZED: u16 = 401;

/// Longest answer that is read, in bytes: the longest body, in base64 and with a header.
const MAX_ANSWER: u64 = MAX_MESSAGE_LENGTH * 2;

/// Asks one host.
pub(crate) struct Client {
    agent: ureq::Agent,
    base: String,
    timeout: Duration,
    token: Option<Token>,
    ca_file: Option<String>,
}

/// What was answered, with a status of success.
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The body, whole.
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body as JSON; `null` when there is none.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            let message = format!("the host's answer is not JSON ({error}); is it an oncue host?");
            Failure::new(Exit::Failed, message)
        })
    }
}

impl Client {
    /// The client that the settings and the environment name.
    ///
    /// # Errors
    /// Usage: the address, or the token's file.
    pub(crate) fn of(config: &Config) -> Result<Self, Failure> {
        let (url, timeout) = (config.text("url"), config.duration("timeout"));
        let mut client = Self::with(url, timeout, config.optional("ca-file"))?;
        client.token = Token::find(config.optional("token-file"))?;
        let may_be_read = !is_loopback(&client.base) && !client.base.starts_with("https:");
        if client.token.is_some() && may_be_read && !config.is_on("insecure-http") {
            let base = &client.base;
            let message = format!(
                "url \"{base}\" is plain HTTP to another machine, where others can read the token; \
                 use https, or set insecure-http"
            );
            return Err(Failure::coded(Code::InvalidConfiguration, message));
        }
        Ok(client)
    }

    /// A client of the host at `url`: `http://HOST:PORT`, `https://HOST:PORT`, or `HOST:PORT`. A
    /// request may take `timeout` beyond what the host is asked to wait.
    ///
    /// # Errors
    /// Usage, when the address is none that can be spoken to.
    #[cfg(any(test, feature = "demo"))]
    pub(crate) fn new(url: &str, timeout: Duration) -> Result<Self, Failure> {
        Self::with(url, timeout, None)
    }

    fn with(url: &str, timeout: Duration, ca_file: Option<&str>) -> Result<Self, Failure> {
        let base = base_of(url)?;
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("oncue/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT_TIMEOUT));
        if base.starts_with("https:") {
            config = config.tls_config(tls::config(ca_file)?);
        }
        if is_loopback(&base) {
            // A proxy of the environment would look for the host on its own machine.
            config = config.proxy(None);
        }
        Ok(Self {
            agent: config.build().new_agent(),
            base,
            timeout,
            token: None,
            ca_file: ca_file.map(str::to_owned),
        })
    }

    /// The same client, which waits so long for an answer.
    pub(crate) fn waiting(&self, timeout: Duration) -> Self {
        Self {
            agent: self.agent.clone(),
            base: self.base.clone(),
            timeout,
            token: self.token.clone(),
            ca_file: self.ca_file.clone(),
        }
    }

    /// The address that is asked.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Asks, and waits for the whole answer.
    ///
    /// # Errors
    /// Unreachable when no host answers; else what the host refused, as it says it.
    pub(crate) fn send(&self, request: Request) -> Result<Answer, Failure> {
        let url = request.url(&self.base);
        let mut builder = http::Request::builder()
            .method(request.method.clone())
            .uri(url);
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        if let Some(token) = &self.token {
            builder = builder.header(http::header::AUTHORIZATION, token.header());
        }
        let limit = self.timeout + request.wait;
        let when_unknown = request.when_unknown.as_deref();
        let sent = match request.body {
            Some(body) => self.run(builder, body, limit),
            None => self.run(builder, (), limit),
        };
        let response = sent?.map_err(|error| self.unanswered(&error, when_unknown))?;
        let status = response.status().as_u16();
        let body = response
            .into_body()
            .into_with_config()
            .limit(MAX_ANSWER)
            .read_to_vec()
            .map_err(|error| self.unanswered(&error, when_unknown))?;
        let answer = Answer { status, body };
        if (200..300).contains(&status) {
            Ok(answer)
        } else {
            Err(self.refusal(&answer))
        }
    }

    /// Asks, and reads the answer as JSON.
    ///
    /// # Errors
    /// As [`send`](Self::send), and when the answer is not JSON.
    pub(crate) fn ask(&self, request: Request) -> Result<Value, Failure> {
        self.send(request)?.json()
    }

    fn run<S: ureq::AsSendBody>(
        &self,
        builder: http::request::Builder,
        body: S,
        limit: Duration,
    ) -> Result<Result<http::Response<ureq::Body>, ureq::Error>, Failure> {
        let request = builder.body(body).map_err(|error| malformed(&error))?;
        let request = self
            .agent
            .configure_request(request)
            .timeout_global(Some(limit))
            .build();
        Ok(self.agent.run(request))
    }

    fn unanswered(&self, error: &ureq::Error, when_unknown: Option<&str>) -> Failure {
        let asked = Asked {
            base: &self.base,
            ca_file: self.ca_file.as_deref(),
            when_unknown,
        };
        asked.failure(error)
    }

    /// The host's refusal in its own words; for want of a token, with how a command gets one.
    fn refusal(&self, answer: &Answer) -> Failure {
        let failure = problem(answer);
        if answer.status == NOT_AUTHORIZED {
            return token::wanted(&self.base, self.token.as_ref(), &failure);
        }
        failure
    }
}

fn malformed(error: &http::Error) -> Failure {
    Failure::new(
        Exit::Usage,
        format!("the request cannot be written: {error}"),
    )
}

fn base_of(url: &str) -> Result<String, Failure> {
    let wrong = |fact: &str| {
        let message = format!("url \"{url}\" {fact}; use http://HOST:PORT or https://HOST:PORT");
        Failure::coded(Code::InvalidConfiguration, message)
    };
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => (scheme, rest),
        Some(_) => return Err(wrong("has an unknown scheme")),
        None => ("http", url),
    };
    let rest = rest.trim_end_matches('/');
    let base = format!("{scheme}://{rest}");
    let parsed: Result<http::Uri, _> = base.parse();
    let is_whole = parsed
        .is_ok_and(|uri| uri.host().is_some_and(|host| !host.is_empty()) && uri.query().is_none());
    if is_whole {
        Ok(base)
    } else {
        Err(wrong("is not an address"))
    }
}

fn is_loopback(base: &str) -> bool {
    let uri: Result<http::Uri, _> = base.parse();
    uri.is_ok_and(|uri| {
        let host = uri.host().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare == "localhost"
            || bare
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let check = |url: &str, wanted: Result<&str, &str>| match (base_of(url), wanted) {
            (Ok(base), Ok(wanted)) => assert_eq!(base, wanted),
            (Err(failure), Err(part)) => {
                assert!(failure.message.contains(part), "{}", failure.message);
                assert_eq!(failure.exit, Exit::Usage);
            }
            (got, _) => panic!("{url} gave {got:?}"),
        };
        check("http://127.0.0.1:7373", Ok("http://127.0.0.1:7373"));
        check("127.0.0.1:7373/", Ok("http://127.0.0.1:7373"));
        check("http://[::1]:7373", Ok("http://[::1]:7373"));
        check(
            "http://proxy.example/oncue/",
            Ok("http://proxy.example/oncue"),
        );
        check("https://host:1/", Ok("https://host:1"));
        check("ftp://host", Err("unknown scheme"));
        check("", Err("is not an address"));
        check("http://a b", Err("is not an address"));
        assert!(is_loopback("http://127.0.0.1:1"));
        assert!(is_loopback("http://[::1]:1"));
        assert!(is_loopback("http://localhost:1"));
        assert!(!is_loopback("http://10.0.0.1:1"));
    }
}
