//! `alarms`: what a person should know of.

use serde_json::Value;

use super::Context;
use crate::client::Request;
use crate::exit::Failure;
use crate::render::table::{Cell, Table, Tone};
use crate::render::time::{format_number, format_timestamp};
use crate::render::values::{at, items, plain};

/// Lists the alarms that are raised.
pub(super) fn run(context: &Context) -> Result<(), Failure> {
    let answer = context.client.ask(Request::get(&["alarms"]))?;
    if context.screen.is_json() {
        return context.screen.json(&answer);
    }
    context
        .screen
        .table(&table(&answer), "no alarm is raised")?;
    let active = at(&answer, "active").as_u64().unwrap_or_default();
    let listed = items(at(&answer, "alarms")).len() as u64;
    if active > listed {
        let more = format_number(active - listed);
        context
            .screen
            .line(&format!("\n{more} more are not listed"))?;
    }
    Ok(())
}

fn table(answer: &Value) -> Table {
    let mut table = Table::new(&["SINCE", "ALARM", "WHAT", "CURE"]);
    for alarm in items(at(answer, "alarms")) {
        let tone = match at(alarm, "needs-a-person").as_bool() {
            Some(true) => Tone::Bad,
            _ => Tone::Warn,
        };
        let since = at(alarm, "since").as_u64().map(format_timestamp);
        table.row(vec![
            Cell::new(since.unwrap_or_default()),
            Cell::new(plain(at(alarm, "alarm"))).tone(tone),
            Cell::new(plain(at(alarm, "detail"))),
            Cell::new(plain(at(alarm, "cure"))),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_alarm_stands_with_its_cure() {
        let answer = json!({ "active": 1, "alarms": [{
            "alarm": "queue-full", "queue": "q", "plugin": null, "since": 1_000,
            "detail": "queue \"q\" is full", "cure": "drain it", "needs-a-person": false,
        }]});
        let text = table(&answer).render(None, false);
        assert!(
            text.contains("queue-full  queue \"q\" is full  drain it"),
            "{text}"
        );
    }
}
