//! Lists that the host gives page by page, read as one.

use std::collections::HashSet;

use serde_json::Value;

use super::{Client, Request};
use crate::exit::Failure;

/// Entries of one page: the most that a host gives.
const PAGE: usize = 1_000;

/// Most entries that are read of one list.
const MOST: usize = 1_000_000;

impl Client {
    /// All entries of a list below `/v1`, or the first `most`, in one answer that has the form of
    /// a page. `query` is what is asked of the list. An entry that changed its place between two
    /// pages is in it once.
    ///
    /// # Errors
    /// As [`ask`](Client::ask).
    pub(crate) fn list(
        &self,
        list: &str,
        query: &[(&'static str, Option<&str>)],
        most: Option<usize>,
    ) -> Result<Value, Failure> {
        let most = most.unwrap_or(MOST).min(MOST);
        collect(list, most, |cursor, max| {
            let mut request = Request::get(&[list]).query("max", Some(max));
            for (name, value) in query {
                request = request.query(name, *value);
            }
            self.ask(request.query("cursor", cursor))
        })
    }
}

fn collect(
    list: &str,
    most: usize,
    mut ask: impl FnMut(Option<&str>, usize) -> Result<Value, Failure>,
) -> Result<Value, Failure> {
    let mut known = HashSet::new();
    let mut entries = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let max = (most - entries.len()).clamp(1, PAGE);
        let mut answer = ask(cursor.as_deref(), max)?;
        let Some(page) = answer.as_object_mut() else {
            return Ok(answer);
        };
        let next = page.get("next").and_then(Value::as_str).map(str::to_owned);
        let found = page.get_mut(list).and_then(Value::as_array_mut);
        let found = found.map(std::mem::take).unwrap_or_default();
        let is_new = |entry: &Value| {
            let name = entry.get("name").and_then(Value::as_str);
            name.is_none_or(|name| known.insert(name.to_owned()))
        };
        entries.extend(found.into_iter().filter(is_new));
        // A host whose pages lead back to themselves would be asked for ever.
        if next.is_none() || next == cursor || entries.len() >= most {
            entries.truncate(most);
            page.insert(list.to_owned(), Value::Array(entries));
            return Ok(answer);
        }
        cursor = next;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn all(most: usize, pages: &[Value]) -> (Value, Vec<(Option<String>, usize)>) {
        let mut asked = Vec::new();
        let answer = collect("queues", most, |cursor, max| {
            asked.push((cursor.map(str::to_owned), max));
            Ok(pages[asked.len() - 1].clone())
        });
        (answer.expect("pages"), asked)
    }

    fn queue(name: &str) -> Value {
        json!({ "name": name })
    }

    #[test]
    fn pages_are_read_to_the_end_and_each_entry_once() {
        let pages = [
            json!({ "queues": [queue("a"), queue("b")], "matching": 3, "next": "x" }),
            json!({ "queues": [queue("b"), queue("c")], "matching": 3, "next": "y" }),
            json!({ "queues": [], "matching": 3 }),
        ];
        let (answer, asked) = all(MOST, &pages);
        let wanted = json!({ "queues": [queue("a"), queue("b"), queue("c")], "matching": 3 });
        assert_eq!(answer, wanted);
        let cursors: Vec<_> = asked.iter().map(|(cursor, _)| cursor.as_deref()).collect();
        assert_eq!(cursors, [None, Some("x"), Some("y")]);
    }

    #[test]
    fn no_more_is_asked_than_is_wanted() {
        let pages = [
            json!({ "queues": [queue("a"), queue("b")], "next": "x" }),
            json!({ "queues": [queue("c")], "next": "y" }),
        ];
        let (answer, asked) = all(3, &pages);
        assert_eq!(answer["next"], "y");
        assert_eq!(asked, [(None, 3), (Some("x".to_owned()), 1)]);
    }

    #[test]
    fn a_cursor_that_leads_to_itself_ends_it() {
        let page = json!({ "queues": [queue("a")], "next": "x" });
        let (answer, asked) = all(MOST, &[page.clone(), page]);
        assert_eq!(
            (answer["queues"].as_array().map(Vec::len), asked.len()),
            (Some(1), 2)
        );
    }
}
