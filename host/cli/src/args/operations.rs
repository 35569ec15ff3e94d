//! Arguments of commands that operate a host: triggers, tasks, plugins.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use oncue_core::message::MessageId;
use oncue_core::names::{ProcessName, QueueName};

use super::authors::{ComponentizeArgs, PackArgs};
use super::{message_id, process_name, queue_name};

const EXPLAIN: &str = "\
Example:
  oncue explain orders

The sentence on top is the verdict. Below it stands each condition of the trigger rule with its \
present value and where the value comes from; the one that holds the queue is marked.";

const TASKS: &str = "\
Examples:
  oncue tasks --queue orders
  oncue tasks --failed --max 20
  oncue tasks --outcome out-of-fuel -o json";

const LOGS: &str = "\
Examples:
  oncue logs                            what the last tasks wrote to their logs
  oncue logs -f --plugin route-orders   and what tasks write from now on, as they end
  oncue logs --failed --max 5 -o json

The host keeps the end of each task's log (the process's \"log-limit\"), not all of it. With -o \
json each task's record is a line.";

const EXPORT: &str = "\
Examples:
  oncue task export 17
  oncue test route-orders.wasm --case cases/task-17

The host keeps the last failures in memory: what the handler had in hand, the state it read, what \
it had put. The case is a folder, task-ID, with input.json and expected.json; failure.json tells \
what happened, with the puts that were undone. What a case cannot hold is said as a note.";

/// What to do with plugins.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List all plugins of the host with their state
    List,
    /// Show a plugin of the host
    Show(PluginArg),
    /// Say what a component exports, imports and needs; no host is asked
    Inspect(InspectArgs),
    /// Go back to the last good version, until the file changes
    Rollback(PluginArg),
    /// Check components and manifests as a host would at load; no host is asked
    Check(CheckArgs),
    /// Make a component of a core module; no host is asked
    Componentize(ComponentizeArgs),
    /// Embed the manifest in the component, so that the plugin is one file; no host is asked
    Pack(PackArgs),
}

/// A plugin.
#[derive(Args, Debug)]
pub(crate) struct PluginArg {
    /// The plugin's name
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,
}

/// Arguments of `plugin inspect`.
#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    /// The component's file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Arguments of `plugin check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Components (NAME.wasm, with NAME.toml beside it if there is one), or directories of them
    #[arg(value_name = "FILE", required = true)]
    pub(crate) file: Vec<PathBuf>,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    /// The trigger may fire.
    On,
    /// Messages wait.
    Off,
}

/// Arguments of `trigger`.
#[derive(Args, Debug)]
pub(crate) struct TriggerArgs {
    /// Whether the trigger may fire
    #[arg(value_name = "on|off", value_enum, hide_possible_values = true)]
    pub(crate) state: OnOff,
    /// The queue's name
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: QueueName,
}

/// Arguments of `pause` and `resume`.
#[derive(Args, Debug)]
pub(crate) struct PauseArgs {
    /// Only this queue
    #[arg(long, value_name = "QUEUE", value_parser = queue_name, conflicts_with = "process")]
    pub(crate) queue: Option<QueueName>,
    /// Only this process
    #[arg(long, value_name = "PROCESS", value_parser = process_name)]
    pub(crate) process: Option<ProcessName>,
}

/// Arguments of `explain`.
#[derive(Args, Debug)]
#[command(after_long_help = EXPLAIN)]
pub(crate) struct ExplainArgs {
    /// The queue's name
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: QueueName,
}

/// Arguments of `tasks`.
#[derive(Args, Debug)]
#[command(after_long_help = TASKS)]
pub(crate) struct TasksArgs {
    /// Only tasks of this queue
    #[arg(long, value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: Option<QueueName>,
    /// Only tasks that ended so, such as trapped
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) outcome: Option<String>,
    /// Only tasks that failed
    #[arg(long)]
    pub(crate) failed: bool,
    /// Only tasks older than this one
    #[arg(long, value_name = "TASK")]
    pub(crate) before: Option<String>,
    /// Up to so many
    #[arg(long, value_name = "NUMBER", default_value_t = 50,
        value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) max: u32,
}

/// Arguments of `logs`.
#[derive(Args, Debug)]
#[command(after_long_help = LOGS)]
pub(crate) struct LogsArgs {
    /// Go on with tasks as they end, until Ctrl-C
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only tasks of this queue
    #[arg(long, value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: Option<QueueName>,
    /// Only tasks of this plugin
    #[arg(long, value_name = "PLUGIN")]
    pub(crate) plugin: Option<String>,
    /// Only tasks that failed
    #[arg(long)]
    pub(crate) failed: bool,
    /// Begin with up to so many tasks that have ended
    #[arg(long, value_name = "NUMBER", default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub(crate) max: u32,
}

/// What to do with a task.
#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Show a task: outcome, detail, steps, messages, cost, log tail, backtrace
    Show(TaskArg),
    /// Make a golden case of a failed task: its message, the state it read, how it ended
    Export(ExportArgs),
}

/// Arguments of `task export`.
#[derive(Args, Debug)]
#[command(after_long_help = EXPORT)]
pub(crate) struct ExportArgs {
    /// The task's id
    #[arg(value_name = "ID")]
    pub(crate) task: String,
    /// Its failure on this message [default: the last one]
    #[arg(long, value_name = "MESSAGE", value_parser = message_id)]
    pub(crate) message: Option<MessageId>,
    /// Make the case's folder in this directory
    #[arg(short = 'd', long, value_name = "DIR", default_value = "cases")]
    pub(crate) directory: PathBuf,
}

/// A task.
#[derive(Args, Debug)]
pub(crate) struct TaskArg {
    /// The task's id
    #[arg(value_name = "ID")]
    pub(crate) task: String,
}
