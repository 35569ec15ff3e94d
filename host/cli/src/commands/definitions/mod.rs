//! `export` and `apply`: what operators have set, as a file, and a file laid over a host.
//!
//! A definition's layer is a list of attributes in the order of core's list, named with dots, their
//! values in the one form that core writes. So two layers are equal when their lists are.

mod apply;
mod export;
mod reading;
mod written;

use oncue_core::definition::{AttributeInfo, PROCESS_ATTRIBUTES, QUEUE_ATTRIBUTES};
use serde_json::{Map, Value};

pub(super) use apply::run as apply;
pub(super) use export::run as export;

use super::Context;
use crate::exit::Failure;
use crate::render::values::{at, items, plain};

/// What is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Process,
    Queue,
}

impl What {
    /// In the order in which they are written and applied: queues name processes.
    const ALL: [Self; 2] = [Self::Process, Self::Queue];

    /// The name of its table.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Queue => "queue",
        }
    }

    /// Its place below `/v1`.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Process => "processes",
            Self::Queue => "queues",
        }
    }

    pub(super) fn attributes(self) -> &'static [AttributeInfo] {
        match self {
            Self::Process => PROCESS_ATTRIBUTES,
            Self::Queue => QUEUE_ATTRIBUTES,
        }
    }
}

/// An attribute's name, with dots, and its value.
pub(super) type Entry = (&'static str, Value);

/// One queue or process: its attributes and where each comes from.
#[derive(Clone, Debug)]
pub(super) struct Defined {
    pub(super) what: What,
    pub(super) name: String,
    /// Every attribute that holds, with its origin.
    pub(super) holds: Vec<(Entry, String)>,
}

impl Defined {
    /// The definition in a view of the host.
    pub(super) fn of(what: What, view: &Value) -> Self {
        let holds = what.attributes().iter().map(|info| {
            let value = at(view, &format!("attributes.{}", info.name)).clone();
            let origin = view.get("origins").and_then(|all| all.get(info.name));
            let origin = origin.and_then(Value::as_str).unwrap_or("default");
            ((info.name, value), origin.to_owned())
        });
        Self {
            what,
            name: plain(at(view, "name")),
            holds: holds.collect(),
        }
    }

    fn has(&self, origin: &str) -> bool {
        self.holds.iter().any(|(_, from)| from == origin)
    }

    /// What the operator has set.
    pub(super) fn overlay(&self) -> Vec<Entry> {
        let set = self.holds.iter().filter(|(_, from)| from == "operator");
        set.map(|(entry, _)| entry.clone()).collect()
    }

    /// Whether an operator had a hand in it: made it, or set something of it.
    fn is_the_operators(&self) -> bool {
        self.has("operator") || !(self.has("manifest") || self.name.starts_with("oncue."))
    }
}

/// All processes and queues of the host, by name.
fn defined(context: &Context) -> Result<Vec<Defined>, Failure> {
    let mut all = Vec::new();
    for what in What::ALL {
        let views = context.client.list(what.path(), &[], None)?;
        let mut of_kind: Vec<Defined> = items(&views)
            .iter()
            .map(|view| Defined::of(what, view))
            .collect();
        of_kind.sort_by(|one, other| one.name.cmp(&other.name));
        all.extend(of_kind);
    }
    Ok(all)
}

/// Entries as JSON: a name with a dot is a table inside.
pub(super) fn nested<'a>(entries: impl Iterator<Item = &'a Entry>) -> Value {
    let mut outer = Map::new();
    for (name, value) in entries {
        match name.split_once('.') {
            None => {
                outer.insert((*name).to_owned(), value.clone());
            }
            Some((group, member)) => {
                let inner = outer
                    .entry(group)
                    .or_insert_with(|| Value::Object(Map::new()));
                if let Some(inner) = inner.as_object_mut() {
                    inner.insert(member.to_owned(), value.clone());
                }
            }
        }
    }
    Value::Object(outer)
}
