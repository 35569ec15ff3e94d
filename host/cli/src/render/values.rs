//! JSON of answers as cells: the command line shows what it got, field by field, and survives
//! fields that it does not know.

use serde_json::Value;

use super::table::{Cell, Table};
use super::time::{format_bytes, format_duration, format_number, format_timestamp};

/// Fields whose numbers are points in time.
const TIMESTAMPS: &[&str] = &[
    "put-time",
    "expires",
    "due",
    "started",
    "ended",
    "until",
    "time",
    "last-fired",
    "next-check",
    "since",
    "fired-at",
    "loaded",
    "changed",
    "start-time",
];

/// Fields whose numbers are durations in milliseconds.
const DURATIONS: &[&str] = &[
    "oldest-age",
    "start-latency",
    "uptime",
    "latency",
    "guest-time",
    "wall-time",
    "age",
];

/// Fields whose numbers are bytes.
const SIZES: &[&str] = &[
    "size",
    "memory",
    "peak-memory",
    "bytes",
    "disk-free",
    "disk-used",
];

/// The value at a path of names between dots; `null` when a name is missing.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.')
        .fold(value, |value, name| value.get(name).unwrap_or(&Value::Null))
}

/// The value at the first of several paths that is there.
pub(crate) fn first<'a>(value: &'a Value, paths: &[&str]) -> &'a Value {
    paths
        .iter()
        .map(|path| at(value, path))
        .find(|found| !found.is_null())
        .unwrap_or(&Value::Null)
}

/// A value as the text of a cell: nothing for `null`, lists between commas.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(entries) => {
            let entry = |(name, value): (&String, &Value)| format!("{name}={}", plain(value));
            entries.iter().map(entry).collect::<Vec<_>>().join(", ")
        }
    }
}

/// A field as the text of a cell: its name says what its number means.
pub(crate) fn shown(name: &str, value: &Value) -> String {
    let Some(number) = value.as_u64() else {
        return plain(value);
    };
    let name = name.rsplit('.').next().unwrap_or(name);
    if TIMESTAMPS.contains(&name) {
        format_timestamp(number)
    } else if DURATIONS.contains(&name) {
        format_duration(number)
    } else if SIZES.contains(&name) {
        format_bytes(number)
    } else {
        format_number(number)
    }
}

/// The cell of the field at a path.
pub(crate) fn cell(value: &Value, path: &str) -> Cell {
    Cell::new(shown(path, at(value, path)))
}

/// The items of a list: the value itself, or the first list inside it.
pub(crate) fn items(value: &Value) -> &[Value] {
    let list = match value {
        Value::Array(list) => Some(list),
        Value::Object(entries) => entries.values().find_map(Value::as_array),
        _ => None,
    };
    list.map_or(&[], Vec::as_slice)
}

/// All fields of a value as rows of name and value; tables inside become names with dots.
pub(crate) fn fields(value: &Value, skipped: &[&str]) -> Table {
    let mut table = Table::new(&["NAME", "VALUE"]);
    add_fields(&mut table, "", value, skipped);
    table
}

fn add_fields(table: &mut Table, outer: &str, value: &Value, skipped: &[&str]) {
    let Value::Object(entries) = value else {
        return;
    };
    for (name, value) in entries {
        let path = if outer.is_empty() {
            name.clone()
        } else {
            format!("{outer}.{name}")
        };
        if skipped.contains(&path.as_str()) {
            continue;
        }
        if value.as_object().is_some_and(|inner| !inner.is_empty()) {
            add_fields(table, &path, value, skipped);
        } else {
            table.row(vec![Cell::new(&path), Cell::new(shown(&path, value))]);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_shown_by_their_names() {
        let value = json!({
            "name": "orders", "paused": false, "counts": { "ready": 1_200, "size": 2_048 },
            "put-time": 0, "oldest-age": 4_200, "reason": null, "list": [1, "two"],
        });
        assert_eq!(
            fields(&value, &["paused"]).render(None, false),
            "NAME          VALUE\n\
             name          orders\n\
             counts.ready  1 200\n\
             counts.size   2.0 KiB\n\
             put-time      1970-01-01 00:00:00.000Z\n\
             oldest-age    4.2s\n\
             reason\n\
             list          1, two\n"
        );
    }

    #[test]
    fn lists_are_found_bare_or_wrapped() {
        assert_eq!(items(&json!([1, 2])).len(), 2);
        assert_eq!(items(&json!({ "next": null, "queues": [1] })).len(), 1);
        assert!(items(&json!({ "next": 3 })).is_empty());
        assert_eq!(first(&json!({ "b": 1 }), &["a", "b"]), &json!(1));
        assert_eq!(at(&json!({ "a": { "b": 2 } }), "a.b"), &json!(2));
        assert_eq!(at(&json!(null), "a.b"), &Value::Null);
    }
}
