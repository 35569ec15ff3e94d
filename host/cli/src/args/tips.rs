//! What was meant by a command line whose words stand in another order, as other tools have them.
//!
//! Asked only after a line was refused. It reads the words before the first option; where it is
//! not sure it says nothing, for a wrong tip is worse than none.

use clap::{Command, CommandFactory};

use super::Cli;

/// Commands that take a queue or a process by an option, and the whole host without.
const BY_OPTION: [&str; 2] = ["pause", "resume"];

/// Commands whose first word is the queue itself.
const ON_QUEUE: [&str; 4] = ["put", "get", "browse", "explain"];

/// The line that was meant, with a name in capitals where one is missing.
pub(crate) fn meant(arguments: &[String]) -> Option<String> {
    let words: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .take_while(|word| !word.starts_with('-'))
        .collect();
    let (first, second) = (*words.first()?, *words.get(1)?);
    let third = words.get(2).copied();
    if let Some(line) = by_option(first, second, third) {
        return Some(line);
    }
    match (first, second, third) {
        (verb, "queue", Some(queue)) if ON_QUEUE.contains(&verb) => {
            let rest = words.get(3..).unwrap_or_default();
            Some(line(&[&[verb, queue], rest].concat()))
        }
        ("trigger", queue, Some(state @ ("on" | "off"))) => Some(line(&["trigger", state, queue])),
        ("queue", "trigger", Some(queue)) => Some(line(&["trigger", "on|off", queue])),
        ("message", verb, Some(id)) if words.len() == 3 => {
            let verb = group("message")?
                .find_subcommand(verb)?
                .get_name()
                .to_owned();
            Some(line(&["message", &verb, "QUEUE", id]))
        }
        _ => of_group(&words),
    }
}

/// `pause queue X`, `queue pause X`, `queue X pause`: the option names what is paused.
fn by_option(first: &str, second: &str, third: Option<&str>) -> Option<String> {
    let is_verb = |word: &str| BY_OPTION.contains(&word);
    let is_what = |word: &str| matches!(word, "queue" | "process");
    let (verb, what, name) = match third {
        _ if is_verb(first) && is_what(second) => (first, second, third),
        _ if is_what(first) && is_verb(second) => (second, first, third),
        Some(verb) if is_what(first) && is_verb(verb) => (verb, first, Some(second)),
        None if is_verb(first) => (first, "queue", Some(second)),
        _ => return None,
    };
    let name = name.map_or_else(|| what.to_uppercase(), str::to_owned);
    Some(line(&[verb, &format!("--{what}"), &name]))
}

/// `show queue X`, `list plugins`, `queue X show`: the group stands first, then what to do.
fn of_group(words: &[&str]) -> Option<String> {
    let (first, second) = (*words.first()?, *words.get(1)?);
    if let Some(group) = group(second).or_else(|| group(second.strip_suffix('s')?)) {
        let verb = group.find_subcommand(first)?.get_name();
        let rest = words.get(2..).unwrap_or_default();
        return Some(line(&[&[group.get_name(), verb], rest].concat()));
    }
    let third = *words.get(2)?;
    let group = group(first)?;
    if group.find_subcommand(second).is_some() {
        return None;
    }
    let verb = group.find_subcommand(third)?.get_name().to_owned();
    let rest = words.get(3..).unwrap_or_default();
    Some(line(&[&[first, &verb, second], rest].concat()))
}

/// A command that has commands of its own.
fn group(name: &str) -> Option<Command> {
    let all = Cli::command();
    let found = all.find_subcommand(name)?;
    found.has_subcommands().then(|| found.clone())
}

fn line(words: &[&str]) -> String {
    format!("oncue {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn other_orders_of_words_are_understood() {
        let check = |given: &str, wanted: Option<&str>| {
            let words: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
            let refused =
                Cli::try_parse_from(["oncue"].into_iter().chain(given.split_whitespace()));
            assert!(refused.is_err(), "{given} is accepted");
            assert_eq!(meant(&words).as_deref(), wanted, "{given}");
        };
        check("pause queue orders", Some("oncue pause --queue orders"));
        check("pause orders", Some("oncue pause --queue orders"));
        check("resume process p", Some("oncue resume --process p"));
        check("queue pause orders", Some("oncue pause --queue orders"));
        check("queue orders resume", Some("oncue resume --queue orders"));
        check("pause queue", Some("oncue pause --queue QUEUE"));
        check("message show 01H", Some("oncue message show QUEUE 01H"));
        check("show queue orders", Some("oncue queue show orders"));
        check("list plugins", Some("oncue plugin list"));
        check("queue orders show", Some("oncue queue show orders"));
        check("explain queue orders", Some("oncue explain orders"));
        check("put queue orders hello", Some("oncue put orders hello"));
        check("trigger orders on", Some("oncue trigger on orders"));
        check("queue trigger orders", Some("oncue trigger on|off orders"));
        check("revoke token shop", Some("oncue token revoke shop"));
        check("queue show", None);
        check("queue frobnicate x", None);
        check("plugin list everything", None);
        check("nonsense here", None);
    }
}
