//! `export`: definitions on stdout.

use serde_json::{Map, Value};

use super::written::{HEAD, HEAD_ALL, table};
use super::{Context, Defined, Entry, What, defined, nested};
use crate::args::files::ExportArgs;
use crate::exit::Failure;

/// Writes definitions.
pub(in crate::commands) fn run(context: &Context, args: &ExportArgs) -> Result<(), Failure> {
    let all = defined(context)?;
    let chosen: Vec<(&Defined, Vec<Entry>)> = all
        .iter()
        .filter(|defined| args.all || defined.is_the_operators())
        .map(|defined| (defined, entries(defined, args.all)))
        .collect();
    let screen = &context.screen;
    if screen.is_json() {
        return screen.json(&as_json(&chosen));
    }
    let mut text = if args.all { HEAD_ALL } else { HEAD }.to_owned();
    for (defined, entries) in &chosen {
        text.push_str(&table(defined, entries, args.all));
    }
    screen.raw(text.as_bytes())?;
    if chosen.is_empty() {
        screen.say("nothing is defined by an operator; --all shows what manifests define");
    }
    Ok(())
}

fn entries(defined: &Defined, all: bool) -> Vec<Entry> {
    if all {
        let entries = defined.holds.iter().map(|(entry, _)| entry.clone());
        entries.collect()
    } else {
        defined.overlay()
    }
}

fn as_json(chosen: &[(&Defined, Vec<Entry>)]) -> Value {
    let mut json = Map::new();
    for what in What::ALL {
        let of_kind = chosen.iter().filter(|(defined, _)| defined.what == what);
        let tables =
            of_kind.map(|(defined, entries)| (defined.name.clone(), nested(entries.iter())));
        json.insert(what.word().to_owned(), Value::Object(tables.collect()));
    }
    Value::Object(json)
}
