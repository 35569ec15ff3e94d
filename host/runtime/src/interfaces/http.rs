//! `wasi:http`: types for everybody, and requests to the origins of `grants.http`.
//!
//! A build that only imports it runs; a request to what is not granted is answered
//! `HTTP-request-denied`, recorded, and opens no connection and asks no name server. No redirect is
//! followed, no proxy is looked for, nothing is kept between requests. What a request does
//! elsewhere is outside of the unit of work: a message that is backed out has sent it all the same.
//!
//! A connection ends with the instance that asked for it, and so with the message's deadline.
//! Neighbour: `style::wasi_http` is the other direction.

use std::future::{Future, ready};
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready as done};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderMap};
use http::uri::{PathAndQuery, Scheme, Uri};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use oncue_manager::tasks::TaskSession;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::p2::add_only_http_to_linker_async;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::{
    Error, RequestOptions, Result, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks,
    WasiHttpView, default_send_request,
};

use super::Guest;
use crate::sink::cut;

/// Time to get a connection: a free place, the name, TCP; and again for TLS.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Time from the request to the first byte of the answer. The message's deadline is mostly nearer.
const FIRST_BYTE_TIME: Duration = Duration::from_secs(300);
/// Time between two parts of the answer's body.
const BETWEEN_BYTES_TIME: Duration = Duration::from_secs(60);

/// Body of one request, and of one answer, in bytes.
const MAX_BODY: u64 = 64 << 20;
/// Headers of one answer, in bytes of names and values.
const MAX_ANSWER_HEADERS: usize = 64 << 10;
/// Headers that a guest makes, in bytes of memory: it is ended past them.
const MAX_OWN_HEADERS: usize = 128 << 10;

/// Connections of one instance at a time, and so of one task. Another request waits for a place.
const MAX_CONNECTIONS: usize = 8;
/// Connections of all guests at a time, so that they never take the host's descriptors.
const MAX_ALL_CONNECTIONS: usize = 256;

/// The most of an origin that is kept in a refusal, in bytes.
const MAX_ORIGIN: usize = 300;

/// Places for the connections of all guests.
static ALL_CONNECTIONS: LazyLock<Arc<Semaphore>> =
    LazyLock::new(|| Arc::new(Semaphore::new(MAX_ALL_CONNECTIONS)));

/// An instance's side of HTTP. Costs nothing until it is used.
pub(crate) struct Http {
    context: WasiHttpCtx,
    gate: Gate,
}

impl Http {
    pub(super) fn new(session: Option<&Arc<TaskSession>>) -> Self {
        let mut context = WasiHttpCtx::new();
        context.set_field_size_limit(MAX_OWN_HEADERS);
        let gate = Gate {
            session: session.cloned(),
            places: None,
        };
        Self { context, gate }
    }
}

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            ctx: &mut self.http.context,
            table: &mut self.table,
            hooks: &mut self.http.gate,
        }
    }
}

type Code = wasmtime::Result<(Option<ErrorCode>,)>;

pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    add_only_http_to_linker_async(linker)?;
    // The library's own knows its codes but not the errors that its streams fail with.
    linker.allow_shadowing(true);
    linker.instance("wasi:http/types@0.2.12")?.func_wrap(
        "http-error-code",
        |mut store: StoreContextMut<'_, Guest>, (error,): (Resource<wasmtime::Error>,)| -> Code {
            let guest = store.data_mut();
            let error = guest.table.get(&error)?;
            Ok((code(error, &mut guest.http.gate),))
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

/// The code of what a stream failed with, if it is one of HTTP.
fn code(error: &wasmtime::Error, gate: &mut Gate) -> Option<ErrorCode> {
    if let Some(code) = error.downcast_ref::<ErrorCode>() {
        return Some(code.clone());
    }
    Some(match error.downcast_ref::<Error>()? {
        Error::Hyper(error) => gate.p2_error_from_hyper(error),
        Error::Tls(error) => gate.p2_error_from_tls(error),
        Error::HttpRequestBodySize(size) => ErrorCode::HttpRequestBodySize(*size),
        Error::HttpResponseBodySize(size) => ErrorCode::HttpResponseBodySize(*size),
        Error::HttpResponseTimeout => ErrorCode::HttpResponseTimeout,
        Error::ConnectionReadTimeout => ErrorCode::ConnectionReadTimeout,
        Error::InternalError(why) => ErrorCode::InternalError(why.clone()),
        _ => ErrorCode::HttpProtocolError,
    })
}

/// Lets requests through, or not.
struct Gate {
    /// None while a component is only tried out: nothing is granted then.
    session: Option<Arc<TaskSession>>,
    /// Places for the connections of this instance, made with the first request.
    places: Option<Arc<Semaphore>>,
}

/// What drives a connection after its answer has begun.
type Driver = Box<dyn Future<Output = Result<()>> + Send>;
/// A request under way.
type Sending = Box<dyn Future<Output = Result<(Response<WasiBody>, Driver)>> + Send>;

impl Gate {
    /// Refuses what is not granted and what is no plain request; answers where the request goes,
    /// so that what was looked at is what is connected to.
    fn admit<B>(&self, request: &Request<B>) -> Result<Uri> {
        let uri = request.uri();
        let authority = uri.authority().ok_or(Error::HttpRequestUriInvalid)?;
        if authority.as_str().contains('@') {
            return Err(Error::HttpRequestUriInvalid);
        }
        let https = uri.scheme() == Some(&Scheme::HTTPS);
        let (host, port) = (authority.host(), authority.port_u16());
        let session = self.session.as_ref();
        let granted = session.is_some_and(|session| {
            let grants = &session.spec().attributes.grants;
            grants.may_request(https, host, port)
        });
        let scheme = if https { "https" } else { "http" };
        if !granted {
            if let Some(session) = session {
                let port = port.map_or(String::new(), |port| format!(":{port}"));
                let origin = format!("{scheme}://{host}{port}");
                session.refused(&format!("request {}", cut(&origin, MAX_ORIGIN)));
            }
            return Err(Error::HttpRequestDenied);
        }
        // A tunnel to the origin is more than a request to it.
        if request.method() == Method::CONNECT {
            return Err(Error::HttpRequestMethodInvalid);
        }
        if content_length(request.headers()).is_some_and(|length| length > MAX_BODY) {
            return Err(Error::HttpRequestBodySize(Some(MAX_BODY)));
        }
        let usual = if https { 443 } else { 80 };
        let path = uri.path_and_query().cloned();
        Uri::builder()
            .scheme(scheme)
            .authority(format!("{host}:{}", port.unwrap_or(usual)))
            .path_and_query(path.unwrap_or_else(|| PathAndQuery::from_static("/")))
            .build()
            .map_err(|_invalid| Error::HttpRequestUriInvalid)
    }

    fn places(&mut self) -> Arc<Semaphore> {
        let make = || Arc::new(Semaphore::new(MAX_CONNECTIONS));
        Arc::clone(self.places.get_or_insert_with(make))
    }
}

impl WasiHttpHooks for Gate {
    fn send_request(
        &mut self,
        mut request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _answered: Box<dyn Future<Output = Result<()>> + Send>,
    ) -> Sending {
        match self.admit(&request) {
            Ok(to) => {
                *request.uri_mut() = to;
                Box::new(send(request, times(options), self.places()))
            }
            Err(error) => Box::new(ready(Err(error))),
        }
    }

    fn p2_error_from_hyper(&mut self, error: &hyper::Error) -> ErrorCode {
        let ours = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
        if let Some(Error::HttpRequestBodySize(size)) = ours {
            return ErrorCode::HttpRequestBodySize(*size);
        }
        if error.is_timeout() {
            ErrorCode::HttpResponseTimeout
        } else if error.is_parse_too_large() {
            ErrorCode::HttpResponseHeaderSectionSize(None)
        } else if error.is_incomplete_message() || error.is_body_write_aborted() {
            ErrorCode::HttpResponseIncomplete
        } else if error.is_closed() || error.is_canceled() {
            ErrorCode::ConnectionTerminated
        } else {
            ErrorCode::HttpProtocolError
        }
    }

    fn p2_error_from_connect(&mut self, error: &std::io::Error) -> ErrorCode {
        match error.kind() {
            ErrorKind::ConnectionRefused => ErrorCode::ConnectionRefused,
            ErrorKind::TimedOut => ErrorCode::ConnectionTimeout,
            ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => {
                ErrorCode::DestinationIpUnroutable
            }
            _ => ErrorCode::DestinationUnavailable,
        }
    }

    fn p2_error_from_tls(&mut self, error: &std::io::Error) -> ErrorCode {
        // The library's own words; its type is not ours to name.
        if error.to_string().contains("certificate") {
            ErrorCode::TlsCertificateError
        } else {
            ErrorCode::TlsProtocolError
        }
    }
}

/// What the guest asked for, within what the host allows.
fn times(options: Option<RequestOptions>) -> RequestOptions {
    let options = options.unwrap_or_default();
    let within = |asked: Option<Duration>, most: Duration| asked.map_or(most, |it| it.min(most));
    RequestOptions {
        connect_timeout: Some(within(options.connect_timeout, CONNECT_TIME)),
        first_byte_timeout: Some(within(options.first_byte_timeout, FIRST_BYTE_TIME)),
        between_bytes_timeout: Some(within(options.between_bytes_timeout, BETWEEN_BYTES_TIME)),
    }
}

/// A place among the connections of the instance and of the host.
async fn place(
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
) -> std::result::Result<[OwnedSemaphorePermit; 2], AcquireError> {
    // The own one first: who waits for it holds none of the host's.
    Ok([own.acquire_owned().await?, all.acquire_owned().await?])
}

async fn send(
    request: Request<WasiBody>,
    times: RequestOptions,
    own: Arc<Semaphore>,
) -> Result<(Response<WasiBody>, Driver)> {
    let connect = times.connect_timeout.unwrap_or(CONNECT_TIME);
    let first_byte = times.first_byte_timeout.unwrap_or(FIRST_BYTE_TIME);
    let place = match timeout(connect, place(own, Arc::clone(&ALL_CONNECTIONS))).await {
        Ok(Ok(place)) => place,
        Ok(Err(_)) | Err(_) => return Err(Error::ConnectionLimitReached),
    };
    let request = request.map(|body| {
        let over = || Error::HttpRequestBodySize(Some(MAX_BODY));
        Bounded::new(body, MAX_BODY, over).boxed_unsync()
    });
    // Each step has its own time but TLS, which shares the time to connect with TCP.
    let whole = connect * 2 + first_byte;
    let sent = timeout(whole, default_send_request(request, Some(times))).await;
    let (response, driver) = sent.map_err(|_late| Error::ConnectionTimeout)??;
    refuse_size(response.headers())?;
    let response = response.map(|body| {
        let over = || Error::HttpResponseBodySize(Some(MAX_BODY));
        Bounded::new(body.boxed_unsync(), MAX_BODY, over).boxed_unsync()
    });
    let driver = async move {
        // How a connection ends is told by the body that comes over it.
        let _ = driver.await;
        drop(place);
        Ok(())
    };
    Ok((response, Box::new(driver)))
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Refuses an answer that says itself that it is too large.
fn refuse_size(headers: &HeaderMap) -> Result<()> {
    let size = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        name.as_str().len() + value.as_bytes().len()
    };
    let bytes: usize = headers.iter().map(size).sum();
    if bytes > MAX_ANSWER_HEADERS {
        let bytes = u32::try_from(bytes).ok();
        return Err(Error::HttpResponseHeaderSectionSize(bytes));
    }
    match content_length(headers) {
        Some(length) if length > MAX_BODY => Err(Error::HttpResponseBodySize(Some(length))),
        _ => Ok(()),
    }
}

/// A body that fails when it has more than so many bytes.
struct Bounded {
    body: WasiBody,
    left: u64,
    over: fn() -> Error,
}

impl Bounded {
    fn new(body: WasiBody, most: u64, over: fn() -> Error) -> Self {
        Self {
            body,
            left: most,
            over,
        }
    }
}

impl Body for Bounded {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        let frame = done!(Pin::new(&mut this.body).poll_frame(context));
        let length = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, |data| data.len() as u64),
            Some(Err(_)) | None => 0,
        };
        match this.left.checked_sub(length) {
            Some(left) => this.left = left,
            None => return Poll::Ready(Some(Err((this.over)()))),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[test]
    fn a_guest_may_ask_for_less_time_and_not_for_more() {
        let asked = |time| RequestOptions {
            connect_timeout: time,
            first_byte_timeout: time,
            between_bytes_timeout: time,
        };
        let most = asked(None);
        let most = RequestOptions {
            connect_timeout: most.connect_timeout.or(Some(CONNECT_TIME)),
            first_byte_timeout: Some(FIRST_BYTE_TIME),
            between_bytes_timeout: Some(BETWEEN_BYTES_TIME),
        };
        assert_eq!(times(None), most);
        assert_eq!(times(Some(asked(Some(Duration::MAX)))), most);
        let short = asked(Some(Duration::from_millis(5)));
        assert_eq!(times(Some(short)), short);
    }

    #[test]
    fn a_place_is_one_of_the_task_and_one_of_the_host() {
        let (own, all) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(2)));
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut take = |own: &Arc<Semaphore>| {
            let taking = std::pin::pin!(place(Arc::clone(own), Arc::clone(&all)));
            match taking.poll(&mut context) {
                Poll::Ready(place) => Some(place.expect("open")),
                Poll::Pending => None,
            }
        };
        let first = take(&own).expect("both are free");
        assert!(take(&own).is_none(), "the task has no other");
        let other = Arc::new(Semaphore::new(1));
        let second = take(&other).expect("the host has another");
        assert!(
            take(&Arc::new(Semaphore::new(1))).is_none(),
            "the host has no third"
        );
        drop(first);
        assert!(take(&own).is_some(), "given back to both");
        drop(second);
    }

    fn body(bytes: &'static [u8]) -> WasiBody {
        Full::new(Bytes::from_static(bytes))
            .map_err(|never| match never {})
            .boxed_unsync()
    }

    #[test]
    fn a_body_ends_at_its_bound() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("builds");
        let over = || Error::HttpResponseBodySize(Some(4));
        let fits = runtime.block_on(Bounded::new(body(b"four"), 4, over).collect());
        assert_eq!(fits.expect("it fits").to_bytes(), "four");
        let refused = runtime.block_on(Bounded::new(body(b"fives"), 4, over).collect());
        let error = refused.expect_err("too large");
        assert!(
            matches!(error, Error::HttpResponseBodySize(Some(4))),
            "{error}"
        );
    }

    #[test]
    fn an_answer_that_says_it_is_too_large_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, MAX_BODY.into());
        assert!(refuse_size(&headers).is_ok());
        headers.insert(CONTENT_LENGTH, (MAX_BODY + 1).into());
        assert!(refuse_size(&headers).is_err());
        headers.remove(CONTENT_LENGTH);
        let long = "x".repeat(MAX_ANSWER_HEADERS);
        headers.insert("x", long.parse().expect("a value"));
        assert!(refuse_size(&headers).is_err());
    }

    #[test]
    fn nothing_is_granted_to_a_component_that_is_tried_out() {
        let gate = Gate {
            session: None,
            places: None,
        };
        let refused = |uri: &str| {
            let request = Request::builder().uri(uri).body(()).expect("a request");
            gate.admit(&request).expect_err("refused")
        };
        assert!(matches!(refused("http://a.b/"), Error::HttpRequestDenied));
        assert!(matches!(
            refused("http://a@b.c/"),
            Error::HttpRequestUriInvalid
        ));
        assert!(matches!(refused("/path"), Error::HttpRequestUriInvalid));
    }
}
