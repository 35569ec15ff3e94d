//! A component that is compiled, linked and looked through: how it is called, what it imports and
//! exports, what it needs.
//!
//! The style is found by shape, never by name. It starts no task.

use std::fmt;

use oncue_core::definition::Style;
use oncue_core::quantity::format_bytes;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Instance, InstancePre};
use wasmtime::{AsContextMut, Engine, Store};

use crate::engine::Sandbox;
use crate::error::PluginError;
use crate::interfaces::Guest;
use crate::limiter::{MAX_MEMORIES, MAX_TABLES};
use crate::pool::Pool;
use crate::style::{Bound, STYLES, StyleDef, is_offered};

/// Bytes of a page of linear memory.
const PAGE: u64 = 64 << 10;

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
    /// One for each pool, in the order of the pools. Never empty.
    linked: Vec<Linked>,
    imports: Vec<String>,
    exports: Vec<String>,
    needs: Needs,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            imports,
            exports,
            needs,
            ..
        } = self;
        f.debug_struct("Loaded")
            .field("styles", &self.styles().collect::<Vec<_>>())
            .field("imports", imports)
            .field("exports", exports)
            .field("needs", needs)
            .finish_non_exhaustive()
    }
}

/// A component in one pool.
pub(crate) struct Linked {
    pre: InstancePre<Guest>,
    /// The styles it has, in the order of the table. Never empty.
    bound: Vec<(&'static StyleDef, Bound)>,
}

impl Linked {
    fn new(pool: &Pool, component: &Component) -> Result<Self, PluginError> {
        let pre = pool.linker.instantiate_pre(component).map_err(|error| {
            PluginError::WrongWorld(format!("the component does not fit this host: {error:#}"))
        })?;
        let bound: Vec<_> = STYLES
            .iter()
            .filter_map(|def| Some((*def, (def.bind)(&pre).ok()?)))
            .collect();
        Ok(Self { pre, bound })
    }

    /// The image that instances start from, off the first task's path.
    fn prepare(&self) -> Result<(), PluginError> {
        let prepared = self.pre.component().initialize_copy_on_write_image();
        prepared.map_err(|error| {
            PluginError::Io(format!(
                "the component's memory image cannot be made: {error:#}"
            ))
        })
    }

    /// Its handler of that style.
    pub(crate) fn bound(&self, style: Style) -> Option<(&'static StyleDef, &Bound)> {
        let mut bound = self.bound.iter();
        let (def, handler) = bound.find(|(def, _)| def.style == style)?;
        Some((def, handler))
    }

    /// A new instance.
    pub(crate) async fn instantiate(&self, store: &mut Store<Guest>) -> wasmtime::Result<Instance> {
        self.pre.instantiate_async(&mut *store).await
    }

    /// Instantiates it and checks the types of every handler that it exports.
    pub(crate) async fn try_out(&self, store: &mut Store<Guest>) -> wasmtime::Result<()> {
        let instance = self.instantiate(store).await?;
        for (_, bound) in &self.bound {
            match bound {
                Bound::EachMessage(caller) => caller.check(store.as_context_mut(), &instance)?,
                Bound::Queue(handler) => handler.check(store.as_context_mut(), &instance)?,
            }
        }
        Ok(())
    }
}

impl Loaded {
    /// Links a component, loaded into each pool of the sandbox, and finds out how it wants to be
    /// called.
    pub(crate) fn new(sandbox: &Sandbox, components: &[Component]) -> Result<Self, PluginError> {
        let component = components.first().expect("there is always a pool");
        let (shape, engine) = (component.component_type(), component.engine());
        let imports: Vec<_> = shape
            .imports(engine)
            .map(|(name, _)| name.to_owned())
            .collect();
        let exports: Vec<_> = shape
            .exports(engine)
            .map(|(name, _)| name.to_owned())
            .collect();
        let needs = needs(component)?;
        let unknown: Vec<_> = shape
            .imports(engine)
            .filter(|(name, item)| acts(&item.ty, engine) && !is_offered(name))
            .map(|(name, _)| name.to_owned())
            .collect();
        if !unknown.is_empty() {
            return Err(PluginError::UnknownImports { imports: unknown });
        }
        let pools = sandbox.pools().iter().zip(components);
        let linked: Result<Vec<_>, _> = pools
            .map(|(pool, component)| Linked::new(pool, component))
            .collect();
        let linked = linked?;
        if linked.iter().any(|linked| linked.bound.is_empty()) {
            return Err(PluginError::NoStyle { exports, imports });
        }
        linked.iter().try_for_each(Linked::prepare)?;
        Ok(Self {
            linked,
            imports,
            exports,
            needs,
        })
    }

    /// The component in the pool of that number.
    pub(crate) fn in_pool(&self, number: usize) -> &Linked {
        let linked = self.linked.get(number).or(self.linked.first());
        linked.expect("it is loaded into each pool")
    }

    /// How it may be called, by the handlers that it exports. Never empty.
    pub fn styles(&self) -> impl Iterator<Item = Style> {
        self.in_pool(0).bound.iter().map(|(def, _)| def.style)
    }

    /// How it is called unless its definition says otherwise: the first of the table that fits.
    #[must_use]
    pub fn style(&self) -> Style {
        self.styles()
            .next()
            .expect("a component without a style is not loaded")
    }

    /// Its handler of that style, in whatever pool.
    pub(crate) fn bound(&self, style: Style) -> Option<(&'static StyleDef, &Bound)> {
        self.in_pool(0).bound(style)
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

    /// The component in each pool.
    pub(crate) fn components(&self) -> impl Iterator<Item = &Component> {
        self.linked.iter().map(|linked| linked.pre.component())
    }
}

/// Whether an import has functions or resources; types alone need nobody.
fn acts(item: &ComponentItem, engine: &Engine) -> bool {
    match item {
        ComponentItem::Type(_) => false,
        ComponentItem::ComponentInstance(instance) => instance
            .exports(engine)
            .any(|(_, item)| acts(&item.ty, engine)),
        _ => true,
    }
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
