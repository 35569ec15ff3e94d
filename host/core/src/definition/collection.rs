//! Kinds of attributes that are lists or tables. Every part that is wrong is named by its place.

use std::collections::BTreeMap;

use super::fault::Reader;
use super::kind::Kind;
use super::limits::{MAX_ENTRIES, MAX_KEY, MAX_VALUE};
use super::origin::WebOrigin;
use super::pattern::Pattern;
use super::raw::Raw;
use crate::names::PluginName;

/// Reads a list item by item, each with its position in the path.
fn read_list<T>(
    raw: &Raw,
    accepts: &str,
    reader: &mut Reader,
    item: impl Fn(&str) -> Result<T, String>,
) -> Option<Vec<T>> {
    let Raw::List(values) = raw else {
        reader.fault(format!("is {}; use {accepts}", raw.shown()));
        return None;
    };
    if values.len() > MAX_ENTRIES {
        reader.fault(format!(
            "has {} entries; use at most {MAX_ENTRIES}",
            values.len()
        ));
        return None;
    }
    let before = reader.count();
    let mut items = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        reader.within(&index.to_string(), |reader| match value {
            Raw::Text(text) => match item(text) {
                Ok(item) => items.push(item),
                Err(fact) => reader.fault(fact),
            },
            _ => reader.fault(format!("is {}; use a text", value.shown())),
        });
    }
    (reader.count() == before).then_some(items)
}

/// A list as a text of the command line: parts between commas.
fn list_from_flag(text: &str) -> Raw {
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    Raw::List(parts.map(Raw::text).collect())
}

/// A list of queue names with wildcards.
pub(super) struct Patterns;

impl Kind<Vec<Pattern>> for Patterns {
    fn accepts(&self) -> String {
        "a list of queue names, in which * stands for any characters".to_owned()
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<Vec<Pattern>> {
        read_list(raw, &self.accepts(), reader, Pattern::new)
    }

    fn write(&self, value: &Vec<Pattern>) -> Raw {
        Raw::List(
            value
                .iter()
                .map(|pattern| Raw::text(pattern.as_str()))
                .collect(),
        )
    }

    fn read_flag(&self, text: &str) -> Raw {
        list_from_flag(text)
    }
}

/// A list of origins on the web.
pub(super) struct Origins;

impl Kind<Vec<WebOrigin>> for Origins {
    fn accepts(&self) -> String {
        "a list of origins, such as \"https://api.example.com\"".to_owned()
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<Vec<WebOrigin>> {
        read_list(raw, &self.accepts(), reader, WebOrigin::new)
    }

    fn write(&self, value: &Vec<WebOrigin>) -> Raw {
        Raw::List(
            value
                .iter()
                .map(|origin| Raw::text(origin.to_string()))
                .collect(),
        )
    }

    fn read_flag(&self, text: &str) -> Raw {
        list_from_flag(text)
    }
}

/// Secrets of one process.
const MAX_SECRETS: usize = 32;

/// A list of names of secrets: they are names of files and of variables too.
pub(super) struct SecretNames;

impl Kind<Vec<String>> for SecretNames {
    fn accepts(&self) -> String {
        "a list of names".to_owned()
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<Vec<String>> {
        let names = read_list(raw, &self.accepts(), reader, |text| {
            let name = PluginName::new(text).map_err(|error| error.fact());
            name.map(|name| name.to_string())
        })?;
        if names.len() > MAX_SECRETS {
            let count = names.len();
            reader.fault(format!("has {count} entries; use at most {MAX_SECRETS}"));
            return None;
        }
        Some(names)
    }

    fn write(&self, value: &Vec<String>) -> Raw {
        Raw::List(value.iter().map(Raw::text).collect())
    }

    fn read_flag(&self, text: &str) -> Raw {
        list_from_flag(text)
    }
}

/// A table of texts. `environment` adds the rules of environment variables to the keys.
pub(super) struct TextTable {
    /// Whether keys must be fit for an environment: no `=`.
    pub(super) environment: bool,
}

impl TextTable {
    fn read_entry(&self, key: &str, value: &Raw, reader: &mut Reader) -> Option<String> {
        if key.is_empty() || key.len() > MAX_KEY || key.contains('\0') {
            reader.fault(format!(
                "has a key of {} bytes; use 1 to {MAX_KEY}, no NUL",
                key.len()
            ));
        }
        if self.environment && key.contains('=') {
            reader.fault("has = in its name; an environment cannot hold that, rename it");
        }
        match value {
            Raw::Text(text) if text.len() > MAX_VALUE => {
                reader.fault(format!("has {} bytes; use at most {MAX_VALUE}", text.len()));
                None
            }
            Raw::Text(text) if self.environment && text.contains('\0') => {
                reader.fault("holds a NUL; an environment cannot hold that, remove it");
                None
            }
            Raw::Text(text) => Some(text.clone()),
            _ => {
                reader.fault(format!("is {}; use a text, in quotes", value.shown()));
                None
            }
        }
    }
}

impl Kind<BTreeMap<String, String>> for TextTable {
    fn accepts(&self) -> String {
        "a table of texts".to_owned()
    }

    fn read(&self, raw: &Raw, reader: &mut Reader) -> Option<BTreeMap<String, String>> {
        let Raw::Table(entries) = raw else {
            return self.refuse(raw, reader);
        };
        if entries.len() > MAX_ENTRIES {
            reader.fault(format!(
                "has {} entries; use at most {MAX_ENTRIES}",
                entries.len()
            ));
            return None;
        }
        let before = reader.count();
        let mut table = BTreeMap::new();
        for (key, value) in entries {
            // A key is no attribute's name, so its dots are not steps of a path.
            reader.within_key(key, |reader| {
                if let Some(text) = self.read_entry(key, value, reader)
                    && table.insert(key.clone(), text).is_some()
                {
                    reader.fault("is given twice; remove one");
                }
            });
        }
        (reader.count() == before).then_some(table)
    }

    fn write(&self, value: &BTreeMap<String, String>) -> Raw {
        let entries = value
            .iter()
            .map(|(key, value)| (key.clone(), Raw::text(value.as_str())));
        Raw::Table(entries.collect())
    }

    /// `KEY=VALUE` pairs between commas. A value with a comma needs the manifest or JSON.
    fn read_flag(&self, text: &str) -> Raw {
        let parts = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let entries = parts.map(|part| match part.split_once('=') {
            Some((key, value)) => (key.trim().to_owned(), Raw::text(value.trim())),
            None => (part.to_owned(), Raw::Null),
        });
        Raw::Table(entries.collect())
    }
}
