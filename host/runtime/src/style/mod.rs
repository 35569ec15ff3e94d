//! The styles in which a component may be called: one file each, and the table that lists them.
//!
//! A style is found by what a component exports, never by its name. Its file says by which exports,
//! what it brings to import, and how one message becomes one call. A new style is a new file, a
//! line in [`STYLES`] and its word in `oncue_core::definition::Style`. Nothing here takes messages
//! or settles them: that is the drain's. Neighbours: `plugin::shape` judges a file by the table
//! before it is compiled, [`crate::loaded`] binds, `crate::task` calls.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use oncue_core::definition::Style;
use oncue_core::outcome::Failure;
use oncue_manager::tasks::Delivered;
use wasmtime::component::{Instance, InstancePre, Linker};
use wasmtime::{Store, StoreContextMut};
use wasmtime_wasi::WasiCtxBuilder;

use crate::interfaces::{Guest, wasi};
use crate::plugin::contract::Function;
use crate::sink::Log;

mod command;
mod message;
pub(crate) mod offers;
mod output;
mod sending;
mod spin_sqs;
mod trigger;
mod wasi_http;
mod wasi_messaging;
mod wasmcloud_messaging;

pub(crate) use offers::is_offered;
pub(crate) use trigger::OnTrigger;

/// All styles. Where several fit a component, the first of this order is used, with a warning: our
/// own worlds say most of what a handler can do, a plain command says least.
pub(crate) const STYLES: &[&StyleDef] = &[
    &message::DEF,
    &trigger::DEF,
    &wasmcloud_messaging::DEF,
    &wasi_messaging::DEF,
    &spin_sqs::DEF,
    &wasi_http::DEF,
    &command::DEF,
];

/// Everything that the host knows of a style.
pub(crate) struct StyleDef {
    /// Its word.
    pub(crate) style: Style,
    /// The world that its authors know, for sentences.
    pub(crate) world: &'static str,
    /// The exports by which it is found; one of them is enough.
    pub(crate) exports: &'static [Wanted],
    /// What its components may import beside what everybody may.
    pub(crate) offers: &'static [Offer],
    /// Links those imports. Called once for the linker of each pool.
    pub(crate) link: fn(&mut Linker<Guest>) -> wasmtime::Result<()>,
    /// Looks the exports up, once for each component.
    pub(crate) bind: fn(&InstancePre<Guest>) -> wasmtime::Result<Bound>,
    /// Whether an instance serves one message only, whatever `reuse` says.
    pub(crate) fresh: bool,
}

/// An export that makes a component a handler.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    /// `package:name/interface`, or the name of a function that stands alone.
    pub(crate) name: &'static str,
    /// The version: `0.1` for any patch of it, a draft's whole version, empty for a name that has
    /// none.
    pub(crate) version: &'static str,
    /// The function in the interface; empty for a function that stands alone.
    pub(crate) function: &'static str,
    /// What its type must be. None: only the sandbox looks at the type.
    pub(crate) contract: Option<fn() -> Function>,
}

impl Wanted {
    /// The name in full, as people write it in WIT.
    pub(crate) fn full(&self) -> String {
        match self.version {
            "" => self.name.to_owned(),
            // A package's first patch.
            version if version.matches('.').count() == 1 => format!("{}@{version}.0", self.name),
            version => format!("{}@{version}", self.name),
        }
    }
}

/// Interfaces that may be imported.
#[derive(Clone, Copy)]
pub(crate) struct Offer {
    /// `wasi:http`.
    pub(crate) package: &'static str,
    /// The interfaces; none listed: all of the package.
    pub(crate) interfaces: &'static [&'static str],
    /// The version, as in [`Wanted`].
    pub(crate) version: &'static str,
}

/// A style's exports, found in a component.
pub(crate) enum Bound {
    /// Called once for each message.
    EachMessage(Box<dyn Caller>),
    /// Works the queue itself.
    Queue(OnTrigger),
}

/// What a call answers: the handler's own failure is no error of the sandbox.
pub(crate) type Answer = wasmtime::Result<Result<(), Failure>>;

/// A call that is under way.
pub(crate) type Calling<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// A component that is called once for each message. Implemented by every style but the trigger
/// style.
pub(crate) trait Caller: Send + Sync {
    /// Checks the types of what an instance exports.
    ///
    /// # Errors
    /// How they differ.
    fn check(&self, store: StoreContextMut<'_, Guest>, instance: &Instance)
    -> wasmtime::Result<()>;

    /// What the instance for a message is given of WASI beside the usual: arguments, environment,
    /// standard input and output. Called before it is made.
    fn dress(&self, _guest: &mut Dressing<'_>) {}

    /// Calls the handler for one message. The store belongs to this instance.
    fn call<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: &'a Instance,
        message: &'a Arc<Delivered>,
    ) -> Calling<'a>;
}

/// What a style may look at when it prepares WASI for an instance.
pub(crate) struct Dressing<'a> {
    /// The task that the instance works for.
    pub(crate) session: &'a Arc<oncue_manager::tasks::TaskSession>,
    /// The message that it is made for.
    pub(crate) message: &'a Arc<Delivered>,
    /// Where the style keeps what it needs when the call has returned.
    pub(crate) kept: &'a mut Kept,
    /// What the task writes.
    pub(crate) log: &'a Log,
    /// WASI, once the style has asked for it.
    pub(crate) wasi: Option<WasiCtxBuilder>,
}

impl Dressing<'_> {
    /// What the instance is given of WASI: the usual, to be added to.
    pub(crate) fn wasi(&mut self) -> &mut WasiCtxBuilder {
        let usual = || wasi::context(Some(self.session), self.log);
        self.wasi.get_or_insert_with(usual)
    }
}

/// What a style keeps beside an instance from [`Caller::dress`] to the end of the call: pipes, for
/// example. One value, of the style's own type.
#[derive(Default)]
pub(crate) struct Kept(Option<Box<dyn std::any::Any + Send>>);

impl Kept {
    /// Keeps a value in place of the last one.
    pub(crate) fn set<T: Send + 'static>(&mut self, value: T) {
        self.0 = Some(Box::new(value));
    }

    /// Takes the value, if it is of that type.
    pub(crate) fn take<T: Send + 'static>(&mut self) -> Option<T> {
        self.0
            .take()
            .and_then(|value| value.downcast().ok())
            .map(|value| *value)
    }
}

/// What is known of a style.
pub(crate) fn find(style: Style) -> Option<&'static StyleDef> {
    STYLES.iter().copied().find(|def| def.style == style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_style_is_listed_once() {
        for (at, def) in STYLES.iter().enumerate() {
            let first = STYLES.iter().position(|other| other.style == def.style);
            assert_eq!(first, Some(at), "{}", def.style);
            assert!(!def.exports.is_empty(), "{}", def.style);
        }
    }
}
