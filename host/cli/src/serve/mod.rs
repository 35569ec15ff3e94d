//! `serve`: a host from its parts, and its orderly end.
//!
//! Start: settings, log, who may ask, listener, store (one process at a time has it), sandbox,
//! capacity, queue manager, plugins directory, HTTP. Only then the ready line. End, at the first
//! signal: HTTP takes nothing new and finishes what is in flight, tasks drain within the deadline,
//! the store is closed. A second signal ends the process at once; nothing acknowledged is lost by
//! that.

pub(crate) mod home;
pub(crate) mod log;
pub(crate) mod machine;
mod notify;
mod otlp;
mod security;
pub(crate) mod signals;

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use oncue_core::admission::{Demand, Resources};
use oncue_core::code::Code;
use oncue_manager::retention::Retention;
use oncue_manager::traces::TraceConfig;
use oncue_manager::{Handle, ManagerConfig, QueueManager, SystemClock};
use oncue_runtime::engine::pools;
use oncue_runtime::plugin::{
    Capacity, CompileCommand, Compiler, PluginDirectory, PluginDirectoryConfig, PluginKeys,
};
use oncue_runtime::{Components, Sandbox, SandboxConfig, SandboxLimits, Secrets, WasmTaskHost};
use oncue_server::{Doctor, Security, ServerOptions, Stopped};
use oncue_store::Store;
use oncue_store::embedded::{EmbeddedOptions, EmbeddedStore, OpenError};
use oncue_store::memory::MemoryStore;
use tokio::sync::oneshot;

use crate::args::Globals;
use crate::args::serve::ServeArgs;
use crate::commands::doctor;
use crate::config::Config;
use crate::exit::{Exit, Failure};
pub(crate) use home::Home;
use otlp::Otlp;
use signals::Signals;

/// How many seconds of all cores' work may be promised to tasks at a time.
const FUEL_SECONDS: u64 = 30;

/// Longest that requests in flight may hold up the end.
const MAX_STOP_TIME: Duration = Duration::from_secs(10);

/// Memory for all requests' bodies, as a multiple of the longest one.
const BODIES_AT_ONCE: u64 = 16;

/// Runs a host until it is told to end.
///
/// # Errors
/// A setting is wrong, something cannot be opened, or the host was ended at once.
pub(crate) fn run(globals: &Globals, args: &ServeArgs) -> Result<(), Failure> {
    let mut flags = globals.flags();
    flags.extend(args.flags());
    let config = Config::load(flags.clone(), globals.config.as_deref())?;
    let log = log::start(&config)?;
    let settings = || Config::load(flags.clone(), globals.config.as_deref());
    let home = Home::make(&config)?;
    let security = security::of(&config, &home.data)?;
    let listener = listen(config.text("listen"), &security)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("oncue-io")
        .build()
        .context("start the threads for input and output")?;
    // Caught from the beginning: a signal during the start ends the host cleanly after it.
    let signals = {
        let _entered = runtime.enter();
        Signals::catch().context("catch signals")?
    };
    // Not from within the runtime: opening a host waits for the disk.
    let otlp = Otlp::make(&config)?;
    let host = start_host(&config, &home, otlp.as_ref().map(Otlp::config))?;
    let done = runtime.block_on(async {
        let security = match security::audited(security, &home.data) {
            Ok(security) => security,
            Err(failure) => {
                end_host(host, Duration::ZERO).await;
                return Err(failure);
            }
        };
        let sending = otlp.map(Otlp::start);
        let known = security.clone();
        let reload = || {
            known.reload();
            log.follow(settings(), known.audit.as_ref());
        };
        let done = serve(&config, &home, host, listener, security, signals, &reload).await;
        // What tasks did until their end is sent, too. After an end at once nobody waits.
        if let (Some(sending), Ok(())) = (sending, &done) {
            sending.finish().await;
        }
        done
    });
    // After an end at once, threads may still wait for a disk; the process does not wait for them.
    runtime.shutdown_background();
    done
}

/// Binds the address, and refuses one that others could reach.
pub(crate) fn listen(address: &str, security: &Security) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).map_err(|error| {
        let text = format!("address \"{address}\" cannot be listened on: {error}");
        match error.kind() {
            io::ErrorKind::AddrInUse => {
                let cure = "end the host that has it, or name another with --listen";
                Failure::coded(Code::AddressInUse, format!("{text}; {cure}"))
            }
            _ => Failure::coded(Code::InvalidConfiguration, text),
        }
    })?;
    let bound = address_of(&listener)?;
    oncue_server::check_address(bound, security)
        .map_err(|refused| Failure::new(Exit::Usage, format!("the host {refused}")))?;
    Ok(listener)
}

pub(crate) fn address_of(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    Ok(listener
        .local_addr()
        .context("read the address that is listened on")?)
}

/// Opens the store. A second host over the same directory is refused here.
fn open_store(config: &Config, home: &Home) -> Result<Arc<dyn Store>, Failure> {
    if config.is_on("volatile") {
        let memory = machine::memory_capacity();
        return Ok(Arc::new(MemoryStore::new(fastrand::u32(..), memory)));
    }
    let defaults = EmbeddedOptions::default();
    let options = EmbeddedOptions {
        accept_loss: config.is_on("accept-loss"),
        reserve_bytes: config
            .number("store-reserve")
            .unwrap_or(defaults.reserve_bytes),
        ballast_bytes: config
            .number("store-ballast")
            .unwrap_or(defaults.ballast_bytes),
        ..defaults
    };
    let opened = EmbeddedStore::open(&home.data.join("store"), options);
    let store = opened.map_err(|error| {
        let exit = match &error {
            OpenError::InUse { .. } => Exit::of_code(Code::StoreInUse),
            _ => Exit::Failed,
        };
        Failure::new(exit, error.to_string())
    })?;
    Ok(Arc::new(store))
}

/// Threads for guests, if the configuration says how many.
fn workers(config: &Config) -> Option<NonZeroUsize> {
    let workers = config.number("workers");
    workers.and_then(|count| NonZeroUsize::new(usize::try_from(count).ok()?))
}

fn make_sandbox(config: &Config) -> Result<Sandbox, Failure> {
    let slots = config
        .number("slots")
        .map(|slots| u32::try_from(slots).unwrap_or(u32::MAX));
    let sandbox = Sandbox::new(SandboxConfig {
        slots,
        pools: pools(workers(config)),
    })
    .context("the sandbox cannot be made")?;
    if !sandbox.limits().pooled {
        tracing::warn!("the system refused the pool of instances: tasks start more slowly");
    }
    Ok(sandbox)
}

/// Memory for all tasks together, in bytes: as set, or half of the machine's.
pub(crate) fn memory_capacity(config: &Config) -> u64 {
    config
        .number("memory")
        .unwrap_or_else(machine::memory_capacity)
}

/// Fuel outstanding at a time: as set, or what all cores burn in [`FUEL_SECONDS`].
pub(crate) fn fuel_capacity(config: &Config, rate: impl FnOnce() -> u64) -> u64 {
    config.number("fuel").unwrap_or_else(|| {
        FUEL_SECONDS
            .saturating_mul(machine::cores())
            .saturating_mul(rate())
    })
}

/// All there is to run tasks with. Never below one task of the usual demand.
fn capacity(config: &Config, home: &Home, sandbox: &Sandbox) -> Resources {
    let fuel = fuel_capacity(config, || {
        let file = home.data.join("fuel-rate");
        machine::fuel_rate(&file, sandbox.compatibility(), || {
            sandbox.measure_fuel_rate()
        })
    });
    let wanted = Resources {
        slots: sandbox.limits().slots,
        memory: memory_capacity(config),
        fuel,
    };
    wanted.at_least(ManagerConfig::default().default_demand)
}

/// The parts of a host that runs.
pub(crate) struct Host {
    manager: QueueManager,
    limits: SandboxLimits,
    plugins: PluginDirectory,
}

impl Host {
    /// The queue manager to talk to.
    pub(crate) fn handle(&self) -> Handle {
        self.manager.handle()
    }

    /// What looks at the process and the machine of this host.
    pub(crate) fn doctor(&self, config: &Config) -> Doctor {
        doctor::within(config.clone(), self.limits, self.handle())
    }
}

/// Starts all parts but the listener.
///
/// # Errors
/// What cannot be opened.
pub(crate) fn start_host(
    config: &Config,
    home: &Home,
    traces: Option<TraceConfig>,
) -> Result<Host, Failure> {
    let store = open_store(config, home)?;
    let sandbox = make_sandbox(config)?;
    let capacity = capacity(config, home, &sandbox);
    tracing::info!(
        slots = capacity.slots,
        memory = capacity.memory,
        fuel = capacity.fuel,
        "capacity for tasks"
    );
    let components = Components::default();
    let tasks = WasmTaskHost::new(sandbox.clone(), components.clone(), workers(config))
        .context("the workers cannot be started")?
        .with_secrets(Secrets::new(
            config.optional("secrets-dir").map(PathBuf::from),
        ));
    let is_volatile = config.is_on("volatile");
    let manager_config = ManagerConfig {
        name: config.text("name").to_owned(),
        build: crate::build::view(),
        capacity,
        in_hand: (!is_volatile).then(|| home.data.join("in-hand")),
        headroom: Some(Box::new(machine::headroom())),
        traces,
        retention: retention(config),
        awaits_plugins: true,
        ..ManagerConfig::default()
    };
    let mut manager = QueueManager::start(
        manager_config,
        store,
        Arc::new(SystemClock),
        Arc::new(tasks),
    )
    .map_err(|error| Failure::new(Exit::of_code(error.code), error.message))?;
    let total = Demand {
        memory: capacity.memory,
        fuel: capacity.fuel,
    };
    let plugins = start_plugins(config, home, total, &mut manager, &sandbox, &components)?;
    Ok(Host {
        manager,
        limits: sandbox.limits(),
        plugins,
    })
}

/// How much is kept of task records: as set.
fn retention(config: &Config) -> Retention {
    let defaults = Retention::default();
    let age = config.duration("task-records-age").as_millis();
    Retention {
        bytes: config.number("task-records").unwrap_or(defaults.bytes),
        age: u64::try_from(age).unwrap_or(u64::MAX),
    }
}

/// The keys that plugins must be signed with.
///
/// # Errors
/// Usage, when the setting names none.
pub(crate) fn plugin_keys(config: &Config) -> Result<PluginKeys, Failure> {
    let Some(setting) = config.optional("plugin-keys") else {
        return Ok(PluginKeys::default());
    };
    PluginKeys::parse(setting).map_err(|fact| {
        let message = format!("setting \"plugin-keys\": {fact}");
        Failure::coded(Code::InvalidConfiguration, message)
    })
}

fn start_plugins(
    config: &Config,
    home: &Home,
    total: Demand,
    manager: &mut QueueManager,
    sandbox: &Sandbox,
    components: &Components,
) -> Result<PluginDirectory, Failure> {
    let command = CompileCommand::this_binary().context("find this program, to compile with")?;
    let limits = Capacity {
        total,
        table_elements: sandbox.limits().max_table_elements,
    };
    let usual = PluginDirectoryConfig::new(
        home.plugins.clone(),
        home.data.clone(),
        Compiler::Child(command),
        limits,
    );
    let directory = PluginDirectoryConfig {
        settle: config.duration("plugin-settle"),
        rescan: config.duration("plugin-rescan"),
        keys: plugin_keys(config)?,
        ..usual
    };
    let commands = manager
        .take_plugin_commands()
        .expect("they are taken once, here");
    PluginDirectory::start(directory, sandbox, components, manager.handle(), commands)
        .map_err(|error| Failure::new(Exit::of_code(error.code()), error.to_string()))
}

/// Serves until a signal, then ends all parts.
async fn serve(
    config: &Config,
    home: &Home,
    host: Host,
    listener: TcpListener,
    security: Security,
    mut signals: Signals,
    reload: &impl Fn(),
) -> Result<(), Failure> {
    let address = address_of(&listener)?;
    let deadline = config.duration("shutdown-deadline");
    let options = ServerOptions {
        doctor: Some(host.doctor(config)),
        ..server_options(config, deadline, security.clone())
    };
    let scheme = if security.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let (stop, stopping) = oneshot::channel::<()>();
    let handle = host.manager.handle();
    let mut server = tokio::spawn(oncue_server::serve(listener, handle, options, async {
        // A dropped sender means the end too.
        let _ = stopping.await;
    }));
    announce(address, scheme, home)?;
    notify::ready(address);
    let alive = tokio::spawn(notify::alive(host.manager.handle()));
    let ended = tokio::select! {
        signal = signals.next(reload) => {
            tracing::info!(signal, ?deadline, "stopping");
            notify::stopping();
            None
        }
        ended = &mut server => Some(ended),
    };
    let begun = Instant::now();
    let stop_all = async {
        // While it drains, the deadline bounds it, not the service manager's patience.
        alive.abort();
        drop(stop);
        let ended = match ended {
            Some(ended) => ended,
            None => server.await,
        };
        end_host(host, deadline.saturating_sub(begun.elapsed())).await;
        ended
    };
    tokio::select! {
        ended = stop_all => server_result(ended),
        signal = signals.next(reload) => {
            let message = format!("ended at once by a second signal ({signal})");
            Err(Failure::new(Exit::Failed, message))
        }
    }
}

/// The listener's bounds.
pub(crate) fn server_options(
    config: &Config,
    deadline: Duration,
    security: Security,
) -> ServerOptions {
    let defaults = ServerOptions::default();
    let limit = config
        .number("body-limit")
        .unwrap_or(defaults.body_limit as u64);
    let bytes = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    ServerOptions {
        body_limit: bytes(limit),
        body_memory: bytes(limit.saturating_mul(BODIES_AT_ONCE)),
        // Half of the time is for the tasks, whatever the requests do.
        stop_time: MAX_STOP_TIME.min(deadline / 2),
        max_connections_per_address: config.number("connections-per-address").map(bytes),
        security,
        ..defaults
    }
}

/// The ready line: scripts wait for it, and learn the port from it.
fn announce(address: SocketAddr, scheme: &str, home: &Home) -> Result<(), Failure> {
    let shown = |path: &Path| path.display().to_string();
    let (data, plugins) = (shown(&home.data), shown(&home.plugins));
    tracing::info!(%address, data, plugins, "ready");
    let line = format!("oncue: ready on {scheme}://{address} (data {data}, plugins {plugins})\n");
    let mut out = io::stdout().lock();
    let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    match written {
        // Whoever started the host may not want to read.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written.context("print the ready line")?),
    }
}

/// Ends plugins, tasks and store, in this order.
pub(crate) async fn end_host(host: Host, deadline: Duration) {
    let plugins = host.plugins;
    // It waits for its threads, which may wait for a compilation to notice.
    if tokio::task::spawn_blocking(move || plugins.shutdown())
        .await
        .is_err()
    {
        tracing::error!("the plugins directory could not be stopped");
    }
    if host.manager.shutdown(deadline).await {
        tracing::info!("stopped; every task ended by itself");
    } else {
        tracing::warn!("stopped; tasks were cut off at the deadline, their messages are back");
    }
}

/// How the listener ended.
pub(crate) fn server_result(
    ended: Result<io::Result<Stopped>, tokio::task::JoinError>,
) -> Result<(), Failure> {
    match ended {
        Ok(Ok(Stopped::Clean)) => Ok(()),
        Ok(Ok(Stopped::CutOff)) => {
            tracing::warn!("requests were cut off: they took too long to finish");
            Ok(())
        }
        Ok(Err(error)) => Err(Failure::new(
            Exit::Failed,
            format!("the listener failed: {error}"),
        )),
        Err(error) => Err(Failure::new(
            Exit::Failed,
            format!("the listener died: {error}"),
        )),
    }
}
