//! Attributes of queues and processes as arguments: `NAME=VALUE`, or a flag for each.
//!
//! The flags and their help are made from core's list of attributes, so a new attribute is a flag
//! without a line here. Values are read by core's own reader: all faults at once.

use std::marker::PhantomData;

use clap::{Arg, ArgAction, ArgMatches};
use oncue_core::code::Code;
use oncue_core::definition::{
    AttributeInfo, Fault, PROCESS_ATTRIBUTES, ProcessPatch, QUEUE_ATTRIBUTES, QueuePatch,
};
use serde_json::Value;

use super::pair;
use crate::exit::Failure;

/// Attributes that have no flag of their own: an option of every command bears the name.
const PAIRS_ONLY: &[&str] = &["config", "output"];

/// The argument of `NAME=VALUE` texts.
const PAIRS: &str = "NAME=VALUE";

/// Whose attributes are meant.
pub(crate) trait Owner {
    /// The list of attributes.
    const TABLE: &'static [AttributeInfo];

    /// Reads attributes and resets into a patch as JSON; all faults at once.
    fn patch(pairs: &[(String, String)], resets: &[String]) -> Result<Value, Vec<Fault>>;
}

/// Attributes of a queue.
#[derive(Debug)]
pub(crate) struct OfQueue;

/// Attributes of a process.
#[derive(Debug)]
pub(crate) struct OfProcess;

/// The attributes on the command line.
#[derive(Debug)]
pub(crate) struct Attributes<O> {
    /// Names and values, in the order of the list, flags last.
    pub(crate) pairs: Vec<(String, String)>,
    owner: PhantomData<O>,
}

impl<O: Owner> Attributes<O> {
    /// The patch as JSON, with these attributes reset.
    ///
    /// # Errors
    /// Every fault of the attributes at once; `whom` says whose they are.
    pub(crate) fn patch(&self, whom: &str, resets: &[String]) -> Result<Value, Failure> {
        O::patch(&self.pairs, resets).map_err(|faults| {
            let message = format!("the definition of {whom} has faults");
            let faults = faults.iter().map(ToString::to_string).collect();
            Failure::coded(Code::InvalidDefinition, message).with_faults(faults)
        })
    }
}

macro_rules! owner {
    ($owner:ident, $patch:ident, $table:ident) => {
        impl Owner for $owner {
            const TABLE: &'static [AttributeInfo] = $table;

            fn patch(pairs: &[(String, String)], resets: &[String]) -> Result<Value, Vec<Fault>> {
                let (mut patch, mut faults) = match $patch::parse_flags(pairs) {
                    Ok(patch) => (patch, Vec::new()),
                    Err(faults) => ($patch::default(), faults),
                };
                for name in resets {
                    if pairs.iter().any(|(set, _)| set == name) {
                        faults.push(Fault::new(name, "is set and reset; do one of them"));
                    } else if !patch.reset(name) {
                        faults.push(Fault::new(name, "is not an attribute; name one to reset"));
                    }
                }
                if faults.is_empty() {
                    Ok(serde_json::to_value(&patch).expect("a patch is plain data"))
                } else {
                    Err(faults)
                }
            }
        }
    };
}

owner!(OfQueue, QueuePatch, QUEUE_ATTRIBUTES);
owner!(OfProcess, ProcessPatch, PROCESS_ATTRIBUTES);

impl<O: Owner> clap::Args for Attributes<O> {
    fn augment_args(command: clap::Command) -> clap::Command {
        let pairs = Arg::new(PAIRS)
            .value_name(PAIRS)
            .action(ArgAction::Append)
            .num_args(0..)
            .value_parser(pair)
            .help("Attributes by their names, such as trigger=depth trigger-depth=100");
        let mut command = command.arg(pairs);
        for info in O::TABLE {
            if PAIRS_ONLY.contains(&info.name) {
                continue;
            }
            let default = match info.default {
                "" => "nothing",
                default => default,
            };
            let flag = Arg::new(info.name)
                .long(info.name)
                .value_name("VALUE")
                .action(ArgAction::Set)
                .help(format!("{} [default: {default}]", info.meaning))
                .long_help(format!(
                    "{} Use {}. [default: {default}]",
                    info.meaning,
                    (info.accepts)()
                ))
                .help_heading("Attributes");
            command = command.arg(flag);
        }
        command
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<O: Owner> clap::FromArgMatches for Attributes<O> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut pairs: Vec<(String, String)> = matches
            .get_many(PAIRS)
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        for info in O::TABLE {
            if PAIRS_ONLY.contains(&info.name) {
                continue;
            }
            if let Some(value) = matches.get_one::<String>(info.name) {
                pairs.push((info.name.to_owned(), value.clone()));
            }
        }
        Ok(Self {
            pairs,
            owner: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
