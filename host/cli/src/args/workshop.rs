//! Arguments of `run` and `test`: plugins at work with no host.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use oncue_core::names::QueueName;

use super::messages::FieldArgs;
use super::{pair, queue_name};
use crate::workshop::FaultKind;

const RUN_EXAMPLES: &str = "\
Examples:
  oncue run route-orders.wasm --text '{\"order\":\"o-1\",\"kind\":\"invoice\",\"amount\":12.5}'
  oncue run route-orders.wasm --message order.json --property region=eu
  oncue run totals.wasm --message - --state total.invoice=40 < order.json
  oncue run drain.wasm --trigger depth --text a --text b --save cases/two

No host is asked. Each message is tried once, under the limits and grants of the manifest; queues \
that it may put to are made. Signatures are not looked at: plugin-keys says what a host loads, and \
\"oncue plugin check\" says whether it would.

Exit codes: 0 committed, 1 the handler failed or had nothing to handle, 2 the message's fields are \
not valid, 4 the plugin is refused.";

const TEST_EXAMPLES: &str = "\
Examples:
  oncue test route-orders.wasm --case cases
  oncue test .                            the project of ./oncue-project.toml
  oncue test . --bless                    what comes now is what is expected from now on
  oncue test . --faults cut-off,fuel --junit report.xml

A case is a folder with input.json and expected.json. After a case has passed as it is, it is \
tried under faults: whatever fails, nothing half done may be seen.

Exit codes: 0 all passed, 1 some did not, 2 a case has faults and none was run, 4 the plugin is \
refused.";

/// Arguments of `run`.
#[derive(Args, Debug)]
#[command(after_long_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// The component (NAME.wasm), or a manifest that names it
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: PathBuf,
    /// A message's body, from this file, or from stdin with -; may be repeated
    #[arg(long, short, value_name = "FILE")]
    pub(crate) message: Vec<PathBuf>,
    /// A message's body, as it stands here; may be repeated. With no message at all, one without
    /// a body is handled
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) text: Vec<String>,
    /// Fields of every message.
    #[command(flatten)]
    pub(crate) fields: FieldArgs,
    /// The queue that triggers [default: the first that the plugin serves]
    #[arg(long, value_name = "QUEUE", value_parser = queue_name)]
    pub(crate) queue: Option<QueueName>,
    /// first, every, depth or depth=NUMBER [default: the manifest's]
    #[arg(long, value_name = "TYPE", value_parser = trigger)]
    pub(crate) trigger: Option<Trigger>,
    /// A key of the plugin's state before the run; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) state: Vec<(String, String)>,
    /// A value of the plugin's own configuration; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) set: Vec<(String, String)>,
    /// The answer to the next request to that queue; may be repeated
    #[arg(long, value_name = "QUEUE=TEXT", value_parser = reply)]
    pub(crate) reply: Vec<(QueueName, String)>,
    /// The manifest [default: NAME.toml beside the component, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// Keep this run as a golden case in that folder
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
}

/// How the queue triggers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trigger {
    /// The type's word.
    pub(crate) word: String,
    /// Of `depth`.
    pub(crate) depth: Option<u64>,
}

/// Reads a trigger type.
fn trigger(text: &str) -> Result<Trigger, String> {
    let (word, depth) = match text.split_once('=') {
        Some((word, depth)) => (word, Some(depth)),
        None => (text, None),
    };
    let depth = match (word, depth) {
        ("first" | "every" | "depth", None) => None,
        ("depth", Some(depth)) => match depth.parse::<u64>() {
            Ok(depth) if depth > 0 => Some(depth),
            _ => return Err("write depth=NUMBER, from 1".to_owned()),
        },
        _ => return Err("use first, every, depth or depth=NUMBER".to_owned()),
    };
    Ok(Trigger {
        word: word.to_owned(),
        depth,
    })
}

/// Reads `QUEUE=TEXT`.
fn reply(text: &str) -> Result<(QueueName, String), String> {
    let (queue, text) = pair(text)?;
    Ok((queue_name(&queue)?, text))
}

/// Arguments of `test`.
#[derive(Args, Debug)]
#[command(after_long_help = TEST_EXAMPLES)]
pub(crate) struct TestArgs {
    /// The component (NAME.wasm), a manifest that names it, or a folder with an
    /// oncue-project.toml
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: PathBuf,
    /// A case, or a folder of cases [default: the project's]
    #[arg(long, value_name = "DIR")]
    pub(crate) case: Option<PathBuf>,
    /// The manifest [default: the project's, or NAME.toml beside the component]
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// Write what comes as what is expected from now on
    #[arg(long)]
    pub(crate) bless: bool,
    /// The faults to try each case under
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "all"
    )]
    pub(crate) faults: Vec<FaultChoice>,
    /// Write a report that CI systems read
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// A fault, or a word for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FaultChoice {
    /// Every fault
    All,
    /// No fault: the cases as they are
    None,
    /// The same message is handled again after its unit of work was undone
    Redelivery,
    /// Each put in turn is refused because its queue is full
    RefusedPut,
    /// The handler is ended at each of its calls in turn
    CutOff,
    /// The fuel is swept down to the least that passes
    Fuel,
}

impl TestArgs {
    /// The faults that are wanted, in the order in which they are tried.
    pub(crate) fn faults(&self) -> Vec<FaultKind> {
        let chosen = |kind: &FaultKind| {
            self.faults.iter().any(|choice| match choice {
                FaultChoice::All => true,
                FaultChoice::None => false,
                FaultChoice::Redelivery => *kind == FaultKind::Redelivery,
                FaultChoice::RefusedPut => *kind == FaultKind::RefusedPut,
                FaultChoice::CutOff => *kind == FaultKind::CutOff,
                FaultChoice::Fuel => *kind == FaultKind::Fuel,
            })
        };
        FaultKind::ALL.into_iter().filter(chosen).collect()
    }
}
