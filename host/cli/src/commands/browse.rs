//! `browse`: the messages of a queue, left where they are.

use serde_json::Value;

use super::Context;
use crate::args::messages::BrowseArgs;
use crate::client::Request;
use crate::exit::Failure;
use crate::render::table::{Cell, Table, Tone};
use crate::render::text::{cut_line, last_words};
use crate::render::values::{at, cell, items, plain};

/// Longest text of a putter in a column, in characters.
const TEXT_LENGTH: usize = 40;

/// Longest detail of a dead letter, in characters.
pub(super) const DETAIL_LENGTH: usize = 60;

/// Shows one page of messages.
pub(super) fn run(context: &Context, args: &BrowseArgs) -> Result<(), Failure> {
    let name = args.queue.as_str();
    let request = Request::get(&["queues", name, "messages"])
        .query("max", Some(args.max))
        .query("cursor", args.cursor.as_ref())
        .query("ready", args.ready.then_some(true));
    let page = context.client.ask(request)?;
    if context.screen.is_json() {
        return context.screen.json(&page);
    }
    let none = match (&args.cursor, args.ready) {
        (Some(_), _) => format!("queue \"{name}\" has no more messages"),
        (None, true) => format!("queue \"{name}\" has no message that is ready"),
        (None, false) => format!("queue \"{name}\" is empty"),
    };
    context.screen.table(&table(&page), &none)?;
    if let Some(next) = at(&page, "next").as_str() {
        context
            .screen
            .say(&format!("more messages: --cursor {next}"));
    }
    Ok(())
}

/// Messages as a table; columns that nobody fills are left out.
pub(super) fn table(page: &Value) -> Table {
    let messages = items(page);
    let has = |field: &str| messages.iter().any(|message| !at(message, field).is_null());
    let (groups, correlations) = (has("group"), has("correlation-id"));
    let dead = has("dead-letter");
    let mut titles = vec!["MESSAGE", "STATE", ">PRI", "PUT", ">SIZE", ">BACKOUTS"];
    titles.extend(groups.then_some("GROUP"));
    titles.extend(correlations.then_some("CORRELATION-ID"));
    titles.extend(dead.then_some("REASON"));
    titles.extend(dead.then_some("FROM"));
    titles.extend(dead.then_some("DETAIL"));
    let mut table = Table::new(&titles);
    for message in messages {
        let cut = |path: &str| Cell::new(cut_line(&plain(at(message, path)), TEXT_LENGTH));
        let mut row = vec![
            cell(message, "id"),
            state(at(message, "state")),
            cell(message, "priority"),
            cell(message, "put-time"),
            cell(message, "size"),
            cell(message, "backout-count"),
        ];
        row.extend(groups.then(|| cut("group")));
        row.extend(correlations.then(|| cut("correlation-id")));
        row.extend(dead.then(|| reason(message)));
        row.extend(dead.then(|| cell(message, "dead-letter.queue")));
        row.extend(dead.then(|| detail(message)));
        table.row(row);
    }
    table
}

fn state(state: &Value) -> Cell {
    match state.as_str() {
        Some("ready") => Cell::new("ready"),
        Some("parked") => Cell::new("parked").tone(Tone::Bad),
        other => Cell::new(other.unwrap_or_default()).tone(Tone::Warn),
    }
}

/// Why the last attempt at a dead letter failed.
fn detail(message: &Value) -> Cell {
    let detail = plain(at(message, "dead-letter.detail"));
    Cell::new(cut_line(last_words(&detail), DETAIL_LENGTH))
}

/// The reason of a dead letter, with the last attempt's outcome.
fn reason(message: &Value) -> Cell {
    let reason = plain(at(message, "dead-letter.reason"));
    match at(message, "dead-letter.outcome").as_str() {
        Some(outcome) => Cell::new(format!("{reason}, {outcome}")),
        None => Cell::new(reason),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_that_nobody_fills_are_left_out() {
        let plain = json!({
            "id": "a1", "state": "ready", "priority": 5, "put-time": 0, "size": 12,
            "backout-count": 0,
        });
        let text = table(&json!({ "messages": [plain] })).render(None, false);
        assert_eq!(
            text,
            "MESSAGE  STATE  PRI  PUT                       SIZE  BACKOUTS\n\
             a1       ready    5  1970-01-01 00:00:00.000Z  12 B         0\n"
        );
    }

    #[test]
    fn a_dead_letter_tells_why_and_from_where() {
        let dead = json!({
            "id": "a1", "state": "ready", "priority": 0, "put-time": 0, "size": 1,
            "backout-count": 3, "dead-letter": {
                "reason": "backout", "outcome": "trapped", "queue": "orders",
                "detail": "unreachable\u{1b}",
            },
        });
        let text = table(&json!({ "messages": [dead], "next": "c" })).render(None, false);
        assert!(
            text.ends_with("backout, trapped  orders  unreachable\\u{1b}\n"),
            "{text}"
        );
    }
}
