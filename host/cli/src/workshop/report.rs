//! What a run is shown as: for people and as JSON. It decides nothing.

use oncue_core::outcome::Outcome;
use oncue_core::unit_of_work::Put;
use oncue_manager::tasks::record::TaskRecord;
use oncue_runtime::plugin::SinglePlugin;
use serde_json::{Map, Value, json};

use super::faults::FaultKind;
use super::observed::{Given, Observed};
use super::suite::{CaseReport, Trial};
use crate::exit::Failure;
use crate::render::Screen;
use crate::render::table::{Cell, Table, Tone};
use crate::render::text::{cut_line, escape_line, to_base64};
use crate::render::time::{format_bytes, format_number, number_of};

/// What is shown of a body for people, in characters; in hexadecimal, in bytes.
const MAX_SHOWN: usize = 200;
const MAX_HEX: usize = 64;

/// Log lines that are shown of a task in a failed case: the last ones.
const MAX_LOG_LINES: usize = 10;

/// Costs of all tasks of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    fuel: u64,
    peak_memory: u64,
    guest_micros: u64,
}

impl Cost {
    fn of(observed: &Observed) -> Self {
        let add = |sum: Self, task: &TaskRecord| Self {
            fuel: sum.fuel + task.cost.fuel,
            peak_memory: sum.peak_memory.max(task.cost.peak_memory),
            guest_micros: sum.guest_micros + task.cost.guest_micros,
        };
        observed.tasks.iter().fold(Self::default(), add)
    }
}

/// Shows a run to people.
pub(super) fn run_text(
    screen: &Screen,
    plugin: &SinglePlugin,
    observed: &Observed,
) -> Result<(), Failure> {
    let name = &plugin.version.plugin;
    screen.headline(&format!("plugin \"{name}\": {}", observed.word()))?;
    screen.table(&messages(observed), "")?;
    for (title, puts) in [("puts", &observed.puts), ("requests", &observed.requests)] {
        if !puts.is_empty() {
            screen.headline(title)?;
            screen.table(&puts_table(puts), "")?;
        }
    }
    let state = state_table(observed);
    if !state.is_empty() {
        screen.headline("state")?;
        screen.table(&state, "")?;
    }
    screen.headline("cost")?;
    screen.table(&cost_table(observed), "")?;
    for task in &observed.tasks {
        trouble(screen, task)?;
    }
    Ok(())
}

fn messages(observed: &Observed) -> Table {
    let mut table = Table::new(&["MESSAGE", "OUTCOME", "WHAT BECAME OF IT", "REASON"]);
    for (number, given) in (1..).zip(&observed.messages) {
        let tone = match given.outcome {
            Some(Outcome::Committed) => Tone::Good,
            _ => Tone::Bad,
        };
        let reason = match given.outcome {
            None => given.detail.clone().or_else(|| observed.held.clone()),
            Some(_) => given.detail.clone(),
        };
        table.row(vec![
            Cell::new(number.to_string()),
            Cell::new(given.word()).tone(tone),
            Cell::new(fate(given)),
            Cell::new(reason.unwrap_or_default()),
        ]);
    }
    table
}

/// What became of a message.
fn fate(given: &Given) -> String {
    match (&given.moved, given.waits) {
        (Some((queue, _)), _) => format!("moved to \"{queue}\""),
        (None, true) if given.backout_count > 0 => {
            format!("comes again, {} attempts charged", given.backout_count)
        }
        (None, true) => "comes again".to_owned(),
        (None, false) if given.outcome.is_none() => "removed".to_owned(),
        (None, false) => "done".to_owned(),
    }
}

fn puts_table(puts: &[Put]) -> Table {
    let mut table = Table::new(&["QUEUE", "FIELDS", "BODY"]);
    for put in puts {
        table.row(vec![
            Cell::new(put.queue.as_str()),
            Cell::new(fields_text(put)),
            Cell::new(body_text(&put.body)),
        ]);
    }
    table
}

fn fields_text(put: &Put) -> String {
    let header = &put.header;
    let mut fields: Vec<String> = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        fields.extend(value.map(|value| format!("{name}={value}")));
    };
    add("correlation-id", header.correlation_id.clone());
    add(
        "reply-to",
        header.reply_to.as_ref().map(ToString::to_string),
    );
    add("group", header.group.clone());
    add(
        "priority",
        (header.priority > 0).then(|| header.priority.to_string()),
    );
    add("content-type", header.content_type.clone());
    for (name, value) in &header.properties {
        add(name, Some(value.clone()));
    }
    let reason = put.dead_letter.as_ref().map(|record| record.detail.clone());
    add("dead-letter", reason);
    fields.join(" ")
}

/// A body for people: text as far as it goes, else hexadecimal.
fn body_text(body: &[u8]) -> String {
    match std::str::from_utf8(body) {
        Ok(text) => cut_line(text, MAX_SHOWN),
        Err(_) => {
            let digits: Vec<String> = body
                .iter()
                .take(MAX_HEX)
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let more = if body.len() > MAX_HEX { "..." } else { "" };
            format!(
                "{}{more} ({})",
                digits.join(""),
                format_bytes(body.len() as u64)
            )
        }
    }
}

/// Keys that changed, with the value before and after.
fn changes(observed: &Observed) -> Vec<(String, Option<String>, Option<String>)> {
    let (before, after) = (&observed.before, &observed.state);
    let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
    keys.sort();
    keys.dedup();
    let shown = |value: Option<&bytes::Bytes>| value.map(|value| body_text(value));
    keys.into_iter()
        .filter(|key| before.get(*key) != after.get(*key))
        .map(|key| (key.clone(), shown(before.get(key)), shown(after.get(key))))
        .collect()
}

fn state_table(observed: &Observed) -> Table {
    let mut table = Table::new(&["KEY", "BEFORE", "AFTER"]);
    for (key, before, after) in changes(observed) {
        let or = |value: Option<String>| value.unwrap_or_else(|| "(none)".to_owned());
        table.row(vec![
            Cell::new(key),
            Cell::new(or(before)),
            Cell::new(or(after)),
        ]);
    }
    table
}

fn cost_table(observed: &Observed) -> Table {
    let cost = Cost::of(observed);
    let mut table = Table::new(&["", ""]);
    let mut fact = |name: &str, text: String| table.row(vec![Cell::new(name), Cell::new(text)]);
    fact("fuel", format_number(cost.fuel));
    fact("peak memory", format_bytes(cost.peak_memory));
    fact("in the handler", micros(cost.guest_micros));
    fact(
        "in all",
        micros(u64::try_from(observed.time.as_micros()).unwrap_or(u64::MAX)),
    );
    table
}

/// Microseconds for people.
fn micros(micros: u64) -> String {
    let (millis, rest) = (micros / 1_000, micros % 1_000);
    format!("{}.{:02} ms", format_number(millis), rest / 10)
}

/// Refused calls, the log and the backtrace of a task.
fn trouble(screen: &Screen, task: &TaskRecord) -> Result<(), Failure> {
    for refusal in &task.cost.refused {
        let times = number_of(refusal.times, "time");
        screen.text(&format!("not granted: {} ({times})", refusal.what))?;
    }
    if !task.cost.log_tail.is_empty() {
        let cut = match task.cost.log_cut {
            0 => String::new(),
            bytes => format!(" (after {} that were cut)", format_bytes(bytes)),
        };
        screen.headline(&format!("log{cut}"))?;
        screen.text(&task.cost.log_tail)?;
    }
    if let Some(backtrace) = &task.backtrace {
        screen.headline("backtrace")?;
        screen.text(backtrace)?;
    }
    Ok(())
}

/// A run for programs.
pub(super) fn run_json(plugin: &SinglePlugin, observed: &Observed) -> Value {
    let cost = Cost::of(observed);
    let message = |given: &Given| {
        json!({
            "id": given.id,
            "outcome": given.word(),
            "reason": given.detail,
            "moved-to": given.moved.as_ref().map(|(queue, _)| queue),
            "backout-count": given.backout_count,
        })
    };
    let state = changes(observed).into_iter().map(|(key, _, _)| {
        let value = |of: Option<&bytes::Bytes>| of.map(|value| bytes_json(value));
        let change = json!({
            "before": value(observed.before.get(&key)),
            "after": value(observed.state.get(&key)),
        });
        (key, change)
    });
    json!({
        "plugin": plugin.version.plugin,
        "digest": plugin.version.digest,
        "style": plugin.version.style,
        "outcome": observed.word(),
        "messages": observed.messages.iter().map(message).collect::<Vec<_>>(),
        "puts": observed.puts.iter().map(put_json).collect::<Vec<_>>(),
        "requests": observed.requests.iter().map(put_json).collect::<Vec<_>>(),
        "state": state.collect::<Map<_, _>>(),
        "held": observed.held,
        "fuel": cost.fuel,
        "peak-memory": cost.peak_memory,
        "guest-micros": cost.guest_micros,
        "micros": u64::try_from(observed.time.as_micros()).unwrap_or(u64::MAX),
        "tasks": observed.tasks,
    })
}

fn bytes_json(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "base64": to_base64(bytes) }),
    }
}

fn put_json(put: &Put) -> Value {
    let header = &put.header;
    let mut json = bytes_json(&put.body);
    let more = json!({
        "queue": put.queue,
        "id": header.id,
        "correlation-id": header.correlation_id,
        "reply-to": header.reply_to,
        "group": header.group,
        "priority": header.priority,
        "content-type": header.content_type,
        "properties": header.properties,
        "hop-count": header.hop_count,
        "dead-letter": put.dead_letter,
    });
    if let (Value::Object(json), Value::Object(more)) = (&mut json, more) {
        json.extend(more);
    }
    json
}

/// The name of a trial.
pub(super) fn trial_name(trial: &Trial) -> &'static str {
    trial.fault.map_or("as it is", FaultKind::word)
}

/// What there is to know of a run that passed.
pub(super) fn note(observed: &Observed) -> String {
    let count = |number: usize, one: &str, many: &str| match number {
        1 => format!("1 {one}"),
        number => format!("{} {many}", format_number(number as u64)),
    };
    let cost = Cost::of(observed);
    format!(
        "{}, {}, fuel {}, {}",
        count(observed.messages.len(), "message", "messages"),
        count(observed.puts.len(), "put", "puts"),
        format_number(cost.fuel),
        format_bytes(cost.peak_memory),
    )
}

/// What the tasks of a run wrote and met, for a case that did not pass.
pub(super) fn trouble_lines(observed: &Observed) -> Vec<String> {
    let mut lines = Vec::new();
    if observed.tasks.is_empty() {
        lines.extend(
            observed
                .held
                .as_ref()
                .map(|held| format!("no task ran: {held}")),
        );
    }
    for task in &observed.tasks {
        let what = task.cost.refused.iter().map(|refusal| &refusal.what);
        lines.extend(what.map(|what| format!("not granted: {what}")));
        lines.extend(
            task.detail
                .as_ref()
                .map(|detail| format!("detail: {detail}")),
        );
        let log = task.cost.log_tail.lines();
        let skipped = log.clone().count().saturating_sub(MAX_LOG_LINES);
        lines.extend(log.skip(skipped).map(|line| format!("log: {line}")));
    }
    lines
}

/// Shows a case to people.
pub(super) fn case_text(screen: &Screen, report: &CaseReport) -> Result<(), Failure> {
    let word = match (report.passed(), report.blessed) {
        (true, true) => "NEW ",
        (true, false) => "ok  ",
        (false, _) => "FAIL",
    };
    screen.headline(&format!("{word}  {}", report.name))?;
    for trial in &report.trials {
        let name = trial_name(trial);
        if trial.wrong.is_empty() {
            screen.text(&format!("      ok    {name:<12}  {}", trial.note))?;
            continue;
        }
        screen.text(&format!("      FAIL  {name}"))?;
        for line in &trial.wrong {
            screen.text(&format!("            {}", escape_line(line)))?;
        }
    }
    Ok(())
}

/// A whole test for programs.
pub(super) fn suite_json(plugin: &str, reports: &[CaseReport]) -> Value {
    let trial = |trial: &Trial| {
        json!({
            "trial": trial.fault.map_or("plain", FaultKind::word),
            "passed": trial.wrong.is_empty(),
            "note": trial.note,
            "wrong": trial.wrong,
        })
    };
    let case = |report: &CaseReport| {
        json!({
            "case": report.name,
            "passed": report.passed(),
            "blessed": report.blessed,
            "millis": u64::try_from(report.time.as_millis()).unwrap_or(u64::MAX),
            "trials": report.trials.iter().map(trial).collect::<Vec<_>>(),
        })
    };
    json!({
        "plugin": plugin,
        "passed": reports.iter().filter(|report| report.passed()).count(),
        "failed": reports.iter().filter(|report| !report.passed()).count(),
        "cases": reports.iter().map(case).collect::<Vec<_>>(),
    })
}
