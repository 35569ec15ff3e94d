//! What a guest may import, one file for each interface, and the guest's side of a task that they
//! share.
//!
//! They translate and no more: grants are checked by the session, limits are kept by
//! [`crate::limiter`] and the session. A call that must end the guest answers a [`Stop`] as its
//! error, which [`crate::classify`] finds again.

use std::sync::Arc;

use oncue_core::outcome::Outcome;
use oncue_core::quantity::format_bytes;
use oncue_manager::tasks::{Delivered, TaskSession};
use wasmtime::component::{HasSelf, Linker, ResourceTable};
use wasmtime_wasi::WasiCtx;

use crate::classify::Stop;
use crate::limiter::Limiter;
use crate::sink::Log;
use crate::style::{Caller, Dressing, Kept, STYLES};
use crate::task::deadline::Deadline;
use crate::task::limits::Limits;

pub(crate) mod bindings;
mod budget;
mod config;
mod http;
pub(crate) mod keyvalue;
mod logging;
mod queues;
pub(crate) mod types;
mod unit_of_work;
pub(crate) mod wasi;

/// The data of a `wasmtime::Store`: everything that host functions need of the task they work for.
pub(crate) struct Guest {
    /// The task. None while a component is only tried out: then every call to the queue manager
    /// ends the guest.
    session: Option<Arc<TaskSession>>,
    /// What is granted of WASI: the environment of the definition and nothing else. Made when the
    /// guest first asks: it has random numbers of its own to draw, and most handlers never do.
    wasi: Option<Box<WasiCtx>>,
    /// Resources that the guest has handles of.
    pub(crate) table: ResourceTable,
    /// Memory and tables.
    pub(crate) limiter: Limiter,
    /// What it writes.
    pub(crate) log: Log,
    /// When it is ended.
    pub(crate) deadline: Arc<Deadline>,
    /// Fuel of one message or unit.
    pub(crate) fuel: u64,
    /// Fuel burnt before the last refill.
    pub(crate) burnt_before: u64,
    /// A fresh message refills fuel and deadline: trigger style.
    refills: bool,
    /// The most that one value may bring into or out of the guest, in bytes.
    memory: u64,
    sockets: wasi::Sockets,
    http: http::Http,
    /// Pages of state keys that it is in the midst of.
    cursors: keyvalue::Cursors,
    /// The message that it is called for: in every style but the trigger style, from its first call
    /// on.
    pub(crate) in_hand: Option<Arc<Delivered>>,
    /// Bytes that the host keeps for it beside its own memory.
    kept_bytes: u64,
    /// What its style keeps for the end of the call.
    pub(crate) kept: Kept,
}

impl Guest {
    /// The guest's side of a task, for one instance.
    pub(crate) fn new(
        session: Option<Arc<TaskSession>>,
        limits: &Limits,
        log: &Log,
        deadline: &Arc<Deadline>,
        refills: bool,
        message: Option<(&dyn Caller, &Arc<Delivered>)>,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.all_handles());
        let mut wasi = None;
        let mut kept = Kept::default();
        if let (Some(session), Some((caller, message))) = (&session, message) {
            let mut dressing = Dressing {
                session,
                message,
                kept: &mut kept,
                log,
                wasi: None,
            };
            caller.dress(&mut dressing);
            wasi = dressing.wasi;
        }
        Self {
            http: http::Http::new(session.as_ref()),
            wasi: wasi.map(|mut wasi| Box::new(wasi.build())),
            kept,
            session,
            table,
            limiter: Limiter::new(limits.memory, limits.table_elements),
            log: log.clone(),
            deadline: Arc::clone(deadline),
            fuel: limits.fuel,
            burnt_before: 0,
            refills,
            memory: limits.memory,
            in_hand: None,
            kept_bytes: 0,
            sockets: wasi::Sockets::default(),
            cursors: keyvalue::Cursors::default(),
        }
    }

    /// The task, or the end of a guest that has none.
    pub(crate) fn session(&self) -> wasmtime::Result<&Arc<TaskSession>> {
        self.session.as_ref().ok_or_else(|| {
            let why = "it called the queue manager while it was being instantiated";
            Stop::trap(why.to_owned()).into()
        })
    }
}

impl Guest {
    /// A tick has come: it gives way to other tasks of its worker.
    pub(crate) fn gives_way(&self) {
        self.deadline.give_way();
        if let Some(session) = &self.session {
            session.gives_way();
        }
    }

    /// Notes that the host keeps `after` bytes for the guest in a place where it kept `before`: at
    /// most as many in all as the guest may have itself.
    pub(crate) fn keep_bytes(&mut self, before: u64, after: u64) -> wasmtime::Result<()> {
        self.kept_bytes = self.kept_bytes.saturating_sub(before).saturating_add(after);
        if self.kept_bytes <= self.memory {
            return Ok(());
        }
        let (kept, limit) = (format_bytes(self.kept_bytes), format_bytes(self.memory));
        let detail = format!(
            "the messages that it makes have {kept} and its memory limit is {limit}; send or drop \
             them earlier, or raise memory"
        );
        Err(Stop::limit(Outcome::OverMemory, detail).into())
    }
}

/// Links everything that a guest may import.
pub(crate) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    use bindings::oncue::handler;

    wasi::add_to_linker(linker)?;
    http::add_to_linker(linker)?;
    queues::add_to_linker(linker)?;
    budget::add_to_linker(linker)?;
    handler::types::add_to_linker::<_, HasSelf<_>>(linker, |guest| guest)?;
    handler::unit_of_work::add_to_linker::<_, HasSelf<_>>(linker, |guest| guest)?;
    keyvalue::add_to_linker(linker)?;
    logging::add_to_linker(linker)?;
    config::add_to_linker(linker)?;
    for def in STYLES {
        (def.link)(linker)?;
    }
    Ok(())
}
