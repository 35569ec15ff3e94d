//! Refusals: `application/problem+json`, and what others send that stand between us and a host.

use oncue_core::code::Code;
use serde_json::Value;

use super::Answer;
use crate::exit::{Exit, Failure};
use crate::render::values::{first, plain};

/// Longest text that is shown of an answer that is no problem document, in characters.
const SHOWN_LENGTH: usize = 200;

/// The host's refusal in its own words.
pub(super) fn problem(answer: &Answer) -> Failure {
    let json: Value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    let status = answer.status;
    let code: Option<Code> = json
        .get("code")
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok());
    let exit = code.map_or_else(|| Exit::of_status(status), Exit::of_code);
    let Some(sentence) = first(&json, &["message", "detail", "title"]).as_str() else {
        let text = String::from_utf8_lossy(&answer.body);
        let shown: String = text.chars().take(SHOWN_LENGTH).collect();
        let message = format!("the host answered {status}: {}", shown.trim());
        return Failure::new(exit, message);
    };
    let faults: Vec<String> = json
        .get("faults")
        .and_then(Value::as_array)
        .map(|faults| faults.iter().map(fault).collect())
        .unwrap_or_default();
    let code = first(&json, &["code"]).as_str().unwrap_or_default();
    let title = first(&json, &["title"]).as_str().unwrap_or(sentence);
    let (message, faults) = apart(sentence, title, faults);
    let mark = format!("[{code}]");
    if code.is_empty() || message.contains(&mark) {
        return Failure::new(exit, message).with_faults(faults);
    }
    Failure::new(exit, format!("{message} {mark}")).with_faults(faults)
}

/// One fault as a sentence: it comes as one, or as path and message.
fn fault(fault: &Value) -> String {
    if let Some(text) = fault.as_str() {
        return text.to_owned();
    }
    let path = match first(fault, &["path", "field", "name"]) {
        Value::Array(steps) => steps.iter().map(plain).collect::<Vec<_>>().join("."),
        path => plain(path),
    };
    let message = plain(first(fault, &["message", "detail"]));
    if path.is_empty() {
        message
    } else {
        format!("\"{path}\" {message}")
    }
}

/// Takes sentence and faults apart: faults are printed one by one, so the sentence need not list
/// them too. One fault alone stays in the sentence.
fn apart(sentence: &str, title: &str, faults: Vec<String>) -> (String, Vec<String>) {
    let listed = faults
        .first()
        .and_then(|fault| sentence.find(fault.as_str()));
    match listed {
        Some(_) if faults.len() == 1 => (sentence.to_owned(), Vec::new()),
        // The sentence consists of faults alone: what the code means stands for it.
        Some(0) => (title.trim_end_matches('.').to_owned(), faults),
        Some(start) => {
            let before = sentence[..start].trim_end().trim_end_matches(':');
            (before.to_owned(), faults)
        }
        None => (sentence.to_owned(), faults),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(status: u16, body: &str) -> Failure {
        problem(&Answer {
            status,
            body: body.as_bytes().to_vec(),
        })
    }

    #[test]
    fn problems_become_failures() {
        let full = "queue \"orders\" is full (depth 5 of 5); drain it [queue-full]";
        let body = json!({ "status": 409, "code": "queue-full", "detail": full });
        let failure = refused(409, &body.to_string());
        assert_eq!(
            (failure.exit, failure.message.as_str()),
            (Exit::Refused, full)
        );

        let body = json!({
            "code": "invalid-definition",
            "detail": "queue \"q\" has faults: \"depth\" is 0; \"x\" is 1 [invalid-definition]",
            "faults": ["\"depth\" is 0", { "path": ["a", "b"], "message": "is 1" }],
        });
        let failure = refused(422, &body.to_string());
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(
            failure.message,
            "queue \"q\" has faults [invalid-definition]"
        );
        assert_eq!(failure.faults, ["\"depth\" is 0", "\"a.b\" is 1"]);

        let body = json!({
            "title": "The definition has faults.", "code": "invalid-definition",
            "detail": "\"depth\" is 0; also \"x\" is 1 [invalid-definition]",
            "faults": ["\"depth\" is 0", "\"x\" is 1"],
        });
        let failure = refused(422, &body.to_string());
        assert_eq!(
            failure.message,
            "The definition has faults [invalid-definition]"
        );
        assert_eq!(failure.faults.len(), 2);

        let body = json!({
            "title": "A parameter is wrong.", "code": "invalid-parameter",
            "detail": "\"max\" is 0 [invalid-parameter]",
            "faults": [{ "path": "max", "message": "is 0" }],
        });
        let failure = refused(400, &body.to_string());
        assert_eq!(failure.message, "\"max\" is 0 [invalid-parameter]");
        assert!(failure.faults.is_empty());

        let failure = refused(502, "<html>bad gateway</html>");
        assert_eq!(failure.exit, Exit::Unreachable);
        assert!(
            failure.message.contains("502: <html>"),
            "{}",
            failure.message
        );
        let failure = refused(
            404,
            &json!({ "code": "from-the-future", "detail": "x" }).to_string(),
        );
        assert_eq!(
            (failure.exit, failure.message.as_str()),
            (Exit::NotFound, "x [from-the-future]")
        );
    }
}
