//! Arguments of `top`.

use clap::{Args, ValueEnum};

use super::millis;

const TOP: &str = "\
Examples:
  oncue top
  oncue top --once --sort oldest        one frame, for pipes
  oncue top --once --sort put --interval 5s -o json

Keys: q ends; d n o p l r sort by depth, name, oldest, puts, what left, growth; e shows or hides \
queues that are empty and idle; up, down, page up, page down move through the queues. PUT/s is \
what came to a queue a second, LEFT/s what was got, moved, removed or expired, both between two \
looks; --once takes two. With -o json each frame is a line, with \"rates\" from the second on.";

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
    /// How often it is looked at, and the time between the two looks of --once
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
    /// The one with the most puts a second first
    Put,
    /// The one that most messages leave a second first
    Left,
    /// The one with the oldest message first
    Oldest,
}
