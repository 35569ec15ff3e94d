//! `dlq` and `redrive`: dead letters by groups or one by one; back, kept as a copy, or away.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;
use oncue_core::message::MessageId;
use serde_json::{Map, Value, json};

use super::browse::{self, DETAIL_LENGTH};
use super::{Context, done, message, messages};
use crate::args::dead_letters::{
    DeadLetterCommand, DiscardArgs, ExportArgs, FilterArgs, ListArgs, MeantArgs, RedriveArgs,
};
use crate::args::messages::RedriveArgs as PlainRedriveArgs;
use crate::client::Request;
use crate::exit::{Exit, Failure};
use crate::render::table::{Cell, Table, Tone};
use crate::render::text::{cut_line, last_words, to_base64};
use crate::render::time::{format_duration, format_number};
use crate::render::values::{at, cell, items, plain};

/// Single messages that are listed when no number is asked for.
const LISTED: usize = 100;

/// Messages of one page that is asked for.
const PAGE: usize = 1_000;

/// A redrive or discard goes through a whole queue: the host may take so much longer, in
/// milliseconds.
const PATIENCE: u64 = 600_000;

/// Runs a command about dead letters.
pub(super) fn run(context: &Context, command: &DeadLetterCommand) -> Result<(), Failure> {
    match command {
        DeadLetterCommand::List(args) if args.messages => list_messages(context, args),
        DeadLetterCommand::List(args) => list_groups(context, args),
        DeadLetterCommand::Show(args) => {
            let (queue, id) = (args.holder.queue.to_string(), args.id.to_string());
            message::show_one(context, &queue, &id, args.raw)
        }
        DeadLetterCommand::Redrive(args) => redrive(context, args),
        DeadLetterCommand::Export(args) => export(context, args),
        DeadLetterCommand::Discard(args) => discard(context, args),
    }
}

/// A dead letter's reason in one word: of a backout, how the last attempt ended.
fn word<'a>(outcome: &'a Value, reason: &'a Value) -> &'a str {
    outcome.as_str().or(reason.as_str()).unwrap_or_default()
}

/// Whether a group or a dead-letter record is meant.
fn is_meant(record: &Value, filter: &FilterArgs) -> bool {
    let has = |field: &str, wanted: &str| at(record, field).as_str() == Some(wanted);
    filter
        .from
        .as_ref()
        .is_none_or(|from| has("queue", from.as_str()))
        && filter
            .reason
            .as_deref()
            .is_none_or(|reason| has("reason", reason) || has("outcome", reason))
        && filter
            .detail
            .as_deref()
            .is_none_or(|text| plain(at(record, "detail")).contains(text))
}

fn list_groups(context: &Context, args: &ListArgs) -> Result<(), Failure> {
    if args.filter.detail.is_some() || args.filter.max.is_some() {
        let message = "--detail and --max choose among single messages; add --messages";
        return Err(Failure::new(Exit::Usage, message));
    }
    let queue = args.holder.queue.as_str();
    let request = Request::get(&["dead-letters"]).query("queue", Some(queue));
    let mut view = context.client.ask(request)?;
    if let Some(groups) = view.get_mut("groups").and_then(Value::as_array_mut) {
        groups.retain(|group| is_meant(group, &args.filter));
    }
    let screen = &context.screen;
    if screen.is_json() {
        return screen.json(&view);
    }
    let none = if args.filter.is_some() {
        format!("queue \"{queue}\" has no such dead letter")
    } else {
        format!("queue \"{queue}\" has no dead letters")
    };
    screen.table(&groups(&view), &none)?;
    let by_hand = at(&view, "without-record").as_u64().unwrap_or_default();
    if by_hand > 0 {
        screen.say(&format!(
            "{} more without a dead-letter record, put there by somebody: \"oncue browse {queue}\"",
            format_number(by_hand)
        ));
    }
    if at(&view, "more").as_bool() == Some(true) {
        let scanned = at(&view, "scanned").as_u64().unwrap_or_default();
        screen.say(&format!(
            "only the first {} looked at",
            if scanned == 1 {
                "message was".to_owned()
            } else {
                format!("{} messages were", format_number(scanned))
            }
        ));
    }
    Ok(())
}

fn groups(view: &Value) -> Table {
    let now = at(view, "now").as_u64().unwrap_or_default();
    let age = |group: &Value, field: &str| {
        let time = at(group, field).as_u64();
        Cell::new(
            time.map(|time| format_duration(now.saturating_sub(time)))
                .unwrap_or_default(),
        )
    };
    let mut table = Table::new(&[
        ">COUNT",
        "REASON",
        "FROM",
        "PROCESS",
        ">OLDEST",
        ">NEWEST",
        "LAST ONE",
        "ITS DETAIL",
    ]);
    for group in items(at(view, "groups")) {
        let detail = plain(at(group, "detail"));
        table.row(vec![
            cell(group, "count"),
            Cell::new(word(at(group, "outcome"), at(group, "reason"))).tone(Tone::Bad),
            cell(group, "queue"),
            cell(group, "process"),
            age(group, "oldest"),
            age(group, "newest"),
            cell(group, "message"),
            Cell::new(cut_line(last_words(&detail), DETAIL_LENGTH)),
        ]);
    }
    table
}

fn list_messages(context: &Context, args: &ListArgs) -> Result<(), Failure> {
    let queue = args.holder.queue.as_str();
    let most = args.filter.max.map_or(LISTED, |max| max as usize);
    let mut found = Vec::new();
    let mut more = false;
    each(context, queue, |message| {
        if !is_meant(at(&message, "dead-letter"), &args.filter) {
            return Ok(true);
        }
        more = found.len() == most;
        if !more {
            found.push(message);
        }
        Ok(!more)
    })?;
    let list = json!({ "messages": found, "more": more });
    if context.screen.is_json() {
        return context.screen.json(&list);
    }
    let none = format!("queue \"{queue}\" has no such dead letter");
    context.screen.table(&browse::table(&list), &none)?;
    if more {
        context.screen.say("there are more: raise --max");
    }
    Ok(())
}

/// Goes through the dead letters of a queue, page by page, until `take` has enough: it answers
/// whether to go on.
fn each(
    context: &Context,
    queue: &str,
    mut take: impl FnMut(Value) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let mut cursor: Option<String> = None;
    loop {
        let request = Request::get(&["queues", queue, "messages"])
            .query("max", Some(PAGE))
            .query("cursor", cursor.as_ref());
        let mut page = context.client.ask(request)?;
        let next = at(&page, "next").as_str().map(str::to_owned);
        let list = page.get_mut("messages").map(Value::take);
        for message in list
            .as_ref()
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if at(message, "dead-letter").is_object() && !take(message.clone())? {
                return Ok(());
            }
        }
        cursor = next;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// Which are meant, as the host reads it.
fn body(meant: &MeantArgs) -> Value {
    filter(&meant.id, &meant.filter)
}

/// A filter as the host reads it.
fn filter(ids: &[MessageId], filter: &FilterArgs) -> Value {
    let mut fields = Map::new();
    if !ids.is_empty() {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        fields.insert("ids".to_owned(), ids.into());
    }
    let mut add = |name: &str, value: Option<Value>| {
        fields.extend(value.map(|value| (name.to_owned(), value)));
    };
    let from = filter.from.as_ref().map(ToString::to_string);
    add("from", from.map(Value::from));
    add("reason", filter.reason.clone().map(Value::from));
    add("detail", filter.detail.clone().map(Value::from));
    add("max", filter.max.map(Value::from));
    Value::Object(fields)
}

/// Nothing is done to all dead letters by leaving something out.
fn make_sure(all: bool, meant: &MeantArgs) -> Result<(), Failure> {
    if all || !meant.id.is_empty() || meant.filter.is_some() {
        return Ok(());
    }
    let message = "which dead letters are meant? Name their ids, --from, --reason or --detail; \
                   --all means all of them";
    Err(Failure::new(Exit::Usage, message))
}

fn redrive(context: &Context, args: &RedriveArgs) -> Result<(), Failure> {
    make_sure(args.all, &args.meant)?;
    redrive_by(
        context,
        args.meant.holder.queue.as_str(),
        &body(&args.meant),
    )
}

/// `redrive`: all of them, unless something else is asked for.
pub(super) fn redrive_plainly(context: &Context, args: &PlainRedriveArgs) -> Result<(), Failure> {
    let filter = filter(&args.id, &args.filter);
    redrive_by(context, args.queue.as_str(), &filter)
}

fn redrive_by(context: &Context, queue: &str, filter: &Value) -> Result<(), Failure> {
    let request = Request::post(&["queues", queue, "redrive"]).json(filter);
    context
        .screen
        .progress(|| format!("redriving queue \"{queue}\" ..."));
    let answer = context.client.ask(request.wait(PATIENCE))?;
    let count = messages(at(&answer, "redriven"));
    done(
        context,
        &answer,
        &format!("queue \"{queue}\": {count} went back"),
    )?;
    stayed(
        context,
        &answer,
        "their queue is gone, or somebody has them in hand",
    );
    for plugin in items(at(&answer, "compiling")) {
        context.screen.say(&still_compiling(&plain(plugin)));
    }
    Ok(())
}

/// What went back goes to the version that may have failed on it before.
fn still_compiling(plugin: &str) -> String {
    format!(
        "plugin \"{plugin}\": its next version is still being compiled, and until it is ready the \
         version before it gets these messages; see \"oncue plugin list\", then redrive those that \
         failed again"
    )
}

/// Says how many are still there, and why.
fn stayed(context: &Context, answer: &Value, why: &str) {
    let stayed = at(answer, "stayed");
    if stayed.as_u64().unwrap_or_default() > 0 {
        context
            .screen
            .say(&format!("{} stay: {why}", messages(stayed)));
    }
}

fn discard(context: &Context, args: &DiscardArgs) -> Result<(), Failure> {
    make_sure(args.all, &args.meant)?;
    let queue = args.meant.holder.queue.as_str();
    let what = if args.all {
        format!("discarding all dead letters of queue \"{queue}\"")
    } else {
        format!("discarding those dead letters of queue \"{queue}\"")
    };
    context.screen.confirm(&what, queue, args.yes)?;
    let request = Request::post(&["queues", queue, "discard"])
        .json(&body(&args.meant))
        .wait(PATIENCE);
    context
        .screen
        .progress(|| format!("discarding dead letters of queue \"{queue}\" ..."));
    let answer = context.client.ask(request)?;
    let count = messages(at(&answer, "discarded"));
    done(
        context,
        &answer,
        &format!("queue \"{queue}\": {count} discarded"),
    )?;
    stayed(context, &answer, "somebody has them in hand");
    Ok(())
}

fn export(context: &Context, args: &ExportArgs) -> Result<(), Failure> {
    let exported = match &args.out {
        None => write_all(context, args, |line| context.screen.line(line))?,
        Some(path) => {
            // Another export may be the only copy of what was discarded since.
            let exists = || {
                let message = format!("file \"{}\" exists; name another", path.display());
                Failure::new(Exit::Usage, message)
            };
            if path.exists() {
                return Err(exists());
            }
            let mut file = beside(path)?;
            let failed = || format!("file \"{}\" cannot be written", path.display());
            let exported = write_all(context, args, |line| {
                writeln!(file, "{line}").with_context(failed)?;
                Ok(())
            })?;
            file.as_file().sync_all().with_context(failed)?;
            match file.persist_noclobber(path) {
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(exists());
                }
                persisted => persisted.with_context(failed)?,
            };
            exported
        }
    };
    let count = messages(&json!(exported));
    match &args.out {
        None => context.screen.say(&format!("{count} exported")),
        Some(path) => {
            let answer = json!({ "exported": exported, "file": path.display().to_string() });
            let sentence = format!("{count} exported to {}", path.display());
            done(context, &answer, &sentence)?;
        }
    }
    Ok(())
}

/// A file that takes the place of `path` when it is whole.
fn beside(path: &Path) -> Result<tempfile::NamedTempFile, Failure> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let file = tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("file \"{}\" cannot be made", path.display()))?;
    Ok(file)
}

fn write_all(
    context: &Context,
    args: &ExportArgs,
    mut line: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let meant = &args.meant;
    let queue = meant.holder.queue.as_str();
    let most = meant.filter.max.map_or(u64::MAX, u64::from);
    let wanted: Vec<String> = meant.id.iter().map(ToString::to_string).collect();
    let mut exported = 0;
    each(context, queue, |message| {
        let id = plain(at(&message, "id"));
        let is_named = wanted.is_empty() || wanted.contains(&id);
        if is_named && is_meant(at(&message, "dead-letter"), &meant.filter) {
            if let Some(whole) = whole(context, queue, &id)? {
                line(&serde_json::to_string(&whole).expect("a JSON value can be written"))?;
                exported += 1;
            }
            context
                .screen
                .progress(|| format!("exported {exported} ..."));
        }
        Ok(exported < most)
    })?;
    Ok(exported)
}

/// The message with its body; none when it went meanwhile.
fn whole(context: &Context, queue: &str, id: &str) -> Result<Option<Value>, Failure> {
    let path = ["queues", queue, "messages", id];
    let asked = Request::get(&path).header("accept", "application/json");
    let mut message = match context.client.ask(asked) {
        Err(failure) if failure.exit == Exit::NotFound => return Ok(None),
        message => message?,
    };
    if at(&message, "body-omitted").as_bool() == Some(true) {
        // Too long for JSON: it comes as it is.
        let body = context.client.send(Request::get(&path))?.body;
        if let Some(fields) = message.as_object_mut() {
            fields.shift_remove("body-omitted");
            fields.insert("body-base64".to_owned(), to_base64(&body).into());
        }
    }
    Ok(Some(message))
}

#[cfg(test)]
mod tests {
    use oncue_core::names::QueueName;

    use super::*;
    use crate::args::dead_letters::HolderArgs;

    #[test]
    fn a_group_is_a_line_with_its_cause() {
        let view = json!({ "now": 10_000_000, "groups": [
            { "reason": "backout", "outcome": "trapped", "queue": "orders", "process": "p",
              "count": 1_200, "oldest": 0, "newest": 9_999_000, "message": "a1",
              "detail": "thread 'main' (1) panicked at src/lib.rs:1:2: no\u{1b}" },
            { "reason": "hop-limit", "queue": "loop", "count": 1, "oldest": 1, "newest": 1,
              "message": "a2", "detail": "17 of 16" },
        ]});
        let text = groups(&view).render(None, false);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].starts_with("1 200  trapped    orders  p        2h 46m    1.0s  a1"),
            "{text}"
        );
        assert!(
            lines[1].contains("\\u{1b}") && lines[2].contains("hop-limit"),
            "{text}"
        );
    }

    #[test]
    fn a_filter_knows_reasons_and_outcomes() {
        let record = json!({ "reason": "backout", "outcome": "trapped", "queue": "q",
                             "detail": "amount below 0" });
        let check = |reason: Option<&str>, detail: Option<&str>, wanted: bool| {
            let filter = FilterArgs {
                reason: reason.map(str::to_owned),
                detail: detail.map(str::to_owned),
                ..FilterArgs::default()
            };
            assert_eq!(is_meant(&record, &filter), wanted, "{filter:?}");
        };
        check(None, None, true);
        check(Some("backout"), None, true);
        check(Some("trapped"), Some("below"), true);
        check(Some("rejected"), None, false);
        check(None, Some("above"), false);
    }

    #[test]
    fn all_is_never_meant_by_saying_nothing() {
        let meant = |filter| MeantArgs {
            id: Vec::new(),
            holder: HolderArgs {
                queue: QueueName::dead_letter(),
            },
            filter,
        };
        let nothing = meant(FilterArgs::default());
        let failure = make_sure(false, &nothing).expect_err("not all");
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.message.contains("--all"), "{failure}");
        make_sure(true, &nothing).expect("all");
        let only_some = FilterArgs {
            max: Some(5),
            ..FilterArgs::default()
        };
        assert!(make_sure(false, &meant(only_some)).is_err());
    }
}
