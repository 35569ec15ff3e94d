//! Where what came differs from what was expected: which put, which field, expected and got.

use serde_json::Value;

use super::case::{Expected, join};

/// Differences that are told of one case.
pub(super) const MAX_TOLD: usize = 20;

/// What is shown of a value, in characters.
const MAX_SHOWN: usize = 400;

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    /// `puts[0].text`, `state.total`, ...
    pub(super) path: String,
    /// None: it was not expected.
    pub(super) expected: Option<String>,
    /// None: it did not come.
    pub(super) got: Option<String>,
}

/// All differences. A reason that is not expected is not compared.
pub(super) fn differences(expected: &Expected, got: &Expected) -> Vec<Difference> {
    let mut got = got.clone().like(expected);
    for (got, expected) in got.messages.iter_mut().zip(&expected.messages) {
        if expected.reason.is_none() {
            got.reason = None;
        }
    }
    let value = |it: &Expected| serde_json::to_value(it).expect("a case can be written");
    let mut found = Vec::new();
    compare("", Some(&value(expected)), Some(&value(&got)), &mut found);
    found
}

fn compare(path: &str, expected: Option<&Value>, got: Option<&Value>, found: &mut Vec<Difference>) {
    match (expected, got) {
        (Some(Value::Object(expected)), Some(Value::Object(got))) => {
            for (name, value) in expected {
                compare(&join(path, name), Some(value), got.get(name), found);
            }
            for (name, value) in got.iter().filter(|(name, _)| !expected.contains_key(*name)) {
                compare(&join(path, name), None, Some(value), found);
            }
        }
        (Some(Value::Array(expected)), Some(Value::Array(got))) => {
            for index in 0..expected.len().max(got.len()) {
                let path = format!("{path}[{index}]");
                compare(&path, expected.get(index), got.get(index), found);
            }
        }
        _ if expected == got => {}
        _ => found.push(Difference {
            path: path.to_owned(),
            expected: expected.map(shown),
            got: got.map(shown),
        }),
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    crate::render::text::cut_line(&text, MAX_SHOWN)
}

impl Difference {
    /// For people, in three lines.
    pub(super) fn lines(&self) -> [String; 3] {
        let or = |value: &Option<String>, none: &str| match value {
            Some(text) => text.clone(),
            None => format!("({none})"),
        };
        [
            self.path.clone(),
            format!("  expected  {}", or(&self.expected, "nothing")),
            format!("  got       {}", or(&self.got, "nothing")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(expected: Value, got: Value, told: &[&str]) {
        let read = |value| serde_json::from_value::<Expected>(value).expect("an expectation");
        let found = differences(&read(expected), &read(got));
        let found: Vec<String> = found.iter().map(|it| it.lines().join("|")).collect();
        assert_eq!(found, told);
    }

    #[test]
    fn a_difference_names_the_put_and_the_field() {
        let put = |text: &str| json!({"queue": "q", "text": text, "content-type": "a/b"});
        check(
            json!({"puts": [put("a")]}),
            json!({"puts": [put("a")]}),
            &[],
        );
        check(
            json!({"puts": [put("a"), put("b")]}),
            json!({"puts": [put("a"), put("c")]}),
            &["puts[1].text|  expected  b|  got       c"],
        );
        check(
            json!({"puts": []}),
            json!({"puts": [{"queue": "q", "text": "a"}]}),
            &["puts[0]|  expected  (nothing)|  got       {\"queue\":\"q\",\"text\":\"a\"}"],
        );
        check(
            json!({"state": {"a": {"text": "1"}}}),
            json!({"state": {"b": {"text": "1"}}}),
            &[
                "state.a|  expected  {\"text\":\"1\"}|  got       (nothing)",
                "state.b|  expected  (nothing)|  got       {\"text\":\"1\"}",
            ],
        );
    }

    #[test]
    fn a_reason_counts_only_where_it_is_expected() {
        let got = json!({"messages": [{"outcome": "rejected", "reason": "no"}]});
        check(
            json!({"messages": [{"outcome": "rejected"}]}),
            got.clone(),
            &[],
        );
        check(
            json!({"messages": [{"outcome": "rejected", "reason": "never"}]}),
            got,
            &["messages[0].reason|  expected  never|  got       no"],
        );
    }
}
