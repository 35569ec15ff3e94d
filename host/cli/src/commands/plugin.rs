//! `plugin`: what the host serves; with no host, what a component is and whether it would load.

use oncue_manager::reload::NEXT_VERSION;
use serde_json::Value;

use super::{Context, done, short_digest};
use crate::args::operations::{PluginArg, PluginCommand};
use crate::client::Request;
use crate::exit::Failure;
use crate::render::table::{Cell, Table, Tone};
use crate::render::values::{at, cell, items, plain};

/// Between the faults of one reason.
pub(crate) const NEXT_FAULT: &str = "; also ";

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
        PluginCommand::Componentize(args) => super::component::componentize(context, args),
        PluginCommand::Pack(args) => super::component::pack(context, args),
    }
}

fn list(context: &Context) -> Result<(), Failure> {
    let answer = context.client.list("plugins", &[], None)?;
    if context.screen.is_json() {
        return context.screen.json(&answer);
    }
    context.screen.table(
        &table(&answer),
        "no plugin is known yet; drop one into the plugins directory",
    )
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
            Cell::new(reason(plugin)),
        ]);
    }
    table
}

/// Why it does not serve, in a line: of several faults the first, and where the others are.
fn reason(plugin: &Value) -> String {
    let reason = plain(at(plugin, "reason"));
    let name = plain(at(plugin, "name"));
    if has_fact(plugin, NEXT_VERSION) {
        // What was wrong with the file before needs no cure any more.
        return String::new();
    }
    let mut faults = reason.split(NEXT_FAULT);
    let first = faults.next().unwrap_or_default();
    match faults.count() {
        0 if reason.is_empty() && at(plugin, "state") == "missing" => {
            "its file is not there; drop it".to_owned()
        }
        0 => reason,
        more => format!("{first}; {more} more: oncue plugin show {name}"),
    }
}

fn state(plugin: &Value) -> Cell {
    let tone = match plain(at(plugin, "state")).as_str() {
        "ready" => Tone::Good,
        "quarantined" => Tone::Bad,
        _ => Tone::Warn,
    };
    Cell::new(state_text(plugin)).tone(tone)
}

fn state_text(plugin: &Value) -> String {
    let state = plain(at(plugin, "state"));
    let mut text = state;
    if text == "quarantined" && !at(plugin, "digest").is_null() {
        // The version before the bad one goes on.
        text.push_str(", serving on");
    }
    for (fact, told) in [("pinned", "pinned"), (NEXT_VERSION, "compiling the next")] {
        if has_fact(plugin, fact) {
            text.push_str(", ");
            text.push_str(told);
        }
    }
    text
}

fn has_fact(plugin: &Value, name: &str) -> bool {
    let mut facts = at(plugin, "facts").as_array().into_iter().flatten();
    facts.any(|fact| fact.get(0).and_then(Value::as_str) == Some(name))
}

fn show(context: &Context, args: &PluginArg) -> Result<(), Failure> {
    let view = context
        .client
        .ask(Request::get(&["plugins", &args.plugin]))?;
    if context.screen.is_json() {
        return context.screen.json(&view);
    }
    let name = plain(at(&view, "name"));
    let state = state_text(&view);
    context
        .screen
        .headline(&format!("plugin \"{name}\": {state}"))?;
    for fault in plain(at(&view, "reason")).split(NEXT_FAULT) {
        if !fault.is_empty() {
            context.screen.text(&format!("  {fault}"))?;
        }
    }
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
        let held = json!({
            "state": "ready", "facts": [["size", "1"], ["pinned", "by"], ["next version", "is"]],
        });
        assert_eq!(state_text(&held), "ready, pinned, compiling the next");
        let mended = json!({
            "state": "quarantined", "digest": "ff", "reason": "of the file before",
            "facts": [["next version", "is"]],
        });
        assert_eq!(
            state_text(&mended),
            "quarantined, serving on, compiling the next"
        );
        assert_eq!(reason(&mended), "");
    }

    #[test]
    fn a_list_tells_the_first_fault() {
        let check = |state: &str, text: Option<&str>, told: &str| {
            let plugin = json!({ "name": "a", "state": state, "reason": text });
            assert_eq!(reason(&plugin), told);
        };
        check("ready", None, "");
        check("missing", None, "its file is not there; drop it");
        check("quarantined", Some("bad [x]"), "bad [x]");
        check(
            "quarantined",
            Some("one; also two; also three [x]"),
            "one; 2 more: oncue plugin show a",
        );
    }
}
