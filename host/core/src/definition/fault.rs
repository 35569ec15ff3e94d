//! Faults of an input: where, what, and what to do; all of them at once.
//!
//! A [`Fault`] has no code of its own: whoever reports the list adds `invalid-definition` or
//! `invalid-manifest` once ([`list_faults`] does so). Neighbour: every reader of a [`Raw`].
//!
//! [`Raw`]: super::Raw

use std::fmt;

use super::limits::MAX_FAULTS;
use super::raw::cut_text;
use crate::code::Code;

/// One fault, or one warning, about one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The way to the value: names, and positions of lists, outermost first.
    pub path: Vec<String>,
    /// The fact and what to do: what follows after the quoted path in a sentence.
    pub message: String,
}

impl Fault {
    /// A fault of one attribute; a name with dots stands for a path.
    #[must_use]
    pub fn new(name: &str, message: impl Into<String>) -> Self {
        let path = name.split('.').map(str::to_owned).collect();
        Self {
            path,
            message: message.into(),
        }
    }

    /// The same fault seen from further out: `queue`, `orders` before `trigger-depth`.
    #[must_use]
    pub fn under<S: AsRef<str>>(mut self, outer: &[S]) -> Self {
        self.path
            .splice(0..0, outer.iter().map(|name| name.as_ref().to_owned()));
        self
    }
}

impl fmt::Display for Fault {
    /// `"queue.orders.trigger-depth" is 0; use a whole number from 1 to 999999999`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return write!(formatter, "the definition {}", self.message);
        }
        write!(formatter, "\"{}\" {}", self.path.join("."), self.message)
    }
}

/// All faults in one sentence with the code `invalid-definition`.
#[must_use]
pub fn list_faults(faults: &[Fault]) -> String {
    let mut text = String::new();
    for fault in faults {
        if !text.is_empty() {
            text.push_str("; also ");
        }
        text.push_str(&fault.to_string());
    }
    format!("{text} [{}]", Code::InvalidDefinition)
}

/// Collects faults while a value is read, and knows where the reading stands.
#[derive(Debug, Default)]
pub(super) struct Reader {
    path: Vec<String>,
    faults: Vec<Fault>,
    /// Faults past the bound, only counted.
    unlisted: usize,
}

impl Reader {
    /// Notes a fault of the value that is read now.
    pub(super) fn fault(&mut self, message: impl Into<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(Fault {
                path: self.path.clone(),
                message: message.into(),
            });
        } else {
            self.unlisted += 1;
        }
    }

    /// Reads an attribute; the dots of its name are steps of the path.
    pub(super) fn within<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.path.len();
        self.path.extend(name.split('.').map(str::to_owned));
        let value = read(self);
        self.path.truncate(outer);
        value
    }

    /// Reads an entry of a user's own table, whose key may hold anything.
    pub(super) fn within_key<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(cut_text(key));
        let value = read(self);
        self.path.pop();
        value
    }

    /// How many faults there are so far: a reader of parts compares before and after.
    pub(super) fn count(&self) -> usize {
        self.faults.len() + self.unlisted
    }

    /// Ends the reading.
    pub(super) fn finish<T>(mut self, value: T) -> Result<T, Vec<Fault>> {
        if self.unlisted > 0 {
            let message = format!("has {} more faults; correct these first", self.unlisted);
            self.faults.push(Fault {
                path: Vec::new(),
                message,
            });
        }
        if self.faults.is_empty() {
            Ok(value)
        } else {
            Err(self.faults)
        }
    }
}

/// Longest text for which a nearest name is looked for, in bytes: the search is quadratic.
const MAX_COMPARED: usize = 64;

/// The candidate that was probably meant, if one is near: at most a third of its letters differ.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if text.len() > MAX_COMPARED {
        return None;
    }
    let distances = candidates
        .into_iter()
        .map(|name| (distance(text, name), name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= (name.len() / 3).max(1)).then_some(name)
}

/// How many letters to insert, remove or replace (Levenshtein), row by row.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.chars().flat_map(char::to_lowercase).enumerate() {
        let mut next = Vec::with_capacity(row.len());
        next.push(index + 1);
        let mut before = index + 1;
        let pairs = row.iter().zip(row.iter().skip(1));
        for (other, (diagonal, above)) in right.iter().zip(pairs) {
            // `_` for `-` is the usual slip and costs nothing.
            let same = letter == *other || (letter == '_' && *other == '-');
            before = (above + 1)
                .min(before + 1)
                .min(diagonal + usize::from(!same));
            next.push(before);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, wanted: Option<&str>) {
        let names = [
            "trigger",
            "trigger-depth",
            "trigger-data",
            "get",
            "max-depth",
        ];
        assert_eq!(nearest(text, names), wanted, "{text}");
    }

    #[test]
    fn the_nearest_name_is_found_or_none() {
        check("trigger-dept", Some("trigger-depth"));
        check("trigger_depth", Some("trigger-depth"));
        check("TriggerDepth", Some("trigger-depth"));
        check("maxdepth", Some("max-depth"));
        check("gett", Some("get"));
        check("xyz", None);
        check("", None);
        check(&"trigger".repeat(50), None);
    }

    #[test]
    fn a_fault_names_the_whole_way() {
        let fault = Fault::new("retry.jitter", "is 200; use a whole number from 0 to 100");
        let text = fault.under(&["queue", "orders"]).to_string();
        assert_eq!(
            text,
            "\"queue.orders.retry.jitter\" is 200; use a whole number from 0 to 100"
        );
    }

    #[test]
    fn faults_past_the_bound_are_counted() {
        let mut reader = Reader::default();
        for index in 0..MAX_FAULTS + 7 {
            reader.within(&index.to_string(), |reader| reader.fault("is wrong"));
        }
        let faults = reader.finish(()).expect_err("faults");
        assert_eq!(faults.len(), MAX_FAULTS + 1);
        let last = faults.last().map(ToString::to_string).unwrap_or_default();
        assert_eq!(
            last,
            "the definition has 7 more faults; correct these first"
        );
    }
}
