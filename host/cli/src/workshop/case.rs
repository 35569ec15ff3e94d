//! A golden case on disk: `input.json`, what a handler is given, and `expected.json`, what must
//! come of it. Read with every fault at once; written by `--bless`, and by whatever else makes
//! cases.
//!
//! Nothing in `expected.json` changes from run to run: ids of messages stand as `{{message 1}}`,
//! `{{put 1}}` and the like, times and costs do not stand there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use oncue_core::definition::Raw;
use oncue_core::names::QueueName;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::body::{Given, Wanted, whole_file};
use super::faults::FaultKind;
use crate::exit::{Exit, Failure};

/// What a handler is given.
pub(crate) const INPUT: &str = "input.json";

/// What must come of it.
pub(crate) const EXPECTED: &str = "expected.json";

/// Largest file of a case, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// Folders that one run looks into.
const MAX_CASES: usize = 10_000;

/// How deep cases may lie below the folder that is named.
const MAX_DEPTH: usize = 8;

/// Messages of one case.
const MAX_MESSAGES: usize = 1_000;

/// What a handler is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Input {
    /// The triggered queue; else the first that the plugin serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queue: Option<QueueName>,
    /// `first`, `every`, `depth`, or a table of queue attributes; else the manifest's.
    #[serde(skip_serializing_if = "is_null")]
    pub(super) trigger: Raw,
    /// The messages, put as one unit of work.
    pub(super) messages: Vec<GivenMessage>,
    /// The plugin's state before.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) state: BTreeMap<String, Given>,
    /// Over the manifest's `[process.config]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) config: BTreeMap<String, String>,
    /// Answers to requests, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) replies: Vec<Reply>,
    /// Only these faults are tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) faults: Option<Vec<FaultKind>>,
}

fn is_null(raw: &Raw) -> bool {
    *raw == Raw::Null
}

/// A message for the handler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct GivenMessage {
    /// The body.
    #[serde(flatten)]
    pub(super) body: Given,
    /// Another queue than the case's, for handlers that get from several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queue: Option<QueueName>,
    /// The fields that a putter may set.
    #[serde(flatten)]
    pub(super) fields: Fields,
}

/// An answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Reply {
    /// The queue that was asked.
    pub(super) queue: QueueName,
    /// The body.
    #[serde(flatten)]
    pub(super) body: Given,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_type: Option<String>,
    /// Its properties.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) properties: Map<String, Value>,
}

/// What a putter may say of a message, beside its body. What is not said is the queue's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Fields {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reply_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) group_sequence: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) priority: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_type: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) properties: Map<String, Value>,
    /// Milliseconds before it may be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delay: Option<u64>,
    /// Milliseconds until it is removed unread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expiry: Option<u64>,
}

/// What must come of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Expected {
    /// How each message ended, in the order of the input.
    pub(super) messages: Vec<WantedMessage>,
    /// What was put, in order.
    pub(super) puts: Vec<WantedPut>,
    /// What was asked, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) requests: Vec<WantedPut>,
    /// The plugin's whole state afterwards.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) state: BTreeMap<String, Wanted>,
}

/// How a message must end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct WantedMessage {
    /// `committed`, `rejected`, `retry`, ...
    pub(super) outcome: String,
    /// The handler's own words; not compared when not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

/// What must be put.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct WantedPut {
    /// Where to.
    pub(super) queue: String,
    /// The body.
    #[serde(flatten)]
    pub(super) body: Wanted,
    /// Everything else.
    #[serde(flatten, default)]
    pub(super) fields: Fields,
}

impl Expected {
    /// The same, with what another expects by value (`json`) by value.
    pub(super) fn like(mut self, wanted: &Self) -> Self {
        let lists = [
            (&mut self.puts, &wanted.puts),
            (&mut self.requests, &wanted.requests),
        ];
        for (got, wanted) in lists {
            for (got, wanted) in got.iter_mut().zip(wanted) {
                got.body = std::mem::take(&mut got.body).like(&wanted.body);
            }
        }
        for (key, got) in &mut self.state {
            if let Some(wanted) = wanted.state.get(key) {
                *got = std::mem::take(got).like(wanted);
            }
        }
        self
    }
}

/// A case.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// For people: its folder's name, below the folder that was named.
    pub(super) name: String,
    /// Its folder.
    pub(super) folder: PathBuf,
    /// What is given.
    pub(super) input: Input,
    /// What must come of it; none before the first `--bless`.
    pub(super) expected: Option<Expected>,
}

impl Case {
    /// Reads a case.
    fn read(folder: &Path, name: String) -> Result<Self, Vec<String>> {
        let input: Input = read(&folder.join(INPUT))?;
        let expected = folder.join(EXPECTED);
        let expected = match expected.is_file() {
            true => Some(read(&expected)?),
            false => None,
        };
        if input.messages.is_empty() || input.messages.len() > MAX_MESSAGES {
            return Err(vec![format!(
                "\"{}\" has {} messages; 1 to {MAX_MESSAGES} are allowed",
                folder.join(INPUT).display(),
                input.messages.len()
            )]);
        }
        Ok(Self {
            name,
            folder: folder.to_path_buf(),
            input,
            expected,
        })
    }

    /// Writes what is expected from now on.
    pub(super) fn bless(&self, expected: &Expected) -> Result<(), Failure> {
        write(&self.folder.join(EXPECTED), expected)
    }
}

/// Writes a new case; the folder is made.
pub(super) fn write_case(folder: &Path, input: &Input, expected: &Expected) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    write(&folder.join(INPUT), input)?;
    write(&folder.join(EXPECTED), expected)
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value).expect("a case can be written as JSON");
    text.push('\n');
    fs::write(path, text).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let message = format!("\"{}\" cannot be written: {error}", path.display());
    Failure::new(Exit::Failed, message)
}

/// Finds the cases of a folder: the folder itself, or all below it that have an `input.json`.
///
/// # Errors
/// Not found when there is none; usage with every fault of every case.
pub(super) fn find(folder: &Path) -> Result<Vec<Case>, Failure> {
    let shown = folder.display();
    if !folder.is_dir() {
        let message = format!("\"{shown}\" is no folder; name one with an {INPUT}");
        return Err(Failure::new(Exit::NotFound, message));
    }
    let mut found = Vec::new();
    gather(folder, folder, MAX_DEPTH, &mut found).map_err(|error| {
        let message = format!("\"{shown}\" cannot be read: {error}");
        Failure::new(Exit::Failed, message)
    })?;
    if found.is_empty() {
        let message = format!("\"{shown}\" has no case; make a folder in it with an {INPUT}");
        return Err(Failure::new(Exit::NotFound, message));
    }
    found.sort();
    let (mut cases, mut faults) = (Vec::new(), Vec::new());
    for (name, folder) in found {
        match Case::read(&folder, name) {
            Ok(case) => cases.push(case),
            Err(more) => faults.extend(more),
        }
    }
    if faults.is_empty() {
        return Ok(cases);
    }
    let message = format!("the cases of \"{shown}\" have faults:");
    Err(Failure::new(Exit::Usage, message).with_faults(faults))
}

fn gather(
    top: &Path,
    folder: &Path,
    depth: usize,
    found: &mut Vec<(String, PathBuf)>,
) -> std::io::Result<()> {
    if folder.join(INPUT).is_file() {
        let below = folder.strip_prefix(top).unwrap_or(folder);
        let name = match below.as_os_str().is_empty() {
            true => folder
                .canonicalize()?
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            false => below.display().to_string(),
        };
        found.push((name, folder.to_path_buf()));
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if found.len() < MAX_CASES && entry.path().is_dir() {
            gather(top, &entry.path(), depth - 1, found)?;
        }
    }
    Ok(())
}

/// Reads a file of a case: its form, and names that are not known.
fn read<T: DeserializeOwned + Serialize>(path: &Path) -> Result<T, Vec<String>> {
    let shown = path.display();
    let fault = |text: String| vec![format!("\"{shown}\" {text}")];
    let bytes = whole_file(path, MAX_FILE);
    let bytes = bytes.map_err(|error| fault(format!("cannot be read: {error}")))?;
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|error| fault(format!("is not JSON: {error}")))?;
    let read: T = serde_json::from_value(value.clone())
        .map_err(|error| fault(format!("is not a case: {error}")))?;
    let again = serde_json::to_value(&read).expect("what was read can be written");
    let mut unknown = Vec::new();
    unknown_names("", &value, &again, &mut unknown);
    if unknown.is_empty() {
        return Ok(read);
    }
    let told = |name: &String| format!("\"{shown}\": \"{name}\" is not known here; remove it");
    Err(unknown.iter().map(told).collect())
}

/// Names that were read over: what stands in `given` and is not written again, though it says
/// something.
fn unknown_names(path: &str, given: &Value, known: &Value, unknown: &mut Vec<String>) {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            for (name, value) in given {
                let path = join(path, name);
                match known.get(name) {
                    Some(known) => unknown_names(&path, value, known, unknown),
                    None if says_nothing(value) => {}
                    None => unknown.push(path),
                }
            }
        }
        (Value::Array(given), Value::Array(known)) => {
            for (index, (given, known)) in given.iter().zip(known).enumerate() {
                unknown_names(&format!("{path}[{index}]"), given, known, unknown);
            }
        }
        _ => {}
    }
}

/// A name below another.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
#[path = "case_tests.rs"]
mod tests;
