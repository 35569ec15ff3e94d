//! Reading a request's fields, from JSON, the query and headers alike: all faults at once.
//!
//! A [`Raw`] table is the common form; a value from the query or a header is a text in it. Fields
//! that are not known are refused with the nearest name, never ignored.

use oncue_core::definition::limits::MAX_FAULTS;
use oncue_core::definition::{Fault, Raw, nearest};
use oncue_core::quantity::{parse_millis, parse_millis_or_never};
use oncue_core::time::Millis;

/// How much of a refused value is repeated in a message, in characters.
const SHOWN_LENGTH: usize = 60;

/// The faults of one request, up to a bound.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    list: Vec<Fault>,
    unlisted: usize,
}

impl Faults {
    /// Notes a fault of the field at `path`; dots separate the steps.
    pub(crate) fn add(&mut self, path: &str, message: impl Into<String>) {
        if self.list.len() < MAX_FAULTS {
            self.list.push(Fault::new(path, message));
        } else {
            self.unlisted += 1;
        }
    }

    /// The value of a read, or its fault noted.
    pub(crate) fn keep<T>(&mut self, path: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|message| self.add(path, message)).ok()
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// All faults, when there are any.
    pub(crate) fn finish<T>(mut self, value: T) -> Result<T, Vec<Fault>> {
        if self.unlisted > 0 {
            let message = format!("has {} more faults; correct these first", self.unlisted);
            self.list.push(Fault::new("request", message));
        }
        if self.list.is_empty() {
            Ok(value)
        } else {
            Err(self.list)
        }
    }
}

/// Joins the steps of a path; an empty outer path is left out.
pub(crate) fn join(outer: &str, inner: &str) -> String {
    if outer.is_empty() {
        inner.to_owned()
    } else {
        format!("{outer}.{inner}")
    }
}

/// Takes a table apart into the fields that are known, each once. Notes the others.
pub(crate) fn known_fields<'a>(
    raw: &'a Raw,
    known: &[&'static str],
    path: &str,
    faults: &mut Faults,
) -> Vec<(&'static str, &'a Raw)> {
    let Raw::Table(entries) = raw else {
        let whole = if path.is_empty() { "body" } else { path };
        faults.add(whole, format!("is {}; use an object", shown(raw)));
        return Vec::new();
    };
    let mut found: Vec<(&'static str, &Raw)> = Vec::new();
    for (name, value) in entries {
        match known.iter().find(|field| *field == name) {
            None => faults.add(&join(path, &cut(name)), unknown(name, known)),
            Some(field) if found.iter().any(|(earlier, _)| earlier == field) => {
                faults.add(&join(path, field), "is given twice; remove one");
            }
            Some(field) => found.push((field, value)),
        }
    }
    found
}

/// The fact and cure for a field that is not known.
pub(crate) fn unknown(name: &str, known: &[&'static str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(meant) => format!("is not known here; did you mean \"{meant}\"?"),
        None if known.is_empty() => "is not known here; remove it".to_owned(),
        None => format!("is not known here; use {}", known.join(", ")),
    }
}

fn cut(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN_LENGTH)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN_LENGTH).is_some() {
        shown.push_str("...");
    }
    shown
}

/// A value as a message shows it.
pub(crate) fn shown(raw: &Raw) -> String {
    match raw {
        Raw::Null => "null".to_owned(),
        Raw::Boolean(value) => value.to_string(),
        Raw::Integer(value) => value.to_string(),
        Raw::Float(value) => value.to_string(),
        Raw::Text(text) => format!("\"{}\"", cut(text)),
        Raw::List(_) => "a list".to_owned(),
        Raw::Table(_) => "an object".to_owned(),
    }
}

/// Reads a text.
///
/// # Errors
/// The fact and the cure, as for all readers here.
pub(crate) fn text(raw: &Raw) -> Result<&str, String> {
    match raw {
        Raw::Text(text) => Ok(text),
        _ => Err(format!("is {}; use a text", shown(raw))),
    }
}

/// Reads a whole number from `min` to `max`. Digits in a text count: queries and headers have no
/// other way.
pub(crate) fn integer<T: TryFrom<u64>>(raw: &Raw, min: u64, max: u64) -> Result<T, String> {
    let number = match raw {
        Raw::Integer(number) => u64::try_from(*number).ok(),
        Raw::Text(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    };
    number
        .filter(|number| (min..=max).contains(number))
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| format!("is {}; use a whole number from {min} to {max}", shown(raw)))
}

/// Reads `true` or `false`.
pub(crate) fn boolean(raw: &Raw) -> Result<bool, String> {
    match raw {
        Raw::Boolean(value) => Ok(*value),
        Raw::Text(text) if text == "true" => Ok(true),
        Raw::Text(text) if text == "false" => Ok(false),
        _ => Err(format!("is {}; use true or false", shown(raw))),
    }
}

/// Reads one of some words.
pub(crate) fn word<T: Copy, const N: usize>(
    raw: &Raw,
    all: [T; N],
    write: impl Fn(T) -> &'static str,
) -> Result<T, String> {
    let given = text(raw)?;
    let found = all.into_iter().find(|one| write(*one) == given);
    found.ok_or_else(|| {
        let words = all.map(write);
        let meant = nearest(given, words);
        let meant = meant
            .map(|word| format!("; did you mean \"{word}\"?"))
            .unwrap_or_default();
        format!("is {}; use one of {}{meant}", shown(raw), words.join(", "))
    })
}

/// Reads a time such as `20s`.
pub(crate) fn millis(raw: &Raw) -> Result<Millis, String> {
    let written = time_text(raw)?;
    parse_millis(&written).map_err(|error| format!("is {}, which {}", shown(raw), error.fact()))
}

/// Reads a time such as `20s`, or `never`, which is `None`.
pub(crate) fn millis_or_never(raw: &Raw) -> Result<Option<Millis>, String> {
    let written = time_text(raw)?;
    parse_millis_or_never(&written)
        .map_err(|error| format!("is {}, which {}", shown(raw), error.fact()))
}

/// A bare number goes to the parser too, which says that its unit is missing.
fn time_text(raw: &Raw) -> Result<String, String> {
    match raw {
        Raw::Text(text) => Ok(text.clone()),
        Raw::Integer(number) if *number >= 0 => Ok(number.to_string()),
        _ => Err(format!("is {}; use a time such as \"20s\"", shown(raw))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: PartialEq + std::fmt::Debug>(
        read: impl Fn(&Raw) -> Result<T, String>,
        json: &str,
        wanted: Result<T, &str>,
    ) {
        let raw: Raw = serde_json::from_str(json).expect("JSON");
        match (read(&raw), wanted) {
            (Ok(got), Ok(wanted)) => assert_eq!(got, wanted, "{json}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{json} gave {message}"),
            (got, wanted) => panic!("{json} gave {got:?}, wanted {wanted:?}"),
        }
    }

    #[test]
    fn values_are_read() {
        let number = |raw: &Raw| integer::<u8>(raw, 0, 9);
        check(number, "5", Ok(5));
        check(number, "\"5\"", Ok(5));
        check(number, "10", Err("is 10; use a whole number from 0 to 9"));
        check(number, "-1", Err("is -1"));
        check(number, "\"\"", Err("is \"\""));
        check(number, "5.5", Err("is 5.5"));
        check(millis, "\"20s\"", Ok(20_000));
        check(millis, "20", Err("has no unit"));
        check(millis, "true", Err("use a time such as"));
        check(millis_or_never, "\"never\"", Ok(None));
        check(boolean, "true", Ok(true));
        check(boolean, "\"false\"", Ok(false));
        check(boolean, "1", Err("use true or false"));
        check(
            |raw| text(raw).map(str::to_owned),
            "[]",
            Err("is a list; use a text"),
        );
    }

    #[test]
    fn unknown_and_double_fields_are_named() {
        let raw: Raw =
            serde_json::from_str(r#"{"dely":1,"delay":2,"delay":3,"zzz":4}"#).expect("JSON");
        let mut faults = Faults::default();
        let found = known_fields(&raw, &["delay", "reason"], "puts.0", &mut faults);
        assert_eq!(found, [("delay", &Raw::Integer(2))]);
        let faults = faults.finish(()).expect_err("three faults");
        let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "\"puts.0.dely\" is not known here; did you mean \"delay\"?",
                "\"puts.0.delay\" is given twice; remove one",
                "\"puts.0.zzz\" is not known here; use delay, reason",
            ]
        );
    }

    #[test]
    fn faults_past_the_bound_are_counted() {
        let mut faults = Faults::default();
        for index in 0..MAX_FAULTS + 7 {
            faults.add(&index.to_string(), "is wrong");
        }
        let faults = faults.finish(()).expect_err("faults");
        assert_eq!(faults.len(), MAX_FAULTS + 1);
        let last = faults.last().map(ToString::to_string).unwrap_or_default();
        assert_eq!(last, "\"request\" has 7 more faults; correct these first");
    }
}
