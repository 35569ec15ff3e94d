//! A component that is compiled, linked and looked through: how it is called, what it imports and
//! exports, what it needs.
//!
//! The style is found by shape, never by name. It starts no task.

use std::fmt;

use oncue_core::quantity::format_bytes;
use oncue_manager::tasks::CallStyle;
use wasmtime::component::{Component, InstancePre};
use wasmtime::{Engine, Store};

use crate::engine::Sandbox;
use crate::error::PluginError;
use crate::interfaces::Guest;
use crate::interfaces::bindings::exports::oncue::handler::{on_message, on_trigger};
use crate::limiter::{MAX_MEMORIES, MAX_TABLES};

/// Bytes of a page of linear memory.
const PAGE: u64 = 64 << 10;

/// What may be imported, each name or its beginning. What matches and still does not link has
/// another type or version.
const KNOWN_IMPORTS: [&str; 11] = [
    "oncue:handler/",
    "wasi:keyvalue/store@",
    "wasi:keyvalue/atomics@",
    "wasi:logging/logging@",
    "wasi:config/store@",
    "wasi:cli/",
    "wasi:clocks/",
    "wasi:filesystem/",
    "wasi:io/",
    "wasi:random/",
    "wasi:sockets/",
];

/// What an instance needs before it has done anything. A limit below it can never be met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The largest initial linear memory, in bytes.
    pub memory: u64,
    /// The largest initial table, in elements.
    pub table_elements: u64,
}

/// A component that is ready to be instantiated.
pub struct Loaded {
    pre: InstancePre<Guest>,
    message: Option<on_message::GuestIndices>,
    trigger: Option<on_trigger::GuestIndices>,
    styles: Vec<CallStyle>,
    imports: Vec<String>,
    exports: Vec<String>,
    needs: Needs,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            styles,
            imports,
            exports,
            needs,
            ..
        } = self;
        f.debug_struct("Loaded")
            .field("styles", styles)
            .field("imports", imports)
            .field("exports", exports)
            .field("needs", needs)
            .finish_non_exhaustive()
    }
}

impl Loaded {
    /// Links a component and finds out how it wants to be called.
    pub(crate) fn new(sandbox: &Sandbox, component: &Component) -> Result<Self, PluginError> {
        let (shape, engine) = (component.component_type(), sandbox.engine());
        let imports: Vec<_> = shape
            .imports(engine)
            .map(|(name, _)| name.to_owned())
            .collect();
        let exports: Vec<_> = shape
            .exports(engine)
            .map(|(name, _)| name.to_owned())
            .collect();
        let needs = needs(component)?;
        let unknown: Vec<_> = imports
            .iter()
            .filter(|name| !is_known(name))
            .cloned()
            .collect();
        if !unknown.is_empty() {
            return Err(PluginError::UnknownImports { imports: unknown });
        }
        let pre = sandbox
            .linker()
            .instantiate_pre(component)
            .map_err(|error| {
                PluginError::WrongWorld(format!("the component does not fit this host: {error:#}"))
            })?;
        let message = on_message::GuestIndices::new(&pre).ok();
        let trigger = on_trigger::GuestIndices::new(&pre).ok();
        let styles: Vec<_> = [
            message.as_ref().map(|_| CallStyle::Message),
            trigger.as_ref().map(|_| CallStyle::Trigger),
        ]
        .into_iter()
        .flatten()
        .collect();
        if styles.is_empty() {
            return Err(PluginError::NoStyle { exports, imports });
        }
        // Off the first task's path: the image that instances start from.
        component
            .initialize_copy_on_write_image()
            .map_err(|error| {
                PluginError::Io(format!(
                    "the component's memory image cannot be made: {error:#}"
                ))
            })?;
        Ok(Self {
            pre,
            message,
            trigger,
            styles,
            imports,
            exports,
            needs,
        })
    }

    /// How it may be called, by the handlers that it exports. Never empty.
    #[must_use]
    pub fn styles(&self) -> &[CallStyle] {
        &self.styles
    }

    /// How it is called unless its definition says otherwise: message style before trigger style.
    #[must_use]
    pub fn style(&self) -> CallStyle {
        *self
            .styles
            .first()
            .expect("a component without a style is not loaded")
    }

    /// Names of its imports.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// Names of its exports.
    #[must_use]
    pub fn exports(&self) -> &[String] {
        &self.exports
    }

    /// What an instance needs at least.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.needs
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.pre.engine()
    }

    /// A new instance, to be called for messages.
    pub(crate) async fn message_handler(
        &self,
        store: &mut Store<Guest>,
    ) -> wasmtime::Result<on_message::Guest> {
        let indices = self
            .message
            .as_ref()
            .ok_or_else(|| wrong_style(CallStyle::Message))?;
        let instance = self.pre.instantiate_async(&mut *store).await?;
        indices.load(store, &instance)
    }

    /// A new instance, to be called with a trigger message.
    pub(crate) async fn trigger_handler(
        &self,
        store: &mut Store<Guest>,
    ) -> wasmtime::Result<on_trigger::Guest> {
        let indices = self
            .trigger
            .as_ref()
            .ok_or_else(|| wrong_style(CallStyle::Trigger))?;
        let instance = self.pre.instantiate_async(&mut *store).await?;
        indices.load(store, &instance)
    }

    /// Instantiates it and checks the types of every handler that it exports.
    pub(crate) async fn try_out(&self, store: &mut Store<Guest>) -> wasmtime::Result<()> {
        let instance = self.pre.instantiate_async(&mut *store).await?;
        if let Some(indices) = &self.message {
            indices.load(&mut *store, &instance)?;
        }
        if let Some(indices) = &self.trigger {
            indices.load(&mut *store, &instance)?;
        }
        Ok(())
    }
}

fn is_known(import: &str) -> bool {
    KNOWN_IMPORTS.iter().any(|known| import.starts_with(known))
}

/// No task is started with a style that its component has not; this says so if one is.
fn wrong_style(style: CallStyle) -> crate::classify::Stop {
    crate::classify::Stop::Host(format!("the component has no handler of {style:?} style"))
}

/// What an instance needs, or why no slot can hold it.
fn needs(component: &Component) -> Result<Needs, PluginError> {
    let Some(wanted) = component.resources_required() else {
        let why =
            "the component imports core modules, whose needs cannot be told; link it statically";
        return Err(PluginError::Demand(why.to_owned()));
    };
    let needs = Needs {
        memory: wanted
            .max_initial_memory_size
            .unwrap_or(0)
            .saturating_mul(PAGE),
        table_elements: wanted.max_initial_table_size.unwrap_or(0),
    };
    let (memories, tables) = (wanted.num_memories as usize, wanted.num_tables as usize);
    if memories > MAX_MEMORIES {
        return Err(PluginError::Demand(format!(
            "the component has {memories} linear memories of {MAX_MEMORIES}; merge its modules"
        )));
    }
    if tables > MAX_TABLES {
        return Err(PluginError::Demand(format!(
            "the component has {tables} tables of {MAX_TABLES}; merge its modules"
        )));
    }
    let most = oncue_core::definition::limits::MAX_MEMORY;
    if needs.memory > most {
        let (memory, most) = (format_bytes(needs.memory), format_bytes(most));
        return Err(PluginError::Demand(format!(
            "the component starts with {memory} of memory and an instance may have {most}"
        )));
    }
    Ok(needs)
}
