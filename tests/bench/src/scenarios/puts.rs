//! Durable puts and gets under lease, over HTTP on connections kept alive and in this process,
//! beside a raw log that takes the same records with group commit. At the end of each round a queue
//! is drained while it is filled.
//!
//! Every count is checked against the depth of its queue.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use oncue_core::definition::QueuePatch;
use oncue_core::names::QueueName;
use oncue_manager::Handle;
use oncue_manager::handle::{DEFAULT_LEASE, GetRequest};
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use oncue_runtime::{Loaded, Sandbox};
use oncue_store::embedded::{EmbeddedOptions, EmbeddedStore};
use serde_json::json;

use super::Scenario;
use crate::append_log::{AppendLog, Appender};
use crate::callers::{Called, Caller, HttpPut, Load, closed};
use crate::host;
use crate::http::{self, Client};
use crate::run::Run;
use crate::server::{Server, processor_seconds};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "puts",
    what: "durable puts and gets under lease over HTTP and in process, beside a raw log",
    run,
};

/// Lengths of bodies in bytes, and what they are called.
const LENGTHS: [(&str, usize); 4] = [
    ("100B", 100),
    ("1KiB", 1 << 10),
    ("64KiB", 64 << 10),
    ("1MiB", 1 << 20),
];

/// Callers at a time.
const CALLERS: [usize; 3] = [1, 16, 128];

/// Callers of each kind, and the length of bodies, while a queue is drained and filled at once.
const BOTH: usize = 16;
const BOTH_LENGTH: (&str, usize) = LENGTHS[1];

/// The queue of both, and how often its filling lasts as long as one measurement.
const BOTH_QUEUE: &str = "both";

/// How long a manager may take to end.
const END: Duration = Duration::from_secs(5);

fn run(run: &mut Run) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(all(run))
}

async fn all(run: &mut Run) -> anyhow::Result<()> {
    run.note(
        "http",
        "oncue serve, a process of its own, defaults; one connection a caller, kept alive",
    );
    run.note(
        "in-process",
        "the same store and manager in the process of the callers",
    );
    run.note(
        "log",
        "append and fdatasync by one thread that takes all records that wait",
    );
    let sandbox = host::sandbox(100)?;
    let echo = host::load_echo(&sandbox)?;
    let time = run.size(Duration::from_millis(1500), Duration::from_millis(150));
    for round in 0..run.rounds() {
        let directory = host::directory()?;
        let sides = Sides::start(directory.path(), &sandbox, &echo, time).await?;
        for length in LENGTHS {
            for callers in CALLERS {
                sides.cell(run, round, length, callers).await?;
            }
        }
        sides.both(run, round).await?;
        sides.manager.shutdown(END).await;
    }
    for (length, _) in LENGTHS {
        for callers in CALLERS {
            let cell = format!("{length}-{callers}");
            run.ratio(&format!("put-http-{cell}"), &format!("put-log-{cell}"));
            run.ratio(&format!("put-process-{cell}"), &format!("put-log-{cell}"));
        }
    }
    Ok(())
}

/// The contenders of one round.
struct Sides<'a> {
    directory: &'a std::path::Path,
    server: Server,
    manager: oncue_manager::QueueManager,
    handle: Handle,
    time: Duration,
}

impl<'a> Sides<'a> {
    async fn start(
        directory: &'a std::path::Path,
        sandbox: &Sandbox,
        echo: &Arc<Loaded>,
        time: Duration,
    ) -> anyhow::Result<Self> {
        let server = Server::start(directory, &[])?;
        let options = EmbeddedOptions::default();
        let store = Arc::new(EmbeddedStore::open(&directory.join("in-process"), options)?);
        let manager = host::start(store, sandbox, echo, true).await?;
        let handle = manager.handle();
        Ok(Self {
            directory,
            server,
            manager,
            handle,
            time,
        })
    }

    /// A queue on both sides.
    async fn define(&self, queue: &str) -> anyhow::Result<Client> {
        let mut client = Client::connect(self.server.address()).await?;
        let path = format!("/v1/queues/{queue}");
        client
            .json("PUT", &path, &json!({"trigger": "none"}))
            .await?;
        let patch = QueuePatch::parse_flags(&[("trigger".to_owned(), "none".to_owned())])
            .map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
        self.handle.define_queue(host::name(queue), patch).await?;
        Ok(client)
    }

    /// Puts of one length from so many callers on each side, then gets of what was put.
    async fn cell(
        &self,
        run: &mut Run,
        round: usize,
        (name, length): (&str, usize),
        callers: usize,
    ) -> anyhow::Result<()> {
        let cell = format!("{name}-{callers}");
        if !run.wants(&cell) {
            return Ok(());
        }
        let queue = format!("q{cell}").to_lowercase();
        let mut client = self.define(&queue).await?;
        let body = Bytes::from(vec![b'x'; length]);
        let mut put = [0, 0];
        for turn in run.order(round, 3) {
            match turn {
                0 => {
                    let load = self.http_puts(run, &cell, &queue, &body, callers).await?;
                    put[0] = load.done;
                }
                1 => {
                    let puts = (0..callers).map(|_| self.put(&queue, &body)).collect();
                    let mut load = closed(puts, self.time).await?;
                    put[1] = load.done;
                    sample(run, &format!("put-process-{cell}"), &mut load);
                }
                _ => {
                    let mut load = self.log_puts(&cell, &body, callers).await?;
                    sample(run, &format!("put-log-{cell}"), &mut load);
                }
            }
        }
        let depth = client.depth(&queue).await?;
        checked("depth after puts over HTTP", depth, put[0])?;
        let depth = self.handle.queue(host::name(&queue)).await?.depth;
        checked("depth after puts in process", depth, put[1])?;

        let mut gets = Vec::new();
        for _ in 0..callers {
            gets.push(HttpGet::connect(self.server.address(), &queue).await?);
        }
        let mut load = closed(gets, self.time).await?;
        sample(run, &format!("get-http-{cell}"), &mut load);
        let depth = client.depth(&queue).await?;
        checked("depth after gets over HTTP", depth, put[0] - load.done)?;
        let gets = (0..callers).map(|_| self.get(&queue)).collect();
        let mut load = closed(gets, self.time).await?;
        sample(run, &format!("get-process-{cell}"), &mut load);
        let depth = self.handle.queue(host::name(&queue)).await?.depth;
        checked("depth after gets in process", depth, put[1] - load.done)
    }

    /// Puts over HTTP, and what they cost both processes.
    async fn http_puts(
        &self,
        run: &mut Run,
        cell: &str,
        queue: &str,
        body: &[u8],
        callers: usize,
    ) -> anyhow::Result<Load> {
        let mut puts = Vec::new();
        for _ in 0..callers {
            puts.push(HttpPut::connect(self.server.address(), queue, body).await?);
        }
        let used = || {
            (
                processor_seconds(self.server.id()),
                processor_seconds(std::process::id()),
            )
        };
        let (server, own) = used();
        let mut load = closed(puts, self.time).await?;
        let (server_now, own_now) = used();
        sample(run, &format!("put-http-{cell}"), &mut load);
        #[expect(clippy::cast_precision_loss, reason = "counts of millions at most")]
        let each = |seconds: f64| seconds * 1e6 / load.done as f64;
        run.sample(
            &format!("put-http-{cell}.host-cpu"),
            each(server_now - server),
            "us/put",
        );
        run.sample(
            &format!("put-http-{cell}.client-cpu"),
            each(own_now - own),
            "us/put",
        );
        #[expect(clippy::cast_precision_loss, reason = "counts of millions at most")]
        run.sample(
            &format!("put-http-{cell}.refused"),
            load.refused as f64,
            "puts",
        );
        Ok(load)
    }

    async fn log_puts(&self, cell: &str, body: &Bytes, callers: usize) -> anyhow::Result<Load> {
        let path = self.directory.join(format!("{cell}.log"));
        let log = AppendLog::create(&path)?;
        let puts = (0..callers)
            .map(|_| LogPut {
                log: log.appender(),
                body: body.clone(),
            })
            .collect();
        let load = closed(puts, self.time).await?;
        log.close()?;
        let expected = load.done * (body.len() as u64 + 4);
        checked(
            "bytes of the log",
            std::fs::metadata(&path)?.len(),
            expected,
        )?;
        std::fs::remove_file(path)?;
        Ok(load)
    }

    /// A queue is filled and drained at once.
    async fn both(&self, run: &mut Run, round: usize) -> anyhow::Result<()> {
        let mut client = self.define(BOTH_QUEUE).await?;
        let (name, length) = BOTH_LENGTH;
        let body = Bytes::from(vec![b'x'; length]);
        for turn in 0..2 {
            let is_http = (turn + round).is_multiple_of(2);
            let (mut puts, mut gets, depth, side);
            if is_http {
                let (mut putters, mut getters) = (Vec::new(), Vec::new());
                for _ in 0..BOTH {
                    let address = self.server.address();
                    putters.push(HttpPut::connect(address, BOTH_QUEUE, &body).await?);
                    getters.push(HttpGet::connect(address, BOTH_QUEUE).await?.patient());
                }
                (puts, gets) =
                    tokio::try_join!(closed(putters, self.time), closed(getters, self.time))?;
                (depth, side) = (client.depth(BOTH_QUEUE).await?, "http");
            } else {
                let putters = (0..BOTH).map(|_| self.put(BOTH_QUEUE, &body)).collect();
                let getters = (0..BOTH).map(|_| self.get(BOTH_QUEUE).patient()).collect();
                (puts, gets) =
                    tokio::try_join!(closed(putters, self.time), closed(getters, self.time))?;
                let view = self.handle.queue(host::name(BOTH_QUEUE)).await?;
                (depth, side) = (view.depth, "process");
            }
            checked("depth after puts and gets", depth, puts.done - gets.done)?;
            sample(run, &format!("both-put-{side}-{name}-{BOTH}"), &mut puts);
            sample(run, &format!("both-get-{side}-{name}-{BOTH}"), &mut gets);
        }
        Ok(())
    }

    fn put(&self, queue: &str, body: &Bytes) -> ProcessPut {
        ProcessPut {
            handle: self.handle.clone(),
            queue: host::name(queue),
            body: body.clone(),
        }
    }

    fn get(&self, queue: &str) -> ProcessGet {
        ProcessGet {
            handle: self.handle.clone(),
            queue: host::name(queue),
            is_patient: false,
        }
    }
}

/// Rate, median and p99 of a load.
fn sample(run: &mut Run, name: &str, load: &mut Load) {
    run.sample(name, load.rate(), "per second");
    run.sample(&format!("{name}.p50"), load.quantile(0.5), "ms");
    run.sample(&format!("{name}.p99"), load.quantile(0.99), "ms");
}

/// The work was really done.
fn checked(what: &str, found: u64, expected: u64) -> anyhow::Result<()> {
    anyhow::ensure!(found == expected, "{what}: {found}, expected {expected}");
    Ok(())
}

/// Gets one message over HTTP and acknowledges it.
struct HttpGet {
    client: Client,
    request: Vec<u8>,
    is_patient: bool,
}

impl HttpGet {
    async fn connect(address: SocketAddr, queue: &str) -> anyhow::Result<Self> {
        let path = format!("/v1/queues/{queue}/get");
        Ok(Self {
            client: Client::connect(address).await?,
            request: http::request("POST", &path, "application/json", b""),
            is_patient: false,
        })
    }

    /// Tries again where there is nothing now.
    fn patient(mut self) -> Self {
        self.is_patient = true;
        self
    }
}

impl Caller for HttpGet {
    async fn call(&mut self) -> anyhow::Result<Called> {
        match self.client.send(&self.request).await? {
            200 => {}
            204 if self.is_patient => return Ok(Called::Refused),
            204 => return Ok(Called::Over),
            429 => return Ok(Called::Refused),
            status => anyhow::bail!("a get was answered {status}"),
        }
        let lease = self.client.header("oncue-lease").context("no lease")?;
        let path = format!("/v1/leases/{lease}/ack");
        let ack = http::request("POST", &path, "application/json", b"");
        let status = self.client.send(&ack).await?;
        anyhow::ensure!(status == 204, "an ack was answered {status}");
        Ok(Called::Done)
    }
}

/// Puts one message in this process.
struct ProcessPut {
    handle: Handle,
    queue: QueueName,
    body: Bytes,
}

impl Caller for ProcessPut {
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

/// Gets one message in this process, reads its body, and acknowledges it.
struct ProcessGet {
    handle: Handle,
    queue: QueueName,
    is_patient: bool,
}

impl ProcessGet {
    fn patient(mut self) -> Self {
        self.is_patient = true;
        self
    }
}

impl Caller for ProcessGet {
    async fn call(&mut self) -> anyhow::Result<Called> {
        let request = GetRequest {
            queue: self.queue.clone(),
            wait: 0,
            max: 1,
            lease: DEFAULT_LEASE,
            id: None,
            correlation_id: None,
        };
        let leased = self.handle.get(request).await?;
        let Some(one) = leased.first() else {
            let again = if self.is_patient {
                Called::Refused
            } else {
                Called::Over
            };
            return Ok(again);
        };
        let body = self.handle.body(&one.message.body)?;
        anyhow::ensure!(!body.is_empty(), "a body is empty");
        self.handle.ack(one.token).await?;
        Ok(Called::Done)
    }
}

/// Appends one record.
struct LogPut {
    log: Appender,
    body: Bytes,
}

impl Caller for LogPut {
    async fn call(&mut self) -> anyhow::Result<Called> {
        self.log.append(self.body.clone()).await?;
        Ok(Called::Done)
    }
}
