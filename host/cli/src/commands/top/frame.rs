//! One look at a host, and how it is shown: a head, alarms, queues, running tasks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::args::top::Sort;
use crate::client::{Client, Request};
use crate::exit::{Exit, Failure};
use crate::render::table::{Cell, Table, Tone};
use crate::render::time::{format_bytes, format_duration, format_number};
use crate::render::values::{at, cell, items, plain};

/// Running tasks that are shown.
const TASKS: usize = 10;

/// What was seen at one time.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) status: Value,
    pub(super) ledger: Value,
    pub(super) queues: Value,
    pub(super) tasks: Value,
    /// Of hosts that have alarms.
    pub(super) alarms: Value,
}

impl Look {
    /// Asks the host.
    pub(super) fn take(client: &Client) -> Result<Self, Failure> {
        let ask = |path: &str| client.ask(Request::get(&[path]));
        let alarms = match ask("alarms") {
            Err(failure) if failure.exit == Exit::NotFound => Value::Null,
            alarms => alarms?,
        };
        Ok(Self {
            status: ask("status")?,
            ledger: ask("ledger")?,
            queues: client.list("queues", &[], None)?,
            tasks: client.ask(Request::get(&["tasks"]).query("max", Some(200)))?,
            alarms,
        })
    }

    fn now(&self) -> u64 {
        at(&self.status, "now").as_u64().unwrap_or_default()
    }

    fn depths(&self) -> BTreeMap<&str, u64> {
        let of = |queue: &'_ Value| at(queue, "depth").as_u64().unwrap_or_default();
        items(&self.queues)
            .iter()
            .filter_map(|queue| Some((queue.get("name")?.as_str()?, of(queue))))
            .collect()
    }

    /// All of it, for programs.
    pub(super) fn as_json(&self) -> Value {
        json!({
            "status": self.status, "ledger": self.ledger, "queues": self.queues,
            "tasks": self.tasks, "alarms": self.alarms,
        })
    }
}

/// How it is to be shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) sort: Sort,
    pub(super) all: bool,
    /// Queues passed over at the top.
    pub(super) skipped: usize,
}

/// A frame: lines of text, and how many queues there are to move through.
pub(super) struct Frame {
    pub(super) text: String,
    pub(super) queues: usize,
}

/// One queue in the list.
struct Row<'a> {
    queue: &'a Value,
    depth: u64,
    /// Messages a second that the depth grows by; none at the first look.
    rate: Option<f64>,
    oldest: u64,
}

/// Draws a frame of at most `height` lines.
pub(super) fn draw(
    look: &Look,
    before: Option<&Look>,
    view: View,
    (width, height): (Option<u16>, usize),
    colour: bool,
) -> Frame {
    let most = width.map_or(usize::MAX, usize::from);
    let cut = |line: &str| format!("{}\n", line.chars().take(most).collect::<String>());
    let mut text: String = head(look).lines().map(cut).collect();
    let alarms = alarms(look);
    if !alarms.is_empty() {
        text.push_str(&alarms.render(width, colour));
    }
    let tasks = tasks(look);
    let tasks = if tasks.is_empty() {
        String::new()
    } else {
        format!("\n{}", tasks.render(width, colour))
    };
    let taken = text.lines().count() + tasks.lines().count() + 3;
    let rows = rows(look, before, view);
    let count = rows.len();
    let room = height.saturating_sub(taken).max(1);
    let skipped = view.skipped.min(count.saturating_sub(1));
    let shown = rows.iter().skip(skipped).take(room);
    text.push('\n');
    let table = queues(shown);
    if table.is_empty() {
        text.push_str("no queue has messages or runs tasks\n");
    } else {
        text.push_str(&table.render(width, colour));
    }
    let rest = count.saturating_sub(skipped + room);
    if rest > 0 {
        text.push_str(&format!(
            "... and {} more queues\n",
            format_number(rest as u64)
        ));
    }
    text.push_str(&tasks);
    Frame {
        text,
        queues: count,
    }
}

fn head(look: &Look) -> String {
    let number =
        |value: &Value, path: &str| format_number(at(value, path).as_u64().unwrap_or_default());
    let (status, ledger) = (&look.status, &look.ledger);
    let started = at(status, "started").as_u64().unwrap_or_default();
    let paused = at(status, "paused").as_bool() == Some(true);
    let bytes = |path: &str| format_bytes(at(ledger, path).as_u64().unwrap_or_default());
    format!(
        "{} {} {}{}, up {}   store {}, {} free\n\
         {} queues, {} messages, {} tasks running, {} dead letters\n\
         slots {} of {}, memory {} of {}, {} starts refused\n",
        plain(at(status, "name")),
        plain(at(status, "version")),
        plain(at(status, "phase")),
        if paused { ", PAUSED" } else { "" },
        format_duration(look.now().saturating_sub(started)),
        plain(at(status, "store")),
        format_bytes(at(status, "disk-free").as_u64().unwrap_or_default()),
        number(status, "queues"),
        number(status, "depth"),
        number(status, "running"),
        number(status, "dead-letters"),
        number(ledger, "reserved.slots"),
        number(ledger, "capacity.slots"),
        bytes("reserved.memory"),
        bytes("capacity.memory"),
        number(ledger, "refused"),
    )
}

fn alarms(look: &Look) -> Table {
    let mut table = Table::new(&["", "", "", ""]);
    for alarm in items(&look.alarms) {
        let since = at(alarm, "since").as_u64();
        let age = since.map(|since| format_duration(look.now().saturating_sub(since)));
        table.row(vec![
            Cell::new("ALARM").tone(Tone::Bad),
            cell(alarm, "alarm").tone(Tone::Bad),
            cell(alarm, "queue"),
            Cell::new(format!(
                "{} {}",
                age.unwrap_or_default(),
                plain(at(alarm, "detail"))
            )),
        ]);
    }
    table
}

fn rows<'a>(look: &'a Look, before: Option<&Look>, view: View) -> Vec<Row<'a>> {
    let depths = before.map(Look::depths);
    let seconds = before.map(|before| {
        let millis = look.now().saturating_sub(before.now()).max(1);
        millis as f64 / 1_000.0
    });
    let row = |queue: &'a Value| {
        let depth = at(queue, "depth").as_u64().unwrap_or_default();
        let name = at(queue, "name").as_str().unwrap_or_default();
        let earlier = depths.as_ref().and_then(|depths| depths.get(name));
        let rate = earlier
            .zip(seconds)
            .map(|(earlier, seconds)| (depth as f64 - *earlier as f64) / seconds);
        Row {
            queue,
            depth,
            rate,
            oldest: at(queue, "oldest-age").as_u64().unwrap_or_default(),
        }
    };
    let is_busy = |row: &Row<'_>| {
        row.depth > 0
            || at(row.queue, "running").as_u64().unwrap_or_default() > 0
            || row.rate.is_some_and(|rate| rate != 0.0)
    };
    let mut rows: Vec<Row<'_>> = items(&look.queues)
        .iter()
        .map(row)
        .filter(|row| view.all || is_busy(row))
        .collect();
    // The host lists them by name, and a stable sort keeps that among equals.
    match view.sort {
        Sort::Name => {}
        Sort::Depth => rows.sort_by_key(|row| Reverse(row.depth)),
        Sort::Oldest => rows.sort_by_key(|row| Reverse(row.oldest)),
        Sort::Rate => rows.sort_by(|one, other| {
            let rate = |row: &Row<'_>| row.rate.unwrap_or_default();
            rate(other).total_cmp(&rate(one))
        }),
    }
    rows
}

fn queues<'a>(rows: impl Iterator<Item = &'a Row<'a>>) -> Table {
    let mut table = Table::new(&[
        "QUEUE", ">DEPTH", ">RATE/s", ">OLDEST", ">RUNNING", "PROCESS", "STATE",
    ]);
    for row in rows {
        let (state, tone) = match at(row.queue, "reason").as_str() {
            Some(reason) if row.depth > 0 => (reason, Tone::Warn),
            Some(reason) => (reason, Tone::Plain),
            None => ("fire", Tone::Good),
        };
        table.row(vec![
            cell(row.queue, "name"),
            cell(row.queue, "depth"),
            Cell::new(row.rate.map(signed).unwrap_or_default()),
            Cell::new(if row.oldest > 0 {
                format_duration(row.oldest)
            } else {
                String::new()
            }),
            cell(row.queue, "running"),
            cell(row.queue, "attributes.process"),
            Cell::new(state).tone(tone),
        ]);
    }
    table
}

fn signed(rate: f64) -> String {
    if rate.abs() < 0.05 {
        "0".to_owned()
    } else if rate.abs() < 10.0 {
        format!("{rate:+.1}")
    } else {
        format!("{rate:+.0}")
    }
}

fn tasks(look: &Look) -> Table {
    let mut table = Table::new(&[">TASK", "QUEUE", "PROCESS", ">FOR", ">OK", ">FAILED"]);
    let running = items(&look.tasks)
        .iter()
        .filter(|task| at(task, "outcome").is_null());
    for task in running.take(TASKS) {
        let started = at(task, "started").as_u64().unwrap_or_default();
        table.row(vec![
            Cell::new(plain(at(task, "id"))),
            cell(task, "queue"),
            cell(task, "process"),
            Cell::new(format_duration(look.now().saturating_sub(started))),
            cell(task, "committed"),
            cell(task, "failed"),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(now: u64, depth: u64) -> Look {
        let queue = |name: &str, depth: u64, age: Value| {
            json!({ "name": name, "depth": depth, "running": 0, "oldest-age": age,
                    "reason": "paused", "reason-text": "the host is paused",
                    "attributes": { "process": "p" } })
        };
        Look {
            status: json!({ "name": "oncue", "version": "1", "phase": "running", "paused": true,
                            "started": 0, "now": now, "store": "ok", "queues": 3, "depth": 9,
                            "running": 1, "dead-letters": 2, "disk-free": 1_024 }),
            ledger: json!({ "capacity": { "slots": 4, "memory": 2_048 },
                            "reserved": { "slots": 1, "memory": 1_024 }, "refused": 7 }),
            queues: json!([
                queue("a", 1, json!(9_000)),
                queue("b", depth, json!(1_000)),
                queue("idle", 0, Value::Null),
            ]),
            tasks: json!([{ "id": 5, "queue": "a", "process": "p", "outcome": null,
                            "started": 500, "committed": 3, "failed": 0 },
                          { "id": 4, "outcome": "trapped" }]),
            alarms: json!([{ "alarm": "parked-message", "queue": "a", "since": 0,
                             "detail": "x" }]),
        }
    }

    fn drawn(sort: Sort, all: bool, height: usize) -> Frame {
        let (before, now) = (look(1_000, 5), look(2_000, 25));
        let view = View {
            sort,
            all,
            skipped: 0,
        };
        draw(&now, Some(&before), view, (None, height), false)
    }

    fn order(text: &str) -> Vec<&str> {
        let names = text
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        names
            .filter(|name| ["a", "b", "idle"].contains(name))
            .collect()
    }

    #[test]
    fn a_frame_tells_what_waits_and_why() {
        let frame = drawn(Sort::Depth, false, 40);
        for wanted in [
            "oncue 1 running, PAUSED, up 2.0s",
            "slots 1 of 4, memory 1.0 KiB of 2.0 KiB, 7 starts refused",
            "ALARM  parked-message  a  2.0s x",
            "b         25     +20",
            "0  p        paused",
            "   5  a      p        1.5s   3       0",
        ] {
            assert!(frame.text.contains(wanted), "{wanted} in\n{}", frame.text);
        }
        assert_eq!(frame.queues, 2);
    }

    #[test]
    fn queues_are_sorted_as_asked() {
        assert_eq!(
            order(&drawn(Sort::Depth, true, 40).text),
            ["b", "a", "idle"]
        );
        assert_eq!(order(&drawn(Sort::Name, true, 40).text), ["a", "b", "idle"]);
        assert_eq!(order(&drawn(Sort::Oldest, false, 40).text), ["a", "b"]);
        assert_eq!(order(&drawn(Sort::Rate, false, 40).text), ["b", "a"]);
    }

    #[test]
    fn a_low_terminal_shows_what_there_is_room_for() {
        let frame = drawn(Sort::Depth, true, 1);
        assert_eq!(order(&frame.text), ["b"]);
        assert!(
            frame.text.contains("... and 2 more queues"),
            "{}",
            frame.text
        );
    }
}
