//! The plugins directory of a running host: one thread that looks and decides, a few that compile.
//!
//! Events of the file system are hints; looks are the truth. Everything reaches the thread through
//! one bounded inbox, and it never waits for a compilation.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use oncue_manager::command::Answer;
use oncue_manager::reload::PluginCommand;
use oncue_manager::{ApiError, Handle};
use parking_lot::{Condvar, Mutex};
use tokio::sync::mpsc;
use tracing::info;

use super::bounds::{COMPILE_MEMORY, COMPILE_TIMEOUT, MAX_COMMANDS, RESCAN, SETTLE, SLOW_FILE};
use super::catalog::{Capacity, NotPassed, Passed, Trial, Update};
use super::compile::{Cancelled, CompileBounds, Compiler};
use super::keeper::Keeper;
use super::kept::Source;
use super::loader::{Loader, cache_in};
use super::schedule::Schedule;
use super::seam;
use super::signatures::PluginKeys;
use super::storage::make_private;
use crate::engine::Sandbox;
use crate::error::PluginError;
use crate::host::Components;

/// How a plugins directory is kept.
#[derive(Clone, Debug)]
pub struct PluginDirectoryConfig {
    /// The directory. It need not exist yet.
    pub directory: PathBuf,
    /// The host's data directory, for the compile cache and for kept versions. Never inside the
    /// plugins directory.
    pub data: PathBuf,
    /// Time between two equal looks after which a file counts as whole.
    pub settle: Duration,
    /// Time between looks when nothing hints at a change, and between retries.
    pub rescan: Duration,
    /// Whether to ask the file system for hints.
    pub watch: bool,
    /// Compilations at a time.
    pub compile_concurrency: usize,
    /// Bounds of one compilation.
    pub compile: CompileBounds,
    /// Where to compile.
    pub compiler: Compiler,
    /// What a plugin can be granted at most.
    pub capacity: Capacity,
    /// What plugins must be signed with; nothing by default.
    pub keys: PluginKeys,
}

impl PluginDirectoryConfig {
    /// The usual settings.
    #[must_use]
    pub fn new(directory: PathBuf, data: PathBuf, compiler: Compiler, capacity: Capacity) -> Self {
        Self {
            directory,
            data,
            settle: SETTLE,
            rescan: RESCAN,
            watch: true,
            compile_concurrency: 1,
            compile: CompileBounds {
                timeout: COMPILE_TIMEOUT,
                memory: COMPILE_MEMORY,
            },
            compiler,
            capacity,
            keys: PluginKeys::default(),
        }
    }
}

/// What reaches the thread.
pub(crate) enum Event {
    /// Something may have changed.
    Hint,
    /// A worker has done a trial.
    Done(Box<Trial>, Result<Passed, NotPassed>),
    /// The end.
    Stop,
}

/// Whether there was nothing left to do at some time.
#[derive(Default)]
struct Quiet {
    reached: Mutex<bool>,
    changed: Condvar,
}

/// A plugins directory that is being looked after. Dropping it stops it.
pub struct PluginDirectory {
    inbox: mpsc::Sender<Event>,
    cancelled: Cancelled,
    quiet: Arc<Quiet>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for PluginDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginDirectory")
            .field("threads", &self.threads.len())
            .finish()
    }
}

impl PluginDirectory {
    /// Begins to look after a directory. Returns at once; what is in the directory is told to the
    /// manager as it settles.
    ///
    /// # Errors
    /// [`PluginError::Io`] when a thread or a timer cannot be had, or the settings contradict each
    /// other.
    pub fn start(
        config: PluginDirectoryConfig,
        sandbox: &Sandbox,
        components: &Components,
        handle: Handle,
        commands: mpsc::Receiver<PluginCommand>,
    ) -> Result<Self, PluginError> {
        check(&config)?;
        let cancelled: Cancelled = Arc::new(AtomicBool::new(false));
        let quiet = Arc::new(Quiet::default());
        let (inbox, events) = mpsc::channel(MAX_COMMANDS);
        let mut directory = Self {
            inbox,
            cancelled,
            quiet: Arc::clone(&quiet),
            threads: Vec::new(),
        };
        let workers = config.compile_concurrency.max(1);
        let (trials, work) = sync_channel(workers);
        let work = Arc::new(Mutex::new(work));
        for index in 0..workers {
            let loader = directory.loader(&config, sandbox)?;
            let (work, done) = (Arc::clone(&work), directory.inbox.clone());
            let components = components.clone();
            directory.spawn(format!("oncue-compile-{index}"), move || {
                compile(&loader, &components, &work, &done);
            })?;
        }
        let (inbox, components) = (directory.inbox.clone(), components.clone());
        let stopping = Arc::clone(&directory.cancelled);
        directory.spawn("oncue-plugins".to_owned(), move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build();
            let runtime = runtime.expect("a runtime without I/O needs nothing of the system");
            let thread = Thread {
                events,
                commands,
                trials,
                idle: workers,
                quiet,
                stopping,
                is_read: false,
            };
            runtime.block_on(thread.run(config, &components, &handle, inbox));
        })?;
        Ok(directory)
    }

    fn loader(
        &self,
        config: &PluginDirectoryConfig,
        sandbox: &Sandbox,
    ) -> Result<Loader, PluginError> {
        let engine = seam::compatibility()?;
        let cache = cache_in(&config.data, &engine);
        let made = Loader::new(
            sandbox.clone(),
            Some(cache),
            config.compiler.clone(),
            engine,
            config.compile,
            Arc::clone(&self.cancelled),
        );
        let mut loader =
            made.map_err(|error| PluginError::Io(format!("plugins cannot be tried: {error}")))?;
        loader.keys = config.keys.clone();
        Ok(loader)
    }

    fn spawn(
        &mut self,
        name: String,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<(), PluginError> {
        let thread = thread::Builder::new()
            .name(name)
            .spawn(body)
            .map_err(|error| {
                PluginError::Io(format!("the plugins directory has no thread: {error}"))
            })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Looks at once, without waiting for a hint.
    pub fn rescan(&self) {
        // A full inbox leads to a look anyway.
        let _ = self.inbox.try_send(Event::Hint);
    }

    /// Waits until all that was in the directory at the start serves or is refused; at most for
    /// `timeout`. Answers whether that came to be.
    #[must_use]
    pub fn wait_until_quiet(&self, timeout: Duration) -> bool {
        let mut reached = self.quiet.reached.lock();
        self.quiet
            .changed
            .wait_while_for(&mut reached, |reached| !*reached, timeout);
        *reached
    }

    /// Stops looking, and ends compilations. What serves goes on serving.
    pub fn shutdown(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        // If the inbox is full, the thread sees the flag when it has read what is in it.
        let _ = self.inbox.try_send(Event::Stop);
        for thread in self.threads.drain(..) {
            // A panic there was printed there.
            let _ = thread.join();
        }
    }
}

impl Drop for PluginDirectory {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Refuses settings under which the directory would see its own outputs.
fn check(config: &PluginDirectoryConfig) -> Result<(), PluginError> {
    let (plugins, data) = (&config.directory, &config.data);
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if resolved(plugins) == resolved(data) {
        return Err(PluginError::Io(format!(
            "\"{}\" is both the plugins directory and the data directory; name another for one",
            plugins.display()
        )));
    }
    make_private(data)
        .map_err(|error| PluginError::Io(format!("\"{}\" cannot be made: {error}", data.display())))
}

/// One compiling thread: until the other end of its work is gone.
fn compile(
    loader: &Loader,
    components: &Components,
    work: &Mutex<Receiver<(Trial, Source)>>,
    done: &mpsc::Sender<Event>,
) {
    loop {
        let next = work.lock().recv();
        let Ok((trial, source)) = next else { return };
        let result = loader.check(&trial, &source, components);
        if done
            .blocking_send(Event::Done(Box::new(trial), result))
            .is_err()
        {
            return;
        }
    }
}

/// The thread that looks and decides.
struct Thread {
    events: mpsc::Receiver<Event>,
    commands: mpsc::Receiver<PluginCommand>,
    trials: SyncSender<(Trial, Source)>,
    /// Workers without a trial.
    idle: usize,
    quiet: Arc<Quiet>,
    /// Set when the directory is let go, also when its inbox is too full to say so.
    stopping: Cancelled,
    /// Whether the manager was told that all is known that was there at the start.
    is_read: bool,
}

/// What the thread wakes up for.
enum Wake {
    Event(Option<Event>),
    Command(Option<PluginCommand>),
    Time,
}

impl Thread {
    async fn run(
        mut self,
        config: PluginDirectoryConfig,
        components: &Components,
        handle: &Handle,
        inbox: mpsc::Sender<Event>,
    ) {
        let tell = async |update: Update| {
            let update = seam::update(&config.directory, &update);
            handle
                .plugin_changed(update)
                .await
                .map_err(|refusal| refusal.to_string())
        };
        let unload = {
            let components = components.clone();
            Box::new(move |digest: &super::Digest| {
                components.remove(digest.as_str());
            })
        };
        let mut keeper = Keeper::new(
            config.directory.clone(),
            config.data.join("plugins-kept"),
            config.settle,
            config.capacity,
            tell,
            unload,
        )
        .with_keys(config.keys.clone());
        let workers = self.idle;
        let mut schedule = Schedule::new(&config, inbox);
        let mut commands_open = true;
        while !self.stopping.load(Ordering::Relaxed) {
            self.hand_out(&mut keeper);
            if schedule.has_looked && self.idle == workers && keeper.is_quiet() {
                self.say_quiet();
            }
            let wake = tokio::select! {
                biased;
                event = self.events.recv() => Wake::Event(event),
                command = self.commands.recv(), if commands_open => Wake::Command(command),
                () = tokio::time::sleep_until(schedule.due(keeper.next_look()).into()) => {
                    Wake::Time
                }
            };
            match wake {
                Wake::Event(None | Some(Event::Stop)) => return,
                Wake::Event(Some(Event::Hint)) => schedule.hint(),
                Wake::Event(Some(Event::Done(trial, result))) => {
                    self.idle += 1;
                    keeper.checked(*trial, result, schedule.now()).await;
                }
                Wake::Command(None) => commands_open = false,
                Wake::Command(Some(PluginCommand::Rollback(plugin, answer))) => {
                    keeper
                        .roll_back(&plugin, Box::new(|result| reply(answer, result)))
                        .await;
                }
                Wake::Time => self.look(&mut keeper, &mut schedule, handle).await,
            }
        }
    }

    /// Looks at the directory; says when all that was there at the start is known.
    async fn look<T: AsyncFnMut(Update) -> Result<(), String>>(
        &mut self,
        keeper: &mut Keeper<T>,
        schedule: &mut Schedule,
        handle: &Handle,
    ) {
        if schedule.begin_look() {
            keeper.retry(schedule.now()).await;
        }
        keeper.look(schedule.now()).await;
        // A file that is written for long is not waited for: it is told of when it is whole.
        if !self.is_read && (keeper.has_settled() || schedule.now() >= SLOW_FILE) {
            self.is_read = true;
            // A manager that has ended needs to know nothing.
            let _ = handle.plugins_read().await;
        }
    }

    /// Gives trials to workers that have none.
    fn hand_out<T: AsyncFnMut(Update) -> Result<(), String>>(&mut self, keeper: &mut Keeper<T>) {
        while self.idle > 0 {
            let Some(work) = keeper.next_trial() else {
                return;
            };
            // The queue to the workers holds one for each of them.
            if self.trials.try_send(work).is_err() {
                return;
            }
            self.idle -= 1;
        }
    }

    fn say_quiet(&self) {
        let mut reached = self.quiet.reached.lock();
        if !*reached {
            *reached = true;
            info!("the plugins directory is loaded");
            self.quiet.changed.notify_all();
        }
    }
}

/// Answers a rollback. That nobody waits any more is fine.
fn reply(
    answer: Answer<Result<String, ApiError>>,
    result: Result<super::Digest, (oncue_core::code::Code, String)>,
) {
    let result = result.map(|digest| digest.to_string());
    let _ = answer.send(result.map_err(|(code, text)| {
        // Some sentences bring their code along.
        if text.ends_with(']') {
            ApiError {
                code,
                message: text,
                faults: Vec::new(),
            }
        } else {
            ApiError::new(code, text)
        }
    }));
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
