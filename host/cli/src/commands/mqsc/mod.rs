//! `mqsc`: definitions as scripts of IBM MQ have them, brought over.
//!
//! DEFINE, ALTER, DISPLAY and DELETE of QLOCAL and PROCESS. Each attribute is reported as accepted,
//! ignored (why) or refused (why); a command with a refused attribute is not done, and the next one
//! is. Nothing is guessed: what MQ means and this host cannot do is refused.

mod attributes;
mod display;
mod does;
mod events;
mod lines;
mod parse;

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use serde_json::{Value, json};

use super::Context;
use crate::args::mqsc::MqscArgs;
use crate::exit::{Exit, Failure};
use crate::render::table::{Cell, Table, Tone};
use crate::render::text::{cut_line, escape_line};
use does::Doer;
use parse::Parsed;

/// Longest script, in bytes.
const MAX_SCRIPT: u64 = 64 << 20;

/// How much of a command is repeated in the report, in characters.
const SHOWN_LENGTH: usize = 90;

/// What became of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Accepted,
    Ignored,
    Refused,
    /// Not given; MQ's default, since a script counts on it.
    Assumed,
}

impl Fate {
    fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Ignored => "ignored",
            Self::Refused => "refused",
            Self::Assumed => "assumed",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Accepted | Self::Assumed => Tone::Plain,
            Self::Ignored => Tone::Warn,
            Self::Refused => Tone::Bad,
        }
    }
}

/// An attribute of a command: as the script has it, what became of it, and how or why.
#[derive(Clone, Debug)]
struct Told {
    fate: Fate,
    attribute: String,
    text: String,
}

/// What became of one command.
#[derive(Clone, Debug, Default)]
struct Report {
    /// In a sentence.
    sentence: String,
    refused: bool,
    attributes: Vec<Told>,
    /// What a display found: keyword, and the whole parameter as it is shown.
    objects: Vec<Vec<(String, String)>>,
}

impl Report {
    fn refused(sentence: impl Into<String>) -> Self {
        Self {
            sentence: sentence.into(),
            refused: true,
            ..Self::default()
        }
    }
}

/// Does a script.
pub(super) fn run(context: &Context, args: &MqscArgs) -> Result<(), Failure> {
    let script = read(args.file.as_deref())?;
    let (commands, unfinished) = lines::commands(&script);
    let mut doer = Doer::new(context, args.dry_run);
    let (mut done, mut refused) = (0_usize, 0_usize);
    let mut reports = Vec::new();
    for whole in &commands {
        let report = match parse::command(&whole.text) {
            Ok(Parsed::End) => break,
            Ok(Parsed::Command(command)) => doer.run(&command)?,
            Err(why) => Report::refused(why),
        };
        if report.refused {
            refused += 1;
        } else {
            done += 1;
        }
        if context.screen.is_json() {
            reports.push(as_json(whole, &report));
        } else {
            print(context, whole, &report)?;
        }
    }
    if context.screen.is_json() {
        context.screen.json(&json!({
            "commands": reports, "done": done, "refused": refused, "dry-run": args.dry_run,
        }))?;
    }
    if let Some(line) = unfinished {
        context.screen.say(&format!(
            "line {line}: the script ends within a command; its last line is continued with + or -"
        ));
    }
    let dry = if args.dry_run {
        ", nothing was changed"
    } else {
        ""
    };
    let sum = format!("{done} commands done, {refused} refused{dry}");
    if refused > 0 {
        return Err(Failure::new(Exit::Refused, sum));
    }
    context.screen.say(&sum);
    Ok(())
}

fn read(file: Option<&Path>) -> Result<String, Failure> {
    let whole = |from: &mut dyn Read| {
        let mut text = String::new();
        from.take(MAX_SCRIPT)
            .read_to_string(&mut text)
            .map(|_| text)
    };
    match file {
        None => whole(&mut io::stdin().lock())
            .map_err(|error| Failure::new(Exit::Failed, format!("stdin cannot be read: {error}"))),
        Some(path) => {
            let opened = fs::File::open(path).and_then(|mut file| whole(&mut file));
            opened.map_err(|error| {
                let exit = match error.kind() {
                    io::ErrorKind::NotFound => Exit::NotFound,
                    _ => Exit::Failed,
                };
                let message = format!("script \"{}\" cannot be read: {error}", path.display());
                Failure::new(exit, message)
            })
        }
    }
}

fn print(context: &Context, whole: &lines::Whole, report: &Report) -> Result<(), Failure> {
    let screen = &context.screen;
    let verdict = if report.refused { "refused: " } else { "" };
    screen.headline(&format!(
        "line {}: {}",
        whole.line,
        cut_line(&whole.text, SHOWN_LENGTH)
    ))?;
    if !report.sentence.is_empty() {
        screen.line(&format!("  {verdict}{}", escape_line(&report.sentence)))?;
    }
    let mut table = Table::new(&["", "", "", ""]);
    for told in &report.attributes {
        table.row(vec![
            Cell::new(" "),
            Cell::new(told.fate.word()).tone(told.fate.tone()),
            Cell::new(&told.attribute),
            Cell::new(&told.text),
        ]);
    }
    screen.table(&table, "")?;
    for object in &report.objects {
        for (index, (_, text)) in object.iter().enumerate() {
            let indent = if index == 0 { "  " } else { "     " };
            screen.line(&format!("{indent}{}", escape_line(text)))?;
        }
    }
    Ok(())
}

fn as_json(whole: &lines::Whole, report: &Report) -> Value {
    let attributes = report.attributes.iter().map(
        |told| json!({ "attribute": told.attribute, "fate": told.fate.word(), "text": told.text }),
    );
    let objects = report.objects.iter().map(|object| {
        let shown: Vec<&str> = object.iter().map(|(_, text)| text.as_str()).collect();
        shown.join(" ")
    });
    json!({
        "line": whole.line, "command": whole.text, "refused": report.refused,
        "text": report.sentence, "attributes": attributes.collect::<Vec<_>>(),
        "objects": objects.collect::<Vec<_>>(),
    })
}
