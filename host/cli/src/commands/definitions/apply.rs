//! `apply`: a file of definitions laid over a host, all of it or nothing, shown change by change.
//!
//! The host says what changes, in a dry run as when it is done: it is one rule, and there.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::reading;
use super::written::toml_of;
use super::{Context, What, nested};
use crate::args::files::ApplyArgs;
use crate::client::Request;
use crate::exit::{Exit, Failure};
use crate::render::text::escape_line;
use crate::render::time::number_of;
use crate::render::values::{at, items, plain};

/// Lays the file over the host.
pub(in crate::commands) fn run(context: &Context, args: &ApplyArgs) -> Result<(), Failure> {
    let wanted = reading::file(&args.file)?;
    let tables = What::ALL.map(|what| {
        let of_kind = wanted.iter().filter(|one| one.what == what);
        let named = of_kind.map(|one| (one.name.clone(), nested(one.entries.iter())));
        (what.word().to_owned(), Value::Object(named.collect()))
    });
    let body = Value::Object(tables.into_iter().collect());
    let path: &[&str] = if args.dry_run {
        &["definitions", "changes"]
    } else {
        &["definitions"]
    };
    let answer = context.client.ask(Request::post(path).json(&body));
    let answer = answer.map_err(|failure| told(failure, args.dry_run))?;
    let screen = &context.screen;
    let changes = items(at(&answer, "changes"));
    if screen.is_json() {
        return screen.json(&json!({ "changes": changes, "dry-run": args.dry_run }));
    }
    for change in changes {
        screen.line(&escape_line(&line(change)))?;
    }
    let changed: BTreeSet<(String, String)> = changes
        .iter()
        .map(|change| (plain(at(change, "what")), plain(at(change, "name"))))
        .collect();
    screen.say(&summary(wanted.len(), changed.len(), args.dry_run));
    Ok(())
}

/// A failure that says what has become of the host's definitions.
fn told(mut failure: Failure, dry_run: bool) -> Failure {
    let told = match failure.exit {
        _ if dry_run => return failure,
        // A connection that broke off, or a disk that failed, says nothing of what was done.
        Exit::Unreachable | Exit::Failed => {
            "whether it was done is not known: the same command with --dry-run tells what is left"
        }
        _ => "nothing was changed",
    };
    failure.faults.push(told.to_owned());
    failure
}

fn summary(wanted: usize, changed: usize, dry_run: bool) -> String {
    let how = if dry_run {
        "would change; nothing was done"
    } else {
        "changed"
    };
    match changed {
        0 if wanted == 1 => "nothing to change: the definition is as the file has it".to_owned(),
        0 => format!("nothing to change: all {wanted} definitions are as the file has them"),
        changed => format!(
            "{changed} of {} {how}",
            number_of(wanted as u64, "definition")
        ),
    }
}

/// A change on a line, in the words of the file.
fn line(change: &Value) -> String {
    let word = |name: &str| plain(at(change, name));
    let head = format!("{} {} {}", word("change"), word("what"), word("name"));
    let Some(attribute) = at(change, "attribute").as_str() else {
        return head;
    };
    let values = match (change.get("from"), change.get("to")) {
        (Some(from), Some(to)) => format!("{} -> {}", toml_of(from), toml_of(to)),
        (Some(one), None) | (None, Some(one)) => toml_of(one),
        (None, None) => String::new(),
    };
    format!("{head} {attribute} = {values}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_line_by_line() {
        let check = |change: Value, wanted: &str| assert_eq!(line(&change), wanted);
        check(
            json!({ "change": "+", "what": "queue", "name": "q" }),
            "+ queue q",
        );
        let with = |mut change: Value, values: &[(&str, Value)]| {
            for (name, value) in values {
                change[*name] = value.clone();
            }
            change
        };
        let of = |mark: &str, attribute: &str| {
            let change = json!({ "change": mark, "what": "queue", "name": "q" });
            with(change, &[("attribute", json!(attribute))])
        };
        check(
            with(of("+", "description"), &[("to", json!("x"))]),
            "+ queue q description = \"x\"",
        );
        check(
            with(
                of("~", "max-tasks"),
                &[("from", json!(4)), ("to", json!(8))],
            ),
            "~ queue q max-tasks = 4 -> 8",
        );
        check(
            with(of("-", "retry.max"), &[("from", json!("1m"))]),
            "- queue q retry.max = \"1m\"",
        );
    }

    #[test]
    fn a_failure_says_what_became_of_it() {
        let failure = |exit| Failure::new(exit, "no".to_owned());
        let faults = |exit, dry_run| told(failure(exit), dry_run).faults;
        assert_eq!(faults(Exit::Refused, false), ["nothing was changed"]);
        assert!(faults(Exit::Unreachable, false)[0].contains("--dry-run"));
        assert!(faults(Exit::Refused, true).is_empty());
        assert_eq!(
            summary(3, 0, false),
            "nothing to change: all 3 definitions are as the file has them"
        );
        assert_eq!(summary(1, 1, false), "1 of 1 definition changed");
        assert_eq!(
            summary(3, 1, true),
            "1 of 3 definitions would change; nothing was done"
        );
    }
}
