//! Arguments of `check`: answers for monitoring systems.

use clap::{Args, Subcommand};
use oncue_core::names::QueueName;

use super::{millis, queue_name};

pub(crate) const CHECK: &str = "\
Examples:
  oncue check ready
  oncue check queue orders --warn-depth 1000 --crit-depth 10000 --warn-age 1m --crit-age 10m

For Nagios, Icinga and their like: one line with performance data behind a bar, and their exit \
codes, which are NOT those of the other commands: 0 ok, 1 warning, 2 critical, 3 unknown (wrong \
usage, or the queue is not there).";

/// What to check.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckCommand {
    /// Whether the host takes work; critical when it does not answer
    Ready,
    /// Whether the host's process answers at all; nothing is asked of its disk
    Live,
    /// Depth, oldest message and state of a queue
    Queue(CheckQueueArgs),
}

/// Arguments of `check queue`.
#[derive(Args, Debug)]
pub(crate) struct CheckQueueArgs {
    /// The queue's name
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: QueueName,
    /// Warn at so many messages
    #[arg(long, value_name = "NUMBER")]
    pub(crate) warn_depth: Option<u64>,
    /// Critical at so many messages
    #[arg(long, value_name = "NUMBER")]
    pub(crate) crit_depth: Option<u64>,
    /// Warn when the oldest message is so old, such as 1m
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub(crate) warn_age: Option<u64>,
    /// Critical when the oldest message is so old, such as 10m
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub(crate) crit_age: Option<u64>,
}
