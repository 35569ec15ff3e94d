//! `doctor`: what of a host, its machine and its directories would make trouble, and what to do
//! about it. A host that runs is asked and looks at itself, for its limits are not those of this
//! shell. If none runs, this process looks at what a start here would meet.
//!
//! Nothing is changed: what a check writes to a directory it takes away again. Each check is a
//! function from what it finds to a [`Line`], so that what is found and what it means are apart.

mod clock;
mod disk;
mod host;
mod machine;

use std::borrow::Cow;
use std::path::Path;

use oncue_manager::Handle;
use oncue_runtime::SandboxLimits;
use oncue_server::{Doctor, Finding, Standing};
use oncue_store::histogram::Distribution;
use serde_json::{Value, json};

use super::Context;
use crate::args::Cli;
use crate::args::serve::DoctorArgs;
use crate::client::Request;
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
    const ALL: [Self; 3] = [Self::Ok, Self::Warn, Self::Fail];

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

/// Who has looked, and so what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// The host, at its own process and machine.
    Host,
    /// This process, as a host that is started here would.
    Here,
}

impl Of {
    fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Here => "here",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
struct Line {
    of: Of,
    name: Cow<'static, str>,
    state: State,
    /// What was found.
    fact: String,
    /// What to do; empty when all is well.
    cure: String,
}

impl Line {
    fn new(
        name: impl Into<Cow<'static, str>>,
        state: State,
        fact: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        Self {
            of: Of::Here,
            name: name.into(),
            state,
            fact: fact.into(),
            cure: cure.into(),
        }
    }

    fn ok(name: &'static str, fact: impl Into<String>) -> Self {
        Self::new(name, State::Ok, fact, "")
    }

    fn warn(name: &'static str, fact: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::new(name, State::Warn, fact, cure)
    }

    fn fail(name: &'static str, fact: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::new(name, State::Fail, fact, cure)
    }

    /// What a host has found.
    fn told(finding: &Value) -> Option<Self> {
        let text = |name: &str| finding.get(name).and_then(Value::as_str);
        let state = State::ALL
            .into_iter()
            .find(|it| Some(it.word()) == text("state"))?;
        let cure = text("cure").unwrap_or_default();
        let line = Self::new(text("name")?.to_owned(), state, text("fact")?, cure);
        Some(Self {
            of: Of::Host,
            ..line
        })
    }
}

/// Looks at everything.
pub(super) fn run(context: &Context, cli: &Cli, args: &DoctorArgs) -> Result<(), Failure> {
    let mut flags = cli.globals.flags();
    let settings = args.settings.flags();
    let has_settings = !settings.is_empty();
    flags.extend(settings);
    let config = Config::load(flags, cli.globals.config.as_deref())?;
    let lines = if args.here {
        own(&config)
    } else {
        look(context, &config)
    };
    if has_settings && lines.iter().any(|line| line.of == Of::Host) {
        context.screen.say(
            "a host runs and was looked at with its own settings, not those given here; --here \
             looks at what a start with these would meet",
        );
    }
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
            let (of, state) = (line.of.word(), line.state.word());
            screen.headline(&format!("{}: {} ({state})", of, line.name))?;
            screen.text(&format!("  {}", line.cure))?;
        }
    }
    if worst < State::Fail {
        return Ok(());
    }
    let failed = lines.iter().filter(|line| line.state == State::Fail);
    let names: Vec<_> = failed.map(|line| line.name.as_ref()).collect();
    let message = format!("not as it should be: {}", names.join(", "));
    Err(Failure::new(Exit::Failed, message))
}

fn look(context: &Context, config: &Config) -> Vec<Line> {
    let (mut lines, runs) = host::check(context, config);
    if !runs {
        lines.extend(own(config));
        return lines;
    }
    match context.client.ask(Request::get(&["doctor"])) {
        Ok(found) => {
            let checks = found.get("checks").and_then(Value::as_array);
            lines.extend(checks.into_iter().flatten().filter_map(Line::told));
        }
        Err(failure) => {
            let fact = format!("the host does not tell: {}", failure.message);
            let cure = "What is marked \"here\" is about this shell and this machine, which need \
                        not be the host's. Ask with a token that may observe, or run this command \
                        with --here as the host's user.";
            lines.push(Line::warn("the host's machine", fact, cure));
            lines.extend(own(config));
        }
    }
    lines
}

/// What a start here would meet.
fn own(config: &Config) -> Vec<Line> {
    process(config, machine::pool(config.number("slots")), None)
}

/// Looks at this process, its machine and its directories.
fn process(config: &Config, pool: Line, syncs: Option<&Distribution>) -> Vec<Line> {
    let clock = clock::begin();
    let mut lines = vec![
        machine::open_files(),
        machine::mappings(config.number("slots")),
        pool,
        machine::memory(config),
        machine::processors(config.number("workers")),
    ];
    lines.extend(disk::data(
        Path::new(config.text("data-dir")),
        config,
        syncs,
    ));
    lines.extend(disk::plugins(Path::new(config.text("plugins-dir")), config));
    lines.push(clock.end());
    lines.push(clock::synchronised());
    lines
}

/// What looks at a host from within.
pub(crate) fn within(config: Config, limits: SandboxLimits, handle: Handle) -> Doctor {
    Doctor::new(move || {
        let pool = machine::pool_of(config.number("slots"), limits);
        let syncs = handle.store_status().sync_times;
        let lines = process(&config, pool, Some(&syncs));
        lines.into_iter().map(Finding::from).collect()
    })
}

impl From<Line> for Finding {
    fn from(line: Line) -> Self {
        Self {
            name: line.name.into_owned(),
            state: match line.state {
                State::Ok => Standing::Ok,
                State::Warn => Standing::Warn,
                State::Fail => Standing::Fail,
            },
            fact: line.fact,
            cure: (!line.cure.is_empty()).then_some(line.cure),
        }
    }
}

fn as_json(line: &Line) -> Value {
    let mut json = json!({
        "of": line.of.word(), "name": line.name, "state": line.state.word(), "fact": line.fact,
    });
    if let (Some(fields), false) = (json.as_object_mut(), line.cure.is_empty()) {
        fields.insert("cure".to_owned(), line.cure.clone().into());
    }
    json
}

fn table(lines: &[Line]) -> Table {
    let mut table = Table::new(&["", "OF", "CHECK", "FOUND"]);
    for line in lines {
        table.row(vec![
            Cell::new(line.state.word()).tone(line.state.tone()),
            Cell::new(line.of.word()),
            Cell::new(line.name.as_ref()),
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
            "      OF    CHECK       FOUND\n\
             ok    here  open files  1 048 576\n\
             fail  here  free space  1.0 MiB\n"
        );
        assert_eq!(
            as_json(&lines[1]),
            json!({ "of": "here", "name": "free space", "state": "fail", "fact": "1.0 MiB",
                    "cure": "make room" })
        );
        assert!(as_json(&lines[0]).get("cure").is_none());
    }

    #[test]
    fn what_a_host_found_is_read_as_it_was_told() {
        let line = Line::fail("sync", "21ms", "a quicker disk");
        let told = serde_json::to_value(Finding::from(line)).expect("JSON");
        let read = Line::told(&told).expect("a line");
        assert_eq!(
            as_json(&read),
            json!({ "of": "host", "name": "sync", "state": "fail", "fact": "21ms",
                    "cure": "a quicker disk" })
        );
        assert!(Line::told(&json!({ "name": "x", "state": "odd", "fact": "" })).is_none());
    }

    #[test]
    fn a_failure_is_worse_than_a_warning() {
        assert!(State::Fail > State::Warn && State::Warn > State::Ok);
    }
}
