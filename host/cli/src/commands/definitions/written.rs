//! Definitions as TOML, always in the same order and form.

use serde_json::{Map, Value};

use super::{Defined, Entry};

/// Before everything.
pub(super) const HEAD: &str = "\
# Definitions of an oncue host: what operators have set over manifests and defaults.
# \"oncue apply -f FILE\" lays them over a host.
";

/// Before everything, when all values are written.
pub(super) const HEAD_ALL: &str = "\
# Definitions of an oncue host: every value that holds, and where it comes from.
# Applied as it is, all of it becomes the operator's: no manifest changes it any more.
";

/// The table of one definition, with the origins of its values if they are to be told.
pub(super) fn table(defined: &Defined, entries: &[Entry], with_origins: bool) -> String {
    let mut text = format!("\n[{}.{}]\n", defined.what.word(), key(&defined.name));
    for (name, value) in entries {
        text.push_str(&format!("{name} = {}", toml_of(value)));
        if with_origins {
            let origin = defined.holds.iter().find(|((known, _), _)| known == name);
            let origin = origin.map(|(_, origin)| origin.as_str());
            text.push_str(&format!("  # {}", origin.unwrap_or_default()));
        }
        text.push('\n');
    }
    text
}

/// A name as a key: bare, or in quotes where a dot would else divide it.
fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        text(name)
    }
}

/// A value on one line.
pub(super) fn toml_of(value: &Value) -> String {
    match value {
        Value::Object(entries) => inline(entries),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(toml_of).collect();
            format!("[{}]", values.join(", "))
        }
        Value::String(written) => text(written),
        // Attributes have whole numbers and texts; null never comes from a host.
        other => other.to_string(),
    }
}

/// A text on one line. What JSON escapes TOML reads the same way, and one character more.
fn text(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

fn inline(entries: &Map<String, Value>) -> String {
    if entries.is_empty() {
        return "{}".to_owned();
    }
    let entry = |(name, value): (&String, &Value)| format!("{} = {}", key(name), toml_of(value));
    let entries: Vec<String> = entries.iter().map(entry).collect();
    format!("{{ {} }}", entries.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_toml_of_one_line() {
        let value = json!({ "a b": "x\"y\nz\\\u{7f}\u{1}ö", "list": [1, "two"], "empty": {} });
        let text = toml_of(&value);
        assert!(!text.contains('\n'), "{text}");
        let read: toml::Table = toml::from_str(&format!("v = {text}")).expect("TOML");
        assert_eq!(serde_json::to_value(&read["v"]).expect("JSON"), value);
        assert_eq!(key("audit.invoice"), "\"audit.invoice\"");
        assert_eq!(key("orders-2"), "orders-2");
    }
}
