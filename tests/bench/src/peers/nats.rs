//! NATS JetStream: one server, streams in files.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_nats::Client;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{self, Context};
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::server::{Server, command, find, free_port, version};
use super::{CONNECTIONS, Contender, IN_FLIGHT, Progress, Queue, body, next};
use crate::callers::{Called, Caller};

/// When the server syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sync {
    /// Before each answer.
    Always,
    /// Every two minutes, as it comes: an answered put may be lost.
    Default,
}

/// Streams of one subject each.
const KEPT: &str = "kept";
const IN: &str = "in";
const OUT: &str = "out";

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Nats {
    _server: Server,
    url: String,
    kept: Stream,
    incoming: Stream,
    out: Stream,
    counts: (u64, u64),
}

impl Nats {
    /// The version and settings, and the server; none when it is not installed.
    pub(crate) async fn start(home: &Path, sync: Sync) -> anyhow::Result<Option<(String, Self)>> {
        let Some(program) = find("nats-server") else {
            return Ok(None);
        };
        std::fs::create_dir_all(home)?;
        let port = free_port()?;
        let (line, note) = match sync {
            Sync::Always => ("sync_interval: always", "sync_interval always"),
            Sync::Default => (
                "",
                "sync_interval 2m, the default: an answered put may be lost",
            ),
        };
        let config = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{\n  store_dir: \"{}\"\n  {line}\n}}\n",
            home.join("data").display()
        );
        let file = home.join("nats.conf");
        std::fs::write(&file, config)?;
        let mut start = command(&program, None);
        start.arg("-c").arg(&file);
        let server = Server::start(start, home, port, "-KILL")?;
        let url = format!("nats://127.0.0.1:{port}");
        let context = context(&connect(&url).await?);
        let stream = |name: &str, retention| Config {
            name: name.to_owned(),
            subjects: vec![name.to_owned()],
            retention,
            storage: StorageType::File,
            num_replicas: 1,
            ..Config::default()
        };
        let kept = context
            .create_stream(stream(KEPT, RetentionPolicy::Limits))
            .await?;
        let incoming = context
            .create_stream(stream(IN, RetentionPolicy::WorkQueue))
            .await?;
        let out = context
            .create_stream(stream(OUT, RetentionPolicy::Limits))
            .await?;
        let note = format!(
            "{}; {note}; one server, file streams, replicas 1; client async-nats, {CONNECTIONS} \
             connections at most; consumer: pull, explicit acks that are confirmed",
            version(&program, &["--version"])
        );
        let nats = Self {
            _server: server,
            url,
            kept,
            incoming,
            out,
            counts: (0, 0),
        };
        Ok(Some((note, nats)))
    }
}

async fn connect(url: &str) -> anyhow::Result<Client> {
    let options = async_nats::ConnectOptions::new().request_timeout(Some(TIMEOUT));
    options.connect(url).await.context("connect to nats")
}

fn context(client: &Client) -> Context {
    let mut context = jetstream::new(client.clone());
    context.set_timeout(TIMEOUT);
    context
}

pub(crate) struct Put {
    context: Context,
    subject: &'static str,
    body: Bytes,
}

impl Caller for Put {
    async fn call(&mut self) -> anyhow::Result<Called> {
        let sent = self
            .context
            .publish(self.subject, self.body.clone())
            .await?;
        sent.await?;
        Ok(Called::Done)
    }
}

impl Contender for Nats {
    type Put = Put;

    async fn putters(&self, queue: Queue, count: usize) -> anyhow::Result<Vec<Put>> {
        let subject = match queue {
            Queue::Kept => KEPT,
            Queue::Handled => IN,
        };
        let mut contexts = Vec::new();
        for _ in 0..count.min(CONNECTIONS) {
            contexts.push(context(&connect(&self.url).await?));
        }
        let putters = (0..count).map(|number| Put {
            context: contexts[number % contexts.len()].clone(),
            subject,
            body: body().into(),
        });
        Ok(putters.collect())
    }

    async fn kept(&mut self) -> anyhow::Result<u64> {
        let last = self.kept.info().await?.state.last_sequence;
        let kept = last - std::mem::replace(&mut self.counts.0, last);
        self.kept.purge().await?;
        Ok(kept)
    }

    async fn consume(
        &self,
        progress: &Arc<Progress>,
    ) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
        let config = pull::Config {
            durable_name: Some("handler".to_owned()),
            ack_policy: AckPolicy::Explicit,
            max_ack_pending: 4096,
            ..pull::Config::default()
        };
        // Its own view of the stream: a consumer's connection is not the putters'.
        let client = connect(&self.url).await?;
        let context = context(&client);
        let stream = context.get_stream(IN).await?;
        let consumer: PullConsumer = stream.get_or_create_consumer("handler", config).await?;
        let mut messages = consumer.messages().await?;
        let progress = Arc::clone(progress);
        let mut consumers = JoinSet::new();
        consumers.spawn(async move {
            let places = Arc::new(Semaphore::new(IN_FLIGHT));
            let mut running = JoinSet::new();
            loop {
                let place = Arc::clone(&places).acquire_owned().await?;
                let message = next(&mut messages).await.context("the messages ended")?;
                let message = message?;
                let (client, context) = (client.clone(), context.clone());
                let progress = Arc::clone(&progress);
                running.spawn(async move {
                    context.publish(OUT, message.payload.clone()).await?.await?;
                    // What a confirmed ack is, without a subscription for each.
                    let reply = message.reply.clone().context("no reply subject")?;
                    client.request(reply, Bytes::new()).await?;
                    progress.add(1);
                    drop(place);
                    anyhow::Ok(())
                });
                while let Some(ended) = running.try_join_next() {
                    ended??;
                }
            }
        });
        Ok(consumers)
    }

    async fn handled(&mut self) -> anyhow::Result<u64> {
        let left = self.incoming.info().await?.state.messages;
        anyhow::ensure!(left == 0, "{left} messages are left");
        let last = self.out.info().await?.state.last_sequence;
        let handled = last - std::mem::replace(&mut self.counts.1, last);
        self.out.purge().await?;
        Ok(handled)
    }
}
