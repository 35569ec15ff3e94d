//! WASI 0.2: all of it is linked, because the languages' own runtimes want it, and nothing is
//! granted but the environment that the definition names. No arguments, files or network; clocks
//! and random numbers work.
//!
//! What asks for the network is denied and recorded. A socket costs the host a descriptor even when
//! it may reach nothing, so only a few are made, to learn where the guest wanted to go.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oncue_manager::tasks::TaskSession;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily, Network};
use wasmtime_wasi::p2::bindings::sockets::{ip_name_lookup, tcp, tcp_create_socket, udp};
use wasmtime_wasi::sockets::{SocketAddrUse, WasiSocketsView};
use wasmtime_wasi::{WasiCtxBuilder, WasiCtxView, WasiView};

use super::Guest;
use crate::secrets;
use crate::sink::{Log, cut};

/// Sockets that one instance may make; each is denied when it is used.
const MAX_SOCKETS: usize = 4;

/// Sockets of all guests together, so that they never take the host's descriptors.
const MAX_ALL_SOCKETS: usize = 128;

/// The most of a name or address that is kept in a refusal, in bytes.
const MAX_NAME: usize = 128;

/// Sockets of all guests now.
static ALL_SOCKETS: AtomicUsize = AtomicUsize::new(0);

/// Sockets that one instance made. They are given back when it is dropped, not when the guest
/// closes them.
#[derive(Debug, Default)]
pub(super) struct Sockets(usize);

impl Sockets {
    fn may_make(&mut self) -> bool {
        let free = ALL_SOCKETS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |all| {
            (all < MAX_ALL_SOCKETS).then_some(all + 1)
        });
        if self.0 >= MAX_SOCKETS || free.is_err() {
            if free.is_ok() {
                ALL_SOCKETS.fetch_sub(1, Ordering::Relaxed);
            }
            return false;
        }
        self.0 += 1;
        true
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        ALL_SOCKETS.fetch_sub(self.0, Ordering::Relaxed);
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let made = || context(self.session.as_ref(), &self.log).build();
        WasiCtxView {
            ctx: self.wasi.get_or_insert_with(|| Box::new(made())),
            table: &mut self.table,
        }
    }
}

/// What every instance is granted; its style may add to it.
pub(crate) fn context(session: Option<&Arc<TaskSession>>, log: &Log) -> WasiCtxBuilder {
    let mut wasi = WasiCtxBuilder::new();
    wasi.stdout(log.output()).stderr(log.error());
    if let Some(session) = session {
        for (name, value) in &session.spec().attributes.grants.environment {
            wasi.env(name, value);
        }
        // An operator's own value of that name wins.
        for (name, value) in log.secrets().all() {
            let name = secrets::variable(name);
            if !session
                .spec()
                .attributes
                .grants
                .environment
                .contains_key(&name)
            {
                wasi.env(name, value);
            }
        }
        let session = Arc::clone(session);
        // A socket may be made, so that its address is told here; it may not be used.
        wasi.allow_tcp(true);
        wasi.socket_addr_check(move |address, wanted| {
            let first = is_first_step(address, wanted);
            if let (false, Some(verb)) = (first, verb(wanted)) {
                session.refused(&format!("{verb} {address}"));
            }
            Box::pin(std::future::ready(first))
        });
    }
    wasi
}

/// A connect asks first whether it may be bound to no address in particular. That alone may go on,
/// because it does nothing: the connect itself asks next, with the address.
fn is_first_step(address: SocketAddr, wanted: SocketAddrUse) -> bool {
    let nowhere = address.ip().is_unspecified() && address.port() == 0;
    nowhere && matches!(wanted, SocketAddrUse::TcpBind)
}

/// What to call a refused use of an address; none for those that only follow from another.
fn verb(wanted: SocketAddrUse) -> Option<&'static str> {
    match wanted {
        SocketAddrUse::TcpConnect => Some("connect"),
        SocketAddrUse::TcpListen => Some("listen"),
        SocketAddrUse::TcpBind | SocketAddrUse::UdpBind => Some("bind"),
        SocketAddrUse::UdpSend => Some("send"),
        SocketAddrUse::TcpAccept | SocketAddrUse::UdpReceive => None,
    }
}

type Store<'a> = StoreContextMut<'a, Guest>;
type Answer<T> = wasmtime::Result<(Result<Resource<T>, ErrorCode>,)>;

pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    // The three ways to the network are replaced by ones that record what was wanted.
    linker.allow_shadowing(true);
    linker
        .instance("wasi:sockets/tcp-create-socket@0.2.12")?
        .func_wrap(
            "create-tcp-socket",
            |mut store: Store<'_>, (family,): (IpAddressFamily,)| {
                create_tcp(store.data_mut(), family)
            },
        )?;
    linker
        .instance("wasi:sockets/udp-create-socket@0.2.12")?
        .func_wrap(
            "create-udp-socket",
            |store: Store<'_>, (_,): (IpAddressFamily,)| {
                denied::<udp::UdpSocket>(store.data(), "make a UDP socket")
            },
        )?;
    linker
        .instance("wasi:sockets/ip-name-lookup@0.2.12")?
        .func_wrap(
            "resolve-addresses",
            |store: Store<'_>, (_, name): (Resource<Network>, String)| {
                let what = format!("resolve {}", cut(&name, MAX_NAME));
                denied::<ip_name_lookup::ResolveAddressStream>(store.data(), &what)
            },
        )?;
    linker.allow_shadowing(false);
    Ok(())
}

fn denied<T: 'static>(guest: &Guest, what: &str) -> Answer<T> {
    if let Some(session) = &guest.session {
        session.refused(what);
    }
    Ok((Err(ErrorCode::AccessDenied),))
}

fn create_tcp(guest: &mut Guest, family: IpAddressFamily) -> Answer<tcp::TcpSocket> {
    if !guest.sockets.may_make() {
        return denied(guest, "make more TCP sockets");
    }
    match tcp_create_socket::Host::create_tcp_socket(&mut guest.sockets(), family) {
        Ok(socket) => Ok((Ok(socket),)),
        Err(error) => Ok((Err(error.downcast()?),)),
    }
}
