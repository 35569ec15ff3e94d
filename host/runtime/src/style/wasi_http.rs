//! `wasi:http/incoming-handler@0.2`: each message is a `POST`, and the answer's status says what
//! becomes of it.
//!
//! A 2xx commits, and the answer's body is put where answers go; any other status backs out; the
//! header `oncue-reject` rejects. The whole of it is settled when the handler has returned, so what
//! it does after its answer is part of the call. See `wit/styles/wasi-http.md`. Neighbours:
//! [`request`] makes the one, [`answer`] reads the other.

use std::sync::Arc;
use std::task::Poll;

use oncue_core::definition::Style;
use oncue_manager::tasks::Delivered;
use tokio::sync::oneshot;
use tokio::task::unconstrained;
use wasmtime::component::{Instance, InstancePre};
use wasmtime::{Store, StoreContextMut};
use wasmtime_wasi_http::WasiHttpView;
use wasmtime_wasi_http::p2::bindings::exports::wasi::http::incoming_handler::GuestIndices;
use wasmtime_wasi_http::p2::bindings::http::types::Scheme;

use self::answer::{Answered, Progress};
use super::{Answer, Bound, Caller, Calling, StyleDef, Wanted};
use crate::classify::Stop;
use crate::interfaces::Guest;
use crate::plugin::contract;

mod answer;
mod request;

pub(super) const DEF: StyleDef = StyleDef {
    style: Style::WasiHttp,
    world: "wasi:http/proxy",
    exports: &[Wanted {
        name: "wasi:http/incoming-handler",
        version: "0.2",
        function: "handle",
        contract: Some(contract::incoming_handler),
    }],
    offers: &[],
    link: |_| Ok(()),
    bind,
    fresh: false,
};

fn bind(pre: &InstancePre<Guest>) -> wasmtime::Result<Bound> {
    let indices = GuestIndices::new(pre)?;
    Ok(Bound::EachMessage(Box::new(IncomingHandler(indices))))
}

struct IncomingHandler(GuestIndices);

impl Caller for IncomingHandler {
    fn check(
        &self,
        store: StoreContextMut<'_, Guest>,
        instance: &Instance,
    ) -> wasmtime::Result<()> {
        self.0.load(store, instance).map(drop)
    }

    fn call<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: &'a Instance,
        message: &'a Arc<Delivered>,
    ) -> Calling<'a> {
        Box::pin(call(&self.0, store, instance, message))
    }
}

async fn call(
    indices: &GuestIndices,
    store: &mut Store<Guest>,
    instance: &Instance,
    message: &Arc<Delivered>,
) -> Answer {
    let handler = indices.load(&mut *store, instance)?;
    let session = Arc::clone(store.data().session()?);
    let (asked, unread) = request::new(&session, message)?;
    let (sender, receiver) = oneshot::channel();
    let mut http = store.data_mut().http();
    let given = http.new_incoming_request(Scheme::Http, asked)?;
    let out = http.new_response_outparam(sender)?;
    let progress = Progress::default();
    let answered = {
        let called = handler.call_handle(&mut *store, given, out);
        // Nobody reads the answer but this task: it must never wait for its turn to do so.
        let gathered = unconstrained(answer::gather(receiver, &progress));
        both(called, gathered, &progress).await?
    };
    if let Some(reason) = unread.take() {
        // No fault of the guest's, whatever it made of it.
        return Err(Stop::Host(reason).into());
    }
    answer::settle(store.data(), message, answered)
}

/// Runs the handler to its end and reads what it answers meanwhile. What is not there when it has
/// returned will never be: nobody is left to write it.
async fn both(
    called: impl Future<Output = wasmtime::Result<()>>,
    gathered: impl Future<Output = wasmtime::Result<Answered>>,
    progress: &Progress,
) -> wasmtime::Result<Answered> {
    let (mut called, mut gathered) = (std::pin::pin!(called), std::pin::pin!(gathered));
    let (mut returned, mut answered) = (false, None);
    std::future::poll_fn(|context| {
        if !returned && let Poll::Ready(end) = called.as_mut().poll(context) {
            end?;
            returned = true;
        }
        if answered.is_none()
            && let Poll::Ready(end) = gathered.as_mut().poll(context)
        {
            answered = Some(end?);
        }
        if !returned {
            return Poll::Pending;
        }
        let answered = answered.take();
        Poll::Ready(Ok(answered.unwrap_or_else(|| progress.left_open())))
    })
    .await
}
