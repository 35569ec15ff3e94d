//! The command line: every command and argument, with its help.
//!
//! Arguments are checked for form only (a name is a name, a time is a time); what they mean is up
//! to `commands` and to the host. Settings have flags here and everything else in `config`. The
//! list of commands is [`Command`]; each group has a file.

pub(crate) mod attributes;
pub(crate) mod authors;
pub(crate) mod check;
pub(crate) mod dead_letters;
pub(crate) mod definitions;
#[cfg(feature = "demo")]
pub(crate) mod demo;
pub(crate) mod dev;
pub(crate) mod files;
pub(crate) mod messages;
pub(crate) mod mqsc;
pub(crate) mod new;
pub(crate) mod operations;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod tips;
pub(crate) mod token;
pub(crate) mod top;
pub(crate) mod workshop;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use oncue_core::message::MessageId;
use oncue_core::names::{ProcessName, QueueName};
use oncue_core::quantity::parse_millis;

use crate::config::Flags;
use crate::render::Format;

const ABOUT: &str = "A durable message-queue manager that runs sandboxed WASM handlers on cue";

const LONG_ABOUT: &str = "\
A durable message-queue manager that runs sandboxed WASM handlers on cue.

Drop a component into the plugins directory of a running host, and it handles the messages of \
its queue: when a trigger fires, the queue manager itself starts the handler, if the resources \
are there.";

const EXAMPLES: &str = "\
Examples:
  oncue serve                           start a host here: ./data, ./plugins, 127.0.0.1:7373
  oncue put orders '{\"order\":\"o-1\"}'    put a message
  oncue get invoices --wait 10s         get one, print it, acknowledge it
  oncue explain orders                  why is the queue triggering, or why not?
  oncue tasks --failed                  what went wrong lately
  oncue dlq list                        messages that nobody could handle, and why

Settings come from flags, then ONCUE_* variables, then oncue.toml; see \"oncue config show\".

Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 refused, 5 unreachable.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "oncue",
    version,
    long_version = crate::build::LONG_VERSION.as_str(),
    about = ABOUT,
    long_about = LONG_ABOUT,
    after_long_help = EXAMPLES,
    propagate_version = true,
    arg_required_else_help = true,
    infer_subcommands = false,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub(crate) globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Args, Debug)]
pub(crate) struct Globals {
    /// The host to talk to [default: http://127.0.0.1:7373]
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help_heading = "Options of every command"
    )]
    url: Option<String>,
    /// How long to wait for an answer, such as 30s [default: 30s]
    #[arg(
        long,
        global = true,
        value_name = "TIME",
        help_heading = "Options of every command"
    )]
    timeout: Option<String>,
    /// A file with the token that the host asks for; the variable ONCUE_TOKEN wins [default: none]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Options of every command"
    )]
    token_file: Option<String>,
    /// Certificates in PEM that vouch for the host, instead of the system's [default: none]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Options of every command"
    )]
    ca_file: Option<String>,
    /// Read settings from this file [default: oncue.toml, if it is there]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Options of every command"
    )]
    pub(crate) config: Option<PathBuf>,
    /// What to print: tables for people, or the JSON of the HTTP API
    #[arg(
        short = 'o',
        long = "output",
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        help_heading = "Options of every command"
    )]
    pub(crate) format: Format,
    /// Say nothing on stderr but errors
    #[arg(short, long, global = true, help_heading = "Options of every command")]
    pub(crate) quiet: bool,
}

impl Globals {
    /// The settings among these options.
    pub(crate) fn flags(&self) -> Flags {
        let settings = [
            ("url", &self.url),
            ("timeout", &self.timeout),
            ("token-file", &self.token_file),
            ("ca-file", &self.ca_file),
        ];
        settings
            .into_iter()
            .filter_map(|(name, text)| Some((name, text.clone()?)))
            .collect()
    }
}

/// Every command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a host: queue manager, sandbox, plugins directory and HTTP API
    #[command(after_long_help = serve::EXAMPLES)]
    Serve(serve::ServeArgs),
    /// Build and serve a handler's project as it is written, and show what its handler does
    #[command(after_long_help = dev::EXAMPLES)]
    Dev(dev::DevArgs),
    /// Put messages to a queue
    Put(messages::PutArgs),
    /// Get messages from a queue, print and acknowledge them
    Get(messages::GetArgs),
    /// Look at the messages of a queue without getting them
    Browse(messages::BrowseArgs),
    /// Show, remove or release one message
    #[command(subcommand)]
    Message(messages::MessageCommand),
    /// Settle messages that were got with --keep
    #[command(subcommand)]
    Lease(messages::LeaseCommand),
    /// Put dead letters back to the queues they came from
    Redrive(messages::RedriveArgs),
    /// Look at dead letters by their reasons; put them back, keep a copy, discard them
    #[command(subcommand)]
    Dlq(dead_letters::DeadLetterCommand),
    /// Define, show and change queues
    #[command(subcommand)]
    Queue(definitions::QueueCommand),
    /// Define, show and change processes: what runs when a trigger fires
    #[command(subcommand)]
    Process(definitions::ProcessCommand),
    /// Write the definitions that operators have made, as a file
    Export(files::ExportArgs),
    /// Lay a file of definitions over the host, and show each change
    Apply(files::ApplyArgs),
    /// Do a script of IBM MQ: queues, processes, triggers
    Mqsc(mqsc::MqscArgs),
    /// Show plugins, check components, go back to an earlier version
    #[command(subcommand)]
    Plugin(operations::PluginCommand),
    /// Make a handler project from a template; no host is asked
    #[command(after_long_help = new::after_help())]
    New(new::NewArgs),
    /// Run a plugin once with no host, and show all that it does
    Run(Box<workshop::RunArgs>),
    /// Test a plugin with golden cases and injected faults; no host is asked
    Test(workshop::TestArgs),
    /// Turn the trigger of a queue on or off
    Trigger(operations::TriggerArgs),
    /// Pause the host, a queue or a process: running tasks end, no new ones start
    Pause(operations::PauseArgs),
    /// Resume the host, a queue or a process
    Resume(operations::PauseArgs),
    /// Say why a queue is triggering or not, condition by condition
    Explain(operations::ExplainArgs),
    /// List tasks, the newest first
    Tasks(operations::TasksArgs),
    /// Show one task, or make a golden case of its failure
    #[command(subcommand)]
    Task(operations::TaskCommand),
    /// Show what tasks wrote to their logs; -f goes on as tasks end
    Logs(operations::LogsArgs),
    /// Show the state of the host
    Status,
    /// Watch the host: queues, running tasks, what waits and why
    Top(top::TopArgs),
    /// Show what the host has reserved for tasks, and what is left
    Ledger,
    /// Answer a monitoring system: one line, and its own exit codes
    #[command(subcommand, after_long_help = check::CHECK)]
    Check(check::CheckCommand),
    /// Check this machine, the directories and the host; says what to do
    #[command(after_long_help = serve::DOCTOR)]
    Doctor(serve::DoctorArgs),
    /// List the alarms that are raised, each with what to do about it
    Alarms,
    /// Make, list and revoke the tokens of a data directory
    #[command(subcommand, after_long_help = token::EXAMPLES)]
    Token(token::TokenCommand),
    /// Show who changed what, and who was refused
    Audit(token::AuditArgs),
    /// Show the settings that hold, and where each comes from
    #[command(subcommand)]
    Config(serve::ConfigCommand),
    /// Write the WIT packages that handlers are built against
    Wit(authors::WitArgs),
    /// Print what a shell needs to complete commands
    Completions(shell::CompletionsArgs),
    /// Write man pages, one for each command
    Man(shell::ManArgs),
    /// Run the samples on a host of their own and show the triggers firing
    #[cfg(feature = "demo")]
    Demo(demo::DemoArgs),
}

/// Reads a queue's name.
pub(crate) fn queue_name(text: &str) -> Result<QueueName, String> {
    QueueName::new(text).map_err(|error| error.to_string())
}

/// Reads a process's name.
pub(crate) fn process_name(text: &str) -> Result<ProcessName, String> {
    ProcessName::new(text).map_err(|error| error.to_string())
}

/// Reads a message's id.
pub(crate) fn message_id(text: &str) -> Result<MessageId, String> {
    text.parse::<MessageId>().map_err(|error| error.to_string())
}

/// Reads a time in milliseconds.
pub(crate) fn millis(text: &str) -> Result<u64, String> {
    parse_millis(text).map_err(|error| error.to_string())
}

/// Reads `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod help_tests;
