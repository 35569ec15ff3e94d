//! A host in a process of its own: this program again, as `oncue serve`. And what processes cost.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// How long a process may take until it is ready, and to end.
pub(crate) const START_TIME: Duration = Duration::from_secs(60);
const STOP_TIME: Duration = Duration::from_secs(20);

/// How often a process that should end is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Before the address in the ready line, and the line's greatest length in bytes.
const READY: &str = "oncue: ready on http://";
const MAX_LINE: u64 = 8 << 10;

/// A process that is ended with its value.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Ends it as an operator would, and by force when that takes too long.
    pub(crate) fn end(&mut self) {
        let asked = self.0.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &asked]).status();
        self.wait();
    }

    /// Waits until it has ended, and ends it by force when that takes too long.
    pub(crate) fn wait(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < STOP_TIME {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

/// A running host.
pub(crate) struct Server {
    process: Process,
    address: SocketAddr,
}

impl Server {
    /// Starts a host in `home` on a free port, and waits until it is ready.
    pub(crate) fn start(home: &Path, more: &[&str]) -> anyhow::Result<Self> {
        let log = home.join("host.log");
        let mut command = Command::new(std::env::current_exe().context("find this program")?);
        command
            .args([
                "oncue",
                "serve",
                "--data-dir",
                "data",
                "--plugins-dir",
                "plugins",
            ])
            .args(["--listen", "127.0.0.1:0", "--log", "warn"])
            .args(more)
            .current_dir(home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).context("make the host's log")?);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ONCUE_") {
                command.env_remove(name);
            }
        }
        let mut process = Process(command.spawn().context("start the host")?);
        let out = process.0.stdout.take().context("read the host's output")?;
        let (sender, receiver) = mpsc::sync_channel(1);
        std::thread::spawn(move || read_out(out, &sender));
        let line = receiver.recv_timeout(START_TIME).unwrap_or_default();
        let address = line
            .strip_prefix(READY)
            .and_then(|rest| rest.split_whitespace().next())
            .and_then(|address| address.parse().ok());
        let Some(address) = address else {
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            anyhow::bail!("the host did not start: {log}");
        };
        Ok(Self { process, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

/// Hands the first line over, then reads on so that the pipe stays open.
fn read_out(out: ChildStdout, first: &mpsc::SyncSender<String>) {
    let mut reader = BufReader::new(out);
    let mut line = String::new();
    if reader.by_ref().take(MAX_LINE).read_line(&mut line).is_ok() {
        // Whoever waited may have given up.
        let _ = first.send(line);
    }
    let _ = std::io::copy(&mut reader, &mut std::io::sink());
}

/// Seconds of processor time that a process has used so far, all its threads together; 0 when the
/// system does not tell.
pub(crate) fn processor_seconds(process: u32) -> f64 {
    /// Ticks a second in `/proc`, by the kernel's interface.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may hold anything.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = |place: usize| -> f64 {
        let field = fields.split_whitespace().nth(place);
        field.and_then(|field| field.parse().ok()).unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / TICKS
}
