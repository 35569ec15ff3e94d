//! RabbitMQ: durable queues, publisher confirms.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::Context as _;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions, QueueDeclareOptions, QueuePurgeOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use tokio::task::JoinSet;

use super::server::{Server, command, find, free_port};
use super::{CONNECTIONS, Contender, IN_FLIGHT, Progress, Queue, body, next};
use crate::callers::{Called, Caller};

/// What its queues are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Classic,
    Quorum,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Quorum => "quorum",
        }
    }

    fn queue(self, queue: &str) -> String {
        format!("{}-{queue}", self.name())
    }
}

const KEPT: &str = "kept";
const IN: &str = "in";
const OUT: &str = "out";

/// Consumers, each with a channel of its own.
const CONSUMERS: usize = 4;

/// A delivery mode: the message is on the disk before it is confirmed.
const PERSISTENT: u8 = 2;

/// The server, which both kinds of queues share.
pub(crate) struct Node {
    // In this order: the server before the daemon that it is registered with.
    _server: Server,
    _names: Server,
    url: String,
    version: String,
}

/// One kind of queues.
pub(crate) struct Rabbit {
    server: Arc<Node>,
    kind: Kind,
    _connection: Connection,
    channel: Channel,
}

impl Node {
    /// The server; none when it is not installed.
    pub(crate) fn start(home: &Path) -> anyhow::Result<Option<Arc<Self>>> {
        let (Some(program), Some(epmd)) = (find("rabbitmq-server"), find("epmd")) else {
            return Ok(None);
        };
        // The first place that is looked at has the plain script, which runs as whoever starts it.
        std::fs::create_dir_all(home.join("names"))?;
        let (port, names, nodes) = (free_port()?, free_port()?.to_string(), free_port()?);
        let mut start = command(&epmd, None);
        start.args(["-address", "127.0.0.1", "-port", &names]);
        let names_server = Server::start(start, &home.join("names"), names.parse()?, "-KILL")?;
        let plugins = home.join("enabled_plugins");
        std::fs::write(&plugins, "[].\n")?;
        let mut start = command(&program, None);
        start
            .env("HOME", home)
            .env("ERL_EPMD_PORT", &names)
            .env("RABBITMQ_NODENAME", format!("bench-{port}@localhost"))
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", port.to_string())
            .env("RABBITMQ_DIST_PORT", nodes.to_string())
            .env("RABBITMQ_MNESIA_BASE", home.join("data"))
            .env("RABBITMQ_LOG_BASE", home.join("log"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", plugins)
            .current_dir(home);
        let server = Server::start(start, home, port, "-KILL")?;
        let installed = Command::new("dpkg-query")
            .args(["-W", "rabbitmq-server"])
            .output();
        let installed = installed.map(|answer| answer.stdout).unwrap_or_default();
        Ok(Some(Arc::new(Self {
            _server: server,
            _names: names_server,
            url: format!("amqp://guest:guest@127.0.0.1:{port}/%2f"),
            version: String::from_utf8_lossy(&installed)
                .trim()
                .replace('\t', " "),
        })))
    }

    async fn connect(&self) -> anyhow::Result<Connection> {
        let connected = Connection::connect(&self.url, ConnectionProperties::default()).await;
        connected.context("connect to RabbitMQ")
    }
}

impl Rabbit {
    /// The version and settings, and queues of that kind.
    pub(crate) async fn start(server: &Arc<Node>, kind: Kind) -> anyhow::Result<(String, Self)> {
        let connection = server.connect().await?;
        let channel = connection.create_channel().await?;
        let mut arguments = FieldTable::default();
        let name = AMQPValue::LongString(kind.name().into());
        arguments.insert("x-queue-type".into(), name);
        for queue in [KEPT, IN, OUT] {
            let (queue, options) = (kind.queue(queue), QueueDeclareOptions::durable());
            channel
                .queue_declare(queue.into(), options, arguments.clone())
                .await?;
        }
        let note = format!(
            "{}; durable {} queues on one node, persistent messages, confirms; client lapin, a \
             channel a producer on {CONNECTIONS} connections at most; consumer: {CONSUMERS} of \
             them, the put confirmed, then an ack, which no answer follows",
            server.version,
            kind.name()
        );
        let rabbit = Self {
            server: Arc::clone(server),
            kind,
            _connection: connection,
            channel,
        };
        Ok((note, rabbit))
    }

    /// Messages of a queue, which is emptied.
    async fn take(&self, queue: &str) -> anyhow::Result<u64> {
        let queue = self.kind.queue(queue);
        let purged = self
            .channel
            .queue_purge(queue.into(), QueuePurgeOptions::default());
        Ok(u64::from(purged.await?))
    }
}

pub(crate) struct Put {
    channel: Channel,
    /// Ends when no putter needs it any more.
    _connection: Arc<Connection>,
    queue: String,
    body: Vec<u8>,
}

impl Caller for Put {
    async fn call(&mut self) -> anyhow::Result<Called> {
        publish(&self.channel, &self.queue, &self.body).await?;
        Ok(Called::Done)
    }
}

async fn publish(channel: &Channel, queue: &str, body: &[u8]) -> anyhow::Result<()> {
    let options = BasicPublishOptions::default();
    let properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
    let sent = channel.basic_publish("".into(), queue.into(), options, body, properties);
    let confirm = sent.await?.await?;
    anyhow::ensure!(confirm.is_ack(), "a put was refused");
    Ok(())
}

impl Contender for Rabbit {
    type Put = Put;

    async fn putters(&self, queue: Queue, count: usize) -> anyhow::Result<Vec<Put>> {
        let queue = self.kind.queue(match queue {
            Queue::Kept => KEPT,
            Queue::Handled => IN,
        });
        let mut connections = Vec::new();
        for _ in 0..count.min(CONNECTIONS) {
            connections.push(Arc::new(self.server.connect().await?));
        }
        let mut putters = Vec::new();
        for number in 0..count {
            let connection = Arc::clone(&connections[number % connections.len()]);
            let channel = connection.create_channel().await?;
            channel
                .confirm_select(ConfirmSelectOptions::default())
                .await?;
            putters.push(Put {
                channel,
                _connection: connection,
                queue: queue.clone(),
                body: body(),
            });
        }
        Ok(putters)
    }

    async fn kept(&mut self) -> anyhow::Result<u64> {
        self.take(KEPT).await
    }

    async fn consume(
        &self,
        progress: &Arc<Progress>,
    ) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
        let mut consumers = JoinSet::new();
        for number in 0..CONSUMERS {
            let connection = self.server.connect().await?;
            let out = self.kind.queue(OUT);
            let channel = connection.create_channel().await?;
            channel
                .confirm_select(ConfirmSelectOptions::default())
                .await?;
            let prefetch = u16::try_from(IN_FLIGHT / CONSUMERS)?;
            channel
                .basic_qos(prefetch, BasicQosOptions::default())
                .await?;
            let mut messages = channel
                .basic_consume(
                    self.kind.queue(IN).into(),
                    format!("handler-{number}").into(),
                    BasicConsumeOptions::default(),
                    FieldTable::default(),
                )
                .await?;
            let progress = Arc::clone(progress);
            consumers.spawn(async move {
                // Dropped at the end, which ends the consumer.
                let _connection = connection;
                let mut running = JoinSet::new();
                loop {
                    let delivery = next(&mut messages).await.context("the messages ended")??;
                    let (channel, out) = (channel.clone(), out.clone());
                    let progress = Arc::clone(&progress);
                    // Bounded by the prefetch.
                    running.spawn(async move {
                        publish(&channel, &out, &delivery.data).await?;
                        delivery.ack(BasicAckOptions::default()).await?;
                        progress.add(1);
                        anyhow::Ok(())
                    });
                    while let Some(ended) = running.try_join_next() {
                        ended??;
                    }
                }
            });
        }
        Ok(consumers)
    }

    async fn handled(&mut self) -> anyhow::Result<u64> {
        let left = self.take(IN).await?;
        anyhow::ensure!(left == 0, "{left} messages are left");
        self.take(OUT).await
    }
}
