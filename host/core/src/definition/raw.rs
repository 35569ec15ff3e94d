//! A parsed value before anyone knows what it should be: TOML and JSON meet here, so that one
//! validator serves both.
//!
//! [`Raw`] keeps the order of a table and even a name given twice; the reader of the table judges.
//! `serde_json::from_slice::<Raw>` and `toml::from_str::<Raw>` both work as they are.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How much of a refused text is repeated in a message, in characters.
const SHOWN_LENGTH: usize = 60;

/// A parsed value of any kind.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Raw {
    /// JSON's `null`; TOML has none.
    #[default]
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction, or a whole number past the range of [`Raw::Integer`].
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Raw>),
    /// Named values in the order given. A name may stand twice; the reader refuses it.
    Table(Vec<(String, Raw)>),
}

impl Raw {
    /// Shorthand for a text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The value of a name in a table: the first one of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Raw> {
        match self {
            Self::Table(entries) => entries
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// The value as a message shows it: short, and with its kind where that is the point.
    #[must_use]
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Boolean(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
            Self::Text(value) => shown_text(value),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
        }
    }
}

/// A text escaped and cut to a length that a message bears.
pub(super) fn cut_text(text: &str) -> String {
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

/// A text in quotes, escaped and cut.
pub(super) fn shown_text(text: &str) -> String {
    format!("\"{}\"", cut_text(text))
}

impl fmt::Display for Raw {
    /// For people: texts bare, lists and tables in brackets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => formatter.write_str("null"),
            Self::Boolean(value) => value.fmt(formatter),
            Self::Integer(value) => value.fmt(formatter),
            Self::Float(value) => value.fmt(formatter),
            Self::Text(value) => formatter.pad(value),
            Self::List(values) => {
                formatter.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    formatter.write_str(if index == 0 { "" } else { ", " })?;
                    value.fmt(formatter)?;
                }
                formatter.write_str("]")
            }
            Self::Table(entries) => {
                formatter.write_str("{")?;
                for (index, (name, value)) in entries.iter().enumerate() {
                    formatter.write_str(if index == 0 { " " } else { ", " })?;
                    write!(formatter, "{name} = {value}")?;
                }
                formatter.write_str(if entries.is_empty() { "}" } else { " }" })
            }
        }
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::List(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    list.serialize_element(value)?;
                }
                list.end()
            }
            Self::Table(entries) => {
                let mut table = serializer.serialize_map(Some(entries.len()))?;
                for (name, value) in entries {
                    table.serialize_entry(name, value)?;
                }
                table.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        // No attribute takes so large a bare number, so its lost last digits cannot matter.
        #[expect(clippy::cast_precision_loss, reason = "only shown in a refusal")]
        Ok(i64::try_from(value).map_or(Raw::Float(value as f64), Raw::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
        let mut values = Vec::new();
        // Bounded by the input, which the caller has bounded.
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Raw::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = table.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Table(entries))
    }
}
