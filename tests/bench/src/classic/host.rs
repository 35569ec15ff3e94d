//! Both contenders: a manager that starts tasks itself, or by way of a monitor.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use oncue_core::definition::{ProcessPatch, QueuePatch, Style};
use oncue_core::names::{PluginName, QueueName};
use oncue_manager::reload::{PluginDefinitions, PluginState, PluginUpdate};
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use oncue_manager::tasks::{ComponentVersion, StartError, TaskHost, TaskSession};
use oncue_manager::{Handle, ManagerConfig, QueueManager, SystemClock};
use oncue_runtime::{Components, Loaded, Sandbox, WasmTaskHost};
use oncue_server::ServerOptions;
use oncue_store::Store;
use oncue_store::embedded::{EmbeddedOptions, EmbeddedStore};
use oncue_store::memory::{MEMORY_STORE_MAX_BYTES, MemoryStore};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::monitor::{INITIATION_QUEUE, Monitor};
use crate::host::name;
use crate::watched::{Arrived, watch};

/// Bytes of a trigger message in the classic design.
const TRIGGER_MESSAGE: usize = 684;

/// Where the handler puts its messages.
pub(crate) const OUT: &str = "echo.out";

/// Stands for the component's digest: there is one component.
const DIGEST: &str = "echo";

/// How long a manager may take to end.
const END: Duration = Duration::from_secs(5);

/// Most starts of one queue at a time, where messages are started one by one.
const STARTS: &str = "64";

/// What is put to, and by which rule it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// One queue, started at the first message, drained until it is empty.
    Busy,
    /// Many queues, each started at its first message.
    Many,
    /// One queue, one start for every message.
    Every,
}

impl Shape {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Many => "many",
            Self::Every => "every",
        }
    }

    /// Its queues.
    pub(crate) fn queues(self) -> Vec<QueueName> {
        /// Queues of [`Shape::Many`].
        const MANY: usize = 256;
        let count = if self == Self::Many { MANY } else { 1 };
        (0..count)
            .map(|number| name(&format!("app.{number}")))
            .collect()
    }

    fn patch(self) -> anyhow::Result<QueuePatch> {
        let (trigger, tasks) = match self {
            Self::Busy | Self::Many => ("first", "1"),
            Self::Every => ("every", STARTS),
        };
        patch(&[
            ("trigger", trigger),
            ("max-tasks", tasks),
            ("max-depth", "100000000"),
        ])
    }
}

/// Where the initiation queue is, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Initiation {
    /// Nowhere: the manager starts tasks itself.
    None,
    /// In the same store, its messages not persistent.
    SameStore,
    /// In a store of its own that has no disk: nothing on it ever waits for a sync.
    OwnMemory,
}

impl Initiation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "oncue",
            Self::SameStore => "classic",
            Self::OwnMemory => "classic-memory",
        }
    }
}

/// A contender that runs.
pub(crate) struct Host {
    manager: QueueManager,
    pub(crate) handle: Handle,
    pub(crate) arrived: Arc<Arrived>,
    pub(crate) queues: Vec<QueueName>,
    classic: Option<Classic>,
}

/// What only the classic one has.
struct Classic {
    tasks: Arc<Tasks>,
    /// The manager with the initiation queue, if it is another one.
    own: Option<QueueManager>,
    initiation: Handle,
    /// Ends the server when it is dropped.
    _stop: tokio::sync::oneshot::Sender<()>,
    api: std::net::SocketAddr,
    starts: std::net::SocketAddr,
}

impl Host {
    pub(crate) async fn start(
        directory: &Path,
        sandbox: &Sandbox,
        echo: &Arc<Loaded>,
        shape: Shape,
        initiation: Initiation,
    ) -> anyhow::Result<Self> {
        let place = directory.join(format!("{}-{}", shape.name(), initiation.name()));
        let store: Arc<dyn Store> =
            Arc::new(EmbeddedStore::open(&place, EmbeddedOptions::default())?);
        let arrived = Arrived::new(name(OUT));
        let store = watch(store, &arrived);
        let components = Components::default();
        components.insert(DIGEST.to_owned(), Arc::clone(echo));
        let behind = WasmTaskHost::new(sandbox.clone(), components, None)?;
        let tasks = Arc::new(Tasks::new(behind, initiation != Initiation::None));
        let manager = begin(store, Arc::clone(&tasks) as Arc<dyn TaskHost>).await?;
        let handle = manager.handle();
        let classic = match initiation {
            Initiation::None => None,
            Initiation::SameStore => Some(Classic::start(&tasks, handle.clone(), None).await?),
            Initiation::OwnMemory => {
                let memory = Arc::new(MemoryStore::new(2, MEMORY_STORE_MAX_BYTES));
                let own = begin(memory, Arc::new(Idle)).await?;
                Some(Classic::start(&tasks, own.handle(), Some(own)).await?)
            }
        };
        handle
            .define_queue(
                name(OUT),
                patch(&[("trigger", "none"), ("max-depth", "100000000")])?,
            )
            .await?;
        handle.plugin_changed(definitions(shape)?).await?;
        Ok(Self {
            manager,
            handle,
            arrived,
            queues: shape.queues(),
            classic,
        })
    }

    /// A queue that nothing serves.
    #[cfg(feature = "peers")]
    pub(crate) async fn keep(&self, queue: &QueueName) -> anyhow::Result<()> {
        let patch = patch(&[("trigger", "none"), ("max-depth", "100000000")])?;
        self.handle.define_queue(queue.clone(), patch).await?;
        Ok(())
    }

    /// A monitor in a process of its own; none where there is no initiation queue.
    pub(crate) fn monitor(&self) -> anyhow::Result<Option<Monitor>> {
        let start = |classic: &Classic| Monitor::start(classic.api, classic.starts);
        self.classic.as_ref().map(start).transpose()
    }

    /// Trigger messages that nobody has got.
    pub(crate) async fn piled_up(&self) -> anyhow::Result<u64> {
        match &self.classic {
            Some(classic) => Ok(classic
                .initiation
                .queue(name(INITIATION_QUEUE))
                .await?
                .depth),
            None => Ok(0),
        }
    }

    /// Fails unless so many messages were handled and none is left or dead.
    pub(crate) async fn check(&self, put: u64) -> anyhow::Result<()> {
        let out = self.handle.queue(name(OUT)).await?.depth;
        let dead = self.handle.status().await?.dead_letters;
        let mut left = 0;
        for queue in &self.queues {
            left += self.handle.queue(queue.clone()).await?.depth;
        }
        anyhow::ensure!(
            out == put && left == 0 && dead == 0,
            "{put} messages were put: {out} were handled, {left} are left, {dead} are dead letters"
        );
        Ok(())
    }

    pub(crate) async fn end(self) {
        self.manager.shutdown(END).await;
        if let Some(classic) = self.classic {
            classic.tasks.forget();
            if let Some(own) = classic.own {
                own.shutdown(END).await;
            }
        }
    }
}

impl Classic {
    async fn start(
        tasks: &Arc<Tasks>,
        initiation: Handle,
        own: Option<QueueManager>,
    ) -> anyhow::Result<Self> {
        let settings = [
            ("trigger", "none"),
            ("default-persistence", "non-persistent"),
            ("max-depth", "100000000"),
        ];
        initiation
            .define_queue(name(INITIATION_QUEUE), patch(&settings)?)
            .await?;
        let _ = tasks.initiation.set(initiation.clone());
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let api = listener.local_addr()?;
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let served = oncue_server::serve(
            listener,
            initiation.clone(),
            ServerOptions::default(),
            async move {
                // Its sender is dropped to end the serving.
                let _ = stopped.await;
            },
        );
        tokio::spawn(served);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let starts = listener.local_addr()?;
        tokio::spawn(take_starts(listener, Arc::clone(tasks)));
        Ok(Self {
            tasks: Arc::clone(tasks),
            own,
            initiation,
            _stop: stop,
            api,
            starts,
        })
    }
}

async fn begin(store: Arc<dyn Store>, tasks: Arc<dyn TaskHost>) -> anyhow::Result<QueueManager> {
    let clock = Arc::new(SystemClock);
    // The start waits for the disk, which a runtime's own thread may not.
    let begin = move || QueueManager::start(ManagerConfig::default(), store, clock, tasks);
    Ok(tokio::task::spawn_blocking(begin).await??)
}

fn patch(flags: &[(&str, &str)]) -> anyhow::Result<QueuePatch> {
    let flags: Vec<_> = flags
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect();
    QueuePatch::parse_flags(&flags).map_err(|faults| anyhow::anyhow!("{faults:?}"))
}

fn definitions(shape: Shape) -> anyhow::Result<PluginUpdate> {
    let plugin = PluginName::new("echo")?;
    // Little enough that what is reserved never holds a start back.
    let flags = [
        ("grants.put", OUT),
        ("memory", "4MiB"),
        ("fuel", "1000000000"),
    ];
    let flags: Vec<_> = flags
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect();
    let process = ProcessPatch::parse_flags(&flags).map_err(|f| anyhow::anyhow!("{f:?}"))?;
    let queues = shape
        .queues()
        .into_iter()
        .map(|queue| Ok((queue, shape.patch()?)));
    let version = ComponentVersion {
        plugin: plugin.clone(),
        digest: DIGEST.to_owned(),
        style: Style::Message,
    };
    Ok(PluginUpdate {
        name: plugin,
        file: "echo.wasm".to_owned(),
        state: PluginState::Ready(version),
        definitions: Some(PluginDefinitions {
            process,
            queues: queues.collect::<anyhow::Result<_>>()?,
        }),
        previous: Vec::new(),
        facts: Vec::new(),
    })
}

/// The sandbox, with or without the detour.
struct Tasks {
    behind: WasmTaskHost,
    is_classic: bool,
    /// The manager of the initiation queue: it starts after this.
    initiation: OnceLock<Handle>,
    /// Starts whose trigger message is under way, by their numbers.
    waiting: Mutex<HashMap<u64, Arc<TaskSession>>>,
    next: AtomicU64,
    runtime: tokio::runtime::Handle,
}

impl Tasks {
    fn new(behind: WasmTaskHost, is_classic: bool) -> Self {
        Self {
            behind,
            is_classic,
            initiation: OnceLock::new(),
            waiting: Mutex::default(),
            next: AtomicU64::new(0),
            runtime: tokio::runtime::Handle::current(),
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<TaskSession>>> {
        // A panic elsewhere fails the run anyway.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The monitor asks for a start.
    fn begin(&self, number: u64) -> anyhow::Result<()> {
        let session = self
            .waiting()
            .remove(&number)
            .context("a start that is not known")?;
        Ok(self.behind.start(session)?)
    }

    fn forget(&self) {
        self.waiting().clear();
    }
}

impl TaskHost for Tasks {
    fn start(&self, session: Arc<TaskSession>) -> Result<(), StartError> {
        if !self.is_classic {
            return self.behind.start(session);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut body = format!("{number}\n{}", session.spec().queue).into_bytes();
        body.resize(TRIGGER_MESSAGE, b' ');
        self.waiting().insert(number, session);
        let initiation = self.initiation.get().cloned();
        let initiation = initiation.ok_or_else(|| StartError("no initiation queue".to_owned()))?;
        self.runtime.spawn(async move {
            let put = PutRequest {
                queue: name(INITIATION_QUEUE),
                body: Bytes::from(body),
                options: PutOptions::default(),
            };
            // It fails only when the manager ends.
            let _ = initiation.put(vec![put], None).await;
        });
        Ok(())
    }
}

/// A host that has nothing to start.
struct Idle;

impl TaskHost for Idle {
    fn start(&self, _session: Arc<TaskSession>) -> Result<(), StartError> {
        Err(StartError("nothing is started here".to_owned()))
    }
}

/// Starts what monitors ask for: a line with a number each, answered by a line.
async fn take_starts(listener: TcpListener, tasks: Arc<Tasks>) -> anyhow::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve_starts(stream, Arc::clone(&tasks)));
    }
}

async fn serve_starts(stream: TcpStream, tasks: Arc<Tasks>) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await? {
        let answer: &[u8] = match tasks.begin(line.parse()?) {
            Ok(()) => b"started\n",
            Err(_) => b"refused\n",
        };
        writer.write_all(answer).await?;
    }
    Ok(())
}
