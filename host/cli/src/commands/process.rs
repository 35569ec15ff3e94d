//! `process`: list, show, define, alter, delete.

use serde_json::Value;

use super::{Context, attributes, done, short_digest};
use crate::args::definitions::{AlterProcessArgs, DefineProcessArgs, ProcessArg, ProcessCommand};
use crate::client::Request;
use crate::exit::Failure;
use crate::render::table::{Cell, Table, Tone};
use crate::render::values::{at, cell, items, plain};

/// Runs a command about processes.
pub(super) fn run(context: &Context, command: &ProcessCommand) -> Result<(), Failure> {
    match command {
        ProcessCommand::List => list(context),
        ProcessCommand::Show(args) => show(context, args),
        ProcessCommand::Define(args) => define(context, args),
        ProcessCommand::Alter(args) => alter(context, args),
        ProcessCommand::Delete(args) => delete(context, args),
    }
}

fn list(context: &Context) -> Result<(), Failure> {
    let answer = context.client.list("processes", &[], None)?;
    if context.screen.is_json() {
        return context.screen.json(&answer);
    }
    context
        .screen
        .table(&table(&answer), "no process is defined")
}

fn table(answer: &Value) -> Table {
    let mut table = Table::new(&[
        "PROCESS",
        "COMPONENT",
        "DIGEST",
        ">RUNNING",
        "QUEUES",
        "DESCRIPTION",
    ]);
    for process in items(answer) {
        table.row(vec![
            cell(process, "name"),
            component(process),
            Cell::new(short_digest(&plain(at(process, "digest")))),
            cell(process, "running"),
            cell(process, "queues"),
            cell(process, "attributes.description"),
        ]);
    }
    table
}

fn component(process: &Value) -> Cell {
    let state = plain(at(process, "component"));
    if at(process, "paused").as_bool() == Some(true) {
        return Cell::new(format!("{state}, paused")).tone(Tone::Warn);
    }
    let tone = match state.as_str() {
        "ready" => Tone::Good,
        "quarantined" => Tone::Bad,
        _ => Tone::Warn,
    };
    Cell::new(state).tone(tone)
}

fn show(context: &Context, args: &ProcessArg) -> Result<(), Failure> {
    let view = context
        .client
        .ask(Request::get(&["processes", args.process.as_str()]))?;
    if context.screen.is_json() {
        return context.screen.json(&view);
    }
    let name = plain(at(&view, "name"));
    let reason = match at(&view, "component-reason").as_str() {
        Some(reason) => format!(": {reason}"),
        None => String::new(),
    };
    let state = plain(at(&view, "component"));
    context
        .screen
        .headline(&format!("process \"{name}\": component {state}{reason}"))?;
    let mut facts = Table::new(&["", ""]);
    for name in ["digest", "running", "queues", "paused"] {
        facts.row(vec![Cell::new(name), cell(&view, name)]);
    }
    context.screen.table(&facts, "")?;
    warn(context, &view);
    context.screen.line("")?;
    context.screen.table(&attributes(&view), "")
}

/// Says what is accepted and probably not meant.
fn warn(context: &Context, view: &Value) {
    for warning in at(view, "warnings").as_array().into_iter().flatten() {
        context.screen.say(&format!("warning: {}", plain(warning)));
    }
}

fn define(context: &Context, args: &DefineProcessArgs) -> Result<(), Failure> {
    let name = args.process.as_str();
    let patch = args.attributes.patch(&format!("process \"{name}\""), &[])?;
    let answer = context
        .client
        .send(Request::put(&["processes", name], &patch))?;
    let what = if answer.status == 201 {
        "is defined"
    } else {
        "was defined; it is as asked now"
    };
    let view = answer.json()?;
    warn(context, &view);
    done(context, &view, &format!("process \"{name}\" {what}"))
}

fn alter(context: &Context, args: &AlterProcessArgs) -> Result<(), Failure> {
    let name = args.process.as_str();
    let patch = args
        .attributes
        .patch(&format!("process \"{name}\""), &args.reset)?;
    let view = context
        .client
        .ask(Request::patch(&["processes", name], &patch))?;
    warn(context, &view);
    done(context, &view, &format!("process \"{name}\" is altered"))
}

fn delete(context: &Context, args: &ProcessArg) -> Result<(), Failure> {
    let name = args.process.as_str();
    let answer = context.client.ask(Request::delete(&["processes", name]))?;
    done(context, &answer, &format!("process \"{name}\" is deleted"))
}
