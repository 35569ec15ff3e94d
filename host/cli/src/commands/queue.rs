//! `queue`: list, show, define, alter, delete, clear.

use serde_json::Value;

use super::{Context, attributes, done, messages};
use crate::args::definitions::{
    AlterQueueArgs, ClearQueueArgs, DefineQueueArgs, DeleteQueueArgs, ListQueuesArgs, Order,
    QueueArg, QueueCommand,
};
use crate::client::Request;
use crate::exit::Failure;
use crate::render::table::{Cell, Table, Tone};
use crate::render::time::{format_duration, format_number, format_timestamp};
use crate::render::values::{at, cell, items, plain};

/// Runs a command about queues.
pub(super) fn run(context: &Context, command: &QueueCommand) -> Result<(), Failure> {
    match command {
        QueueCommand::List(args) => list(context, args),
        QueueCommand::Show(args) => show(context, args),
        QueueCommand::Define(args) => define(context, args),
        QueueCommand::Alter(args) => alter(context, args),
        QueueCommand::Delete(args) => delete(context, args),
        QueueCommand::Clear(args) => clear(context, args),
    }
}

fn list(context: &Context, args: &ListQueuesArgs) -> Result<(), Failure> {
    let query = [
        ("search", args.search.as_deref()),
        ("hide-empty", args.hide_empty.then_some("true")),
        ("sort", Some(args.sort.word())),
        ("order", args.order.map(Order::word)),
    ];
    let most = args.max.map(|max| max as usize);
    let answer = context.client.list("queues", &query, most)?;
    if context.screen.is_json() {
        return context.screen.json(&answer);
    }
    let defined = at(&answer, "defined").as_u64().unwrap_or_default();
    let none = match defined {
        0 => "no queue is defined".to_owned(),
        1 => "the only queue is not as asked".to_owned(),
        defined => format!("none of {} queues is as asked", format_number(defined)),
    };
    context.screen.table(&table(&answer), &none)?;
    let matching = at(&answer, "matching").as_u64().unwrap_or_default();
    let shown = items(&answer).len() as u64;
    if shown < matching {
        let (shown, matching) = (format_number(shown), format_number(matching));
        let said = format!("{shown} of {matching} queues; --max shows more");
        context.screen.say(&said);
    }
    Ok(())
}

fn table(answer: &Value) -> Table {
    let mut table = Table::new(&[
        "QUEUE", ">DEPTH", ">RUNNING", "TRIGGER", "STATE", ">OLDEST", "PROCESS",
    ]);
    for queue in items(answer) {
        let age = at(queue, "oldest-age")
            .as_u64()
            .map(format_duration)
            .unwrap_or_default();
        table.row(vec![
            cell(queue, "name"),
            cell(queue, "depth"),
            cell(queue, "running"),
            trigger(queue),
            state(queue),
            Cell::new(age),
            cell(queue, "attributes.process"),
        ]);
    }
    table
}

/// The trigger's type, and its control when it is not on.
fn trigger(queue: &Value) -> Cell {
    let kind = plain(at(queue, "attributes.trigger"));
    match at(queue, "control").as_str() {
        Some("on") | None => Cell::new(kind),
        Some(control) => Cell::new(format!("{kind}, {control}")).tone(Tone::Warn),
    }
}

/// The verdict in a word or a reason.
fn state(queue: &Value) -> Cell {
    match (at(queue, "verdict").as_str(), at(queue, "reason").as_str()) {
        (Some("fire"), _) => Cell::new("fire").tone(Tone::Good),
        (_, Some("empty")) => Cell::new("empty"),
        (_, Some(reason)) => Cell::new(reason).tone(Tone::Warn),
        (verdict, None) => Cell::new(verdict.unwrap_or_default()),
    }
}

fn show(context: &Context, args: &QueueArg) -> Result<(), Failure> {
    let view = context
        .client
        .ask(Request::get(&["queues", args.queue.as_str()]))?;
    if context.screen.is_json() {
        return context.screen.json(&view);
    }
    context.screen.headline(&headline(&view))?;
    context.screen.table(&counts(&view), "")?;
    context.screen.line("")?;
    context.screen.table(&attributes(&view), "")
}

fn headline(view: &Value) -> String {
    let name = plain(at(view, "name"));
    match at(view, "reason-text").as_str() {
        Some(reason) => format!("queue \"{name}\" is held: {reason}"),
        None => format!("queue \"{name}\": {}", plain(at(view, "verdict"))),
    }
}

/// The numbers of a queue; states that no message is in are left out.
fn counts(view: &Value) -> Table {
    let mut table = Table::new(&["", ""]);
    for name in [
        "depth",
        "counted",
        "running",
        "owed",
        "control",
        "waiting-inputs",
        "oldest-age",
    ] {
        if !at(view, name).is_null() {
            table.row(vec![Cell::new(name), cell(view, name)]);
        }
    }
    if let Some(next) = at(view, "next-scheduled").as_u64() {
        table.row(vec![
            Cell::new("next-scheduled"),
            Cell::new(format_timestamp(next)),
        ]);
    }
    for name in ["start-owed", "paused"] {
        if at(view, name).as_bool() == Some(true) {
            table.row(vec![Cell::new(name), Cell::new("yes").tone(Tone::Warn)]);
        }
    }
    let Some(counts) = view.get("counts").and_then(Value::as_object) else {
        return table;
    };
    for (name, value) in counts {
        let number = match value {
            Value::Array(levels) => levels.iter().filter_map(Value::as_i64).sum(),
            value => value.as_i64().unwrap_or_default(),
        };
        if number != 0 {
            table.row(vec![
                Cell::new(name.replace('_', "-")),
                Cell::new(number.to_string()),
            ]);
        }
    }
    table
}

fn define(context: &Context, args: &DefineQueueArgs) -> Result<(), Failure> {
    let name = args.queue.as_str();
    let patch = args.attributes.patch(&format!("queue \"{name}\""), &[])?;
    let answer = context
        .client
        .send(Request::put(&["queues", name], &patch))?;
    let what = if answer.status == 201 {
        "is defined"
    } else {
        "was defined; it is as asked now"
    };
    done(
        context,
        &answer.json()?,
        &format!("queue \"{name}\" {what}"),
    )
}

fn alter(context: &Context, args: &AlterQueueArgs) -> Result<(), Failure> {
    let name = args.queue.as_str();
    let patch = args
        .attributes
        .patch(&format!("queue \"{name}\""), &args.reset)?;
    let answer = context
        .client
        .ask(Request::patch(&["queues", name], &patch))?;
    done(context, &answer, &format!("queue \"{name}\" is altered"))
}

fn delete(context: &Context, args: &DeleteQueueArgs) -> Result<(), Failure> {
    let name = args.queue.as_str();
    if args.force {
        let what = format!("deleting queue \"{name}\" with all its messages");
        context.screen.confirm(&what, name, args.yes)?;
    }
    let request = Request::delete(&["queues", name]);
    let answer = context
        .client
        .ask(request.query("force", args.force.then_some(true)))?;
    done(context, &answer, &format!("queue \"{name}\" is deleted"))
}

fn clear(context: &Context, args: &ClearQueueArgs) -> Result<(), Failure> {
    let name = args.queue.as_str();
    let what = format!("removing all messages of queue \"{name}\"");
    context.screen.confirm(&what, name, args.yes)?;
    context
        .screen
        .progress(|| format!("clearing queue \"{name}\" ..."));
    let answer = context
        .client
        .ask(Request::post(&["queues", name, "clear"]))?;
    let count = messages(at(&answer, "cleared"));
    done(
        context,
        &answer,
        &format!("queue \"{name}\": {count} removed"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view() -> Value {
        json!({
            "name": "orders", "depth": 1_250, "counted": 1_250, "running": 1, "owed": 0,
            "verdict": "hold", "reason": "at-max-tasks", "reason-text": "1 of 1 tasks run",
            "control": "off by depth", "start-owed": true, "paused": false, "waiting-inputs": 0,
            "oldest-age": 4_200,
            "counts": { "ready": [1_249, 0, 0], "in-unit": 1, "leased": 0, "bytes": 99 },
            "attributes": { "process": "route-orders", "trigger": "depth" },
        })
    }

    #[test]
    fn the_list_tells_depth_and_state() {
        assert_eq!(
            table(&json!([view()])).render(None, false),
            "QUEUE   DEPTH  RUNNING  TRIGGER              STATE         OLDEST  PROCESS\n\
             orders  1 250        1  depth, off by depth  at-max-tasks    4.2s  route-orders\n"
        );
    }

    #[test]
    fn states_without_messages_are_left_out() {
        let text = counts(&view()).render(None, false);
        assert!(text.contains("ready           1249"), "{text}");
        assert!(text.contains("in-unit         1"), "{text}");
        assert!(text.contains("start-owed      yes"), "{text}");
        assert!(!text.contains("leased"), "{text}");
        assert_eq!(
            headline(&view()),
            "queue \"orders\" is held: 1 of 1 tasks run"
        );
    }
}
