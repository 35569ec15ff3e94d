//! Arguments of `dlq`: the dead letters of a host.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use oncue_core::message::MessageId;
use oncue_core::names::QueueName;

use super::{message_id, queue_name};

const LIST: &str = "\
Examples:
  oncue dlq list                         the groups: why, from which queue, how many
  oncue dlq list --messages --from orders
  oncue dlq list --queue orders.failed   a backout queue of your own

At most 10 000 messages are looked at for the groups.";

const SHOW: &str = "\
Example:
  oncue dlq show 00c0ffee0000000000000042";

const REDRIVE: &str = "\
Examples:
  oncue dlq redrive 00c0ffee0000000000000042
  oncue dlq redrive --from orders --reason trapped
  oncue dlq redrive --all

Each goes back to the queue it came from, with its attempts at zero. Cure the cause first: \
\"oncue dlq list\" names it.";

const EXPORT: &str = "\
Examples:
  oncue dlq export > dead-letters.ndjson
  oncue dlq export --from orders -O orders.ndjson

Nothing is removed. Each line is a message with its dead-letter record and its body: \"body\" is \
text, \"body-base64\" anything else.";

const DISCARD: &str = "\
Examples:
  oncue dlq discard 00c0ffee0000000000000042
  oncue dlq discard --from orders --detail 'not an order' --yes
  oncue dlq discard --all

What is discarded is gone; \"oncue dlq export\" keeps a copy first. Messages that were put there \
by hand have no dead-letter record and stay: \"oncue queue clear\" removes those too.";

/// What to do with dead letters.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetterCommand {
    /// List dead letters by groups: why, where they came from, how many
    #[command(after_long_help = LIST)]
    List(ListArgs),
    /// Show a dead letter: its fields, the last log, the backtrace and the body
    #[command(after_long_help = SHOW)]
    Show(ShowArgs),
    /// Put dead letters back to the queues they came from
    #[command(after_long_help = REDRIVE)]
    Redrive(RedriveArgs),
    /// Write dead letters with their bodies as JSON lines; they stay where they are
    #[command(after_long_help = EXPORT)]
    Export(ExportArgs),
    /// Remove dead letters for good
    #[command(after_long_help = DISCARD)]
    Discard(DiscardArgs),
}

/// The queue that holds them.
#[derive(Args, Clone, Debug)]
pub(crate) struct HolderArgs {
    /// The dead-letter or backout queue
    #[arg(
        long,
        value_name = "QUEUE",
        value_parser = queue_name,
        default_value = "oncue.dead-letter"
    )]
    pub(crate) queue: QueueName,
}

/// Which dead letters are meant.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FilterArgs {
    /// Only those that came from this queue
    #[arg(long, value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) from: Option<QueueName>,
    /// Only those with this reason, such as rejected, trapped or hop-limit
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: Option<String>,
    /// Only those whose detail contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) detail: Option<String>,
    /// Up to so many
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max: Option<u32>,
}

impl FilterArgs {
    /// Whether they narrow the dead letters down.
    pub(crate) fn is_some(&self) -> bool {
        self.from.is_some() || self.reason.is_some() || self.detail.is_some()
    }
}

/// Dead letters of a queue, by their ids or by what they have in common.
#[derive(Args, Clone, Debug)]
pub(crate) struct MeantArgs {
    /// Only these messages
    #[arg(id = "ID", value_name = "ID", value_parser = message_id)]
    pub(crate) id: Vec<MessageId>,
    /// Where they are.
    #[command(flatten)]
    pub(crate) holder: HolderArgs,
    /// Which.
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
}

/// Arguments of `dlq list`.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Where they are.
    #[command(flatten)]
    pub(crate) holder: HolderArgs,
    /// Which.
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// List single messages, not groups; up to 100 without --max
    #[arg(long, short)]
    pub(crate) messages: bool,
}

/// Arguments of `dlq show`.
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The message's id
    #[arg(value_name = "ID", value_parser = message_id)]
    pub(crate) id: MessageId,
    /// Where it is.
    #[command(flatten)]
    pub(crate) holder: HolderArgs,
    /// Print the body alone, byte by byte as it is
    #[arg(long)]
    pub(crate) raw: bool,
}

/// Arguments of `dlq redrive`.
#[derive(Args, Debug)]
pub(crate) struct RedriveArgs {
    /// Which.
    #[command(flatten)]
    pub(crate) meant: MeantArgs,
    /// All of them
    #[arg(long, conflicts_with_all = ["ID", "from", "reason", "detail"])]
    pub(crate) all: bool,
}

/// Arguments of `dlq export`.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// Which; all of them if nothing is said.
    #[command(flatten)]
    pub(crate) meant: MeantArgs,
    /// Write to this file [default: stdout]
    #[arg(short = 'O', long = "out", value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// Arguments of `dlq discard`.
#[derive(Args, Debug)]
pub(crate) struct DiscardArgs {
    /// Which.
    #[command(flatten)]
    pub(crate) meant: MeantArgs,
    /// All of them
    #[arg(long, conflicts_with_all = ["ID", "from", "reason", "detail"])]
    pub(crate) all: bool,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}
