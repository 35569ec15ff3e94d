//! Arguments of `completions` and `man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

const COMPLETIONS: &str = "\
Examples:
  oncue completions bash > ~/.local/share/bash-completion/completions/oncue
  oncue completions zsh > \"${fpath[1]}/_oncue\"
  oncue completions fish > ~/.config/fish/completions/oncue.fish";

const MAN: &str = "\
Example:
  oncue man ~/.local/share/man/man1     then: man oncue, man oncue-dlq-redrive

One page for each command. Files of the same name are replaced.";

/// Arguments of `completions`.
#[derive(Args, Debug)]
#[command(after_long_help = COMPLETIONS)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Arguments of `man`.
#[derive(Args, Debug)]
#[command(after_long_help = MAN)]
pub(crate) struct ManArgs {
    /// The folder to write them to; it is made
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}
