//! The listener: loopback only, bounded connections, slow clients cut off, a stop that ends.

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
use tower::Service;

use crate::app::{App, ServerOptions};
use crate::guard::Api;

/// How long to wait after a failed accept: it fails for want of file descriptors, and more tries at
/// once would burn a core without gaining one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The address is not one that may be listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "refuses to listen on {0}: there is no authentication yet; use 127.0.0.1 \
     [invalid-configuration]"
)]
pub struct AddressRefused(pub SocketAddr);

/// Refuses every address that another machine could reach.
///
/// # Errors
/// [`AddressRefused`] for an address that is not a loopback one.
pub fn check_address(address: SocketAddr) -> Result<(), AddressRefused> {
    if address.ip().to_canonical().is_loopback() {
        Ok(())
    } else {
        Err(AddressRefused(address))
    }
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
/// The listener is not on a loopback address, or cannot be used.
pub async fn serve(
    listener: std::net::TcpListener,
    handle: Handle,
    options: ServerOptions,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<Stopped> {
    let refused = |error| io::Error::new(io::ErrorKind::AddrNotAvailable, error);
    check_address(listener.local_addr()?).map_err(refused)?;
    listener.set_nonblocking(true)?;
    let (cut_off, cut) = watch::channel(false);
    let listener = BoundedListener {
        inner: TcpListener::from_std(listener)?,
        places: Arc::new(Semaphore::new(options.max_connections)),
        idle_time: options.idle_time,
        cut,
    };
    let stop_time = options.stop_time;
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
        at_once(Ok(self.0.on(stream.io().work.clone())))
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
    idle_time: Duration,
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
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!("a connection answers in larger parts: {error}");
                    }
                    return (Connection::new(stream, self, place), address);
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

/// A connection that is closed when nothing happens on it for too long: no request is worked on,
/// and no byte of an answer could be sent. Bytes that come in do not count, so a request head that
/// comes in drops is cut off too.
struct Connection {
    stream: TcpStream,
    work: Work,
    idle_time: Duration,
    idle: Pin<Box<Sleep>>,
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    fn new(stream: TcpStream, listener: &BoundedListener, place: OwnedSemaphorePermit) -> Self {
        let mut cut = listener.cut.clone();
        Self {
            stream,
            work: Work::default(),
            idle_time: listener.idle_time,
            idle: Box::pin(tokio::time::sleep(listener.idle_time)),
            cut: Box::pin(async move {
                if cut.wait_for(|cut| *cut).await.is_err() {
                    // The server has ended cleanly; what is left of the connection ends by itself.
                    std::future::pending::<()>().await;
                }
            }),
            _place: place,
        }
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
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.or_too_long(polled, context)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
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
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        if polled.is_ready() {
            self.moved();
        }
        self.or_too_long(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, wanted: Result<(), &str>) {
        let address: SocketAddr = address.parse().expect("an address");
        let got = check_address(address).map_err(|error| error.to_string());
        match (got, wanted) {
            (Ok(()), Ok(())) => {}
            (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
            (got, wanted) => panic!("{address} gave {got:?}, wanted {wanted:?}"),
        }
    }

    #[test]
    fn only_loopback_is_listened_on() {
        check("127.0.0.1:7373", Ok(()));
        check("127.3.2.1:0", Ok(()));
        check("[::1]:7373", Ok(()));
        check("[::ffff:127.0.0.1]:7373", Ok(()));
        let sentence = "refuses to listen on 0.0.0.0:7373: there is no authentication yet; \
                        use 127.0.0.1";
        check("0.0.0.0:7373", Err(sentence));
        check("10.0.0.1:7373", Err("refuses to listen on 10.0.0.1:7373"));
        check("[::]:7373", Err("refuses to listen on [::]:7373"));
    }
}
