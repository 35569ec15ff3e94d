//! Arguments of `top`.

use clap::{Args, ValueEnum};

use super::millis;

const TOP: &str = "\
Examples:
  oncue top
  oncue top --once --sort oldest        one frame, for pipes

Keys: q ends; d n r o sort by depth, name, rate, oldest; e shows or hides queues that are empty \
and idle; up, down, page up, page down move through the queues. The rate is how fast the depth \
grows or shrinks. With -o json each frame is a line.";

/// Arguments of `top`.
#[derive(Args, Debug)]
#[command(after_long_help = TOP)]
pub(crate) struct TopArgs {
    /// Print one frame and end; so it is when stdout is no terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// What stands first
    #[arg(long, value_enum, default_value_t, value_name = "WORD")]
    pub(crate) sort: Sort,
    /// Show queues that are empty and idle too
    #[arg(long)]
    pub(crate) all: bool,
    /// How often it is looked at
    #[arg(long, value_name = "TIME", value_parser = millis, default_value = "1s")]
    pub(crate) interval: u64,
}

/// By what queues are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// The deepest first
    #[default]
    Depth,
    /// By name
    Name,
    /// The one that grows fastest first
    Rate,
    /// The one with the oldest message first
    Oldest,
}
