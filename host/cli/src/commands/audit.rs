//! `audit`: who changed what, and who was refused.

use std::time::Duration;

use oncue_manager::{Clock as _, SystemClock};
use serde_json::Value;

use super::{Context, short_digest};
use crate::args::token::AuditArgs;
use crate::client::Request;
use crate::exit::Failure;
use crate::render::table::{Cell, Table};
use crate::render::text::escape_line;
use crate::render::time::{format_timestamp, number_of};
use crate::render::values::{at, plain};

/// How often a follower asks for more.
const PERIOD: Duration = Duration::from_secs(1);

/// Shows the log.
pub(super) fn run(context: &Context, args: &AuditArgs) -> Result<(), Failure> {
    let now = SystemClock.now().0;
    let since = args.since.map(|time| now.saturating_sub(time));
    let request = Request::get(&["audit"])
        .query("since", since)
        .query("max", Some(args.max));
    let mut page = context.client.ask(request)?;
    if !args.follow {
        if context.screen.is_json() {
            return context.screen.json(&page);
        }
        return context.screen.table(&table(&page), "nothing is in the log");
    }
    loop {
        for entry in entries(&page) {
            if context.screen.is_json() {
                context.screen.json(entry)?;
            } else {
                context.screen.line(&line(entry))?;
            }
        }
        context.screen.flush()?;
        if at(&page, "more").as_bool() != Some(true) {
            std::thread::sleep(PERIOD);
        }
        let next = plain(at(&page, "next"));
        let request = Request::get(&["audit"]).query("cursor", Some(next));
        page = context.client.ask(request)?;
    }
}

fn entries(page: &Value) -> &[Value] {
    at(page, "entries").as_array().map_or(&[], Vec::as_slice)
}

fn cells(entry: &Value) -> [String; 6] {
    let text = |name: &str| plain(at(entry, name));
    let time = at(entry, "time").as_u64().unwrap_or_default();
    let who = text("identity");
    let who = if who.is_empty() { "-".to_owned() } else { who };
    [
        format_timestamp(time),
        who,
        text("address"),
        text("action"),
        object(entry),
        result(entry),
    ]
}

/// On what: the message within its queue, how many messages of it, the version of a plugin.
fn object(entry: &Value) -> String {
    let object = plain(at(entry, "object"));
    match (
        at(entry, "message").as_str(),
        at(entry, "messages").as_u64(),
    ) {
        (Some(message), _) => format!("{object}/{message}"),
        (None, Some(count)) => format!("{object} ({})", number_of(count, "message")),
        (None, None) => match at(entry, "digest").as_str() {
            Some(digest) => format!("{object} ({})", short_digest(digest)),
            None => object,
        },
    }
}

/// How it ended, and how many refusals before it were not written.
fn result(entry: &Value) -> String {
    let result = plain(at(entry, "result"));
    match at(entry, "unwritten").as_u64() {
        Some(count) => format!("{result} ({count} more before it)"),
        None => result,
    }
}

fn table(page: &Value) -> Table {
    let mut table = Table::new(&["TIME", "IDENTITY", "ADDRESS", "ACTION", "OBJECT", "RESULT"]);
    for entry in entries(page) {
        table.row(cells(entry).into_iter().map(Cell::new).collect());
    }
    table
}

fn line(entry: &Value) -> String {
    escape_line(&cells(entry).join("  "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_is_a_line() {
        let page = json!({ "entries": [
            { "time": 0, "identity": "ops", "address": "10.0.0.1", "action": "queue-alter",
              "object": "orders", "result": "done", "status": 200 },
            { "time": 0, "action": "GET /v1/status", "result": "not-authorized", "unwritten": 7 },
            { "time": 0, "action": "queue-clear", "object": "a", "messages": 3, "result": "done" },
            { "time": 0, "action": "message-remove", "object": "a", "message": "00c0",
              "result": "unknown-message" },
            { "time": 0, "action": "plugin-ready", "object": "echo", "result": "done",
              "digest": "sha256:0123456789abcdef" },
        ]});
        assert_eq!(
            line(&page["entries"][0]),
            "1970-01-01 00:00:00.000Z  ops  10.0.0.1  queue-alter  orders  done"
        );
        let ends = [
            (1, "GET /v1/status    not-authorized (7 more before it)"),
            (2, "queue-clear  a (3 messages)  done"),
            (3, "message-remove  a/00c0  unknown-message"),
            (4, "plugin-ready  echo (sha256:01234)  done"),
        ];
        for (number, end) in ends {
            let line = line(&page["entries"][number]);
            assert!(line.ends_with(end), "{line}");
        }
        let shown = table(&page).render(None, false);
        assert!(
            shown
                .lines()
                .nth(2)
                .is_some_and(|line| line.contains("-  ")),
            "{shown}"
        );
    }
}
