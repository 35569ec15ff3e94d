//! The bare engine, for benches: what an instance, its call and its end cost with nothing of a
//! queue manager around them.
//!
//! The same component, the same guest instructions and the same meters as a task has: a message is
//! lent to the guest, which looks at it, reads its body and puts a message. But the host it calls
//! is a stub that keeps nothing, nobody waits for anything, and there is no session, lane or
//! deadline. A host never does this. Neighbours: [`crate::task`] is what it is the floor of.

use std::sync::Arc;
use std::time::Instant;

use oncue_core::definition::ProcessAttributes;
use oncue_manager::tasks::Delivered;
use wasmtime::component::{
    Component, ComponentExportIndex, HasSelf, InstancePre, Linker, Resource, ResourceTable,
};
use wasmtime::{Engine, Store, StoreContextMut, StoreLimits, StoreLimitsBuilder};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::engine::{Loaded, ON_MESSAGE, Sandbox};
use crate::error::PluginError;
use crate::interfaces::bindings::oncue::handler::types::{
    self, Content, Error, Failure, HostMessage, Metadata, PutOptions,
};
use crate::interfaces::types::{MessageHandle, metadata};
use crate::measure::finish;

/// What the stub answers to a put: as long as an id is.
const ID: &str = "000000000000000000000000";

/// Ticks that never pass: a guest on a thread of its own gives way to nobody.
const NEVER: u64 = 1 << 40;

/// How the guest is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calling {
    /// As tasks are: on a stack of its own, which gives way at each tick.
    Async,
    /// On the caller's stack. It could not be interrupted in a host call.
    Sync,
}

/// What came of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareEnd {
    /// When the guest was entered for the first message: the instance was made, its handler not
    /// yet called.
    pub entered: Instant,
    /// Puts that the guest made.
    pub puts: u32,
}

/// A component of message style, linked against a stub.
pub struct Bare {
    /// One for each pool.
    linked: Vec<Linked>,
    calling: Calling,
    fuel: u64,
    memory: usize,
    sandbox: Sandbox,
}

/// A component in one pool: how it is instantiated there, and its handler.
type Linked = (InstancePre<State>, ComponentExportIndex);

/// The data of a bare `wasmtime::Store`.
struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    limits: StoreLimits,
    puts: u32,
}

impl std::fmt::Debug for Bare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bare")
            .field("calling", &self.calling)
            .finish_non_exhaustive()
    }
}

impl Bare {
    /// Links a component that was loaded into the sandbox against the stub.
    ///
    /// # Errors
    /// [`PluginError::Smoke`] for a component that is not of message style.
    pub fn new(sandbox: &Sandbox, loaded: &Loaded, calling: Calling) -> Result<Self, PluginError> {
        let components = loaded.components();
        let linked: wasmtime::Result<Vec<_>> = components
            .map(|component| link(component, calling))
            .collect();
        let linked = linked.map_err(|error| fault(&error))?;
        let attributes = ProcessAttributes::default();
        Ok(Self {
            linked,
            calling,
            fuel: attributes.fuel,
            memory: usize::try_from(attributes.memory).unwrap_or(usize::MAX),
            sandbox: sandbox.clone(),
        })
    }

    /// Makes an instance, calls it for `message` so many times, and drops it. On the thread of the
    /// caller, which waits. It is made in the pool that the worker of that number would use.
    ///
    /// # Errors
    /// [`PluginError::Smoke`] with what the guest did instead of returning ok.
    pub fn run(
        &self,
        worker: usize,
        message: &Arc<Delivered>,
        times: u32,
    ) -> Result<BareEnd, PluginError> {
        let linked = self.linked.get(worker % self.linked.len());
        let linked = linked.expect("it is linked in each pool");
        let ended = match self.calling {
            Calling::Async => {
                let running = self.sandbox.ticker().running();
                let ended = finish(self.run_async(linked, message, times));
                drop(running);
                ended
            }
            Calling::Sync => self.run_sync(linked, message, times),
        };
        ended.map_err(|error| fault(&error))
    }

    fn store(&self, engine: &Engine) -> wasmtime::Result<Store<State>> {
        let limits = StoreLimitsBuilder::new().memory_size(self.memory).build();
        let state = State {
            wasi: WasiCtxBuilder::new().build(),
            table: ResourceTable::new(),
            limits,
            puts: 0,
        };
        let mut store = Store::new(engine, state);
        store.limiter(|state| &mut state.limits);
        store.set_fuel(self.fuel)?;
        match self.calling {
            Calling::Async => {
                store.set_epoch_deadline(1);
                store.epoch_deadline_async_yield_and_update(1);
            }
            Calling::Sync => store.set_epoch_deadline(NEVER),
        }
        Ok(store)
    }

    async fn run_async(
        &self,
        (pre, handle): &Linked,
        message: &Arc<Delivered>,
        times: u32,
    ) -> wasmtime::Result<BareEnd> {
        let mut store = self.store(pre.engine())?;
        let instance = pre.instantiate_async(&mut store).await?;
        let entered = Instant::now();
        let handler = instance
            .get_typed_func::<(Resource<MessageHandle>,), (Result<(), Failure>,)>(
                &mut store, handle,
            )?;
        for _ in 0..times {
            let (given, lent) = lend(&mut store, message)?;
            let (answer,) = handler.call_async(&mut store, (lent,)).await?;
            take_back(&mut store, given, &answer)?;
        }
        Ok(BareEnd {
            entered,
            puts: store.data().puts,
        })
    }

    fn run_sync(
        &self,
        (pre, handle): &Linked,
        message: &Arc<Delivered>,
        times: u32,
    ) -> wasmtime::Result<BareEnd> {
        let mut store = self.store(pre.engine())?;
        let instance = pre.instantiate(&mut store)?;
        let entered = Instant::now();
        let handler = instance
            .get_typed_func::<(Resource<MessageHandle>,), (Result<(), Failure>,)>(
                &mut store, handle,
            )?;
        for _ in 0..times {
            let (given, lent) = lend(&mut store, message)?;
            let (answer,) = handler.call(&mut store, (lent,))?;
            take_back(&mut store, given, &answer)?;
        }
        Ok(BareEnd {
            entered,
            puts: store.data().puts,
        })
    }
}

type Lent = (Resource<MessageHandle>, Resource<MessageHandle>);

fn lend(store: &mut Store<State>, message: &Arc<Delivered>) -> wasmtime::Result<Lent> {
    let given = store
        .data_mut()
        .table
        .push(MessageHandle(Arc::clone(message)))?;
    let lent = Resource::new_borrow(given.rep());
    Ok((given, lent))
}

fn take_back(
    store: &mut Store<State>,
    given: Resource<MessageHandle>,
    answer: &Result<(), Failure>,
) -> wasmtime::Result<()> {
    store.data_mut().table.delete(given)?;
    match answer {
        Ok(()) => Ok(()),
        Err(failure) => Err(wasmtime::format_err!("it failed: {failure:?}")),
    }
}

fn link(component: &Component, calling: Calling) -> wasmtime::Result<Linked> {
    let mut linker = Linker::<State>::new(component.engine());
    match calling {
        Calling::Async => wasmtime_wasi::p2::add_to_linker_async(&mut linker)?,
        Calling::Sync => wasmtime_wasi::p2::add_to_linker_sync(&mut linker)?,
    }
    types::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
    linker
        .instance("oncue:handler/queues@0.1.0")?
        .func_wrap("put", put)?;
    linker.define_unknown_imports_as_traps(component)?;
    let handle = component
        .get_export_index(None, ON_MESSAGE)
        .and_then(|world| component.get_export_index(Some(&world), "handle"))
        .ok_or_else(|| wasmtime::format_err!("it does not export {ON_MESSAGE}"))?;
    Ok((linker.instantiate_pre(component)?, handle))
}

type Put = (String, Content, PutOptions);

/// The stub: takes what the guest puts over, and forgets it.
fn put(
    mut store: StoreContextMut<'_, State>,
    (_, content, _): Put,
) -> wasmtime::Result<(Result<String, Error>,)> {
    std::hint::black_box(content);
    store.data_mut().puts += 1;
    Ok((Ok(ID.to_owned()),))
}

fn fault(error: &wasmtime::Error) -> PluginError {
    PluginError::Smoke(format!("the bare engine cannot run it: {error:#}"))
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl State {
    fn body_of(&self, message: &Resource<MessageHandle>) -> wasmtime::Result<Vec<u8>> {
        let MessageHandle(delivered) = self.table.get(message)?;
        match &delivered.message.body {
            oncue_core::message::Body::Whole(bytes) => Ok(bytes.to_vec()),
            oncue_core::message::Body::Stored { .. } => {
                Err(wasmtime::format_err!("a bare message has its body with it"))
            }
        }
    }
}

impl types::Host for State {}

impl HostMessage for State {
    fn metadata(&mut self, message: Resource<MessageHandle>) -> wasmtime::Result<Metadata> {
        let MessageHandle(delivered) = self.table.get(&message)?;
        Ok(metadata(&delivered.message, delivered.attempts_left))
    }

    fn body(&mut self, message: Resource<MessageHandle>) -> wasmtime::Result<Vec<u8>> {
        self.body_of(&message)
    }

    fn text(
        &mut self,
        message: Resource<MessageHandle>,
    ) -> wasmtime::Result<Result<String, Error>> {
        Ok(String::from_utf8(self.body_of(&message)?).map_err(|_| Error::NotText))
    }

    fn read(
        &mut self,
        message: Resource<MessageHandle>,
        offset: u64,
        length: u32,
    ) -> wasmtime::Result<Vec<u8>> {
        let body = self.body_of(&message)?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let part = body.into_iter().skip(from).take(length as usize);
        Ok(part.collect())
    }

    fn drop(&mut self, message: Resource<MessageHandle>) -> wasmtime::Result<()> {
        self.table.delete(message)?;
        Ok(())
    }
}
