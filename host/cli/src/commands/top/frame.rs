//! One look at a host, and how it is shown: a head, alarms, queues, running tasks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::args::top::Sort;
use crate::client::{Client, Request};
use crate::exit::{Exit, Failure};
use crate::render::table::{Cell, Table, Tone};
use crate::render::time::{format_bytes, format_duration, format_number, number_of};
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

    fn flows(&self) -> BTreeMap<&str, Flow> {
        let queues = items(&self.queues).iter();
        queues
            .filter_map(|queue| Some((queue.get("name")?.as_str()?, Flow::of(queue))))
            .collect()
    }

    /// What came to each queue and left it since a look before, a second.
    fn rates(&self, before: &Self) -> BTreeMap<&str, Rates> {
        let is_same_host = at(&self.status, "started") == at(&before.status, "started");
        if !is_same_host {
            // The counts of a host that was started anew begin at nothing.
            return BTreeMap::new();
        }
        let seconds = self.now().saturating_sub(before.now()).max(1) as f64 / 1_000.0;
        let earlier = before.flows();
        let flows = self.flows().into_iter();
        let rates = flows.filter_map(|(name, flow)| {
            let earlier = earlier.get(name)?;
            Some((name, Rates::between(earlier, &flow, seconds)))
        });
        rates.collect()
    }

    /// All of it, for programs. With a look before, what came and left a second.
    pub(super) fn as_json(&self, before: Option<&Self>) -> Value {
        let mut json = json!({
            "status": self.status, "ledger": self.ledger, "queues": self.queues,
            "tasks": self.tasks, "alarms": self.alarms,
        });
        if let (Some(before), Some(fields)) = (before, json.as_object_mut()) {
            let rates = self.rates(before).into_iter();
            let rates = rates.map(|(name, rates)| {
                let rates = json!({ "put": rates.put, "left": rates.left });
                (name.to_owned(), rates)
            });
            fields.insert("rates".to_owned(), Value::Object(rates.collect()));
        }
        json
    }
}

/// What the host has counted of a queue.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Messages put since the host started.
    puts: u64,
    depth: u64,
}

impl Flow {
    fn of(queue: &Value) -> Self {
        let number = |name: &str| at(queue, name).as_u64().unwrap_or_default();
        Self {
            puts: number("puts"),
            depth: number("depth"),
        }
    }
}

/// Messages a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rates {
    /// Put by applications and handlers, or moved here.
    put: f64,
    /// Got and settled, or gone otherwise: moved, removed, expired.
    left: f64,
}

impl Rates {
    fn between(before: &Flow, now: &Flow, seconds: f64) -> Self {
        let put = now.puts.saturating_sub(before.puts);
        // What was there and came, and is there no more. Dead letters and messages that went back
        // to their queue are no puts: where more is there than was put, they came.
        let left = (before.depth + put).saturating_sub(now.depth);
        let came = (now.depth + left).saturating_sub(before.depth);
        Self {
            put: came as f64 / seconds,
            left: left as f64 / seconds,
        }
    }

    /// How fast the depth grows.
    fn growth(self) -> f64 {
        self.put - self.left
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
    /// None at the first look.
    rates: Option<Rates>,
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
    let things = |path: &str, thing| {
        let count = at(status, path).as_u64();
        number_of(count.unwrap_or_default(), thing)
    };
    let started = at(status, "started").as_u64().unwrap_or_default();
    let paused = at(status, "paused").as_bool() == Some(true);
    let bytes = |path: &str| format_bytes(at(ledger, path).as_u64().unwrap_or_default());
    format!(
        "{} {} {}{}, up {}   store {}, {} free\n\
         {}, {}, {} running, {}\n\
         slots {} of {}, memory {} of {}, {} starts refused\n",
        plain(at(status, "name")),
        plain(at(status, "version")),
        plain(at(status, "phase")),
        if paused { ", PAUSED" } else { "" },
        format_duration(look.now().saturating_sub(started)),
        plain(at(status, "store")),
        format_bytes(at(status, "disk-free").as_u64().unwrap_or_default()),
        things("queues", "queue"),
        things("depth", "message"),
        things("running", "task"),
        things("dead-letters", "dead letter"),
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
    let rates = before.map(|before| look.rates(before));
    let row = |queue: &'a Value| {
        let depth = at(queue, "depth").as_u64().unwrap_or_default();
        let name = at(queue, "name").as_str().unwrap_or_default();
        Row {
            queue,
            depth,
            rates: rates.as_ref().and_then(|rates| rates.get(name)).copied(),
            oldest: at(queue, "oldest-age").as_u64().unwrap_or_default(),
        }
    };
    let is_busy = |row: &Row<'_>| {
        row.depth > 0
            || at(row.queue, "running").as_u64().unwrap_or_default() > 0
            || row.rates.is_some_and(|rates| rates != Rates::default())
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
        Sort::Rate => sort_by_rate(&mut rows, Rates::growth),
        Sort::Put => sort_by_rate(&mut rows, |rates| rates.put),
        Sort::Left => sort_by_rate(&mut rows, |rates| rates.left),
    }
    rows
}

fn sort_by_rate(rows: &mut [Row<'_>], pick: fn(Rates) -> f64) {
    let rate = |row: &Row<'_>| pick(row.rates.unwrap_or_default());
    rows.sort_by(|one, other| rate(other).total_cmp(&rate(one)));
}

fn queues<'a>(rows: impl Iterator<Item = &'a Row<'a>>) -> Table {
    let mut table = Table::new(&[
        "QUEUE", ">DEPTH", ">PUT/s", ">LEFT/s", ">OLDEST", ">RUNNING", "PROCESS", "STATE",
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
            Cell::new(row.rates.map(|rates| rate(rates.put)).unwrap_or_default()),
            Cell::new(row.rates.map(|rates| rate(rates.left)).unwrap_or_default()),
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

fn rate(rate: f64) -> String {
    if rate < 0.05 {
        "0".to_owned()
    } else if rate < 10.0 {
        format!("{rate:.1}")
    } else {
        format!("{rate:.0}")
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

    fn look(now: u64, depth: u64, puts: u64) -> Look {
        let queue = |name: &str, depth: u64, puts: u64, age: Value| {
            json!({ "name": name, "depth": depth, "puts": puts, "running": 0, "oldest-age": age,
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
                queue("a", 1, 100 + puts, json!(9_000)),
                queue("b", depth, depth, json!(1_000)),
                queue("idle", 0, 7, Value::Null),
            ]),
            tasks: json!([{ "id": 5, "queue": "a", "process": "p", "outcome": null,
                            "started": 500, "committed": 3, "failed": 0 },
                          { "id": 4, "outcome": "trapped" }]),
            alarms: json!([{ "alarm": "parked-message", "queue": "a", "since": 0,
                             "detail": "x" }]),
        }
    }

    fn drawn(sort: Sort, all: bool, height: usize) -> Frame {
        let (before, now) = (look(1_000, 5, 0), look(2_000, 25, 60));
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
            "a          1     60      60",
            "b         25     20       0",
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
        assert_eq!(order(&drawn(Sort::Put, false, 40).text), ["a", "b"]);
        assert_eq!(order(&drawn(Sort::Left, false, 40).text), ["a", "b"]);
    }

    #[test]
    fn what_came_and_what_left_are_told_apart() {
        let check = |before: (u64, u64), now: (u64, u64), wanted: (f64, f64)| {
            let flow = |(puts, depth): (u64, u64)| Flow { puts, depth };
            let rates = Rates::between(&flow(before), &flow(now), 2.0);
            assert_eq!((rates.put, rates.left), wanted, "{before:?} {now:?}");
        };
        check((10, 5), (30, 25), (10.0, 0.0));
        check((10, 5), (30, 5), (10.0, 10.0));
        check((10, 5), (10, 1), (0.0, 2.0));
        // Dead letters come without a put.
        check((0, 0), (0, 8), (4.0, 0.0));
        check((9, 3), (9, 3), (0.0, 0.0));
    }

    #[test]
    fn rates_are_told_to_programs_and_not_over_a_restart() {
        let (before, mut now) = (look(1_000, 5, 0), look(3_000, 25, 60));
        let rates = now.as_json(Some(&before))["rates"].clone();
        assert_eq!(rates["a"], json!({ "put": 30.0, "left": 30.0 }));
        assert_eq!(rates["b"], json!({ "put": 10.0, "left": 0.0 }));
        now.status["started"] = json!(2_500);
        assert_eq!(now.as_json(Some(&before))["rates"], json!({}));
        assert!(now.as_json(None).get("rates").is_none());
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
