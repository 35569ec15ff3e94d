//! `logs`: what tasks wrote, the end of each task's log; with `-f` as tasks end.

use std::collections::HashSet;

use serde_json::Value;

use super::Context;
use crate::args::operations::LogsArgs;
use crate::client::Request;
use crate::exit::{Exit, Failure};
use crate::render::Screen;
use crate::render::text::{cut_line, escape_line, last_words};
use crate::render::time::{format_bytes, format_timestamp};
use crate::render::values::{at, items, plain};

/// Tasks that are looked through for those that are meant.
const LOOKED_AT: u32 = 1_000;

/// Longest detail of a task's line, in characters.
const DETAIL_LENGTH: usize = 100;

/// Shows logs of tasks that have ended, and follows those that end.
pub(super) fn run(context: &Context, args: &LogsArgs) -> Result<(), Failure> {
    // Before the look at what was: nothing falls between the two.
    let mut events = match args.follow {
        true => Some(context.client.events()?),
        false => None,
    };
    let records = ended(context, args)?;
    let shown = show_ended(context, args, &records)?;
    let Some(events) = &mut events else {
        if !shown {
            context.screen.say(nothing(args));
        }
        return Ok(());
    };
    let mut known: HashSet<u64> = items(&records)
        .iter()
        .filter(|record| at(record, "outcome").is_string())
        .filter_map(|record| at(record, "id").as_u64())
        .collect();
    loop {
        context.screen.flush()?;
        let event = events.next()?;
        match at(&event, "kind").as_str() {
            Some("task-ended") => {}
            Some("lagged") => {
                let missed = plain(at(&event, "missed"));
                context.screen.say(&format!(
                    "{missed} events were missed; \"oncue tasks\" lists all tasks"
                ));
                continue;
            }
            _ => continue,
        }
        let id = at(&event, "task");
        if !might_be_meant(&event, args) || id.as_u64().is_some_and(|id| known.remove(&id)) {
            continue;
        }
        let record = match context.client.ask(Request::get(&["tasks", &plain(id)])) {
            // So many tasks have ended since that it is forgotten.
            Err(failure) if failure.exit == Exit::NotFound => continue,
            record => record?,
        };
        if is_meant(&record, args) {
            show(&context.screen, &record)?;
        }
    }
}

fn nothing(args: &LogsArgs) -> &'static str {
    if args.queue.is_some() || args.plugin.is_some() || args.failed {
        "no such task wrote to its log"
    } else {
        "no task wrote to its log yet"
    }
}

/// Shows those that have ended, the oldest first. Answers whether there was any.
fn show_ended(context: &Context, args: &LogsArgs, records: &Value) -> Result<bool, Failure> {
    let meant: Vec<&Value> = items(records)
        .iter()
        .filter(|record| is_meant(record, args))
        .take(args.max as usize)
        .collect();
    for record in meant.iter().rev() {
        show(&context.screen, record)?;
    }
    Ok(!meant.is_empty())
}

fn ended(context: &Context, args: &LogsArgs) -> Result<Value, Failure> {
    let request = Request::get(&["tasks"])
        .query("queue", args.queue.as_ref())
        .query("failed", args.failed.then_some(true))
        .query("max", Some(LOOKED_AT));
    context.client.ask(request)
}

fn might_be_meant(event: &Value, args: &LogsArgs) -> bool {
    let queue = args.queue.as_ref();
    queue.is_none_or(|queue| at(event, "queue").as_str() == Some(queue.as_str()))
}

/// Whether it has ended, wrote something, and is one of those that are wanted.
fn is_meant(record: &Value, args: &LogsArgs) -> bool {
    let has_failed = || {
        let outcome = at(record, "outcome").as_str().unwrap_or_default();
        let outcome: Option<oncue_core::outcome::Outcome> =
            serde_json::from_value(outcome.into()).ok();
        outcome.is_some_and(oncue_core::outcome::Outcome::is_failure)
    };
    at(record, "outcome").is_string()
        && !plain(at(record, "cost.log-tail")).is_empty()
        && might_be_meant(record, args)
        && args
            .plugin
            .as_ref()
            .is_none_or(|plugin| at(record, "plugin").as_str() == Some(plugin))
        && (!args.failed || has_failed())
}

fn show(screen: &Screen, record: &Value) -> Result<(), Failure> {
    if screen.is_json() {
        return screen.json(record);
    }
    screen.headline(&headline(record))?;
    let cut = at(record, "cost.log-cut").as_u64().unwrap_or_default();
    if cut > 0 {
        screen.line(&format!("  ({} cut before this)", format_bytes(cut)))?;
    }
    for line in plain(at(record, "cost.log-tail")).lines() {
        screen.line(&format!("  {}", escape_line(line)))?;
    }
    Ok(())
}

fn headline(record: &Value) -> String {
    let text = |path: &str| plain(at(record, path));
    let ended = at(record, "ended").as_u64().map(format_timestamp);
    let (queue, plugin) = (text("queue"), text("plugin"));
    let mut line = format!(
        "{} task {} of queue {queue}",
        ended.unwrap_or_default(),
        text("id")
    );
    if plugin != queue {
        line.push_str(&format!(", plugin {plugin}"));
    }
    line.push_str(&format!(": {}", text("outcome")));
    let detail = text("detail");
    if !detail.is_empty() {
        line.push_str(&format!(
            ", {}",
            cut_line(last_words(&detail), DETAIL_LENGTH)
        ));
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::Format;
    use crate::render::tests::Shared;

    fn record() -> Value {
        json!({
            "id": 17, "queue": "orders", "plugin": "route-orders", "outcome": "trapped",
            "detail": "unreachable", "ended": 1_000,
            "cost": { "log-tail": "one\u{1b}[2J\ntwo\n", "log-cut": 2_048 },
        })
    }

    fn args() -> LogsArgs {
        LogsArgs {
            follow: false,
            queue: None,
            plugin: None,
            failed: false,
            max: 20,
        }
    }

    #[test]
    fn a_log_has_a_line_of_its_task_and_cannot_move_the_cursor() {
        let shared = Shared::default();
        let screen = Screen::buffer(Format::Table, Box::new(shared.clone()));
        show(&screen, &record()).expect("printed");
        assert_eq!(
            shared.text(),
            "1970-01-01 00:00:01.000Z task 17 of queue orders, plugin route-orders: trapped, \
             unreachable\n  (2.0 KiB cut before this)\n  one\\u{1b}[2J\n  two\n"
        );
    }

    #[test]
    fn only_those_that_are_asked_for_are_shown() {
        let check = |change: fn(&mut LogsArgs), wanted: bool| {
            let mut args = args();
            change(&mut args);
            assert_eq!(is_meant(&record(), &args), wanted, "{args:?}");
        };
        check(|_| {}, true);
        check(|args| args.failed = true, true);
        check(|args| args.plugin = Some("other".to_owned()), false);
        check(
            |args| args.queue = Some("other".parse().expect("a name")),
            false,
        );
        let mut quiet = record();
        quiet["cost"]["log-tail"] = json!("");
        assert!(!is_meant(&quiet, &args()));
        let mut running = record();
        running["outcome"] = Value::Null;
        assert!(!is_meant(&running, &args()));
    }
}
