//! `check`: one line and one exit code for monitoring systems, by the convention of their plugins.
//!
//! The exit codes are theirs and not those of the other commands: 0 ok, 1 warning, 2 critical,
//! 3 unknown. So nothing here ends as a [`Failure`] does, but for an output that cannot be written.

use serde_json::{Value, json};

use super::Context;
use crate::args::check::{CheckCommand, CheckQueueArgs};
use crate::client::Request;
use crate::exit::{Exit, Failure};
use crate::render::text::escape_line;
use crate::render::time::{format_duration, number_of};
use crate::render::values::{at, plain};

/// The exit code for what cannot be told, wrong usage among it.
pub(crate) const UNKNOWN: u8 = State::Unknown as u8;

/// How it stands. The numbers are a promise of the convention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Ok = 0,
    Warning = 1,
    Critical = 2,
    Unknown = 3,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// What is answered.
#[derive(Clone, Debug)]
struct Verdict {
    state: State,
    text: String,
    /// Performance data: label, value with unit, warning, critical.
    data: Vec<Measure>,
}

#[derive(Clone, Debug)]
struct Measure {
    label: &'static str,
    value: f64,
    unit: &'static str,
    warning: Option<f64>,
    critical: Option<f64>,
}

impl Measure {
    fn state(&self) -> State {
        let reaches = |bound: Option<f64>| bound.is_some_and(|bound| self.value >= bound);
        if reaches(self.critical) {
            State::Critical
        } else if reaches(self.warning) {
            State::Warning
        } else {
            State::Ok
        }
    }

    /// `'label'=value[unit];[warning];[critical];0`
    fn written(&self) -> String {
        let bound = |bound: Option<f64>| bound.map(|bound| bound.to_string()).unwrap_or_default();
        format!(
            "{}={}{};{};{};0",
            self.label,
            self.value,
            self.unit,
            bound(self.warning),
            bound(self.critical)
        )
    }
}

/// Checks, prints the line, and answers with the exit code of the convention.
pub(super) fn run(context: &Context, command: &CheckCommand) -> Result<(), Failure> {
    let verdict = match command {
        CheckCommand::Ready => ready(context),
        CheckCommand::Live => live(context),
        CheckCommand::Queue(args) => queue(context, args),
    };
    if context.screen.is_json() {
        let data: Vec<Value> = verdict.data.iter().map(measure_json).collect();
        context.screen.json(&json!({
            "state": verdict.state.word().to_ascii_lowercase(), "text": verdict.text,
            "data": data,
        }))?;
    } else {
        context.screen.line(&escape_line(&line(&verdict)))?;
    }
    match verdict.state {
        State::Ok => Ok(()),
        // Said on stdout already.
        State::Warning => Err(Failure::new(Exit::Failed, "")),
        State::Critical => Err(Failure::new(Exit::Usage, "")),
        State::Unknown => Err(Failure::new(Exit::NotFound, "")),
    }
}

fn measure_json(measure: &Measure) -> Value {
    json!({
        "label": measure.label, "value": measure.value, "unit": measure.unit,
        "warning": measure.warning, "critical": measure.critical,
    })
}

fn line(verdict: &Verdict) -> String {
    let mut line = format!("ONCUE {} - {}", verdict.state.word(), verdict.text);
    // A bar begins the data: none may stand in the text.
    line = line.replace('|', "/");
    if !verdict.data.is_empty() {
        let data: Vec<String> = verdict.data.iter().map(Measure::written).collect();
        line.push_str(&format!(" | {}", data.join(" ")));
    }
    line
}

/// A host that does not answer, or not as it should.
fn failed(failure: &Failure) -> Verdict {
    let state = match failure.exit {
        Exit::Unreachable | Exit::Failed => State::Critical,
        Exit::Refused | Exit::NotFound | Exit::Usage | Exit::Done => State::Unknown,
    };
    Verdict {
        state,
        text: failure.message.clone(),
        data: Vec::new(),
    }
}

fn ready(context: &Context) -> Verdict {
    let answer = context.client.send(Request::of_host("readyz"));
    let status = context.client.ask(Request::get(&["status"]));
    match (answer, status) {
        (Ok(_), Ok(status)) => Verdict {
            state: State::Ok,
            text: format!(
                "{} {} takes work, {}, {} running",
                plain(at(&status, "name")),
                plain(at(&status, "version")),
                number_of(at(&status, "queues").as_u64().unwrap_or_default(), "queue"),
                plain(at(&status, "running"))
            ),
            data: ["depth", "running", "dead-letters"]
                .into_iter()
                .map(|label| Measure {
                    label,
                    value: at(&status, label).as_f64().unwrap_or_default(),
                    unit: "",
                    warning: None,
                    critical: None,
                })
                .collect(),
        },
        // Not ready is critical, whatever the reason's code is.
        (Err(failure), _) => Verdict {
            state: State::Critical,
            ..failed(&failure)
        },
        // Ready, but it does not tell us more: we may not ask.
        (Ok(_), Err(_)) => Verdict {
            state: State::Ok,
            text: "the host takes work".to_owned(),
            data: Vec::new(),
        },
    }
}

fn live(context: &Context) -> Verdict {
    match context.client.send(Request::of_host("livez")) {
        Ok(_) => Verdict {
            state: State::Ok,
            text: "the host's process answers".to_owned(),
            data: Vec::new(),
        },
        Err(failure) => failed(&failure),
    }
}

fn queue(context: &Context, args: &CheckQueueArgs) -> Verdict {
    match context
        .client
        .ask(Request::get(&["queues", args.queue.as_str()]))
    {
        Ok(view) => judge(&view, args),
        Err(failure) => failed(&failure),
    }
}

fn judge(view: &Value, args: &CheckQueueArgs) -> Verdict {
    let whole = |number: Option<u64>| number.map(|number| number as f64);
    let seconds = |millis: Option<u64>| millis.map(|millis| millis as f64 / 1_000.0);
    let depth = at(view, "depth").as_u64().unwrap_or_default();
    let age = at(view, "oldest-age").as_u64();
    let data = vec![
        Measure {
            label: "depth",
            value: depth as f64,
            unit: "",
            warning: whole(args.warn_depth),
            critical: whole(args.crit_depth),
        },
        Measure {
            label: "age",
            value: seconds(age).unwrap_or_default(),
            unit: "s",
            warning: seconds(args.warn_age),
            critical: seconds(args.crit_age),
        },
    ];
    let worst = data.iter().map(Measure::state).max();
    let mut text = format!(
        "queue {}: {}",
        plain(at(view, "name")),
        number_of(depth, "message")
    );
    if let Some(age) = age {
        text.push_str(&format!(", oldest {}", format_duration(age)));
    }
    let reason = at(view, "reason-text").as_str();
    if let Some(reason) = reason.filter(|_| depth > 0) {
        text.push_str(&format!(", held: {reason}"));
    }
    Verdict {
        state: worst.unwrap_or(State::Ok),
        text,
        data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(bounds: [Option<u64>; 4]) -> CheckQueueArgs {
        let [warn_depth, crit_depth, warn_age, crit_age] = bounds;
        CheckQueueArgs {
            queue: "q".parse().expect("a name"),
            warn_depth,
            crit_depth,
            warn_age,
            crit_age,
        }
    }

    fn view(depth: u64, age: Option<u64>) -> Value {
        json!({ "name": "q", "depth": depth, "oldest-age": age, "reason": "paused",
                "reason-text": "paused | by hand" })
    }

    #[test]
    fn bounds_decide_and_are_told() {
        let check = |depth: u64, age: Option<u64>, bounds: [Option<u64>; 4], wanted: State| {
            let verdict = judge(&view(depth, age), &args(bounds));
            assert_eq!(verdict.state, wanted, "{verdict:?}");
        };
        check(5, Some(1_000), [None; 4], State::Ok);
        check(5, None, [Some(5), Some(9), None, None], State::Warning);
        check(9, None, [Some(5), Some(9), None, None], State::Critical);
        check(
            1,
            Some(60_000),
            [None, None, Some(30_000), Some(90_000)],
            State::Warning,
        );
        check(
            9,
            Some(30_000),
            [Some(5), None, None, Some(30_000)],
            State::Critical,
        );
        check(0, None, [Some(1), None, Some(1), None], State::Ok);
    }

    #[test]
    fn the_line_is_that_of_the_convention() {
        let verdict = judge(
            &view(5, Some(1_500)),
            &args([Some(5), Some(9), None, Some(60_000)]),
        );
        assert_eq!(
            line(&verdict),
            "ONCUE WARNING - queue q: 5 messages, oldest 1.5s, held: paused / by hand \
             | depth=5;5;9;0 age=1.5s;;60;0"
        );
        let idle = judge(&view(0, None), &args([None; 4]));
        assert_eq!(
            line(&idle),
            "ONCUE OK - queue q: 0 messages | depth=0;;;0 age=0s;;;0"
        );
    }

    #[test]
    fn who_cannot_be_asked_is_critical_and_what_is_not_there_unknown() {
        let of = |exit: Exit| failed(&Failure::new(exit, "x")).state;
        assert_eq!(of(Exit::Unreachable), State::Critical);
        assert_eq!(of(Exit::Failed), State::Critical);
        assert_eq!(of(Exit::NotFound), State::Unknown);
        assert_eq!(of(Exit::Refused), State::Unknown);
        assert_eq!(
            [State::Ok, State::Warning, State::Critical, State::Unknown].map(|state| state as u8),
            [0, 1, 2, 3]
        );
    }
}
