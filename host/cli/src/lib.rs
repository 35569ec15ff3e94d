//! The oncue command: arguments, commands, rendering, exit codes.
//!
//! Most commands are clients of `/v1` and do nothing that a program could not do over HTTP. Only
//! `serve`, `run` and `test` open a store and run plugins, and only the commands for authors
//! (`plugin inspect`, `check`, `componentize`, `pack`) look at components by themselves. This crate
//! decides nothing about messages or triggers.
//!
//! | Module | What |
//! |---|---|
//! | `args` | every command and argument with its help |
//! | `build` | what the program was built from |
//! | `commands` | what each command asks and shows, a file for each group |
//! | `client` | one request, one answer, refusals as failures |
//! | `render` | tables, JSON, untrusted text; stdout and stderr |
//! | `config` | settings and their origins |
//! | `exit` | exit codes, and the one printer of errors |
//! | `offline` | `plugin inspect` and `plugin check` |
//! | `templates` | the projects that `oncue new` makes |
//! | `project` | `oncue-project.toml` |
//! | `serve` | the host, from its parts |
//! | `dev` | a project, built and served as it is written |
//! | `wit` | the WIT packages inside the binary |
//! | `workshop` | `run` and `test`: plugins at work with no host |
//! | `demo` | the samples on a host of their own (feature `demo`) |

mod args;
mod build;
mod client;
mod commands;
mod config;
#[cfg(feature = "demo")]
mod demo;
mod dev;
mod exit;
mod offline;
mod project;
mod render;
mod serve;
mod templates;
mod wit;
mod workshop;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use oncue_runtime::plugin::{SUBCOMMAND, compile_child};

use args::{Cli, Command};
use exit::{Exit, Failure};
use render::text::escape_line;

/// A sample plugin that the demo runs.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its component.
    pub component: PathBuf,
    /// Its manifest, if it has one.
    pub manifest: Option<PathBuf>,
}

/// The samples that the demo runs, built and found by whoever calls [`run`].
#[derive(Clone, Debug)]
pub struct Samples {
    /// Routes orders by their kind: queue `orders` to `invoices` and `audit.KIND`.
    pub route_orders: Sample,
    /// Adds each order up: queue `running-total` to `totals`.
    pub running_total: Sample,
}

/// Runs the command line of this process. `samples` is what `oncue demo` runs; without them it is
/// refused.
#[must_use]
pub fn run(samples: Option<Samples>) -> ExitCode {
    run_line(std::env::args_os().collect(), samples)
}

/// Runs a command line, its first argument being the name of the program. For programs that hold
/// the whole host in themselves, as the benchmarks do.
#[must_use]
pub fn run_line(line: Vec<OsString>, samples: Option<Samples>) -> ExitCode {
    // The host runs itself as its compiler. Not a command: nobody else can use it.
    let arguments: Vec<String> = line
        .iter()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    if let Some((SUBCOMMAND, rest)) = arguments
        .split_first()
        .map(|(first, rest)| (first.as_str(), rest))
    {
        return compile_child(rest).into();
    }
    let is_check = arguments.first().is_some_and(|first| first == "check");
    let cli = match Cli::try_parse_from(line) {
        Ok(cli) => cli,
        // Monitoring takes the usual code of wrong usage for an alarm.
        Err(answer) if is_check && answer.use_stderr() => {
            let _ = answer.print();
            return ExitCode::from(commands::check::UNKNOWN);
        }
        Err(answer) => return parsed_to_end(&answer, &arguments),
    };
    match dispatch(&cli, samples) {
        Ok(()) => Exit::Done.into(),
        Err(failure) => {
            failure.report(io::stderr());
            if is_check && !failure.message.is_empty() {
                return ExitCode::from(commands::check::UNKNOWN);
            }
            failure.exit.into()
        }
    }
}

/// Help and version are answers, not errors; everything else is wrong usage.
fn parsed_to_end(answer: &clap::Error, arguments: &[String]) -> ExitCode {
    // A closed pipe is no error here either.
    let _ = answer.print();
    if let Some(meant) = args::tips::meant(arguments).filter(|_| answer.use_stderr()) {
        let _ = writeln!(
            io::stderr(),
            "\n  tip: did you mean \"{}\"?",
            escape_line(&meant)
        );
    }
    let exit = if answer.use_stderr() {
        Exit::Usage
    } else {
        Exit::Done
    };
    exit.into()
}

fn dispatch(cli: &Cli, samples: Option<Samples>) -> Result<(), Failure> {
    match &cli.command {
        Command::Serve(args) => serve::run(&cli.globals, args),
        Command::Dev(args) => dev::run(&cli.globals, args),
        #[cfg(feature = "demo")]
        Command::Demo(args) => demo::run(&cli.globals, args, samples),
        _ => {
            drop(samples);
            commands::run(cli)
        }
    }
}
