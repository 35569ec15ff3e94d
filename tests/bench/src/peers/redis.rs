//! Redis streams: a consumer group, the append-only file synced before each answer.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use redis::aio::MultiplexedConnection;
use redis::streams::StreamReadReply;
use redis::{AsyncConnectionConfig, Client, cmd, pipe};
use tokio::task::JoinSet;

use super::server::{Server, command, find, free_port, version};
use super::{CONNECTIONS, Contender, Progress, Queue, body};
use crate::callers::{Called, Caller};

const KEPT: &str = "kept";
const IN: &str = "in";
const OUT: &str = "out";
const GROUP: &str = "handlers";
const FIELD: &str = "body";

/// How long a request may take, and a read waits.
const TIMEOUT: Duration = Duration::from_secs(30);
const WAIT_MS: usize = 1000;

/// Entries of one read, and readers.
const READ: usize = 32;
const READERS: usize = 4;

pub(crate) struct Redis {
    _server: Server,
    client: Client,
    connection: MultiplexedConnection,
}

impl Redis {
    /// The version and settings, and the server; none when it is not installed.
    pub(crate) async fn start(home: &Path) -> anyhow::Result<Option<(String, Self)>> {
        let Some(program) = find("redis-server") else {
            return Ok(None);
        };
        std::fs::create_dir_all(home)?;
        let port = free_port()?;
        let mut start = command(&program, None);
        start
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
            ])
            .args(["--appendonly", "yes", "--appendfsync", "always"])
            .args(["--auto-aof-rewrite-percentage", "0"])
            .arg("--dir")
            .arg(home);
        let server = Server::start(start, home, port, "-KILL")?;
        let client = Client::open(format!("redis://127.0.0.1:{port}/"))?;
        let mut connection = connect(&client).await?;
        cmd("XGROUP")
            .arg(&["CREATE", IN, GROUP, "0", "MKSTREAM"])
            .query_async::<()>(&mut connection)
            .await?;
        let note = format!(
            "{}; appendonly yes, appendfsync always, no snapshots; streams and a consumer group; \
             client redis-rs, {CONNECTIONS} pipelined connections at most; consumer: {READERS} \
             readers of up to {READ}, each message one MULTI of XADD, XACK, XDEL",
            version(&program, &["--version"])
        );
        let redis = Self {
            _server: server,
            client,
            connection,
        };
        Ok(Some((note, redis)))
    }

    /// Entries of a stream, which is emptied.
    async fn take(&mut self, stream: &str) -> anyhow::Result<u64> {
        let count = cmd("XLEN")
            .arg(stream)
            .query_async(&mut self.connection)
            .await?;
        cmd("XTRIM")
            .arg(&[stream, "MAXLEN", "0"])
            .query_async::<()>(&mut self.connection)
            .await?;
        Ok(count)
    }
}

async fn connect(client: &Client) -> anyhow::Result<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(TIMEOUT));
    let connected = client.get_multiplexed_async_connection_with_config(&config);
    connected.await.context("connect to redis")
}

pub(crate) struct Put {
    connection: MultiplexedConnection,
    stream: &'static str,
    body: Vec<u8>,
}

impl Caller for Put {
    async fn call(&mut self) -> anyhow::Result<Called> {
        let mut put = cmd("XADD");
        put.arg(self.stream)
            .arg("*")
            .arg(FIELD)
            .arg(self.body.as_slice());
        put.query_async::<()>(&mut self.connection).await?;
        Ok(Called::Done)
    }
}

impl Contender for Redis {
    type Put = Put;

    async fn putters(&self, queue: Queue, count: usize) -> anyhow::Result<Vec<Put>> {
        let stream = match queue {
            Queue::Kept => KEPT,
            Queue::Handled => IN,
        };
        let mut connections = Vec::new();
        for _ in 0..count.min(CONNECTIONS) {
            connections.push(connect(&self.client).await?);
        }
        let putters = (0..count).map(|number| Put {
            connection: connections[number % connections.len()].clone(),
            stream,
            body: body(),
        });
        Ok(putters.collect())
    }

    async fn kept(&mut self) -> anyhow::Result<u64> {
        self.take(KEPT).await
    }

    async fn consume(
        &self,
        progress: &Arc<Progress>,
    ) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
        let mut consumers = JoinSet::new();
        for number in 0..READERS {
            let (reading, working) = (connect(&self.client).await?, connect(&self.client).await?);
            consumers.spawn(read(reading, working, number, Arc::clone(progress)));
        }
        Ok(consumers)
    }

    async fn handled(&mut self) -> anyhow::Result<u64> {
        let left: u64 = cmd("XLEN")
            .arg(IN)
            .query_async(&mut self.connection)
            .await?;
        anyhow::ensure!(left == 0, "{left} messages are left");
        self.take(OUT).await
    }
}

async fn read(
    mut reading: MultiplexedConnection,
    working: MultiplexedConnection,
    number: usize,
    progress: Arc<Progress>,
) -> anyhow::Result<()> {
    let mut running = JoinSet::new();
    loop {
        let mut read = cmd("XREADGROUP");
        read.arg(&["GROUP", GROUP]).arg(format!("reader-{number}"));
        read.arg("COUNT").arg(READ).arg("BLOCK").arg(WAIT_MS);
        read.arg(&["STREAMS", IN, ">"]);
        let reply: Option<StreamReadReply> = read.query_async(&mut reading).await?;
        let entries = reply.into_iter().flat_map(|reply| reply.keys);
        for entry in entries.flat_map(|key| key.ids) {
            let body: Vec<u8> = entry.get(FIELD).context("an entry without a body")?;
            let (mut working, progress) = (working.clone(), Arc::clone(&progress));
            running.spawn(async move {
                pipe()
                    .atomic()
                    .cmd("XADD")
                    .arg(&[OUT, "*", FIELD])
                    .arg(body.as_slice())
                    .cmd("XACK")
                    .arg(&[IN, GROUP, &entry.id])
                    .cmd("XDEL")
                    .arg(&[IN, &entry.id])
                    .query_async::<()>(&mut working)
                    .await?;
                progress.add(1);
                anyhow::Ok(())
            });
        }
        while let Some(ended) = running.try_join_next() {
            ended??;
        }
    }
}
