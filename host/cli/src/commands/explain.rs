//! `explain`: the verdict on top, then each condition of the trigger rule with its present value
//! and where the value comes from; the one that decides is marked.

use serde_json::Value;

use super::Context;
use crate::args::operations::ExplainArgs;
use crate::client::Request;
use crate::exit::Failure;
use crate::render::table::{Cell, Table, Tone};
use crate::render::time::{format_duration, format_timestamp};
use crate::render::values::{at, cell, plain};

/// Before the condition that holds the queue.
const MARK: &str = "->";

/// Explains a queue.
pub(super) fn run(context: &Context, args: &ExplainArgs) -> Result<(), Failure> {
    let request = Request::get(&["queues", args.queue.as_str(), "explain"]);
    let explanation = context.client.ask(request)?;
    if context.screen.is_json() {
        return context.screen.json(&explanation);
    }
    context
        .screen
        .headline(&plain(at(&explanation, "sentence")))?;
    context.screen.line("")?;
    context.screen.table(&conditions(&explanation), "")?;
    context.screen.line("")?;
    context.screen.text(&footer(&explanation))
}

fn conditions(explanation: &Value) -> Table {
    let mut table = Table::new(&["", "CONDITION", "", "VALUE", "FROM"]);
    for condition in at(explanation, "conditions")
        .as_array()
        .into_iter()
        .flatten()
    {
        let holds = at(condition, "holds").as_bool() == Some(true);
        // At the verdict "fire" a condition may decide too: only what holds the queue is marked.
        let is_marked = at(condition, "decides").as_bool() == Some(true) && !holds;
        let tone = if is_marked { Tone::Bad } else { Tone::Plain };
        let verdict = match (holds, is_marked) {
            (true, _) => Cell::new("ok").tone(Tone::Good),
            (false, true) => Cell::new("no").tone(Tone::Bad),
            (false, false) => Cell::new("no").tone(Tone::Warn),
        };
        table.row(vec![
            Cell::new(if is_marked { MARK } else { "" }).tone(tone),
            cell(condition, "name").tone(tone),
            verdict,
            cell(condition, "value").tone(tone),
            cell(condition, "source"),
        ]);
    }
    table
}

/// When it last fired and by which steps, and when it is looked at again.
fn footer(explanation: &Value) -> String {
    let now = at(explanation, "now").as_u64();
    let mut lines = Vec::new();
    match at(explanation, "last-fired").as_u64() {
        Some(fired) => {
            let ago = now
                .map(|now| now.saturating_sub(fired))
                .map(format_duration);
            let ago = ago.map(|ago| format!(" ({ago} ago)")).unwrap_or_default();
            lines.push(format!("last fired: {}{ago}", format_timestamp(fired)));
        }
        None => lines.push("last fired: never since the host started".to_owned()),
    }
    let steps = plain(at(explanation, "last-trace"));
    if !steps.is_empty() {
        lines.push(format!("last steps: {steps}"));
    }
    for (field, what) in [
        ("next-check", "next check"),
        ("next-scheduled", "next scheduled put"),
    ] {
        if let Some(next) = at(explanation, field).as_u64() {
            let left = now.map(|now| next.saturating_sub(now)).map(format_duration);
            let left = left.map(|left| format!(" (in {left})")).unwrap_or_default();
            lines.push(format!("{what}: {}{left}", format_timestamp(next)));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn explanation() -> Value {
        json!({
            "queue": "orders", "verdict": "hold", "reason": "paused",
            "sentence": "queue \"orders\" is held: the host is paused",
            "conditions": [
                { "name": "messages count", "holds": true, "decides": false,
                  "value": "12", "source": "queue" },
                { "name": "not paused", "holds": false, "decides": true,
                  "value": "host paused", "source": "operator" },
                { "name": "process there", "holds": false, "decides": false,
                  "value": "none", "source": "manifest" },
            ],
            "last-trace": [10, 16], "last-fired": 60_000, "next-check": 62_000, "now": 61_000,
        })
    }

    #[test]
    fn the_one_condition_that_holds_it_is_marked() {
        assert_eq!(
            conditions(&explanation()).render(None, false),
            "    CONDITION           VALUE        FROM\n    \
             messages count  ok  12           queue\n\
             ->  not paused      no  host paused  operator\n    \
             process there   no  none         manifest\n"
        );
    }

    #[test]
    fn the_footer_tells_when() {
        assert_eq!(
            footer(&explanation()),
            "last fired: 1970-01-01 00:01:00.000Z (1.0s ago)\nlast steps: 10, 16\n\
             next check: 1970-01-01 00:01:02.000Z (in 1.0s)"
        );
        assert_eq!(
            footer(&json!({})),
            "last fired: never since the host started"
        );
    }
}
