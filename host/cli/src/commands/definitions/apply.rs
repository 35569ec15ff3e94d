//! `apply`: a file of definitions laid over a host, shown change by change.

use serde_json::{Value, json};

use super::reading::{self, Wanted, value_of};
use super::written::toml_of;
use super::{Context, Defined, Entry, defined, nested};
use crate::args::files::ApplyArgs;
use crate::client::Request;
use crate::exit::Failure;
use crate::render::text::escape_line;

/// One change of one attribute, or a definition that is new.
#[derive(Clone, Debug, PartialEq)]
struct Change {
    /// None: the definition itself is new.
    attribute: Option<&'static str>,
    from: Option<Value>,
    to: Option<Value>,
}

impl Change {
    /// `+`, `~` or `-`.
    fn mark(&self) -> &'static str {
        match (&self.from, &self.to) {
            (None, _) => "+",
            (Some(_), Some(_)) => "~",
            (Some(_), None) => "-",
        }
    }
}

/// Lays the file over the host.
pub(in crate::commands) fn run(context: &Context, args: &ApplyArgs) -> Result<(), Failure> {
    let wanted = reading::file(&args.file)?;
    let there = defined(context)?;
    let plan: Vec<(&Wanted, Vec<Change>)> = wanted
        .iter()
        .map(|one| (one, changes(one, find(&there, one))))
        .filter(|(_, changes)| !changes.is_empty())
        .collect();
    let screen = &context.screen;
    let refused = if args.dry_run {
        Vec::new()
    } else {
        carry_out(context, &plan)
    };
    if screen.is_json() {
        screen.json(&as_json(&plan, args.dry_run, refused.len()))?;
    } else {
        for (one, changes) in &plan {
            for change in changes {
                screen.line(&escape_line(&line(one, change)))?;
            }
        }
    }
    if let Some(first) = refused.first() {
        let count = refused.len();
        let message = format!(
            "{count} of {} definitions were refused; the others are applied",
            plan.len()
        );
        let exit = first.1.exit;
        let faults = refused
            .into_iter()
            .flat_map(|(whom, failure)| told(&whom, failure));
        return Err(Failure::new(exit, message).with_faults(faults.collect()));
    }
    screen.say(&summary(wanted.len(), plan.len(), args.dry_run));
    Ok(())
}

fn summary(wanted: usize, changed: usize, dry_run: bool) -> String {
    let how = if dry_run {
        "would change; nothing was done"
    } else {
        "changed"
    };
    match changed {
        0 => format!("nothing to change: {wanted} definitions are as the file has them"),
        changed => format!("{changed} of {wanted} definitions {how}"),
    }
}

/// A refusal as sentences, each with whom it is about.
fn told(whom: &str, failure: Failure) -> Vec<String> {
    let mut all = vec![format!("{whom}: {}", failure.message)];
    all.extend(
        failure
            .faults
            .iter()
            .map(|fault| format!("{whom}: {fault}")),
    );
    all
}

fn find<'a>(there: &'a [Defined], wanted: &Wanted) -> Option<&'a Defined> {
    there
        .iter()
        .find(|one| one.what == wanted.what && one.name == wanted.name)
}

/// What has to change for the operator's layer to be what is wanted.
fn changes(wanted: &Wanted, there: Option<&Defined>) -> Vec<Change> {
    let before = there.map(Defined::overlay).unwrap_or_default();
    let mut changes = Vec::new();
    if there.is_none() {
        changes.push(Change {
            attribute: None,
            from: None,
            to: None,
        });
    }
    for info in wanted.what.attributes() {
        let from = value_of(&before, info.name);
        let to = value_of(&wanted.entries, info.name);
        if from != to {
            changes.push(Change {
                attribute: Some(info.name),
                from: from.cloned(),
                to: to.cloned(),
            });
        }
    }
    changes
}

fn line(wanted: &Wanted, change: &Change) -> String {
    let head = format!("{} {} {}", change.mark(), wanted.what.word(), wanted.name);
    let Some(attribute) = change.attribute else {
        return head;
    };
    let values = match (&change.from, &change.to) {
        (Some(from), Some(to)) => format!("{} -> {}", toml_of(from), toml_of(to)),
        (Some(one), None) | (None, Some(one)) => toml_of(one),
        (None, None) => String::new(),
    };
    format!("{head} {attribute} = {values}")
}

fn as_json(plan: &[(&Wanted, Vec<Change>)], dry_run: bool, refused: usize) -> Value {
    let all = plan.iter().flat_map(|(one, changes)| {
        changes.iter().map(|change| {
            let mut json = json!({
                "change": change.mark(), "what": one.what.word(), "name": one.name,
            });
            let optional = [
                ("attribute", change.attribute.map(Value::from)),
                ("from", change.from.clone()),
                ("to", change.to.clone()),
            ];
            if let Some(fields) = json.as_object_mut() {
                for (name, value) in optional {
                    fields.extend(value.map(|value| (name.to_owned(), value)));
                }
            }
            json
        })
    });
    json!({ "changes": all.collect::<Vec<_>>(), "dry-run": dry_run, "refused": refused })
}

/// Does what is planned, one definition after the other; answers whom the host refused, and why.
fn carry_out(context: &Context, plan: &[(&Wanted, Vec<Change>)]) -> Vec<(String, Failure)> {
    let mut refused = Vec::new();
    for (one, changes) in plan {
        let set: Vec<Entry> = changes
            .iter()
            .filter_map(|change| Some((change.attribute?, change.to.clone().unwrap_or_default())))
            .collect();
        let patch = nested(set.iter());
        let request = Request::put(&[one.what.path(), &one.name], &patch);
        if let Err(failure) = context.client.ask(request) {
            let whom = format!("{} \"{}\"", one.what.word(), one.name);
            let is_over = failure.exit == crate::exit::Exit::Unreachable;
            refused.push((whom, failure));
            if is_over {
                break;
            }
        }
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::super::What;
    use super::*;

    fn there() -> Defined {
        let view = json!({
            "name": "q",
            "attributes": { "trigger": "depth", "max-tasks": 4, "retry": { "max": "1m" } },
            "origins": { "max-tasks": "operator", "retry.max": "operator", "trigger": "manifest" },
        });
        Defined::of(What::Queue, &view)
    }

    fn wanted(text: &str) -> Wanted {
        let mut all = reading::definitions(text).expect("definitions");
        all.remove(0)
    }

    fn lines(text: &str, there: Option<&Defined>) -> Vec<String> {
        let one = wanted(text);
        let changes = changes(&one, there);
        changes.iter().map(|change| line(&one, change)).collect()
    }

    #[test]
    fn changes_are_told_line_by_line() {
        let text = "[queue.q]\nmax-tasks = 8\ndescription = \"x\"\n";
        assert_eq!(
            lines(text, Some(&there())),
            [
                "+ queue q description = \"x\"",
                "~ queue q max-tasks = 4 -> 8",
                "- queue q retry.max = \"1m\"",
            ]
        );
        assert_eq!(lines("[queue.q]\n", None), ["+ queue q"]);
        assert_eq!(
            lines("[queue.q]\nmax-tasks = 8\n", None),
            ["+ queue q", "+ queue q max-tasks = 8"]
        );
    }

    #[test]
    fn what_is_as_wanted_changes_nothing() {
        let text = "[queue.q]\nmax-tasks = 4\nretry.max = \"60s\"\n";
        assert!(lines(text, Some(&there())).is_empty());
        assert_eq!(
            summary(3, 0, false),
            "nothing to change: 3 definitions are as the file has them"
        );
    }

    #[test]
    fn what_is_taken_away_is_null() {
        let one = wanted("[queue.q]\nmax-tasks = 8\n");
        let changes = changes(&one, Some(&there()));
        let set: Vec<Entry> = changes
            .iter()
            .filter_map(|change| Some((change.attribute?, change.to.clone().unwrap_or_default())))
            .collect();
        assert_eq!(
            nested(set.iter()),
            json!({ "max-tasks": 8, "retry": { "max": null } })
        );
    }
}
