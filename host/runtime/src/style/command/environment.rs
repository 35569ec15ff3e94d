//! What a program is told of its message: environment variables and arguments. For authors
//! `wit/styles/command.md` lists them.
//!
//! A variable that the process definition grants wins over one of ours, whatever its name: what
//! an operator wrote must not be changed by a property that a putter chose. Nothing of the host's
//! own environment is in it.

use std::collections::BTreeSet;

use oncue_core::definition::TriggerType;
use oncue_core::message::Header;
use oncue_manager::tasks::{Delivered, TaskSpec};

use crate::secrets;

/// What the name of a property becomes a part of.
const PROPERTY: &str = "ONCUE_PROPERTY_";

/// The variables of one run, each name once, without those that are granted.
pub(super) fn variables(spec: &TaskSpec, message: &Delivered) -> Vec<(String, String)> {
    let mut all = of_message(message);
    all.extend(of_trigger(spec));
    let mut all: Vec<_> = all
        .into_iter()
        .filter_map(|(name, value)| Some((format!("ONCUE_{name}"), value?)))
        .collect();
    let properties = message.message.header.properties.iter();
    all.extend(properties.map(|(name, value)| (property(name), value.clone())));
    let granted = &spec.attributes.grants.environment;
    let mut known: BTreeSet<String> = granted.keys().cloned().collect();
    let secrets = spec.attributes.grants.secrets.iter();
    known.extend(secrets.map(|name| secrets::variable(name)));
    // Of properties whose names become the same the first is told. No variable can hold a NUL: it
    // would be cut there, and mean something else.
    all.retain(|(name, value)| !value.contains('\0') && known.insert(name.clone()));
    all
}

/// The variable for a property: upper case, anything but ASCII letters and digits as `_`.
fn property(name: &str) -> String {
    let mapped = name.chars().map(|char| match char.to_ascii_uppercase() {
        char if char.is_ascii_alphanumeric() => char,
        _ => '_',
    });
    PROPERTY.chars().chain(mapped).collect()
}

/// A variable without its `ONCUE_`, and its value if it has one.
type Variable = (&'static str, Option<String>);

fn of_message(message: &Delivered) -> Vec<Variable> {
    let (header, attempts) = (&message.message.header, &message.message.attempts);
    let Header {
        id,
        correlation_id,
        reply_to,
        group,
        group_sequence,
        priority,
        persistent,
        content_type,
        properties: _,
        put_time,
        expires,
        hop_count,
        put_by,
        size,
    } = header;
    let persistence = if *persistent {
        "persistent"
    } else {
        "non-persistent"
    };
    vec![
        ("QUEUE", Some(message.queue.to_string())),
        ("MESSAGE_ID", Some(id.to_string())),
        ("CORRELATION_ID", correlation_id.clone()),
        ("REPLY_TO", reply_to.as_ref().map(ToString::to_string)),
        ("GROUP", group.clone()),
        ("GROUP_SEQUENCE", group_sequence.map(|n| n.to_string())),
        ("PRIORITY", Some(priority.to_string())),
        ("PERSISTENCE", Some(persistence.to_owned())),
        ("CONTENT_TYPE", content_type.clone()),
        ("PUT_TIME", Some(put_time.0.to_string())),
        ("EXPIRES", expires.map(|at| at.0.to_string())),
        ("BACKOUT_COUNT", Some(attempts.backout_count.to_string())),
        ("ATTEMPTS_LEFT", Some(message.attempts_left.to_string())),
        ("HOP_COUNT", Some(hop_count.to_string())),
        ("PUT_BY", put_by.clone()),
        ("SIZE", Some(size.to_string())),
    ]
}

fn of_trigger(spec: &TaskSpec) -> Vec<Variable> {
    let trigger = &spec.trigger;
    let kind = match trigger.trigger_type {
        TriggerType::Every => "every",
        TriggerType::Depth => "depth",
        // `none` starts nothing; a queue altered to it since the start was of the usual type.
        TriggerType::First | TriggerType::None => "first",
    };
    vec![
        ("TRIGGER_MANAGER", Some(trigger.manager.clone())),
        ("TRIGGER_QUEUE", Some(trigger.queue.to_string())),
        ("TRIGGER_PROCESS", Some(trigger.process.to_string())),
        ("TRIGGER_TYPE", Some(kind.to_owned())),
        ("TRIGGER_DATA", Some(trigger.trigger_data.clone())),
        (
            "TRIGGER_APPLICATION_ID",
            Some(trigger.application_id.clone()),
        ),
        (
            "TRIGGER_ENVIRONMENT_DATA",
            Some(trigger.environment_data.clone()),
        ),
        ("TRIGGER_USER_DATA", Some(trigger.user_data.clone())),
        ("TRIGGER_DEPTH", Some(trigger.depth.to_string())),
        ("TRIGGER_SEQUENCE", Some(trigger.sequence.to_string())),
        ("TRIGGER_FIRED_AT", Some(trigger.fired_at.0.to_string())),
    ]
}

/// The arguments: the plugin's name, then the words of `user-data`.
pub(super) fn arguments(spec: &TaskSpec) -> Vec<String> {
    let mut arguments = vec![spec.component.plugin.to_string()];
    arguments.extend(words(&spec.attributes.user_data));
    arguments
}

/// Words between white space; quotes of either kind keep white space in a word, and nothing else
/// has a meaning. A quote that is not closed ends with the text. NULs end no word and are left out.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote): (Option<String>, Option<char>) = (None, None);
    for char in text.chars().filter(|char| *char != '\0') {
        match (quote, char) {
            (Some(open), char) if char == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(char);
                // `""` is a word, an empty one.
                word.get_or_insert_default();
            }
            (None, char) if char.is_whitespace() => words.extend(word.take()),
            (_, char) => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_becomes_a_name_that_every_shell_knows() {
        assert_eq!(property("colour"), "ONCUE_PROPERTY_COLOUR");
        assert_eq!(property("X-Trace.id 2"), "ONCUE_PROPERTY_X_TRACE_ID_2");
        assert_eq!(property("größe=1"), "ONCUE_PROPERTY_GR__E_1");
    }

    #[test]
    fn user_data_is_split_into_words() {
        let check = |text: &str, wanted: &[&str]| assert_eq!(words(text), wanted, "{text}");
        check("", &[]);
        check("  ", &[]);
        check("a  b\tc", &["a", "b", "c"]);
        check(r#"-r '.a | .b' "it's""#, &["-r", ".a | .b", "it's"]);
        check(r#"a"b c"d """#, &["ab cd", ""]);
        check("'open end", &["open end"]);
        check(r"no\ escape", &[r"no\", "escape"]);
    }
}
