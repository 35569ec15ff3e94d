//! What each MQSC attribute means here: an attribute of ours, nothing (and why), or a refusal (and
//! why). One table for queues, one for processes; an attribute that is in neither is refused.

use oncue_core::quantity::parse_millis;

use super::events::{self, Switch};
use super::parse::{Object, Parameter};

/// What becomes of one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Attribute of ours, and value as it is written on the command line.
    Sets(&'static str, String),
    /// Accepted, and without effect: why.
    Ignored(String),
    /// Not accepted: why, and what to do.
    Refused(String),
    /// Turns an alarm on or off, whatever else is said of its level.
    Switches(&'static Switch, bool),
    /// Says how the command is to be done.
    Option(Choice),
}

/// How a command is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// A definition that is there is replaced.
    Replace,
    /// A definition that is there is left alone.
    NoReplace,
    /// Start from the operator's values of another.
    Like(String),
    /// Delete with all messages.
    Purge,
    /// Delete only if empty.
    NoPurge,
}

/// How a value becomes one of ours.
#[derive(Clone, Copy)]
enum Reading {
    /// A keyword without a value.
    Flag(&'static str),
    /// A whole number within these bounds.
    Number(u64, u64),
    /// So many milliseconds, within these bounds.
    Millis(u64, u64),
    /// One of these words; each has its counterpart.
    Words(&'static [(&'static str, &'static str)]),
    /// A name, or nothing.
    Name,
    /// Text as it is, up to so many characters.
    Text,
}

/// A line of the table of attributes that have a counterpart.
type Known = (&'static str, &'static str, Reading);

const YES_NO: &[(&str, &str)] = &[("YES", "persistent"), ("NO", "non-persistent")];
const SWITCH: &[(&str, &str)] = &[("ENABLED", "enabled"), ("DISABLED", "disabled")];
const TYPES: &[(&str, &str)] = &[
    ("FIRST", "first"),
    ("EVERY", "every"),
    ("DEPTH", "depth"),
    ("NONE", "none"),
];
const ORDERS: &[(&str, &str)] = &[("PRIORITY", "priority"), ("FIFO", "fifo")];
const NORMAL: &[(&str, &str)] = &[("NORMAL", "normal")];

/// Attributes of a queue that are set.
const QUEUE: &[Known] = &[
    ("TRIGGER", "trigger-control", Reading::Flag("on")),
    ("NOTRIGGER", "trigger-control", Reading::Flag("off")),
    ("TRIGTYPE", "trigger", Reading::Words(TYPES)),
    ("TRIGDPTH", "trigger-depth", Reading::Number(1, 999_999_999)),
    ("TRIGMPRI", "trigger-priority", Reading::Number(0, 9)),
    ("TRIGDATA", "trigger-data", Reading::Text),
    ("PROCESS", "process", Reading::Name),
    ("MAXDEPTH", "max-depth", Reading::Number(1, 999_999_999)),
    (
        "MAXMSGL",
        "max-message-length",
        Reading::Number(1, 104_857_600),
    ),
    (
        "BOTHRESH",
        "backout-threshold",
        Reading::Number(1, 999_999_999),
    ),
    ("BOQNAME", "backout-queue", Reading::Name),
    ("DEFPSIST", "default-persistence", Reading::Words(YES_NO)),
    ("DEFPRTY", "default-priority", Reading::Number(0, 9)),
    ("GET", "get", Reading::Words(SWITCH)),
    ("PUT", "put", Reading::Words(SWITCH)),
    ("MSGDLVSQ", "delivery", Reading::Words(ORDERS)),
    ("DESCR", "description", Reading::Text),
    ("USAGE", "usage", Reading::Words(NORMAL)),
    ("QDEPTHHI", "alarm-depth-high", Reading::Number(0, 100)),
    ("QDEPTHLO", "alarm-depth-low", Reading::Number(0, 100)),
    (
        "QSVCINT",
        "service-interval",
        Reading::Millis(0, 999_999_999),
    ),
];

/// Attributes of a process that are set.
const PROCESS: &[Known] = &[
    ("ENVRDATA", "environment-data", Reading::Text),
    ("USERDATA", "user-data", Reading::Text),
    ("DESCR", "description", Reading::Text),
];

/// Attributes of a queue that have no effect, and why.
const QUEUE_IGNORED: &[(&str, &str)] = &[
    (
        "INITQ",
        "there is no initiation queue: the queue manager itself starts the process",
    ),
    ("SHARE", "input is always shared"),
    (
        "NOSHARE",
        "input is always shared; max-tasks, 1 by default, bounds the tasks of a queue",
    ),
    ("DEFSOPT", "input is always shared"),
    ("HARDENBO", "backout counts are always durable"),
    ("NOHARDENBO", "backout counts are always durable"),
    (
        "RETINTVL",
        "a retention interval has no effect in MQ either",
    ),
    (
        "QDPMAXEV",
        "the alarm queue-full is always on: somebody's puts are refused",
    ),
    (
        "CAPEXPRY",
        "expiry is not capped; default-expiry is for puts that name none",
    ),
    ("NPMCLASS", "non-persistent messages live in memory"),
    ("DISTL", "there are no distribution lists"),
    ("SCOPE", "names are known to their own queue manager"),
    ("PROPCTL", "properties are always handed out"),
    ("IMGRCOVQ", "the store recovers by itself"),
    ("MONQ", "figures are always kept"),
    ("STATQ", "figures are always kept"),
    ("ACCTQ", "figures are always kept"),
    ("DEFREADA", "there is no read ahead to be set"),
    ("DEFPRESP", "a put is always answered when it is durable"),
    ("DEFBIND", "there are no clusters"),
    ("CLWLPRTY", "there are no clusters"),
    ("CLWLRANK", "there are no clusters"),
    ("CLWLUSEQ", "there are no clusters"),
    ("CUSTOM", "it is for MQ's own use"),
    ("INDXTYPE", "every index that is needed is kept"),
    ("STGCLASS", "it is of z/OS"),
    ("QSGDISP", "it is of z/OS"),
    ("CMDSCOPE", "it is of z/OS"),
    (
        "FORCE",
        "changes hold at once, for whoever has the queue open too",
    ),
];

/// Attributes of a process that have no effect, and why.
const PROCESS_IGNORED: &[(&str, &str)] = &[
    ("APPLTYPE", "every application is a WebAssembly component"),
    ("QSGDISP", "it is of z/OS"),
    ("CMDSCOPE", "it is of z/OS"),
    ("FORCE", "changes hold at once"),
];

/// Attributes of a queue that are ignored when empty, and cannot be had else.
const QUEUE_EMPTY_ONLY: &[(&str, &str)] = &[
    ("CLUSTER", "there are no clusters"),
    ("CLUSNL", "there are no clusters"),
    ("CLCHNAME", "there are no clusters"),
    (
        "STREAMQ",
        "messages are not copied to a second queue; have a handler do it",
    ),
    ("CFSTRUCT", "it is of z/OS"),
];

/// What the attribute means.
pub(super) fn meaning(object: Object, parameter: &Parameter) -> Meaning {
    let keyword = parameter.keyword.as_str();
    if let Some(choice) = choice(parameter) {
        return choice;
    }
    let (known, ignored, empty_only): (&[Known], _, &[_]) = match object {
        Object::Process => (PROCESS, PROCESS_IGNORED, &[]),
        Object::Queue | Object::QueueStatus => (QUEUE, QUEUE_IGNORED, QUEUE_EMPTY_ONLY),
    };
    let text = parameter.value.as_ref().map(|value| value.text.as_str());
    if object == Object::Process && keyword == "APPLICID" {
        return component(text.unwrap_or_default());
    }
    if keyword == "BOTHRESH" && text == Some("0") {
        return Meaning::Ignored(
            "0 is \"never\" in MQ; no message goes round for ever here, the default holds".into(),
        );
    }
    if keyword == "USAGE" && text == Some("XMITQ") {
        return Meaning::Refused("there are no channels, so there is no transmission queue".into());
    }
    if let Some(switch) = events::switch(keyword).filter(|_| object != Object::Process) {
        return match switch.read(text) {
            Ok(is_on) => Meaning::Switches(switch, is_on),
            Err(why) => Meaning::Refused(why),
        };
    }
    if let Some((_, name, reading)) = known.iter().find(|(known, _, _)| *known == keyword) {
        return match read(*reading, text) {
            Ok(value) => Meaning::Sets(name, value),
            Err(why) => Meaning::Refused(why),
        };
    }
    let why = |list: &[(&str, &'static str)]| {
        let found = list.iter().find(|(known, _)| *known == keyword);
        found.map(|(_, why)| (*why).to_owned())
    };
    if let Some(why) = why(ignored) {
        return Meaning::Ignored(why);
    }
    match why(empty_only) {
        Some(why) if text.unwrap_or_default().is_empty() => Meaning::Ignored(why),
        Some(why) => Meaning::Refused(why),
        None => Meaning::Refused(format!(
            "it is no attribute of a {} that is known here; leave it out",
            object.word()
        )),
    }
}

fn choice(parameter: &Parameter) -> Option<Meaning> {
    let text = parameter.value.as_ref().map(|value| value.text.clone());
    let choice = match (parameter.keyword.as_str(), text) {
        ("REPLACE", None) => Choice::Replace,
        ("NOREPLACE", None) => Choice::NoReplace,
        ("PURGE", None) => Choice::Purge,
        ("NOPURGE", None) => Choice::NoPurge,
        ("LIKE", Some(name)) if !name.is_empty() => Choice::Like(name),
        ("LIKE", _) => return Some(Meaning::Refused("write LIKE(NAME)".to_owned())),
        _ => return None,
    };
    Some(Meaning::Option(choice))
}

fn read(reading: Reading, text: Option<&str>) -> Result<String, String> {
    match (reading, text) {
        (Reading::Flag(value), None) => Ok(value.to_owned()),
        (Reading::Flag(_), Some(_)) => Err("it takes no value".to_owned()),
        (_, None) => Err("it has no value; write it in brackets behind it".to_owned()),
        (Reading::Number(min, max), Some(text)) => number(text, min, max),
        (Reading::Millis(min, max), Some(text)) => {
            number(text, min, max).map(|number| format!("{number}ms"))
        }
        (Reading::Words(words), Some(text)) => {
            let found = words.iter().find(|(word, _)| *word == text);
            found.map(|(_, ours)| (*ours).to_owned()).ok_or_else(|| {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                format!("use {}", words.join(", "))
            })
        }
        (Reading::Name, Some("")) => Ok(String::new()),
        (Reading::Name, Some(text)) => name(text).map(|()| text.to_owned()),
        (Reading::Text, Some(text)) => Ok(text.to_owned()),
    }
}

fn number(text: &str, min: u64, max: u64) -> Result<String, String> {
    match text.parse::<u64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(number.to_string()),
        _ => Err(format!("use a whole number from {min} to {max}")),
    }
}

/// A component is a file of the plugins directory; a path to a program is not one.
fn component(text: &str) -> Meaning {
    if text.is_empty() {
        return Meaning::Sets("component", String::new());
    }
    if text.contains(['/', '\\', ' ']) {
        return Meaning::Refused(
            "it names a program of the system; here it is the file of a component in the plugins \
             directory, such as 'orders.wasm'"
                .to_owned(),
        );
    }
    Meaning::Sets("component", text.to_owned())
}

/// Whether a name of MQ can be one here.
///
/// # Errors
/// Which characters cannot be, and what to do.
pub(super) fn name(text: &str) -> Result<(), String> {
    let bad: String = text
        .chars()
        .filter(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')))
        .collect();
    if !bad.is_empty() {
        return Err(format!(
            "the name \"{text}\" has {bad:?}, which MQ allows in part and names here do not; use \
             A-Z a-z 0-9 . _ -"
        ));
    }
    if matches!(text, "." | "..") {
        return Err(format!("\"{text}\" cannot be a name; use another"));
    }
    Ok(())
}

/// The keywords and forms in which MQSC shows an attribute of ours: none, one, or a level and its
/// switch.
pub(super) fn shown(object: Object, ours: &str, value: &str) -> Vec<(&'static str, String)> {
    let Some(switch) = events::over(ours).filter(|_| object != Object::Process) else {
        return shown_alone(object, ours, value).into_iter().collect();
    };
    let (written, level) = switch.shown(value);
    let level = shown_alone(object, ours, level);
    level
        .into_iter()
        .chain([(switch.keyword, written)])
        .collect()
}

fn shown_alone(object: Object, ours: &str, value: &str) -> Option<(&'static str, String)> {
    let known = match object {
        Object::Process => PROCESS,
        Object::Queue | Object::QueueStatus => QUEUE,
    };
    if ours == "component" {
        return Some(("APPLICID", format!("APPLICID('{value}')")));
    }
    let of_ours = |(_, name, reading): &&Known| {
        *name == ours && !matches!(reading, Reading::Flag(flag) if *flag != value)
    };
    let (keyword, _, reading) = known.iter().find(of_ours)?;
    let text = match reading {
        Reading::Flag(_) => return Some((keyword, (*keyword).to_owned())),
        Reading::Words(words) => {
            let found = words.iter().find(|(_, ours)| *ours == value);
            found.map_or_else(
                || value.to_ascii_uppercase(),
                |(word, _)| (*word).to_owned(),
            )
        }
        Reading::Number(..) => value.to_owned(),
        Reading::Millis(..) => {
            parse_millis(value).map_or_else(|_| value.to_owned(), |millis| millis.to_string())
        }
        Reading::Name => quoted_name(value),
        Reading::Text => format!("'{}'", value.replace('\'', "''")),
    };
    Some((keyword, format!("{keyword}({text})")))
}

/// A name as a script needs it: in quotes, if it has small letters.
pub(super) fn quoted_name(name: &str) -> String {
    if name.is_empty() {
        " ".to_owned()
    } else if name.chars().any(|c| c.is_ascii_lowercase()) {
        format!("'{name}'")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Parsed, command};
    use super::*;

    fn of(object: &str, text: &str) -> Meaning {
        let line = format!("DEFINE {object}(X) {text}");
        match command(&line) {
            Ok(Parsed::Command(command)) => meaning(command.object, &command.parameters[0]),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn attributes_have_their_counterparts() {
        let check = |text: &str, name: &'static str, value: &str| {
            assert_eq!(
                of("QLOCAL", text),
                Meaning::Sets(name, value.to_owned()),
                "{text}"
            );
        };
        check("TRIGGER", "trigger-control", "on");
        check("NOTRIGGER", "trigger-control", "off");
        check("TRIGTYPE(depth)", "trigger", "depth");
        check("TRIGDPTH(5)", "trigger-depth", "5");
        check("PROCESS(' ')", "process", "");
        check("PROCESS('route')", "process", "route");
        check("DEFPSIST(YES)", "default-persistence", "persistent");
        check("MSGDLVSQ(FIFO)", "delivery", "fifo");
        check("DESCR('It''s')", "description", "It's");
        check("QDEPTHHI(75)", "alarm-depth-high", "75");
        check("QDEPTHLO(0)", "alarm-depth-low", "0");
        check("QSVCINT(60000)", "service-interval", "60000ms");
        for (text, is_on) in [
            ("QDPHIEV(ENABLED)", true),
            ("QDPLOEV(DISABLED)", false),
            ("QSVCIEV(HIGH)", true),
            ("QSVCIEV(NONE)", false),
        ] {
            match of("QLOCAL", text) {
                Meaning::Switches(_, on) => assert_eq!(on, is_on, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        assert_eq!(
            of("PROCESS", "APPLICID('orders.wasm')"),
            Meaning::Sets("component", "orders.wasm".to_owned())
        );
        assert_eq!(of("QLOCAL", "REPLACE"), Meaning::Option(Choice::Replace));
    }

    #[test]
    fn what_cannot_be_is_said_with_why() {
        let ignored = |object: &str, text: &str, part: &str| match of(object, text) {
            Meaning::Ignored(why) => assert!(why.contains(part), "{text}: {why}"),
            other => panic!("{text}: {other:?}"),
        };
        let refused = |object: &str, text: &str, part: &str| match of(object, text) {
            Meaning::Refused(why) => assert!(why.contains(part), "{text}: {why}"),
            other => panic!("{text}: {other:?}"),
        };
        ignored(
            "QLOCAL",
            "INITQ(SYSTEM.DEFAULT.INITIATION.QUEUE)",
            "no initiation queue",
        );
        ignored("QLOCAL", "BOTHRESH(0)", "never");
        ignored("QLOCAL", "QDPMAXEV(ENABLED)", "always on");
        refused("QLOCAL", "QDEPTHHI(101)", "from 0 to 100");
        refused("QLOCAL", "QSVCINT(1000000000)", "from 0 to 999999999");
        refused("QLOCAL", "QSVCIEV(LOW)", "use HIGH, OK or NONE");
        refused("PROCESS", "QDPHIEV(ENABLED)", "no attribute");
        ignored("QLOCAL", "CLUSTER(' ')", "no clusters");
        ignored("PROCESS", "APPLTYPE(UNIX)", "WebAssembly component");
        refused("QLOCAL", "CLUSTER(C)", "no clusters");
        refused("QLOCAL", "TRIGDPTH(0)", "from 1 to");
        refused("QLOCAL", "TRIGTYPE(OFTEN)", "use FIRST, EVERY");
        refused("QLOCAL", "TRIGGER(YES)", "takes no value");
        refused("QLOCAL", "USAGE(XMITQ)", "no channels");
        refused("QLOCAL", "PROCESS('A/B')", "has \"/\"");
        refused("QLOCAL", "FROB(1)", "no attribute");
        refused(
            "PROCESS",
            "APPLICID('/opt/bin/orders')",
            "plugins directory",
        );
    }

    #[test]
    fn attributes_are_shown_as_mqsc() {
        let check = |ours: &str, value: &str, wanted: &str| {
            let shown = shown(Object::Queue, ours, value);
            let texts: Vec<_> = shown.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(texts.join(" "), wanted, "{ours}");
        };
        check("trigger-control", "on", "TRIGGER");
        check("trigger-control", "off", "NOTRIGGER");
        check("trigger", "every", "TRIGTYPE(EVERY)");
        check("process", "route", "PROCESS('route')");
        check("process", "", "PROCESS( )");
        check("description", "it's", "DESCR('it''s')");
        check("alarm-depth-high", "75", "QDEPTHHI(75) QDPHIEV(ENABLED)");
        check(
            "alarm-depth-high",
            "never",
            "QDEPTHHI(80) QDPHIEV(DISABLED)",
        );
        check("alarm-depth-low", "0", "QDEPTHLO(0) QDPLOEV(ENABLED)");
        check("service-interval", "5m", "QSVCINT(300000) QSVCIEV(HIGH)");
        check("service-interval", "0s", "QSVCINT(999999999) QSVCIEV(NONE)");
        assert_eq!(shown(Object::Queue, "max-tasks", "1"), []);
    }
}
