//! The trigger monitor: a process of its own that reads the initiation queue over the API, one
//! trigger message at a time, and has the application started.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::oneshot;

use crate::http::{self, Client};
use crate::server::Process;

/// The first argument by which this program is a monitor: then the addresses of the API and of the
/// starts.
pub(crate) const MONITOR: &str = "classic-monitor";

/// The queue that it reads.
pub(super) const INITIATION_QUEUE: &str = "initiation";

/// A monitor that runs. Dropping it ends it when it is done with the message in its hand.
pub(crate) struct Monitor {
    process: Process,
}

impl Monitor {
    pub(super) fn start(api: SocketAddr, starts: SocketAddr) -> anyhow::Result<Self> {
        let child = Command::new(std::env::current_exe()?)
            .args([MONITOR, &api.to_string(), &starts.to_string()])
            .stdin(Stdio::piped())
            .spawn()
            .context("start the monitor")?;
        Ok(Self {
            process: Process(child),
        })
    }

    /// Fails when it has ended by itself.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        match self.process.0.try_wait()? {
            None => Ok(()),
            Some(status) => anyhow::bail!("the monitor has ended with {status}"),
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // The end of its input asks it to end.
        drop(self.process.0.stdin.take());
        let _ = self.process.0.wait();
    }
}

/// The monitor's own process.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let [api, starts] = arguments else {
        anyhow::bail!("the monitor takes two addresses");
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(watch(api.parse()?, starts.parse()?))
}

async fn watch(api: SocketAddr, starts: SocketAddr) -> anyhow::Result<()> {
    let path = format!("/v1/queues/{INITIATION_QUEUE}/get?wait=60s");
    let get = http::request("POST", &path, "application/json", b"");
    let mut getter = Client::connect(api).await?;
    let mut acknowledger = Client::connect(api).await?;
    let stream = TcpStream::connect(starts).await?;
    stream.set_nodelay(true)?;
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut end = input_ended();
    loop {
        let status = tokio::select! {
            status = getter.send(&get) => status?,
            // A message that was got meanwhile goes back with the connection.
            _ = &mut end => return Ok(()),
        };
        match status {
            200 => {}
            204 => continue,
            status => anyhow::bail!("a get was answered {status}"),
        }
        let lease = getter.header("oncue-lease").context("no lease")?;
        let path = format!("/v1/leases/{lease}/ack");
        let text = std::str::from_utf8(getter.body())?;
        let number = text
            .lines()
            .next()
            .context("an empty trigger message")?
            .to_owned();
        let ack = http::request("POST", &path, "application/json", b"");
        let (started, acked) = tokio::join!(
            start(&number, &mut reader, &mut writer),
            acknowledger.send(&ack)
        );
        started?;
        let status = acked?;
        anyhow::ensure!(status == 204, "an ack was answered {status}");
    }
}

/// Answered when this process's input ends.
fn input_ended() -> oneshot::Receiver<()> {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        let _ = sender.send(());
    });
    receiver
}

/// Has the application started.
async fn start(
    number: &str,
    reader: &mut BufReader<OwnedReadHalf>,
    writer: &mut OwnedWriteHalf,
) -> anyhow::Result<()> {
    writer.write_all(format!("{number}\n").as_bytes()).await?;
    let mut answer = String::new();
    reader.read_line(&mut answer).await?;
    anyhow::ensure!(answer == "started\n", "a start was answered {answer:?}");
    Ok(())
}
