//! DEFINE, ALTER and DELETE, done by the host's own requests.

use std::collections::BTreeMap;

use oncue_core::definition::{Fault, ProcessPatch, QueuePatch};
use serde_json::Value;

use super::attributes::{self, Choice, Meaning};
use super::display;
use super::events::Switch;
use super::parse::{Command, Object, Verb};
use super::{Fate, Report, Told};
use crate::client::Request;
use crate::commands::Context;
use crate::commands::definitions::{Defined, Entry, What, nested};
use crate::exit::{Exit, Failure};
use crate::render::values::{at, plain};

/// Does commands, one after the other.
pub(super) struct Doer<'a> {
    pub(super) context: &'a Context,
    dry_run: bool,
    /// In a dry run: what the commands before would have made, and deleted.
    made: BTreeMap<(What, String), bool>,
}

/// A command's attributes, understood.
#[derive(Default)]
struct Understood {
    pairs: Vec<(String, String)>,
    switches: Vec<(&'static Switch, bool)>,
    replace: bool,
    like: Option<String>,
    purge: bool,
    told: Vec<Told>,
}

impl Understood {
    fn is_refused(&self) -> bool {
        self.told.iter().any(|told| told.fate == Fate::Refused)
    }

    /// Lays the switches over the levels. `kept` has the values that hold without the command.
    fn settle(&mut self, kept: Option<&Defined>) {
        for (switch, is_on) in &self.switches {
            switch.settle(*is_on, &mut self.pairs, |name| {
                let of =
                    |((known, value), _): &(Entry, String)| (*known == name).then(|| plain(value));
                kept?.holds.iter().find_map(of)
            });
        }
        let off = self.switches.iter().filter(|(_, is_on)| !is_on);
        for (switch, _) in off {
            let level = format!("{}(", switch.level);
            let told = self.told.iter_mut();
            let is_level = |told: &&mut Told| {
                told.fate == Fate::Accepted && told.attribute.starts_with(&level)
            };
            for told in told.filter(is_level) {
                let keyword = switch.keyword;
                told.fate = Fate::Ignored;
                told.text = format!("{keyword}({}) turns the alarm off", switch.off);
            }
        }
    }
}

impl<'a> Doer<'a> {
    pub(super) fn new(context: &'a Context, dry_run: bool) -> Self {
        Self {
            context,
            dry_run,
            made: BTreeMap::new(),
        }
    }

    /// Does a command.
    ///
    /// # Errors
    /// Only when the host is gone: everything else is told in the report.
    pub(super) fn run(&mut self, command: &Command) -> Result<Report, Failure> {
        let done = match command.verb {
            Verb::Display => display::run(self.context, command),
            Verb::Define | Verb::Alter => self.define(command),
            Verb::Delete => self.delete(command),
        };
        match done {
            Err(failure) if failure.exit == Exit::Unreachable => Err(failure),
            Err(failure) => {
                let mut report = Report::refused(failure.message);
                report
                    .attributes
                    .extend(failure.faults.into_iter().map(|fault| Told {
                        fate: Fate::Refused,
                        attribute: String::new(),
                        text: fault,
                    }));
                Ok(report)
            }
            done => done,
        }
    }

    fn define(&mut self, command: &Command) -> Result<Report, Failure> {
        let what = what(command.object);
        let whom = format!("{} \"{}\"", what.word(), command.name);
        if let Err(why) = attributes::name(&command.name) {
            return Ok(Report::refused(why));
        }
        let mut understood = understand(command);
        let there = self.find(what, &command.name)?;
        let like = match &understood.like {
            Some(like) => self.find(what, like)?,
            None => None,
        };
        // What holds already: of what is altered, or of what a new one is made like.
        let kept = if command.verb == Verb::Alter {
            &there
        } else {
            &like
        };
        understood.settle(kept.as_ref().and_then(Option::as_ref));
        let layer = match layer(what, &understood.pairs) {
            Ok(layer) => layer,
            Err(faults) => {
                understood.told.extend(faults.iter().map(refused));
                Vec::new()
            }
        };
        if understood.is_refused() {
            return Ok(Report {
                attributes: understood.told,
                ..Report::refused(format!("{whom} is left as it is"))
            });
        }
        let is_there = there.is_some();
        let report = |sentence: String, refused: bool| Report {
            sentence,
            refused,
            attributes: understood.told.clone(),
            objects: Vec::new(),
        };
        if command.verb == Verb::Alter && !is_there {
            return Ok(report(format!("{whom} is not there; use DEFINE"), true));
        }
        if command.verb == Verb::Define && is_there && !understood.replace {
            let sentence = format!("{whom} is there already; add REPLACE, or use ALTER");
            return Ok(report(sentence, true));
        }
        let mut entries = Vec::new();
        if let Some(Some(there)) = there.as_ref().filter(|_| command.verb == Verb::Define) {
            // What the definition before had and this one does not goes.
            let gone = there.overlay().into_iter();
            entries.extend(gone.map(|(name, _)| (name, Value::Null)));
        }
        if let Some(name) = &understood.like {
            match like {
                None => {
                    let sentence = format!("{} \"{name}\", of LIKE, is not there", what.word());
                    return Ok(report(sentence, true));
                }
                Some(like) => lay(
                    &mut entries,
                    like.map(|one| one.overlay()).unwrap_or_default(),
                ),
            }
        }
        lay(&mut entries, layer);
        self.put(what, &command.name, &entries)?;
        let how = how(command.verb, is_there, self.dry_run);
        Ok(report(format!("{whom} {how}"), false))
    }

    fn put(&mut self, what: What, name: &str, entries: &[Entry]) -> Result<(), Failure> {
        if self.dry_run {
            self.made.insert((what, name.to_owned()), true);
            return Ok(());
        }
        let patch = nested(entries.iter());
        let request = Request::put(&[what.path(), name], &patch);
        self.context.client.send(request).map(drop)
    }

    fn delete(&mut self, command: &Command) -> Result<Report, Failure> {
        let what = what(command.object);
        let whom = format!("{} \"{}\"", what.word(), command.name);
        let understood = understand(command);
        let report = |sentence: String, refused: bool| Report {
            sentence,
            refused,
            attributes: understood.told.clone(),
            objects: Vec::new(),
        };
        if understood.is_refused() || !understood.pairs.is_empty() {
            let sentence = "DELETE takes PURGE or NOPURGE, and no attributes".to_owned();
            return Ok(report(sentence, true));
        }
        if self.find(what, &command.name)?.is_none() {
            return Ok(report(format!("{whom} is not there"), true));
        }
        if self.dry_run {
            self.made.insert((what, command.name.clone()), false);
            return Ok(report(format!("{whom} would be deleted"), false));
        }
        let request = Request::delete(&[what.path(), &command.name])
            .query("force", understood.purge.then_some(true));
        self.context.client.send(request)?;
        Ok(report(format!("{whom} is deleted"), false))
    }

    /// The definition of that name: none if it is not there, `Some(None)` if it would be.
    fn find(&self, what: What, name: &str) -> Result<Option<Option<Defined>>, Failure> {
        match self.made.get(&(what, name.to_owned())) {
            Some(true) => return Ok(Some(None)),
            Some(false) => return Ok(None),
            None => {}
        }
        match self.context.client.ask(Request::get(&[what.path(), name])) {
            Ok(view) => Ok(Some(Some(Defined::of(what, &view)))),
            Err(failure) if failure.exit == Exit::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// What became of a definition, or would.
fn how(verb: Verb, is_there: bool, dry_run: bool) -> &'static str {
    match (verb, is_there, dry_run) {
        (Verb::Alter, _, false) => "is altered",
        (Verb::Alter, _, true) => "would be altered",
        (_, true, false) => "is replaced",
        (_, true, true) => "would be replaced",
        (_, false, false) => "is defined",
        (_, false, true) => "would be defined",
    }
}

pub(super) fn what(object: Object) -> What {
    match object {
        Object::Process => What::Process,
        Object::Queue | Object::QueueStatus => What::Queue,
    }
}

/// Lays entries over others.
fn lay(under: &mut Vec<Entry>, over: Vec<Entry>) {
    for (name, value) in over {
        under.retain(|(known, _)| *known != name);
        under.push((name, value));
    }
}

fn refused(fault: &Fault) -> Told {
    Told {
        fate: Fate::Refused,
        attribute: fault.path.join("."),
        text: fault.message.clone(),
    }
}

/// Pairs as a layer in the form that the host has it.
fn layer(what: What, pairs: &[(String, String)]) -> Result<Vec<Entry>, Vec<Fault>> {
    let raw = match what {
        What::Queue => QueuePatch::parse_flags(pairs)?.to_raw(),
        What::Process => ProcessPatch::parse_flags(pairs)?.to_raw(),
    };
    let value = serde_json::to_value(&raw).expect("a patch is plain data");
    let entries = what.attributes().iter().filter_map(|info| {
        let value = at(&value, info.name);
        (!value.is_null()).then(|| (info.name, value.clone()))
    });
    Ok(entries.collect())
}

fn understand(command: &Command) -> Understood {
    let mut understood = Understood::default();
    for parameter in &command.parameters {
        let (fate, text) = match attributes::meaning(command.object, parameter) {
            Meaning::Sets(name, value) => {
                let text = format!("{name} = {value}");
                understood.pairs.push((name.to_owned(), value));
                (Fate::Accepted, text)
            }
            Meaning::Switches(switch, is_on) => {
                understood.switches.push((switch, is_on));
                let (name, none) = (switch.attribute, switch.none);
                let text = if is_on {
                    format!("{name} has a level")
                } else {
                    format!("{name} = {none}")
                };
                (Fate::Accepted, text)
            }
            Meaning::Ignored(why) => (Fate::Ignored, why),
            Meaning::Refused(why) => (Fate::Refused, why),
            Meaning::Option(choice) => {
                let (fate, text) = choose(&mut understood, command.verb, choice);
                (fate, text.to_owned())
            }
        };
        understood.told.push(Told {
            fate,
            attribute: parameter.shown(),
            text,
        });
    }
    let says = |name: &str| understood.pairs.iter().any(|(known, _)| known == name);
    let assumes = command.verb == Verb::Define && command.object == Object::Queue;
    if assumes && !says("trigger-control") && understood.like.is_none() {
        understood
            .pairs
            .push(("trigger-control".to_owned(), "off".to_owned()));
        understood.told.push(Told {
            fate: Fate::Assumed,
            attribute: "NOTRIGGER".to_owned(),
            text: "trigger-control = off, the default of MQ".to_owned(),
        });
    }
    understood
}

fn choose(understood: &mut Understood, verb: Verb, choice: Choice) -> (Fate, &'static str) {
    let fits = match choice {
        Choice::Replace | Choice::NoReplace | Choice::Like(_) => verb == Verb::Define,
        Choice::Purge | Choice::NoPurge => verb == Verb::Delete,
    };
    if !fits {
        return (Fate::Refused, "it does not go with this verb; leave it out");
    }
    match choice {
        Choice::Replace => understood.replace = true,
        Choice::Like(name) => understood.like = Some(name),
        Choice::Purge => understood.purge = true,
        Choice::NoReplace | Choice::NoPurge => {}
    }
    (Fate::Accepted, "")
}
