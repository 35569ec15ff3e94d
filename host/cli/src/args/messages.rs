//! Arguments of commands about messages.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use oncue_core::message::MessageId;
use oncue_core::names::QueueName;

use super::dead_letters::FilterArgs;
use super::{message_id, millis, pair, queue_name};

const PUT_EXAMPLES: &str = "\
Examples:
  oncue put orders '{\"order\":\"o-1\",\"kind\":\"invoice\",\"amount\":12.5}'
  oncue put orders --file order.json --priority 7 --property region=eu
  oncue put orders --lines < orders.ndjson
  generate | oncue put orders -
  oncue put orders hello --idempotency-key import-1 --count 10

Prints the id of each message on stdout once it is durable; with -o json, each answer of the host \
on a line.";

const GET_EXAMPLES: &str = "\
Examples:
  oncue get invoices                     one message, or exit code 3 at once
  oncue get invoices --wait 5m           wait for one
  oncue get invoices --max 100 -o json   up to 100, as JSON
  oncue get invoices --keep              do not acknowledge; settle it with \"oncue lease\"

A message is acknowledged after it was printed: if this command dies before, the message is \
back on its queue when the lease ends. With --keep a line \"lease TOKEN\" stands before each body.";

const REDRIVE_EXAMPLES: &str = "\
Examples:
  oncue redrive                          all of oncue.dead-letter
  oncue redrive --from orders --detail 'not an order' --max 100";

/// What can be said of a message that is put.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Message fields")]
pub(crate) struct FieldArgs {
    /// Any field by its HTTP header, such as oncue-priority=5; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME=VALUE", value_parser = header)]
    pub(crate) header: Vec<(String, String)>,
    /// Ties a reply to its request
    #[arg(long, value_name = "ID")]
    pub(crate) correlation_id: Option<String>,
    /// The queue where a reply is wanted
    #[arg(long, value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) reply_to: Option<QueueName>,
    /// Messages of one group are handled one after the other
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// A number of yours within the group
    #[arg(long, value_name = "NUMBER")]
    pub(crate) group_sequence: Option<u32>,
    /// 0 to 9; higher ones are got first [default: the queue's]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) priority: Option<u8>,
    /// persistent, or non-persistent: lost at a restart [default: the queue's]
    #[arg(long, value_name = "WORD")]
    pub(crate) persistence: Option<String>,
    /// How long the message lives, such as 10m, or never [default: the queue's]
    #[arg(long, value_name = "TIME")]
    pub(crate) expiry: Option<String>,
    /// How long it stays out of sight first, such as 5s
    #[arg(long, value_name = "TIME")]
    pub(crate) delay: Option<String>,
    /// Makes a repeated put harmless: it answers with the first one's id. With several messages,
    /// each has the key with -1, -2, ... behind it
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// A property of the message; may be repeated
    #[arg(long = "property", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) property: Vec<(String, String)>,
    /// The media type of the body, such as application/json
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
}

/// Arguments of `put`.
#[derive(Args, Debug)]
#[command(after_long_help = PUT_EXAMPLES)]
pub(crate) struct PutArgs {
    /// The queue to put to
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: QueueName,
    /// The body; - reads it from stdin
    #[arg(
        value_name = "BODY",
        allow_hyphen_values = true,
        conflicts_with = "file"
    )]
    pub(crate) body: Option<String>,
    /// Read the body from this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// One message for each line, of --file or stdin; empty lines are passed over
    #[arg(long, short)]
    pub(crate) lines: bool,
    /// Put the same message so many times
    #[arg(long, value_name = "NUMBER", conflicts_with = "lines", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) count: u64,
    /// Its fields.
    #[command(flatten)]
    pub(crate) fields: FieldArgs,
}

/// Arguments of `get`.
#[derive(Args, Debug)]
#[command(after_long_help = GET_EXAMPLES)]
pub(crate) struct GetArgs {
    /// The queue to get from
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: QueueName,
    /// Wait so long for a message, such as 20s
    #[arg(long, value_name = "TIME", value_parser = millis, default_value = "0s")]
    pub(crate) wait: u64,
    /// Get up to so many
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) max: u32,
    /// How long the messages are yours before they must be settled
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub(crate) lease: Option<u64>,
    /// Only the message of this id
    #[arg(long, value_name = "ID", value_parser = message_id)]
    pub(crate) id: Option<MessageId>,
    /// Only messages of this correlation id
    #[arg(long, value_name = "ID")]
    pub(crate) correlation_id: Option<String>,
    /// Acknowledge each message after it was printed (the default)
    #[arg(long, overrides_with = "keep")]
    pub(crate) ack: bool,
    /// Leave the messages under their leases and print the tokens
    #[arg(long, overrides_with = "ack")]
    pub(crate) keep: bool,
    /// Print bodies byte by byte as they are, with nothing between them
    #[arg(long)]
    pub(crate) raw: bool,
}

/// Arguments of `browse`.
#[derive(Args, Debug)]
pub(crate) struct BrowseArgs {
    /// The queue to look at
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: QueueName,
    /// Show up to so many messages
    #[arg(long, value_name = "NUMBER", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) max: u32,
    /// Go on where an earlier browse ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    /// Only messages that a get would take now
    #[arg(long)]
    pub(crate) ready: bool,
}

/// What to do with one message.
#[derive(Debug, Subcommand)]
pub(crate) enum MessageCommand {
    /// Print a message's fields and body
    Show(ShowMessageArgs),
    /// Remove a message from its queue
    Remove(RemoveMessageArgs),
    /// Free a parked message: it is tried again
    Release(MessageArgs),
}

/// One message of a queue.
#[derive(Args, Debug)]
pub(crate) struct MessageArgs {
    /// The queue it is on
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: QueueName,
    /// The message's id
    #[arg(value_name = "ID", value_parser = message_id)]
    pub(crate) id: MessageId,
}

/// Arguments of `message show`.
#[derive(Args, Debug)]
pub(crate) struct ShowMessageArgs {
    /// Which message.
    #[command(flatten)]
    pub(crate) message: MessageArgs,
    /// Print the body alone, byte by byte as it is
    #[arg(long)]
    pub(crate) raw: bool,
}

/// Arguments of `message remove`.
#[derive(Args, Debug)]
pub(crate) struct RemoveMessageArgs {
    /// Which message.
    #[command(flatten)]
    pub(crate) message: MessageArgs,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

/// What to do with a lease.
#[derive(Debug, Subcommand)]
pub(crate) enum LeaseCommand {
    /// The messages are handled: remove them
    Ack(TokenArgs),
    /// Give messages back; this counts as a failed attempt
    Nack(NackArgs),
    /// Keep messages for longer
    Extend(ExtendArgs),
}

/// Leases by their tokens.
#[derive(Args, Debug)]
pub(crate) struct TokenArgs {
    /// The tokens that "get --keep" printed
    #[arg(value_name = "TOKEN", required = true)]
    pub(crate) token: Vec<String>,
}

/// Arguments of `lease nack`.
#[derive(Args, Debug)]
pub(crate) struct NackArgs {
    /// Which leases.
    #[command(flatten)]
    pub(crate) tokens: TokenArgs,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Try again after so long, such as 10s
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub(crate) delay: Option<u64>,
}

/// Arguments of `lease extend`.
#[derive(Args, Debug)]
pub(crate) struct ExtendArgs {
    /// Which leases.
    #[command(flatten)]
    pub(crate) tokens: TokenArgs,
    /// How long from now, such as 1m
    #[arg(long, value_name = "TIME", value_parser = millis, default_value = "30s")]
    pub(crate) lease: u64,
}

/// Arguments of `redrive`.
#[derive(Args, Debug)]
#[command(after_long_help = REDRIVE_EXAMPLES)]
pub(crate) struct RedriveArgs {
    /// The queue that holds the dead letters
    #[arg(value_name = "QUEUE", value_parser = queue_name, default_value = "oncue.dead-letter")]
    pub(crate) queue: QueueName,
    /// Only this message; may be repeated
    #[arg(long, value_name = "ID", value_parser = message_id)]
    pub(crate) id: Vec<MessageId>,
    /// Which.
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
}

/// Reads a header: `NAME=VALUE`, or `NAME: VALUE` as other tools have it.
fn header(text: &str) -> Result<(String, String), String> {
    let split = text.find(['=', ':']).map(|at| text.split_at(at));
    match split {
        Some((name, value)) if !name.trim().is_empty() => {
            let name = name.trim().to_ascii_lowercase();
            let known = ["content-type", "idempotency-key"].contains(&name.as_str());
            // A host passes over any other header, and the field would be lost without a word.
            if !known && !name.starts_with("oncue-") && !name.starts_with("ce-") {
                return Err(format!(
                    "\"{name}\" is no field of a message; use content-type, idempotency-key, \
                     oncue-... or ce-..."
                ));
            }
            Ok((name, value[1..].trim_start().to_owned()))
        }
        _ => Err("write NAME=VALUE".to_owned()),
    }
}
