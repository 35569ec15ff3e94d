//! A command of the project's: a build, or a run of its cases. It has a process group of its own,
//! so that all of it ends with `oncue dev`; what it prints goes to stderr as it comes.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// How long it may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// A running command. Dropping it ends it, with all that it started.
pub(super) struct Running {
    /// `None` once it has ended: its number may be another's by then.
    child: Arc<Mutex<Option<Child>>>,
}

/// How a command ended.
pub(super) type Ended = Result<ExitStatus, String>;

impl Running {
    /// Runs a shell command in a folder.
    pub(super) fn shell(
        command: &str,
        folder: &Path,
        tell: impl FnOnce(Ended, Duration) + Send + 'static,
    ) -> io::Result<Self> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command);
        Self::start(shell, folder, tell)
    }

    /// Runs a command in a folder. How it ended is told on a thread of its own.
    pub(super) fn start(
        mut command: Command,
        folder: &Path,
        tell: impl FnOnce(Ended, Duration) + Send + 'static,
    ) -> io::Result<Self> {
        let begun = Instant::now();
        let child = command
            .current_dir(folder)
            .env("PATH", path())
            .stdin(Stdio::null())
            .stdout(Stdio::from(io::stderr()))
            .stderr(Stdio::inherit())
            .process_group(0)
            .spawn()?;
        let child = Arc::new(Mutex::new(Some(child)));
        let running = Self {
            child: Arc::clone(&child),
        };
        std::thread::Builder::new()
            .name("oncue-dev-child".to_owned())
            .spawn(move || {
                if let Some(ended) = wait(&child) {
                    tell(ended, begun.elapsed());
                }
            })?;
        Ok(running)
    }
}

/// Waits for the end; `None` when somebody else has ended it.
fn wait(child: &Mutex<Option<Child>>) -> Option<Ended> {
    loop {
        {
            let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
            let running = child.as_mut()?;
            let group = Pid::from_child(running);
            let ended = match running.try_wait() {
                Ok(None) => None,
                Ok(Some(status)) => Some(Ok(status)),
                Err(error) => Some(Err(error.to_string())),
            };
            if ended.is_some() {
                // What it left in the background would pile up, build after build.
                let _ = kill_process_group(group, Signal::KILL);
                *child = None;
                return ended;
            }
        }
        std::thread::sleep(LOOK);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let child = self
            .child
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(mut child) = child else { return };
        let group = Pid::from_child(&child);
        // It may end between the look and the signal.
        let _ = kill_process_group(group, Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK);
        }
        // Also what outlives the shell itself.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait();
    }
}

/// The environment's `PATH` with this program's folder before it.
fn path() -> OsString {
    let own = std::env::current_exe();
    let folder = own.ok().and_then(|own| own.parent().map(Path::to_path_buf));
    let known = std::env::var_os("PATH").unwrap_or_default();
    let all = folder.into_iter().chain(std::env::split_paths(&known));
    // A folder whose name has a colon cannot stand there.
    std::env::join_paths(all).unwrap_or(known)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Long enough for any machine; nothing waits for it when all is well.
    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn the_end_of_a_command_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let (say, heard) = mpsc::sync_channel(1);
        let running = Running::shell("touch made; exit 3", folder.path(), move |ended, _| {
            let _ = say.send(ended);
        });
        let _running = running.expect("it runs");
        let ended = heard.recv_timeout(PATIENCE).expect("an end");
        assert_eq!(ended.expect("a status").code(), Some(3));
        assert!(folder.path().join("made").exists());
    }

    #[test]
    fn what_a_command_left_in_the_background_ends_when_it_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let (say, heard) = mpsc::sync_channel(1);
        let line = "sleep 1000 >/dev/null 2>&1 & echo $! > pid";
        let running = Running::shell(line, folder.path(), move |ended, _| {
            let _ = say.send(ended);
        });
        let _running = running.expect("it runs");
        let ended = heard.recv_timeout(PATIENCE).expect("an end");
        assert!(ended.expect("a status").success());
        let pid = std::fs::read_to_string(folder.path().join("pid")).expect("the number");
        let begun = Instant::now();
        while runs(pid.trim()) && begun.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        assert!(!runs(pid.trim()));
    }

    /// Whether a process runs; one that has ended and waits to be read by its parent does not.
    fn runs(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
        state.is_some_and(|state| !state.starts_with('Z'))
    }

    #[test]
    fn all_that_a_command_started_ends_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (say, heard) = mpsc::sync_channel(1);
        let running = Running::shell(
            "sleep 1000 & echo $! > part && mv part pid; wait",
            folder.path(),
            move |ended, _| {
                let _ = say.send(ended);
            },
        );
        let running = running.expect("it runs");
        let pid = folder.path().join("pid");
        let begun = Instant::now();
        while !pid.exists() && begun.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        let pid = std::fs::read_to_string(&pid).expect("the number of the inner process");
        assert!(runs(pid.trim()));
        drop(running);
        while runs(pid.trim()) && begun.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        assert!(!runs(pid.trim()));
        // Nobody tells of an end that was asked for.
        assert!(heard.recv_timeout(PATIENCE).is_err());
    }
}
