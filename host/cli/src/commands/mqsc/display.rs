//! DISPLAY: queues, their state, and processes in the words of MQSC.

use oncue_core::definition::AttributeInfo;
use oncue_core::quantity::parse_size;
use serde_json::Value;

use super::Report;
use super::attributes::{quoted_name, shown};
use super::does::what;
use super::parse::{Command, Filter, Object};
use crate::commands::Context;
use crate::commands::definitions::What;
use crate::exit::Failure;
use crate::render::values::{at, items, plain};

/// What a display shows of one object: keyword, value as it is compared, and as it is shown.
struct Shown {
    keyword: String,
    value: String,
    text: String,
}

/// Shows what is there.
pub(super) fn run(context: &Context, command: &Command) -> Result<Report, Failure> {
    let what = what(command.object);
    let views = context.client.list(what.path(), &[], None)?;
    let is_generic = command.name.ends_with('*');
    let wanted: Vec<&str> = command
        .parameters
        .iter()
        .map(|parameter| parameter.keyword.as_str())
        .filter(|keyword| *keyword != "ALL")
        .collect();
    let all = command.parameters.iter().any(|one| one.keyword == "ALL");
    let shows_all = all || (wanted.is_empty() && !is_generic);
    let mut objects = Vec::new();
    let mut known = false;
    for view in items(&views) {
        let name = plain(at(view, "name"));
        if !fits(&name, &command.name) {
            continue;
        }
        let everything = everything(command.object, view);
        known |= wanted
            .iter()
            .all(|keyword| everything.iter().any(|one| one.keyword == *keyword));
        if let Some(filter) = &command.filter {
            let value = everything.iter().find(|one| one.keyword == filter.keyword);
            if !value.is_some_and(|one| passes(&one.value, filter)) {
                continue;
            }
        }
        let chosen = everything
            .into_iter()
            .enumerate()
            .filter(|(index, one)| *index < 2 || shows_all || wanted.contains(&&*one.keyword))
            .map(|(_, one)| (one.keyword, one.text));
        let mut chosen: Vec<(String, String)> = chosen.collect();
        join_head(&mut chosen);
        objects.push(chosen);
    }
    if objects.is_empty() {
        let sentence = format!("no {} is {}", what.word(), command.name);
        return Ok(Report {
            // Nothing behind a filter or a star is an answer; a name that is not there is none.
            refused: !is_generic && command.filter.is_none(),
            sentence,
            ..Report::default()
        });
    }
    let sentence = if known || wanted.is_empty() {
        String::new()
    } else {
        format!("not all of {} are known here", wanted.join(", "))
    };
    Ok(Report {
        sentence,
        objects,
        ..Report::default()
    })
}

/// Name and type stand on one line.
fn join_head(chosen: &mut Vec<(String, String)>) {
    if chosen.len() > 1 {
        let (_, kind) = chosen.remove(1);
        if let Some((_, name)) = chosen.first_mut() {
            name.push(' ');
            name.push_str(&kind);
        }
    }
}

/// Whether a name is meant: a star at the end stands for any rest.
fn fits(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

fn everything(object: Object, view: &Value) -> Vec<Shown> {
    let name = plain(at(view, "name"));
    let (head, kind) = match object {
        Object::Process => ("PROCESS", "PROCESS"),
        Object::Queue => ("QUEUE", "QLOCAL"),
        Object::QueueStatus => ("QUEUE", "QUEUE"),
    };
    let mut all = vec![
        Shown {
            keyword: head.to_owned(),
            text: format!("{head}({})", quoted_name(&name)),
            value: name,
        },
        Shown {
            keyword: "TYPE".to_owned(),
            text: format!("TYPE({kind})"),
            value: kind.to_owned(),
        },
    ];
    if object != Object::Process {
        all.extend(state(view));
    }
    if object != Object::QueueStatus {
        all.extend(definition(object, view));
    }
    all
}

/// The figures of a queue that MQ knows too.
fn state(view: &Value) -> Vec<Shown> {
    let number = |path: &str| at(view, path).as_u64().unwrap_or_default();
    let uncommitted = number("counts.in-unit") + number("counts.leased") > 0;
    let age = at(view, "oldest-age").as_u64().map(|millis| millis / 1_000);
    let figures = [
        ("CURDEPTH", number("depth").to_string()),
        (
            "IPPROCS",
            (number("running") + number("waiting-inputs")).to_string(),
        ),
        ("MSGAGE", age.unwrap_or_default().to_string()),
        ("UNCOM", if uncommitted { "YES" } else { "NO" }.to_owned()),
    ];
    let shown = figures.into_iter().map(|(keyword, value)| Shown {
        keyword: keyword.to_owned(),
        text: format!("{keyword}({value})"),
        value,
    });
    shown.collect()
}

fn definition(object: Object, view: &Value) -> Vec<Shown> {
    let attributes = match object {
        Object::Process => What::Process.attributes(),
        Object::Queue | Object::QueueStatus => What::Queue.attributes(),
    };
    let of = |info: &'static AttributeInfo| {
        let name = info.name;
        let written = plain(at(view, &format!("attributes.{name}")));
        // MQSC writes sizes as bytes.
        let value = match name {
            "max-message-length" => parse_size(&written).map_or(written, |size| size.to_string()),
            _ => written,
        };
        shown(object, name, &value)
            .into_iter()
            .map(|(keyword, text)| {
                let compared = text
                    .strip_prefix(keyword)
                    .map(|rest| rest.trim_matches(['(', ')']).trim_matches('\'').to_owned());
                Shown {
                    keyword: keyword.to_owned(),
                    value: compared.unwrap_or_default().trim().to_owned(),
                    text,
                }
            })
    };
    attributes.iter().flat_map(of).collect()
}

fn passes(value: &str, filter: &Filter) -> bool {
    use std::cmp::Ordering;
    let order = match (value.parse::<u64>(), filter.value.parse::<u64>()) {
        (Ok(value), Ok(wanted)) => value.cmp(&wanted),
        _ => value.cmp(&filter.value),
    };
    match filter.operator.as_str() {
        "EQ" => order == Ordering::Equal,
        "NE" => order != Ordering::Equal,
        "LT" => order == Ordering::Less,
        "LE" => order != Ordering::Greater,
        "GT" => order == Ordering::Greater,
        "GE" => order != Ordering::Less,
        "LK" => fits(value, &filter.value),
        _ => !fits(value, &filter.value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_queue_is_shown_in_the_words_of_mqsc() {
        let view = json!({
            "name": "ORDERS.IN", "depth": 12, "running": 1, "waiting-inputs": 0,
            "oldest-age": 61_000, "counts": { "in-unit": 2, "leased": 0 },
            "attributes": { "trigger": "depth", "trigger-control": "off", "trigger-depth": 5,
                            "process": "route", "max-message-length": "4 MiB",
                            "alarm-depth-high": 75, "alarm-depth-low": "never",
                            "service-interval": "1m",
                            "description": "it's" },
        });
        let texts: Vec<String> = everything(Object::Queue, &view)
            .into_iter()
            .map(|one| one.text)
            .collect();
        for wanted in [
            "QUEUE(ORDERS.IN)",
            "TYPE(QLOCAL)",
            "CURDEPTH(12)",
            "IPPROCS(1)",
            "MSGAGE(61)",
            "UNCOM(YES)",
            "TRIGTYPE(DEPTH)",
            "NOTRIGGER",
            "TRIGDPTH(5)",
            "PROCESS('route')",
            "MAXMSGL(4194304)",
            "DESCR('it''s')",
            "QDEPTHHI(75)",
            "QDPHIEV(ENABLED)",
            "QDPLOEV(DISABLED)",
            "QSVCINT(60000)",
            "QSVCIEV(HIGH)",
        ] {
            assert!(
                texts.iter().any(|text| text == wanted),
                "{wanted}: {texts:?}"
            );
        }
    }

    #[test]
    fn filters_compare_numbers_and_texts() {
        let check = |value: &str, operator: &str, wanted: &str, passes_it: bool| {
            let filter = Filter {
                keyword: String::new(),
                operator: operator.to_owned(),
                value: wanted.to_owned(),
            };
            assert_eq!(
                passes(value, &filter),
                passes_it,
                "{value} {operator} {wanted}"
            );
        };
        check("12", "GT", "9", true);
        check("9", "GT", "12", false);
        check("9", "LE", "9", true);
        check("DEPTH", "EQ", "DEPTH", true);
        check("ORDERS.IN", "LK", "ORDERS*", true);
        check("ORDERS.IN", "NL", "ORDERS*", false);
        assert!(fits("A.B", "*") && fits("A.B", "A.B") && !fits("A.B", "A"));
    }
}
