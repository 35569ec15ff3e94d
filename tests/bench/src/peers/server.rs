//! Servers of others: started in folders of their own on free ports, ended with their value.

use std::ffi::OsStr;
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::server::{Process, START_TIME};

/// How often a server that starts is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Where programs are that no PATH names.
const MORE_PLACES: [&str; 5] = [
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/15/bin",
    "/usr/lib/rabbitmq/bin",
    "/usr/sbin",
];

/// A program, if it is installed.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = MORE_PLACES.iter().map(PathBuf::from);
    places
        .chain(std::env::split_paths(&path))
        .map(|place| place.join(program))
        .find(|file| file.is_file())
}

/// The first line that a program prints of its version.
pub(super) fn version(program: &Path, arguments: &[&str]) -> String {
    let answer = Command::new(program).args(arguments).output();
    let text = answer.map(|answer| answer.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().next().unwrap_or("unknown").trim().to_owned()
}

/// A port that nobody listens on.
pub(super) fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// A command that ends with this program, however that ends, in a group of its own.
pub(super) fn command(program: &Path, user: Option<&str>) -> Command {
    let mut command = match find("setpriv") {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "TERM"]);
            if let Some(user) = user {
                command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
            }
            command.arg("--").arg(program);
            command
        }
        None => Command::new(program),
    };
    command.stdin(Stdio::null()).process_group(0);
    command
}

/// A server that runs.
pub(super) struct Server {
    process: Process,
    end: &'static str,
}

impl Server {
    /// Starts a command and waits until its port takes connections.
    ///
    /// `end` is the signal by which it ends at once.
    pub(super) fn start(
        mut command: Command,
        home: &Path,
        port: u16,
        end: &'static str,
    ) -> anyhow::Result<Self> {
        let log = home.join("server.log");
        let file = File::create(&log)?;
        command.stdout(file.try_clone()?).stderr(file);
        let name = format!("{command:?}");
        let process = Process(command.spawn().with_context(|| format!("start {name}"))?);
        let mut server = Self { process, end };
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let ended = server.process.0.try_wait()?;
            if ended.is_some() || begun.elapsed() > START_TIME {
                let log = std::fs::read_to_string(&log).unwrap_or_default();
                anyhow::bail!("{name} did not start ({ended:?}): {log}");
            }
            std::thread::sleep(LOOK);
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let group = format!("-{}", self.process.id());
        // Servers may have processes of their own; all are in the group.
        signal(self.end, &group);
        self.process.wait();
        signal("-KILL", &group);
    }
}

/// Sends a signal to whoever of a group is left.
fn signal(signal: &str, group: &str) {
    let kill = Command::new("kill")
        .args([signal, "--", group])
        .stderr(Stdio::null())
        .status();
    // There may be nobody left.
    drop(kill);
}

/// Whether this program may become another user.
pub(super) fn is_root() -> bool {
    version(Path::new("/usr/bin/id"), &["-u"]) == "0"
}

/// Hands a folder to a user.
pub(super) fn give(folder: &Path, user: &str) -> anyhow::Result<()> {
    run(
        Path::new("/usr/bin/chown"),
        &["-R".as_ref(), user.as_ref(), folder.as_ref()],
    )?;
    // The folders above it are this program's; they must only be passed through.
    let parent = folder.parent().context("a folder in a folder")?;
    run(
        Path::new("/usr/bin/chmod"),
        &["711".as_ref(), parent.as_ref()],
    )
}

/// Runs a command to its end.
pub(super) fn run(program: &Path, arguments: &[&OsStr]) -> anyhow::Result<()> {
    let answer = Command::new(program).args(arguments).output();
    done(program, answer)
}

/// Fails with what a command printed, if it failed.
pub(super) fn done(
    program: &Path,
    answer: std::io::Result<std::process::Output>,
) -> anyhow::Result<()> {
    let answer = answer.with_context(|| format!("run {}", program.display()))?;
    let text = String::from_utf8_lossy(&answer.stderr);
    anyhow::ensure!(
        answer.status.success(),
        "{} failed: {text}",
        program.display()
    );
    Ok(())
}
