//! The host, if one runs: what of it needs a person. If none runs: whether its address is free.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::Value;

use super::{Line, Of};
use crate::client::Request;
use crate::commands::Context;
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::render::time::{format_duration, format_number};
use crate::render::values::{at, items, plain};

/// How long an answer is waited for: whether a host runs is one question of many.
const PATIENCE: Duration = Duration::from_secs(5);

/// Plugins whose names are said.
const NAMED: usize = 5;

/// Looks at the host, and says whether one runs.
pub(super) fn check(context: &Context, config: &Config) -> (Vec<Line>, bool) {
    let client = context.client.waiting(PATIENCE);
    let status = client.ask(Request::get(&["status"]));
    match status {
        Ok(status) => {
            let mut lines = vec![judge_status(&status, context.client.base())];
            lines.push(dead_letters(&status));
            if let Ok(plugins) = context.client.list("plugins", &[], None) {
                lines.push(judge_plugins(items(&plugins)));
            }
            if let Ok(queues) = context.client.list("queues", &[], None) {
                lines.push(judge_queues(items(&queues)));
            }
            (lines.into_iter().map(of_host).collect(), true)
        }
        Err(failure) if failure.exit == Exit::Unreachable => {
            let base = context.client.base();
            let fact = format!("none at {base}; what follows is about a start here");
            let lines = vec![Line::ok("host", fact), address(config.text("listen"))];
            (lines, false)
        }
        Err(failure) => (vec![of_host(refused(&failure))], true),
    }
}

fn of_host(line: Line) -> Line {
    Line {
        of: Of::Host,
        ..line
    }
}

fn refused(failure: &Failure) -> Line {
    let cure = "Name the host with --url, and say who you are if it asks.";
    Line::fail("host", failure.message.clone(), cure)
}

/// Whether the address can be listened on.
fn address(listen: &str) -> Line {
    const NAME: &str = "address";
    match TcpListener::bind(listen) {
        Ok(_) => Line::ok(NAME, format!("{listen} is free")),
        Err(error) => Line::fail(
            NAME,
            format!("{listen}: {error}"),
            "Another program has it, or it is not this machine's: name another with --listen.",
        ),
    }
}

fn judge_status(status: &Value, base: &str) -> Line {
    const NAME: &str = "host";
    let up = at(status, "now")
        .as_u64()
        .zip(at(status, "started").as_u64())
        .map(|(now, started)| format_duration(now.saturating_sub(started)));
    let fact = format!(
        "oncue {} at {base}, {}, up {}",
        plain(at(status, "version")),
        plain(at(status, "phase")),
        up.unwrap_or_default()
    );
    let store = plain(at(status, "store"));
    if store != "ok" {
        let cure = match store.as_str() {
            "full" => "Make room on the data directory's disk: it takes puts again by itself.",
            _ => "Read the host's log, cure the disk, restart the host: it checks what is written.",
        };
        return Line::fail(NAME, format!("{fact}; the store is {store}"), cure);
    }
    if at(status, "paused").as_bool() == Some(true) {
        let cure = "No task starts while the host is paused: \"oncue resume\".";
        return Line::warn(NAME, format!("{fact}, paused"), cure);
    }
    Line::ok(NAME, fact)
}

fn dead_letters(status: &Value) -> Line {
    const NAME: &str = "dead letters";
    match at(status, "dead-letters").as_u64().unwrap_or_default() {
        0 => Line::ok(NAME, "none"),
        count => Line::warn(
            NAME,
            format_number(count),
            "\"oncue dlq list\" says why; \"oncue dlq redrive\" puts them back once it is cured.",
        ),
    }
}

fn judge_plugins(plugins: &[Value]) -> Line {
    const NAME: &str = "plugins";
    let bad = plugins
        .iter()
        .filter(|plugin| at(plugin, "state").as_str() == Some("quarantined"));
    let bad: Vec<String> = bad.map(|plugin| plain(at(plugin, "name"))).collect();
    if bad.is_empty() {
        return Line::ok(NAME, plugins.len().to_string());
    }
    Line::warn(
        NAME,
        format!(
            "{} of {} quarantined: {}",
            bad.len(),
            plugins.len(),
            some(&bad)
        ),
        "\"oncue plugin list\" says why; put the file right, and it is loaded at once.",
    )
}

/// Queues that a person must look at: with a message set aside, or a start that fails.
fn judge_queues(queues: &[Value]) -> Line {
    const NAME: &str = "queues";
    const BAD: &[&str] = &[
        "parked-message",
        "no-process",
        "component-missing",
        "component-quarantined",
        "start-failed",
    ];
    let bad = queues
        .iter()
        .filter(|queue| BAD.contains(&at(queue, "reason").as_str().unwrap_or_default()));
    let bad: Vec<String> = bad
        .filter(|queue| at(queue, "depth").as_u64().unwrap_or_default() > 0)
        .map(|queue| {
            let (name, reason) = (plain(at(queue, "name")), plain(at(queue, "reason")));
            format!("{name} ({reason})")
        })
        .collect();
    if bad.is_empty() {
        return Line::ok(NAME, queues.len().to_string());
    }
    Line::warn(
        NAME,
        format!("{} held by an error: {}", bad.len(), some(&bad)),
        "\"oncue explain QUEUE\" names the one condition and its cure.",
    )
}

fn some(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = names.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!(" and {more} more"));
    format!("{}{}", shown.join(", "), more.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::State;
    use super::*;

    #[test]
    fn a_host_is_judged_by_its_answers() {
        let status = |change: Value| {
            let mut status = json!({ "version": "1", "phase": "running", "store": "ok",
                                     "paused": false, "started": 0, "now": 5_000 });
            let fields = status.as_object_mut().expect("an object");
            fields.extend(change.as_object().expect("an object").clone());
            judge_status(&status, "http://h").state
        };
        assert_eq!(status(json!({})), State::Ok);
        assert_eq!(status(json!({ "paused": true })), State::Warn);
        assert_eq!(status(json!({ "store": "full" })), State::Fail);
        assert_eq!(
            dead_letters(&json!({ "dead-letters": 3 })).state,
            State::Warn
        );
        let plugins = [json!({ "name": "a", "state": "quarantined" })];
        assert!(
            judge_plugins(&plugins)
                .fact
                .contains("1 of 1 quarantined: a")
        );
        assert_eq!(judge_plugins(&[]).state, State::Ok);
    }

    #[test]
    fn only_queues_with_messages_are_held_by_an_error() {
        let queue = |depth: u64, reason: &str| {
            json!({ "name": "q", "depth": depth,
                                                       "reason": reason })
        };
        assert_eq!(judge_queues(&[queue(0, "no-process")]).state, State::Ok);
        assert_eq!(judge_queues(&[queue(2, "paused")]).state, State::Ok);
        let line = judge_queues(&vec![queue(2, "no-process"); 7]);
        assert_eq!(line.state, State::Warn);
        assert!(line.fact.ends_with("and 2 more"), "{}", line.fact);
    }
}
