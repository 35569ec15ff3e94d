//! This project, as its peers are called: a host in a process of its own over HTTP; and in this
//! process, for orientation.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use oncue_core::names::QueueName;
use oncue_manager::Handle;
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use oncue_runtime::{Loaded, Sandbox};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{Contender, Progress, Queue, body};
use crate::callers::HttpPut;
use crate::callers::{Called, Caller};
use crate::classic::{Host, Initiation, Shape};
use crate::host::name;
use crate::http::Client;
use crate::server::{START_TIME, Server};

/// The handler's queue, and where it puts.
const IN: &str = "echo";
const OUT: &str = "echo.out";

/// The process definition of the handler.
const MANIFEST: &str = "[process.grants]\nput = [\"echo.out\"]\n\n[queue.echo]\nmax-tasks = 4\n";

/// How often it is asked how many messages were handled.
const LOOK: Duration = Duration::from_millis(1);

/// A host in a process of its own.
pub(crate) struct OverHttp {
    server: Server,
    client: Client,
    /// Queues that were put to so far, and messages handled.
    round: usize,
    handled: u64,
}

impl OverHttp {
    pub(crate) async fn start(home: &Path) -> anyhow::Result<(String, Self)> {
        let plugins = home.join("plugins");
        std::fs::create_dir_all(&plugins)?;
        std::fs::write(plugins.join("echo.toml"), MANIFEST)?;
        std::fs::copy(oncue_artifacts::ECHO, plugins.join("echo.wasm"))?;
        let server = Server::start(home, &[])?;
        let mut client = Client::connect(server.address()).await?;
        let out = json!({"trigger": "none", "max-depth": 100_000_000});
        client
            .json("PUT", &format!("/v1/queues/{OUT}"), &out)
            .await?;
        let begun = Instant::now();
        loop {
            let view = client.json("GET", "/v1/plugins/echo", &Value::Null).await;
            if view.is_ok_and(|view| view["state"] == "ready") {
                break;
            }
            anyhow::ensure!(begun.elapsed() < START_TIME, "the plugin is not ready");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let note = format!(
            "oncue {}; oncue serve, defaults, the embedded store; HTTP/1.1, one connection a \
             producer, kept alive; handler: the echo sample in its sandbox, max-tasks 4; what was \
             handled is asked for every {LOOK:?}, which the host pays for",
            env!("CARGO_PKG_VERSION")
        );
        let mut oncue = Self {
            server,
            client,
            round: 0,
            handled: 0,
        };
        oncue.define().await?;
        Ok((note, oncue))
    }

    fn kept_queue(&self) -> String {
        format!("kept.{}", self.round)
    }

    async fn define(&mut self) -> anyhow::Result<()> {
        let path = format!("/v1/queues/{}", self.kept_queue());
        self.client
            .json("PUT", &path, &json!({"trigger": "none"}))
            .await?;
        Ok(())
    }
}

impl Contender for OverHttp {
    type Put = HttpPut;

    async fn putters(&self, queue: Queue, count: usize) -> anyhow::Result<Vec<HttpPut>> {
        let queue = match queue {
            Queue::Kept => self.kept_queue(),
            Queue::Handled => IN.to_owned(),
        };
        let mut putters = Vec::new();
        for _ in 0..count {
            putters.push(HttpPut::connect(self.server.address(), &queue, &body()).await?);
        }
        Ok(putters)
    }

    async fn kept(&mut self) -> anyhow::Result<u64> {
        let queue = self.kept_queue();
        let kept = self.client.depth(&queue).await?;
        self.round += 1;
        self.define().await?;
        Ok(kept)
    }

    async fn consume(
        &self,
        progress: &Arc<Progress>,
    ) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
        let mut watching = JoinSet::new();
        let (address, progress) = (self.server.address(), Arc::clone(progress));
        watching.spawn(watch(address, self.handled, progress));
        Ok(watching)
    }

    async fn handled(&mut self) -> anyhow::Result<u64> {
        let left = self.client.depth(IN).await?;
        anyhow::ensure!(left == 0, "{left} messages are left");
        let all = self.client.depth(OUT).await?;
        Ok(all - std::mem::replace(&mut self.handled, all))
    }
}

/// Asks how many messages were handled, again and again.
async fn watch(address: SocketAddr, mut seen: u64, progress: Arc<Progress>) -> anyhow::Result<()> {
    let mut client = Client::connect(address).await?;
    loop {
        let count = client.depth(OUT).await?;
        if count > seen {
            progress.add(count - seen);
            seen = count;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The same in this process.
pub(crate) struct InProcess {
    host: Host,
    round: usize,
    handled: u64,
    /// Kept until the host is gone.
    _home: PathBuf,
}

impl InProcess {
    pub(crate) async fn start(
        home: &Path,
        sandbox: &Sandbox,
        echo: &Arc<Loaded>,
    ) -> anyhow::Result<(String, Self)> {
        std::fs::create_dir_all(home)?;
        let host = Host::start(home, sandbox, echo, Shape::Busy, Initiation::None).await?;
        let note = "the same store, manager and sandbox in the process of the load, without HTTP";
        let oncue = Self {
            host,
            round: 0,
            handled: 0,
            _home: home.to_owned(),
        };
        oncue.host.keep(&oncue.kept_queue()).await?;
        Ok((note.to_owned(), oncue))
    }

    fn kept_queue(&self) -> QueueName {
        name(&format!("kept.{}", self.round))
    }

    pub(crate) async fn end(self) {
        self.host.end().await;
    }
}

/// Puts one message in this process.
pub(crate) struct Put {
    handle: Handle,
    queue: QueueName,
    body: Bytes,
}

impl Caller for Put {
    async fn call(&mut self) -> anyhow::Result<Called> {
        let put = PutRequest {
            queue: self.queue.clone(),
            body: self.body.clone(),
            options: PutOptions::default(),
        };
        self.handle.put(vec![put], None).await?;
        Ok(Called::Done)
    }
}

impl Contender for InProcess {
    type Put = Put;

    async fn putters(&self, queue: Queue, count: usize) -> anyhow::Result<Vec<Put>> {
        let queue = match queue {
            Queue::Kept => self.kept_queue(),
            Queue::Handled => self.host.queues[0].clone(),
        };
        let putters = (0..count).map(|_| Put {
            handle: self.host.handle.clone(),
            queue: queue.clone(),
            body: body().into(),
        });
        Ok(putters.collect())
    }

    async fn kept(&mut self) -> anyhow::Result<u64> {
        let kept = self.host.handle.queue(self.kept_queue()).await?.depth;
        self.round += 1;
        self.host.keep(&self.kept_queue()).await?;
        Ok(kept)
    }

    async fn consume(
        &self,
        progress: &Arc<Progress>,
    ) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
        let mut watching = JoinSet::new();
        let (arrived, progress) = (Arc::clone(&self.host.arrived), Arc::clone(progress));
        watching.spawn(async move {
            let mut seen = arrived.count();
            loop {
                arrived.reached(seen + 1).await;
                let count = arrived.count();
                progress.add(count - seen);
                seen = count;
            }
        });
        Ok(watching)
    }

    async fn handled(&mut self) -> anyhow::Result<u64> {
        let all = self.host.arrived.count();
        self.host.check(all).await?;
        Ok(all - std::mem::replace(&mut self.handled, all))
    }
}
