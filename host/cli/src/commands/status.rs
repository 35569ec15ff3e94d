//! `status` and `ledger`: the host in numbers.

use serde_json::Value;

use super::Context;
use crate::client::Request;
use crate::exit::Failure;
use crate::render::table::{Cell, Table, Tone};
use crate::render::time::{format_bytes, format_duration, format_number};
use crate::render::values::{at, fields, plain};

/// Shows the state of the host.
pub(super) fn run(context: &Context) -> Result<(), Failure> {
    let status = context.client.ask(Request::get(&["status"]))?;
    if context.screen.is_json() {
        return context.screen.json(&status);
    }
    context
        .screen
        .headline(&headline(&status, context.client.base()))?;
    context.screen.table(
        &fields(&status, &["name", "version", "phase", "paused", "now"]),
        "",
    )
}

fn headline(status: &Value, base: &str) -> String {
    let name = plain(at(status, "name"));
    let version = plain(at(status, "version"));
    let phase = plain(at(status, "phase"));
    let paused = if at(status, "paused").as_bool() == Some(true) {
        ", paused"
    } else {
        ""
    };
    let up = at(status, "now")
        .as_u64()
        .zip(at(status, "started").as_u64());
    let up = up.map(|(now, started)| format_duration(now.saturating_sub(started)));
    let up = up.map(|up| format!(", up {up}")).unwrap_or_default();
    format!("{name} {version} at {base}: {phase}{paused}{up}")
}

/// Shows what is reserved for tasks.
pub(super) fn ledger(context: &Context) -> Result<(), Failure> {
    let ledger = context.client.ask(Request::get(&["ledger"]))?;
    if context.screen.is_json() {
        return context.screen.json(&ledger);
    }
    context.screen.table(&resources(&ledger), "")?;
    let refused = at(&ledger, "refused").as_u64().unwrap_or_default();
    context.screen.line(&format!(
        "\n{} starts refused so far",
        format_number(refused)
    ))?;
    let waiting = plain(at(&ledger, "waiting"));
    if waiting.is_empty() {
        return Ok(());
    }
    context
        .screen
        .text(&format!("waiting for resources: {waiting}"))
}

fn resources(ledger: &Value) -> Table {
    let mut table = Table::new(&["", ">SLOTS", ">MEMORY", ">FUEL"]);
    let mut line = |name: &str, value: &Value, tone: Tone| {
        let number = |field: &str| at(value, field).as_u64().unwrap_or_default();
        table.row(vec![
            Cell::new(name).tone(tone),
            Cell::new(format_number(number("slots"))),
            Cell::new(format_bytes(number("memory"))),
            Cell::new(format_number(number("fuel"))),
        ]);
    };
    line("capacity", at(ledger, "capacity"), Tone::Strong);
    line("reserved", at(ledger, "reserved"), Tone::Plain);
    for (name, value) in at(ledger, "by-process").as_object().into_iter().flatten() {
        line(&format!("  {name}"), value, Tone::Plain);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_ledger_shows_capacity_and_who_has_what() {
        let one = json!({ "slots": 1, "memory": 67_108_864, "fuel": 10_000_000_000_u64 });
        let ledger = json!({
            "capacity": { "slots": 100, "memory": 1_073_741_824, "fuel": 240_000_000_000_u64 },
            "reserved": one, "by-process": { "route-orders": one },
        });
        assert_eq!(
            resources(&ledger).render(None, false),
            "                SLOTS    MEMORY             FUEL\n\
             capacity          100   1.0 GiB  240 000 000 000\n\
             reserved            1  64.0 MiB   10 000 000 000\n\
             \u{20} route-orders      1  64.0 MiB   10 000 000 000\n"
        );
    }

    #[test]
    fn the_headline_says_how_long_it_is_up() {
        let status = json!({
            "name": "oncue", "version": "0.1.0", "phase": "running", "paused": true,
            "started": 1_000, "now": 191_000,
        });
        assert_eq!(
            headline(&status, "http://h"),
            "oncue 0.1.0 at http://h: running, paused, up 3m 10s"
        );
    }
}
