//! `doctor`: what of this machine, these directories and this host would make trouble, and what to
//! do about it. Works with and without a running host.
//!
//! Nothing is changed: what a check writes to a directory it takes away again. Each check is a
//! function from what it finds to a [`Line`], so that what is found and what it means are apart.

mod clock;
mod disk;
mod host;
mod machine;

use std::path::Path;

use serde_json::{Value, json};

use super::Context;
use crate::args::Cli;
use crate::args::serve::ServeArgs;
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::render::table::{Cell, Table, Tone};

/// How it stands with one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// As it should be.
    Ok,
    /// It works, and may not for long or not well.
    Warn,
    /// It does not work.
    Fail,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Ok => Tone::Good,
            Self::Warn => Tone::Warn,
            Self::Fail => Tone::Bad,
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
struct Line {
    name: &'static str,
    state: State,
    /// What was found.
    fact: String,
    /// What to do; empty when all is well.
    cure: String,
}

impl Line {
    fn ok(name: &'static str, fact: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Ok,
            fact: fact.into(),
            cure: String::new(),
        }
    }

    fn warn(name: &'static str, fact: impl Into<String>, cure: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Warn,
            fact: fact.into(),
            cure: cure.into(),
        }
    }

    fn fail(name: &'static str, fact: impl Into<String>, cure: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Fail,
            fact: fact.into(),
            cure: cure.into(),
        }
    }
}

/// Looks at everything.
pub(super) fn run(context: &Context, cli: &Cli, args: &ServeArgs) -> Result<(), Failure> {
    let mut flags = cli.globals.flags();
    flags.extend(args.flags());
    let config = Config::load(flags, cli.globals.config.as_deref())?;
    let lines = look(context, &config);
    let worst = lines.iter().map(|line| line.state).max();
    let worst = worst.unwrap_or(State::Ok);
    let screen = &context.screen;
    if screen.is_json() {
        screen.json(
            &json!({ "worst": worst.word(), "checks": lines.iter().map(as_json)
            .collect::<Vec<_>>() }),
        )?;
    } else {
        screen.table(&table(&lines), "")?;
        for line in lines.iter().filter(|line| !line.cure.is_empty()) {
            screen.line("")?;
            screen.headline(&format!("{} ({})", line.name, line.state.word()))?;
            screen.text(&format!("  {}", line.cure))?;
        }
    }
    if worst < State::Fail {
        return Ok(());
    }
    let failed = lines.iter().filter(|line| line.state == State::Fail);
    let names: Vec<_> = failed.map(|line| line.name).collect();
    let message = format!("not as it should be: {}", names.join(", "));
    Err(Failure::new(Exit::Failed, message))
}

fn look(context: &Context, config: &Config) -> Vec<Line> {
    let clock = clock::begin();
    let data = Path::new(config.text("data-dir"));
    let plugins = Path::new(config.text("plugins-dir"));
    let mut lines = host::check(context, config);
    lines.push(machine::open_files());
    lines.push(machine::mappings(config.number("slots")));
    lines.push(machine::pool(config.number("slots")));
    lines.push(machine::memory(config));
    lines.push(machine::processors(config.number("workers")));
    lines.extend(disk::data(data, config));
    lines.extend(disk::plugins(plugins, config));
    lines.push(clock.end());
    lines.push(clock::synchronised());
    lines
}

fn as_json(line: &Line) -> Value {
    let mut json = json!({ "name": line.name, "state": line.state.word(), "fact": line.fact });
    if let (Some(fields), false) = (json.as_object_mut(), line.cure.is_empty()) {
        fields.insert("cure".to_owned(), line.cure.clone().into());
    }
    json
}

fn table(lines: &[Line]) -> Table {
    let mut table = Table::new(&["", "CHECK", "FOUND"]);
    for line in lines {
        table.row(vec![
            Cell::new(line.state.word()).tone(line.state.tone()),
            Cell::new(line.name),
            Cell::new(&line.fact),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cure_is_said_only_where_there_is_one() {
        let lines = [
            Line::ok("open files", "1 048 576"),
            Line::fail("free space", "1.0 MiB", "make room"),
        ];
        assert_eq!(
            table(&lines).render(None, false),
            "      CHECK       FOUND\nok    open files  1 048 576\nfail  free space  1.0 MiB\n"
        );
        assert_eq!(
            as_json(&lines[1]),
            json!({ "name": "free space", "state": "fail", "fact": "1.0 MiB",
                    "cure": "make room" })
        );
        assert!(as_json(&lines[0]).get("cure").is_none());
    }

    #[test]
    fn a_failure_is_worse_than_a_warning() {
        assert!(State::Fail > State::Warn && State::Warn > State::Ok);
    }
}
