//! Compiling, and making components of core modules, apart from the host: in a child process of the
//! same binary, with bounded memory and time and at the lowest priority. A file that makes the
//! compiler crash, spin or fill memory costs the child its life and the host a line in its list.
//!
//! The child gets the bytes on stdin, so that what is compiled is what was hashed, and writes to
//! stdout, which is a file of the host's. Its exit code says how it ended, its last line on stderr
//! why. The protocol is private to one build: the child is told which engine is wanted and refuses
//! when it is another.
//!
//! Memory is bounded by `RLIMIT_DATA`, which counts what the child can write to. `RLIMIT_AS` would
//! count address space that is only reserved, as allocators and engines do by the gigabyte, and
//! `RLIMIT_RSS` is not enforced by Linux.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use oncue_core::code::Code;
use oncue_core::quantity::{format_bytes, format_millis};

use super::bounds::{COMPILE_LOOK, MAX_COMPILE_WORDS, MAX_COMPILED_BYTES, MAX_COMPONENT_BYTES};
use super::{adapt, seam};

/// The hidden subcommand by which the binary becomes the child.
pub const SUBCOMMAND: &str = "__compile";

/// The child compiled.
const DONE: u8 = 0;
/// The component is refused, for the reason on stderr.
const REFUSED: u8 = 10;
/// The child is of another build than the host, or could not work.
const UNABLE: u8 = 11;

/// This process's own file: right even when the file was replaced since the start.
const OWN_EXECUTABLE: &str = "/proc/self/exe";

/// How to start the child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileCommand {
    /// The program.
    pub program: PathBuf,
    /// What comes before the arguments of the protocol.
    pub arguments: Vec<OsString>,
}

impl CompileCommand {
    /// This very binary, with the hidden subcommand.
    ///
    /// # Errors
    /// When the system does not tell where it is.
    pub fn this_binary() -> io::Result<Self> {
        let program = if Path::new(OWN_EXECUTABLE).exists() {
            PathBuf::from(OWN_EXECUTABLE)
        } else {
            std::env::current_exe()?
        };
        Ok(Self {
            program,
            arguments: vec![SUBCOMMAND.into()],
        })
    }
}

/// What the child is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Machine code from a component.
    Compile,
    /// A component from a core module.
    Adapt,
}

impl Work {
    const ALL: [Self; 2] = [Self::Compile, Self::Adapt];

    /// Its name between the host and the child.
    fn word(self) -> &'static str {
        match self {
            Self::Compile => "compile",
            Self::Adapt => "adapt",
        }
    }

    /// What is done to the bytes then, in a sentence.
    fn done(self) -> &'static str {
        match self {
            Self::Compile => "compiled",
            Self::Adapt => "made a component",
        }
    }

    fn perform(self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Self::Compile => seam::precompile(bytes),
            Self::Adapt => adapt::adapt(bytes),
        }
    }
}

/// Where components are compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// In a child process, as a server should.
    Child(CompileCommand),
    /// In this process, unbounded: for tests and tools whose input is trusted.
    InProcess,
}

/// What one compilation may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileBounds {
    /// Time from start to end.
    pub timeout: Duration,
    /// Memory of the child, bytes.
    pub memory: u64,
}

/// Why nothing was compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CompileError {
    /// The component cannot be compiled, or not within the bounds: the same bytes fail again.
    #[error("{0}")]
    Refused(String),
    /// The host could not do it now.
    #[error("{0}")]
    Host(String),
    /// The host is stopping.
    #[error("the host is stopping")]
    Cancelled,
}

impl Compiler {
    /// Compiles a component for the engine into a file, which is empty before.
    ///
    /// # Errors
    /// [`CompileError`]; its sentences begin with what follows the file's name.
    pub(crate) fn compile(
        &self,
        component: &[u8],
        engine: &str,
        output: &mut File,
        bounds: CompileBounds,
        cancelled: &AtomicBool,
    ) -> Result<(), CompileError> {
        self.run(Work::Compile, component, engine, output, bounds, cancelled)
    }

    /// Makes a component of a core module into a file, which is empty before.
    ///
    /// # Errors
    /// [`CompileError`]; its sentences begin with what follows the file's name.
    pub(crate) fn adapt(
        &self,
        module: &[u8],
        engine: &str,
        output: &mut File,
        bounds: CompileBounds,
        cancelled: &AtomicBool,
    ) -> Result<(), CompileError> {
        self.run(Work::Adapt, module, engine, output, bounds, cancelled)
    }

    fn run(
        &self,
        work: Work,
        bytes: &[u8],
        engine: &str,
        output: &mut File,
        bounds: CompileBounds,
        cancelled: &AtomicBool,
    ) -> Result<(), CompileError> {
        match self {
            Self::InProcess => {
                let made = work.perform(bytes).map_err(CompileError::Refused)?;
                let written = output.write_all(&made).and_then(|()| output.rewind());
                written.map_err(|error| full(work, &error))
            }
            Self::Child(command) => {
                let mut child = start(command, work, engine, output, bounds)?;
                let ended = attend(&mut child, work, bytes, bounds.timeout, cancelled);
                judge(ended?, work, output, bounds)
            }
        }
    }
}

fn full(work: Work, error: &io::Error) -> CompileError {
    unable(work, format_args!("writing it failed ({error})"))
}

/// The host's own fault.
fn unable(work: Work, why: impl std::fmt::Display) -> CompileError {
    CompileError::Host(format!("it could not be {}: {why}", work.done()))
}

fn start(
    command: &CompileCommand,
    work: Work,
    engine: &str,
    output: &File,
    bounds: CompileBounds,
) -> Result<Child, CompileError> {
    let host = |error: io::Error| {
        let program = command.program.display();
        unable(work, format_args!("\"{program}\" did not start ({error})"))
    };
    let output = output.try_clone().map_err(host)?;
    Command::new(&command.program)
        .args(&command.arguments)
        .arg(work.word())
        .arg(engine)
        .arg(bounds.memory.to_string())
        .arg(bounds.timeout.as_secs().max(1).to_string())
        // Nothing of the host's environment is a compiler's business.
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(host)
}

/// How a child ended.
struct Ended {
    status: Option<ExitStatus>,
    /// The last words on stderr.
    words: String,
}

/// Feeds the child, and waits for its end, its time or the host's stop, whichever is first.
fn attend(
    child: &mut Child,
    work: Work,
    bytes: &[u8],
    timeout: Duration,
    cancelled: &AtomicBool,
) -> Result<Ended, CompileError> {
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let started = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            // A child that has ended does not read to the end; its status tells why.
            stdin.map(|mut stdin| stdin.write_all(bytes))
        });
        let (say, words) = mpsc::sync_channel(1);
        scope.spawn(move || {
            let _ = say.send(stderr.map(read_words).unwrap_or_default());
        });
        let mut last_words = None;
        loop {
            match words.recv_timeout(COMPILE_LOOK) {
                Ok(text) => last_words = Some(text),
                Err(RecvTimeoutError::Timeout) => {}
                // The words were had already: wait for the end itself.
                Err(RecvTimeoutError::Disconnected) => thread::sleep(COMPILE_LOOK),
            }
            let status = child
                .try_wait()
                .map_err(|error| unable(work, format_args!("its child is lost ({error})")));
            match status {
                Ok(None) if cancelled.load(Ordering::Relaxed) => {
                    end(child);
                    return Err(CompileError::Cancelled);
                }
                Ok(None) if started.elapsed() >= timeout => {
                    end(child);
                    return Ok(Ended {
                        status: None,
                        words: String::new(),
                    });
                }
                Ok(None) => {}
                Ok(Some(status)) => {
                    let words = last_words.or_else(|| words.recv().ok()).unwrap_or_default();
                    return Ok(Ended {
                        status: Some(status),
                        words,
                    });
                }
                Err(error) => {
                    end(child);
                    return Err(error);
                }
            }
        }
    })
}

/// Kills a child and waits for it, so that its pipes close and no zombie stays.
fn end(child: &mut Child) {
    // Both fail only when it has ended already.
    let _ = child.kill();
    let _ = child.wait();
}

fn read_words(stderr: impl Read) -> String {
    let mut words = Vec::new();
    let mut stderr = stderr;
    // What is past the bound is still read, so that the child does not block on it.
    let _ = (&mut stderr)
        .take(MAX_COMPILE_WORDS)
        .read_to_end(&mut words);
    let _ = io::copy(&mut stderr, &mut io::sink());
    String::from_utf8_lossy(&words).into_owned()
}

fn judge(
    ended: Ended,
    work: Work,
    output: &mut File,
    bounds: CompileBounds,
) -> Result<(), CompileError> {
    let done = work.done();
    let words = ended
        .words
        .lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty());
    let words = words.unwrap_or_default();
    let code = Code::CompileFailed;
    let Some(status) = ended.status else {
        let timeout = format_millis(u64::try_from(bounds.timeout.as_millis()).unwrap_or(u64::MAX));
        return Err(CompileError::Refused(format!(
            "it was not {done} within {timeout}; make it smaller or raise the bound [{code}]"
        )));
    };
    match status.code().map(u8::try_from) {
        Some(Ok(DONE)) => {
            let length = output.metadata().map_err(|error| full(work, &error))?.len();
            if length == 0 {
                return Err(unable(work, "its child wrote nothing"));
            }
            output.rewind().map_err(|error| full(work, &error))
        }
        Some(Ok(REFUSED)) => Err(CompileError::Refused(words.to_owned())),
        Some(Ok(UNABLE)) => Err(unable(work, words)),
        // The allocator's last words; the process aborts after them.
        _ if ended.words.contains("memory allocation of") => {
            let memory = format_bytes(bounds.memory);
            Err(CompileError::Refused(format!(
                "it needs more than {memory} to be {done}; make it smaller or raise the bound \
                 [{code}]"
            )))
        }
        _ => Err(CompileError::Refused(format!(
            "it made its compiler end with {status}: {words} [{code}]"
        ))),
    }
}

/// The whole life of the child: the CLI calls this for [`SUBCOMMAND`] with the arguments after it,
/// and exits with what it answers.
#[must_use]
pub fn compile_child(arguments: &[String]) -> u8 {
    match work_on_stdin(arguments) {
        Ok(()) => DONE,
        Err((code, words)) => {
            // One line: the host shows the last one.
            let words = words.replace('\n', " ");
            let _ = writeln!(io::stderr(), "{words}");
            code
        }
    }
}

fn work_on_stdin(arguments: &[String]) -> Result<(), (u8, String)> {
    let unable = |words: String| (UNABLE, words);
    let own = || unable(format!("\"{SUBCOMMAND}\" is for the host itself"));
    let [work, engine, memory, seconds] = arguments else {
        return Err(own());
    };
    let mut works = Work::ALL.into_iter();
    let work = works.find(|it| it.word() == work).ok_or_else(own)?;
    let number = |text: &String| {
        text.parse::<u64>()
            .map_err(|_| unable(format!("\"{text}\" is not a number")))
    };
    confine(number(memory)?, number(seconds)?)
        .map_err(|error| unable(format!("it cannot be confined ({error})")))?;
    let own = seam::compatibility().map_err(|error| unable(error.to_string()))?;
    if *engine != own {
        return Err(unable(
            "the program was replaced by another version; restart it".to_owned(),
        ));
    }
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(MAX_COMPONENT_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| unable(format!("reading it failed ({error})")))?;
    let made = work.perform(&bytes).map_err(|words| (REFUSED, words))?;
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(&made)
        .and_then(|()| stdout.flush())
        .map_err(|error| unable(format!("writing it failed ({error})")))
}

/// Bounds this process, for good.
fn confine(memory: u64, seconds: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, nice, setrlimit};

    let limit = |most: u64| Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(Resource::Data, limit(memory))?;
    setrlimit(Resource::Fsize, limit(MAX_COMPILED_BYTES))?;
    // Processor time, of all threads: only against a child whose host died.
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    setrlimit(Resource::Cpu, limit(seconds.saturating_mul(cores)))?;
    setrlimit(Resource::Core, limit(0))?;
    // Tasks go first: the lowest priority there is.
    nice(19)?;
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

/// A flag that ends compilations.
pub(crate) type Cancelled = Arc<AtomicBool>;

#[cfg(test)]
#[path = "compile_tests.rs"]
mod tests;
