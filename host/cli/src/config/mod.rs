//! Settings: flags, then `ONCUE_*`, then `oncue.toml`, then defaults; each value with its origin.
//!
//! All settings stand in one list, [`SETTINGS`]: flag, variable, file and documentation follow
//! from it. Whatever is wrong is named at once, with where it comes from. Nothing here opens or
//! binds anything. Neighbours: `args` has the flags, `serve` and `client` live by the values.

mod settings;

use std::path::{Path, PathBuf};

use oncue_core::code::Code;
use oncue_core::definition::{Raw, nearest};

use crate::exit::Failure;
use settings::{Setting, Value, read};

pub(crate) use settings::SETTINGS;

/// The file that is read when no other is named and it is there.
pub(crate) const DEFAULT_FILE: &str = "oncue.toml";

/// Before a setting's name in the environment.
const ENVIRONMENT_PREFIX: &str = "ONCUE_";

/// Variables that are no settings: a token, secrets of plugins, and those of tests.
const OTHERS: &[&str] = &[
    "ONCUE_FAIL_POINT",
    "ONCUE_NEED_",
    "ONCUE_SECRET_",
    TOKEN_VARIABLE,
];

/// The variable that carries a token. It is no setting: it has no flag and stands in no file, so
/// that no other user of the machine can read it, and it is never shown.
pub(crate) const TOKEN_VARIABLE: &str = "ONCUE_TOKEN";

/// Unknown variables that are named.
const MAX_UNKNOWN: usize = 20;

/// Longest settings file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// `--NAME` on the command line.
    Flag(&'static str),
    /// A variable of the environment.
    Environment(String),
    /// The settings file.
    File(PathBuf),
    /// Nobody said anything.
    Default,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(name) => write!(formatter, "flag --{name}"),
            Self::Environment(name) => write!(formatter, "environment {name}"),
            Self::File(path) => write!(formatter, "file {}", path.display()),
            Self::Default => formatter.write_str("default"),
        }
    }
}

/// One setting with its value and origin.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    /// Which setting.
    pub(crate) setting: &'static Setting,
    /// The value as it was written.
    pub(crate) text: String,
    /// Who wrote it.
    pub(crate) origin: Origin,
    value: Value,
}

/// All settings.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    values: Vec<Resolved>,
}

/// What the command line says of settings: names of [`SETTINGS`], and values.
pub(crate) type Flags = Vec<(&'static str, String)>;

/// A settings file: where it is, and what it says.
pub(crate) struct File {
    path: PathBuf,
    text: String,
}

impl File {
    /// Reads the file that is named, or else the default one if it is there.
    ///
    /// # Errors
    /// Usage, when the file that is named, or is there, cannot be read.
    pub(crate) fn find(named: Option<&Path>) -> Result<Option<Self>, Failure> {
        let path = named.unwrap_or(Path::new(DEFAULT_FILE));
        let opened = match std::fs::File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
                return Ok(None);
            }
            opened => opened,
        };
        let read = opened.and_then(|file| {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut std::io::Read::take(file, MAX_FILE), &mut text)?;
            Ok(text)
        });
        let path = path.to_owned();
        match read {
            Ok(text) => Ok(Some(Self { path, text })),
            Err(error) => {
                let message = format!(
                    "settings file \"{}\" cannot be read: {error}",
                    path.display()
                );
                Err(Failure::coded(Code::InvalidConfiguration, message))
            }
        }
    }
}

impl Config {
    /// Settings of this process: the command line's flags, its environment, its file.
    ///
    /// # Errors
    /// Everything that is wrong, at once.
    pub(crate) fn load(flags: Flags, named: Option<&Path>) -> Result<Self, Failure> {
        let file = File::find(named)?;
        Self::resolve(flags, |name| std::env::var(name).ok(), file.as_ref())
    }

    /// Settings of these sources.
    ///
    /// # Errors
    /// Everything that is wrong, at once: unknown names in the file, values that cannot be read.
    pub(crate) fn resolve(
        flags: Flags,
        environment: impl Fn(&str) -> Option<String>,
        file: Option<&File>,
    ) -> Result<Self, Failure> {
        let mut faults = Vec::new();
        let mut in_file = file
            .map(|file| read_file(file, &mut faults))
            .unwrap_or_default();
        let mut values = Vec::with_capacity(SETTINGS.len());
        for setting in SETTINGS {
            let variable = variable_of(setting.name);
            let flag = flags.iter().find(|(name, _)| *name == setting.name);
            let from_file = in_file.remove(setting.name).zip(file);
            let (text, origin) = if let Some((name, text)) = flag {
                (text.clone(), Origin::Flag(name))
            } else if let Some(text) = environment(&variable).filter(|text| !text.is_empty()) {
                (text, Origin::Environment(variable))
            } else if let Some((text, file)) = from_file {
                (text, Origin::File(file.path.clone()))
            } else {
                (setting.default.to_owned(), Origin::Default)
            };
            match read(setting.kind, &text) {
                Ok(value) => values.push(Resolved {
                    setting,
                    text,
                    origin,
                    value,
                }),
                Err(fact) => {
                    faults.push(format!(
                        "\"{}\" ({origin}) is {text:?}; {fact}",
                        setting.name
                    ));
                }
            }
        }
        if faults.is_empty() {
            return Ok(Self { values });
        }
        let what = if faults.len() == 1 {
            "a setting is"
        } else {
            "settings are"
        };
        Err(Failure::coded(Code::InvalidConfiguration, format!("{what} wrong")).with_faults(faults))
    }

    /// All settings, in the order of the list.
    pub(crate) fn all(&self) -> &[Resolved] {
        &self.values
    }

    fn value(&self, name: &str) -> &Value {
        let found = self
            .values
            .iter()
            .find(|resolved| resolved.setting.name == name);
        &found.expect("the name is one of SETTINGS").value
    }

    /// A text, word or address.
    pub(crate) fn text(&self, name: &str) -> &str {
        match self.value(name) {
            Value::Text(text) => text,
            other => unreachable!("setting {name} is no text but {other:?}"),
        }
    }

    /// A size, count or time in milliseconds; `None` is `auto`.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Value::Number(number) => *number,
            other => unreachable!("setting {name} is no number but {other:?}"),
        }
    }

    /// A time.
    pub(crate) fn duration(&self, name: &str) -> std::time::Duration {
        std::time::Duration::from_millis(self.number(name).unwrap_or_default())
    }

    /// A text that may be empty; `None` when it is.
    pub(crate) fn optional(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// A switch.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        matches!(self.value(name), Value::Switch(true))
    }
}

/// The variable that carries a setting.
fn variable_of(name: &str) -> String {
    format!(
        "{ENVIRONMENT_PREFIX}{}",
        name.to_ascii_uppercase().replace('-', "_")
    )
}

/// Variables of the environment that look like settings and are none, a sentence each: a misspelt
/// one would else be passed over in silence.
pub(crate) fn unknown_variables(names: impl Iterator<Item = String>) -> Vec<String> {
    let known: Vec<String> = SETTINGS.iter().map(|it| variable_of(it.name)).collect();
    let foreign = |name: &String| {
        name.starts_with(ENVIRONMENT_PREFIX)
            && !known.contains(name)
            && !OTHERS.iter().any(|other| name.starts_with(other))
    };
    let mut unknown: Vec<String> = names.filter(foreign).take(MAX_UNKNOWN).collect();
    unknown.sort();
    let told = |name: &String| {
        let meant = nearest(name, known.iter().map(String::as_str));
        let cure = meant.map_or_else(
            || "see \"oncue config show\" for those that are".to_owned(),
            |meant| format!("did you mean {meant}?"),
        );
        format!("variable {name} is no setting and is passed over; {cure}")
    };
    unknown.iter().map(told).collect()
}

/// The file's values as texts; notes what does not belong there.
fn read_file(file: &File, faults: &mut Vec<String>) -> std::collections::BTreeMap<String, String> {
    let mut found = std::collections::BTreeMap::new();
    let path = file.path.display();
    let entries = match toml::from_str::<Raw>(&file.text) {
        Ok(Raw::Table(entries)) => entries,
        Ok(_) => return found,
        Err(error) => {
            faults.push(format!(
                "{path} is not TOML: {}",
                error.to_string().trim_end()
            ));
            return found;
        }
    };
    for (name, value) in entries {
        if !SETTINGS.iter().any(|setting| setting.name == name) {
            let meant = nearest(&name, SETTINGS.iter().map(|setting| setting.name));
            let cure = meant.map_or_else(
                || "remove it".to_owned(),
                |meant| format!("did you mean \"{meant}\"?"),
            );
            faults.push(format!("\"{name}\" (file {path}) is not a setting; {cure}"));
            continue;
        }
        match value {
            Raw::Text(_) | Raw::Integer(_) | Raw::Boolean(_) => {
                found.insert(name, value.to_string());
            }
            _ => faults.push(format!("\"{name}\" (file {path}) is {value}; use a text")),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::settings::Kind;
    use super::*;

    fn file(text: &str) -> File {
        File {
            path: PathBuf::from("oncue.toml"),
            text: text.to_owned(),
        }
    }

    fn environment(name: &str) -> Option<String> {
        match name {
            "ONCUE_NAME" => Some("from-environment".to_owned()),
            "ONCUE_LISTEN" => Some("0.0.0.0:1".to_owned()),
            "ONCUE_LOG" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn flags_win_over_environment_over_file_over_defaults() {
        let file = file("name = \"f\"\nlisten = \"f:2\"\nslots = 7\nvolatile = true\n");
        let flags = vec![("listen", "127.0.0.1:0".to_owned())];
        let config = Config::resolve(flags, environment, Some(&file)).expect("settings");
        let check = |name: &str, text: &str, origin: &str| {
            let found = config.all().iter().find(|it| it.setting.name == name);
            let found = found.expect("a setting");
            assert_eq!(
                (found.text.as_str(), found.origin.to_string().as_str()),
                (text, origin)
            );
        };
        check("listen", "127.0.0.1:0", "flag --listen");
        check("name", "from-environment", "environment ONCUE_NAME");
        check("slots", "7", "file oncue.toml");
        check("volatile", "true", "file oncue.toml");
        check("data-dir", "./data", "default");
        check("log", "info", "default");
        assert_eq!(config.number("slots"), Some(7));
        assert_eq!(config.number("memory"), None);
        assert!(config.is_on("volatile"));
        assert_eq!(config.duration("shutdown-deadline").as_secs(), 30);
    }

    #[test]
    fn all_faults_are_named_at_once_with_their_origin() {
        let file = file("listne = \"x\"\nslots = \"many\"\n[store]\nreserve = 1\n");
        let flags = vec![
            ("timeout", "5".to_owned()),
            ("log-format", "xml".to_owned()),
        ];
        let failure = Config::resolve(flags, |_| None, Some(&file)).expect_err("faults");
        assert_eq!(
            failure.message,
            "settings are wrong [invalid-configuration]"
        );
        let wanted = [
            "\"listne\" (file oncue.toml) is not a setting; did you mean \"listen\"?",
            "\"store\" (file oncue.toml) is not a setting; remove it",
            "\"timeout\" (flag --timeout) is \"5\"; it has no unit",
            "\"slots\" (file oncue.toml) is \"many\"; it does not start with a number",
            "\"log-format\" (flag --log-format) is \"xml\"; use text or json",
        ];
        assert_eq!(failure.faults.len(), wanted.len(), "{:#?}", failure.faults);
        for (fault, wanted) in failure.faults.iter().zip(wanted) {
            assert!(fault.starts_with(wanted), "{fault}, wanted {wanted}");
        }
    }

    #[test]
    fn variables_that_are_no_settings_are_named() {
        let names = [
            "ONCUE_LISTNE",
            "ONCUE_LISTEN",
            "ONCUE_NEED_MOUNT",
            "ONCUE_",
            "PATH",
        ];
        let told = unknown_variables(names.into_iter().map(str::to_owned));
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].contains("variable ONCUE_ is no setting"),
            "{told:?}"
        );
        assert!(told[1].ends_with("did you mean ONCUE_LISTEN?"), "{told:?}");
    }

    #[test]
    fn a_file_that_is_no_toml_is_shown_with_its_line() {
        let failure = Config::resolve(Vec::new(), |_| None, Some(&file("a = 1\nb = \n")))
            .expect_err("not TOML");
        assert!(
            failure.faults[0].contains("line 2"),
            "{}",
            failure.faults[0]
        );
    }

    #[test]
    fn every_default_can_be_read_by_its_kind() {
        let config = Config::resolve(Vec::new(), |_| None, None).expect("defaults");
        for resolved in config.all() {
            match resolved.setting.kind {
                Kind::Text | Kind::OptionalText | Kind::Address | Kind::Word(_) | Kind::Share => {
                    config.text(resolved.setting.name);
                }
                Kind::Size | Kind::SizeOrAuto | Kind::Millis => {
                    config.number(resolved.setting.name);
                }
                Kind::Switch => assert!(!config.is_on(resolved.setting.name)),
            }
        }
        assert_eq!(variable_of("shutdown-deadline"), "ONCUE_SHUTDOWN_DEADLINE");
    }

    #[test]
    fn a_named_file_must_be_there() {
        assert!(File::find(Some(Path::new("/no/such/oncue.toml"))).is_err());
    }
}
