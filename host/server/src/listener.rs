//! The listener: loopback only unless it is guarded, bounded connections, slow clients cut off, a
//! stop that ends.

use std::convert::Infallible;
use std::future::{Ready, ready as at_once};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::{IncomingStream, Listener};
use oncue_manager::handle::Handle;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, Sleep};
use tokio_rustls::Accept;
use tokio_rustls::server::TlsStream;
use tower::Service;

use crate::addresses::{AddressPlace, Addresses};
use crate::app::{App, ServerOptions};
use crate::guard::Api;
use crate::security::{Peer, Security};
use crate::tls::Tls;

/// How long to wait after a failed accept: it fails for want of file descriptors, and more tries at
/// once would burn a core without gaining one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How a connection begins that speaks HTTP/2 without asking. Other crates may bring it into the
/// server below us, and its streams are not counted as our connections are.
const OTHER_PROTOCOL: &[u8] = b"PRI ";

/// The address is not one that may be listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "refuses to listen on {address}, where other machines could reach it: {missing}, or use \
     127.0.0.1 [invalid-configuration]"
)]
pub struct AddressRefused {
    address: SocketAddr,
    missing: &'static str,
}

/// Refuses an address that another machine could reach, unless tokens are asked for, and TLS keeps
/// them secret.
///
/// # Errors
/// [`AddressRefused`] for an address that is not a loopback one, and what is missing.
pub fn check_address(address: SocketAddr, security: &Security) -> Result<(), AddressRefused> {
    if address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    let missing = match (security.access.is_enforced(), security.is_secure()) {
        (true, true) => return Ok(()),
        (false, _) => "no token is asked for; make one with \"oncue token create\"",
        (true, false) => {
            "tokens would pass in the clear; set tls-cert and tls-key, or insecure-http where a \
             proxy in front does TLS"
        }
    };
    Err(AddressRefused { address, missing })
}

/// How the server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Every request in flight was answered.
    Clean,
    /// Some were cut off when [`ServerOptions::stop_time`] was over.
    CutOff,
}

/// Serves `/v1` on a bound listener until `shutdown` resolves; then takes no new connection, ends
/// what waits, and lets requests in flight finish within [`ServerOptions::stop_time`].
///
/// # Errors
/// The listener is where it may not be ([`check_address`]), or cannot be used.
pub async fn serve(
    listener: std::net::TcpListener,
    handle: Handle,
    options: ServerOptions,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<Stopped> {
    let refused = |error| io::Error::new(io::ErrorKind::AddrNotAvailable, error);
    check_address(listener.local_addr()?, &options.security).map_err(refused)?;
    listener.set_nonblocking(true)?;
    let (cut_off, cut) = watch::channel(false);
    let listener = BoundedListener {
        inner: TcpListener::from_std(listener)?,
        places: Arc::new(Semaphore::new(options.max_connections)),
        addresses: Addresses::new(options.max_connections_per_address, options.max_connections),
        idle_time: options.idle_time,
        handshake_time: options.handshake_time.min(options.idle_time),
        tls: options.security.tls.clone(),
        cut,
    };
    let stop_time = options.stop_time;
    let kept = options.security.clone().keep(handle.clone());
    let app = App::new(handle, options);
    tokio::spawn(crate::console::sample(app.clone()));
    let service = Connections(crate::routes::api_of(app.clone()));
    let (stopping, mut stopped) = watch::channel(false);
    let served = axum::serve(listener, service).with_graceful_shutdown(async move {
        shutdown.await;
        app.stop();
        stopping.send_replace(true);
    });
    let bound = async {
        // Fails only if the future above was dropped, which ends the serving too.
        let _ = stopped.wait_for(|stopped| *stopped).await;
        tokio::time::sleep(stop_time).await;
    };
    tokio::select! {
        biased;
        done = served.into_future() => done.map(|()| Stopped::Clean),
        () = kept => unreachable!("it is kept for as long as the server serves"),
        () = bound => {
            cut_off.send_replace(true);
            Ok(Stopped::CutOff)
        }
    }
}

/// Gives each connection its service.
struct Connections(Api);

impl Service<IncomingStream<'_, BoundedListener>> for Connections {
    type Response = Api;
    type Error = Infallible;
    type Future = Ready<Result<Api, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, stream: IncomingStream<'_, BoundedListener>) -> Self::Future {
        let peer = Peer(*stream.remote_addr());
        at_once(Ok(self.0.on(stream.io().work.clone(), peer)))
    }
}

/// Requests of one connection that are worked on now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work(Arc<AtomicUsize>);

impl Work {
    /// Counts a request, until what is answered is dropped.
    pub(crate) fn count(self) -> Counted {
        Counted::new(self)
    }
}

/// Dropped with the request, also when the client has gone.
pub(crate) struct Counted(Work);

impl Counted {
    fn new(work: Work) -> Self {
        work.0.fetch_add(1, Ordering::SeqCst);
        Self(work)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Accepts no more connections than there are places.
struct BoundedListener {
    inner: TcpListener,
    places: Arc<Semaphore>,
    addresses: Addresses,
    idle_time: Duration,
    handshake_time: Duration,
    tls: Option<Tls>,
    cut: watch::Receiver<bool>,
}

impl Listener for BoundedListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.expect("the semaphore is never closed");
        loop {
            match self.inner.accept().await {
                Ok((stream, address)) => {
                    let Some(its) = self.addresses.take(address.ip()) else {
                        tracing::debug!(%address, "one connection too many of this address");
                        continue;
                    };
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!("a connection answers in larger parts: {error}");
                    }
                    return (Connection::new(stream, self, (place, its)), address);
                }
                Err(error) => {
                    tracing::warn!("a connection could not be accepted: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// The bytes of a connection, in the clear or not.
enum Stream {
    Plain(TcpStream),
    /// TLS is being agreed on.
    Greeting(Box<Accept<TcpStream>>),
    Secure(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Agrees on TLS, where that is still to be done.
    fn poll_greeted(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let Self::Greeting(accept) = self else {
            return Poll::Ready(Ok(false));
        };
        let greeted = ready!(Pin::new(&mut **accept).poll(context));
        if let Err(error) = &greeted {
            tracing::debug!("a connection could not agree on TLS: {error}");
        }
        *self = Self::Secure(Box::new(greeted?));
        Poll::Ready(Ok(true))
    }

    /// What bytes are read from and written to, once TLS is agreed on.
    fn open(&mut self) -> Pin<&mut dyn Io> {
        match self {
            Self::Plain(stream) => Pin::new(stream),
            Self::Secure(stream) => Pin::new(&mut **stream),
            Self::Greeting(_) => unreachable!("a stream is greeted before it is used"),
        }
    }
}

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection that is closed when nothing happens on it for too long: no request is worked on,
/// and no byte of an answer could be sent. Bytes that come in do not count, so a request head that
/// comes in drops is cut off too, and so is a greeting.
struct Connection {
    stream: Stream,
    /// Bytes of [`OTHER_PROTOCOL`] that it began with; `None` once it has begun otherwise.
    other: Option<usize>,
    work: Work,
    idle_time: Duration,
    idle: Pin<Box<Sleep>>,
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
    _place: (OwnedSemaphorePermit, Option<AddressPlace>),
}

impl Connection {
    fn new(
        stream: TcpStream,
        listener: &BoundedListener,
        place: (OwnedSemaphorePermit, Option<AddressPlace>),
    ) -> Self {
        let mut cut = listener.cut.clone();
        let (stream, first) = match &listener.tls {
            Some(tls) => {
                let accept = Box::new(tls.acceptor().accept(stream));
                (Stream::Greeting(accept), listener.handshake_time)
            }
            None => (Stream::Plain(stream), listener.idle_time),
        };
        Self {
            stream,
            other: Some(0),
            work: Work::default(),
            idle_time: listener.idle_time,
            idle: Box::pin(tokio::time::sleep(first)),
            cut: Box::pin(async move {
                if cut.wait_for(|cut| *cut).await.is_err() {
                    // The server has ended cleanly; what is left of the connection ends by itself.
                    std::future::pending::<()>().await;
                }
            }),
            _place: place,
        }
    }

    /// Has the connection in a state in which it can be used.
    fn poll_greeted(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.stream.poll_greeted(context) {
            Poll::Ready(Ok(true)) => self.moved(),
            Poll::Ready(Ok(false)) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return self.poll_too_long(context).map(Err),
        }
        Poll::Ready(Ok(()))
    }

    /// Refuses the protocol that is not spoken here, by the first bytes that came.
    fn check_protocol(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            let Some(known) = self.other else {
                return Ok(());
            };
            self.other = (OTHER_PROTOCOL.get(known) == Some(byte)).then_some(known + 1);
            if self.other == Some(OTHER_PROTOCOL.len()) {
                return Err(io::ErrorKind::Unsupported.into());
            }
        }
        Ok(())
    }

    fn moved(&mut self) {
        self.idle.as_mut().reset(Instant::now() + self.idle_time);
    }

    /// Called when nothing can be read or written now: ready when that has lasted too long.
    fn poll_too_long(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        if self.cut.as_mut().poll(context).is_ready() {
            return Poll::Ready(io::Error::new(io::ErrorKind::ConnectionAborted, "stopping"));
        }
        // Bounded: a reset timer is not over, so the second turn ends it.
        loop {
            ready!(self.idle.as_mut().poll(context));
            if self.work.0.load(Ordering::SeqCst) == 0 {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            self.moved();
        }
    }

    fn or_too_long<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match polled {
            Poll::Pending => self.poll_too_long(context).map(Err),
            done => done,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = if let Stream::Plain(stream) = &mut self.stream {
            Pin::new(stream).poll_read(context, buffer)
        } else {
            ready!(self.poll_greeted(context))?;
            self.stream.open().poll_read(context, buffer)
        };
        if self.other.is_some() && polled.is_ready() {
            self.check_protocol(&buffer.filled()[before..])?;
        }
        self.or_too_long(polled, context)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_greeted(context))?;
        let polled = self.stream.open().poll_write(context, bytes);
        if polled.is_ready() {
            self.moved();
        }
        self.or_too_long(polled, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_greeted(context))?;
        let polled = self.stream.open().poll_write_vectored(context, parts);
        if polled.is_ready() {
            self.moved();
        }
        self.or_too_long(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        // So does TLS, which is not yet there when this is asked for.
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_greeted(context))?;
        // Bytes of an answer may still be in what TLS has written.
        let polled = self.stream.open().poll_flush(context);
        self.or_too_long(polled, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Stream::Greeting(_) = self.stream {
            return Poll::Ready(Ok(()));
        }
        let polled = self.stream.open().poll_shutdown(context);
        self.or_too_long(polled, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, wanted: Result<(), &str>) {
        let address: SocketAddr = address.parse().expect("an address");
        let security = Security::default();
        let got = check_address(address, &security).map_err(|error| error.to_string());
        match (got, wanted) {
            (Ok(()), Ok(())) => {}
            (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
            (got, wanted) => panic!("{address} gave {got:?}, wanted {wanted:?}"),
        }
    }

    #[test]
    fn only_loopback_is_listened_on_without_tokens() {
        check("127.0.0.1:7373", Ok(()));
        check("127.3.2.1:0", Ok(()));
        check("[::1]:7373", Ok(()));
        check("[::ffff:127.0.0.1]:7373", Ok(()));
        let sentence = "refuses to listen on 0.0.0.0:7373, where other machines could reach it: \
                        no token is asked for; make one with \"oncue token create\", or use \
                        127.0.0.1";
        check("0.0.0.0:7373", Err(sentence));
        check("10.0.0.1:7373", Err("refuses to listen on 10.0.0.1:7373"));
        check("[::]:7373", Err("refuses to listen on [::]:7373"));
    }
}
