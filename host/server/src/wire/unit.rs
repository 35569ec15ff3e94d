//! A unit of work in JSON: puts to many queues, all or none.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use oncue_core::definition::{Fault, Raw};
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use serde::Serialize;
use utoipa::ToSchema;

use super::fields::{Faults, join, known_fields, shown, text};
use super::put;

/// Puts of one unit. A unit's own bound in bytes is the manager's.
pub(crate) const MAX_PUTS: usize = 10_000;

/// Fields of a put beside those of [`put::FIELDS`].
const OWN_FIELDS: [&str; 4] = ["queue", "body", "body-base64", "properties"];

/// Puts that are made together or not at all.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schema(as = Unit)]
#[expect(dead_code, reason = "only describes; the reader works on Raw")]
pub(crate) struct UnitSchema {
    /// At least one, at most 10 000.
    #[schema(min_items = 1, max_items = 10_000)]
    puts: Vec<PutSchema>,
}

/// One put. Fields that are left out take the queue's defaults.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schema(as = Put)]
#[expect(dead_code, reason = "only describes; the reader works on Raw")]
pub(crate) struct PutSchema {
    /// The queue.
    queue: String,
    /// The body as text. Without it and `body-base64` the body is empty.
    body: Option<String>,
    /// The body in base64.
    body_base64: Option<String>,
    /// Free names and texts; a name given several times has a list of texts.
    properties: Option<std::collections::BTreeMap<String, super::message::PropertySchema>>,
    /// Ties a reply to its request.
    correlation_id: Option<String>,
    /// The queue where a reply is wanted.
    reply_to: Option<String>,
    /// Members of a group are never handled two at once, and keep their order.
    group: Option<String>,
    /// Your own number within the group.
    group_sequence: Option<u32>,
    /// 0 to 9; higher is got first.
    #[schema(maximum = 9)]
    priority: Option<u8>,
    /// `persistent` or `non-persistent`.
    #[schema(pattern = "^(non-)?persistent$")]
    persistence: Option<String>,
    /// How long it lives: a time such as `10m`, or `never`.
    expiry: Option<String>,
    /// How long it waits before it may be taken: a time such as `5s`.
    delay: Option<String>,
    /// Makes a repeat harmless.
    idempotency_key: Option<String>,
    /// The media type of the body.
    content_type: Option<String>,
}

/// What became of a put.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = PutAnswer)]
pub(crate) struct PutAnswerJson {
    /// The message's identity: 24 hexadecimal digits.
    pub(crate) id: String,
    /// True when an earlier put with the same idempotency key had made it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) repeated: bool,
}

/// What became of a unit's puts, in their order.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = UnitAnswer)]
pub(crate) struct UnitAnswerJson {
    /// One for each put.
    pub(crate) puts: Vec<PutAnswerJson>,
}

/// Reads a unit.
///
/// # Errors
/// All faults at once, with paths such as `puts.3.priority`.
pub(crate) fn read(raw: &Raw) -> Result<Vec<PutRequest>, Vec<Fault>> {
    let mut faults = Faults::default();
    let found = known_fields(raw, &["puts"], "", &mut faults);
    let mut requests = Vec::new();
    match found.first().map(|(_, value)| value) {
        Some(Raw::List(puts)) if (1..=MAX_PUTS).contains(&puts.len()) => {
            for (index, put) in puts.iter().enumerate() {
                requests.extend(read_put(put, &format!("puts.{index}"), &mut faults));
            }
        }
        Some(Raw::List(puts)) => {
            faults.add(
                "puts",
                format!("has {} entries; use 1 to {MAX_PUTS}", puts.len()),
            );
        }
        Some(other) => faults.add("puts", format!("is {}; use a list", shown(other))),
        None if matches!(raw, Raw::Table(_)) => {
            faults.add("puts", "is missing; give a list of puts");
        }
        None => {}
    }
    faults.finish(requests)
}

fn read_put(raw: &Raw, path: &str, faults: &mut Faults) -> Option<PutRequest> {
    let known: Vec<&'static str> = OWN_FIELDS.into_iter().chain(put::FIELDS).collect();
    let mut options = PutOptions::default();
    let (mut queue, mut body, mut has_body) = (None, Bytes::new(), false);
    for (name, value) in known_fields(raw, &known, path, faults) {
        let here = join(path, name);
        match name {
            "queue" => {
                // A fault is noted; the None that stays is not a second one.
                queue = Some(faults.keep(&here, put::queue_name(value)));
            }
            "body" | "body-base64" if has_body => {
                faults.add(
                    &here,
                    "stands beside the other form of the body; remove one",
                );
            }
            "body" | "body-base64" => {
                has_body = true;
                let read = if name == "body" {
                    read_text(value)
                } else {
                    read_base64(value)
                };
                body = faults.keep(&here, read).unwrap_or_default();
            }
            "properties" => put::set_properties(&mut options, value, &here, faults),
            _ => {
                let set = put::set(&mut options, name, value);
                faults.keep(&here, set);
            }
        }
    }
    if queue.is_none() && matches!(raw, Raw::Table(_)) {
        faults.add(&join(path, "queue"), "is missing; name the queue");
    }
    Some(PutRequest {
        queue: queue??,
        body,
        options,
    })
}

fn read_text(raw: &Raw) -> Result<Bytes, String> {
    text(raw).map(|text| Bytes::copy_from_slice(text.as_bytes()))
}

fn read_base64(raw: &Raw) -> Result<Bytes, String> {
    let decoded = STANDARD.decode(text(raw)?);
    decoded
        .map(Bytes::from)
        .map_err(|error| format!("is not base64: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, wanted: Result<&[&str], &[&str]>) {
        let raw: Raw = serde_json::from_str(json).expect("JSON");
        match (read(&raw), wanted) {
            (Ok(puts), Ok(bodies)) => {
                let got: Vec<&[u8]> = puts.iter().map(|put| put.body.as_ref()).collect();
                let bodies: Vec<&[u8]> = bodies.iter().map(|body| body.as_bytes()).collect();
                assert_eq!(got, bodies, "{json}");
            }
            (Err(faults), Err(wanted)) => {
                let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
                assert_eq!(texts.len(), wanted.len(), "{texts:#?}");
                for (text, wanted) in texts.iter().zip(wanted) {
                    assert!(text.starts_with(wanted), "{text}, wanted {wanted}");
                }
            }
            (got, wanted) => panic!("{json} gave {got:?}, wanted {wanted:?}"),
        }
    }

    #[test]
    fn bodies_are_text_or_base64() {
        check(
            r#"{"puts":[
                {"queue":"a","body":"ö"},{"queue":"b","body-base64":"aGk="},{"queue":"c"}
            ]}"#,
            Ok(&["ö", "hi", ""]),
        );
    }

    #[test]
    fn all_faults_of_all_puts_are_listed() {
        check(
            r#"{"puts":[
                {"queue":"a b","priority":12,"body":5},
                {"quue":"a","body":"x","body-base64":"eA=="},
                7,
                {"queue":"a","properties":{"p":1,"q":["x",2]}}
            ],"x":1}"#,
            Err(&[
                "\"x\" is not known here",
                "\"puts.0.queue\" is \"a b\", which has ' ' at position 2",
                "\"puts.0.priority\" is 12; use a whole number from 0 to 9",
                "\"puts.0.body\" is 5; use a text",
                "\"puts.1.quue\" is not known here; did you mean \"queue\"?",
                "\"puts.1.body-base64\" stands beside the other form",
                "\"puts.1.queue\" is missing",
                "\"puts.2\" is 7; use an object",
                "\"puts.3.properties.p\" is 1; use a text",
                "\"puts.3.properties.q\" is 2; use a text",
            ]),
        );
        check("{}", Err(&["\"puts\" is missing"]));
        check("[]", Err(&["\"body\" is a list; use an object"]));
        check(
            r#"{"puts":[]}"#,
            Err(&["\"puts\" has 0 entries; use 1 to 10000"]),
        );
        check(
            r#"{"puts":{}}"#,
            Err(&["\"puts\" is an object; use a list"]),
        );
    }
}
