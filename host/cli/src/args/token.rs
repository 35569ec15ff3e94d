//! Arguments of `token` and of `audit`.

use clap::{Args, Subcommand};
use oncue_core::definition::Pattern;
use oncue_server::auth::identity::Role;

use super::millis;
use crate::config::Flags;

pub(crate) const EXAMPLES: &str = "\
Examples:
  oncue token create ops --role admin
  oncue token create shop --role application --put orders --get 'invoices.*' --expires 90d
  oncue token list
  oncue token revoke shop

Tokens are kept, as hashes, in tokens.toml of the data directory. Within a second of the first \
one a running host asks every request for a token, until the file is removed and the host \
restarted; a token that is made or revoked later counts at once. The token is printed once, alone \
on stdout; commands take it from the variable ONCUE_TOKEN or from a file (--token-file).";

/// What to do with tokens. Works on the data directory; no host is asked.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it
    Create(CreateArgs),
    /// List the tokens, without what could be used
    List(DataArgs),
    /// Take a token back: the host refuses it from then on
    Revoke(RevokeArgs),
}

/// Where the tokens are.
#[derive(Args, Debug)]
pub(crate) struct DataArgs {
    /// The host's data directory [default: ./data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
}

impl DataArgs {
    /// The setting, if it was given.
    pub(crate) fn flags(&self) -> Flags {
        let given = self.data_dir.clone();
        given.map(|text| ("data-dir", text)).into_iter().collect()
    }
}

/// A new token.
#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// Who is to have it: the putter's name on messages, the identity in the audit log
    pub(crate) name: String,
    /// What it may do everywhere: admin, operator, application (nothing but grants) or observer
    #[arg(long, value_parser = role)]
    pub(crate) role: Role,
    /// Queues it may put to; * stands for any characters; may be repeated
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) put: Vec<Pattern>,
    /// Queues it may get from
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) get: Vec<Pattern>,
    /// Queues whose messages it may see
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) browse: Vec<Pattern>,
    /// Queues it may define, alter and delete
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) define: Vec<Pattern>,
    /// Queues it may pause, trigger, clear and redrive
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) operate: Vec<Pattern>,
    /// Queues it may bind a process to; * for process definitions too
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) bind: Vec<Pattern>,
    /// How long it is good for, such as 90d [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub(crate) expires: Option<u64>,
    /// Where the tokens are.
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// A token to take back.
#[derive(Args, Debug)]
pub(crate) struct RevokeArgs {
    /// Its name
    pub(crate) name: String,
    /// Where the tokens are.
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// What to show of the audit log.
#[derive(Args, Debug)]
pub(crate) struct AuditArgs {
    /// Go on with what comes
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only what is not older, such as 1h
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub(crate) since: Option<u64>,
    /// At most so many entries at first
    #[arg(long, value_name = "NUMBER", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) max: u32,
}

fn role(text: &str) -> Result<Role, String> {
    text.parse()
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text)
}
