//! Every setting of the host and of the commands, in one list, and how its value is read.

use oncue_core::quantity::{parse_millis, parse_size};

/// The word for a value that the host measures for itself.
const AUTO: &str = "auto";

/// What a setting's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text that is not empty.
    Text,
    /// A text; empty is none.
    OptionalText,
    /// `HOST:PORT`.
    Address,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A size or count such as `2 GiB`, or `auto`.
    SizeOrAuto,
    /// A size such as `64 MiB`.
    Size,
    /// A time such as `30s`.
    Millis,
    /// A number from 0 to 1.
    Share,
    /// `true` or `false`.
    Switch,
}

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The name in the file; the flag is `--NAME`, the variable `ONCUE_NAME` with underscores.
    pub(crate) name: &'static str,
    /// The value when nobody says another.
    pub(crate) default: &'static str,
    pub(super) kind: Kind,
    /// What it means.
    pub(crate) meaning: &'static str,
}

const fn setting(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    meaning: &'static str,
) -> Setting {
    Setting {
        name,
        default,
        kind,
        meaning,
    }
}

/// Every setting, in the order of the documentation.
pub(crate) const SETTINGS: &[Setting] = &[
    setting(
        "url",
        "http://127.0.0.1:7373",
        Kind::Text,
        "The host that commands talk to.",
    ),
    setting(
        "timeout",
        "30s",
        Kind::Millis,
        "How long a command waits for an answer.",
    ),
    setting(
        "token-file",
        "",
        Kind::OptionalText,
        "A file with the token that commands send.",
    ),
    setting(
        "ca-file",
        "",
        Kind::OptionalText,
        "Certificates that vouch for the host. None: the system's.",
    ),
    setting(
        "data-dir",
        "./data",
        Kind::Text,
        "Where the host keeps its messages and caches.",
    ),
    setting(
        "plugins-dir",
        "./plugins",
        Kind::Text,
        "The directory whose plugins are live.",
    ),
    setting(
        "listen",
        "127.0.0.1:7373",
        Kind::Address,
        "Where the host listens. Port 0: any.",
    ),
    setting(
        "name",
        "oncue",
        Kind::Text,
        "The queue manager's name, as handlers see it.",
    ),
    setting(
        "memory",
        AUTO,
        Kind::SizeOrAuto,
        "Memory for tasks. auto: half of the machine's.",
    ),
    setting(
        "fuel",
        AUTO,
        Kind::SizeOrAuto,
        "Fuel outstanding at a time. auto: 30 s of all cores.",
    ),
    setting(
        "slots",
        AUTO,
        Kind::SizeOrAuto,
        "Most tasks at a time. auto: by address space.",
    ),
    setting(
        "workers",
        AUTO,
        Kind::SizeOrAuto,
        "Threads that run tasks. auto: one for each core.",
    ),
    setting(
        "shutdown-deadline",
        "30s",
        Kind::Millis,
        "How long a stopping host lets tasks end.",
    ),
    setting(
        "plugin-settle",
        "200ms",
        Kind::Millis,
        "How long a plugin's file must stay the same.",
    ),
    setting(
        "plugin-rescan",
        "5s",
        Kind::Millis,
        "How often the plugins directory is looked at.",
    ),
    setting(
        "plugin-keys",
        "",
        Kind::OptionalText,
        "Keys that plugins must be signed with, or their file.",
    ),
    setting(
        "store-reserve",
        "256 MiB",
        Kind::Size,
        "Free disk space below which puts are refused.",
    ),
    setting(
        "store-ballast",
        "64 MiB",
        Kind::Size,
        "Disk space kept to end cleanly when it is full.",
    ),
    setting(
        "task-records",
        "64 MiB",
        Kind::Size,
        "Task records that are kept: the newest of so many bytes.",
    ),
    setting(
        "task-records-age",
        "7d",
        Kind::Millis,
        "How long they are kept at most.",
    ),
    setting(
        "body-limit",
        "16 MiB",
        Kind::Size,
        "Longest body of an HTTP request.",
    ),
    setting(
        "secrets-dir",
        "",
        Kind::OptionalText,
        "A directory with a file for each secret of plugins.",
    ),
    setting(
        "auth",
        "auto",
        Kind::Word(&["auto", "required", "off"]),
        "Whether requests need a token. auto: when there are tokens.",
    ),
    setting(
        "tls-cert",
        "",
        Kind::OptionalText,
        "The certificate that the host speaks TLS with.",
    ),
    setting(
        "tls-key",
        "",
        Kind::OptionalText,
        "The key of the certificate.",
    ),
    setting(
        "connections-per-address",
        AUTO,
        Kind::SizeOrAuto,
        "Connections of each address. auto: a quarter of all.",
    ),
    setting(
        "rate-limit",
        "0",
        Kind::Size,
        "Requests a second of each identity. 0: no limit.",
    ),
    setting(
        "insecure-http",
        "false",
        Kind::Switch,
        "Speak plain HTTP with other machines: a proxy does TLS.",
    ),
    setting(
        "volatile",
        "false",
        Kind::Switch,
        "Keep everything in memory: a restart loses it.",
    ),
    setting(
        "accept-loss",
        "false",
        Kind::Switch,
        "Open a damaged store, dropping what is damaged.",
    ),
    setting(
        "otlp-endpoint",
        "off",
        Kind::Text,
        "Where traces are sent: http(s)://HOST:PORT of a collector, or off.",
    ),
    setting(
        "otlp-ca-file",
        "",
        Kind::OptionalText,
        "Certificates that vouch for the collector. None: the system's.",
    ),
    setting(
        "otlp-ratio",
        "1",
        Kind::Share,
        "Which part of traces that begin here is recorded.",
    ),
    setting(
        "log",
        "info",
        Kind::Text,
        "What is logged: a level, or TARGET=LEVEL between commas.",
    ),
    setting(
        "log-format",
        "text",
        Kind::Word(&["text", "json"]),
        "The form of the log on stderr.",
    ),
];

/// A value that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Number(Option<u64>),
    Switch(bool),
}

/// Reads a value; the error says what to use.
pub(super) fn read(kind: Kind, text: &str) -> Result<Value, String> {
    match kind {
        Kind::Text if text.is_empty() => Err("use a text that is not empty".to_owned()),
        Kind::Text | Kind::OptionalText => Ok(Value::Text(text.to_owned())),
        Kind::Address => {
            let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
            match port.map(|(_, port)| port.parse::<u16>()) {
                Some(Ok(_)) => Ok(Value::Text(text.to_owned())),
                _ => Err("use HOST:PORT".to_owned()),
            }
        }
        Kind::Word(words) if words.contains(&text) => Ok(Value::Text(text.to_owned())),
        Kind::Word(words) => Err(format!("use {}", words.join(" or "))),
        Kind::SizeOrAuto if text == AUTO => Ok(Value::Number(None)),
        Kind::SizeOrAuto => match parse_size(text) {
            Ok(0) => Err(format!("use a number above 0, or {AUTO}")),
            Ok(number) => Ok(Value::Number(Some(number))),
            Err(error) => Err(format!("it {}, or use {AUTO}", error.fact())),
        },
        Kind::Size => match parse_size(text) {
            Ok(number) => Ok(Value::Number(Some(number))),
            Err(error) => Err(format!("it {}", error.fact())),
        },
        Kind::Millis => match parse_millis(text) {
            Ok(millis) => Ok(Value::Number(Some(millis))),
            Err(error) => Err(format!("it {}", error.fact())),
        },
        Kind::Share => match text.parse::<f64>() {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(Value::Text(text.to_owned())),
            _ => Err("use a number from 0 to 1".to_owned()),
        },
        Kind::Switch => match text {
            "true" | "1" => Ok(Value::Switch(true)),
            "false" | "0" => Ok(Value::Switch(false)),
            _ => Err("use true or false".to_owned()),
        },
    }
}
