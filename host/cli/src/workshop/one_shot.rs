//! `oncue run`: a plugin handles a few messages, once, and everything that it did is shown.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use oncue_core::definition::Raw;
use oncue_manager::{Clock as _, SystemClock};
use oncue_runtime::Sandbox;
use oncue_runtime::plugin::{EmptyCall, SinglePlugin};
use serde_json::{Map, Value};

use super::bench::Bench;
use super::body::Given;
use super::case::{self, Fields, GivenMessage, Input, Reply};
use super::job::Job;
use super::probe::Order;
use super::{plugin, report};
use crate::args::messages::FieldArgs;
use crate::args::workshop::RunArgs;
use crate::exit::{Exit, Failure};
use crate::render::Screen;

/// Longest body that is read, in bytes.
const MAX_BODY: u64 = 64 << 20;

/// The name that stands for stdin.
const STDIN: &str = "-";

/// Runs a plugin once.
///
/// # Errors
/// Refused when the plugin is; failed without words when the handler did, which was shown.
pub(crate) fn run(screen: &Screen, args: &RunArgs) -> Result<(), Failure> {
    let input = input(args)?;
    let bench = plugin::load(screen, &args.plugin, args.manifest.as_deref())?;
    let now = SystemClock.now();
    let mut job = Job::new(&input, Path::new("."), &bench.plugin, now).map_err(|faults| {
        Failure::new(Exit::Usage, "the run cannot be made:").with_faults(faults)
    })?;
    let running = bench.run(&mut job, Order::None)?;
    let observed = running.observe()?;
    if screen.is_json() {
        screen.json(&report::run_json(&bench.plugin, &observed))?;
    } else {
        report::run_text(screen, &bench.plugin, &observed)?;
    }
    if let Some(folder) = &args.save {
        let input = Input {
            queue: Some(job.queue.clone()),
            ..input
        };
        case::write_case(folder, &input, &observed.expected())?;
        screen.say(&format!("case \"{}\" is written", folder.display()));
    }
    if observed.is_committed() {
        Ok(())
    } else {
        // What was printed says why.
        Err(Failure::new(Exit::Failed, ""))
    }
}

/// What a loaded plugin does with one message that has no body.
///
/// # Errors
/// When there is no bench; how the handler fares is part of the answer.
pub(crate) fn empty_call(plugin: SinglePlugin, sandbox: Sandbox) -> Result<EmptyCall, Failure> {
    let input = Input {
        messages: vec![GivenMessage::default()],
        ..Input::default()
    };
    let bench = Bench::new(plugin, sandbox)?;
    let now = SystemClock.now();
    let mut job = Job::new(&input, Path::new("."), &bench.plugin, now).map_err(|faults| {
        Failure::new(Exit::Failed, "an empty call cannot be made:").with_faults(faults)
    })?;
    let observed = bench.run(&mut job, Order::None)?.observe()?;
    let details = observed.messages.iter().map(|given| given.detail.clone());
    Ok(EmptyCall {
        fuel: observed.tasks.iter().map(|task| task.cost.fuel).sum(),
        outcome: observed.word().to_owned(),
        detail: details.into_iter().flatten().next(),
    })
}

/// What the arguments give the handler.
fn input(args: &RunArgs) -> Result<Input, Failure> {
    let fields = fields(&args.fields)?;
    let mut bodies = Vec::new();
    for path in &args.message {
        bodies.push(Given::of(&read(path)?));
    }
    let text = |text: &String| Given {
        text: Some(text.clone()),
        ..Given::default()
    };
    bodies.extend(args.text.iter().map(text));
    if bodies.is_empty() {
        bodies.push(Given::default());
    }
    let message = |body| GivenMessage {
        body,
        queue: None,
        fields: fields.clone(),
    };
    let trigger = args.trigger.as_ref().map_or(Raw::Null, |trigger| {
        let mut table = vec![("trigger".to_owned(), Raw::text(trigger.word.clone()))];
        if let Some(depth) = trigger.depth {
            let depth = i64::try_from(depth).unwrap_or(i64::MAX);
            table.push(("trigger-depth".to_owned(), Raw::Integer(depth)));
        }
        Raw::Table(table)
    });
    Ok(Input {
        queue: args.queue.clone(),
        trigger,
        messages: bodies.into_iter().map(message).collect(),
        state: args
            .state
            .iter()
            .map(|(key, value)| (key.clone(), text(value)))
            .collect(),
        config: args.set.iter().cloned().collect::<BTreeMap<_, _>>(),
        replies: args
            .reply
            .iter()
            .map(|(queue, body)| Reply {
                queue: queue.clone(),
                body: text(body),
                content_type: None,
                properties: Map::new(),
            })
            .collect(),
        faults: None,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let cannot = |error: std::io::Error| {
        let exit = match error.kind() {
            std::io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::Failed,
        };
        Failure::new(
            exit,
            format!("\"{}\" cannot be read: {error}", path.display()),
        )
    };
    let reader: Box<dyn Read> = match path.to_str() {
        Some(STDIN) => Box::new(std::io::stdin().lock()),
        _ => Box::new(std::fs::File::open(path).map_err(cannot)?),
    };
    let mut body = Vec::new();
    let read = reader.take(MAX_BODY + 1).read_to_end(&mut body);
    read.map_err(cannot)?;
    if body.len() as u64 > MAX_BODY {
        let message = format!("\"{}\" has more than {MAX_BODY} bytes", path.display());
        return Err(Failure::new(Exit::Usage, message));
    }
    Ok(body)
}

/// Fields from flags and headers alike; all faults at once.
fn fields(args: &FieldArgs) -> Result<Fields, Failure> {
    let mut given: Vec<(String, String)> = Vec::new();
    for (name, value) in &args.header {
        let name = name.to_ascii_lowercase();
        let field = match name.strip_prefix("oncue-property-") {
            Some(property) => format!("property {property}"),
            None => name.strip_prefix("oncue-").unwrap_or(&name).to_owned(),
        };
        given.push((field, value.clone()));
    }
    let flags = [
        ("correlation-id", args.correlation_id.clone()),
        ("reply-to", args.reply_to.as_ref().map(ToString::to_string)),
        ("group", args.group.clone()),
        (
            "group-sequence",
            args.group_sequence.map(|it| it.to_string()),
        ),
        ("priority", args.priority.map(|it| it.to_string())),
        ("persistence", args.persistence.clone()),
        ("expiry", args.expiry.clone()),
        ("delay", args.delay.clone()),
        ("idempotency-key", args.idempotency_key.clone()),
        ("content-type", args.content_type.clone()),
    ];
    let told = |(name, value): (&str, Option<String>)| Some((name.to_owned(), value?));
    given.extend(flags.into_iter().filter_map(told));
    let property = |(name, value): &(String, String)| (format!("property {name}"), value.clone());
    given.extend(args.property.iter().map(property));
    let (mut fields, mut faults) = (Fields::default(), Vec::new());
    for (name, value) in given {
        if let Err(fault) = set(&mut fields, &name, value) {
            faults.push(format!("field \"{name}\" {fault}"));
        }
    }
    if faults.is_empty() {
        return Ok(fields);
    }
    let message = "the message's fields are not valid:";
    Err(Failure::new(Exit::Usage, message).with_faults(faults))
}

fn set(fields: &mut Fields, name: &str, value: String) -> Result<(), String> {
    let number = |text: &str| {
        text.parse()
            .map_err(|_| format!("is \"{text}\"; use a number"))
    };
    let time = |text: &str| oncue_core::quantity::parse_millis(text).map_err(|error| error.fact());
    match name {
        "correlation-id" => fields.correlation_id = Some(value),
        "reply-to" => fields.reply_to = Some(value),
        "group" => fields.group = Some(value),
        "group-sequence" => fields.group_sequence = Some(number(&value)?),
        "priority" => {
            let priority = number(&value)?;
            let small = u8::try_from(priority).ok();
            fields.priority = Some(small.ok_or("is past 9")?);
        }
        "content-type" => fields.content_type = Some(value),
        "expiry" if value == "never" => fields.expiry = None,
        "expiry" => fields.expiry = Some(time(&value)?),
        "delay" => fields.delay = Some(time(&value)?),
        "persistence" | "idempotency-key" => {
            return Err("means nothing to a handler; leave it out".to_owned());
        }
        name => {
            let Some(property) = name.strip_prefix("property ") else {
                return Err("is not known; use the fields of \"oncue put\"".to_owned());
            };
            add_property(&mut fields.properties, property, value);
        }
    }
    Ok(())
}

/// Adds a property; a name that stands for several values has a list of them.
fn add_property(properties: &mut Map<String, Value>, name: &str, text: String) {
    match properties.get_mut(name) {
        None => {
            properties.insert(name.to_owned(), text.into());
        }
        Some(Value::Array(values)) => values.push(text.into()),
        Some(first) => *first = Value::Array(vec![first.take(), text.into()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_flags_are_the_same_fields() {
        let args = FieldArgs {
            header: [
                ("oncue-priority", "7"),
                ("Content-Type", "text/plain"),
                ("oncue-property-region", "eu"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
            delay: Some("5s".to_owned()),
            property: vec![("region".to_owned(), "us".to_owned())],
            ..FieldArgs::default()
        };
        let fields = fields(&args).expect("fields");
        assert_eq!((fields.priority, fields.delay), (Some(7), Some(5_000)));
        assert_eq!(fields.content_type.as_deref(), Some("text/plain"));
        assert_eq!(
            Value::Object(fields.properties),
            serde_json::json!({ "region": ["eu", "us"] })
        );
    }

    #[test]
    fn every_bad_field_is_named() {
        let args = FieldArgs {
            header: vec![("oncue-colour".to_owned(), "red".to_owned())],
            delay: Some("soon".to_owned()),
            idempotency_key: Some("k".to_owned()),
            ..FieldArgs::default()
        };
        let failure = fields(&args).expect_err("faults");
        assert_eq!((failure.exit, failure.faults.len()), (Exit::Usage, 3));
    }
}
