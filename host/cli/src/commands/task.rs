//! `tasks` and `task show`: what ran, how it ended, what it cost.

use serde_json::Value;

use super::{Context, short_digest};
use crate::args::operations::{TaskCommand, TasksArgs};
use crate::client::Request;
use crate::exit::Failure;
use crate::render::table::{Cell, Table, Tone};
use crate::render::text::{cut_line, last_words};
use crate::render::time::{format_bytes, format_duration, format_number, format_timestamp};
use crate::render::values::{at, cell, items, plain};

/// Longest detail in a list, in characters.
const DETAIL_LENGTH: usize = 60;

/// Lists tasks.
pub(super) fn list(context: &Context, args: &TasksArgs) -> Result<(), Failure> {
    let request = Request::get(&["tasks"])
        .query("queue", args.queue.as_ref())
        .query("outcome", args.outcome.as_ref())
        .query("failed", args.failed.then_some(true))
        .query("before", args.before.as_ref())
        .query("max", Some(args.max));
    let answer = context.client.ask(request)?;
    if context.screen.is_json() {
        return context.screen.json(&answer);
    }
    let filtered = args.queue.is_some() || args.outcome.is_some() || args.before.is_some();
    let none = if filtered || args.failed {
        "no such task is recorded"
    } else {
        "no task has run yet"
    };
    context.screen.table(&table(&answer), none)
}

fn table(answer: &Value) -> Table {
    let mut table = Table::new(&[
        ">TASK", "QUEUE", "OUTCOME", ">OK", ">FAILED", "STARTED", ">TOOK", ">LATENCY", "DETAIL",
    ]);
    for task in items(answer) {
        let detail = plain(at(task, "detail"));
        table.row(vec![
            Cell::new(plain(at(task, "id"))),
            cell(task, "queue"),
            outcome(at(task, "outcome")),
            cell(task, "committed"),
            cell(task, "failed"),
            cell(task, "started"),
            Cell::new(duration(task)),
            cell(task, "start-latency"),
            Cell::new(cut_line(last_words(&detail), DETAIL_LENGTH)),
        ]);
    }
    table
}

fn outcome(outcome: &Value) -> Cell {
    match outcome.as_str() {
        None => Cell::new("running").tone(Tone::Strong),
        Some("committed") => Cell::new("committed").tone(Tone::Good),
        Some(word @ ("no-progress" | "released" | "deferred" | "cancelled")) => Cell::new(word),
        Some(word) => Cell::new(word).tone(Tone::Bad),
    }
}

fn duration(task: &Value) -> String {
    let ends = at(task, "ended").as_u64().zip(at(task, "started").as_u64());
    ends.map(|(ended, started)| format_duration(ended.saturating_sub(started)))
        .unwrap_or_default()
}

/// Shows or exports one task.
pub(super) fn run(context: &Context, command: &TaskCommand) -> Result<(), Failure> {
    let args = match command {
        TaskCommand::Show(args) => args,
        TaskCommand::Export(args) => return super::export::run(context, args),
    };
    let task = context.client.ask(Request::get(&["tasks", &args.task]))?;
    let screen = &context.screen;
    if screen.is_json() {
        return screen.json(&task);
    }
    screen.headline(&headline(&task))?;
    screen.table(&facts(&task), "")?;
    let messages = messages(&task);
    if !messages.is_empty() {
        screen.line("")?;
        screen.table(&messages, "")?;
    }
    let log = plain(at(&task, "cost.log-tail"));
    let cut = at(&task, "cost.log-cut").as_u64().unwrap_or_default();
    if cut > 0 {
        section(
            context,
            &format!("log ({} cut before this):", format_bytes(cut)),
            &log,
        )?;
    } else {
        section(context, "log:", &log)?;
    }
    section(context, "backtrace:", &plain(at(&task, "backtrace")))
}

/// Text of several lines under a title of its own; nothing if there is none.
pub(super) fn section(context: &Context, title: &str, text: &str) -> Result<(), Failure> {
    if text.is_empty() {
        return Ok(());
    }
    context.screen.line("")?;
    context.screen.headline(title)?;
    context.screen.text(text.trim_start_matches('\n'))
}

fn headline(task: &Value) -> String {
    let id = plain(at(task, "id"));
    let outcome = at(task, "outcome").as_str().unwrap_or("running");
    match at(task, "detail").as_str() {
        Some(detail) => format!("task {id}: {outcome}: {detail}"),
        None => format!("task {id}: {outcome}"),
    }
}

fn facts(task: &Value) -> Table {
    let mut table = Table::new(&["", ""]);
    let mut fact = |name: &str, text: String| {
        if !text.is_empty() {
            table.row(vec![Cell::new(name), Cell::new(text)]);
        }
    };
    let number = |path: &str| at(task, path).as_u64();
    // A task that ran has used memory. Of one that failed before a restart only the failure was
    // kept: what is not known of it is left out.
    let is_whole = number("cost.peak-memory") != Some(0);
    let measured = |path: &str| number(path).filter(|_| is_whole);
    fact("queue", plain(at(task, "queue")));
    fact("process", plain(at(task, "process")));
    let plugin = plain(at(task, "plugin"));
    fact(
        "plugin",
        format!("{plugin} {}", short_digest(&plain(at(task, "digest")))),
    );
    fact("steps", plain(at(task, "steps")));
    fact(
        "started",
        number("started").map(format_timestamp).unwrap_or_default(),
    );
    fact(
        "ended",
        number("ended").map(format_timestamp).unwrap_or_default(),
    );
    fact("took", duration(task));
    fact(
        "start latency",
        measured("start-latency")
            .map(format_duration)
            .unwrap_or_default(),
    );
    fact(
        "committed",
        number("committed").map(format_number).unwrap_or_default(),
    );
    fact(
        "failed",
        number("failed").map(format_number).unwrap_or_default(),
    );
    for put in at(task, "puts").as_array().into_iter().flatten() {
        let queue = plain(at(put, "queue"));
        let messages = super::messages(at(put, "messages"));
        fact("put", format!("{queue} ({messages})"));
    }
    fact(
        "fuel",
        number("cost.fuel").map(format_number).unwrap_or_default(),
    );
    fact(
        "peak memory",
        measured("cost.peak-memory")
            .map(format_bytes)
            .unwrap_or_default(),
    );
    let micros = measured("cost.guest-micros");
    fact("guest time", micros.map(format_micros).unwrap_or_default());
    for refusal in at(task, "cost.refused").as_array().into_iter().flatten() {
        let times = match at(refusal, "times").as_u64() {
            Some(1) => "once".to_owned(),
            times => format!("{} times", times.unwrap_or_default()),
        };
        let what = plain(at(refusal, "what"));
        fact("refused", format!("{what} ({times})"));
    }
    table
}

fn format_micros(micros: u64) -> String {
    if micros < 1_000 {
        format!("{micros}us")
    } else {
        format_duration(micros / 1_000)
    }
}

fn messages(task: &Value) -> Table {
    let mut table = Table::new(&["MESSAGE", "OUTCOME", "DETAIL"]);
    for message in at(task, "messages").as_array().into_iter().flatten() {
        table.row(vec![
            cell(message, "id"),
            outcome(at(message, "outcome")),
            cell(message, "detail"),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task() -> Value {
        json!({
            "id": 17, "queue": "orders", "process": "route-orders", "plugin": "route-orders",
            "digest": "0123456789abcdef0123", "outcome": "trapped",
            "detail": "wasm trap: \u{1b}[31munreachable", "backtrace": "0: f\n1: g",
            "started": 1_000, "ended": 1_042, "committed": 3, "failed": 1,
            "messages": [{ "id": "00", "outcome": "trapped", "detail": "unreachable" }],
            "puts": [{ "queue": "invoices", "messages": 3 }],
            "steps": [10, 12, 14, 50], "start-latency": 2,
            "cost": { "fuel": 123_456, "peak-memory": 1_114_112, "guest-micros": 730,
                      "log-tail": "hello", "log-cut": 0,
                      "refused": [{ "what": "put secret", "times": 2 }] },
        })
    }

    #[test]
    fn a_task_is_a_line_of_the_list() {
        let text = table(&json!([task()])).render(None, false);
        let line = text.lines().nth(1).expect("a line");
        assert_eq!(
            line,
            "  17  orders  trapped   3       1  1970-01-01 00:00:01.000Z  42ms      2ms  \
             wasm trap: \\u{1b}[31munreachable"
        );
    }

    #[test]
    fn a_task_shows_its_cost_and_refusals() {
        let text = facts(&task()).render(None, false);
        for wanted in [
            "plugin         route-orders 0123456789ab",
            "steps          10, 12, 14, 50",
            "put            invoices (3 messages)",
            "fuel           123 456",
            "peak memory    1.0 MiB",
            "guest time     730us",
            "refused        put secret (2 times)",
        ] {
            assert!(text.contains(wanted), "{text}");
        }
        assert_eq!(messages(&task()).render(None, false).lines().count(), 2);
        let kept = json!({
            "id": 17, "outcome": "trapped", "start-latency": 0, "steps": [],
            "cost": { "fuel": 9, "peak-memory": 0, "guest-micros": 0 },
        });
        let text = facts(&kept).render(None, false);
        assert!(text.contains("fuel") && !text.contains("latency"), "{text}");
        assert!(!text.contains("memory") && !text.contains("time"), "{text}");
    }
}
