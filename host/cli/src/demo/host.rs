//! The demo's host: the real `oncue serve` as a child process in a directory of its own.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::client::Client;
use crate::exit::{Exit, Failure};

/// How long the host may take until it is ready.
const START_TIME: Duration = Duration::from_secs(60);

/// How long it may take to end: its own deadline and a little more.
const STOP_TIME: Duration = Duration::from_secs(45);

/// How long a host may take to end by itself after a signal that may have reached it too.
const SIGNALLED_TIME: Duration = Duration::from_secs(2);

/// How often a child is looked at that should end.
const LOOK: Duration = Duration::from_millis(20);

/// Longest ready line, in bytes.
const MAX_LINE: u64 = 8 << 10;

/// What is shown of the log of a host that did not start, in lines.
const LOG_LINES: usize = 10;

/// Before the address in the ready line.
const READY: &str = "oncue: ready on ";

/// A running host. Dropping it ends the process.
pub(super) struct HostProcess {
    child: Child,
    url: String,
    log: PathBuf,
    /// Kept open: a host that prints into a closed pipe would see an error.
    _out: ChildStdoutThread,
}

type ChildStdoutThread = std::thread::JoinHandle<()>;

impl HostProcess {
    /// Starts a host in `home`, with `data` and `plugins` below it, and waits until it is ready.
    ///
    /// # Errors
    /// It could not be started, or ended, or was not ready in time; with the end of its log.
    pub(super) fn start(home: &Path, listen: &str) -> Result<Self, Failure> {
        let program = std::env::current_exe().context("find this program")?;
        let log = home.join("host.log");
        let mut command = Command::new(program);
        command
            .args([
                "serve",
                "--data-dir",
                "data",
                "--plugins-dir",
                "plugins",
                "--listen",
                listen,
            ])
            // Neither ./oncue.toml nor ONCUE_* of whoever runs the demo belong to it.
            .current_dir(home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).context("make the host's log")?);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ONCUE_") {
                command.env_remove(name);
            }
        }
        let mut child = command.spawn().context("start the host")?;
        let out = child.stdout.take().context("read the host's output")?;
        let (sender, receiver) = mpsc::sync_channel(1);
        let reading = std::thread::spawn(move || read_out(out, &sender));
        let mut host = Self {
            child,
            url: String::new(),
            log,
            _out: reading,
        };
        let line = receiver.recv_timeout(START_TIME).unwrap_or_default();
        let address = line
            .strip_prefix(READY)
            .and_then(|rest| rest.split_whitespace().next());
        match address {
            Some(address) => {
                host.url = address.to_owned();
                Ok(host)
            }
            None => Err(host.not_started()),
        }
    }

    /// Where it listens.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// A client of it.
    pub(super) fn client(&self) -> Result<Client, Failure> {
        Client::new(&self.url, Duration::from_secs(60))
    }

    fn not_started(&mut self) -> Failure {
        let _ = self.child.kill();
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
        let last = last.iter().map(|line| (*line).to_owned()).collect();
        let message = format!(
            "the demo's host did not start; its log \"{}\" ends:",
            self.log.display()
        );
        Failure::new(Exit::Failed, message).with_faults(last)
    }

    /// Whether it has ended by itself, and how.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it as an operator would, and waits for that.
    ///
    /// # Errors
    /// It did not end cleanly.
    pub(super) fn stop(mut self) -> Result<(), Failure> {
        self.end()
    }

    /// After a signal that ended the demo: from a terminal it went to the host as well, which ends
    /// by itself then, and would take another signal as the demand to end at once.
    ///
    /// # Errors
    /// It did not end cleanly.
    pub(super) fn stop_signalled(mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        while begun.elapsed() < SIGNALLED_TIME && !self.has_ended() {
            std::thread::sleep(LOOK);
        }
        self.end()
    }

    fn end(&mut self) -> Result<(), Failure> {
        let pid = rustix::process::Pid::from_child(&self.child);
        if !self.has_ended() {
            // It may end between the look and the signal; the wait below tells.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let begun = Instant::now();
        while begun.elapsed() < STOP_TIME {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    let message = format!("the demo's host ended with {status}");
                    return Err(Failure::new(Exit::Failed, message));
                }
                Ok(None) => std::thread::sleep(LOOK),
                Err(error) => {
                    return Err(anyhow::Error::from(error).context("end the host").into());
                }
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        Err(Failure::new(
            Exit::Failed,
            "the demo's host did not end and was killed",
        ))
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        // Only after a failure is it still running here; that failure is what the user hears of.
        let _ = self.end();
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
