//! Kinds of attributes: how a value is read, how it is written, and what is accepted.
//!
//! A kind refuses what it cannot read, with the fact and the cure; it knows nothing of other
//! attributes. What a kind writes, it reads back as the same value. Neighbours: `collection` for
//! lists and tables; `queue` and `process`, whose lists give every attribute a kind.

use super::fault::{Reader, nearest};
use super::limits::MAX_FILE_NAME;
use super::raw::Raw;
use super::words::Words;
use crate::names::{NameError, ProcessName, QueueName};
use crate::quantity::{
    NEVER, QuantityError, format_bytes, format_count, format_millis, format_millis_or_never,
    parse_millis, parse_millis_or_never, parse_size,
};

/// How values of one kind are read and written.
pub(super) trait Kind<T> {
    /// What is accepted, as it follows after "use".
    fn accepts(&self) -> String;

    /// Reads a value; notes at least one fault when it answers `None`.
    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<T>;

    /// Writes a value so that [`read`](Kind::read) gives it back.
    fn write(&self, value: &T) -> Raw;

    /// The value meant by a text of the command line, where nothing else says its type.
    fn read_flag(&self, text: &str) -> Raw {
        Raw::text(text)
    }

    /// Notes that the value is none of this kind.
    fn refuse(&self, raw: &Raw, reader: &mut Reader) -> Option<T> {
        reader.fault(format!("is {}; use {}", raw.shown(), self.accepts()));
        None
    }
}

/// A whole number from `min` to `max`.
pub(super) struct Integer {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl<T: TryFrom<u64> + Into<u64> + Copy> Kind<T> for Integer {
    fn accepts(&self) -> String {
        format!("a whole number from {} to {}", self.min, self.max)
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<T> {
        if let Raw::Integer(number) = raw
            && let Ok(number) = u64::try_from(*number)
            && (self.min..=self.max).contains(&number)
            && let Ok(value) = T::try_from(number)
        {
            return Some(value);
        }
        self.refuse(raw, reader)
    }

    fn write(&self, value: &T) -> Raw {
        let number: u64 = (*value).into();
        Raw::Integer(i64::try_from(number).expect("bounds of attributes are below 2^63"))
    }

    fn read_flag(&self, text: &str) -> Raw {
        text.trim()
            .parse()
            .map_or_else(|_not_a_number| Raw::text(text), Raw::Integer)
    }
}

/// Whether a number is written as bytes or as a plain count.
pub(super) enum Unit {
    /// `64 MiB`.
    Bytes,
    /// `10 G`.
    Count,
}

/// A size in bytes or a large count, from `min` to `max`.
pub(super) struct Size {
    pub(super) unit: Unit,
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Size {
    fn format(&self, value: u64) -> String {
        match self.unit {
            Unit::Bytes => format_bytes(value),
            Unit::Count => format_count(value),
        }
    }
}

/// Notes why a quantity cannot be read.
fn refuse_quantity(raw: &Raw, error: &QuantityError, reader: &mut Reader) {
    reader.fault(format!("is {}, which {}", raw.shown(), error.fact()));
}

impl Kind<u64> for Size {
    fn accepts(&self) -> String {
        let what = match self.unit {
            Unit::Bytes => "a size",
            Unit::Count => "a count",
        };
        format!(
            "{what} from {} to {}",
            self.format(self.min),
            self.format(self.max)
        )
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<u64> {
        let value = match raw {
            Raw::Integer(number) => u64::try_from(*number).ok(),
            Raw::Text(text) => match parse_size(text) {
                Ok(value) => Some(value),
                Err(error) => {
                    refuse_quantity(raw, &error, reader);
                    return None;
                }
            },
            _ => None,
        };
        let value = value.filter(|value| (self.min..=self.max).contains(value));
        value.or_else(|| self.refuse(raw, reader))
    }

    fn write(&self, value: &u64) -> Raw {
        Raw::Text(self.format(*value))
    }
}

/// A time in milliseconds, from `min` to `max`.
pub(super) struct Millis {
    pub(super) min: u64,
    pub(super) max: u64,
}

/// Reads a time by `parse` and holds it to the range.
fn read_time<T>(
    kind: &impl Kind<T>,
    raw: &Raw,
    reader: &mut Reader,
    parse: fn(&str) -> Result<T, QuantityError>,
    in_range: impl Fn(&T) -> bool,
) -> Option<T> {
    let parsed = match raw {
        Raw::Text(text) => parse(text),
        // A bare number has no unit; the parser says so.
        Raw::Integer(number) if *number >= 0 => parse(&number.to_string()),
        _ => return kind.refuse(raw, reader),
    };
    match parsed {
        Ok(value) if in_range(&value) => Some(value),
        Ok(_) => kind.refuse(raw, reader),
        Err(error) => {
            refuse_quantity(raw, &error, reader);
            None
        }
    }
}

impl Kind<u64> for Millis {
    fn accepts(&self) -> String {
        format!(
            "a time from {} to {}",
            format_millis(self.min),
            format_millis(self.max)
        )
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<u64> {
        let range = self.min..=self.max;
        read_time(self, raw, reader, parse_millis, |value| {
            range.contains(value)
        })
    }

    fn write(&self, value: &u64) -> Raw {
        Raw::Text(format_millis(*value))
    }
}

/// A time in milliseconds, from `min` to `max`, or `never`.
pub(super) struct MillisOrNever {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Kind<Option<u64>> for MillisOrNever {
    fn accepts(&self) -> String {
        let (min, max) = (format_millis(self.min), format_millis(self.max));
        format!("a time from {min} to {max}, or \"never\"")
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<Option<u64>> {
        let range = self.min..=self.max;
        let in_range = |value: &Option<u64>| value.is_none_or(|value| range.contains(&value));
        read_time(self, raw, reader, parse_millis_or_never, in_range)
    }

    fn write(&self, value: &Option<u64>) -> Raw {
        Raw::Text(format_millis_or_never(*value))
    }
}

/// A percentage from 0 to 100, or `never`.
pub(super) struct PercentOrNever;

impl Kind<Option<u8>> for PercentOrNever {
    fn accepts(&self) -> String {
        format!("a whole number from 0 to 100, or \"{NEVER}\"")
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<Option<u8>> {
        match raw {
            Raw::Text(text) if text == NEVER => return Some(None),
            Raw::Integer(number @ 0..=100) => return Some(u8::try_from(*number).ok()),
            _ => {}
        }
        self.refuse(raw, reader)
    }

    fn write(&self, value: &Option<u8>) -> Raw {
        value.map_or_else(|| Raw::text(NEVER), |percent| Raw::Integer(percent.into()))
    }

    fn read_flag(&self, text: &str) -> Raw {
        text.trim()
            .parse()
            .map_or_else(|_not_a_number| Raw::text(text), Raw::Integer)
    }
}

/// Texts in quotes, joined for a sentence: `"on" or "off"`.
fn alternatives<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// Notes that a text is none of the words, with the nearest one.
fn refuse_word(raw: &Raw, accepts: &str, words: &[&'static str], reader: &mut Reader) {
    let meant = match raw {
        Raw::Text(text) => nearest(text, words.iter().copied()),
        _ => None,
    };
    let meant = meant
        .map(|word| format!("; did you mean \"{word}\"?"))
        .unwrap_or_default();
    reader.fault(format!("is {}; use {accepts}{meant}", raw.shown()));
}

/// One of the words of a type.
pub(super) struct Word;

impl<T: Words> Kind<T> for Word {
    fn accepts(&self) -> String {
        alternatives(
            T::WORDS
                .iter()
                .filter(|(_, value)| value.is_supported())
                .map(|(word, _)| *word),
        )
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<T> {
        if let Raw::Text(text) = raw
            && let Some((word, value)) = T::WORDS.iter().find(|(word, _)| word == text)
        {
            if value.is_supported() {
                return Some(*value);
            }
            let accepts = <Self as Kind<T>>::accepts(self);
            reader.fault(format!(
                "is \"{word}\", which is not supported yet; use {accepts}"
            ));
            return None;
        }
        let words: Vec<&'static str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        refuse_word(raw, &<Self as Kind<T>>::accepts(self), &words, reader);
        None
    }

    fn write(&self, value: &T) -> Raw {
        let word = T::WORDS
            .iter()
            .find(|(_, known)| known == value)
            .map(|(word, _)| *word);
        Raw::text(word.expect("the list of words is complete by its macro"))
    }
}

/// Two words for yes and no.
pub(super) struct Switch {
    pub(super) yes: &'static str,
    pub(super) no: &'static str,
}

impl Kind<bool> for Switch {
    fn accepts(&self) -> String {
        alternatives([self.yes, self.no].into_iter())
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<bool> {
        match raw {
            Raw::Text(text) if text == self.yes => Some(true),
            Raw::Text(text) if text == self.no => Some(false),
            _ => {
                refuse_word(raw, &self.accepts(), &[self.yes, self.no], reader);
                None
            }
        }
    }

    fn write(&self, value: &bool) -> Raw {
        Raw::text(if *value { self.yes } else { self.no })
    }
}

/// Text of at most `max` bytes.
pub(super) struct Text {
    pub(super) max: usize,
}

impl Kind<String> for Text {
    fn accepts(&self) -> String {
        format!("a text of at most {} bytes", self.max)
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<String> {
        match raw {
            Raw::Text(text) if text.len() <= self.max => Some(text.clone()),
            Raw::Text(text) => {
                reader.fault(format!(
                    "has {} bytes; use at most {}",
                    text.len(),
                    self.max
                ));
                None
            }
            _ => self.refuse(raw, reader),
        }
    }

    fn write(&self, value: &String) -> Raw {
        Raw::text(value.as_str())
    }
}

/// The name of a file in the plugins directory, or empty.
pub(super) struct FileName;

impl Kind<String> for FileName {
    fn accepts(&self) -> String {
        format!("a file name of at most {MAX_FILE_NAME} bytes without / or \\")
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<String> {
        match raw {
            Raw::Text(text)
                if text.len() <= MAX_FILE_NAME
                    && !text
                        .chars()
                        .any(|c| matches!(c, '/' | '\\') || c.is_control())
                    && !matches!(text.as_str(), "." | "..") =>
            {
                Some(text.clone())
            }
            _ => self.refuse(raw, reader),
        }
    }

    fn write(&self, value: &String) -> Raw {
        Raw::text(value.as_str())
    }
}

/// A name, or empty for none.
pub(super) struct OptionalName;

/// The two kinds of names that definitions hold.
pub(super) trait Name: Sized {
    /// Checks the text.
    fn check(text: &str) -> Result<Self, NameError>;
    /// The name as text.
    fn text(&self) -> &str;
}

impl Name for QueueName {
    fn check(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }

    fn text(&self) -> &str {
        self.as_str()
    }
}

impl Name for ProcessName {
    fn check(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }

    fn text(&self) -> &str {
        self.as_str()
    }
}

impl<N: Name> Kind<Option<N>> for OptionalName {
    fn accepts(&self) -> String {
        "a name, or \"\" for none".to_owned()
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<Option<N>> {
        match raw {
            Raw::Text(text) if text.is_empty() => Some(None),
            Raw::Text(text) => match N::check(text) {
                Ok(name) => Some(Some(name)),
                Err(error) => {
                    reader.fault(format!("is {}, which {}", raw.shown(), error.fact()));
                    None
                }
            },
            _ => self.refuse(raw, reader),
        }
    }

    fn write(&self, value: &Option<N>) -> Raw {
        Raw::text(value.as_ref().map_or("", Name::text))
    }
}
