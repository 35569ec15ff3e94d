//! CloudEvents 1.0 over HTTP, binary and structured, to and from messages.
//!
//! | Event | Message |
//! |---|---|
//! | `data` | the body |
//! | `datacontenttype` | the content type |
//! | every other attribute and extension `NAME` | the property `ce-NAME` |
//! | `traceparent`, `tracestate` | the message's trace context too, unless the request has one |
//! | `source` and `id` | the idempotency key `SOURCE ID`, unless the request has one of its own |
//!
//! An answer writes the properties of such a message as `ce-NAME` headers again, so that it is an
//! event in binary mode. Batches are refused: `POST /v1/units` puts many messages at once.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use oncue_core::definition::Fault;
use oncue_core::trace;
use oncue_manager::put::MAX_TEXT;
use oncue_manager::tasks::port::PutOptions;
use serde_json::{Map, Value};

use super::fields::Faults;
use super::header::EVENT_PREFIX;
use super::text::decode;

/// The media type of an event in structured mode.
pub(crate) const STRUCTURED: &str = "application/cloudevents+json";
/// The media type of many events, which is refused.
pub(crate) const BATCH: &str = "application/cloudevents-batch+json";
/// The property that makes a message an event.
pub(crate) const SPEC_VERSION: &str = "ce-specversion";
/// The only version of the specification that is understood.
const VERSION: &str = "1.0";
/// Attributes that every event has.
const REQUIRED: [&str; 4] = ["specversion", "id", "source", "type"];
/// What `data` is when nothing else is said.
const JSON: &str = "application/json";

/// Takes the event's attributes from the headers of a request in binary mode. In structured mode
/// headers may repeat attributes, and those of the event hold.
pub(crate) fn from_headers(headers: &HeaderMap, options: &mut PutOptions, faults: &mut Faults) {
    if options
        .content_type
        .as_deref()
        .is_some_and(|given| essence(given) == STRUCTURED)
    {
        return;
    }
    let mut attributes = Vec::new();
    for name in headers.keys() {
        let Some(attribute) = name.as_str().strip_prefix(EVENT_PREFIX) else {
            continue;
        };
        let mut values = headers.get_all(name).iter();
        let first = values.next().map(|value| decode(value.as_bytes()));
        if values.next().is_some() {
            faults.add(name.as_str(), "is given twice; remove one");
        } else if let Some(value) = first.and_then(|value| faults.keep(name.as_str(), value)) {
            attributes.push((attribute.to_owned(), value));
        }
    }
    if !attributes.is_empty() {
        add_attributes(attributes, EVENT_PREFIX, options, faults);
    }
}

/// Checks attributes and makes them properties and a key.
fn add_attributes(
    attributes: Vec<(String, String)>,
    prefix: &str,
    options: &mut PutOptions,
    faults: &mut Faults,
) {
    let value_of = |name: &str| {
        let found = attributes.iter().find(|(attribute, _)| attribute == name);
        found
            .map(|(_, value)| value.clone())
            .filter(|value| !value.is_empty())
    };
    for name in REQUIRED {
        if value_of(name).is_none() {
            faults.add(
                &format!("{prefix}{name}"),
                "is missing or empty; every event has it",
            );
        }
    }
    if let Some(version) = value_of("specversion").filter(|version| version != VERSION) {
        let message = format!("is \"{}\"; use \"{VERSION}\"", version.escape_debug());
        faults.add(&format!("{prefix}specversion"), message);
    }
    if options.idempotency_key.is_none()
        && let Some((source, id)) = value_of("source").zip(value_of("id"))
    {
        let key = format!("{source} {id}");
        if key.len() > MAX_TEXT {
            let message = format!(
                "and the source have {} bytes of {MAX_TEXT} that an idempotency key may have; \
                 send an idempotency-key of your own",
                key.len()
            );
            faults.add(&format!("{prefix}id"), message);
        }
        options.idempotency_key = Some(key);
    }
    let mut properties = options.properties.iter();
    let has_context = properties.any(|(name, _)| name == trace::PARENT);
    for (name, value) in attributes {
        if name.is_empty()
            || !name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        {
            let message = "is not an attribute's name; use a-z and 0-9".to_owned();
            faults.add(&format!("{prefix}{}", name.escape_debug()), message);
        }
        // The distributed-tracing extension; the request's own context is nearer.
        let is_trace = name == trace::PARENT || name == trace::STATE;
        if is_trace && !has_context {
            options.properties.push((name.clone(), value.clone()));
        }
        options
            .properties
            .push((format!("{EVENT_PREFIX}{name}"), value));
    }
}

/// Reads an event in structured mode: its attributes into `options`, and its data as the body.
/// JSON data is written anew, without spaces; binary mode keeps bytes as they are.
///
/// # Errors
/// Every fault of the event, each under the attribute's name.
pub(crate) fn from_structured(
    mut event: Map<String, Value>,
    options: &mut PutOptions,
) -> Result<Bytes, Vec<Fault>> {
    let mut faults = Faults::default();
    let data = event.shift_remove("data");
    let data_base64 = event.shift_remove("data_base64");
    let content_type = event.shift_remove("datacontenttype");
    options.content_type = match content_type {
        Some(Value::String(content_type)) => Some(content_type),
        None => None,
        Some(_) => {
            faults.add("datacontenttype", "is not a text; use a media type");
            None
        }
    };
    let body = body_of(data, data_base64, options, &mut faults);
    let mut attributes = Vec::new();
    for (name, value) in event {
        match value {
            Value::String(text) => attributes.push((name, text)),
            Value::Number(number) => attributes.push((name, number.to_string())),
            Value::Bool(value) => attributes.push((name, value.to_string())),
            // The JSON format lets an absent attribute stand as null.
            Value::Null => {}
            _ => faults.add(
                &name,
                "is a list or an object; use a text, a number or a boolean",
            ),
        }
    }
    add_attributes(attributes, "", options, &mut faults);
    faults.finish(body)
}

fn body_of(
    data: Option<Value>,
    data_base64: Option<Value>,
    options: &mut PutOptions,
    faults: &mut Faults,
) -> Bytes {
    match (data, data_base64) {
        (Some(_), Some(_)) => {
            faults.add("data_base64", "stands beside data; remove one");
            Bytes::new()
        }
        (None, None) => Bytes::new(),
        (None, Some(Value::String(text))) => match STANDARD.decode(text) {
            Ok(bytes) => bytes.into(),
            Err(error) => {
                faults.add("data_base64", format!("is not base64: {error}"));
                Bytes::new()
            }
        },
        (None, Some(_)) => {
            faults.add("data_base64", "is not a text; use base64");
            Bytes::new()
        }
        (Some(data), None) => {
            let content_type = options.content_type.get_or_insert_with(|| JSON.to_owned());
            match data {
                Value::String(text) if !is_json(content_type) => text.into(),
                data => data.to_string().into(),
            }
        }
    }
}

/// Whether a media type says JSON.
fn is_json(content_type: &str) -> bool {
    let essence = essence(content_type);
    essence == JSON || essence.ends_with("+json")
}

/// A media type without its parameters, in lower case.
pub(crate) fn essence(content_type: &str) -> String {
    content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, wanted: Result<(&str, Option<&str>), &[&str]>) {
        let event = serde_json::from_str(json).expect("a JSON object");
        let mut options = PutOptions::default();
        match (from_structured(event, &mut options), wanted) {
            (Ok(body), Ok((text, content_type))) => {
                assert_eq!(body, text.as_bytes(), "{json}");
                assert_eq!(options.content_type.as_deref(), content_type, "{json}");
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

    fn event(members: &str) -> String {
        format!(r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t"{members}}}"#)
    }

    #[test]
    fn data_becomes_the_body() {
        check(&event(""), Ok(("", None)));
        check(
            &event(r#","data":{"a": [1, 2.50]}"#),
            Ok((r#"{"a":[1,2.5]}"#, Some(JSON))),
        );
        check(&event(r#","data":"x""#), Ok(("\"x\"", Some(JSON))));
        let text = r#","datacontenttype":"text/plain","data":"x""#;
        check(&event(text), Ok(("x", Some("text/plain"))));
        let json = r#","datacontenttype":"application/a+json; v=1","data":"x""#;
        check(&event(json), Ok(("\"x\"", Some("application/a+json; v=1"))));
        check(&event(r#","data_base64":"aGk=""#), Ok(("hi", None)));
        check(&event(r#","data":null"#), Ok(("null", Some(JSON))));
    }

    #[test]
    fn all_faults_of_an_event_are_listed() {
        check(
            r#"{"specversion":"0.3","id":"","type":"t",
                "data":1,"data_base64":"x","Bad":"x","l":[]}"#,
            Err(&[
                "\"data_base64\" stands beside data",
                "\"l\" is a list or an object",
                "\"id\" is missing or empty",
                "\"source\" is missing or empty",
                "\"specversion\" is \"0.3\"; use \"1.0\"",
                "\"Bad\" is not an attribute's name",
            ]),
        );
        check(
            &event(r#","data_base64":"?""#),
            Err(&["\"data_base64\" is not base64"]),
        );
        let long = "x".repeat(300);
        let json = event("").replace("/s", &long);
        check(&json, Err(&["\"id\" and the source have 302 bytes of 256"]));
    }

    #[test]
    fn attributes_become_properties_and_the_key() {
        let json = event(r#","subject":"s","n":5,"gone":null,"traceparent":"00-x""#);
        let mut options = PutOptions::default();
        from_structured(serde_json::from_str(&json).expect("JSON"), &mut options)
            .expect("no faults");
        assert_eq!(options.idempotency_key.as_deref(), Some("/s 1"));
        let names: Vec<&str> = options
            .properties
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        let wanted = [
            "ce-specversion",
            "ce-id",
            "ce-source",
            "ce-type",
            "ce-subject",
            "ce-n",
            "traceparent",
            "ce-traceparent",
        ];
        assert_eq!(names, wanted);
    }

    #[test]
    fn binary_mode_reads_headers() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("ce-specversion", "1.0"),
            ("ce-id", "a%20b"),
            ("ce-source", "/s"),
            ("ce-type", "t"),
            ("idempotency-key", "mine"),
        ] {
            headers.insert(name, value.parse().expect("a value"));
        }
        let options = super::super::put::from_headers(&headers).expect("no faults");
        assert_eq!(options.idempotency_key.as_deref(), Some("mine"));
        assert!(
            options
                .properties
                .contains(&("ce-id".to_owned(), "a b".to_owned()))
        );
        headers.remove("ce-specversion");
        let faults = super::super::put::from_headers(&headers).expect_err("a fault");
        assert!(
            faults[0]
                .to_string()
                .starts_with("\"ce-specversion\" is missing"),
            "{faults:?}"
        );
    }
}
