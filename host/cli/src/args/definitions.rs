//! Arguments of `queue` and `process`.

use clap::{Args, Subcommand, ValueEnum};
use oncue_core::names::{ProcessName, QueueName};

use super::attributes::{Attributes, OfProcess, OfQueue};
use super::{process_name, queue_name};

const LIST_QUEUES: &str = "\
Examples:
  oncue queue list
  oncue queue list --hide-empty --sort oldest-age --max 20
  oncue queue list --search audit -o json

The host gives a list page by page; without --max all pages are read.";

const DEFINE_QUEUE: &str = "\
Examples:
  oncue queue define orders
  oncue queue define orders trigger=depth trigger-depth=100 process=route-orders
  oncue queue define orders --max-depth 5000 --backout-queue orders.failed

Defining a queue again with the same attributes changes nothing.";

const ALTER_QUEUE: &str = "\
Examples:
  oncue queue alter orders max-tasks=4
  oncue queue alter orders --reset max-tasks      the plugin's value shows again";

const DEFINE_PROCESS: &str = "\
Examples:
  oncue process define route-orders component=route-orders.wasm fuel='10 G'
  oncue process define route-orders --grants.put 'invoices,audit.*' config=region=eu

The attributes \"config\" and \"output\" are given as NAME=VALUE only.";

const ALTER_PROCESS: &str = "\
Examples:
  oncue process alter route-orders memory='128 MiB'
  oncue process alter route-orders --reset memory   the plugin's value shows again

The attributes \"config\" and \"output\" are given as NAME=VALUE only.";

/// What to do with queues.
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List queues with their depth and state
    #[command(after_long_help = LIST_QUEUES)]
    List(ListQueuesArgs),
    /// Show a queue: its state, and each attribute with its origin
    Show(QueueArg),
    /// Define a queue, or lay attributes over its definition
    #[command(after_long_help = DEFINE_QUEUE)]
    Define(DefineQueueArgs),
    /// Change attributes of a queue that is defined
    #[command(after_long_help = ALTER_QUEUE)]
    Alter(AlterQueueArgs),
    /// Delete a queue; one that holds messages only with --force
    Delete(DeleteQueueArgs),
    /// Remove all messages of a queue
    Clear(ClearQueueArgs),
}

/// Arguments of `queue list`.
#[derive(Args, Debug)]
pub(crate) struct ListQueuesArgs {
    /// Only those whose name contains this text, in capitals or not
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// Only those that hold messages
    #[arg(long)]
    pub(crate) hide_empty: bool,
    /// What they are sorted by
    #[arg(long, value_enum, default_value_t, value_name = "WORD")]
    pub(crate) sort: QueueSort,
    /// In which order; names ascend, numbers descend if it is left out
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) order: Option<Order>,
    /// At most so many; all if it is left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: Option<u32>,
}

/// By what a list of queues is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum QueueSort {
    /// By name
    #[default]
    Name,
    /// By depth
    Depth,
    /// By the age of the oldest message
    OldestAge,
    /// By tasks in process
    Running,
}

impl QueueSort {
    /// The word of the API.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Depth => "depth",
            Self::OldestAge => "oldest-age",
            Self::Running => "running",
        }
    }
}

/// In which order a list is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// The least first
    Ascending,
    /// The greatest first
    Descending,
}

impl Order {
    /// The word of the API.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ascending => "ascending",
            Self::Descending => "descending",
        }
    }
}

/// A queue.
#[derive(Args, Debug)]
pub(crate) struct QueueArg {
    /// The queue's name
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: QueueName,
}

/// Arguments of `queue define`.
#[derive(Args, Debug)]
pub(crate) struct DefineQueueArgs {
    /// The queue's name
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: QueueName,
    /// Its attributes.
    #[command(flatten)]
    pub(crate) attributes: Attributes<OfQueue>,
}

/// Arguments of `queue alter`.
#[derive(Args, Debug)]
pub(crate) struct AlterQueueArgs {
    /// The queue's name
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: QueueName,
    /// Its new attributes.
    #[command(flatten)]
    pub(crate) attributes: Attributes<OfQueue>,
    /// Take the operator's value of this attribute away; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) reset: Vec<String>,
}

/// Arguments of `queue delete`.
#[derive(Args, Debug)]
pub(crate) struct DeleteQueueArgs {
    /// The queue's name
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: QueueName,
    /// Delete it with all its messages
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Arguments of `queue clear`.
#[derive(Args, Debug)]
pub(crate) struct ClearQueueArgs {
    /// The queue's name
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: QueueName,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

/// What to do with processes.
#[derive(Debug, Subcommand)]
pub(crate) enum ProcessCommand {
    /// List all processes with their component's state
    List,
    /// Show a process: its state, and each attribute with its origin
    Show(ProcessArg),
    /// Define a process, or lay attributes over its definition
    #[command(after_long_help = DEFINE_PROCESS)]
    Define(DefineProcessArgs),
    /// Change attributes of a process that is defined
    #[command(after_long_help = ALTER_PROCESS)]
    Alter(AlterProcessArgs),
    /// Delete a process that no queue is bound to
    Delete(ProcessArg),
}

/// A process.
#[derive(Args, Debug)]
pub(crate) struct ProcessArg {
    /// The process's name
    #[arg(value_name = "PROCESS", value_parser = process_name)]
    pub(crate) process: ProcessName,
}

/// Arguments of `process define`.
#[derive(Args, Debug)]
pub(crate) struct DefineProcessArgs {
    /// The process's name
    #[arg(id = "PROCESS", value_name = "PROCESS", value_parser = process_name)]
    pub(crate) process: ProcessName,
    /// Its attributes.
    #[command(flatten)]
    pub(crate) attributes: Attributes<OfProcess>,
}

/// Arguments of `process alter`.
#[derive(Args, Debug)]
pub(crate) struct AlterProcessArgs {
    /// The process's name
    #[arg(id = "PROCESS", value_name = "PROCESS", value_parser = process_name)]
    pub(crate) process: ProcessName,
    /// Its new attributes.
    #[command(flatten)]
    pub(crate) attributes: Attributes<OfProcess>,
    /// Take the operator's value of this attribute away; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) reset: Vec<String>,
}
