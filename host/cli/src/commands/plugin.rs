//! `plugin`: what the host serves; with no host, what a component is and whether it would load.

use serde_json::Value;

use super::{Context, done, short_digest};
use crate::args::operations::{PluginArg, PluginCommand};
use crate::client::Request;
use crate::exit::Failure;
use crate::render::table::{Cell, Table, Tone};
use crate::render::values::{at, cell, items, plain};

/// Runs a command about plugins.
pub(super) fn run(context: &Context, command: &PluginCommand) -> Result<(), Failure> {
    match command {
        PluginCommand::List => list(context),
        PluginCommand::Show(args) => show(context, args),
        PluginCommand::Rollback(args) => rollback(context, args),
        PluginCommand::Inspect(args) => crate::offline::inspect(&context.screen, &args.file),
        PluginCommand::Check(args) => {
            crate::offline::check(&context.screen, &context.config, &args.file)
        }
    }
}

fn list(context: &Context) -> Result<(), Failure> {
    let answer = context.client.ask(Request::get(&["plugins"]))?;
    if context.screen.is_json() {
        return context.screen.json(&answer);
    }
    context
        .screen
        .table(&table(&answer), "no plugin is in the plugins directory")
}

fn table(answer: &Value) -> Table {
    let mut table = Table::new(&[
        "PLUGIN", "STATE", "DIGEST", "STYLE", "QUEUES", "FILE", "REASON",
    ]);
    for plugin in items(answer) {
        table.row(vec![
            cell(plugin, "name"),
            state(plugin),
            Cell::new(short_digest(&plain(at(plugin, "digest")))),
            cell(plugin, "style"),
            cell(plugin, "queues"),
            cell(plugin, "file"),
            cell(plugin, "reason"),
        ]);
    }
    table
}

fn state(plugin: &Value) -> Cell {
    let state = plain(at(plugin, "state"));
    let serves = !at(plugin, "digest").is_null();
    match state.as_str() {
        "ready" => Cell::new(state).tone(Tone::Good),
        // The version before the bad one goes on.
        "quarantined" if serves => Cell::new("quarantined, serving on").tone(Tone::Bad),
        "quarantined" => Cell::new(state).tone(Tone::Bad),
        _ => Cell::new(state).tone(Tone::Warn),
    }
}

fn show(context: &Context, args: &PluginArg) -> Result<(), Failure> {
    let view = context
        .client
        .ask(Request::get(&["plugins", &args.plugin]))?;
    if context.screen.is_json() {
        return context.screen.json(&view);
    }
    let reason = match at(&view, "reason").as_str() {
        Some(reason) => format!(": {reason}"),
        None => String::new(),
    };
    let (name, state) = (plain(at(&view, "name")), plain(at(&view, "state")));
    context
        .screen
        .headline(&format!("plugin \"{name}\": {state}{reason}"))?;
    let mut facts = Table::new(&["", ""]);
    for name in ["file", "digest", "style", "process", "queues", "previous"] {
        facts.row(vec![Cell::new(name), cell(&view, name)]);
    }
    for fact in at(&view, "facts").as_array().into_iter().flatten() {
        let part = |index: usize| fact.get(index).map(plain).unwrap_or_default();
        facts.row(vec![Cell::new(part(0)), Cell::new(part(1))]);
    }
    context.screen.table(&facts, "")
}

fn rollback(context: &Context, args: &PluginArg) -> Result<(), Failure> {
    let name = &args.plugin;
    let answer = context
        .client
        .ask(Request::post(&["plugins", name, "rollback"]))?;
    let digest = short_digest(&plain(at(&answer, "digest")));
    let sentence = format!("plugin \"{name}\" serves version {digest} until its file changes");
    done(context, &answer, &sentence)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bad_drop_over_a_good_version_is_told_apart() {
        let answer = json!([
            { "name": "a", "file": "a.wasm", "state": "ready", "digest": "0123456789abcdef",
              "style": "message", "queues": ["a", "b"], "reason": null },
            { "name": "b", "file": "b.wasm", "state": "quarantined", "digest": "ff",
              "style": "message", "queues": ["c"], "reason": "file \"b.wasm\" is no component" },
            { "name": "c", "file": "c.wasm", "state": "quarantined", "digest": null,
              "style": null, "queues": [], "reason": "no" },
        ]);
        let text = table(&answer).render(None, false);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("a       ready                    0123456789ab  message"));
        assert!(lines[2].contains("quarantined, serving on"), "{text}");
        assert!(
            lines[2].ends_with("file \"b.wasm\" is no component"),
            "{text}"
        );
        assert!(lines[3].contains("quarantined  "), "{text}");
    }
}
