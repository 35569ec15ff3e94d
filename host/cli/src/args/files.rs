//! Arguments of `export` and `apply`: definitions as a file.

use std::path::PathBuf;

use clap::Args;

const EXPORT: &str = "\
Examples:
  oncue export > definitions.toml
  oncue export --all                    every attribute that holds, and where it comes from
  oncue export -o json

What operators have set is written, in the words of manifests; what manifests and defaults say is \
not, unless --all is given. The order is always the same, so that two exports can be compared. \
Messages, pauses and \"trigger off\" are no definitions.";

const APPLY: &str = "\
Examples:
  oncue apply -f definitions.toml --dry-run
  oncue apply -f definitions.toml
  oncue export --url http://old:7373 | oncue apply --url http://new:7373 -f -

Queues and processes that the file names get exactly the operator's values that it has: others of \
theirs are taken away, and the manifest's or the default shows again. Those that it does not name \
stay as they are. All of it is done, or nothing: a definition that the host refuses keeps the \
others from being changed too. Each change is a line: + added, ~ changed, - taken away; --dry-run \
asks the host for the same lines and the same refusals. Doing it again changes nothing.";

/// Arguments of `export`.
#[derive(Args, Debug)]
#[command(after_long_help = EXPORT)]
pub(crate) struct ExportArgs {
    /// Every queue and process with every attribute that holds
    #[arg(long)]
    pub(crate) all: bool,
}

/// Arguments of `apply`.
#[derive(Args, Debug)]
#[command(after_long_help = APPLY)]
pub(crate) struct ApplyArgs {
    /// The definitions: TOML as "oncue export" writes it, or JSON; - reads stdin
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
