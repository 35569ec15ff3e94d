//! PostgreSQL: a table as a queue, taken from with SKIP LOCKED.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, Statement};

use super::server::{Server, command, done, find, free_port, give, is_root, version};
use super::{Contender, Progress, Queue, body};
use crate::callers::{Called, Caller};

/// The user that the server must run as where this program is root.
const USER: &str = "postgres";

/// Consumers, and how long one waits that found nothing.
const WORKERS: usize = 32;
const PAUSE: Duration = Duration::from_micros(500);

const TABLES: &str = "create table kept (id bigserial primary key, body bytea not null);
    create table incoming (id bigserial primary key, body bytea not null);
    create table out (id bigserial primary key, body bytea not null);";

/// One message in one transaction: it is taken, its effect is put, and it is gone.
const HANDLE: &str = "with next as (
        select id from incoming order by id for update skip locked limit 1
    ), taken as (
        delete from incoming using next where incoming.id = next.id returning incoming.body
    ) insert into out (body) select body from taken";

pub(crate) struct Postgres {
    _server: Server,
    settings: String,
    client: Client,
}

impl Postgres {
    /// The version and settings, and the server; none when it is not installed.
    pub(crate) async fn start(home: &Path) -> anyhow::Result<Option<(String, Self)>> {
        let (Some(program), Some(init)) = (find("postgres"), find("initdb")) else {
            return Ok(None);
        };
        std::fs::create_dir_all(home)?;
        let user = is_root().then_some(USER);
        if let Some(user) = user {
            give(home, user)?;
        }
        let data = home.join("data");
        let mut make: Command = command(&init, user);
        make.args([
            "--username",
            USER,
            "--auth",
            "trust",
            "--no-instructions",
            "--pgdata",
        ])
        .arg(&data);
        done(&init, make.current_dir(home).output())?;
        let port = free_port()?;
        let mut start = command(&program, user);
        start
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-k"])
            .arg(home)
            .current_dir(home);
        let options = [
            "listen_addresses=127.0.0.1",
            "max_connections=300",
            "max_wal_size=4GB",
            "shared_buffers=512MB",
            "fsync=on",
            "synchronous_commit=on",
        ];
        for option in options {
            start.args(["-c", option]);
        }
        let server = Server::start(start, home, port, "-INT")?;
        let settings = format!("host=127.0.0.1 port={port} user={USER} dbname=postgres");
        let client = connect_when_ready(&settings).await?;
        client.batch_execute(TABLES).await?;
        let note = format!(
            "{}; fsync on, synchronous_commit on, shared_buffers 512MB, max_wal_size 4GB; client \
             tokio-postgres, one connection a producer; consumer: {WORKERS} workers, each message \
             one statement that deletes with SKIP LOCKED and inserts",
            version(&program, &["--version"])
        );
        let postgres = Self {
            _server: server,
            settings,
            client,
        };
        Ok(Some((note, postgres)))
    }

    async fn count(&self, table: &str) -> anyhow::Result<u64> {
        let row = self
            .client
            .query_one(&format!("select count(*) from {table}"), &[])
            .await?;
        Ok(u64::try_from(row.get::<_, i64>(0))?)
    }

    async fn take(&self, table: &str) -> anyhow::Result<u64> {
        let count = self.count(table).await?;
        self.client
            .batch_execute(&format!("truncate {table}"))
            .await?;
        Ok(count)
    }
}

async fn connect(settings: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(settings, NoTls).await?;
    // It ends with its client; what fails there fails the client's calls too.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

/// The port is open before the server takes statements.
async fn connect_when_ready(settings: &str) -> anyhow::Result<Client> {
    const TRIES: usize = 100;
    for _ in 1..TRIES {
        if let Ok(client) = connect(settings).await {
            return Ok(client);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    connect(settings).await.context("connect to PostgreSQL")
}

pub(crate) struct Put {
    client: Client,
    insert: Statement,
    body: Vec<u8>,
}

impl Caller for Put {
    async fn call(&mut self) -> anyhow::Result<Called> {
        let rows = self.client.execute(&self.insert, &[&self.body]).await?;
        anyhow::ensure!(rows == 1, "{rows} rows were inserted");
        Ok(Called::Done)
    }
}

impl Contender for Postgres {
    type Put = Put;

    async fn putters(&self, queue: Queue, count: usize) -> anyhow::Result<Vec<Put>> {
        let insert = match queue {
            Queue::Kept => "insert into kept (body) values ($1)",
            Queue::Handled => "insert into incoming (body) values ($1)",
        };
        let mut putters = Vec::new();
        for _ in 0..count {
            let client = connect(&self.settings).await?;
            let insert = client.prepare(insert).await?;
            putters.push(Put {
                client,
                insert,
                body: body(),
            });
        }
        Ok(putters)
    }

    async fn kept(&mut self) -> anyhow::Result<u64> {
        self.take("kept").await
    }

    async fn consume(
        &self,
        progress: &Arc<Progress>,
    ) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
        let mut consumers = JoinSet::new();
        for _ in 0..WORKERS {
            let client = connect(&self.settings).await?;
            let handle = client.prepare(HANDLE).await?;
            let progress = Arc::clone(progress);
            consumers.spawn(async move {
                loop {
                    match client.execute(&handle, &[]).await? {
                        0 => tokio::time::sleep(PAUSE).await,
                        rows => progress.add(rows),
                    }
                }
            });
        }
        Ok(consumers)
    }

    async fn handled(&mut self) -> anyhow::Result<u64> {
        let left = self.count("incoming").await?;
        anyhow::ensure!(left == 0, "{left} messages are left");
        self.take("out").await
    }
}
