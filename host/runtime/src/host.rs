//! [`TaskHost`] over the sandbox: starts the task of a session on the workers, if its component is
//! loaded.
//!
//! It decides nothing: what is to run, whether there is room, and what becomes of the messages is
//! the manager's.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use oncue_manager::tasks::{StartError, TaskHost, TaskSession};
use parking_lot::RwLock;

use crate::engine::{Loaded, Sandbox};
use crate::error::PluginError;
use crate::pool::worker_count;
use crate::secrets::Secrets;
use crate::task;
use crate::worker::Workers;

/// The component versions that can be started, by digest. Cloning shares them. The plugins
/// directory puts them in and takes them out; a task keeps the version that it began with.
#[derive(Clone, Debug, Default)]
pub struct Components(Arc<RwLock<HashMap<String, Arc<Loaded>>>>);

impl Components {
    /// Adds a version; one of the same digest is the same code.
    pub fn insert(&self, digest: String, loaded: Arc<Loaded>) {
        self.0.write().insert(digest, loaded);
    }

    /// Takes a version out. Tasks that run keep it.
    pub fn remove(&self, digest: &str) -> Option<Arc<Loaded>> {
        self.0.write().remove(digest)
    }

    /// The version of that digest.
    #[must_use]
    pub fn get(&self, digest: &str) -> Option<Arc<Loaded>> {
        self.0.read().get(digest).cloned()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.read().len()
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Runs tasks in the sandbox. Dropping it drops the tasks that run: stop the manager first.
pub struct WasmTaskHost {
    sandbox: Sandbox,
    components: Components,
    workers: Workers,
    slots: usize,
    secrets: Secrets,
}

impl std::fmt::Debug for WasmTaskHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WasmTaskHost")
            .field("components", &self.components.len())
            .field("tasks", &self.workers.live())
            .finish_non_exhaustive()
    }
}

impl WasmTaskHost {
    /// Starts the workers, one for each core unless told otherwise.
    ///
    /// # Errors
    /// [`PluginError::Io`] when the system refuses a thread.
    pub fn new(
        sandbox: Sandbox,
        components: Components,
        workers: Option<NonZeroUsize>,
    ) -> Result<Self, PluginError> {
        let slots = sandbox.limits().slots as usize;
        let workers = Workers::start(sandbox.clone(), worker_count(workers))
            .map_err(|error| PluginError::Io(format!("the workers cannot start: {error}")))?;
        Ok(Self {
            sandbox,
            components,
            workers,
            slots,
            secrets: Secrets::new(None),
        })
    }

    /// The same with another place for secrets than the environment.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Tasks that run or wait for a worker.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.workers.live()
    }
}

impl TaskHost for WasmTaskHost {
    fn workers(&self) -> usize {
        self.workers.count()
    }

    fn start(&self, session: Arc<TaskSession>) -> Result<(), StartError> {
        let component = &session.spec().component;
        let Some(loaded) = self.components.get(&component.digest) else {
            let (plugin, digest) = (&component.plugin, &component.digest);
            return Err(StartError(format!(
                "plugin \"{plugin}\" version {digest} is not loaded; wait for its compilation or \
                 drop it again [start-failed]"
            )));
        };
        if loaded.bound(component.style).is_none() {
            return Err(StartError(format!(
                "plugin \"{}\" has no handler of {} style; set style = \"auto\" [start-failed]",
                component.plugin, component.style
            )));
        }
        if self.workers.live() >= self.slots {
            let slots = self.slots;
            return Err(StartError(format!(
                "all {slots} slots of the sandbox run a task [start-failed]"
            )));
        }
        let names = &session.spec().attributes.grants.secrets;
        let given = self.secrets.resolve(names).map_err(StartError)?;
        let given = Arc::new(given);
        let sandbox = self.sandbox.clone();
        self.workers
            .spawn(|meter| task::run(sandbox, loaded, session, given, meter));
        Ok(())
    }
}
